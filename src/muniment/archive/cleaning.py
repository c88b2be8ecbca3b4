"""The clean step: after it, the files hold no byte of what was erased before.

Source: `engine.md` E21.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal
from uuid import UUID

from muniment.archive.engine import Engine
from muniment.core.canonical import from_us
from muniment.errors import ClosedError, StorageError, UsageError
from muniment.model.receipt import CleanReport, Receipt, Residue

CleanStep = Literal["now", "later"]

CLEAN_WAIT_S: Final = 5.0
"""How long a clean step waits for readers to let go of older views."""


def check_clean_step(clean: object) -> None:
    """Accept when to clean.

    Raises: UsageError
    """
    if clean not in ("now", "later"):
        raise UsageError(f"clean is 'now' or 'later', not {clean!r}")


def clean_archive(engine: Engine, *, markers: Sequence[bytes] = (), wait_s: float = CLEAN_WAIT_S) -> CleanReport:
    """Run the clean step and say what it completed."""
    outcome = engine.storage.clean(markers=markers, wait_s=wait_s)
    completed = tuple(UUID(bytes=row.receipt_id) for row in outcome.completed)
    return CleanReport(
        at=from_us(engine.clock()),
        completed=completed,
        pending=tuple(UUID(bytes=row.receipt_id) for row in engine.storage.find_pending()),
        blocked=outcome.blocked,
        residue=Residue(outcome.markers_searched, outcome.residue_hits, outcome.orphan_rows, outcome.free_pages),
        size_before=outcome.size_before,
        size_after=outcome.size_after,
        copies=tuple(outcome.copies),
    )


def finish(engine: Engine, receipts: Sequence[Receipt], markers: Sequence[bytes] = ()) -> list[Receipt]:
    """The receipts after one clean step: `clean`, or `pending` with what held the step back.

    The content is destroyed by now, so no failure of the step may take the receipts along.
    """
    try:
        report = clean_archive(engine, markers=markers)
    except (StorageError, ClosedError) as error:
        return [_held_back(receipt, {"blocked": str(error)}) for receipt in receipts]
    found = {"blocked": report.blocked, "residue": report.residue, "copies": report.copies}
    return [
        receipt.completed(report)
        if receipt.id in report.completed or receipt.state == "clean"
        else _held_back(receipt, found)
        for receipt in receipts
    ]


def _held_back(receipt: Receipt, found: Mapping[str, object]) -> Receipt:
    return receipt.model_copy(update={"state": "pending", **found})
