"""One opened archive: the door to every tenant and every scope in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import Final, Self

from muniment.archive.engine import Engine
from muniment.archive.memory import Memory
from muniment.archive.tenant import Tenant, read_scope_rows
from muniment.archive.verify import Progress
from muniment.core.text import Tokenizer
from muniment.errors import MunimentError
from muniment.model.event import Content
from muniment.model.limits import ADD_MANY_MAX, PAGE_MAX
from muniment.model.report import ArchiveReport, VerifyReport
from muniment.model.rows import StorageStats
from muniment.model.scope import Scope
from muniment.ports.clock import Clock, Entropy
from muniment.ports.storage import Storage

_GOOD_REPORTS_KEPT: Final = 1_000


class Archive:
    """An archive: `muniment.open` makes one. Safe from many threads; a context manager."""

    def __init__(self, storage: Storage, *, clock: Clock, entropy: Entropy, tokenizer: Tokenizer) -> None:
        self._engine = Engine(storage, clock=clock, entropy=entropy, tokenizer=tokenizer)

    @property
    def location(self) -> str:
        """Where it is, without secrets."""
        return self._engine.storage.location

    @property
    def storage(self) -> Storage:
        """The storage below it, for tools that look at it as such."""
        return self._engine.storage

    def __repr__(self) -> str:
        return f"<Archive {self.location}>"

    def memory(self, subject: str | None, *, tenant: str) -> Memory:
        """The memory of one scope; `None` is the tenant's unscoped shelf, which no text can name.

        Raises: UsageError for a part that is empty or not text; LimitExceededError above 256 characters.
        """
        return Memory(self._engine, Scope(tenant, subject))

    def tenant(self, name: str) -> Tenant:
        """One tenant, for administration.

        Raises: as `memory`.
        """
        return Tenant(self._engine, name)

    def tenants(self) -> Iterator[Tenant]:
        """Every tenant that has a scope, by name."""
        after: str | None = None
        while True:
            names = self._engine.storage.find_tenants(after=after, limit=PAGE_MAX)
            yield from (Tenant(self._engine, name) for name in names)
            if len(names) < PAGE_MAX:
                return
            after = names[-1]

    def add_many(self, entries: Iterable[tuple[Scope, Content]]) -> list[Content]:
        """Store messages, documents and notes of any scopes; the stored copies, in the order given.

        10,000 entries at a time are taken and stored with one transaction per scope: entries that are sorted by scope
        go fastest. A scope's entries are stored in their order.

        Raises: as `Memory.add`. What was stored before the failure stays; the error's `num_stored` says how many
                entries that is and its `failed_scope` where it happened.
        """
        remaining = iter(entries)
        stored: list[Content] = []
        while chunk := list(islice(remaining, ADD_MANY_MAX)):
            stored.extend(self._add_chunk(chunk, len(stored)))
        return stored

    def _add_chunk(self, chunk: list[tuple[Scope, Content]], num_stored: int) -> list[Content]:
        by_scope: dict[Scope, list[int]] = {}
        for index, (scope, _) in enumerate(chunk):
            by_scope.setdefault(scope, []).append(index)
        stored: list[Content | None] = [None] * len(chunk)
        for scope, indexes in by_scope.items():
            try:
                events = Memory(self._engine, scope).add_many([chunk[index][1] for index in indexes])
            except MunimentError as error:
                error.num_stored = num_stored
                error.failed_scope = scope
                raise
            num_stored += len(events)
            for index, event in zip(indexes, events, strict=True):
                stored[index] = event
        return [event for event in stored if event is not None]

    def verify(
        self, *, tenant: str | None = None, deep: bool = False, progress: Progress | None = None
    ) -> ArchiveReport:
        """Whether every ledger of the archive, or of one tenant, is what was written.

        `deep` also asks the storage to check its own files. `progress` is told of events.

        Cost: one pass over all events, about 5 µs each.
        """
        total = sum(row.next_seq for row in read_scope_rows(self._engine, tenant)) if progress is not None else 0
        bad: list[tuple[str, VerifyReport]] = []
        good: list[tuple[str, VerifyReport]] = []
        num_ledgers = num_events = 0
        for row in read_scope_rows(self._engine, tenant):
            report = Memory(self._engine, Scope(row.tenant, row.subject)).verify(
                progress=_shifted(progress, num_events, total)
            )
            num_ledgers += 1
            num_events += report.num_events
            if not report:
                bad.append((row.ledger_id.hex(), report))
            elif len(good) < _GOOD_REPORTS_KEPT:
                good.append((row.ledger_id.hex(), report))
        problems = self._engine.storage.check() if deep else []
        return ArchiveReport((*bad, *good), num_ledgers, num_events, tuple(problems))

    def stats(self) -> StorageStats:
        """How much the archive holds. Cost: counts rows, so O(archive)."""
        return self._engine.storage.stats()

    def close(self) -> None:
        """Close it; twice is fine. Every later call is a ClosedError."""
        self._engine.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """The progress of one ledger as a part of all of them."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
