"""The writes of one ledger, on the writer connection in an immediate transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import apsw

from muniment.adapters.sqlite import fulltext
from muniment.adapters.sqlite.connection import Binding, Database
from muniment.adapters.sqlite.snapshot import SEQ_BITS, SEQ_MASK, SqliteSnapshot
from muniment.adapters.sqlite.statements import STATEMENTS
from muniment.errors import DuplicateEventError, IntegrityError, StorageError, UnsupportedError, UsageError
from muniment.model.rows import (
    AddItems,
    AwaitClean,
    Change,
    CountUses,
    DropOtherVectors,
    DropProjections,
    EraseEvents,
    EraseLedger,
    Head,
    HideItems,
    IndexText,
    KeepRequest,
    KeepVectors,
    MoveRoots,
    NewEvent,
    RaiseEpoch,
    SetUses,
    SupersedeItem,
    TextRow,
    UnindexText,
    Use,
)


class SqliteTransaction(SqliteSnapshot):
    """The one writer of a ledger."""

    def __init__(self, database: Database, head: Head) -> None:
        super().__init__(database, head)
        self.erased_ids: list[bytes] = []
        """Ids of the events whose content this transaction destroys, for the log beside the archive."""
        self.erased_whole = False
        self._keeps_text: bool | None = None

    @property
    def keeps_text(self) -> bool:
        if self._keeps_text is None:
            self._keeps_text = fulltext.keeps_text(self._database)
        return self._keeps_text

    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        head = self._head
        _check_seqs(events, head.next_seq)
        if not events:
            return
        shift = head.scope_no << SEQ_BITS
        rows = [(shift | e.seq, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf) for e in events]
        # One refused row leaves nothing behind; several have to be taken back together.
        several = len(rows) > 1
        if several:
            self._database.run("SAVEPOINT append")
        try:
            self._many("insert_event", rows)
        except StorageError as error:
            refused = error if not isinstance(error.__cause__, apsw.ConstraintError) else self._duplicate_among(events)
            if several and self._database.in_transaction:
                self._database.run("ROLLBACK TO append")
                self._database.run("RELEASE append")
            raise refused from error.__cause__
        if several:
            self._database.run("RELEASE append")
        self._many("insert_content", [(shift | e.seq, e.salt, e.session_hash, e.body) for e in events])
        newest = events[-1]
        self._head = replace(head, next_seq=newest.seq + 1, edge=edge, recorded_us=newest.recorded_us)
        self._run(
            "move_head",
            next_seq=newest.seq + 1,
            edge=edge,
            recorded_us=newest.recorded_us,
            scope_no=head.scope_no,
        )

    def _duplicate_among(self, events: Sequence[NewEvent]) -> DuplicateEventError | IntegrityError:
        """The event that was refused: the first one without a row at its place."""
        for event in events:
            if not self._rows("find_recorded", place=self._place(event.seq)):
                return DuplicateEventError(str(UUID(bytes=event.event_id)))
        return IntegrityError("an append was refused although its places were free")

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        match change:
            case AddItems(rows):
                shift = self._head.scope_no << SEQ_BITS
                self._many("insert_item", [(shift | row.seq, *row[1:]) for row in rows])
            case IndexText(texts):
                self._move_text("index_text", texts)
            case UnindexText(texts):
                self._move_text("unindex_text", texts)
            case HideItems(seqs, at_seq):
                for seq in seqs:
                    self._run("hide_item", place=self._place(seq), at_seq=at_seq)
            case SupersedeItem(seq, by_seq):
                self._run("supersede_item", place=self._place(seq), by_seq=by_seq)
            case CountUses(uses):
                self._many("count_use", [self._use_row(use) for use in uses])
            case SetUses(uses):
                self._many("set_use", [self._use_row(use) for use in uses if use.times])
                self._many("erase_use", [(self._place(use.root_seq),) for use in uses if not use.times])
            case MoveRoots(rows):
                for seq, root_seq, created_us in rows:
                    self._run("move_root", place=self._place(seq), root_seq=root_seq, created_us=created_us)
            case KeepRequest(request):
                self._many("insert_request", [(self._head.scope_no, *request)])
            case KeepVectors(vectors):
                self._many("keep_vector", [(self._place(row.seq), row.model_no, row.codes) for row in vectors])
            case DropOtherVectors(model_no):
                self._run("drop_vectors_but", first=self._place(0), last=self._place(SEQ_MASK), model_no=model_no)
                self._raise_epoch()
            case RaiseEpoch():
                self._raise_epoch()
            case AwaitClean(pending):
                self._many("await_clean", [tuple(pending)])
            case DropProjections():
                self._drop_ranges("drop_items", "drop_usage")
                self._raise_epoch()
            case EraseEvents(events):
                self._erase_events(events)
            case EraseLedger(at_us):
                self._erase_ledger(at_us)

    def _move_text(self, statement: str, texts: Sequence[TextRow]) -> None:
        if self.keeps_text:
            self._many(statement, [(self._place(row.seq), fulltext.text_of(row.terms)) for row in texts])

    def _erase_events(self, events: Sequence[tuple[int, bytes]]) -> None:
        places: list[tuple[Binding, ...]] = [(self._place(seq),) for seq, _ in events]
        for statement in ("erase_content", "erase_item", "erase_use", "erase_vector"):
            self._many(statement, places)
        for seq, _ in events:
            self._run("blank_requests", scope_no=self._head.scope_no, seq=seq)
        self.erased_ids.extend(event_id for _, event_id in events)
        self._raise_epoch()

    def _erase_ledger(self, at_us: int) -> None:
        scope_no = self._head.scope_no
        self._drop_ranges("drop_contents", "drop_items", "drop_usage", "drop_vectors")
        self._run("drop_requests", scope_no=scope_no)
        self._run("drop_name", scope_no=scope_no)
        self._run("mark_erased", scope_no=scope_no, at_us=at_us)
        self.erased_whole = True
        self._raise_epoch()
        self._head = replace(self._head, salt=b"", erased_us=at_us)

    def _drop_ranges(self, *statements: str) -> None:
        for statement in statements:
            self._run(statement, first=self._place(0), last=self._place(SEQ_MASK))

    def _raise_epoch(self) -> None:
        epoch = self._integer("raise_epoch", scope_no=self._head.scope_no)
        self._head = replace(self._head, epoch=epoch)

    def _use_row(self, use: Use) -> tuple[Binding, ...]:
        return (self._place(use.root_seq), use.times, use.last_used_us)

    def _run(self, statement: str, /, **bindings: Binding) -> None:
        self._database.run(STATEMENTS[statement], bindings)

    def _many(self, statement: str, rows: Sequence[tuple[Binding, ...]]) -> None:
        if rows:
            self._database.run_many(STATEMENTS[statement], rows)


def _check_seqs(events: Sequence[NewEvent], next_seq: int) -> None:
    for expected, event in enumerate(events, next_seq):
        if event.seq != expected:
            raise UsageError(f"an event with seq {event.seq} does not follow: the next seq is {expected}")
    if next_seq + len(events) > SEQ_MASK:
        raise UnsupportedError(f"a ledger holds at most {SEQ_MASK} events")
