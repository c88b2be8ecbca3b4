"""Events and items from the rows of one snapshot, each content checked against its digest on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, cast
from uuid import UUID

from muniment.core.canonical import (
    KIND_NUMBERS,
    SALT_BYTES,
    Envelope,
    decode_erased,
    decode_event,
    decode_links,
    digest_of,
    find_leaf,
    from_us,
)
from muniment.errors import IntegrityError
from muniment.model.event import Content, ErasedEvent, Event
from muniment.model.item import Item
from muniment.model.rows import EventFilter, ItemFilter, ItemRow, StoredEvent
from muniment.ports.storage import Snapshot

READ_CHUNK: Final = 2_000
"""Rows of one read when a whole ledger is gone through: few enough to stay in cache, enough to be quick."""


class Erasures:
    """Which events of a ledger an Erasure destroyed, by the envelopes of its Erasures."""

    def __init__(self, rows: Iterable[StoredEvent]) -> None:
        self._by_id: dict[UUID, int] = {}
        self._whole_scope_seq: int | None = None
        for row in rows:
            links = decode_links(row.links)
            for target in links.get("targets", ()):
                self._by_id.setdefault(target, row.seq)
            if links.get("whole_scope"):
                self._whole_scope_seq = row.seq

    def find_seq(self, event_id: UUID, seq: int) -> int | None:
        """The seq of the Erasure that destroyed the event of that id and seq, if one did."""
        erased = self._by_id.get(event_id)
        if erased is None and self._whole_scope_seq is not None and seq < self._whole_scope_seq:
            return self._whole_scope_seq
        return erased


class Reader:
    """One snapshot, read as events and items."""

    def __init__(self, view: Snapshot) -> None:
        self.view = view
        self._ledger_id = view.head.ledger_id

    @cached_property
    def erasures(self) -> Erasures:
        return Erasures(read_in_chunks(self.view, EventFilter(kinds={KIND_NUMBERS["erasure"]})))

    def decode(self, rows: Iterable[StoredEvent]) -> list[Event | ErasedEvent]:
        """The events of those rows, in order.

        Raises: IntegrityError for a content that does not match its digest, or that is missing without an Erasure.
        """
        decode = self.decode_one
        return [decode(row) for row in rows]

    def decode_one(self, row: StoredEvent) -> Event | ErasedEvent:
        seq, event_id, kind, recorded_us, digest, links, leaf, salt, body = row
        envelope = Envelope(seq, event_id, kind, recorded_us, digest, links)
        if find_leaf(self._ledger_id, envelope) != leaf:
            raise IntegrityError(f"the envelope of event {UUID(bytes=event_id)} is not what was written", seq=seq)
        if body is None or salt is None:
            return self._decode_erased(row)
        if len(salt) != SALT_BYTES or digest_of(salt, body) != digest:
            raise IntegrityError(
                f"the content of event {UUID(bytes=event_id)} is not what was written: its digest differs",
                seq=seq,
                expected=digest.hex(),
                found=digest_of(salt, body).hex(),
            )
        event = decode_event(kind, event_id, seq, from_us(recorded_us), links, body)
        if self.erasures.find_seq(event.id, seq) is not None:
            raise IntegrityError(f"the content of event {event.id} is there although an Erasure destroyed it", seq=seq)
        return event

    def _decode_erased(self, row: StoredEvent) -> ErasedEvent:
        erased = self.erasures.find_seq(UUID(bytes=row.event_id), row.seq)
        if erased is None:
            raise IntegrityError(
                f"the content of event {UUID(bytes=row.event_id)} is missing and no Erasure destroyed it",
                seq=row.seq,
                expected=row.digest.hex(),
            )
        return decode_erased(row.kind, row.event_id, row.seq, from_us(row.recorded_us), row.links, row.digest, erased)

    def find(self, event_id: UUID) -> Event | ErasedEvent | None:
        """The event of this ledger with that id."""
        row = self.view.find_events([event_id.bytes]).get(event_id.bytes)
        return None if row is None else self.decode_one(row)

    def find_row(self, event_id: UUID) -> StoredEvent | None:
        return self.view.find_events([event_id.bytes]).get(event_id.bytes)

    def find_content(self, seq: int) -> Content:
        """The item at that seq, which is known to be there."""
        rows = self.view.read_events(EventFilter(first=seq, last=seq), limit=1)
        if not rows:
            raise IntegrityError(f"the item at seq {seq} has no event", seq=seq)
        return cast("Content", self.decode_one(rows[0]))

    def items(self, rows: Sequence[ItemRow], at_seq: int) -> list[Item]:
        """The items of those rows as they stood after the event `at_seq`, with their use up to now."""
        uses = self.view.find_uses([row.root_seq for row in rows])
        events = self.view.find_by_seqs([row.seq for row in rows])
        out: list[Item] = []
        for row in rows:
            event = events.get(row.seq)
            if event is None:
                raise IntegrityError(f"the item at seq {row.seq} has no event", seq=row.seq)
            use = uses.get(row.root_seq)
            out.append(
                Item(
                    event=cast("Content", self.decode_one(event)),
                    created_at=from_us(row.created_us),
                    usage_count=0 if use is None else use.times,
                    last_used_at=None if use is None else from_us(use.last_used_us),
                    deleted_seq=_up_to(row.deleted_seq, at_seq),
                    superseded_seq=_up_to(row.superseded_seq, at_seq),
                    root_seq=row.root_seq,
                )
            )
        return out

    def visible_items(self, where: ItemFilter) -> Iterator[Item]:
        """The visible items that pass, oldest first, a bounded number at a time."""
        at_seq = self.view.head.next_seq
        first = where.first
        while rows := self.view.read_items(replace(where, first=first), limit=READ_CHUNK):
            yield from self.items(rows, at_seq)
            first = rows[-1].seq + 1


def _up_to(seq: int | None, at_seq: int) -> int | None:
    return None if seq is None or seq > at_seq else seq


def read_in_chunks(
    view: Snapshot, where: EventFilter, progress: Callable[[int], None] | None = None
) -> Iterator[StoredEvent]:
    """Every row of the snapshot that passes, in seq order, a bounded number at a time."""
    first = where.first
    while True:
        rows = view.read_events(replace(where, first=first), limit=READ_CHUNK)
        yield from rows
        if progress is not None:
            progress(len(rows))
        if len(rows) < READ_CHUNK:
            return
        first = rows[-1].seq + 1
