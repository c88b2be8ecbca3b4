"""What a check found: true exactly when all is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LedgerHead:
    """Where a ledger stands: how many events it has and the root of the tree over them."""

    ledger_id: str
    """32 hex digits."""
    size: int
    root: str
    """64 hex digits."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The verification of one ledger; `bool()` is `ok`."""

    ok: bool
    head: LedgerHead | None
    """The head that the events lead to; None for a scope without a ledger."""
    num_events: int
    num_erased: int
    """Events whose content an Erasure destroyed."""
    bad_seq: int | None = None
    """The first event that is not what was written."""
    problem: str | None = None

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """The verification of every ledger of an archive, or of one tenant; `bool()` is `ok`."""

    ledgers: Sequence[tuple[str, VerifyReport]]
    """Each ledger's id (32 hex digits) and report, those that failed first; complete only for those that failed."""
    num_ledgers: int
    num_events: int
    storage_problems: Sequence[str] = ()
    """What the storage itself finds wrong with its files, if it was asked."""

    @property
    def ok(self) -> bool:
        return not self.storage_problems and all(report.ok for _, report in self.ledgers)

    def __bool__(self) -> bool:
        return self.ok
