"""Storages that are broken on purpose, each in one way, around any storage that is sound.

`breaks` names the tests that have to find it: a law (`law_04`) or the words of a method (`apply_hide`). A mutant that
no test finds means that the suite would let an adapter with that fault pass.
"""

# `_passes_calls_on` writes the methods that pyright takes for missing.
# pyright: reportAbstractUsage=false

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeVar, cast

from muniment.errors import (
    ConflictError,
    DuplicateEventError,
    MunimentError,
    StorageBusyError,
    StorageError,
    UsageError,
)
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
    VectorRow,
)
from muniment.model.scope import Scope
from muniment.ports.clock import system_entropy
from muniment.ports.storage import Snapshot, Storage, Transaction
from muniment.testing.picture import ALL
from muniment.testing.rows import INT64_MAX

V = TypeVar("V", bound=type[Any])


def _passes_calls_on(protocol: type[object]) -> Callable[[V], V]:
    """Give a class every member of the protocol that it does not define: what `inner` answers."""

    def decorate(kind: V) -> V:
        for name, member in [item for base in protocol.__mro__ for item in vars(base).items()]:
            if not name.startswith("_") and name not in vars(kind):
                setattr(kind, name, _property_of(name) if isinstance(member, property) else _call_of(name))
        return kind

    return decorate


def _property_of(name: str) -> property:
    return property(lambda self: getattr(self.inner, name))


def _call_of(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner, name)(*args, **kwargs)

    return call


@_passes_calls_on(Transaction)
class ViewOver(Transaction):
    """A transaction, or a snapshot, that passes every call on."""

    def __init__(self, inner: Snapshot) -> None:
        self._inner = cast("Transaction", inner)

    @property
    def inner(self) -> Transaction:
        return self._inner


@_passes_calls_on(Storage)
class StorageOver(Storage):
    """A storage that passes every call on: by itself as sound as the one inside."""

    name: ClassVar[str] = "mutant"
    breaks: ClassVar[str] = ""
    View: ClassVar[type[ViewOver]] = ViewOver

    def __init__(self, inner: Storage) -> None:
        self.inner = inner

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            yield self.View(tx)

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(of) as snapshot:
            yield None if snapshot is None else self.View(snapshot)


# --- 1: Atomic --------------------------------------------------------------------------------------------------------


class CommitsWhatFailed(StorageOver):
    """Commits a transaction whose block raised."""

    breaks = "law_01"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        errors: list[BaseException] = []
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            try:
                yield tx
            except BaseException as error:  # noqa: BLE001 (being wrong about it is the point)
                errors.append(error)
        if errors:
            raise errors[0]


class CommitsEachCall(StorageOver):
    """Gives every append and every apply a transaction of its own."""

    breaks = "law_01"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable):
            pass
        yield _Autocommit(self.inner, scope, fresh)


class _Autocommit(ViewOver):
    def __init__(self, storage: Storage, scope: Scope, fresh: NewLedger) -> None:
        self._storage, self._scope, self._fresh = storage, scope, fresh

    @property
    def head(self) -> Head:
        with self._storage.snapshot(self._scope) as snapshot:
            return cast("Snapshot", snapshot).head

    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        with self._storage.transaction(self._scope, self._fresh) as tx:
            tx.append(events, edge)

    def apply(self, changes: Sequence[Change]) -> None:
        with self._storage.transaction(self._scope, self._fresh) as tx:
            tx.apply(changes)


class WrapsErrors(StorageOver):
    """Turns the caller's own errors into storage errors."""

    breaks = "law_01"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        try:
            with self.inner.transaction(scope, fresh, durable=durable) as tx:
                yield tx
        except MunimentError:
            raise
        except Exception as error:
            raise StorageError(str(error)) from error


class ForgetsTheUses(StorageOver):
    """Leaves a part of a transaction out."""

    breaks = "law_01"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([change for change in changes if not isinstance(change, CountUses)])


# --- 2: Gap-free ------------------------------------------------------------------------------------------------------


class UsesUpSeqs(StorageOver):
    """Leaves an event behind where a transaction failed, as a sequence of a database leaves a gap."""

    breaks = "law_02"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        try:
            with self.inner.transaction(scope, fresh, durable=durable) as tx:
                yield tx
        except RuntimeError:
            with self.inner.transaction(scope, fresh) as tx:
                _append_filler(tx)
            raise


def _append_filler(tx: Transaction) -> None:
    filler = NewEvent(
        tx.head.next_seq, system_entropy(16), 1, tx.head.recorded_us, b"d" * 32, b"", b"l" * 32, b"s" * 16, b"{}", None
    )
    tx.append([filler], tx.head.edge)


class _Renumbers(ViewOver):
    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        first = self.head.next_seq
        self.inner.append([event._replace(seq=seq) for seq, event in enumerate(events, first)], edge)


class TakesAnySeq(StorageOver):
    """Numbers events itself instead of refusing seqs that do not follow."""

    breaks = "law_02"
    View = _Renumbers


