"""The conformance suite of the storage port: subclass `StorageContract`, say how an archive is opened, and run pytest.

```python
class TestMyStorage(PersistentStorageContract):
    adapter = MyStorage

    @pytest.fixture
    def opener(self, tmp_path):
        return partial(MyStorage.open, tmp_path / "archive")
```

Put `pytest.register_assert_rewrite("muniment.testing.storage")` into your conftest, and a failure shows the values.

Tests are named after the law of the port that they prove (`test_law_04_…`) or after the method whose words they check
(`test_read_…`, `test_apply_…`). They take `opener` and `storage` and nothing else, so that `muniment.testing.guards`
can run them without pytest, on adapters broken on purpose.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import ClassVar, Final, Protocol
from uuid import UUID, uuid4

import pytest

from muniment.core.merkle import extend_edge, pack_edge
from muniment.errors import ClosedError, ConflictError, DuplicateEventError, StorageBusyError, StorageError, UsageError
from muniment.model.event import Deletion, Document, Message, Note, Recall
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
    HideItems,
    IndexRow,
    IndexText,
    ItemFilter,
    KeepRequest,
    KeepVectors,
    MoveRoots,
    NewEvent,
    PendingClean,
    RaiseEpoch,
    SetUses,
    StoredRequest,
    SupersedeItem,
    TextMatches,
    TextRow,
    UnindexText,
    Use,
    VectorRow,
)
from muniment.model.scope import Scope
from muniment.ports.storage import Storage
from muniment.testing.picture import ALL, find_differences, picture_of, picture_of_scope
from muniment.testing.processes import append_and_hang, append_one_by_one
from muniment.testing.rows import (
    INT64_MAX,
    INT64_MIN,
    build_item,
    build_item_of,
    hash_of,
    hash_of_session,
    stored,
)
from muniment.testing.scenes import (
    EVERYTHING,
    OTHER,
    PATIENCE_S,
    REQUEST,
    SCOPE,
    append,
    changes_of_every_kind,
    epoch_of,
    erase_scope,
    erasing,
    fill,
    fresh,
    ledger_of,
    opened,
    read_all,
    run_together,
    say,
    see,
    see_all,
    seqs_of,
    shorten,
    write,
    write_and_fail,
    write_at,
    write_in_parts,
    write_rows,
)

EVERY_ITEM: Final = ItemFilter(hidden=True)
PENDING: Final = PendingClean(b"p" * 16, b"", 7)
SEQS_OUT_OF_RANGE: Final = (-1, 2**32, 2**32 + 1, 2**40)


class Opener(Protocol):
    """Opens the archive of one test; of a persistent adapter, called again, the same archive."""

    def __call__(self, *, busy_timeout_s: float = ...) -> Storage: ...


# --- The suite --------------------------------------------------------------------------------------------------------


class StorageContract:
    """Every law of the port that can be proved without leaving the process."""

    adapter: ClassVar[type[Storage]]
    """The class that is proved, for the guard that wants each one proved."""

    readers_wait: ClassVar[bool] = False
    """Whether a snapshot and a transaction wait for each other instead of going on side by side."""

    @pytest.fixture
    def opener(self) -> Opener:
        raise NotImplementedError(f"{type(self).__name__} says how an archive is opened by a fixture `opener`")

    @pytest.fixture
    def storage(self, opener: Opener) -> Iterator[Storage]:
        storage = opener()
        yield storage
        storage.close()

    # --- 1: Atomic

    def test_law_01_a_transaction_is_there_as_a_whole(self, storage: Storage) -> None:
        message, note = say("hello"), Note(content="a note", key="k")
        changes: list[Change] = [
            AddItems([build_item_of(message, 0), build_item_of(note, 1)]),
            CountUses([Use(0, 1, 5)]),
            KeepRequest(REQUEST),
        ]
        rows = write(storage, SCOPE, message, note, changes=changes, recorded_us=50)
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.read_events(EVERYTHING, limit=ALL) == [stored(row) for row in rows]
            assert snapshot.read_items(EVERY_ITEM, limit=ALL) == [build_item_of(message, 0), build_item_of(note, 1)]
            assert snapshot.find_uses([0, 1]) == {0: Use(0, 1, 5)}
            assert snapshot.find_request(REQUEST.request_hash) == REQUEST
            assert (snapshot.head.next_seq, snapshot.head.recorded_us) == (2, 50)
            assert snapshot.head.edge == pack_edge(extend_edge([], 0, [row.leaf for row in rows]))

    def test_law_01_nothing_is_there_when_the_block_raises(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        before = see_all(storage, SCOPE)
        for error in (RuntimeError(), KeyboardInterrupt(), SystemExit(), DuplicateEventError("x")):
            with pytest.raises(type(error)):
                write_and_fail(
                    storage, SCOPE, say(), Note(content="a plan"), changes=changes_of_every_kind(6), error=error
                )
            assert find_differences(see_all(storage, SCOPE), before) == []

    def test_law_01_nothing_is_there_when_a_change_is_refused(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        before = see_all(storage, SCOPE)
        changes = [AddItems([build_item(6, "message")]), AddItems([build_item(0, "message")])]
        with pytest.raises(StorageError):
            write(storage, SCOPE, say("lost"), changes=changes)
        assert find_differences(see_all(storage, SCOPE), before) == []

    def test_law_01_nothing_is_there_when_an_append_is_refused(self, storage: Storage) -> None:
        (first,) = write(storage, SCOPE, say("first"))
        before = see_all(storage, SCOPE)
        again = Message(id=UUID(bytes=first.event_id), speaker="a", content="again")
        with pytest.raises(DuplicateEventError):
            write_in_parts(storage, SCOPE, [say("lost")], [say("lost too"), again])
        assert find_differences(see_all(storage, SCOPE), before) == []

    def test_law_01_nobody_sees_half_of_a_transaction(self, storage: Storage) -> None:
        half, looked = Event(), Event()

        def write_in_two_steps() -> int:
            with storage.transaction(SCOPE, fresh()) as tx:
                append(tx, say("one"))
                half.set()
                if not self.readers_wait:
                    assert looked.wait(PATIENCE_S)
                append(tx, say("two"))
            return 2

        def look() -> int:
            assert half.wait(PATIENCE_S)
            try:
                return len(read_all(storage, SCOPE))
            finally:
                looked.set()

        _, seen = run_together(write_in_two_steps, look)
        assert seen in ((0, 2) if self.readers_wait else (0,))
        assert len(read_all(storage, SCOPE)) == 2

    def test_law_01_an_error_of_the_block_arrives_as_itself(self, storage: Storage) -> None:
        error = ZeroDivisionError("the caller's own")
        with pytest.raises(ZeroDivisionError) as caught, storage.transaction(SCOPE, fresh()):
            raise error
        assert caught.value is error

    # --- 2: Gap-free

    def test_law_02_seqs_count_from_0_in_every_ledger(self, storage: Storage) -> None:
        for scope in (SCOPE, OTHER):
            assert [row.seq for row in write(storage, scope, say(), say())] == [0, 1]
            assert [row.seq for row in write(storage, scope, say())] == [2]
            assert seqs_of(read_all(storage, scope)) == [0, 1, 2]

    def test_law_02_several_appends_of_one_transaction_follow_each_other(self, storage: Storage) -> None:
        with storage.transaction(SCOPE, fresh()) as tx:
            for number in range(3):
                assert tx.head.next_seq == number
                append(tx, say())
            tx.append([], tx.head.edge)
            assert tx.head.next_seq == 3
        assert seqs_of(read_all(storage, SCOPE)) == [0, 1, 2]

    def test_law_02_a_failed_transaction_uses_none_up(self, storage: Storage) -> None:
        write(storage, SCOPE, say())
        with pytest.raises(RuntimeError):
            write_and_fail(storage, SCOPE, say(), say(), error=RuntimeError())
        assert [row.seq for row in write(storage, SCOPE, say())] == [1]

    def test_law_02_seqs_that_do_not_follow_are_refused(self, storage: Storage) -> None:
        write(storage, SCOPE, say(), say())
        before = see_all(storage, SCOPE)
        for seqs in ([3], [1], [0], [-1], [2, 4], [2, 2], [3, 2]):
            with pytest.raises(UsageError):
                write_at(storage, SCOPE, seqs)
            assert find_differences(see_all(storage, SCOPE), before) == []

    def test_law_02_gap_free_under_threads(self, storage: Storage) -> None:
        def append_some() -> list[tuple[int, bytes]]:
            rows = [write(storage, SCOPE, *[say() for _ in range(1 + number % 3)]) for number in range(10)]
            return [(row.seq, row.event_id) for part in rows for row in part]

        answers = run_together(*[append_some] * 8)
        events = read_all(storage, SCOPE)
        assert seqs_of(events) == list(range(8 * 19))
        assert sorted(pair for answer in answers for pair in answer) == [(row.seq, row.event_id) for row in events]
        with storage.snapshot(SCOPE) as snapshot:
            assert opened(snapshot).head.edge == pack_edge(extend_edge([], 0, [row.leaf for row in events]))

    def test_law_02_scopes_count_apart_under_threads(self, storage: Storage) -> None:
        scopes = [Scope("acme", f"user-{number}") for number in range(4)]

        def append_some(scope: Scope) -> list[int]:
            return [row.seq for _ in range(10) for row in write(storage, scope, say())]

        jobs = [lambda scope=scope: append_some(scope) for scope in scopes]
        assert run_together(*jobs) == [list(range(10))] * 4

    # --- 3: No late arrivals

    def test_law_03_no_late_arrivals_while_many_commit(self, storage: Storage) -> None:
        """A reader that follows the ledger finds the very next seqs at every look, and never one that it has passed."""
        done = [Event() for _ in range(4)]

        def append_some(finished: Event) -> int:
            try:
                for number in range(25):
                    write(storage, SCOPE, *[say() for _ in range(1 + number % 3)])
            finally:
                finished.set()
            return 0

        def follow() -> int:
            passed = -1
            while True:
                last_look = all(event.is_set() for event in done)
                with storage.snapshot(SCOPE) as snapshot:
                    if snapshot is not None:
                        found = seqs_of(snapshot.read_events(EventFilter(first=passed + 1), limit=ALL))
                        assert found == list(range(passed + 1, passed + 1 + len(found))), "a seq was passed over"
                        assert snapshot.count_events(EventFilter(last=passed)) == passed + 1, "a seq came late"
                        passed += len(found)
                        assert snapshot.head.next_seq == passed + 1, "the head and the events disagree"
                if last_look:
                    return passed

        jobs: list[Callable[[], int]] = [lambda event=event: append_some(event) for event in done]
        answers = run_together(follow, follow, *jobs)
        total = len(read_all(storage, SCOPE))
        assert answers[:2] == [total - 1, total - 1]
        assert total == 4 * 49

    # --- 4: Once

    def test_law_04_an_id_twice_in_one_batch(self, storage: Storage) -> None:
        message = say()
        with pytest.raises(DuplicateEventError) as caught:
            write(storage, SCOPE, say(), message, message)
        assert caught.value.event_id == str(message.id)
        assert read_all(storage, SCOPE) == []

    def test_law_04_an_id_twice_in_one_transaction(self, storage: Storage) -> None:
        message = say()
        with pytest.raises(DuplicateEventError):
            write_in_parts(storage, SCOPE, [message], [message])
        assert read_all(storage, SCOPE) == []

    def test_law_04_an_id_twice_across_transactions(self, storage: Storage) -> None:
        message = say()
        rows = write(storage, SCOPE, message, say())
        for again in (message, message.model_copy(update={"content": "other words"})):
            with pytest.raises(DuplicateEventError) as caught:
                write(storage, SCOPE, say(), again)
            assert caught.value.event_id == str(message.id)
            assert read_all(storage, SCOPE) == [stored(row) for row in rows]

    def test_law_04_nothing_of_a_refused_batch_stays_when_the_error_is_caught(self, storage: Storage) -> None:
        message, lost = say(), say("lost")
        write(storage, SCOPE, message)
        with storage.transaction(SCOPE, fresh()) as tx:
            with pytest.raises(DuplicateEventError):
                append(tx, lost, message)
            assert tx.find_events([lost.id.bytes]) == {}
            assert tx.head.next_seq == 1
        assert [row.event_id for row in read_all(storage, SCOPE)] == [message.id.bytes]
        assert [row.seq for row in write(storage, SCOPE, lost)] == [1]

    def test_law_04_an_id_may_be_in_two_ledgers(self, storage: Storage) -> None:
        message = say()
        write(storage, SCOPE, message)
        write(storage, OTHER, message)
        assert [row.event_id for row in read_all(storage, OTHER)] == [message.id.bytes]

    def test_law_04_one_of_many_threads_adds_it(self, storage: Storage) -> None:
        message = say()

        def add() -> bool:
            try:
                write(storage, SCOPE, message)
            except DuplicateEventError:
                return False
            return True

        assert sum(run_together(*[add] * 6)) == 1
        assert len(read_all(storage, SCOPE)) == 1

    # --- 5: Nothing is changed

    def test_law_05_events_are_read_back_as_they_were_written(self, storage: Storage) -> None:
        bodies = [b"", b"\x00", b"{}", b'"', bytes(range(256)) * 8, "日本\U0001f9e0".encode(), b"x" * 3_000_000]
        instants = [INT64_MIN + 1, -1, 0, 1, 2**32, 2**53 + 1, INT64_MAX]
        sessions = [None, INT64_MIN, -1, 0, 1, 2**53 + 1, INT64_MAX]
        rows = [
            NewEvent(
                seq=seq,
                event_id=bytes([seq]) * 16,
                kind=1 + seq % 6,
                recorded_us=instant,
                digest=bytes([255 - seq]) * 32,
                links=b"" if seq % 2 else bytes(range(200)) * 100,
                leaf=bytes([128 + seq]) * 32,
                salt=bytes([seq]) * 16,
                body=body,
                session_hash=session,
            )
            for seq, (body, instant, session) in enumerate(zip(bodies, instants, sessions, strict=True))
        ]
        write_rows(storage, SCOPE, rows)
        assert shorten(read_all(storage, SCOPE)) == shorten([stored(row) for row in rows])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            for row in rows:
                found = snapshot.find_events([row.event_id])
                assert list(found) == [row.event_id]
                assert shorten(found.values()) == shorten([stored(row)])
                assert snapshot.find_seq_at(row.recorded_us) == row.seq
                if row.session_hash is not None:
                    where = EventFilter(session_hash=row.session_hash)
                    assert shorten(snapshot.read_events(where, limit=ALL)) == shorten([stored(row)])
            assert snapshot.head.recorded_us == INT64_MAX

    def test_law_05_no_later_act_changes_one(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        before = read_all(storage, SCOPE)
        write(storage, SCOPE, say(), Note(content="a plan"), changes=changes_of_every_kind(6))
        write(storage, SCOPE, say(), changes=[DropProjections(), AddItems([build_item(0, "message")])])
        assert read_all(storage, SCOPE)[: len(before)] == before

    # --- 6: Together

    def test_law_06_a_failed_transaction_moves_no_projection(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        before = see(storage, SCOPE)
        for changes in (
            changes_of_every_kind(6),
            [DropProjections()],
            [EraseEvents([(1, bytes(16))])],
            [EraseLedger(5)],
        ):
            with pytest.raises(RuntimeError):
                write_and_fail(storage, SCOPE, say(), say(), changes=changes, error=RuntimeError())
            assert find_differences(see(storage, SCOPE), before) == []

    def test_law_06_a_transaction_sees_its_own_writes(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        with storage.transaction(SCOPE, fresh()) as tx:
            row, _ = append(tx, say("new"), Note(content="a plan", key="plan"), recorded_us=60)
            assert tx.find_events([row.event_id]) == {row.event_id: stored(row)}
            assert tx.count_events(EVERYTHING) == 8
            assert tx.find_seq_at(60) == 7
            tx.apply(changes_of_every_kind(6))
            assert {seq: item.deleted_seq for seq, item in tx.find_items([0, 2, 6]).items()} == {0: 5, 2: 7, 6: 7}
            assert [item.seq for item in tx.find_live_by_key(hash_of("key plan"))] == [7]
            assert tx.find_uses([0]) == {0: Use(0, 5, 99)}
            assert tx.find_request(b"q" * 32) is not None
            seen = picture_of(tx)
        with storage.snapshot(SCOPE) as snapshot:
            assert find_differences(picture_of(opened(snapshot)), seen) == []

    def test_law_06_items_and_events_are_seen_together(self, storage: Storage) -> None:
        written = Event()

        def add() -> int:
            try:
                for seq in range(30):
                    message = say()
                    write(storage, SCOPE, message, changes=[AddItems([build_item_of(message, seq)])])
            finally:
                written.set()
            return 0

        def look() -> int:
            while True:
                last_look = written.is_set()
                with storage.snapshot(SCOPE) as snapshot:
                    seen = 0 if snapshot is None else snapshot.count_events(EVERYTHING)
                    assert seen == (0 if snapshot is None else snapshot.count_items(EVERY_ITEM))
                if last_look:
                    return seen

        assert run_together(add, look)[1] == 30

    # --- 7: Apart

    def test_law_07_scopes_are_told_apart_by_equality_only(self, storage: Storage) -> None:
        names = ["a", "ab", "a_b", "a%b", "A", "a/b", "a:b"]
        scopes = [Scope(tenant, subject) for tenant in names for subject in (*names, None)]
        scopes += [Scope("a/a", "b"), Scope("a:a", "b"), Scope("a", "None"), Scope("a", "é"), Scope("a", "e\u0301")]
        scopes += [Scope("a", "a "), Scope("a", "a\n"), Scope("a", "%"), Scope("a", "_"), Scope("a", "*")]
        written = {scope: write(storage, scope, say(repr(scope)))[0] for scope in scopes}
        every_id = [row.event_id for row in written.values()]
        for scope, row in written.items():
            with storage.snapshot(scope) as snapshot:
                snapshot = opened(snapshot)
                assert snapshot.read_events(EVERYTHING, limit=ALL) == [stored(row)]
                assert list(snapshot.find_events(every_id)) == [row.event_id]
        assert [Scope(row.tenant, row.subject) for row in storage.read_scopes(limit=ALL)] == scopes
        assert len({row.ledger_id for row in storage.read_scopes(limit=ALL)}) == len(scopes)
        tenants = {scope.tenant for scope in scopes}
        assert storage.find_tenants(limit=ALL) == sorted(tenants)
        for tenant in tenants:
            of_tenant = [scope for scope in scopes if scope.tenant == tenant]
            assert [row.subject for row in storage.read_scopes(tenant=tenant, limit=ALL)] == [
                scope.subject for scope in of_tenant
            ]

    def test_law_07_names_that_nobody_stored_find_nothing(self, storage: Storage) -> None:
        write(storage, Scope("acme", "ab"), say())
        for scope in (
            Scope("acme", "a"),
            Scope("acme", "abc"),
            Scope("acme", "a%"),
            Scope("acme", "AB"),
            Scope("%", "ab"),
        ):
            assert read_all(storage, scope) == []
        assert read_all(storage, Scope("acme", None)) == []
        assert storage.read_scopes(tenant="acm", limit=ALL) == storage.read_scopes(tenant="%", limit=ALL) == []

    def test_law_07_changes_stay_in_their_scope(self, storage: Storage) -> None:
        scopes = [Scope("acme", "a"), Scope("acme", "b"), Scope("acme", None)]
        for scope in scopes:
            fill(storage, scope)
        for scope in scopes:
            others = [other for other in scopes if other != scope]
            before = see(storage, *others)
            write(storage, scope, say(), Note(content="a plan"), changes=changes_of_every_kind(6))
            assert find_differences(see(storage, *others), before) == []
            write(storage, scope, changes=[DropProjections()])
            assert find_differences(see(storage, *others), before) == []

    def test_law_07_numbers_out_of_range_reach_no_neighbour(self, storage: Storage) -> None:
        scopes = [Scope("acme", "a"), Scope("acme", "b"), Scope("acme", "c")]
        for scope in scopes:
            fill(storage, scope)
        before = see(storage, *scopes)
        with storage.snapshot(scopes[1]) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.find_items(SEQS_OUT_OF_RANGE) == snapshot.find_uses(SEQS_OUT_OF_RANGE) == {}
            assert snapshot.find_by_seqs(SEQS_OUT_OF_RANGE) == {}
            for first in (6, *SEQS_OUT_OF_RANGE[1:]):
                assert snapshot.read_index_rows(first, model_no=1, limit=ALL) == []
                assert snapshot.read_unembedded(first, model_no=2, limit=ALL) == []
                assert snapshot.read_deaths(first) == []
            assert [row.seq for row in snapshot.read_index_rows(-5, model_no=1, limit=ALL)] == [0, 1, 2, 3]
            assert seqs_of(snapshot.read_events(EventFilter(first=-5, last=2**40), limit=ALL)) == list(range(6))
            assert snapshot.count_events(EventFilter(first=-5, last=2**40)) == 6
            assert snapshot.count_items(ItemFilter(first=-5, last=2**40, at_seq=2**40, hidden=True)) == 4
            for first, last in [(2**32, None), (2**32, 2**40), (-(2**32), -1), (6, None)]:
                assert snapshot.read_events(EventFilter(first=first, last=last), limit=ALL) == []
                assert snapshot.read_items(ItemFilter(first=first, last=last, hidden=True), limit=ALL) == []
                assert snapshot.count_items(ItemFilter(first=first, last=last, hidden=True)) == 0
        for seq in SEQS_OUT_OF_RANGE:
            for change in (HideItems([seq], 5), SupersedeItem(seq, 5)):
                with suppress(UsageError):
                    write(storage, scopes[1], changes=[change])
        assert find_differences(see(storage, *scopes), before) == []

    # --- 8: One view

    def test_law_08_a_snapshot_does_not_change(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        looked, written = Event(), Event()

        def look() -> None:
            with storage.snapshot(SCOPE) as snapshot:
                snapshot = opened(snapshot)
                before = picture_of(snapshot, request_hashes=[b"q" * 32])
                looked.set()
                if not self.readers_wait:
                    assert written.wait(PATIENCE_S)
                assert find_differences(picture_of(snapshot, request_hashes=[b"q" * 32]), before) == []

        def change() -> None:
            assert looked.wait(PATIENCE_S)
            try:
                write(storage, SCOPE, say(), Note(content="a plan"), changes=changes_of_every_kind(6))
                write(storage, SCOPE, say(), changes=[DropProjections(), EraseEvents([(1, bytes(16))])])
            finally:
                written.set()

        run_together(look, change)
        assert len(read_all(storage, SCOPE)) == 9

    def test_law_08_a_snapshot_is_of_one_moment_from_its_start(self, storage: Storage) -> None:
        """Also if nothing was read before the change: the moment is when the block began."""
        fill(storage, SCOPE)
        began, written = Event(), Event()

        def look() -> int:
            with storage.snapshot(SCOPE) as snapshot:
                began.set()
                if not self.readers_wait:
                    assert written.wait(PATIENCE_S)
                snapshot = opened(snapshot)
                assert snapshot.count_events(EVERYTHING) == snapshot.head.next_seq
                return snapshot.head.next_seq

        def change() -> int:
            assert began.wait(PATIENCE_S)
            try:
                write(storage, SCOPE, say())
            finally:
                written.set()
            return 0

        assert run_together(look, change)[0] == 6

    # --- 9: Lazy

    def test_law_09_reading_creates_nothing(self, storage: Storage) -> None:
        before = see_all(storage)
        with storage.snapshot(SCOPE) as snapshot:
            assert snapshot is None
        assert storage.find_tenants(limit=ALL) == []
        assert storage.read_scopes(limit=ALL) == storage.read_scopes(tenant="acme", limit=ALL) == []
        assert storage.stats()._replace(size_bytes=0) == (0, 0, 0, 0, 0, 0)
        with storage.snapshot(SCOPE) as snapshot:
            assert snapshot is None
        assert find_differences(see_all(storage), before) == []

    def test_law_09_a_failed_transaction_creates_nothing(self, storage: Storage) -> None:
        with pytest.raises(RuntimeError):
            write_and_fail(storage, SCOPE, say(), error=RuntimeError())
        with storage.snapshot(SCOPE) as snapshot:
            assert snapshot is None
        assert (storage.find_tenants(limit=ALL), storage.read_scopes(limit=ALL)) == ([], [])
        assert storage.stats()._replace(size_bytes=0) == (0, 0, 0, 0, 0, 0)

    def test_law_09_the_first_committed_transaction_begins_the_ledger(self, storage: Storage) -> None:
        ledgers = [fresh(), fresh()]
        for ledger in ledgers:
            with storage.transaction(SCOPE, ledger) as tx:
                assert (tx.head.ledger_id, tx.head.salt) == ledgers[0]
                assert (tx.head.next_seq, tx.head.edge, tx.head.epoch) == (0, b"", 0)
                assert (tx.head.recorded_us, tx.head.erased_us) == (INT64_MIN, None)
        with storage.snapshot(SCOPE) as snapshot:
            assert opened(snapshot).head.ledger_id == ledgers[0].ledger_id
            assert opened(snapshot).find_seq_at(INT64_MAX) == -1
        assert [row[1:6] for row in storage.read_scopes(limit=ALL)] == [
            ("acme", "user-42", ledgers[0].ledger_id, 0, INT64_MIN)
        ]

    def test_law_09_threads_that_begin_a_ledger_begin_one(self, storage: Storage) -> None:
        def begin() -> bytes:
            with storage.transaction(SCOPE, fresh()) as tx:
                append(tx, say())
                return tx.head.ledger_id

        assert len(set(run_together(*[begin] * 4))) == 1
        assert [row.next_seq for row in storage.read_scopes(limit=ALL)] == [4]

    # --- 10: Durable

    def test_law_10_what_returned_is_there_whatever_the_durability(self, storage: Storage) -> None:
        rows = [write(storage, SCOPE, say(), durable=number % 2 == 0)[0] for number in range(4)]
        assert read_all(storage, SCOPE) == [stored(row) for row in rows]

    # --- 11: Closed is closed

    def test_law_11_every_call_after_close_is_refused(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        storage.close()
        calls: list[Callable[[], object]] = [
            lambda: storage.transaction(SCOPE, fresh()).__enter__(),
            lambda: storage.snapshot(SCOPE).__enter__(),
            lambda: storage.snapshot(OTHER).__enter__(),
            lambda: storage.snapshot(b"i" * 16).__enter__(),
            lambda: storage.find_tenants(limit=1),
            lambda: storage.read_scopes(limit=1),
            lambda: storage.read_scopes(tenant="acme", limit=1),
            lambda: storage.read_scopes(erased=True, limit=1),
            lambda: storage.drop_tenant("no such", PENDING),
            lambda: storage.find_pending(),
            lambda: storage.clean(wait_s=0),
            lambda: storage.find_models(),
            lambda: storage.keep_model("model", 2, b"pp"),
            lambda: storage.find_settings(),
            lambda: storage.keep_setting("name", "value"),
            lambda: storage.begin_text("1"),
            lambda: storage.finish_text("1"),
            lambda: storage.drop_text(),
            lambda: storage.find_text("acme", ["term"], version="1"),
            lambda: storage.stats(),
            lambda: storage.check(),
        ]

        def call_all() -> int:
            for call in calls:
                with pytest.raises(ClosedError):
                    call()
            return len(calls)

        call_all()
        run_together(call_all)

    # --- 12: Typed

    def test_law_12_a_refused_row_is_a_storage_error_with_a_cause(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        write(storage, OTHER, changes=[AwaitClean(PENDING)])
        changes: list[Change] = [AddItems([build_item(3, "message")]), KeepRequest(REQUEST), AwaitClean(PENDING)]
        for change in changes:
            with pytest.raises(StorageError) as caught:
                write(storage, SCOPE, changes=[change])
            assert caught.value.__cause__ is not None
            assert not isinstance(caught.value.__cause__, StorageError)

    def test_law_12_it_is_typed_inside_the_block_already(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        errors: list[BaseException] = []
        with suppress(StorageError), storage.transaction(SCOPE, fresh()) as tx:
            try:
                tx.apply([AddItems([build_item(0, "message")])])
            except BaseException as error:
                errors.append(error)
                raise
        assert [isinstance(error, StorageError) for error in errors] == [True]

    # --- 13: Gone

    def test_law_13_an_erased_content_leaves_its_envelope(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        before = read_all(storage, SCOPE)
        targets = erasing(before, 0, 1, 4)
        with storage.transaction(SCOPE, fresh()) as tx:
            epoch = tx.head.epoch
            tx.apply([targets])
            assert tx.head.epoch > epoch
            inside = picture_of(tx)
        gone = [0, 1, 4]
        after = [row._replace(salt=None, body=None) if row.seq in gone else row for row in before]
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert find_differences(picture_of(snapshot), inside) == []
            assert snapshot.head.epoch > epoch
            assert snapshot.read_events(EVERYTHING, limit=ALL) == after
            assert dict(snapshot.find_events([row.event_id for row in after])) == {row.event_id: row for row in after}
            assert snapshot.count_events(EVERYTHING) == 6
            assert seqs_of(snapshot.read_events(EventFilter(kinds=[1, 4]), limit=ALL)) == [0, 4]
            for session in ("s1", "s2"):
                where = EventFilter(session_hash=hash_of_session(session))
                assert snapshot.read_events(where, limit=ALL) == []
                assert snapshot.count_events(where) == 0
            assert [row.seq for row in snapshot.read_items(EVERY_ITEM, limit=ALL)] == [2, 3]
            assert snapshot.find_items(gone) == snapshot.find_uses(gone) == {}
            assert [row.seq for row in snapshot.find_by_key(hash_of("key plan"))] == [3]
            assert snapshot.find_request(REQUEST.request_hash) == REQUEST._replace(fingerprint=b"")
        stats = storage.stats()
        assert (stats.events, stats.contents, stats.items) == (6, 3, 2)

    def test_law_13_an_erasure_touches_nothing_else(self, storage: Storage) -> None:
        kept = REQUEST._replace(request_hash=b"q" * 32, first_seq=2, num_events=4)
        for scope in (SCOPE, OTHER):
            fill(storage, scope)
            write(storage, scope, changes=[KeepRequest(kept)])
        other = see(storage, OTHER)
        write(storage, SCOPE, changes=[erasing(read_all(storage, SCOPE), 1)])
        assert find_differences(see(storage, OTHER), other) == []
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.find_request(kept.request_hash) == kept
            assert snapshot.find_uses([0]) == {0: Use(0, 1, 25)}
            assert [row.seq for row in snapshot.read_items(EVERY_ITEM, limit=ALL)] == [0, 2, 3]
            assert [row.seq for row in snapshot.read_events(EVERYTHING, limit=ALL) if row.body is None] == [1]

    def test_law_13_an_erased_vector_is_gone(self, storage: Storage) -> None:
        """Also for an item that is built anew at its seq."""
        fill(storage, SCOPE)
        other = storage.keep_model("other", 2, b"pp").model_no
        write(storage, SCOPE, changes=[KeepVectors([VectorRow(seq, other, b"oo") for seq in (0, 2)])])
        write(storage, SCOPE, changes=[erasing(read_all(storage, SCOPE), 0, 3)])
        write(storage, SCOPE, changes=[AddItems([build_item(0), build_item(3)])])
        with storage.snapshot(SCOPE) as snapshot:
            rows = opened(snapshot).read_index_rows(0, model_no=1, limit=ALL)
            assert {row.seq: row.codes for row in rows} == {0: None, 1: b"v1", 2: None, 3: None}
            assert opened(snapshot).read_unembedded(0, model_no=other, limit=ALL) == [0, 1, 3]

    def test_law_13_erasing_again_destroys_no_more(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        targets = erasing(read_all(storage, SCOPE), 0, 2)
        write(storage, SCOPE, changes=[targets])
        before = read_all(storage, SCOPE)
        write(storage, SCOPE, changes=[targets, EraseEvents([])])
        assert read_all(storage, SCOPE) == before
        assert storage.stats().contents == 4

    def test_law_13_an_event_can_be_appended_where_one_was_erased(self, storage: Storage) -> None:
        message = say()
        (row,) = write(storage, SCOPE, message)
        write(storage, SCOPE, changes=[EraseEvents([(0, row.event_id)])])
        with pytest.raises(DuplicateEventError):
            write(storage, SCOPE, message)
        assert [row.seq for row in write(storage, SCOPE, say())] == [1]

    def test_law_13_an_erased_ledger_loses_its_name_and_keeps_its_envelopes(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        fill(storage, OTHER)
        before, other = read_all(storage, SCOPE), see(storage, OTHER)
        ledger = ledger_of(storage, SCOPE)
        erasure = erase_scope(storage, SCOPE, at_us=70)
        assert find_differences(see(storage, OTHER), other) == []
        with storage.snapshot(SCOPE) as snapshot:
            assert snapshot is None
        with storage.snapshot(ledger) as snapshot:
            snapshot = opened(snapshot)
            assert (snapshot.head.erased_us, snapshot.head.salt, snapshot.head.next_seq) == (70, b"", 7)
            assert snapshot.head.epoch > 0
            left = [row._replace(salt=None, body=None) for row in before]
            assert snapshot.read_events(EVERYTHING, limit=ALL) == [*left, stored(erasure)]
            assert snapshot.read_items(EVERY_ITEM, limit=ALL) == []
            assert snapshot.find_uses(range(8)) == {}
            assert snapshot.find_request(REQUEST.request_hash) is None
        assert [row.subject for row in storage.read_scopes(limit=ALL)] == [OTHER.subject]
        (row,) = storage.read_scopes(erased=True, limit=ALL)
        assert row[1:] == ("acme", None, ledger, 7, erasure.recorded_us, 70)
        stats = storage.stats()
        assert (stats.tenants, stats.scopes, stats.events, stats.contents, stats.items) == (1, 1, 13, 7, 4)

    def test_law_13_a_name_can_be_used_again_for_a_new_ledger(self, storage: Storage) -> None:
        ledgers: list[bytes] = []
        for number in range(3):
            message = say(str(number))
            assert [row.seq for row in write(storage, SCOPE, message)] == [0]
            ledgers.append(ledger_of(storage, SCOPE))
            erase_scope(storage, SCOPE, at_us=number)
            assert read_all(storage, SCOPE) == []
        erased = storage.read_scopes(erased=True, limit=ALL)
        assert [row.ledger_id for row in erased] == ledgers
        assert len({row.scope_no for row in erased}) == 3
        assert storage.read_scopes(erased=True, after=erased[0].scope_no, limit=1) == erased[1:2]
        assert storage.read_scopes(erased=True, tenant="acme", limit=2) == erased[:2]
        assert storage.read_scopes(erased=True, tenant="acm", limit=2) == []

    def test_law_13_a_snapshot_from_before_an_erasure_keeps_its_view(self, storage: Storage) -> None:
        """Law 8 holds here too, and it is why a clean step has to wait for readers."""
        fill(storage, SCOPE)
        looked, written = Event(), Event()

        def look() -> None:
            with storage.snapshot(SCOPE) as snapshot:
                before = picture_of(opened(snapshot))
                looked.set()
                if not self.readers_wait:
                    assert written.wait(PATIENCE_S)
                assert find_differences(picture_of(opened(snapshot)), before) == []

        def erase() -> None:
            assert looked.wait(PATIENCE_S)
            try:
                erase_scope(storage, SCOPE, at_us=1)
            finally:
                written.set()

        run_together(look, erase)
        assert read_all(storage, SCOPE) == []

    def test_law_13_an_erasure_waits_for_its_clean_step(self, storage: Storage) -> None:
        assert storage.find_pending() == []
        fill(storage, SCOPE)
        fill(storage, OTHER)
        ledger = ledger_of(storage, SCOPE)
        pending = [PendingClean(bytes([number]) * 16, ledger, at_us) for number, at_us in [(3, 10), (1, 30), (2, 20)]]
        rows = read_all(storage, SCOPE)
        write(storage, SCOPE, changes=[erasing(rows, 0), AwaitClean(pending[0])])
        with pytest.raises(RuntimeError):
            write_and_fail(storage, SCOPE, changes=[AwaitClean(pending[1])], error=RuntimeError())
        write(storage, SCOPE, changes=[erasing(rows, 1), AwaitClean(pending[1]), AwaitClean(pending[2])])
        oldest_first = [pending[0], pending[2], pending[1]]
        assert storage.find_pending() == oldest_first
        before = see(storage, SCOPE, OTHER)
        outcome = storage.clean(markers=[b"no such bytes"], wait_s=PATIENCE_S)
        assert (list(outcome.completed), outcome.blocked) == (oldest_first, None)
        assert (outcome.residue_hits, outcome.orphan_rows, outcome.free_pages) == (0, 0, 0)
        assert storage.find_pending() == []
        assert find_differences(see(storage, SCOPE, OTHER), before) == []
        assert list(storage.clean(wait_s=PATIENCE_S).completed) == []

    # --- Transactions

    def test_transaction_keeps_out_what_rewrites_the_archive(self, storage: Storage) -> None:
        with storage.transaction(SCOPE, fresh()) as tx:
            append(tx, say())
            with pytest.raises(UsageError):
                storage.clean(wait_s=0)
            with pytest.raises(UsageError):
                storage.drop_tenant("acme", PENDING)
        assert len(read_all(storage, SCOPE)) == 1

    def test_transaction_inside_another_is_refused(self, storage: Storage) -> None:
        with storage.transaction(SCOPE, fresh()) as tx:
            append(tx, say())
            for scope in (SCOPE, OTHER):
                with pytest.raises(UsageError), storage.transaction(scope, fresh()):
                    pytest.fail("the inner block was entered")
            append(tx, say())
        assert seqs_of(read_all(storage, SCOPE)) == [0, 1]
        assert read_all(storage, OTHER) == []

    def test_transaction_waits_no_longer_than_its_timeout(self, opener: Opener) -> None:
        storage = opener(busy_timeout_s=0.05)

        def write_meanwhile() -> type[Exception] | None:
            try:
                write(storage, SCOPE, say())
            except StorageBusyError as error:
                return type(error)
            return None

        with storage.transaction(SCOPE, fresh()) as tx:
            append(tx, say())
            assert run_together(write_meanwhile) == [StorageBusyError]
        write(storage, SCOPE, say())
        assert seqs_of(read_all(storage, SCOPE)) == [0, 1]
        storage.close()

    def test_name_and_location_say_what_it_is(self, storage: Storage) -> None:
        assert isinstance(storage, Storage)
        assert storage.name == self.adapter.name
        assert storage.location

    # --- Reading events

    def test_read_events_by_seq(self, storage: Storage) -> None:
        rows = [stored(row) for row in write(storage, SCOPE, *[say(str(number)) for number in range(6)])]
        expected: list[tuple[EventFilter, list[int]]] = [
            (EventFilter(), [0, 1, 2, 3, 4, 5]),
            (EventFilter(first=2), [2, 3, 4, 5]),
            (EventFilter(last=2), [0, 1, 2]),
            (EventFilter(first=2, last=4), [2, 3, 4]),
            (EventFilter(first=3, last=3), [3]),
            (EventFilter(first=4, last=3), []),
            (EventFilter(last=-1), []),
            (EventFilter(first=6), []),
        ]
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            for where, seqs in expected:
                found = [rows[seq] for seq in seqs]
                assert snapshot.read_events(where, limit=ALL) == found
                assert snapshot.read_events(where, limit=ALL, newest_first=True) == found[::-1]
                assert snapshot.count_events(where) == len(found)
                for limit in (0, 1, 2, 3):
                    assert snapshot.read_events(where, limit=limit) == found[:limit]
                    assert snapshot.read_events(where, limit=limit, newest_first=True) == found[::-1][:limit]

    def test_read_events_by_kind_and_session(self, storage: Storage) -> None:
        item = uuid4()
        write(
            storage,
            SCOPE,
            say(session="s1"),
            Document(name="a", text="b", session_id="s2"),
            say(session="s1"),
            Note(content="n"),
            Recall(query="q", session_id="s1"),
            Deletion(targets=(item,), reason="r", session_id="s2"),
            say(),
        )
        first, second, unknown = hash_of_session("s1"), hash_of_session("s2"), hash_of_session("s")
        expected: list[tuple[EventFilter, list[int]]] = [
            (EventFilter(kinds=[1]), [0, 2, 6]),
            (EventFilter(kinds={2, 5}), [1, 5]),
            (EventFilter(kinds=(1, 1, 3)), [0, 2, 3, 6]),
            (EventFilter(kinds=[6]), []),
            (EventFilter(kinds=[]), []),
            (EventFilter(session_hash=first), [0, 2, 4]),
            (EventFilter(session_hash=second), [1, 5]),
            (EventFilter(session_hash=unknown), []),
            (EventFilter(session_hash=first, kinds=[1]), [0, 2]),
            (EventFilter(session_hash=first, kinds=[]), []),
            (EventFilter(session_hash=first, first=1), [2, 4]),
            (EventFilter(session_hash=first, first=1, last=3), [2]),
            (EventFilter(session_hash=first, first=1, kinds=[4]), [4]),
        ]
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            for where, seqs in expected:
                assert seqs_of(snapshot.read_events(where, limit=ALL)) == seqs
                assert seqs_of(snapshot.read_events(where, limit=2)) == seqs[:2]
                assert seqs_of(snapshot.read_events(where, limit=2, newest_first=True)) == seqs[::-1][:2]
                assert snapshot.count_events(where) == len(seqs)

    def test_read_events_by_id(self, storage: Storage) -> None:
        first, second = write(storage, SCOPE, say(), say())
        (elsewhere,) = write(storage, OTHER, say())
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            asked = [second.event_id, uuid4().bytes, elsewhere.event_id, first.event_id, first.event_id]
            assert dict(snapshot.find_events(asked)) == {
                first.event_id: stored(first),
                second.event_id: stored(second),
            }
            assert snapshot.find_events([]) == {}

    def test_read_events_by_their_seqs(self, storage: Storage) -> None:
        rows = [stored(row) for row in write(storage, SCOPE, say(), say(), say())]
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert dict(snapshot.find_by_seqs([2, 0, 0, 3, 7])) == {0: rows[0], 2: rows[2]}
            assert snapshot.find_by_seqs([]) == {}

    def test_read_nothing_beyond_the_head(self, storage: Storage) -> None:
        scopes = [SCOPE, OTHER, Scope("acme", None)]
        for scope in scopes:
            fill(storage, scope)
        for scope in scopes:
            with storage.snapshot(scope) as snapshot:
                assert opened(snapshot).count_beyond_head() == 0
        with storage.transaction(SCOPE, fresh()) as tx:
            append(tx, say())
            assert tx.count_beyond_head() == 0

    def test_read_seq_at_an_instant(self, storage: Storage) -> None:
        for instant in (-5, 10, 10, 10, 30):
            write(storage, SCOPE, say(), recorded_us=instant)
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            instants = [INT64_MIN, -6, -5, 0, 9, 10, 11, 29, 30, INT64_MAX]
            assert [snapshot.find_seq_at(instant) for instant in instants] == [-1, -1, 0, 0, 0, 3, 3, 3, 4, 4]

    def test_read_a_ledger_by_its_id(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        write(storage, OTHER, say())
        with storage.snapshot(SCOPE) as snapshot:
            by_name = picture_of(opened(snapshot))
        with storage.snapshot(ledger_of(storage, SCOPE)) as snapshot:
            assert find_differences(picture_of(opened(snapshot)), by_name) == []
        for ledger_id in (b"n" * 16, b"", b"a", SCOPE.tenant.encode()):
            with storage.snapshot(ledger_id) as snapshot:
                assert snapshot is None

    # --- Reading items

    def test_read_items_that_need_not_be_kept(self, storage: Storage) -> None:
        rows = [build_item(seq, retain_us=retain_us) for seq, retain_us in enumerate([None, 10, 20, 20, INT64_MAX, -5])]
        write(storage, SCOPE, *[say() for _ in rows], changes=[AddItems(rows), HideItems([2], 4), SupersedeItem(1, 3)])
        expected: list[tuple[ItemFilter, list[int]]] = [
            (ItemFilter(retained_until_us=INT64_MIN), []),
            (ItemFilter(retained_until_us=-5), [5]),
            (ItemFilter(retained_until_us=19), [5]),
            (ItemFilter(retained_until_us=20), [3, 5]),
            (ItemFilter(retained_until_us=20, hidden=True), [1, 2, 3, 5]),
            (ItemFilter(retained_until_us=20, hidden=True, kinds=[1]), []),
            (ItemFilter(retained_until_us=20, hidden=True, first=2, last=3), [2, 3]),
            (ItemFilter(retained_until_us=20, at_seq=3), [2, 3]),
            (ItemFilter(retained_until_us=INT64_MAX), [3, 4, 5]),
        ]
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            for where, seqs in expected:
                assert [row.seq for row in snapshot.read_items(where, limit=ALL)] == seqs
                assert [row.seq for row in snapshot.read_items(where, limit=1)] == seqs[:1]
                assert snapshot.count_items(where) == len(seqs)
            assert [row.retain_us for row in snapshot.read_items(EVERY_ITEM, limit=ALL)] == [
                row.retain_us for row in rows
            ]

    def test_read_every_version_of_a_key(self, storage: Storage) -> None:
        rows = [build_item(seq, key="k") for seq in range(4)]
        changes: list[Change] = [AddItems([*rows, build_item(4, key="other")]), SupersedeItem(0, 1)]
        write(storage, SCOPE, *[say() for _ in range(5)], changes=[*changes, HideItems([1, 3], 4)])
        write(storage, OTHER, say(), changes=[AddItems([build_item(0, key="k")])])
        with storage.snapshot(SCOPE) as snapshot:
            found = opened(snapshot).find_by_key(hash_of("key k"))
            assert [(row.seq, row.deleted_seq, row.superseded_seq) for row in found] == [
                (0, None, 1),
                (1, 4, None),
                (2, None, None),
                (3, 4, None),
            ]
            assert opened(snapshot).find_by_key(hash_of("key nobody's")) == []

    def test_read_items_as_they_stood(self, storage: Storage) -> None:
        """Item 0 stays, 1 is deleted at 4, 2 superseded by 3, 3 deleted at 6, 5 is new at 5."""
        rows = [build_item(seq) for seq in (0, 1, 2, 3, 5)]
        write(
            storage,
            SCOPE,
            *[say() for _ in range(7)],
            changes=[AddItems(rows), SupersedeItem(2, 3), HideItems([1], 4), HideItems([3], 6)],
        )
        expected = {
            None: [0, 5],
            -1: [],
            0: [0],
            1: [0, 1],
            2: [0, 1, 2],
            3: [0, 1, 3],
            4: [0, 3],
            5: [0, 3, 5],
            6: [0, 5],
            9: [0, 5],
        }
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            for at_seq, seqs in expected.items():
                where = ItemFilter(at_seq=at_seq)
                assert [row.seq for row in snapshot.read_items(where, limit=ALL)] == seqs, at_seq
                assert snapshot.count_items(where) == len(seqs)
                hidden = [row.seq for row in rows if at_seq is None or row.seq <= at_seq]
                where = replace(where, hidden=True)
                assert [row.seq for row in snapshot.read_items(where, limit=ALL)] == hidden, at_seq
                assert snapshot.count_items(where) == len(hidden)
            assert snapshot.read_items(EVERY_ITEM, limit=ALL) == [
                rows[0],
                rows[1]._replace(deleted_seq=4),
                rows[2]._replace(superseded_seq=3),
                rows[3]._replace(deleted_seq=6),
                rows[4],
            ]

    def test_read_items_by_kind_tier_and_seq(self, storage: Storage) -> None:
        rows = [
            build_item(0, "message"),
            build_item(1, "document"),
            build_item(2, tier=1),
            build_item(3, tier=2),
            build_item(4, tier=3),
            build_item(5, "message"),
        ]
        write(storage, SCOPE, *[say() for _ in rows], changes=[AddItems(rows)])
        expected: list[tuple[ItemFilter, list[int]]] = [
            (ItemFilter(), [0, 1, 2, 3, 4, 5]),
            (ItemFilter(kinds=[1]), [0, 5]),
            (ItemFilter(kinds={2, 3}), [1, 2, 3, 4]),
            (ItemFilter(kinds=[]), []),
            (ItemFilter(tiers=[0]), [0, 1, 5]),
            (ItemFilter(tiers=(1, 3)), [2, 4]),
            (ItemFilter(tiers=[]), []),
            (ItemFilter(kinds=[1], tiers=[1]), []),
            (ItemFilter(kinds=[1, 3], tiers=[0, 2]), [0, 3, 5]),
            (ItemFilter(first=1, last=3), [1, 2, 3]),
            (ItemFilter(first=3), [3, 4, 5]),
            (ItemFilter(first=3, last=2), []),
            (ItemFilter(first=1, last=4, kinds=[3], tiers=[3, 2], at_seq=4), [3, 4]),
            (ItemFilter(last=4, at_seq=2), [0, 1, 2]),
        ]
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            for where, seqs in expected:
                found = [rows[seq] for seq in seqs]
                assert snapshot.read_items(where, limit=ALL) == found
                assert snapshot.count_items(where) == len(found)
                for limit in (0, 1, 2):
                    assert snapshot.read_items(where, limit=limit) == found[:limit]
                    assert snapshot.read_items(where, limit=limit, newest_first=True) == found[::-1][:limit]

    def test_read_items_with_any_values(self, storage: Storage) -> None:
        row = build_item(0, "note", tier=3, terms=b"\x00\xff" * 4000)
        extremes = [
            row._replace(seq=seq, root_seq=0, timestamp_us=value, created_us=value, session_hash=value)._replace(
                speaker_hash=value, key_hash=value, text_hash=value
            )
            for seq, value in enumerate([INT64_MIN, -1, 0, 1, 2**53 + 1, INT64_MAX])
        ]
        write(storage, SCOPE, *[say() for _ in extremes], changes=[AddItems(extremes)])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.read_items(EVERY_ITEM, limit=ALL) == extremes
            assert dict(snapshot.find_items([0, 5, 17, 5])) == {0: extremes[0], 5: extremes[5]}
            assert snapshot.find_items([]) == {}
            for row in extremes:
                assert snapshot.find_live_by_key(row.key_hash or 0) == [row]
                assert snapshot.find_live_by_text(row.text_hash or 0) == [row]

    def test_read_live_notes_by_key_and_text(self, storage: Storage) -> None:
        rows = [build_item(seq, key="k", text="same") for seq in range(5)]
        rows += [build_item(5, key="other", text="same"), build_item(6, text="alone"), build_item(7, "message")]
        changes: list[Change] = [AddItems(rows), SupersedeItem(0, 1), HideItems([1], 7), HideItems([2], 7)]
        write(storage, SCOPE, *[say() for _ in rows], changes=[*changes, SupersedeItem(2, 3)])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            by_key = snapshot.find_live_by_key(hash_of("key k"))
            assert sorted(by_key) == [rows[3], rows[4]]
            assert snapshot.find_live_by_text(rows[0].text_hash or 0) == [rows[3], rows[4], rows[5]]
            assert snapshot.find_live_by_key(hash_of("key nobody's")) == []
            assert snapshot.find_live_by_text(hash_of("text nobody's")) == []

    # --- Reading for the scope index

    def test_read_index_rows(self, storage: Storage) -> None:
        one, other = (storage.keep_model("model", 2, probe).model_no for probe in (b"p1", b"p2"))
        rows = [
            build_item(0, "message", session="s1", speaker="anna", timestamp_us=-7, terms=b"t" * 16),
            build_item(2, tier=3, timestamp_us=8),
            build_item(3, "document"),
        ]
        write(storage, SCOPE, *[say() for _ in range(5)], changes=[AddItems(rows), HideItems([0], 4)])
        write(storage, SCOPE, changes=[KeepVectors([VectorRow(0, one, b"\x80\x7f"), VectorRow(3, other, b"zz")])])
        session, speaker = rows[0].session_hash or 0, rows[0].speaker_hash or 0
        plain = [
            IndexRow(0, 1, 0, -7, session, speaker, 4, b"t" * 16),
            IndexRow(2, 3, 3, 8, 0, 0, -1, b""),
            IndexRow(3, 2, 0, 0, 0, 0, -1, b""),
        ]
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.read_index_rows(0, model_no=None, limit=ALL) == plain
            assert snapshot.read_index_rows(0, model_no=one, limit=ALL) == [
                plain[0]._replace(codes=b"\x80\x7f"),
                *plain[1:],
            ]
            assert snapshot.read_index_rows(1, model_no=other, limit=ALL) == [plain[1], plain[2]._replace(codes=b"zz")]
            assert snapshot.read_index_rows(1, model_no=one, limit=1) == plain[1:2]
            assert snapshot.read_index_rows(4, model_no=one, limit=ALL) == []
            assert snapshot.read_index_rows(0, model_no=one, limit=0) == []
            assert snapshot.read_unembedded(0, model_no=one, limit=ALL) == [2, 3]
            assert snapshot.read_unembedded(0, model_no=other, limit=ALL) == [0, 2]
            assert snapshot.read_unembedded(1, model_no=other, limit=ALL) == [2]
            assert snapshot.read_unembedded(0, model_no=one, limit=1) == [2]

    def test_read_deaths(self, storage: Storage) -> None:
        """Item 0 is superseded at 2 and then deleted at 4, item 1 is deleted at 3, item 2 at 5, items 3 and 4 live."""
        rows = [build_item(seq) for seq in range(5)]
        changes: list[Change] = [AddItems(rows), SupersedeItem(0, 2), HideItems([1], 3), HideItems([0], 4)]
        write(storage, SCOPE, *[say() for _ in range(6)], changes=[*changes, HideItems([2], 5)])
        expected = {0: [], 1: [(0, 2)], 2: [(0, 2), (1, 3)], 3: [(1, 3), (2, 5)], 4: [(2, 5)], 5: [(2, 5)], 6: []}
        with storage.snapshot(SCOPE) as snapshot:
            assert {first: opened(snapshot).read_deaths(first) for first in expected} == expected

    # --- Changes of projections

    def test_apply_hide_keeps_the_first_deletion(self, storage: Storage) -> None:
        rows = [build_item(0), build_item(1)]
        write(storage, SCOPE, say(), say(), changes=[AddItems(rows), HideItems([0], 1)])
        write(storage, SCOPE, say(), changes=[HideItems([0, 1, 9], 2)])
        write(storage, SCOPE, say(), changes=[HideItems([1], 3), HideItems([], 3)])
        with storage.snapshot(SCOPE) as snapshot:
            assert opened(snapshot).find_items([0, 1, 9]) == {
                0: rows[0]._replace(deleted_seq=1),
                1: rows[1]._replace(deleted_seq=2),
            }

    def test_apply_supersede_hides_without_deleting(self, storage: Storage) -> None:
        rows = [build_item(0, key="k"), build_item(1, key="k")._replace(root_seq=0)]
        write(storage, SCOPE, say(), say(), changes=[AddItems(rows), SupersedeItem(0, 1), SupersedeItem(9, 1)])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.find_items([0, 1]) == {0: rows[0]._replace(superseded_seq=1), 1: rows[1]}
            assert snapshot.find_live_by_key(hash_of("key k")) == [rows[1]]
        write(storage, SCOPE, say(), changes=[HideItems([0, 1], 2)])
        with storage.snapshot(SCOPE) as snapshot:
            assert opened(snapshot).find_items([0, 1]) == {
                0: rows[0]._replace(superseded_seq=1, deleted_seq=2),
                1: rows[1]._replace(deleted_seq=2),
            }

    def test_apply_count_uses_adds_and_keeps_the_last_time(self, storage: Storage) -> None:
        write(storage, SCOPE, say(), changes=[CountUses([Use(0, 2, 500), Use(7, 1, 10)])])
        write(storage, SCOPE, say(), changes=[CountUses([Use(0, 1, 100)]), CountUses([])])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert dict(snapshot.find_uses([0, 7, 8])) == {0: Use(0, 3, 100), 7: Use(7, 1, 10)}
            assert snapshot.find_uses([]) == {}
        write(storage, SCOPE, say(), changes=[CountUses([Use(7, 1, 30), Use(7, 1, 20)])])
        with storage.snapshot(SCOPE) as snapshot:
            assert opened(snapshot).find_uses([7]) == {7: Use(7, 3, 20)}

    def test_apply_set_uses_replaces_the_counts(self, storage: Storage) -> None:
        write(storage, SCOPE, say(), say(), changes=[CountUses([Use(0, 5, 500), Use(1, 5, 500)])])
        write(storage, SCOPE, changes=[SetUses([Use(0, 2, 100), Use(1, 0, 0), Use(7, 0, 0), Use(8, 1, 5)])])
        with storage.snapshot(SCOPE) as snapshot:
            assert dict(opened(snapshot).find_uses([0, 1, 7, 8])) == {0: Use(0, 2, 100), 8: Use(8, 1, 5)}

    def test_apply_move_roots(self, storage: Storage) -> None:
        rows = [build_item(seq, key="k")._replace(root_seq=0, created_us=5) for seq in range(3)]
        write(storage, SCOPE, say(), say(), say(), changes=[AddItems(rows)])
        write(storage, SCOPE, changes=[MoveRoots([(1, 1, 70), (2, 1, 70), (9, 1, 70)])])
        with storage.snapshot(SCOPE) as snapshot:
            moved = [row._replace(root_seq=1, created_us=70) for row in rows[1:]]
            assert opened(snapshot).read_items(EVERY_ITEM, limit=ALL) == [rows[0], *moved]

    def test_apply_keep_vectors_replaces_those_of_the_same_model(self, storage: Storage) -> None:
        one, other = (storage.keep_model("model", 2, probe).model_no for probe in (b"p1", b"p2"))
        write(storage, SCOPE, say(), say(), changes=[AddItems([build_item(0), build_item(1)])])
        write(storage, SCOPE, changes=[KeepVectors([VectorRow(0, one, b"aa"), VectorRow(1, one, b"bb")])])
        write(storage, SCOPE, changes=[KeepVectors([VectorRow(0, other, b"cc"), VectorRow(1, one, b"dd")])])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            codes = {
                model_no: [row.codes for row in snapshot.read_index_rows(0, model_no=model_no, limit=ALL)]
                for model_no in (one, other)
            }
        assert codes == {one: [b"aa", b"dd"], other: [b"cc", None]}

    def test_apply_drop_other_vectors(self, storage: Storage) -> None:
        one, other = (storage.keep_model("model", 2, probe).model_no for probe in (b"p1", b"p2"))
        vectors = [VectorRow(seq, model_no, b"%d%d" % (seq, model_no)) for seq in (0, 1) for model_no in (one, other)]
        for scope in (SCOPE, OTHER):
            items = AddItems([build_item(0), build_item(1)])
            write(storage, scope, say(), say(), changes=[items, KeepVectors(vectors)])
        neighbour = see(storage, OTHER)
        epoch = epoch_of(storage, SCOPE)
        write(storage, SCOPE, changes=[DropOtherVectors(other)])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.head.epoch > epoch
            assert snapshot.read_unembedded(0, model_no=one, limit=ALL) == [0, 1]
            assert snapshot.read_unembedded(0, model_no=other, limit=ALL) == []
        assert find_differences(see(storage, OTHER), neighbour) == []

    def test_apply_raise_epoch(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        fill(storage, OTHER)
        before = see(storage, SCOPE)
        epochs = [epoch_of(storage, scope) for scope in (SCOPE, OTHER)]
        write(storage, SCOPE, changes=[RaiseEpoch()])
        assert epoch_of(storage, SCOPE) > epochs[0]
        assert epoch_of(storage, OTHER) == epochs[1]
        (difference,) = find_differences(before, see(storage, SCOPE))
        assert difference.startswith("user-42: head: ")

    def test_apply_drop_leaves_the_vectors(self, storage: Storage) -> None:
        """They are no projection: only the model could make them again."""
        fill(storage, SCOPE)
        write(storage, SCOPE, changes=[DropProjections(), AddItems([build_item(seq) for seq in range(4)])])
        with storage.snapshot(SCOPE) as snapshot:
            rows = opened(snapshot).read_index_rows(0, model_no=1, limit=ALL)
            assert [row.codes for row in rows] == [b"v0", b"v1", None, b"v3"]

    def test_apply_drop_forgets_items_and_uses_and_raises_the_epoch(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        fill(storage, OTHER)
        epochs: list[int] = []
        for _ in range(2):
            with storage.transaction(SCOPE, fresh()) as tx:
                epochs.append(tx.head.epoch)
                tx.apply([DropProjections()])
                epochs.append(tx.head.epoch)
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert epochs[0] < epochs[1] == epochs[2] < epochs[3] == snapshot.head.epoch
            assert snapshot.count_items(EVERY_ITEM) == 0
            assert snapshot.read_items(EVERY_ITEM, limit=ALL) == []
            assert snapshot.find_uses([0]) == {}
            assert snapshot.find_request(REQUEST.request_hash) == REQUEST, "requests are not projections"
            assert snapshot.count_events(EVERYTHING) == snapshot.head.next_seq == 6
        with storage.snapshot(OTHER) as snapshot:
            assert (opened(snapshot).head.epoch, opened(snapshot).count_items(EVERY_ITEM)) == (0, 4)

    def test_apply_in_the_order_given(self, storage: Storage) -> None:
        row = build_item(0)
        changes: list[Change] = [
            AddItems([row]),
            HideItems([0], 0),
            CountUses([Use(0, 1, 1)]),
            DropProjections(),
            AddItems([row]),
            CountUses([Use(0, 5, 2)]),
        ]
        write(storage, SCOPE, say(), changes=changes)
        with storage.snapshot(SCOPE) as snapshot:
            assert opened(snapshot).find_items([0]) == {0: row}
            assert opened(snapshot).find_uses([0]) == {0: Use(0, 5, 2)}

    def test_apply_keep_request(self, storage: Storage) -> None:
        other = StoredRequest(b"\x00" * 32, b"\xff" * 32, 2**32 - 1, 10_000, "put")
        write(storage, SCOPE, say(), changes=[KeepRequest(REQUEST), KeepRequest(other)])
        write(storage, OTHER, say(), changes=[KeepRequest(REQUEST._replace(num_events=7))])
        with storage.snapshot(SCOPE) as snapshot:
            snapshot = opened(snapshot)
            assert snapshot.find_request(REQUEST.request_hash) == REQUEST
            assert snapshot.find_request(other.request_hash) == other
            assert snapshot.find_request(b"n" * 32) is None

    # --- Over all scopes

    def test_archive_lists_tenants_in_code_point_order(self, storage: Storage) -> None:
        tenants = ["b", "a", "ä", "Z", "a b", "\U0001f9e0", "\uffee", "aa"]
        for tenant in tenants:
            write(storage, Scope(tenant, None), say())
            write(storage, Scope(tenant, "x"), say())
        assert storage.find_tenants(limit=ALL) == sorted(tenants)
        assert storage.find_tenants(limit=3) == sorted(tenants)[:3]
        assert storage.find_tenants(after="a", limit=2) == ["a b", "aa"]
        assert storage.find_tenants(after="a a", limit=1) == ["a b"]
        assert storage.find_tenants(after="\U0001f9e0", limit=1) == storage.find_tenants(limit=0) == []

    def test_archive_lists_scopes_in_rising_number(self, storage: Storage) -> None:
        scopes = [Scope("b", "x"), Scope("a", None), Scope("b", None), Scope("a", "x"), Scope("b", "a")]
        for number, scope in enumerate(scopes):
            write(storage, scope, *[say() for _ in range(number + 1)], recorded_us=number)
        rows = storage.read_scopes(limit=ALL)
        numbers = [row.scope_no for row in rows]
        assert numbers == sorted(set(numbers))
        assert numbers[0] >= 1
        assert [(row.tenant, row.subject) for row in rows] == [(scope.tenant, scope.subject) for scope in scopes]
        assert [(row.next_seq, row.recorded_us) for row in rows] == [(number + 1, number) for number in range(5)]
        for scope, row in zip(scopes, rows, strict=True):
            with storage.snapshot(scope) as snapshot:
                head = opened(snapshot).head
                assert (head.scope_no, head.ledger_id) == (row.scope_no, row.ledger_id)
        assert storage.read_scopes(limit=2) == rows[:2]
        assert storage.read_scopes(after=numbers[1], limit=2) == rows[2:4]
        assert storage.read_scopes(tenant="b", limit=2) == [rows[0], rows[2]]
        assert storage.read_scopes(tenant="b", after=numbers[0], limit=ALL) == [rows[2], rows[4]]
        assert storage.read_scopes(after=numbers[-1], limit=ALL) == storage.read_scopes(limit=0) == []

    def test_archive_keeps_a_tenant_whose_scopes_are_erased(self, storage: Storage) -> None:
        write(storage, SCOPE, say())
        write(storage, Scope("other", None), say())
        erase_scope(storage, SCOPE, at_us=1)
        assert storage.find_tenants(limit=ALL) == ["acme", "other"]
        assert storage.stats().tenants == 2

    def test_archive_drops_a_tenant_that_has_no_scope_left(self, storage: Storage) -> None:
        write(storage, SCOPE, say())
        write(storage, Scope("other", None), say())
        assert storage.drop_tenant("nobody", PENDING) is False
        before = see_all(storage, SCOPE)
        with pytest.raises(ConflictError):
            storage.drop_tenant("acme", PENDING)
        assert find_differences(see_all(storage, SCOPE), before) == []
        ledger = ledger_of(storage, SCOPE)
        erase_scope(storage, SCOPE, at_us=1)
        assert storage.find_pending() == []
        assert storage.drop_tenant("acme", PENDING) is True
        assert storage.drop_tenant("acme", PENDING) is False
        assert storage.find_pending() == [PENDING], "a name is content of the files too"
        assert storage.find_tenants(limit=ALL) == ["other"]
        assert storage.stats().tenants == 1
        assert storage.read_scopes(erased=True, tenant="acme", limit=ALL) == []
        assert [row[1:4] for row in storage.read_scopes(erased=True, limit=ALL)] == [("", None, ledger)]
        assert [row.seq for row in write(storage, SCOPE, say())] == [0]
        assert storage.find_tenants(limit=ALL) == ["acme", "other"]
        assert [row.tenant for row in storage.read_scopes(erased=True, limit=ALL)] == [""]

    def test_archive_keeps_each_model_once(self, storage: Storage) -> None:
        assert storage.find_models() == []
        wanted = [("a", 2, b"p1"), ("a", 2, b"p2"), ("a", 3, b"p1"), ("b", 2, b"p1")]
        models = [storage.keep_model(*model) for model in wanted]
        assert [model[1:] for model in models] == wanted
        assert len({model.model_no for model in models}) == 4
        assert [storage.keep_model(*model) for model in wanted] == models == storage.find_models()
        again = run_together(*[lambda: storage.keep_model("c", 2, b"p")] * 4)
        assert len(set(again)) == 1
        assert storage.find_models() == [*models, again[0]]

    def test_archive_keeps_settings(self, storage: Storage) -> None:
        assert storage.find_settings() == {}
        for name, value in [("read_audit", "on"), ("analyser", ""), ("read_audit", "off")]:
            storage.keep_setting(name, value)
        assert storage.find_settings() == {"read_audit": "off", "analyser": ""}

    def test_archive_finds_visible_items_by_text(self, storage: Storage) -> None:
        texts = [TextRow(seq, terms) for seq, terms in enumerate([["a", "b"], ["b", "b"], ["日本"], ["a"]])]
        rows = [build_item(0), build_item(1, "message"), build_item(2), build_item(3)]
        write(storage, OTHER, *[say() for _ in range(4)], changes=[AddItems(rows), IndexText(texts)])
        assert storage.find_text("acme", ["a"], version="1") is None
        storage.begin_text("1")
        assert storage.find_text("acme", ["a"], version="1") is None
        with storage.transaction(OTHER, fresh()) as tx:
            assert tx.keeps_text
            first = tx.head.scope_no << 32
            tx.apply([IndexText(texts[:2]), IndexText(texts), HideItems([3], 4)])
        storage.finish_text("1")
        storage.begin_text("1")  # what is there stays
        found = storage.find_text(OTHER.tenant, ["b", "日本", "a", "c"], version="1")
        assert found is not None
        assert found.documents == 3
        assert found.length == sum(len(row.terms) // 8 for row in rows[:3])
        assert [list(places) for places in found.places] == [[first, first + 1], [first + 2], [first], []]
        narrowed = storage.find_text(OTHER.tenant, ["b"], version="1", kinds={1})
        assert narrowed is not None
        assert (narrowed.documents, [list(places) for places in narrowed.places]) == (1, [[first + 1]])
        assert storage.find_text("nobody", ["b"], version="1") == TextMatches(0, 0, [[]])
        assert storage.find_text(OTHER.tenant, ["b"], version="2") is None
        storage.drop_text()
        assert storage.find_text(OTHER.tenant, ["b"], version="1") is None

    def test_law_13_text_that_is_not_taken_out_is_noticed(self, storage: Storage) -> None:
        storage.begin_text("1")
        text = TextRow(0, ["a", "b"])
        rows = write(storage, SCOPE, say(), say(), changes=[AddItems([build_item(0)]), IndexText([text])])
        write(storage, SCOPE, changes=[UnindexText([text]), EraseEvents([(0, rows[0].event_id)])])
        assert storage.check() == []
        rows = write(storage, SCOPE, say(), changes=[AddItems([build_item(2)]), IndexText([text._replace(seq=2)])])
        write(storage, SCOPE, changes=[EraseEvents([(2, rows[0].event_id)])])
        assert storage.check() != []

    def test_archive_counts_what_it_holds(self, storage: Storage) -> None:
        fill(storage, SCOPE)
        fill(storage, OTHER)
        write(storage, Scope("b", None), say())
        stats = storage.stats()
        assert (stats.tenants, stats.scopes, stats.events, stats.contents, stats.items) == (2, 3, 13, 13, 8)
        assert stats.size_bytes >= 0
        assert storage.check() == []


class PersistentStorageContract(StorageContract):
    """The laws that speak of other processes and of the time after a crash. The opener has to be picklable."""

    @pytest.fixture
    def files(self) -> Callable[[], Iterable[Path]]:
        """The files that hold the archive, now; none where nobody can read them."""
        raise NotImplementedError(f"{type(self).__name__} names the archive's files by a fixture `files`")

    @pytest.fixture
    def damage(self) -> Callable[[], None]:
        """Makes the archive, which nobody has open, unreadable for the driver."""
        raise NotImplementedError(f"{type(self).__name__} says how an archive is damaged by a fixture `damage`")

    def test_law_02_gap_free_under_processes(self, opener: Opener, storage: Storage) -> None:
        batches = [[say() for _ in range(25)] for _ in range(3)]
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in batches]
        workers = [
            context.Process(target=append_one_by_one, args=(opener, SCOPE, batch, pipe[1]), daemon=True)
            for batch, pipe in zip(batches, pipes, strict=True)
        ]
        for worker in workers:
            worker.start()
        for here, _ in pipes:
            assert here.poll(PATIENCE_S)
            assert here.recv() == "ready"
        for here, _ in pipes:
            here.send("go")
        own = [row.seq for _ in range(25) for row in write(storage, SCOPE, say())]
        answers: list[list[int]] = [own]
        for (here, there), worker in zip(pipes, workers, strict=True):
            assert here.poll(PATIENCE_S)
            answers.append(here.recv())
            worker.join(PATIENCE_S)
            worker.close()
            here.close()
            there.close()
        assert all(answer == sorted(answer) for answer in answers)
        assert sorted(seq for answer in answers for seq in answer) == list(range(100))
        assert seqs_of(read_all(storage, SCOPE)) == list(range(100))

    def test_law_02_two_openings_of_one_archive_count_together(self, opener: Opener, storage: Storage) -> None:
        other = opener()
        jobs = [lambda opened=opened: [write(opened, SCOPE, say()) for _ in range(20)] for opened in (storage, other)]
        run_together(*jobs)
        assert seqs_of(read_all(storage, SCOPE)) == list(range(40))
        assert find_differences(see_all(other, SCOPE), see_all(storage, SCOPE)) == []
        other.close()

    def test_law_05_and_10_an_archive_is_the_same_when_opened_again(self, opener: Opener, storage: Storage) -> None:
        for scope in (SCOPE, OTHER, Scope("acme", None)):
            fill(storage, scope)
        before = see_all(storage, SCOPE, OTHER, Scope("acme", None))
        storage.close()
        again = opener()
        assert find_differences(see_all(again, SCOPE, OTHER, Scope("acme", None)), before) == []
        assert [row.seq for row in write(again, SCOPE, say())] == [6]
        again.close()

    def test_law_10_what_returned_survives_a_crash_of_the_process(self, opener: Opener) -> None:
        kept, lost = [say(str(number)) for number in range(6)], say("lost")
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        worker = context.Process(target=append_and_hang, args=(opener, SCOPE, kept, lost, there), daemon=True)
        worker.start()
        assert here.poll(PATIENCE_S)
        assert here.recv() == "in the middle"
        worker.kill()
        worker.join(PATIENCE_S)
        worker.close()
        here.close()
        there.close()
        storage = opener()
        assert [row.event_id for row in read_all(storage, SCOPE)] == [event.id.bytes for event in kept]
        assert storage.check() == []
        assert [row.seq for row in write(storage, SCOPE, lost)] == [6]
        storage.close()

    def test_law_13_no_byte_of_what_was_erased_is_left_in_any_file(
        self, storage: Storage, files: Callable[[], Iterable[Path]]
    ) -> None:
        """Long and short contents in several scopes, so that pages split and overflow before some of it is erased."""
        scopes = [SCOPE, OTHER, Scope("tenant-to-drop", "name-to-erase")]
        texts = {
            scope: [f"{scope.subject} says {number} " * (1 + number % 40) for number in range(80)] for scope in scopes
        }
        for number in range(80):
            for scope in scopes:
                message = say(texts[scope][number])
                item = build_item(number, "message", terms=texts[scope][number].encode())
                write(storage, scope, message, changes=[AddItems([item])])
        kept = texts[OTHER][1::2]
        gone = [*texts[SCOPE], *texts[OTHER][::2], scopes[2].subject or "", *texts[scopes[2]]]
        receipts = [PendingClean(bytes([number]) * 16, ledger_of(storage, SCOPE), number) for number in range(4)]
        write(storage, SCOPE, changes=[erasing(read_all(storage, SCOPE), *range(80)), AwaitClean(receipts[0])])
        write(storage, OTHER, changes=[erasing(read_all(storage, OTHER), *range(0, 80, 2)), AwaitClean(receipts[1])])
        erase_scope(storage, scopes[2], at_us=5, changes=[AwaitClean(receipts[2])])
        storage.drop_tenant("tenant-to-drop", receipts[3])
        outcome = storage.clean(markers=[text.encode() for text in gone], wait_s=PATIENCE_S)
        assert (list(outcome.completed), outcome.blocked, outcome.residue_hits) == (receipts, None, 0)
        data = [file.read_bytes() for file in files()]
        for text in (*gone, "tenant-to-drop"):
            assert not any(text.encode() in part for part in data), text
        assert not data or all(any(text[:20].encode() in part for part in data) for text in kept)
        assert len([row for row in read_all(storage, OTHER) if row.body is not None]) == 40

    def test_law_13_a_clean_step_that_a_reader_blocks_completes_nothing(self, opener: Opener, storage: Storage) -> None:
        fill(storage, SCOPE)
        reader = opener()
        with reader.snapshot(SCOPE) as snapshot:
            seen = picture_of(opened(snapshot))
            pending = PendingClean(b"p" * 16, ledger_of(storage, SCOPE), 1)
            write(storage, SCOPE, changes=[erasing(read_all(storage, SCOPE), 0), AwaitClean(pending)])
            started = monotonic()
            outcome = storage.clean(wait_s=0.05)
            assert monotonic() - started < 5, "it waits as long as it was told, not as long as a writer would"
            assert (outcome.blocked is None) == (list(outcome.completed) == [pending])
            assert (outcome.blocked is None) == (storage.find_pending() == [])
            assert find_differences(picture_of(opened(snapshot)), seen) == []
        assert storage.clean(wait_s=PATIENCE_S).blocked is None
        assert storage.find_pending() == reader.find_pending() == []
        reader.close()

    def test_law_13_what_was_erased_stays_so_when_opened_again(self, opener: Opener, storage: Storage) -> None:
        fill(storage, SCOPE)
        fill(storage, OTHER)
        ledger = ledger_of(storage, OTHER)
        pending = PendingClean(b"p" * 16, ledger, 1)
        write(storage, SCOPE, changes=[erasing(read_all(storage, SCOPE), 0, 3), AwaitClean(pending)])
        erase_scope(storage, OTHER, at_us=3)
        before, envelopes = see_all(storage, SCOPE), picture_of_scope(storage, ledger)
        storage.close()
        again = opener()
        assert find_differences(see_all(again, SCOPE), before) == []
        assert find_differences(picture_of_scope(again, ledger), envelopes) == []
        assert again.find_pending() == [pending]
        again.close()

    def test_law_12_a_damaged_archive_is_a_storage_error(
        self, opener: Opener, storage: Storage, damage: Callable[[], None]
    ) -> None:
        fill(storage, SCOPE)
        storage.close()
        damage()
        with pytest.raises(StorageError):
            read_all(opener(), SCOPE)
