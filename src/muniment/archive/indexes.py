"""Scope indexes kept in memory between searches: bounded in bytes, current at every search, gone when a scope is.

One read of the head row tells whether an index is current, also when another process wrote: `next_seq` says what was
added or hidden since, `epoch` that rows disappeared and the index must be built anew.

Source: `architecture.md` section 4, `engine.md` E23.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from muniment.core.scope_index import ScopeIndex
from muniment.errors import ClosedError, IntegrityError, StorageError
from muniment.model.rows import Head, IndexRow
from muniment.ports.storage import Snapshot, Storage

CACHE_BYTES: Final = 512 * 1024**2
"""About ten scopes of 100,000 items with vectors, or 3,000 of 100."""

CHECK_EVERY_S: Final = 30.0
"""How often indexes that nobody searches are compared with their ledgers, so that what another process erased does not
stay in this one's memory for longer than a minute."""

_LOAD_ROWS: Final = 20_000


@dataclass
class _Entry:
    """The index of one ledger under one model."""

    index: ScopeIndex
    next_seq: int
    epoch: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    bytes_counted: int = 0
    """What it adds to the cache's total."""


class IndexCache:
    """The indexes of the scopes searched last. Safe from many threads."""

    def __init__(self, storage: Storage, on_stale: Callable[[bytes], None], *, bytes_max: int = CACHE_BYTES) -> None:
        """`on_stale` is told of a ledger that lost rows, so that whatever else is kept of it goes too."""
        self._storage = storage
        self._on_stale = on_stale
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._ledgers: OrderedDict[bytes, dict[int | None, _Entry]] = OrderedDict()
        """By ledger and model; the ledger searched last comes last."""
        self._bytes_used = 0
        self._timer: threading.Timer | None = None
        self._closed = False

    def find(self, view: Snapshot, model_no: int | None) -> tuple[ScopeIndex, int | None]:
        """The index of the view's ledger, and the seq to search it as of: None where it ends with the view.

        Another thread may have taken the index further than this view goes.
        """
        head = view.head
        entry = self._entry_of(head, model_no)
        with entry.lock:
            if entry.epoch < head.epoch:
                entry.index, entry.next_seq, entry.epoch = ScopeIndex(), 0, head.epoch
            changed = entry.next_seq < head.next_seq
            if changed:
                _refresh(entry.index, view, entry.next_seq, model_no)
                entry.next_seq = head.next_seq
            # As it is now: another thread may take the entry further while this one searches.
            index, ahead = entry.index.copy(), entry.next_seq > head.next_seq
        if changed:
            self._count(head.ledger_id, model_no, entry)
        return index, head.next_seq - 1 if ahead else None

    def _entry_of(self, head: Head, model_no: int | None) -> _Entry:
        with self._lock:
            entries = self._ledgers.setdefault(head.ledger_id, {})
            self._ledgers.move_to_end(head.ledger_id)
            entry = entries.get(model_no)
            if entry is None:
                entry = entries[model_no] = _Entry(ScopeIndex(), 0, head.epoch)
        self._watch()
        return entry

    def pass_over(self, ledger_id: bytes, first: int, next_seq: int) -> None:
        """Take in that the events from `first` on, up to `next_seq`, changed no item: reads recorded just now."""
        with self._lock:
            entries = list(self._ledgers.get(ledger_id, {}).values())
        for entry in entries:
            with entry.lock:
                if entry.next_seq == first:
                    entry.next_seq = next_seq

    @property
    def bytes_used(self) -> int:
        """Bytes of all indexes, as counted when each was last refreshed."""
        return self._bytes_used

    def forget(self, ledger_id: bytes) -> None:
        """Drop the indexes of a ledger."""
        with self._lock:
            self._drop(ledger_id)

    def close(self) -> None:
        """Drop everything and stop looking."""
        with self._lock:
            self._closed = True
            self._ledgers.clear()
            self._bytes_used = 0
            if self._timer is not None:
                self._timer.cancel()

    def _count(self, ledger_id: bytes, model_no: int | None, entry: _Entry) -> None:
        """Count what an index takes now, and drop what was searched longest ago until the rest fits.

        The index that is in use stays, however large.
        """
        with self._lock:
            if self._ledgers.get(ledger_id, {}).get(model_no) is not entry:
                return  # dropped meanwhile, so it counts no more
            size = entry.index.bytes_used
            self._bytes_used += size - entry.bytes_counted
            entry.bytes_counted = size
            while self._bytes_used > self._bytes_max and len(self._ledgers) > 1:
                oldest = next(iter(self._ledgers))
                if oldest == ledger_id:
                    self._ledgers.move_to_end(oldest)
                    continue
                self._drop(oldest)

    def _drop(self, ledger_id: bytes) -> None:
        """Drop the indexes of a ledger; the lock is held."""
        for entry in self._ledgers.pop(ledger_id, {}).values():
            self._bytes_used -= entry.bytes_counted

    # --- Idle indexes -------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        with self._lock:
            if self._timer is None and not self._closed and self._ledgers:
                self._timer = threading.Timer(CHECK_EVERY_S, self._check)
                self._timer.daemon = True
                self._timer.start()

    def _check(self) -> None:
        """Drop the indexes whose ledgers lost rows since, and come back later."""
        with self._lock:
            self._timer = None
            cached = [(ledger_id, entry.epoch) for ledger_id, own in self._ledgers.items() for entry in own.values()]
        for ledger_id, epoch in cached:
            if self._closed:
                return
            if self._is_stale(ledger_id, epoch):
                self._on_stale(ledger_id)
        self._watch()

    def _is_stale(self, ledger_id: bytes, epoch: int) -> bool:
        """Whether the ledger lost rows; what cannot be asked now is asked again at the next look."""
        try:
            with self._storage.snapshot(ledger_id) as view:
                return view is None or view.head.epoch != epoch
        except (StorageError, ClosedError):
            return False


def _refresh(index: ScopeIndex, view: Snapshot, first: int, model_no: int | None) -> None:
    """Take in what the ledger says from the seq `first` on: deaths of older items, and new items as they stand."""
    for died_seq, dead in groupby(view.read_deaths(first), key=lambda death: death[1]):
        index.mark_died([seq for seq, _ in dead], died_seq)
    while True:
        rows: list[IndexRow] = view.read_index_rows(first, model_no=model_no, limit=_LOAD_ROWS)
        try:
            index.extend(rows)
        except (TypeError, ValueError) as error:
            raise IntegrityError(
                f"the items from seq {first} on are not what was written: verify the archive, and `rebuild` it"
            ) from error
        if len(rows) < _LOAD_ROWS:
            return
        first = rows[-1].seq + 1