class ForgetsTheEdge(StorageOver):
    """Moves the head without the edge of the tree."""

    breaks = "law_02"

    class View(ViewOver):
        def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
            self.inner.append(events, self.head.edge or edge)


class KeepsItsFirstHead(StorageOver):
    """Does not move the head of a transaction with its appends."""

    breaks = "law_02"

    class View(ViewOver):
        def __init__(self, inner: Snapshot) -> None:
            super().__init__(inner)
            self._head = inner.head

        @property
        def head(self) -> Head:
            return self._head


# --- 3: No late arrivals ----------------------------------------------------------------------------------------------


class LateArrivals(StorageOver):
    """Shows the last event but one only when another has followed, as unordered commits do."""

    breaks = "law_03"

    class View(ViewOver):
        def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
            late = self.head.next_seq - 2
            found = self.inner.read_events(where, limit=limit, newest_first=newest_first)
            return [event for event in found if event.seq != late]


# --- 4: Once ----------------------------------------------------------------------------------------------------------


class TakesDuplicates(StorageOver):
    """Stores a second event of one id under another id."""

    breaks = "law_04"

    class View(ViewOver):
        def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
            try:
                self.inner.append(events, edge)
            except DuplicateEventError:
                self.inner.append([event._replace(event_id=system_entropy(16)) for event in events], edge)


class IgnoresDuplicates(StorageOver):
    """Skips an event that is there already and says nothing, as INSERT OR IGNORE does."""

    breaks = "law_04"

    class View(_Renumbers):
        def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
            known = self.inner.find_events([event.event_id for event in events])
            super().append([event for event in events if event.event_id not in known], edge)


class StoresUpToTheDuplicate(StorageOver):
    """Stores the events before the duplicate and then raises."""

    breaks = "law_04"

    class View(ViewOver):
        def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
            for event in events:
                self.inner.append([event], edge)


class KnowsIdsEverywhere(StorageOver):
    """Refuses an id that is in the ledger of another scope."""

    breaks = "law_04"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            yield _UniqueIds(tx, self.inner)


# --- 5: Nothing is changed --------------------------------------------------------------------------------------------


class CutsBodies(StorageOver):
    """Cuts long bodies."""

    breaks = "law_05"

    class View(ViewOver):
        def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
            self.inner.append([event._replace(body=event.body[: 2**16]) for event in events], edge)


class CutsBodiesAtZero(StorageOver):
    """Takes a body for a text that ends at its first zero byte."""

    breaks = "law_05"

    class View(ViewOver):
        def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
            self.inner.append([event._replace(body=event.body.split(b"\x00")[0]) for event in events], edge)


class ErasesHiddenContent(StorageOver):
    """Withholds the content of an event that was deleted."""

    breaks = "law_05"

    class View(ViewOver):
        def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
            found = self.inner.read_events(where, limit=limit, newest_first=newest_first)
            items = self.inner.find_items([event.seq for event in found])
            hidden = {seq for seq, item in items.items() if item.deleted_seq is not None}
            return [event._replace(body=None, salt=None) if event.seq in hidden else event for event in found]


# --- 6: Together ------------------------------------------------------------------------------------------------------


class ProjectsAfterwards(StorageOver):
    """Moves the projections in a second transaction, after the events."""

    breaks = "law_06"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            view = _Postponed(tx)
            yield view
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            tx.apply(view.postponed)


class _Postponed(ViewOver):
    def __init__(self, inner: Snapshot) -> None:
        super().__init__(inner)
        self.postponed: list[Change] = []

    def apply(self, changes: Sequence[Change]) -> None:
        self.postponed += changes


class ProjectsWhatFailed(StorageOver):
    """Moves the projections of a transaction that failed."""

    breaks = "law_06"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        view: _Postponed | None = None
        try:
            with self.inner.transaction(scope, fresh, durable=durable) as tx:
                view = _Applied(tx)
                yield view
        except RuntimeError:
            if view is not None:
                with self.inner.transaction(scope, fresh) as tx:
                    tx.apply(view.postponed)
            raise


class _Applied(_Postponed):
    def apply(self, changes: Sequence[Change]) -> None:
        super().apply(changes)
        self.inner.apply(changes)


class ProjectsLate(StorageOver):
    """Shows the item of the last event when another event has followed."""

    breaks = "law_06"

    class View(ViewOver):
        def count_items(self, where: ItemFilter) -> int:
            return self.inner.count_items(replace(where, last=self.head.next_seq - 2))


# --- 7: Apart ---------------------------------------------------------------------------------------------------------


class _RenamesScopes(StorageOver):
    def rename(self, scope: Scope) -> Scope:
        raise NotImplementedError

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(self.rename(scope), fresh, durable=durable) as tx:
            yield tx

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(self.rename(of) if isinstance(of, Scope) else of) as snapshot:
            yield snapshot


class CountsTogether(_RenamesScopes):
    """Keeps one ledger for everybody."""

    breaks = "law_02"

    def rename(self, scope: Scope) -> Scope:
        return Scope("everybody", None)


