"""Destroying content inside one transaction: which events go, what follows for the projections, and the Erasure.

Source: `engine.md` E2, E16, E20, E21.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal
from uuid import UUID

from muniment.archive.arguments import build_event
from muniment.archive.chooser import Chooser
from muniment.archive.engine import Engine
from muniment.archive.reader import READ_CHUNK, read_in_chunks
from muniment.archive.writer import Writer
from muniment.core.canonical import KIND_NUMBERS, from_us, kind_name, to_us
from muniment.core.merkle import root_of, unpack_edge
from muniment.core.project import analyse_event, draft
from muniment.model.event import CONTENT_KINDS, ErasedEvent, Erasure, Note, Recall
from muniment.model.limits import FACT_CHARS_MAX, TARGETS_MAX
from muniment.model.receipt import Action, Receipt
from muniment.model.report import LedgerHead
from muniment.model.rows import (
    AwaitClean,
    EraseEvents,
    EraseLedger,
    EventFilter,
    Head,
    ItemRow,
    MoveRoots,
    PendingClean,
    SetUses,
    StoredEvent,
    TextRow,
    UnindexText,
    Use,
)
from muniment.ports.storage import Transaction

_NOTE: Final = KIND_NUMBERS["note"]
_RECALL: Final = KIND_NUMBERS["recall"]
_CONTENT: Final = frozenset(KIND_NUMBERS[kind] for kind in CONTENT_KINDS)


@dataclass(slots=True)
class Destroyed:
    """What one transaction destroyed."""

    receipt: Receipt
    markers: list[bytes] = field(default_factory=list[bytes])
    """Bytes that stood in what was destroyed, to be searched for in the files."""


class Eraser(Chooser):
    """One scope's ledger, locked, with what is to be destroyed in it."""

    def __init__(self, engine: Engine, tx: Transaction) -> None:
        super().__init__(tx, engine.hashes_of(tx.head))
        self._engine = engine
        self._tx = tx
        self.writer = Writer(engine, tx)

    # --- Destroying ---------------------------------------------------------------------------------------------------

    def erase_events(
        self, rows: Collection[StoredEvent], *, action: Action, reason: str, requested_by: str | None
    ) -> Destroyed:
        """Destroy these contents and record an Erasure of each 10,000; without any, nothing happens."""
        before = self._tx.head
        if not rows:
            return Destroyed(self._receipt(action, (), before, before, {}, reason, requested_by, 0, found=False))
        seqs = [row.seq for row in rows]
        ids = tuple(UUID(bytes=row.event_id) for row in rows)
        markers = [marker for row in rows for marker in markers_of(row)]
        items = self._tx.find_items(seqs)
        touched = self._touched_roots(rows, items)
        facts = sum(self._is_fact(row, items.get(row.seq)) for row in rows)
        self._unindex(rows)
        self._tx.apply([EraseEvents([(row.seq, row.event_id) for row in rows])])
        self._mend_chains(items.values())
        self._recount(touched)
        for start in range(0, len(ids), TARGETS_MAX):
            targets = ids[start : start + TARGETS_MAX]
            erasure = build_event(
                Erasure,
                id=self._engine.new_id(),
                timestamp=from_us(self._engine.clock()),
                targets=targets,
                count=len(targets),
                reason=reason,
                requested_by=requested_by,
            )
            self.writer.append([draft(erasure, self._engine.tokenizer)])
        receipt = self._receipt(action, ids, before, self._tx.head, _count(rows), reason, requested_by, facts)
        self._tx.apply([AwaitClean(_pending_of(receipt, before))])
        return Destroyed(receipt, markers)

    def erase_scope(self, *, reason: str, requested_by: str | None) -> Destroyed:
        """Destroy every content of the ledger, what was made from it, and the name of its scope.

        The Erasure that stays keeps a reason code only: who asked and why stand in the receipt.
        """
        before = self._tx.head
        counts: Counter[str] = Counter()
        markers: list[bytes] = []
        facts = 0
        for row in read_in_chunks(self._tx, EventFilter()):
            if row.body is not None:
                counts[kind_name(row.kind)] += 1
                markers.extend(markers_of(row))
                if row.kind == _NOTE:
                    facts += self._is_fact(row, self._tx.find_items([row.seq]).get(row.seq))
        if self._tx.keeps_text:
            rows = iter(read_in_chunks(self._tx, EventFilter(kinds=_CONTENT)))
            while chunk := list(islice(rows, READ_CHUNK)):
                self._unindex(chunk)
        now_us = self._engine.clock()
        erasure = Erasure(
            id=self._engine.new_id(),
            timestamp=from_us(now_us),
            whole_scope=True,
            count=counts.total(),
            reason=WHOLE_SCOPE_REASON,
        )
        self._tx.apply([EraseLedger(now_us)])
        self.writer.append([draft(erasure, self._engine.tokenizer)])
        receipt = self._receipt("erase", (), before, self._tx.head, counts, reason, requested_by, facts, whole=True)
        self._tx.apply([AwaitClean(_pending_of(receipt, before))])
        return Destroyed(receipt, markers)

    def _unindex(self, rows: Iterable[StoredEvent]) -> None:
        """Take these events out of full text, while their content still says by which terms they stand there."""
        if not self._tx.keeps_text:
            return
        going = self.reader.decode([row for row in rows if row.kind in _CONTENT and row.body is not None])
        texts = [
            TextRow(event.seq, analyse_event(event, self._engine.tokenizer))
            for event in going
            if not isinstance(event, ErasedEvent) and event.seq is not None
        ]
        self._tx.apply([UnindexText(texts)])

    def _is_fact(self, row: StoredEvent, item: ItemRow | None) -> bool:
        """Whether the facts contract shows or hides it as a fact: a core note of 1 to 4,096 characters (F20)."""
        if row.kind != _NOTE or item is None or item.superseded_seq is not None:
            return False
        note = self.reader.decode_one(row)
        return isinstance(note, Note) and note.tier == "core" and 1 <= len(note.content) <= FACT_CHARS_MAX

    def _touched_roots(self, rows: Iterable[StoredEvent], items: Mapping[int, ItemRow]) -> set[int]:
        """The chains whose counts change: those of destroyed reads, and those that lose some of their versions."""
        roots: set[int] = set()
        for row in rows:
            if row.kind == _RECALL and row.body is not None:
                recall = self.reader.decode_one(row)
                if isinstance(recall, Recall):
                    roots.update(self._roots_of(recall.recalled))
        gone = set(items)
        for item in items.values():
            chain = {version.seq for version in self._chain_of(item)}
            if not chain <= gone:
                roots.update({item.root_seq, min(chain - gone)})
        return roots

    def _roots_of(self, targets: Sequence[UUID]) -> set[int]:
        events = self._tx.find_events([target.bytes for target in targets])
        return {item.root_seq for item in self._tx.find_items([row.seq for row in events.values()]).values()}

    def _chain_of(self, item: ItemRow) -> list[ItemRow]:
        if item.key_hash is None:
            return [item]
        return [version for version in self._tx.find_by_key(item.key_hash) if version.root_seq == item.root_seq]

    def _mend_chains(self, gone: Iterable[ItemRow]) -> None:
        """Where a chain lost its first version, let the others count from their oldest one."""
        for item in gone:
            if item.seq != item.root_seq or item.key_hash is None:
                continue
            rest = [version for version in self._tx.find_by_key(item.key_hash) if version.root_seq == item.root_seq]
            if rest:
                oldest = rest[0]
                self._tx.apply([MoveRoots([(version.seq, oldest.seq, oldest.timestamp_us) for version in rest])])

    def _recount(self, roots: set[int]) -> None:
        """Count the uses of these chains anew, from every Recall that still has its content."""
        if not roots:
            return
        times: Counter[int] = Counter()
        last: dict[int, int] = {}
        for row in read_in_chunks(self._tx, EventFilter(kinds={_RECALL})):
            if row.body is None:
                continue
            recall = self.reader.decode_one(row)
            if not isinstance(recall, Recall):
                continue
            events = self._tx.find_events([target.bytes for target in dict.fromkeys(recall.recalled)])
            items = self._tx.find_items([event.seq for event in events.values()])
            for target in recall.recalled:
                event = events.get(target.bytes)
                item = None if event is None else items.get(event.seq)
                if item is not None and item.root_seq in roots:
                    times[item.root_seq] += 1
                    last[item.root_seq] = to_us(recall.timestamp)
        self._tx.apply([SetUses([Use(root, times[root], last.get(root, 0)) for root in sorted(roots)])])

    def _receipt(
        self,
        action: Action,
        targets: tuple[UUID, ...],
        before: Head,
        after: Head,
        counts: Mapping[str, int],
        reason: str,
        requested_by: str | None,
        num_facts: int,
        *,
        whole: bool = False,
        found: bool = True,
    ) -> Receipt:
        return Receipt(
            id=self._engine.new_id(),
            action=action,
            ledger_id=before.ledger_id.hex(),
            whole_scope=whole,
            targets=targets,
            counts=dict(counts),
            head_before=head_of(before),
            head_after=head_of(after),
            state="unreachable" if found else "clean",
            at=from_us(self._engine.clock()),
            requested_by=requested_by,
            reason=reason,
            num_facts=num_facts,
        )


