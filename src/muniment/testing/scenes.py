"""What the storage suite writes, and what it sees of it: short words for long calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Barrier, Thread
from typing import Final, TypeVar

from muniment.core.canonical import digest_of
from muniment.core.merkle import pack_edge
from muniment.model.event import Deletion, Document, Erasure, Event, Message, Note, Recall
from muniment.model.rows import (
    AddItems,
    Change,
    CountUses,
    EraseEvents,
    EraseLedger,
    EventFilter,
    HideItems,
    KeepRequest,
    KeepVectors,
    NewEvent,
    NewLedger,
    StoredEvent,
    StoredRequest,
    SupersedeItem,
    Use,
    VectorRow,
)
from muniment.model.scope import Scope
from muniment.ports.clock import system_entropy
from muniment.ports.storage import Snapshot, Storage, Transaction
from muniment.testing.picture import ALL, Picture, picture_of_archive, picture_of_scope
from muniment.testing.rows import (
    append_events,
    build_item,
    build_item_of,
    build_ledger,
    build_rows,
    hash_of_session,
)

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""After which a thread or process that should have answered is taken to hang; a sound adapter never makes it wait."""

SCOPE: Final = Scope("acme", "user-42")
OTHER: Final = Scope("acme", "user-43")
EVERYTHING: Final = EventFilter()
REQUEST: Final = StoredRequest(b"r" * 32, b"f" * 32, 0, 2, "add_many")


def say(content: str = "hello", *, session: str | None = None) -> Message:
    """A message that has not been stored yet."""
    return Message(speaker="anna", content=content, session_id=session)


def fresh() -> NewLedger:
    """The random parts of a new ledger."""
    return build_ledger(system_entropy)


def append(tx: Transaction, *events: Event, recorded_us: int = 0) -> list[NewEvent]:
    """The rows that were appended for these events."""
    return append_events(tx, events, entropy=system_entropy, recorded_us=recorded_us)


def write(
    storage: Storage,
    scope: Scope,
    *events: Event,
    changes: Sequence[Change] = (),
    recorded_us: int = 0,
    durable: bool = False,
) -> list[NewEvent]:
    """The rows of one transaction that appended these events and applied these changes."""
    with storage.transaction(scope, fresh(), durable=durable) as tx:
        rows = append(tx, *events, recorded_us=recorded_us)
        tx.apply(changes)
    return rows


def write_in_parts(storage: Storage, scope: Scope, *parts: Sequence[Event]) -> None:
    """One transaction that appends several times."""
    with storage.transaction(scope, fresh(), durable=False) as tx:
        for part in parts:
            append(tx, *part)


def write_and_fail(
    storage: Storage, scope: Scope, *events: Event, changes: Sequence[Change] = (), error: BaseException
) -> None:
    """One transaction that writes all this and raises that error at its end."""
    with storage.transaction(scope, fresh()) as tx:
        append(tx, *events)
        tx.apply(changes)
        raise error


def write_at(storage: Storage, scope: Scope, seqs: Sequence[int]) -> None:
    """One transaction that appends events with these seqs, whether they follow or not."""
    with storage.transaction(scope, fresh()) as tx:
        rows, edge = build_rows(tx.head, [say() for _ in seqs], recorded_us=0, entropy=system_entropy)
        tx.append([row._replace(seq=seq) for row, seq in zip(rows, seqs, strict=True)], edge)


def write_rows(storage: Storage, scope: Scope, rows: Sequence[NewEvent]) -> None:
    """Append rows as they are, with an edge of the right length."""
    with storage.transaction(scope, fresh(), durable=False) as tx:
        tx.append(rows, pack_edge([b"e" * 32] * (tx.head.next_seq + len(rows)).bit_count()))


def fill(storage: Storage, scope: Scope) -> None:
    """A ledger with something of everything: sessions, a hidden and a superseded item, uses, vectors and a request."""
    model = storage.keep_model("model", 2, b"pp")
    message, note = say("the pump failed", session="s1"), Note(content="a plan", key="plan", session_id="s2")
    document, newer = Document(name="a.txt", text="text"), Note(content="a plan", key="plan", tier="core")
    items = [build_item_of(event, seq) for seq, event in enumerate([message, note, document, newer])]
    write(storage, scope, message, note, changes=[AddItems(items[:2]), KeepRequest(REQUEST)], recorded_us=10)
    write(storage, scope, document, newer, changes=[AddItems(items[2:]), SupersedeItem(1, 3)], recorded_us=20)
    write(storage, scope, changes=[KeepVectors([VectorRow(seq, model.model_no, b"v%d" % seq) for seq in (0, 1, 3)])])
    recall, deletion = Recall(query="pump", recalled=(message.id,)), Deletion(targets=(message.id,), reason="asked")
    write(storage, scope, recall, changes=[CountUses([Use(0, 1, 25)])], recorded_us=25)
    write(storage, scope, deletion, changes=[HideItems([0], 5)], recorded_us=30)