class FoldsCase(_RenamesScopes):
    """Takes `A` for `a`."""

    breaks = "law_07"

    def rename(self, scope: Scope) -> Scope:
        return Scope(scope.tenant.casefold(), scope.subject and scope.subject.casefold())


class JoinsNames(_RenamesScopes):
    """Finds a scope by one text made of both names."""

    breaks = "law_07"

    def rename(self, scope: Scope) -> Scope:
        return Scope("all", f"{scope.tenant}/{scope.subject or ''}")


class NamesTheShelf(_RenamesScopes):
    """Takes the unscoped shelf for the subject `None`."""

    breaks = "law_07"

    def rename(self, scope: Scope) -> Scope:
        return Scope(scope.tenant, str(scope.subject))


class TrimsNames(_RenamesScopes):
    """Cuts white space from the end of a subject."""

    breaks = "law_07"

    def rename(self, scope: Scope) -> Scope:
        return Scope(scope.tenant, scope.subject and (scope.subject.rstrip() or "_"))


class _MatchesScopes(StorageOver):
    def matches(self, pattern: str, name: str) -> bool:
        raise NotImplementedError

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        if isinstance(of, Scope) and of.subject is not None:
            for row in self.inner.read_scopes(tenant=of.tenant, limit=ALL):
                if row.subject is not None and self.matches(of.subject, row.subject):
                    of = Scope(of.tenant, row.subject)
                    break
        with self.inner.snapshot(of) as snapshot:
            yield snapshot


class MatchesPrefixes(_MatchesScopes):
    """Finds the first subject that begins with the name."""

    breaks = "law_07"

    def matches(self, pattern: str, name: str) -> bool:
        return name.startswith(pattern)


class MatchesPatterns(_MatchesScopes):
    """Takes `_` and `%` for the wild cards of LIKE."""

    breaks = "law_07"

    def matches(self, pattern: str, name: str) -> bool:
        return re.fullmatch(re.escape(pattern).replace("_", ".").replace("%", ".*"), name) is not None


class ReadsNeighbours(StorageOver):
    """Finds an event by its id in any ledger."""

    breaks = "law_07"

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(of) as snapshot:
            yield None if snapshot is None else _EveryLedger(snapshot, self.inner)


class _EveryLedger(ViewOver):
    def __init__(self, inner: Snapshot, storage: Storage) -> None:
        super().__init__(inner)
        self._storage = storage

    def find_events(self, event_ids: Sequence[bytes]) -> Mapping[bytes, StoredEvent]:
        found: dict[bytes, StoredEvent] = {}
        for row in self._storage.read_scopes(limit=ALL):
            with self._storage.snapshot(Scope(row.tenant, row.subject)) as snapshot:
                found.update(cast("Snapshot", snapshot).find_events(event_ids))
        return found


class _UniqueIds(_EveryLedger):
    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        for event_id in self.find_events([event.event_id for event in events]):
            raise DuplicateEventError(event_id.hex())
        self.inner.append(events, edge)


class HidesEverywhere(StorageOver):
    """Applies what hides items of one ledger to the items of all."""

    breaks = "law_07"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            view = _Applied(tx)
            yield view
        hiding = [change for change in view.postponed if isinstance(change, HideItems)]
        for row in self.inner.read_scopes(limit=ALL) if hiding else ():
            with self.inner.transaction(Scope(row.tenant, row.subject), fresh) as tx:
                tx.apply(hiding)


class CarriesOver(StorageOver):
    """Lets a seq above 32 bits wrap round."""

    breaks = "law_07"

    class View(ViewOver):
        def find_items(self, seqs: Sequence[int]) -> Mapping[int, ItemRow]:
            return self.inner.find_items([seq % 2**32 for seq in seqs])


class MixesTenants(StorageOver):
    """Lists the scopes of every tenant for one."""

    breaks = "law_07"

    def read_scopes(
        self, *, tenant: str | None = None, erased: bool = False, after: int = 0, limit: int
    ) -> list[ScopeRow]:
        return self.inner.read_scopes(erased=erased, after=after, limit=limit)


# --- 8: One view ------------------------------------------------------------------------------------------------------


class _Reopening(ViewOver):
    """Opens a snapshot for a call instead of before it; all of them end with the block."""

    def __init__(self, storage: Storage, of: Scope | bytes, opened: ExitStack) -> None:
        self._storage, self._of, self._opened = storage, of, opened

    def open(self) -> Transaction:
        return cast("Transaction", self._opened.enter_context(self._storage.snapshot(self._of)))


class _ReopeningStorage(StorageOver):
    Reopening: ClassVar[type[_Reopening]] = _Reopening

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(of) as snapshot:
            there = snapshot is not None
        with ExitStack() as opened:
            yield self.Reopening(self.inner, of, opened) if there else None


class ReadsCommitted(_ReopeningStorage):
    """Answers every call of a snapshot from what is there at that moment."""

    breaks = "law_08"

    class Reopening(_Reopening):
        @property
        def inner(self) -> Transaction:
            return self.open()


