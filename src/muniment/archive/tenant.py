"""One tenant of an archive: its scopes, and the views that merge them."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muniment.archive.arguments import check_reason
from muniment.archive.cleaning import CleanStep, check_clean_step, finish
from muniment.archive.engine import Engine
from muniment.archive.eraser import nothing_to_erase
from muniment.archive.ledger import Ledger
from muniment.archive.memory import Memory
from muniment.archive.search import parse_request
from muniment.archive.tenant_search import ScopedHit, TenantSearcher
from muniment.core.canonical import from_us, to_us
from muniment.core.ranking import PLAIN
from muniment.errors import ConflictError
from muniment.model.event import ErasedEvent, Event
from muniment.model.limits import PAGE_MAX
from muniment.model.receipt import Receipt
from muniment.model.rows import PendingClean, ScopeRow
from muniment.model.scope import Scope, check_name


@dataclass(frozen=True, slots=True)
class ScopeInfo:
    """A ledger of a tenant, and how far it goes."""

    scope: Scope | None
    """None for the ledger of an erased scope, which has no name any more."""
    ledger: Ledger
    ledger_id: str
    """32 hex digits."""
    num_events: int
    last_recorded_at: datetime | None
    erased_at: datetime | None


class Tenant:
    """A tenant's scopes. The views over all of them are for administration: one transaction per scope."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = check_name("tenant", name)

    @property
    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<Tenant {self._name!r}>"

    def memory(self, subject: str | None) -> Memory:
        """The memory of one of its subjects; None is the unscoped shelf."""
        return Memory(self._engine, Scope(self._name, subject))

    def scopes(self, *, erased: bool = False) -> Iterator[ScopeInfo]:
        """Its scopes that have a ledger, in the order in which they began; or the ledgers of those that were erased."""
        for row in read_scope_rows(self._engine, self._name, erased=erased):
            yield _info_of(self._engine, row)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str = "auto",
        kinds: Collection[str] | None = None,
        tiers: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        explain: bool = False,
        source: str = "tenant.search",
        actor: str | None = None,
    ) -> list[ScopedHit]:
        """The items of all its scopes that answer the query best; arguments as `Memory.search`.

        Ranked with the statistics of the tenant, legs merged by reciprocal rank, ties by the older scope. Each scope
        that gives a hit gets a Recall with its ids; the query itself is written into the unscoped ledger only.

        Raises: as `Memory.search`.
        Cost:   goes through every scope: 0.1 ms each when cached.
        """
        request = parse_request(
            query,
            limit=limit,
            mode=mode,
            kinds=kinds,
            tiers=tiers,
            labels=labels,
            where=where,
            session_id=None,
            since=since,
            until=until,
            fusion="rrf",
            context=False,
            explain=explain,
            ranking=PLAIN,
        )
        if not query:
            return []
        searcher = TenantSearcher(self._engine, self._name)
        hits, answers = searcher.search(request)
        if not self._engine.records_reads:
            return hits
        kept = searcher.record(query, answers, request=request.to_record(-1), source=source, actor=actor)
        return [hit for hit in hits if hit.hit.id in kept]

    def drop(
        self, *, reason: str = "tenant dropped", requested_by: str | None = None, clean: CleanStep = "now"
    ) -> list[Receipt]:
        """Erase every scope, one transaction each, then the tenant's name; a receipt per scope, and one of the name.

        One clean step at the end serves them all. If a scope's erasure fails, those before it stay erased and the name
        stays: call it again.

        Raises: ConflictError if somebody writes a new scope meanwhile; its `receipts` are those of the erased ones.
        """
        check_clean_step(clean)
        check_reason(reason, requested_by)
        receipts = [
            Memory(self._engine, info.scope).erase(reason=reason, requested_by=requested_by, clean="later")
            for info in list(self.scopes())
            if info.scope is not None
        ]
        dropped = nothing_to_erase(self._engine, "drop", reason, requested_by).model_copy(
            update={"state": "unreachable"}
        )
        try:
            found = self._engine.storage.drop_tenant(self._name, PendingClean(dropped.id.bytes, b"", to_us(dropped.at)))
        except ConflictError as error:
            error.receipts = receipts
            raise
        if found:
            receipts.append(dropped)
        return receipts if clean == "later" or not receipts else finish(self._engine, receipts)

    def events(self, *, kind: str | None = None) -> Iterator[tuple[Scope, Event | ErasedEvent]]:
        """The events of all its scopes, merged by the time of recording; memory for one page per scope."""
        streams = [
            self._stream(info.scope, number, kind)
            for number, info in enumerate(self.scopes())
            if info.scope is not None
        ]
        for _, _, _, scope, event in heapq.merge(*streams, key=lambda entry: entry[:3]):
            yield scope, event

    def _stream(
        self, scope: Scope, number: int, kind: str | None
    ) -> Iterator[tuple[datetime, int, int, Scope, Event | ErasedEvent]]:
        for event in Memory(self._engine, scope).events(kind=kind):
            if event.recorded_at is not None and event.seq is not None:
                yield event.recorded_at, number, event.seq, scope, event


def _info_of(engine: Engine, row: ScopeRow) -> ScopeInfo:
    scope = Scope(row.tenant, row.subject) if row.erased_us is None else None
    return ScopeInfo(
        scope=scope,
        ledger=Ledger(engine, row.ledger_id),
        ledger_id=row.ledger_id.hex(),
        num_events=row.next_seq,
        last_recorded_at=from_us(row.recorded_us) if row.next_seq else None,
        erased_at=None if row.erased_us is None else from_us(row.erased_us),
    )


def read_scope_rows(engine: Engine, tenant: str | None, *, erased: bool = False) -> Iterator[ScopeRow]:
    """The rows of all scopes of a tenant, or of the archive, a page at a time."""
    after = 0
    while True:
        rows = engine.storage.read_scopes(tenant=tenant, erased=erased, after=after, limit=PAGE_MAX)
        yield from rows
        if len(rows) < PAGE_MAX:
            return
        after = rows[-1].scope_no
