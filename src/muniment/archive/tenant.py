"""One tenant of an archive: its scopes, and the views that merge them."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from muniment.archive.engine import Engine
from muniment.archive.memory import Memory
from muniment.core.canonical import from_us
from muniment.model.event import ErasedEvent, Event
from muniment.model.limits import PAGE_MAX
from muniment.model.rows import ScopeRow
from muniment.model.scope import Scope, check_name


@dataclass(frozen=True, slots=True)
class ScopeInfo:
    """A scope that has a ledger, and how far it goes."""

    scope: Scope
    ledger_id: str
    num_events: int
    last_recorded_at: datetime | None


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

    def scopes(self) -> Iterator[ScopeInfo]:
        """Its scopes that have a ledger, in the order in which they began."""
        for row in read_scope_rows(self._engine, self._name):
            yield ScopeInfo(
                Scope(row.tenant, row.subject),
                row.ledger_id.hex(),
                row.next_seq,
                from_us(row.recorded_us) if row.next_seq else None,
            )

    def events(self, *, kind: str | None = None) -> Iterator[tuple[Scope, Event | ErasedEvent]]:
        """The events of all its scopes, merged by the time of recording; memory for one page per scope."""
        streams = [self._stream(info.scope, number, kind) for number, info in enumerate(self.scopes())]
        for _, _, _, scope, event in heapq.merge(*streams, key=lambda entry: entry[:3]):
            yield scope, event

    def _stream(
        self, scope: Scope, number: int, kind: str | None
    ) -> Iterator[tuple[datetime, int, int, Scope, Event | ErasedEvent]]:
        for event in Memory(self._engine, scope).events(kind=kind):
            if event.recorded_at is not None and event.seq is not None:
                yield event.recorded_at, number, event.seq, scope, event


def read_scope_rows(engine: Engine, tenant: str | None) -> Iterator[ScopeRow]:
    """The rows of all scopes of a tenant, or of the archive, a page at a time."""
    after = 0
    while True:
        rows = engine.storage.read_scopes(tenant=tenant, after=after, limit=PAGE_MAX)
        yield from rows
        if len(rows) < PAGE_MAX:
            return
        after = rows[-1].scope_no