class StartsLate(_ReopeningStorage):
    """Takes the moment of a snapshot at its first read instead of its start."""

    breaks = "law_08"

    class Reopening(_Reopening):
        _first: Transaction | None = None

        @property
        def inner(self) -> Transaction:
            self._first = self._first or self.open()
            return self._first


# --- 9: Lazy ----------------------------------------------------------------------------------------------------------


class CreatesOnRead(StorageOver):
    """Begins a ledger when somebody looks for it."""

    breaks = "law_09"

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        if isinstance(of, Scope):
            with self.inner.transaction(of, NewLedger(system_entropy(16), system_entropy(16))):
                pass
        with self.inner.snapshot(of) as snapshot:
            yield snapshot


class CreatesBeforeTheCommit(StorageOver):
    """Begins the ledger before the transaction that may fail."""

    breaks = "law_09"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh):
            pass
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            yield tx


class WaitsForAnEvent(StorageOver):
    """Does not begin a ledger until something is appended."""

    breaks = "law_09"

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(of) as snapshot:
            yield None if snapshot is None or snapshot.head.next_seq == 0 else snapshot


class BeginsAgain(StorageOver):
    """Takes the new random parts for those of the ledger that is there."""

    breaks = "law_09"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            yield _WithParts(tx, fresh)


class _WithParts(ViewOver):
    def __init__(self, inner: Snapshot, parts: NewLedger) -> None:
        super().__init__(inner)
        self._parts = parts

    @property
    def head(self) -> Head:
        return replace(self.inner.head, ledger_id=self._parts.ledger_id, salt=self._parts.salt)


# --- 10: Durable ------------------------------------------------------------------------------------------------------


class LosesWhatIsNotDurable(StorageOver):
    """Takes `durable=False` for leave to lose it."""

    breaks = "law_10"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            yield tx if durable else _Sink(tx)


class _Sink(ViewOver):
    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        del events, edge


# --- 11, 12: Closed, typed --------------------------------------------------------------------------------------------


class StaysOpen(StorageOver):
    """Answers after it was closed."""

    breaks = "law_11"

    def close(self) -> None:
        pass


class ReadsAfterClose(StorageOver):
    """Answers one call after it was closed."""

    breaks = "law_11"

    def check(self) -> list[str]:
        return []


class LetsTheDriverThrough(StorageOver):
    """Raises what the driver raised."""

    breaks = "law_12"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            try:
                self.inner.apply(changes)
            except StorageError as error:
                if error.__cause__ is None:
                    raise
                raise error.__cause__ from None


class HidesTheCause(StorageOver):
    """Raises a storage error without its cause."""

    breaks = "law_12"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            try:
                self.inner.apply(changes)
            except StorageError as error:
                raise StorageError(str(error)) from None


# --- 13: Gone ---------------------------------------------------------------------------------------------------------


class HidesWhatWasErased(StorageOver):
    """Takes an erasure for a deletion."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply(
                [
                    HideItems([seq for seq, _ in change.events], self.head.next_seq - 1)
                    if isinstance(change, EraseEvents)
                    else change
                    for change in changes
                ]
            )


class KeepsErasedText(StorageOver):
    """Leaves the text of what was erased in full text."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([change for change in changes if not isinstance(change, UnindexText)])


class FindsTextOfAnyKind(StorageOver):
    """Finds items by text whatever their kind."""

    breaks = "archive_finds"

    def find_text(
        self, tenant: str, terms: Sequence[str], *, version: str, kinds: Collection[int] | None = None
    ) -> TextMatches | None:
        return self.inner.find_text(tenant, terms, version=version)


class KeepsErasedItems(StorageOver):
    """Destroys contents and leaves their items."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            for change in changes:
                seqs = [seq for seq, _ in change.events] if isinstance(change, EraseEvents) else []
                items = list(self.inner.find_items(seqs).values())
                self.inner.apply([change, AddItems(items)])


class KeepsErasedUses(StorageOver):
    """Destroys contents and leaves their uses."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            for change in changes:
                seqs = [seq for seq, _ in change.events] if isinstance(change, EraseEvents) else []
                uses = list(self.inner.find_uses(seqs).values())
                self.inner.apply([change, SetUses(uses)])


class KeepsErasedVectors(StorageOver):
    """Destroys contents and leaves their vectors."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            for change in changes:
                seqs = [seq for seq, _ in change.events] if isinstance(change, EraseEvents) else []
                codes = _codes_of(self.inner, seqs)
                self.inner.apply([change, KeepVectors([VectorRow(seq, 1, code) for seq, code in codes.items()])])


def _codes_of(view: Snapshot, seqs: Sequence[int]) -> dict[int, bytes]:
    """The vectors of these items under the first model."""
    rows = view.read_index_rows(0, model_no=1, limit=ALL) if seqs else []
    return {row.seq: row.codes for row in rows if row.seq in seqs and row.codes is not None}


class KeepsFingerprints(StorageOver):
    """Leaves what was made from an erased content in a kept request."""

    breaks = "law_13"

    class View(ViewOver):
        def find_request(self, request_hash: bytes) -> StoredRequest | None:
            request = self.inner.find_request(request_hash)
            return None if request is None else request._replace(fingerprint=b"f" * 32)


class ErasesSilently(StorageOver):
    """Does not raise the epoch when rows are destroyed, so that nobody's cache notices."""

    breaks = "law_13"

    class View(ViewOver):
        @property
        def head(self) -> Head:
            return replace(self.inner.head, epoch=0)


