"""One opened archive: the door to every tenant and every scope in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import Final, Literal, Self
from uuid import UUID

from muniment.archive import fulltext
from muniment.archive.arguments import parse_instant
from muniment.archive.cleaning import CLEAN_WAIT_S, CleanStep, check_clean_step, clean_archive
from muniment.archive.engine import Engine
from muniment.archive.ledger import Ledger
from muniment.archive.memory import Memory
from muniment.archive.rebuilder import drop_other_vectors, embed_missing
from muniment.archive.sweeper import Sweeper, finished
from muniment.archive.tenant import Tenant, read_scope_rows
from muniment.archive.vectors import OnEmbedError
from muniment.archive.verify import Progress
from muniment.core.canonical import to_us
from muniment.core.text import Tokenizer
from muniment.errors import MunimentError, NotFoundError, UsageError
from muniment.model.event import Content
from muniment.model.limits import ADD_MANY_MAX, PAGE_MAX
from muniment.model.receipt import CleanReport, SweepReport
from muniment.model.report import ArchiveReport, VerifyReport
from muniment.model.rows import ScopeRow, StorageStats
from muniment.model.scope import Scope, check_name
from muniment.ports.clock import Clock, Entropy
from muniment.ports.embedder import Embedder
from muniment.ports.storage import Storage

_GOOD_REPORTS_KEPT: Final = 1_000
_LEDGER_ID: Final = re.compile("[0-9a-fA-F]{32}")


class Archive:
    """An archive: `muniment.open` makes one. Safe from many threads; a context manager."""

    def __init__(
        self,
        storage: Storage,
        *,
        clock: Clock,
        entropy: Entropy,
        tokenizer: Tokenizer,
        embedder: Embedder | None = None,
        on_embed_error: OnEmbedError = "raise",
        records_reads: bool = True,
    ) -> None:
        self._engine = Engine(
            storage,
            clock=clock,
            entropy=entropy,
            tokenizer=tokenizer,
            embedder=embedder,
            on_embed_error=on_embed_error,
            records_reads=records_reads,
        )

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

    def ledger(self, ledger_id: str) -> Ledger:
        """The ledger with that id (32 hex digits), also one whose scope was erased, to look at.

        Raises: UsageError for a text that is no such id; NotFoundError if there is no such ledger.
        """
        if not isinstance(ledger_id, str) or not _LEDGER_ID.fullmatch(ledger_id):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"{ledger_id!r} is not the id of a ledger: it has 32 hex digits")
        found = Ledger(self._engine, bytes.fromhex(ledger_id))
        if found.head() is None:
            raise NotFoundError(f"there is no ledger {ledger_id}")
        return found

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
        for index, entry in enumerate(chunk):
            if not isinstance(entry, tuple) or len(entry) != 2 or not isinstance(entry[0], Scope):  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryComparison]
                error = UsageError(f"entry {num_stored + index} is not a pair of a Scope and an event: {entry!r:.80}")
                error.num_stored = num_stored
                raise error
            by_scope.setdefault(entry[0], []).append(index)
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

        `deep` also compares what search works on with the ledgers, and asks the storage to check its own files.
        `progress` is told of events.

        Cost: one pass over all events, about 5 µs each.
        """
        if tenant is not None:
            check_name("tenant", tenant)
        total = 0 if progress is None else sum(row.next_seq for row in self._ledger_rows(tenant))
        bad: list[tuple[str, VerifyReport]] = []
        good: list[tuple[str, VerifyReport]] = []
        num_ledgers = num_events = 0
        for row in self._ledger_rows(tenant):
            ledger = Ledger(self._engine, row.ledger_id)
            report = ledger.verify(deep=deep, progress=_shifted(progress, num_events, total))
            num_ledgers += 1
            num_events += report.num_events
            if not report:
                bad.append((row.ledger_id.hex(), report))
            elif len(good) < _GOOD_REPORTS_KEPT:
                good.append((row.ledger_id.hex(), report))
        problems = self._engine.storage.check() if deep else []
        return ArchiveReport((*bad, *good), num_ledgers, num_events, tuple(problems))

    def _ledger_rows(self, tenant: str | None) -> Iterator[ScopeRow]:
        """Every ledger, those of erased scopes last."""
        yield from read_scope_rows(self._engine, tenant)
        yield from read_scope_rows(self._engine, tenant, erased=True)

    # --- Mending ------------------------------------------------------------------------------------------------------

    def rebuild(self, *, tenant: str | None = None, progress: Progress | None = None) -> int:
        """Derive the items and uses of every scope anew from their ledgers; how many events that took.

        Cost: as `Memory.rebuild`, one transaction per scope.
        """
        rows = list(read_scope_rows(self._engine, tenant))
        total = sum(row.next_seq for row in rows)
        done = 0
        for row in rows:
            done += Memory(self._engine, Scope(row.tenant, row.subject)).rebuild()
            if progress is not None:
                progress(done, total)
        return done

    def reindex(self, *, progress: Progress | None = None) -> int:
        """Give every item a vector of the embedder's model, then search with it; how many were made.

        Until it ends, searches use the model from before. Run it again after it was cut short: it goes on where it was.

        Raises: EmbeddingUnavailableError without an embedder; ProviderError when it fails.
        Cost:   that of embedding what has no vector yet.
        """
        model = self._engine.vectors.begin_reindex()
        total = self.stats().items if progress is not None else 0
        seen = 0

        def report(count: int) -> None:
            nonlocal seen
            seen += count
            if progress is not None:
                progress(seen, total)

        scopes = [Scope(row.tenant, row.subject) for row in read_scope_rows(self._engine, None)]
        made = sum(embed_missing(self._engine, scope, model, report) for scope in scopes)
        self._engine.vectors.make_current(model)
        for scope in scopes:
            drop_other_vectors(self._engine, scope, model)
        return made

    # --- Full text ----------------------------------------------------------------------------------------------------

    @property
    def has_fulltext(self) -> bool:
        """Whether an index of words over all scopes is kept."""
        return fulltext.is_wanted(self._engine)

    def set_fulltext(self, wanted: bool) -> None:
        """Build the index of words over all scopes, or drop it; the archive's settings say so from then on.

        It makes searches of a whole tenant fast and changes nothing that they find. Others may write meanwhile. Call
        it again after it was cut short: it goes on.

        Cost: about 60 µs an item to build.
        """
        if wanted not in (True, False):
            raise UsageError(f"full text is wanted or not: True or False, not {wanted!r}")
        fulltext.keep(self._engine, wanted)

    # --- Destroying ---------------------------------------------------------------------------------------------------

    def clean(self, *, wait_s: float = CLEAN_WAIT_S) -> CleanReport:
        """Leave no byte in the files of what was erased before; completes the receipts that wait for it.

        Cost: rewrites the files, about 5 s per GB; writers wait meanwhile.
        """
        return clean_archive(self._engine, wait_s=wait_s)

    def pending(self) -> tuple[UUID, ...]:
        """The receipts whose bytes the files may still hold, oldest first."""
        return tuple(UUID(bytes=row.receipt_id) for row in self._engine.storage.find_pending())

    def sweep(
        self,
        now: datetime,
        action: Literal["delete", "erase"] = "delete",
        dry_run: bool = False,
        *,
        tenant: str | None = None,
        recalls_before: datetime | None = None,
        clean: CleanStep = "now",
    ) -> SweepReport:
        """Delete or erase the content whose `retain_until` is at or before `now`, one transaction per scope.

        "delete" takes what is visible; "erase" also what was deleted or superseded. `recalls_before` erases the content
        of reads recorded before that time, whatever the action. With `dry_run`, the same report and nothing is done.

        Raises: UsageError for a naive time or another action.
        """
        if tenant is not None:
            check_name("tenant", tenant)
        check_clean_step(clean)
        sweeper = Sweeper(
            self._engine,
            action=action,
            now_us=to_us(parse_instant("now", now)),
            recalls_before_us=None
            if recalls_before is None
            else to_us(parse_instant("recalls_before", recalls_before)),
            dry_run=dry_run,
        )
        scopes = [found for row in read_scope_rows(self._engine, tenant) if (found := sweeper.sweep(row)) is not None]
        if clean == "now":
            scopes = finished(self._engine, scopes)
        return SweepReport(action, dry_run, tuple(scopes))

    def stats(self) -> StorageStats:
        """How much the archive holds. Cost: counts rows, so O(archive)."""
        return self._engine.storage.stats()

    def close(self) -> None:
        """Close it; twice is fine. Every later call is a ClosedError."""
        self._engine.close()

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
