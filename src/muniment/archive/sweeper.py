"""Retention on demand: what has expired is found by query and deleted or erased, scope by scope.

Source: `audit.md` A20, `engine.md` E24.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal
from uuid import UUID

from muniment.archive.chooser import Chooser
from muniment.archive.cleaning import finish
from muniment.archive.engine import Engine, NoLedgerError
from muniment.archive.eraser import Destroyed, Eraser
from muniment.core.canonical import from_us
from muniment.core.project import draft
from muniment.errors import UsageError
from muniment.model.event import Deletion
from muniment.model.limits import TARGETS_MAX
from muniment.model.receipt import ScopeSweep
from muniment.model.rows import ScopeRow, StoredEvent
from muniment.model.scope import Scope

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
        """Sweep one scope; None where nothing had expired, or where it is gone."""
        scope = Scope(row.tenant, row.subject)
        with self._engine.storage.snapshot(scope) as view:
            if view is None:
                return None
            expired, recalls = self._choose(Chooser(view, self._engine.hashes_of(view.head)))
        if not expired and not recalls:
            return None
        destroyed = None
        if not self._dry_run:
            try:
                with self._engine.storage.transaction(scope, self._engine.new_ledger()) as tx:
                    if tx.head.next_seq == 0:
                        raise NoLedgerError
                    eraser = Eraser(self._engine, tx)
                    expired, recalls = self._choose(eraser)
                    destroyed = self._act(eraser, expired, recalls)
            except NoLedgerError:
                return None
        return ScopeSweep(
            row.tenant,
            row.subject,
            expired=_ids_of(expired),
            recalls=_ids_of(recalls),
            receipt=None if destroyed is None else destroyed.receipt,
        )

    def _choose(self, chooser: Chooser) -> tuple[list[StoredEvent], list[StoredEvent]]:
        expired = chooser.find_expired(self._now_us, hidden=self._action == "erase")
        return expired, chooser.find_recalls_before(self._recalls_before_us)

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


def finished(engine: Engine, scopes: Sequence[ScopeSweep]) -> list[ScopeSweep]:
    """The sweeps with their receipts after one clean step, if any of them destroyed something."""
    receipts = [scope.receipt for scope in scopes if scope.receipt is not None]
    if not receipts:
        return list(scopes)
    after = {receipt.id: receipt for receipt in finish(engine, receipts)}
    return [scope if scope.receipt is None else replace(scope, receipt=after[scope.receipt.id]) for scope in scopes]


def _ids_of(rows: Iterable[StoredEvent]) -> tuple[UUID, ...]:
    return tuple(UUID(bytes=row.event_id) for row in rows)