WHOLE_SCOPE_REASON: Final[Literal["erased"]] = "erased"
"""The reason code that the ledger keeps of a whole scope's erasure."""


def head_of(head: Head) -> LedgerHead:
    """Where a ledger stands, from its head row."""
    return LedgerHead(head.ledger_id.hex(), head.next_seq, root_of(unpack_edge(head.edge, head.next_seq)).hex())


def nothing_to_erase(engine: Engine, action: Action, reason: str, requested_by: str | None) -> Receipt:
    """The receipt for a scope without a ledger: nothing was destroyed and nothing recorded."""
    return Receipt(
        id=engine.new_id(),
        action=action,
        ledger_id=None,
        whole_scope=action == "erase",
        targets=(),
        counts={},
        head_before=None,
        head_after=None,
        state="clean",
        at=from_us(engine.clock()),
        requested_by=requested_by,
        reason=reason,
    )


def markers_of(row: StoredEvent) -> list[bytes]:
    """Bytes by which a destroyed content would be known in a file: its random salt.

    The salt stands in the row of the content and nowhere else, while words of it may also stand in content that lives.
    """
    return [] if row.salt is None else [row.salt]


def _pending_of(receipt: Receipt, head: Head) -> PendingClean:
    return PendingClean(receipt.id.bytes, head.ledger_id, to_us(receipt.at))


def _count(rows: Iterable[StoredEvent]) -> Mapping[str, int]:
    return Counter(kind_name(row.kind) for row in rows)
