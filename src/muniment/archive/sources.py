"""What listings read from: the events and the items of one ledger, pinned to the point at which they were asked for."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from muniment.archive.engine import Engine
from muniment.archive.reader import Reader
from muniment.errors import ConflictError
from muniment.model.event import ErasedEvent, Event
from muniment.model.item import Item
from muniment.model.rows import EventFilter, ItemFilter
from muniment.model.scope import Scope
from muniment.ports.storage import Snapshot


@dataclass(frozen=True)
class LedgerSource:
    """A range of one ledger; `ledger_id` is empty where the scope has none."""

    engine: Engine
    address: Scope | bytes
    ledger_id: bytes
    first: int
    last: int

    @contextmanager
    def opened(self) -> Generator[Snapshot | None]:
        """A snapshot of the same ledger, or None where there was none.

        Raises: ConflictError if the ledger was erased and replaced meanwhile.
        """
        with self.engine.storage.snapshot(self.address) as view:
            if not self.ledger_id:
                yield None
                return
            if view is None or view.head.ledger_id != self.ledger_id:
                raise ConflictError(
                    "ledger replaced: the scope was erased while it was read",
                    expected=self.ledger_id.hex(),
                    actual=None if view is None else view.head.ledger_id.hex(),
                )
            yield view


@dataclass(frozen=True)
class EventSource(LedgerSource):
    """Events in seq order, erased ones as what is left of them."""

    kinds: Collection[int] | None = None
    session_id: str | None = None

    @property
    def fingerprint(self) -> int:
        return _checksum(self.kinds and sorted(self.kinds), self.session_id)

    def count(self) -> int:
        with self.opened() as view:
            return 0 if view is None else view.count_events(self._filter(view, self.first, self.last))

    def read(
        self, first: int, last: int, limit: int, newest_first: bool
    ) -> tuple[list[Event | ErasedEvent], int | None]:
        with self.opened() as view:
            if view is None or last < first:
                return [], None
            where = self._filter(view, first, last)
            rows = view.read_events(where, limit=limit, newest_first=newest_first)
            events = Reader(view).decode(rows)
        following = _following([row.seq for row in rows], limit, first, last, newest_first)
        return [event for event in events if self._belongs(event)], following

    def _filter(self, view: Snapshot, first: int, last: int) -> EventFilter:
        session_hash = self.engine.hashes_of(view.head).session(self.session_id)
        return EventFilter(first=first, last=last, kinds=self.kinds, session_hash=session_hash)

    def _belongs(self, event: Event | ErasedEvent) -> bool:
        """A session is found by its hash; should two ever share one, only the session asked for is handed out."""
        if self.session_id is None:
            return True
        return not isinstance(event, ErasedEvent) and event.session_id == self.session_id


@dataclass(frozen=True)
class ItemSource(LedgerSource):
    """Items in seq order, as they stood after the event `at_seq`."""

    at_seq: int = -1
    kinds: Collection[int] | None = None
    tiers: Collection[int] | None = None
    hidden: bool = False

    @property
    def fingerprint(self) -> int:
        return _checksum(self.at_seq, self.kinds and sorted(self.kinds), self.tiers and sorted(self.tiers), self.hidden)

    def count(self) -> int:
        with self.opened() as view:
            return 0 if view is None else view.count_items(self._filter())

    def read(self, first: int, last: int, limit: int, newest_first: bool) -> tuple[list[Item], int | None]:
        with self.opened() as view:
            if view is None or last < first:
                return [], None
            where = replace(self._filter(), first=first, last=last)
            rows = view.read_items(where, limit=limit, newest_first=newest_first)
            items = Reader(view).items(rows, self.at_seq)
        return items, _following([row.seq for row in rows], limit, first, last, newest_first)

    def _filter(self) -> ItemFilter:
        return ItemFilter(
            first=self.first,
            last=self.last,
            at_seq=self.at_seq,
            kinds=self.kinds,
            tiers=self.tiers,
            hidden=self.hidden,
        )


def _following(seqs: list[int], limit: int, first: int, last: int, newest_first: bool) -> int | None:
    """The seq to go on from, or None when the range is read."""
    if len(seqs) < limit:
        return None
    following = seqs[-1] - 1 if newest_first else seqs[-1] + 1
    return following if first <= following <= last else None


def _checksum(*parts: object) -> int:
    return zlib.crc32(repr(parts).encode())
