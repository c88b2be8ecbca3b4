"""Retention on demand: what has expired is found by query and deleted or erased, scope by scope.

Source: `audit.md` A20, `engine.md` E24.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal
from uuid import UUID

from muniment.archive.engine import Engine
from muniment.archive.eraser import Destroyed, Eraser
from muniment.core.canonical import from_us
from muniment.core.project import draft
from muniment.errors import UsageError
from muniment.model.event import Deletion
from muniment.model.limits import TARGETS_MAX
from muniment.model.receipt import CleanReport, ScopeSweep
from muniment.model.rows import ItemFilter, ScopeRow, StoredEvent
from muniment.model.scope import Scope
from muniment.ports.storage import Snapshot

SWEEP_REASON: Final = "retain_until passed"


class Sweeper:
    """One sweep: the same moment and the same action for every scope."""

    def __init__(
        self,
        engine: Engine,
        *,
        action: Literal["delete", "erase"],
        now_us: int,
        recalls_before_us: int | None,
        dry_run: bool,
    ) -> None:
        if action not in ("delete", "erase"):
            raise UsageError(f"action is 'delete' or 'erase', not {action!r}")
        self._engine = engine
        self._action = action
        self._now_us = now_us
        self._recalls_before_us = recalls_before_us
        self._dry_run = dry_run

    def sweep(self, row: ScopeRow) -> ScopeSweep | None:
        """Sweep one scope; None where nothing had expired."""
        scope = Scope(row.tenant, row.subject)
        if not self._has_work(scope):
            return None
        with self._engine.storage.transaction(scope, self._engine.new_ledger()) as tx:
            eraser = Eraser(self._engine, tx)
            expired = eraser.find_expired(self._now_us, hidden=self._action == "erase")
            recalls = eraser.find_recalls_before(self._recalls_before_us)
            destroyed = None if self._dry_run else self._act(eraser, expired, recalls)
        if not expired and not recalls:
            return None
        return ScopeSweep(
            row.tenant,
            row.subject,
            expired=_ids_of(expired),
            recalls=_ids_of(recalls),
            receipt=None if destroyed is None else destroyed.receipt,
        )

    def _has_work(self, scope: Scope) -> bool:
        """A look before the lock, so that a sweep of many scopes locks only those that need it."""
        with self._engine.storage.snapshot(scope) as view:
            return view is not None and (self._recalls_before_us is not None or _has_expired(view, self._now_us))

    def _act(self, eraser: Eraser, expired: list[StoredEvent], recalls: list[StoredEvent]) -> Destroyed | None:
        doomed = list(recalls)
        if self._action == "erase":
            doomed.extend(expired)
        else:
            self._delete(eraser, expired)
        if not doomed:
            return None
        doomed.sort(key=lambda row: row.seq)
        return eraser.erase_events(doomed, action="sweep", reason=SWEEP_REASON, requested_by=None)

    def _delete(self, eraser: Eraser, expired: list[StoredEvent]) -> None:
        ids = _ids_of(expired)
        for start in range(0, len(ids), TARGETS_MAX):
            deletion = Deletion(
                id=self._engine.new_id(),
                timestamp=from_us(self._engine.clock()),
                targets=ids[start : start + TARGETS_MAX],
                reason=SWEEP_REASON,
            )
            eraser.writer.append([draft(deletion, self._engine.tokenizer)])


def completed(scopes: Iterable[ScopeSweep], report: CleanReport) -> list[ScopeSweep]:
    """The sweeps with their receipts after a clean step."""
    return [
        scope if scope.receipt is None else replace(scope, receipt=scope.receipt.completed(report)) for scope in scopes
    ]


def _has_expired(view: Snapshot, now_us: int) -> bool:
    return bool(view.read_items(ItemFilter(retained_until_us=now_us, hidden=True), limit=1))


def _ids_of(rows: Iterable[StoredEvent]) -> tuple[UUID, ...]:
    return tuple(UUID(bytes=row.event_id) for row in rows)