def changes_of_every_kind(first: int) -> list[Change]:
    """Changes of a ledger that `fill` made, the first of the new events having that seq."""
    return [
        AddItems([build_item(first, "message"), build_item(first + 1, key="plan", text="a plan")]),
        HideItems([0, 2, first], first + 1),
        SupersedeItem(3, first + 1),
        CountUses([Use(0, 4, 99), Use(first, 1, 99)]),
        KeepRequest(REQUEST._replace(request_hash=b"q" * 32)),
        KeepVectors([VectorRow(0, 1, b"w0"), VectorRow(first, 1, b"wn")]),
    ]


def erasing(rows: Sequence[StoredEvent], *seqs: int) -> EraseEvents:
    """The change that destroys the contents of these seqs."""
    return EraseEvents([(seq, rows[seq].event_id) for seq in seqs])


def erase_scope(storage: Storage, scope: Scope, *, at_us: int, changes: Sequence[Change] = ()) -> NewEvent:
    """The Erasure that is left as the last event of a ledger whose scope was erased as a whole."""
    with storage.transaction(scope, fresh()) as tx:
        tx.apply([EraseLedger(at_us)])
        (row,) = append(tx, Erasure(whole_scope=True, reason="asked"))
        tx.apply(changes)
    return row


def ledger_of(storage: Storage, scope: Scope) -> bytes:
    """The id of that scope's ledger."""
    with storage.snapshot(scope) as snapshot:
        return opened(snapshot).head.ledger_id


def epoch_of(storage: Storage, scope: Scope) -> int:
    """The epoch of that scope's ledger."""
    with storage.snapshot(scope) as snapshot:
        return opened(snapshot).head.epoch


def see(storage: Storage, *scopes: Scope) -> Picture:
    """Everything that can be read of these scopes."""
    seen: Picture = {}
    for scope in scopes:
        picture = picture_of_scope(
            storage, scope, request_hashes=[b"r" * 32, b"q" * 32], session_hashes=[hash_of_session("s1") or 0, 7]
        )
        seen.update({f"{scope.subject}: {name}": answer for name, answer in (picture or {"ledger": None}).items()})
    return seen


def see_all(storage: Storage, *scopes: Scope) -> Picture:
    """Everything that can be read of the archive and of these scopes."""
    return {**picture_of_archive(storage), **see(storage, *scopes)}


def read_all(storage: Storage, scope: Scope) -> list[StoredEvent]:
    """Every event of that scope, none where there is no ledger."""
    with storage.snapshot(scope) as snapshot:
        return [] if snapshot is None else snapshot.read_events(EVERYTHING, limit=ALL)


def seqs_of(rows: Iterable[StoredEvent]) -> list[int]:
    """The seqs of these rows, in their order."""
    return [row.seq for row in rows]


def shorten(rows: Iterable[StoredEvent]) -> list[StoredEvent]:
    """The rows with digests in place of long values: two lists that differ can be printed."""
    return [
        row._replace(links=digest_of(b"", row.links), body=None if row.body is None else digest_of(b"", row.body))
        for row in rows
    ]


def opened(snapshot: Snapshot | None) -> Snapshot:
    """The snapshot, where there must be a ledger."""
    assert snapshot is not None, "the ledger is not there"
    return snapshot


def run_together(*jobs: Callable[[], T]) -> list[T]:
    """What the jobs answered, each run in a thread of its own from the same moment on; the first error is raised."""
    barrier = Barrier(len(jobs))
    answers: dict[int, T] = {}
    errors: list[BaseException] = []

    def work(number: int, job: Callable[[], T]) -> None:
        try:
            barrier.wait(PATIENCE_S)
            answers[number] = job()
        except BaseException as error:  # noqa: BLE001 (a failed assertion in a thread belongs to the test)
            errors.append(error)

    threads = [Thread(target=work, args=item, daemon=True) for item in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    if errors:
        raise errors[0]
    assert len(answers) == len(jobs), "a thread waits for ever"
    return [answers[number] for number in range(len(jobs))]