class ErasesOneTooMany(StorageOver):
    """Destroys the content after the one that was meant."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply(
                [_with_the_next(change) if isinstance(change, EraseEvents) else change for change in changes]
            )


def _with_the_next(change: EraseEvents) -> EraseEvents:
    return EraseEvents([*change.events, *[(seq + 1, event_id) for seq, event_id in change.events[-1:]]])


class ForgetsErasedIds(StorageOver):
    """Takes a second event of an id whose first one was erased."""

    breaks = "law_13"

    class View(ViewOver):
        def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
            try:
                self.inner.append(events, edge)
            except DuplicateEventError:
                known = self.inner.find_events([event.event_id for event in events])
                if any(event.body is not None for event in known.values()):
                    raise
                self.inner.append([event._replace(event_id=system_entropy(16)) for event in events], edge)


class KeepsTheName(StorageOver):
    """Finds the ledger of an erased scope by the name that it had."""

    breaks = "law_13"

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._last: dict[Scope, bytes] = {}

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        with self.inner.transaction(scope, fresh, durable=durable) as tx:
            yield tx
            self._last[scope] = tx.head.ledger_id

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(self._last.get(of, of) if isinstance(of, Scope) else of) as snapshot:
            yield snapshot


class DropsTheLedger(StorageOver):
    """Leaves nothing of an erased ledger, not even its envelopes."""

    breaks = "law_13"

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(of) as snapshot:
            yield None if snapshot is None or snapshot.head.erased_us is not None else snapshot


class KeepsTheRequests(StorageOver):
    """Leaves the uses of an erased ledger."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            for change in changes:
                uses = list(self.inner.find_uses(range(self.head.next_seq)).values())
                self.inner.apply([change, SetUses(uses)] if isinstance(change, EraseLedger) else [change])


class ForgetsToClean(StorageOver):
    """Does not keep what waits for a clean step."""

    breaks = "law_13"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([change for change in changes if not isinstance(change, AwaitClean)])


class SaysItIsClean(StorageOver):
    """Answers that the clean step has run, and runs none."""

    breaks = "law_13"

    def clean(self, *, markers: Sequence[bytes] = (), wait_s: float) -> CleanOutcome:
        return CleanOutcome(self.inner.find_pending(), None, len(markers), 0, 0, 0, 0, 0)


class CleansInsideTransactions(StorageOver):
    """Runs a clean step whoever is writing."""

    breaks = "transaction"

    def clean(self, *, markers: Sequence[bytes] = (), wait_s: float) -> CleanOutcome:
        try:
            return self.inner.clean(markers=markers, wait_s=wait_s)
        except UsageError:
            return CleanOutcome((), None, 0, 0, 0, 0, 0, 0)


# --- Transactions -----------------------------------------------------------------------------------------------------


class TakesNestedTransactions(StorageOver):
    """Joins a transaction to the one around it."""

    breaks = "transaction"

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._current: Transaction | None = None

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        try:
            with self.inner.transaction(scope, fresh, durable=durable) as tx:
                self._current = tx
                yield tx
        except UsageError:
            if self._current is None:
                raise
            yield self._current


class FailsWhenBusy(StorageOver):
    """Does not say that the failure is only that others are writing."""

    breaks = "transaction"

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[Transaction]:
        try:
            with self.inner.transaction(scope, fresh, durable=durable) as tx:
                yield tx
        except StorageBusyError as error:
            raise StorageError(str(error)) from error


class HasNoLocation(StorageOver):
    """Does not say where the archive is."""

    breaks = "name_and_location"

    @property
    def location(self) -> str:
        return ""


# --- Reading ----------------------------------------------------------------------------------------------------------


class _ChangesFilters(ViewOver):
    def change(self, where: EventFilter) -> EventFilter:
        return where

    def change_item(self, where: ItemFilter) -> ItemFilter:
        return where

    def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
        return self.inner.read_events(self.change(where), limit=limit, newest_first=newest_first)

    def count_events(self, where: EventFilter) -> int:
        return self.inner.count_events(self.change(where))

    def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]:
        return self.inner.read_items(self.change_item(where), limit=limit, newest_first=newest_first)

    def count_items(self, where: ItemFilter) -> int:
        return self.inner.count_items(self.change_item(where))


class LosesTheSession(StorageOver):
    """Ignores the session filter."""

    breaks = "read_events"

    class View(_ChangesFilters):
        def change(self, where: EventFilter) -> EventFilter:
            return replace(where, session_hash=None)


class FindsOneEvent(StorageOver):
    """Finds the first of several ids."""

    breaks = "read_events_by_id"

    class View(ViewOver):
        def find_events(self, event_ids: Sequence[bytes]) -> Mapping[bytes, StoredEvent]:
            return self.inner.find_events(event_ids[:1])


