"""Random histories on the oracle and on SQLite: after every step both answer every read of the port alike."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from muniment.adapters.memory import MemoryStorage
from muniment.adapters.sqlite import SqliteStorage
from muniment.errors import MunimentError
from muniment.model.event import Deletion, Document, Event, Message, Note, Recall
from muniment.model.rows import (
    AddItems,
    AwaitClean,
    Change,
    CountUses,
    DropOtherVectors,
    DropProjections,
    EraseEvents,
    EraseLedger,
    EventFilter,
    Head,
    HideItems,
    ItemRow,
    KeepRequest,
    KeepVectors,
    MoveRoots,
    NewEvent,
    NewLedger,
    PendingClean,
    RaiseEpoch,
    SetUses,
    StoredRequest,
    SupersedeItem,
    Use,
    VectorRow,
)
from muniment.model.scope import Scope
from muniment.ports.storage import Storage
from muniment.testing.doubles import SeededEntropy
from muniment.testing.picture import ALL, Picture, find_differences, picture_of, picture_of_archive, picture_of_scope
from muniment.testing.rows import INT64_MAX, INT64_MIN, build_ledger, build_rows

T = TypeVar("T")

SCOPES = [Scope("a", "x"), Scope("a", None), Scope("A", "x")]
USED_SCOPES = st.sampled_from([*SCOPES[:1] * 4, *SCOPES])
"""One of them grows, the others are there to be left alone."""
REQUESTS = [bytes([number]) * 32 for number in range(4)]
HASHES = st.sampled_from([None, INT64_MIN, -1, 0, 1, INT64_MAX])
TIMES = st.sampled_from([INT64_MIN, -1, 0, 7, INT64_MAX])
SHORT_WAIT_S = 0.001


class BlockFailsError(Exception):
    """What a transaction of a test raises at its end."""


def events() -> st.SearchStrategy[Event]:
    """Small events: a storage does not look into them, so only their kinds and sessions matter."""
    common: dict[str, Any] = {"id": st.uuids(version=4), "session_id": st.sampled_from([None, "s1", "s2"])}
    return st.one_of(
        st.builds(Message, **common, speaker=st.just("a"), content=st.just("b")),
        st.builds(Document, **common, name=st.just("a"), text=st.just("b")),
        st.builds(Note, **common, content=st.just("")),
        st.builds(Recall, **common, query=st.just("*")),
        st.builds(Deletion, **common, targets=st.tuples(st.uuids()), reason=st.just("a")),
    )


def items(seq: int) -> st.SearchStrategy[ItemRow]:
    """Items of any values at that seq."""
    return st.builds(
        ItemRow,
        seq=st.just(seq),
        kind=st.integers(1, 3),
        tier=st.integers(0, 3),
        timestamp_us=TIMES,
        created_us=TIMES,
        root_seq=st.just(seq),
        deleted_seq=st.none(),
        superseded_seq=st.none(),
        session_hash=HASHES,
        speaker_hash=HASHES,
        key_hash=HASHES,
        text_hash=HASHES,
        terms=st.binary(max_size=16),
        retain_us=st.none() | TIMES,
    )


def changes_at(ids: list[bytes], bare: list[int], models: list[int]) -> st.SearchStrategy[list[Change]]:
    """Changes of a ledger whose events have these ids, first items for some of the seqs that are `bare` of one."""
    seqs = st.integers(0, len(ids) - 1)
    several = st.lists(seqs, max_size=3, unique=True)
    # The same chain twice in one batch is the case worth drawing.
    uses = st.tuples(seqs, st.lists(st.tuples(st.integers(1, 3), TIMES), min_size=1, max_size=2)).map(
        lambda drawn: [Use(drawn[0], *rest) for rest in drawn[1]]
    )
    requests = st.builds(StoredRequest, st.sampled_from(REQUESTS), st.binary(max_size=4), seqs, st.integers(1, 3))
    pending = st.builds(PendingClean, st.binary(min_size=16, max_size=16), st.just(b"l" * 16), TIMES)
    choices: list[st.SearchStrategy[Change]] = [
        st.builds(HideItems, several, seqs),
        st.builds(SupersedeItem, seqs, seqs),
        uses.map(CountUses),
        st.builds(Use, seqs, st.integers(0, 2), TIMES).map(lambda use: SetUses([use])),
        st.lists(st.tuples(seqs, seqs, TIMES), min_size=1, max_size=2).map(MoveRoots),
        requests.map(KeepRequest),
        pending.map(AwaitClean),
        st.sampled_from([DropProjections(), RaiseEpoch()]),
        several.map(lambda seqs: EraseEvents([(seq, ids[seq]) for seq in seqs])),
    ]
    if models:
        vectors = st.builds(VectorRow, seqs, st.sampled_from(models), st.binary(min_size=2, max_size=2))
        choices.append(st.lists(vectors, min_size=1, max_size=3).map(KeepVectors))
        choices.append(st.sampled_from(models).map(DropOtherVectors))
    others = st.lists(st.one_of(choices), max_size=4)
    chosen = st.sampled_from([bare, bare, bare[:1], []])
    return chosen.flatmap(
        lambda seqs: st.tuples(st.tuples(*[items(seq) for seq in seqs]).map(AddItems), others).map(
            lambda drawn: [drawn[0], *drawn[1]]
        )
    )


class StorageMachine(RuleBasedStateMachine):
    """The oracle and a SQLite archive that live through the same acts."""

    path: str | Path = ":memory:"

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.entropy = SeededEntropy()
        self.memory = MemoryStorage()
        self.sqlite = self.open_sqlite()
        self.touched: Scope | bytes = SCOPES[0]
        self.sessions: set[int] = set()
        self.recorded_us = 0
        self.held = ExitStack()
        self.views: list[tuple[Any, Picture]] = []

    def open_sqlite(self) -> SqliteStorage:
        return SqliteStorage(self.path)

    # --- Acts on both

    def on_both(self, act: Callable[[Storage], T]) -> T | None:
        """What both answer; None where both raise the same error."""
        (answer, error), (expected, expected_error) = self.outcome(self.sqlite, act), self.outcome(self.memory, act)
        assert error == expected_error
        assert find_differences({"answer": answer}, {"answer": expected}) == []
        return answer

    def outcome(self, storage: Storage, act: Callable[[Storage], T]) -> tuple[T | None, type[Exception] | None]:
        try:
            return act(storage), None
        except (MunimentError, BlockFailsError) as error:
            return None, type(error)

    def head_of(self, scope: Scope, fresh: NewLedger) -> Head:
        with self.memory.snapshot(scope) as snapshot:
            return Head(0, *fresh[:1], 0, b"", 0, fresh.salt, 0, None) if snapshot is None else snapshot.head

    def ids_of(self, scope: Scope) -> list[bytes]:
        with self.memory.snapshot(scope) as snapshot:
            rows = [] if snapshot is None else snapshot.read_events(EventFilter(), limit=ALL)
        return [row.event_id for row in rows]

    def bare_seqs(self, scope: Scope, num_events: int) -> list[int]:
        """The seqs that have no item; with one that has, now and then, for the error that this is."""
        with self.memory.snapshot(scope) as snapshot:
            known = {} if snapshot is None else snapshot.find_items(range(num_events))
        bare = [seq for seq in range(num_events) if seq not in known]
        return [*bare, *list(known)[:1]] if num_events % 7 == 3 else bare

    def build(self, scope: Scope, fresh: NewLedger, drawn: list[Event]) -> tuple[list[NewEvent], bytes]:
        rows, edge = build_rows(self.head_of(scope, fresh), drawn, recorded_us=self.recorded_us, entropy=self.entropy)
        self.sessions.update(row.session_hash for row in rows if row.session_hash is not None)
        return rows, edge

    # --- Rules

    @initialize(number=st.integers(0, 2))
    def begin_with_models(self, number: int) -> None:
        for probe in range(number):
            self.keep_model(probe)

    @rule(
        scope=USED_SCOPES,
        drawn=st.lists(events(), max_size=3),
        wait_us=st.sampled_from([0, 0, 1, 10**6]),
        fails=st.sampled_from([False] * 5 + [True]),
        data=st.data(),
    )
    def write(self, scope: Scope, drawn: list[Event], wait_us: int, fails: bool, data: st.DataObject) -> None:
        fresh = build_ledger(self.entropy)
        self.recorded_us += wait_us
        rows, edge = self.build(scope, fresh, drawn)
        ids = [*self.ids_of(scope), *(row.event_id for row in rows)]
        models = [model.model_no for model in self.memory.find_models()]
        changes = data.draw(changes_at(ids, self.bare_seqs(scope, len(ids)), models)) if ids else []

        def act(storage: Storage) -> Picture:
            with storage.transaction(scope, fresh, durable=False) as tx:
                tx.append(rows, edge)
                tx.apply(changes)
                seen = picture_of(tx)
                if fails:
                    raise BlockFailsError
            return seen

        self.touched = scope
        self.on_both(act)

    @rule(scope=USED_SCOPES, drawn=st.lists(events(), max_size=2), shift=st.integers(-1, 1), data=st.data())
    def append_what_is_refused(self, scope: Scope, drawn: list[Event], shift: int, data: st.DataObject) -> None:
        """An event again, or events at other seqs; the error is caught in the block, which then commits."""
        fresh = build_ledger(self.entropy)
        rows, edge = self.build(scope, fresh, drawn)
        ids = self.ids_of(scope)
        if ids:
            again = data.draw(st.sampled_from(ids))
            rows.append(NewEvent(len(ids) + len(rows), again, 1, 0, b"d", b"", b"l", b"s" * 16, b"{}", None))

        def act(storage: Storage) -> type[MunimentError] | None:
            with storage.transaction(scope, fresh, durable=False) as tx:
                try:
                    tx.append([row._replace(seq=row.seq + shift) for row in rows], edge)
                except MunimentError as error:
                    return type(error)
            return None

        self.touched = scope
        self.on_both(act)

    @rule(scope=USED_SCOPES, drawn=events(), at_us=st.integers(0, 9))
    def erase_scope(self, scope: Scope, drawn: Event, at_us: int) -> None:
        fresh = build_ledger(self.entropy)
        rows, edge = self.build(scope, fresh, [drawn])

        def act(storage: Storage) -> bytes:
            with storage.transaction(scope, fresh, durable=False) as tx:
                tx.apply([EraseLedger(at_us)])
                tx.append(rows, edge)
                return tx.head.ledger_id

        self.touched = self.on_both(act) or scope

    @rule(data=st.data())
    def act_on_the_archive(self, data: st.DataObject) -> None:
        acts = [self.drop_tenant, self.keep_model, self.keep_setting, self.clean]
        data.draw(st.sampled_from(acts))(data.draw(st.integers(0, 2)))

    def drop_tenant(self, number: int) -> None:
        pending = PendingClean(self.entropy(16), b"", number)
        self.on_both(lambda storage: storage.drop_tenant("aAb"[number], pending))

    def keep_model(self, number: int) -> None:
        self.on_both(lambda storage: storage.keep_model("model", 2, bytes([number])))

    def keep_setting(self, number: int) -> None:
        self.on_both(lambda storage: storage.keep_setting("ab"[number % 2], str(number)))

    def clean(self, number: int) -> None:
        """A machine that adds any rows may leave some that SQLite calls orphans; then neither is cleaned."""
        outcome = self.sqlite.clean(wait_s=SHORT_WAIT_S)
        if outcome.blocked is None:
            assert list(outcome.completed) == list(self.memory.clean(wait_s=0).completed)

    # --- What has to hold

    def see(self, storage: Storage, of: Scope | bytes) -> Picture | None:
        return picture_of_scope(storage, of, request_hashes=REQUESTS, session_hashes=sorted(self.sessions)[:3])

    @invariant()
    def they_agree_on_what_was_touched(self) -> None:
        assert find_differences(self.see(self.sqlite, self.touched), self.see(self.memory, self.touched)) == []
        assert find_differences(picture_of_archive(self.sqlite), picture_of_archive(self.memory)) == []

    def teardown(self) -> None:
        self.held.close()
        erased = [row.ledger_id for row in self.memory.read_scopes(erased=True, limit=ALL)]
        for of in (*SCOPES, *erased):
            assert find_differences(self.see(self.sqlite, of), self.see(self.memory, of)) == []
        self.sqlite.close()
        self.folder.cleanup()


class FileMachine(StorageMachine):
    """The same with a file: it can be closed and opened, and views stay open while others write."""

    def open_sqlite(self) -> SqliteStorage:
        return SqliteStorage(Path(self.folder.name) / "archive.db", durability="normal")

    @rule()
    def open_again(self) -> None:
        self.let_go()
        self.sqlite.close()
        self.sqlite = self.open_sqlite()

    @precondition(lambda self: len(self.views) < 4)
    @rule(scope=USED_SCOPES)
    def hold(self, scope: Scope) -> None:
        """Open a view on both and keep it."""
        for storage in (self.sqlite, self.memory):
            view = self.held.enter_context(storage.snapshot(scope))
            if view is not None:
                self.views.append((view, picture_of(view)))

    @rule()
    def let_go(self) -> None:
        self.views.clear()
        self.held.close()

    @invariant()
    def views_do_not_change(self) -> None:
        for view, before in self.views:
            assert find_differences(picture_of(view), before) == []


EXAMPLES = settings().max_examples
"""Of the profile; a history of 20 acts takes about 0.1 s."""

TestStorageInMemory = StorageMachine.TestCase
TestStorageInMemory.settings = settings(max_examples=EXAMPLES // 2, stateful_step_count=20)
TestStorageInFile = FileMachine.TestCase
TestStorageInFile.settings = settings(max_examples=EXAMPLES // 3, stateful_step_count=20)
