"""The storage port: ledgers of events, their contents and their projections, in transactions of one scope.

Storage stores and finds rows; what a row means is decided in `core`. Texts, ids and times cross this border as plain
values (bytes, integers), and a change of a projection crosses it as data.

Laws, each proved on every adapter by `muniment.testing.storage`:

1. **Atomic.** What a transaction wrote is there as a whole when the block ends, and not at all when it raises.
2. **Gap-free.** The seqs of a ledger are 0, 1, 2 …, under concurrent threads and processes; a failed transaction uses
   none up.
3. **No late arrivals.** A reader that has seen seq n never sees a smaller one appear later.
4. **Once.** An event id is in a ledger at most once; a second one is a `DuplicateEventError` and nothing is stored.
5. **Nothing is changed.** A stored event is read back as it was written, for ever; no call updates or removes one.
6. **Together.** Projections move only in the transaction of the events they follow from.
7. **Apart.** No call reads or changes a row of another scope; two scopes are one only if tenant and subject are equal.
8. **One view.** A snapshot does not change while it is open.
9. **Lazy.** Reading creates nothing: a scope exists from its first committed transaction on.
10. **Durable.** With `durable=True` a transaction that returned survives a crash of the process and of the machine;
    without, a crash of the process.
11. **Closed is closed.** Every call after `close` is a `ClosedError`.
12. **Typed.** What the driver raises arrives as a `StorageError`, its cause attached.
13. **Gone.** What was erased is in no row of any table when the transaction commits, and in no byte of any file when a
    clean step has completed its receipt; the envelopes stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Final, Protocol, runtime_checkable

from muniment.model.rows import (
    Change,
    CleanOutcome,
    EventFilter,
    Head,
    IndexRow,
    ItemFilter,
    ItemRow,
    ModelRow,
    NewEvent,
    NewLedger,
    PendingClean,
    ScopeRow,
    StorageStats,
    StoredEvent,
    StoredRequest,
    TextMatches,
    Use,
)
from muniment.model.scope import Scope

FULLTEXT: Final = "fulltext"
"""The setting that says how full text stands: absent or `off`, `building <version>`, `on <version>`."""


class Snapshot(Protocol):
    """A view of one ledger that does not change while it is open."""

    @property
    def head(self) -> Head: ...

    def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
        """The first `limit` of those events, in seq order, or from the newest back."""
        ...

    def count_events(self, where: EventFilter) -> int: ...

    def find_events(self, event_ids: Sequence[bytes]) -> Mapping[bytes, StoredEvent]:
        """The events of this ledger that have one of these ids."""
        ...

    def count_beyond_head(self) -> int:
        """Rows of this ledger at or beyond `next_seq`, where nothing may be: 0 unless somebody meddled."""
        ...

    def find_seq_at(self, recorded_us: int) -> int:
        """The greatest seq recorded at or before that instant, or -1."""
        ...

    def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]: ...

    def count_items(self, where: ItemFilter) -> int: ...

    def find_items(self, seqs: Sequence[int]) -> Mapping[int, ItemRow]: ...

    def find_by_seqs(self, seqs: Sequence[int]) -> Mapping[int, StoredEvent]: ...

    def read_index_rows(self, first: int, *, model_no: int | None, limit: int) -> list[IndexRow]:
        """The items from that seq on as they stand in this view, with their vectors under that model."""
        ...

    def read_deaths(self, first: int) -> list[tuple[int, int]]:
        """Of the items before `first`, those that an event from `first` on hid first: their seq and that event's."""
        ...

    def read_unembedded(self, first: int, *, model_no: int, limit: int) -> list[int]:
        """The seqs of items from `first` on that have no vector under that model."""
        ...

    def find_live_by_key(self, key_hash: int) -> list[ItemRow]:
        """The notes neither deleted nor superseded whose key has that hash."""
        ...

    def find_by_key(self, key_hash: int) -> list[ItemRow]:
        """Every note that ever held a key with that hash, oldest first."""
        ...

    def find_live_by_text(self, text_hash: int) -> list[ItemRow]:
        """The notes neither deleted nor superseded whose tier and text have that hash, oldest first."""
        ...

    def find_uses(self, root_seqs: Sequence[int]) -> Mapping[int, Use]: ...

    def find_request(self, request_hash: bytes) -> StoredRequest | None: ...


