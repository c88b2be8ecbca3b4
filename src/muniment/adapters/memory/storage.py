"""`MemoryStorage`: the storage port in dicts and lists, small, slow and obviously right.

A committed ledger is never changed again. A transaction works on a copy of it and puts the copy in its place when the
block ends, so a snapshot is nothing but a reference to the ledger that was in place when it was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock, get_ident
from typing import ClassVar, Final, TypeVar
from uuid import UUID

from muniment.errors import ClosedError, ConflictError, DuplicateEventError, StorageBusyError, StorageError, UsageError
from muniment.model.rows import (
    AddItems,
    AwaitClean,
    Change,
    CleanOutcome,
    CountUses,
    DropOtherVectors,
    DropProjections,
    EraseEvents,
    EraseLedger,
    EventFilter,
    Head,
    HideItems,
    IndexRow,
    IndexText,
    ItemFilter,
    ItemRow,
    KeepRequest,
    KeepVectors,
    ModelRow,
    MoveRoots,
    NewEvent,
    NewLedger,
    PendingClean,
    RaiseEpoch,
    ScopeRow,
    SetUses,
    StorageStats,
    StoredEvent,
    StoredRequest,
    SupersedeItem,
    TextMatches,
    UnindexText,
    Use,
    VectorRow,
)
from muniment.model.scope import Scope
from muniment.ports.storage import FULLTEXT, Snapshot, Transaction

K = TypeVar("K")
V = TypeVar("V")

BUSY_TIMEOUT_S: Final = 5.0
RECORDED_US_MIN: Final = -(2**63)
"""Before the first event: the smallest integer of 64 bits."""


@dataclass(slots=True)
class _Ledger:
    """Everything that is stored of one scope."""

    head: Head
    events: list[NewEvent] = field(default_factory=list[NewEvent])
    """Of seq 0, 1, 2 …, so that an event's index is its seq."""
    seqs: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """An event's id -> its seq."""
    erased: set[int] = field(default_factory=set[int])
    """The seqs of the events whose content is gone."""
    items: dict[int, ItemRow] = field(default_factory=dict[int, ItemRow])
    uses: dict[int, Use] = field(default_factory=dict[int, Use])
    vectors: dict[tuple[int, int], VectorRow] = field(default_factory=dict[tuple[int, int], VectorRow])
    """By seq and model."""
    requests: dict[bytes, StoredRequest] = field(default_factory=dict[bytes, StoredRequest])
    texts: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """The terms of each item, where full text is kept."""

    def copy(self) -> _Ledger:
        """A ledger that can be changed without changing this one: the rows themselves are immutable."""
        return _Ledger(
            self.head,
            list(self.events),
            dict(self.seqs),
            set(self.erased),
            dict(self.items),
            dict(self.uses),
            dict(self.vectors),
            dict(self.requests),
            dict(self.texts),
        )


