"""Whether a ledger is what was written: the tree over its envelopes, and each content against its envelope.

Source: `engine.md` E1, E2, E25.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from muniment.archive.reader import Erasures, read_in_chunks
from muniment.core.canonical import KIND_NUMBERS, Envelope, digest_of, leaf_of
from muniment.core.merkle import extend_edge, pack_edge, root_of
from muniment.model.report import LedgerHead, VerifyReport
from muniment.model.rows import EventFilter, Head, StoredEvent
from muniment.ports.storage import Snapshot

Progress = Callable[[int, int], None]
"""Called now and then with how much is done and how much there is."""


def verify_ledger(view: Snapshot, progress: Progress | None = None) -> VerifyReport:
    """Recompute every digest and leaf of a ledger, and the tree up to its head.

    It fails at the first event whose envelope, content or place is not what was written, at a content that is missing
    without an Erasure that covers it, and at a head that the events do not lead to.

    Cost: one pass over the ledger, about 5 µs an event; memory for the ids of what was erased.
    """
    head = view.head
    check = _Check(head)
    erasures = Erasures(read_in_chunks(view, EventFilter(kinds={KIND_NUMBERS["erasure"]})))
    batch: list[bytes] = []
    done = 0
    for row in read_in_chunks(view, EventFilter()):
        problem = check.add(row, erasures)
        if problem is not None:
            return check.report(bad_seq=row.seq, problem=problem)
        batch.append(row.leaf)
        if len(batch) == _BATCH:
            done += check.extend(batch)
            if progress is not None:
                progress(done, head.next_seq)
    check.extend(batch)
    if progress is not None:
        progress(head.next_seq, head.next_seq)
    return check.finish()


_BATCH = 2_000


@dataclass
class _Check:
    head: Head
    seq: int = 0
    num_erased: int = 0
    edge: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    recorded_us: int = -(2**63)

    def add(self, row: StoredEvent, erasures: Erasures) -> str | None:
        """What is wrong with the next event, if anything is."""
        expected, self.seq = self.seq, self.seq + 1
        if row.seq != expected:
            return f"event {expected} is missing: {row.seq} stands in its place"
        if row.recorded_us < self.recorded_us:
            return "it was recorded before the event ahead of it"
        self.recorded_us = row.recorded_us
        envelope = Envelope(row.seq, row.event_id, row.kind, row.recorded_us, row.digest, row.links)
        if leaf_of(self.head.ledger_id, envelope) != row.leaf:
            return "its envelope is not what was written: its leaf hash differs"
        if row.body is None or row.salt is None:
            self.num_erased += 1
            if erasures.find_seq(UUID(bytes=row.event_id)) is None:
                return "its content is missing and no Erasure destroyed it"
        elif digest_of(row.salt, row.body) != row.digest:
            return "its content is not what was written: its digest differs"
        return None

    def extend(self, batch: list[bytes]) -> int:
        """Take the leaves into the tree and empty the batch; how many there were."""
        added = len(batch)
        self.edge = extend_edge(self.edge, self.size, batch)
        self.size += added
        batch.clear()
        return added

    def finish(self) -> VerifyReport:
        """The report after the last event: do they lead to the head?"""
        if self.seq != self.head.next_seq:
            return self.report(
                bad_seq=self.seq, problem=f"the ledger ends here, its head says {self.head.next_seq} events"
            )
        if pack_edge(self.edge) != self.head.edge:
            return self.report(bad_seq=None, problem="the head's tree is not the one that the events lead to")
        return self.report()

    def report(self, *, bad_seq: int | None = None, problem: str | None = None) -> VerifyReport:
        head = LedgerHead(self.head.ledger_id.hex(), self.size, root_of(self.edge).hex())
        return VerifyReport(
            ok=problem is None,
            head=head,
            num_events=self.seq,
            num_erased=self.num_erased,
            bad_seq=bad_seq,
            problem=problem,
        )