class Transaction(Snapshot, Protocol):
    """The one writer of a ledger: its head is locked until the block ends."""

    @property
    def keeps_text(self) -> bool:
        """Whether the archive keeps full text, so that `IndexText` and `UnindexText` mean something."""
        ...

    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        """Store the events at the end of the ledger and move its head.

        Raises: DuplicateEventError for an id that the ledger already holds; UsageError for seqs that do not follow.
        """
        ...

    def apply(self, changes: Sequence[Change]) -> None:
        """Move the projections, in the order given."""
        ...


@runtime_checkable
class Storage(Protocol):
    """One opened archive."""

    name: ClassVar[str]
    """The adapter's technology, for reports."""

    @property
    def location(self) -> str:
        """Where the archive is, without secrets."""
        ...

    def transaction(
        self, scope: Scope, fresh: NewLedger, *, durable: bool = True
    ) -> AbstractContextManager[Transaction]:
        """Lock the scope's head, beginning its ledger with `fresh` if it has none; commit when the block ends.

        Raises: StorageBusyError when others hold the lock for longer than the timeout; UsageError inside another
                transaction of the same thread.
        """
        ...

    def snapshot(self, of: Scope | bytes) -> AbstractContextManager[Snapshot | None]:
        """A view of a scope's ledger, or of the ledger with that id; None where there is none.

        Not inside a transaction of the same thread on a private database, which has one connection.
        """
        ...

    def find_tenants(self, *, after: str | None = None, limit: int) -> list[str]:
        """Names of tenants in code point order, after that name."""
        ...

    def read_scopes(
        self, *, tenant: str | None = None, erased: bool = False, after: int = 0, limit: int
    ) -> list[ScopeRow]:
        """The scopes with a number above `after`, in rising number: the named ones, or the ledgers of erased ones."""
        ...

    def drop_tenant(self, name: str, pending: PendingClean) -> bool:
        """Destroy the name of a tenant that has no scope left, which then awaits a clean step; whether there was one.

        Raises: ConflictError if it has scopes.
        """
        ...

    def find_pending(self) -> list[PendingClean]:
        """The erasures whose bytes the files may still hold, oldest first."""
        ...

    def clean(self, *, markers: Sequence[bytes] = (), wait_s: float) -> CleanOutcome:
        """Leave no byte of what was erased before, waiting up to `wait_s` for readers to let go.

        `markers` are bytes that were destroyed, to be searched for afterwards.

        Cost: rewrites the files, about 5 s per GB.
        """
        ...

    def find_models(self) -> list[ModelRow]:
        """Every embedding model that vectors were stored under."""
        ...

    def keep_model(self, name: str, dimension: int, probe: bytes) -> ModelRow:
        """The row of that model, new if it is not there."""
        ...

    def find_settings(self) -> Mapping[str, str]: ...

    def keep_setting(self, name: str, value: str) -> None: ...

    def begin_text(self, version: str) -> None:
        """Keep full text from now on, by the terms of that version of the analyser; `FULLTEXT` says `building`.

        What was kept under another version is forgotten; under the same one, nothing happens.
        """
        ...

    def finish_text(self, version: str) -> None:
        """Take note that every item is in the full text of that version; `FULLTEXT` says `on`."""
        ...

    def drop_text(self) -> None:
        """Forget the full text and keep none from now on; `FULLTEXT` says `off`."""
        ...

    def find_text(
        self, tenant: str, terms: Sequence[str], *, version: str, kinds: Collection[int] | None = None
    ) -> TextMatches | None:
        """Which visible items of the tenant hold each term; None without a finished full text of that version."""
        ...

    def stats(self) -> StorageStats: ...

    def check(self) -> list[str]:
        """What the storage itself finds wrong with its files; empty when all is well. Cost: reads everything."""
        ...

    def close(self) -> None: ...