class MemoryStorage:
    """An archive that lives as long as this object, for tests and as the measure of the other adapters."""

    name: ClassVar[str] = "memory"

    def __init__(self, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self._busy_timeout_s = busy_timeout_s
        self._ledgers: Mapping[Scope, _Ledger] = {}
        """In order of creation. Replaced as a whole by a commit, so that whoever holds it holds one moment."""
        self._nameless: tuple[tuple[str, _Ledger], ...] = ()
        """The ledgers of erased scopes, with the tenant they belonged to."""
        self._pending: Mapping[bytes, PendingClean] = {}
        """By receipt."""
        self._models: tuple[ModelRow, ...] = ()
        self._settings: Mapping[str, str] = {}
        self._lock = Lock()
        """Held by whoever writes; readers need no lock."""
        self._writer: int | None = None
        """The thread that holds the lock."""
        self._closed = False

    @property
    def location(self) -> str:
        return "memory://"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        del durable  # Nothing survives a crash of the process here, and nothing else can be promised.
        with self._exclusive():
            before = self._ledgers.get(scope)
            number = len(self._ledgers) + len(self._nameless) + 1
            ledger = _begin(number, fresh) if before is None else before.copy()
            view = _MemoryTransaction(ledger, self._check_open, dict(self._pending), self._text_state() != "off")
            try:
                yield view
            finally:
                view.end()
            self._check_open()
            self._pending = view.pending
            if ledger.head.erased_us is None:
                self._ledgers = {**self._ledgers, scope: ledger}
            else:
                self._ledgers = {name: other for name, other in self._ledgers.items() if name != scope}
                self._nameless = (*self._nameless, (scope.tenant, ledger))

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        """The archive, for one writing thread at a time."""
        self._check_open()
        if self._writer == get_ident():
            raise UsageError("a call inside a transaction of the same thread would wait for itself")
        if not self._lock.acquire(timeout=self._busy_timeout_s):
            raise StorageBusyError
        try:
            self._check_open()
            self._writer = get_ident()
            yield
        finally:
            self._writer = None
            self._lock.release()

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        self._check_open()
        ledger = self._ledger_with(of) if isinstance(of, bytes) else self._ledgers.get(of)
        if ledger is None:
            yield None
            return
        view = _MemorySnapshot(ledger, self._check_open)
        try:
            yield view
        finally:
            view.end()

    def _ledger_with(self, ledger_id: bytes) -> _Ledger | None:
        return next((ledger for ledger in self._every_ledger() if ledger.head.ledger_id == ledger_id), None)

    def _every_ledger(self) -> list[_Ledger]:
        return [*self._ledgers.values(), *(ledger for _, ledger in self._nameless)]

    def find_tenants(self, *, after: str | None = None, limit: int) -> list[str]:
        self._check_open()
        return [tenant for tenant in sorted(self._tenants()) if after is None or tenant > after][:limit]

    def _tenants(self) -> set[str]:
        """A tenant whose scopes are all erased is still one, until it is dropped."""
        return {scope.tenant for scope in self._ledgers} | {tenant for tenant, _ in self._nameless if tenant}

    def read_scopes(
        self, *, tenant: str | None = None, erased: bool = False, after: int = 0, limit: int
    ) -> list[ScopeRow]:
        self._check_open()
        if erased:
            rows = [_row_of(name, None, ledger.head) for name, ledger in self._nameless]
        else:
            rows = [_row_of(scope.tenant, scope.subject, ledger.head) for scope, ledger in self._ledgers.items()]
        wanted = [row for row in rows if row.scope_no > after and tenant in (None, row.tenant)]
        return sorted(wanted, key=lambda row: row.scope_no)[:limit]

    def drop_tenant(self, name: str, pending: PendingClean) -> bool:
        with self._exclusive():
            if any(scope.tenant == name for scope in self._ledgers):
                raise ConflictError(f"tenant {name!r} still has scopes: erase them first")
            found = name in self._tenants()
            if found:
                awaited = dict(self._pending)
                _insert(awaited, pending.receipt_id, pending)
                self._pending = awaited
            self._nameless = tuple(("" if tenant == name else tenant, ledger) for tenant, ledger in self._nameless)
        return found

    def find_pending(self) -> list[PendingClean]:
        self._check_open()
        return sorted(self._pending.values(), key=lambda pending: (pending.at_us, pending.receipt_id))

    def clean(self, *, markers: Sequence[bytes] = (), wait_s: float) -> CleanOutcome:
        del wait_s  # There are no files, so nothing is left of what was erased.
        with self._exclusive():
            completed = self.find_pending()
            self._pending = {}
        return CleanOutcome(
            completed=completed,
            blocked=None,
            markers_searched=len(markers),
            residue_hits=0,
            orphan_rows=0,
            free_pages=0,
            size_before=0,
            size_after=0,
        )

    def find_models(self) -> list[ModelRow]:
        self._check_open()
        return list(self._models)

    def keep_model(self, name: str, dimension: int, probe: bytes) -> ModelRow:
        with self._exclusive():
            for model in self._models:
                if model[1:] == (name, dimension, probe):
                    return model
            model = ModelRow(len(self._models) + 1, name, dimension, probe)
            self._models = (*self._models, model)
        return model

    def find_settings(self) -> Mapping[str, str]:
        self._check_open()
        return dict(self._settings)

    def keep_setting(self, name: str, value: str) -> None:
        with self._exclusive():
            self._settings = {**self._settings, name: value}

    def _text_state(self) -> str:
        return self._settings.get(FULLTEXT, "off")

    def begin_text(self, version: str) -> None:
        self._check_open()
        if self._text_state() not in (f"building {version}", f"on {version}"):
            self._forget_texts(f"building {version}")

    def finish_text(self, version: str) -> None:
        self._check_open()
        if self._text_state() == f"building {version}":
            self.keep_setting(FULLTEXT, f"on {version}")

    def drop_text(self) -> None:
        self._forget_texts("off")

    def _forget_texts(self, state: str) -> None:
        with self._exclusive():
            self._ledgers = {scope: replace(ledger, texts={}) for scope, ledger in self._ledgers.items()}
            self._settings = {**self._settings, FULLTEXT: state}

    def find_text(
        self, tenant: str, terms: Sequence[str], *, version: str, kinds: Collection[int] | None = None
    ) -> TextMatches | None:
        self._check_open()
        if self._text_state() != f"on {version}":
            return None
        ledgers = [ledger for scope, ledger in self._ledgers.items() if scope.tenant == tenant]
        items = {
            ledger.head.scope_no << 32 | row.seq: (row, ledger.texts.get(row.seq, ()))
            for ledger in ledgers
            for row in ledger.items.values()
            if _is_live(row) and (kinds is None or row.kind in kinds)
        }
        places = [sorted(place for place, (_, text) in items.items() if term in text) for term in terms]
        return TextMatches(len(items), sum(len(row.terms) // 8 for row, _ in items.values()), places)

    def stats(self) -> StorageStats:
        self._check_open()
        ledgers = self._every_ledger()
        return StorageStats(
            tenants=len(self._tenants()),
            scopes=len(self._ledgers),
            events=sum(len(ledger.events) for ledger in ledgers),
            contents=sum(len(ledger.events) - len(ledger.erased) for ledger in ledgers),
            items=sum(len(ledger.items) for ledger in ledgers),
            size_bytes=0,
        )

    def check(self) -> list[str]:
        self._check_open()
        strays = sum(len(ledger.texts.keys() - ledger.items.keys()) for ledger in self._every_ledger())
        return [f"{strays} rows of full text belong to no item"] if strays else []

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError


class _MemorySnapshot:
    """The reads of the port over one ledger."""

    def __init__(self, ledger: _Ledger, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._open_ledger: _Ledger | None = ledger

    def end(self) -> None:
        """Refuse every call from now on."""
        self._open_ledger = None

    @property
    def _ledger(self) -> _Ledger:
        self._check_open()
        if self._open_ledger is None:
            raise ClosedError("the view ended with its block")
        return self._open_ledger

    @property
    def head(self) -> Head:
        return self._ledger.head

    def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
        ledger = self._ledger
        found = [_stored(ledger, event) for event in ledger.events if _is_wanted(event, where)]
        return _cut(found, limit, newest_first)

    def count_events(self, where: EventFilter) -> int:
        return sum(_is_wanted(event, where) for event in self._ledger.events)

    def find_events(self, event_ids: Sequence[bytes]) -> Mapping[bytes, StoredEvent]:
        ledger = self._ledger
        return {
            event_id: _stored(ledger, ledger.events[ledger.seqs[event_id]])
            for event_id in event_ids
            if event_id in ledger.seqs
        }

    def count_beyond_head(self) -> int:
        ledger = self._ledger
        return len(ledger.events) - ledger.head.next_seq

    def find_seq_at(self, recorded_us: int) -> int:
        return max((event.seq for event in self._ledger.events if event.recorded_us <= recorded_us), default=-1)

    def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]:
        return _cut([row for row in self._items() if _is_wanted_item(row, where)], limit, newest_first)

    def count_items(self, where: ItemFilter) -> int:
        return sum(_is_wanted_item(row, where) for row in self._items())

    def find_items(self, seqs: Sequence[int]) -> Mapping[int, ItemRow]:
        return _pick(self._ledger.items, seqs)

    def find_by_seqs(self, seqs: Sequence[int]) -> Mapping[int, StoredEvent]:
        ledger = self._ledger
        return {seq: _stored(ledger, ledger.events[seq]) for seq in seqs if 0 <= seq < len(ledger.events)}

    def read_index_rows(self, first: int, *, model_no: int | None, limit: int) -> list[IndexRow]:
        vectors = self._ledger.vectors
        rows = [row for row in self._items() if row.seq >= first][:limit]
        return [_index_row(row, None if model_no is None else vectors.get((row.seq, model_no))) for row in rows]

    def read_deaths(self, first: int) -> list[tuple[int, int]]:
        deaths = [
            (died_seq, row.seq) for row in self._items() if row.seq < first and (died_seq := _died_seq(row)) >= first
        ]
        return [(seq, died_seq) for died_seq, seq in sorted(deaths)]

    def read_unembedded(self, first: int, *, model_no: int, limit: int) -> list[int]:
        rows = self.read_index_rows(first, model_no=model_no, limit=len(self._ledger.items))
        return [row.seq for row in rows if row.codes is None][:limit]

    def find_live_by_key(self, key_hash: int) -> list[ItemRow]:
        return [row for row in self._items() if row.key_hash == key_hash and _is_live(row)]

    def find_by_key(self, key_hash: int) -> list[ItemRow]:
        return [row for row in self._items() if row.key_hash == key_hash]

    def find_live_by_text(self, text_hash: int) -> list[ItemRow]:
        return [row for row in self._items() if row.text_hash == text_hash and _is_live(row)]

    def find_uses(self, root_seqs: Sequence[int]) -> Mapping[int, Use]:
        return _pick(self._ledger.uses, root_seqs)

    def find_request(self, request_hash: bytes) -> StoredRequest | None:
        return self._ledger.requests.get(request_hash)

    def _items(self) -> list[ItemRow]:
        """Every item in the order of its seq."""
        return [row for _, row in sorted(self._ledger.items.items())]


class _MemoryTransaction(_MemorySnapshot):
    """A snapshot of a copy, and the writes that change this copy."""

    def __init__(
        self, ledger: _Ledger, check_open: Callable[[], None], pending: dict[bytes, PendingClean], keeps_text: bool
    ) -> None:
        super().__init__(ledger, check_open)
        self.keeps_text = keeps_text
        self.pending = pending
        """What waits for a clean step, of the whole archive."""

    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        ledger = self._ledger
        next_seq = ledger.head.next_seq
        if [event.seq for event in events] != list(range(next_seq, next_seq + len(events))):
            raise UsageError(f"the seqs of appended events must follow each other from {next_seq} on")
        seqs = dict(ledger.seqs)
        for event in events:
            if event.event_id in seqs:
                raise DuplicateEventError(str(UUID(bytes=event.event_id)))
            seqs[event.event_id] = event.seq
        ledger.seqs = seqs
        ledger.events.extend(events)
        ledger.head = replace(
            ledger.head,
            next_seq=len(ledger.events),
            edge=edge,
            recorded_us=events[-1].recorded_us if events else ledger.head.recorded_us,
        )

    def apply(self, changes: Sequence[Change]) -> None:
        ledger = self._ledger
        for change in changes:
            if self.keeps_text or not isinstance(change, IndexText):
                _apply(ledger, self.pending, change)


# --- Pure parts -------------------------------------------------------------------------------------------------------


def _begin(scope_no: int, fresh: NewLedger) -> _Ledger:
    return _Ledger(
        Head(
            scope_no=scope_no,
            ledger_id=fresh.ledger_id,
            next_seq=0,
            edge=b"",
            epoch=0,
            salt=fresh.salt,
            recorded_us=RECORDED_US_MIN,
            erased_us=None,
        )
    )


def _apply(ledger: _Ledger, awaited: dict[bytes, PendingClean], change: Change) -> None:
    match change:
        case AddItems(rows):
            for row in rows:
                _insert(ledger.items, row.seq, row)
        case IndexText(texts):
            for text in texts:
                ledger.texts.setdefault(text.seq, tuple(text.terms))
        case UnindexText(texts):
            for text in texts:
                ledger.texts.pop(text.seq, None)
        case HideItems(seqs, at_seq):
            for row in _pick(ledger.items, seqs).values():
                if row.deleted_seq is None:
                    ledger.items[row.seq] = row._replace(deleted_seq=at_seq)
        case SupersedeItem(seq, by_seq):
            for row in _pick(ledger.items, [seq]).values():
                ledger.items[seq] = row._replace(superseded_seq=by_seq)
        case MoveRoots(moves):
            for seq, root_seq, created_us in moves:
                for row in _pick(ledger.items, [seq]).values():
                    ledger.items[seq] = row._replace(root_seq=root_seq, created_us=created_us)
        case CountUses(uses):
            for use in uses:
                before = ledger.uses.get(use.root_seq)
                times = use.times if before is None else before.times + use.times
                ledger.uses[use.root_seq] = use._replace(times=times)
        case SetUses(uses):
            for use in uses:
                ledger.uses.pop(use.root_seq, None)
                if use.times:
                    ledger.uses[use.root_seq] = use
        case KeepRequest(request):
            _insert(ledger.requests, request.request_hash, request)
        case KeepVectors(vectors):
            ledger.vectors.update({(row.seq, row.model_no): row for row in vectors})
        case DropOtherVectors(model_no):
            ledger.vectors = {key: row for key, row in ledger.vectors.items() if row.model_no == model_no}
            _raise_epoch(ledger)
        case RaiseEpoch():
            _raise_epoch(ledger)
        case AwaitClean(pending):
            _insert(awaited, pending.receipt_id, pending)
        case DropProjections():
            ledger.items.clear()
            ledger.uses.clear()
            _raise_epoch(ledger)
        case EraseEvents(events):
            for seq, _ in events:
                _erase(ledger, seq)
            _raise_epoch(ledger)
        case EraseLedger(at_us):
            _erase_all(ledger, at_us)


def _raise_epoch(ledger: _Ledger) -> None:
    ledger.head = replace(ledger.head, epoch=ledger.head.epoch + 1)


def _erase(ledger: _Ledger, seq: int) -> None:
    """Destroy one content and every row that was made from it."""
    if not 0 <= seq < len(ledger.events):
        return
    ledger.erased.add(seq)
    ledger.events[seq] = ledger.events[seq]._replace(salt=b"", body=b"", session_hash=None)
    ledger.items.pop(seq, None)
    ledger.uses.pop(seq, None)
    ledger.vectors = {key: row for key, row in ledger.vectors.items() if row.seq != seq}
    for request in list(ledger.requests.values()):
        if request.first_seq <= seq < request.first_seq + request.num_events:
            ledger.requests[request.request_hash] = request._replace(fingerprint=b"")


def _erase_all(ledger: _Ledger, at_us: int) -> None:
    """Destroy what is there; what is appended afterwards, the Erasure itself, keeps its content."""
    for event in list(ledger.events):
        _erase(ledger, event.seq)
    for rows in (ledger.items, ledger.uses, ledger.vectors, ledger.requests):
        rows.clear()
    ledger.head = replace(ledger.head, salt=b"", erased_us=at_us)
    _raise_epoch(ledger)


def _insert(rows: dict[K, V], key: K, row: V) -> None:
    """What a primary key does in a database."""
    if key in rows:
        raise StorageError(f"{type(row).__name__} {key!r} is there already") from KeyError(key)
    rows[key] = row


def _pick(rows: Mapping[K, V], keys: Iterable[K]) -> dict[K, V]:
    return {key: rows[key] for key in keys if key in rows}


def _cut(rows: list[V], limit: int, newest_first: bool) -> list[V]:
    return (rows[::-1] if newest_first else rows)[:limit]


def _stored(ledger: _Ledger, event: NewEvent) -> StoredEvent:
    stored = StoredEvent(*event[:-1])
    return stored._replace(salt=None, body=None) if event.seq in ledger.erased else stored


def _row_of(tenant: str, subject: str | None, head: Head) -> ScopeRow:
    return ScopeRow(head.scope_no, tenant, subject, head.ledger_id, head.next_seq, head.recorded_us, head.erased_us)


def _is_wanted(event: NewEvent, where: EventFilter) -> bool:
    return (
        where.first <= event.seq
        and (where.last is None or event.seq <= where.last)
        and (where.kinds is None or event.kind in where.kinds)
        and (where.session_hash is None or event.session_hash == where.session_hash)
    )


def _is_wanted_item(row: ItemRow, where: ItemFilter) -> bool:
    return (
        where.first <= row.seq
        and (where.last is None or row.seq <= where.last)
        and (where.at_seq is None or row.seq <= where.at_seq)
        and (where.kinds is None or row.kind in where.kinds)
        and (where.tiers is None or row.tier in where.tiers)
        and (where.retained_until_us is None or _is_expired(row, where.retained_until_us))
        and (where.hidden or not (_is_past(row.deleted_seq, where) or _is_past(row.superseded_seq, where)))
    )


def _is_expired(row: ItemRow, moment_us: int) -> bool:
    return row.retain_us is not None and row.retain_us <= moment_us


def _is_past(seq: int | None, where: ItemFilter) -> bool:
    """Whether there is such an event, and it is not after the moment that is looked at."""
    return seq is not None and (where.at_seq is None or seq <= where.at_seq)


def _died_seq(row: ItemRow) -> int:
    """The first event that hid it, or -1."""
    return min((seq for seq in (row.deleted_seq, row.superseded_seq) if seq is not None), default=-1)


def _index_row(row: ItemRow, vector: VectorRow | None) -> IndexRow:
    return IndexRow(
        row.seq,
        row.kind,
        row.tier,
        row.timestamp_us,
        row.session_hash or 0,
        row.speaker_hash or 0,
        _died_seq(row),
        row.terms,
        None if vector is None else vector.codes,
    )


def _is_live(row: ItemRow) -> bool:
    return row.deleted_seq is None and row.superseded_seq is None