class LosesTheKinds(StorageOver):
    """Ignores the kind filter where there is a session filter."""

    breaks = "read_events"

    class View(_ChangesFilters):
        def change(self, where: EventFilter) -> EventFilter:
            return where if where.session_hash is None else replace(where, kinds=None)


class TakesNoKindForAll(StorageOver):
    """Takes an empty collection of kinds for no filter."""

    breaks = "read_"

    class View(_ChangesFilters):
        def change(self, where: EventFilter) -> EventFilter:
            return replace(where, kinds=where.kinds or None)

        def change_item(self, where: ItemFilter) -> ItemFilter:
            return replace(where, kinds=where.kinds or None, tiers=where.tiers or None)


class ExcludesTheLast(StorageOver):
    """Takes `last` for the first that is not wanted."""

    breaks = "read_"

    class View(_ChangesFilters):
        def change(self, where: EventFilter) -> EventFilter:
            return where if where.last is None else replace(where, last=where.last - 1)

        def change_item(self, where: ItemFilter) -> ItemFilter:
            return where if where.last is None else replace(where, last=where.last - 1)


class CutsBeforeItTurns(StorageOver):
    """Gives the oldest in falling order where the newest are wanted."""

    breaks = "read_"

    class View(ViewOver):
        def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
            found = self.inner.read_events(where, limit=limit)
            return found[::-1] if newest_first else found

        def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]:
            found = self.inner.read_items(where, limit=limit)
            return found[::-1] if newest_first else found


class CutsBeforeItFilters(StorageOver):
    """Reads the first `limit` events and drops those of other kinds from them."""

    breaks = "read_events"

    class View(ViewOver):
        def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
            found = self.inner.read_events(replace(where, kinds=None), limit=limit, newest_first=newest_first)
            return [event for event in found if where.kinds is None or event.kind in where.kinds]


class CountsEverything(StorageOver):
    """Counts without the filter."""

    breaks = "read_"

    class View(ViewOver):
        def count_events(self, where: EventFilter) -> int:
            return self.inner.count_events(EventFilter())


class LooksAtThePresent(StorageOver):
    """Decides by what is hidden now where a past moment is asked for."""

    breaks = "read_items"

    class View(ViewOver):
        def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]:
            found = self.inner.read_items(where, limit=limit, newest_first=newest_first)
            return [row for row in found if where.hidden or row.deleted_seq is row.superseded_seq is None]


class ShowsTheSuperseded(StorageOver):
    """Hides deleted items only."""

    breaks = "read_items"

    class View(ViewOver):
        def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]:
            found = self.inner.read_items(replace(where, hidden=True), limit=ALL, newest_first=newest_first)
            moment = INT64_MAX if where.at_seq is None else where.at_seq
            return [row for row in found if where.hidden or row.deleted_seq is None or row.deleted_seq > moment][:limit]


class FindsTheDead(StorageOver):
    """Finds deleted notes by their text."""

    breaks = "read_live"

    class View(ViewOver):
        def find_live_by_text(self, text_hash: int) -> list[ItemRow]:
            return [
                row for row in self.inner.read_items(ItemFilter(hidden=True), limit=ALL) if row.text_hash == text_hash
            ]


class FindsTheNewestFirst(StorageOver):
    """Turns the order of notes of one text round."""

    breaks = "read_live"

    class View(ViewOver):
        def find_live_by_text(self, text_hash: int) -> list[ItemRow]:
            return self.inner.find_live_by_text(text_hash)[::-1]


class FindsOneSeq(StorageOver):
    """Finds the first of several seqs."""

    breaks = "read_events_by_their_seqs"

    class View(ViewOver):
        def find_by_seqs(self, seqs: Sequence[int]) -> Mapping[int, StoredEvent]:
            return self.inner.find_by_seqs(seqs[:1])


class MixesModels(StorageOver):
    """Gives the vector of an item whatever model made it."""

    breaks = "read_index_rows"

    class View(ViewOver):
        def read_index_rows(self, first: int, *, model_no: int | None, limit: int) -> list[IndexRow]:
            found = [self.inner.read_index_rows(first, model_no=number, limit=limit) for number in (model_no, 1, 2)]
            return [next((row for row in rows if row.codes), rows[0]) for rows in zip(*found, strict=True)]


class EmbedsTheRest(StorageOver):
    """Finds no item without a vector where others have one."""

    breaks = "read_index_rows"

    class View(ViewOver):
        def read_unembedded(self, first: int, *, model_no: int, limit: int) -> list[int]:
            return []


class DiesOfTheLast(StorageOver):
    """Takes the last event that hid an item for the one that did."""

    breaks = "read_deaths"

    class View(ViewOver):
        def read_deaths(self, first: int) -> list[tuple[int, int]]:
            items = self.inner.read_items(ItemFilter(hidden=True, last=first - 1), limit=ALL)
            deaths = [(row.seq, max(row.deleted_seq or -1, row.superseded_seq or -1)) for row in items]
            return sorted([death for death in deaths if death[1] >= first], key=lambda death: (death[1], death[0]))


