"""Whether an archive bears out a receipt: the ledger, its tree before and after, and that the content is gone.

Source: `engine.md` E2, E21, E25.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from muniment.archive.archive import Archive
from muniment.archive.reader import read_in_chunks
from muniment.core.canonical import KIND_NUMBERS, Envelope, decode_links, find_leaf, kind_name
from muniment.core.merkle import EMPTY_ROOT, extend_edge, root_of
from muniment.model.receipt import Receipt
from muniment.model.report import LedgerHead
from muniment.model.rows import EventFilter, StoredEvent
from muniment.ports.storage import Snapshot

_ERASURE: Final = KIND_NUMBERS["erasure"]
_DELETION: Final = KIND_NUMBERS["deletion"]


@dataclass(frozen=True, slots=True)
class ReceiptCheck:
    """What the archive says about a receipt; `bool()` is `ok`."""

    receipt: Receipt
    problems: tuple[str, ...]
    """What of the receipt is not so."""
    waits: bool
    """Whether a clean step still has to be run: the content is unreachable, but bytes of it may stand in the files."""

    @property
    def ok(self) -> bool:
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


def check_receipt(archive: Archive, receipt: Receipt) -> ReceiptCheck:
    """Compare a receipt with the archive: what it says was destroyed is gone, and the ledger says so too.

    The ledger is there; the roots before and after are those of its tree at these sizes, recomputed from the envelopes;
    what stands between the two is an Erasure that covers every target; no target has content; and what is said to be
    clean waits for no clean step. The bytes of the files are not searched: what was in them is not known any more.

    Cost: one pass over the ledger up to the later head, about 5 µs an event; writes nothing.
    """
    waits = receipt.id in archive.pending()
    problems: list[str] = []
    if waits and receipt.state == "clean":
        problems.append("it says clean, and the archive still waits to be cleaned of it")
    problems.extend(_check_ledger(archive, receipt))
    return ReceiptCheck(receipt, tuple(problems), waits)


def _check_ledger(archive: Archive, receipt: Receipt) -> list[str]:
    if receipt.ledger_id is None:
        told = receipt.count or receipt.targets or receipt.head_before or receipt.head_after
        return ["it names no ledger, and yet what was destroyed in it"] if told else []
    try:
        address = bytes.fromhex(receipt.ledger_id)
    except ValueError:
        return [f"{receipt.ledger_id!r} is not the id of a ledger"]
    with archive.storage.snapshot(address) as view:
        if view is None:
            return [f"there is no ledger {receipt.ledger_id} in this archive"]
        return list(_check_view(view, receipt))


def _check_view(view: Snapshot, receipt: Receipt) -> Iterator[str]:
    before, after = receipt.head_before, receipt.head_after
    if before is None or after is None:
        yield "it has no head of the ledger before, or none after"
        return
    problem = _find_wrong_head(view, receipt.ledger_id, (before, after))
    if problem is not None:
        yield problem
        return
    written = list(read_in_chunks(view, EventFilter(first=before.size, last=after.size - 1)))
    if receipt.state == "hidden":
        yield from _check_targets(view, receipt, _named_by(written, _DELETION), gone=False)
    elif receipt.whole_scope:
        yield from _check_whole(view, receipt, before, written)
    else:
        yield from _check_targets(view, receipt, _named_by(written, _ERASURE), gone=True)


# --- The tree ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Tree:
    """A tree that grows leaf by leaf."""

    edge: list[bytes] = field(default_factory=list[bytes])
    size: int = 0

    def extend(self, leaves: Sequence[bytes]) -> None:
        self.edge = extend_edge(self.edge, self.size, leaves)
        self.size += len(leaves)

    @property
    def root(self) -> bytes:
        return root_of(self.edge) if self.size else EMPTY_ROOT


def _find_wrong_head(view: Snapshot, ledger_id: str | None, heads: tuple[LedgerHead, LedgerHead]) -> str | None:
    """What is wrong with the first head that the ledger did not have at that size; None if it had both."""
    tree = _Tree()
    for name, head in zip(("before", "after"), heads, strict=True):
        if head.ledger_id != ledger_id:
            return f"the head {name} is one of another ledger"
        if not tree.size <= head.size <= view.head.next_seq:
            return f"the head {name} has {head.size} events, and the ledger {view.head.next_seq}"
        leaves: list[bytes] = []
        for row in read_in_chunks(view, EventFilter(first=tree.size, last=head.size - 1)):
            if row.seq != tree.size + len(leaves) or _leaf(view, row) != row.leaf:
                return f"the ledger is not what was written at event {row.seq}: run `muniment verify`"
            leaves.append(row.leaf)
        tree.extend(leaves)
        if tree.size != head.size or tree.root.hex() != head.root:
            return f"the head {name} is not one that the ledger had: its root at {head.size} events is another"
    return None


def _leaf(view: Snapshot, row: StoredEvent) -> bytes | None:
    envelope = Envelope(row.seq, row.event_id, row.kind, row.recorded_us, row.digest, row.links)
    return find_leaf(view.head.ledger_id, envelope)


# --- What was destroyed -----------------------------------------------------------------------------------------------


def _named_by(rows: Sequence[StoredEvent], kind: int) -> frozenset[UUID]:
    """What the Erasures or the Deletions among these events name."""
    return frozenset(target for row in rows if row.kind == kind for target in decode_links(row.links)["targets"])


def _check_targets(view: Snapshot, receipt: Receipt, covered: frozenset[UUID], *, gone: bool) -> Iterator[str]:
    rows = view.find_events([target.bytes for target in receipt.targets])
    act = "Erasure" if gone else "Deletion"
    for target in receipt.targets:
        row = rows.get(target.bytes)
        if row is None:
            yield f"target {target} is no event of the ledger"
        elif target not in covered:
            yield f"no {act} of that time names target {target}"
        elif gone and row.body is not None:
            yield f"target {target} still has its content"
    unnamed = len(covered) - len(covered.intersection(receipt.targets))
    if unnamed:
        yield f"what was written names {unnamed} targets that the receipt leaves out"
    found: Mapping[str, int] = Counter(kind_name(row.kind) for row in rows.values())
    if dict(found) != {kind: number for kind, number in receipt.counts.items() if number}:
        yield "its counts are not those of its targets"


def _check_whole(view: Snapshot, receipt: Receipt, before: LedgerHead, written: Sequence[StoredEvent]) -> Iterator[str]:
    if view.head.erased_us is None:
        yield "the scope of the ledger is not erased"
    links = [decode_links(row.links) for row in written if row.kind == _ERASURE]
    whole = next((link for link in links if link["whole_scope"]), None)
    if whole is None:
        yield "no Erasure of the whole scope stands behind the head before"
    elif whole["count"] != receipt.count:
        yield f"it counts {receipt.count} events, and the Erasure {whole['count']}"
    for row in read_in_chunks(view, EventFilter(last=before.size - 1)):
        if row.body is not None:
            yield f"event {row.seq} still has its content"
            return