class CountsTheNeighbours(StorageOver):
    """Counts what lies behind a ledger on the disk as rows that the head does not know."""

    breaks = "read_nothing_beyond"

    class View(ViewOver):
        def count_beyond_head(self) -> int:
            return 1 if self.head.next_seq else 0


class ExcludesTheInstant(StorageOver):
    """Finds the last event before an instant, not at or before it."""

    breaks = "read_seq_at"

    class View(ViewOver):
        def find_seq_at(self, recorded_us: int) -> int:
            return self.inner.find_seq_at(recorded_us - 1)


class IgnoresRetention(StorageOver):
    """Finds items whether or not they have to be kept."""

    breaks = "read_items_that_need_not"

    class View(_ChangesFilters):
        def change_item(self, where: ItemFilter) -> ItemFilter:
            return replace(where, retained_until_us=None)


class FindsTheLivingByKey(StorageOver):
    """Finds the versions of a key that are not hidden where all are wanted."""

    breaks = "read_every_version"

    class View(ViewOver):
        def find_by_key(self, key_hash: int) -> list[ItemRow]:
            return self.inner.find_live_by_key(key_hash)


class FindsNoLedgerById(StorageOver):
    """Does not find a ledger by its id."""

    breaks = "read_a_ledger"

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[Snapshot | None]:
        with self.inner.snapshot(of) as snapshot:
            yield snapshot if isinstance(of, Scope) else None


class RoundsHashes(StorageOver):
    """Keeps hashes as floating-point numbers."""

    breaks = "read_items_with_any_values"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply(
                [
                    AddItems([row._replace(key_hash=row.key_hash and _round(row.key_hash)) for row in change.rows])
                    if isinstance(change, AddItems)
                    else change
                    for change in changes
                ]
            )


def _round(number: int) -> int:
    return min(int(float(number)), INT64_MAX)


# --- Changes of projections -------------------------------------------------------------------------------------------


class HidesWithTheLast(StorageOver):
    """Lets a later Deletion take an item that is hidden already."""

    breaks = "apply_hide"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            for change in changes:
                self.inner.apply([change])
                if isinstance(change, HideItems):
                    self._hide_again(change)

        def _hide_again(self, change: HideItems) -> None:
            rows = self.inner.read_items(ItemFilter(hidden=True), limit=ALL)
            changed = [row._replace(deleted_seq=change.at_seq) if row.seq in change.seqs else row for row in rows]
            uses = list(self.inner.find_uses(range(self.head.next_seq + 1)).values())
            self.inner.apply([DropProjections(), AddItems(changed), CountUses(uses)])


class DeletesTheSuperseded(StorageOver):
    """Writes a supersession down as a deletion."""

    breaks = "apply_supersede"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([_as_deletion(change) for change in changes])


def _as_deletion(change: Change) -> Change:
    return HideItems([change.seq], change.by_seq) if isinstance(change, SupersedeItem) else change


class KeepsTheLatestTime(StorageOver):
    """Keeps the greatest time of use instead of the last one given."""

    breaks = "apply_count_uses"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            for change in changes:
                self.inner.apply([self._with_latest(change) if isinstance(change, CountUses) else change])

        def _with_latest(self, change: CountUses) -> CountUses:
            before = self.inner.find_uses([use.root_seq for use in change.uses])
            return CountUses(
                [
                    use._replace(last_used_us=max(use.last_used_us, before.get(use.root_seq, use).last_used_us))
                    for use in change.uses
                ]
            )


class CountsEachBatchOnce(StorageOver):
    """Keeps one use of a chain where a batch holds two."""

    breaks = "apply_count_uses"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply(
                [
                    CountUses(list({use.root_seq: use for use in change.uses}.values()))
                    if isinstance(change, CountUses)
                    else change
                    for change in changes
                ]
            )


class LosesVectors(StorageOver):
    """Keeps the first vector of an item."""

    breaks = "apply_keep_vectors"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([self._without_known(item) if isinstance(item, KeepVectors) else item for item in changes])

        def _without_known(self, change: KeepVectors) -> KeepVectors:
            return KeepVectors([row for row in change.rows if _codes_of(self.inner, [row.seq]).get(row.seq) is None])


class KeepsOneVector(StorageOver):
    """Keeps one vector of an item, whatever the model."""

    breaks = "apply_keep_vectors"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            for change in changes:
                self.inner.apply([change])
                if isinstance(change, KeepVectors):
                    others = [row for row in change.rows if row.model_no != 1]
                    self.inner.apply([KeepVectors([VectorRow(row.seq, 1, b"") for row in others])])


class KeepsOtherVectors(StorageOver):
    """Drops no vectors of other models."""

    breaks = "apply_drop_other"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([RaiseEpoch() if isinstance(change, DropOtherVectors) else change for change in changes])


class IgnoresRaisedEpochs(StorageOver):
    """Leaves the epoch where it is to be raised."""

    breaks = "apply_raise_epoch"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([change for change in changes if not isinstance(change, RaiseEpoch)])


class DropsVectors(StorageOver):
    """Takes vectors for projections, and drops them with the others."""

    breaks = "apply_drop_leaves"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            blank = KeepVectors([VectorRow(seq, 1, b"") for seq in range(self.head.next_seq)])
            dropped = any(isinstance(change, DropProjections) for change in changes)
            self.inner.apply([*changes, blank] if dropped else changes)


class AddsWhereItShouldSet(StorageOver):
    """Adds to the counts that are to be set."""

    breaks = "apply_set_uses"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([CountUses(change.uses) if isinstance(change, SetUses) else change for change in changes])


class KeepsTheRoots(StorageOver):
    """Leaves the versions of a chain with a root that is gone."""

    breaks = "apply_move_roots"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([change for change in changes if not isinstance(change, MoveRoots)])


class KeepsTheEpoch(StorageOver):
    """Drops the projections without raising the epoch."""

    breaks = "apply_drop"

    class View(ViewOver):
        @property
        def head(self) -> Head:
            return replace(self.inner.head, epoch=0)


class KeepsTheUses(StorageOver):
    """Drops the items and leaves the uses."""

    breaks = "apply_drop"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            uses = list(self.inner.find_uses(range(self.head.next_seq + 1)).values())
            dropped = any(isinstance(change, DropProjections) for change in changes)
            self.inner.apply([*changes, CountUses(uses)] if dropped else changes)


class SortsChanges(StorageOver):
    """Applies the changes of one call by their kind."""

    breaks = "apply_in_the_order"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply(sorted(changes, key=lambda change: isinstance(change, DropProjections), reverse=True))


class ForgetsRequests(StorageOver):
    """Keeps no request."""

    breaks = "apply_keep_request"

    class View(ViewOver):
        def apply(self, changes: Sequence[Change]) -> None:
            self.inner.apply([change for change in changes if not isinstance(change, KeepRequest)])


# --- Over all scopes --------------------------------------------------------------------------------------------------


class SortsByLetter(StorageOver):
    """Sorts tenants as a dictionary for people does."""

    breaks = "archive_lists_tenants"

    def find_tenants(self, *, after: str | None = None, limit: int) -> list[str]:
        found = self.inner.find_tenants(after=after, limit=ALL)
        return sorted(found, key=lambda name: (name.casefold(), name))[:limit]


class SortsByUtf16(StorageOver):
    """Sorts tenants by the units of UTF-16."""

    breaks = "archive_lists_tenants"

    def find_tenants(self, *, after: str | None = None, limit: int) -> list[str]:
        found = self.inner.find_tenants(after=after, limit=ALL)
        return sorted(found, key=lambda name: name.encode("utf-16-be"))[:limit]


class IncludesAfter(StorageOver):
    """Gives the scope that the page before ended with once more."""

    breaks = "archive_lists_scopes"

    def read_scopes(
        self, *, tenant: str | None = None, erased: bool = False, after: int = 0, limit: int
    ) -> list[ScopeRow]:
        return self.inner.read_scopes(tenant=tenant, erased=erased, after=max(after - 1, 0), limit=limit)


class CountsSubjects(StorageOver):
    """Leaves the unscoped shelves out of the counts."""

    breaks = "archive_counts"

    def stats(self) -> StorageStats:
        stats = self.inner.stats()
        shelves = sum(row.subject is None for row in self.inner.read_scopes(limit=ALL))
        return stats._replace(scopes=stats.scopes - shelves)


class ForgetsTenants(StorageOver):
    """Leaves out tenants whose scopes are all erased."""

    breaks = "archive_keeps_a_tenant"

    def find_tenants(self, *, after: str | None = None, limit: int) -> list[str]:
        found = self.inner.find_tenants(after=after, limit=limit)
        return [tenant for tenant in found if self.inner.read_scopes(tenant=tenant, limit=1)]


class KeepsModelsTwice(StorageOver):
    """Gives a model a new number each time."""

    breaks = "archive_keeps_each_model"

    def keep_model(self, name: str, dimension: int, probe: bytes) -> ModelRow:
        return self.inner.keep_model(name, dimension, system_entropy(8))._replace(probe=probe)


class KeepsTheFirstSetting(StorageOver):
    """Does not change a setting that is there."""

    breaks = "archive_keeps_settings"

    def keep_setting(self, name: str, value: str) -> None:
        if name not in self.inner.find_settings():
            self.inner.keep_setting(name, value)


class DropsInUse(StorageOver):
    """Answers for a tenant that has scopes as if it were dropped."""

    breaks = "archive_drops"

    def drop_tenant(self, name: str, pending: PendingClean) -> bool:
        try:
            return self.inner.drop_tenant(name, pending)
        except ConflictError:
            return True


def _all_mutants(kind: type[StorageOver]) -> list[type[StorageOver]]:
    found = [kind] if kind.breaks else []
    for inner in kind.__subclasses__():
        found += _all_mutants(inner)
    return found


MUTANTS: Final = tuple(_all_mutants(StorageOver))
"""Every mutant of this module."""
