"""What a destruction did: asked by whom, of what, and how far it got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer

from muniment.errors import UsageError
from muniment.model.event import Instant
from muniment.model.json import freeze_object
from muniment.model.report import LedgerHead

Action = Literal["delete", "forget", "erase", "erase_session", "drop", "sweep"]
ReceiptState = Literal["hidden", "unreachable", "pending", "clean"]


Counts = Annotated[Mapping[str, int], AfterValidator(freeze_object), PlainSerializer(dict, return_type=dict[str, int])]
"""Numbers by kind, which nobody can change afterwards."""


@dataclass(frozen=True, slots=True)
class Residue:
    """What a scan of the files found after a clean step."""

    markers_searched: int
    """Byte sequences that were destroyed and looked for."""
    hits: int
    orphan_rows: int
    free_pages: int


class Receipt(BaseModel):
    """One deletion or destruction. `hidden`: out of sight, and the ledger still holds it. `unreachable`: no read
    returns the content. `clean`: no byte of it is in the archive's files.

    `pending` is a clean step that was tried and could not finish; the next one completes it. The reason and who asked
    stand here, and for a whole scope nowhere else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: UUID
    action: Action
    ledger_id: str | None
    """32 hex digits; None where there was nothing to destroy."""
    whole_scope: bool
    targets: tuple[UUID, ...]
    """The events destroyed; empty for a whole scope."""
    counts: Counts
    """How many events of each kind were hidden or lost their content."""
    head_before: LedgerHead | None
    head_after: LedgerHead | None
    state: ReceiptState
    at: Instant
    cleaned_at: Instant | None = None
    residue: Residue | None = None
    blocked: str | None = None
    """Why the clean step could not finish, if it could not."""
    copies: tuple[str, ...] = ()
    """Copies of the archive that may still hold the content, for the operator to delete."""
    requested_by: str | None = None
    reason: str | None = None
    num_facts: int = 0
    """How many of the destroyed events were facts of the facts contract."""

    @property
    def count(self) -> int:
        """How many events were hidden or lost their content."""
        return sum(self.counts.values())

    def __hash__(self) -> int:
        return hash(self.id)

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """The receipt that `to_json` wrote.

        Raises: UsageError for anything else.
        """
        try:
            return cls.model_validate_json(text)
        except ValueError as error:
            raise UsageError(f"this is not a receipt: {error}") from error

    def completed(self, report: CleanReport) -> Receipt:
        """The receipt after a clean step: `clean` if that step completed it, unchanged otherwise."""
        if self.id not in report.completed:
            return self
        return self.model_copy(
            update={
                "state": "clean",
                "cleaned_at": report.at,
                "residue": report.residue,
                "blocked": None,
                "copies": report.copies,
            }
        )


@dataclass(frozen=True, slots=True)
class CleanReport:
    """One clean step over the files of an archive; `bool()` says whether it finished."""

    at: datetime
    completed: tuple[UUID, ...]
    """The receipts of which no byte is left."""
    pending: tuple[UUID, ...]
    """The receipts that wait for the next step."""
    blocked: str | None
    residue: Residue
    size_before: int
    """Bytes of all files."""
    size_after: int
    copies: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.blocked is None


@dataclass(frozen=True, slots=True)
class ScopeSweep:
    """What a sweep found in one scope, and did unless it was a dry run."""

    tenant: str
    subject: str | None
    expired: tuple[UUID, ...]
    """Content whose `retain_until` has passed."""
    recalls: tuple[UUID, ...]
    """Reads whose content was older than the caller keeps."""
    receipt: Receipt | None
    """Of an erasure; None for a deletion and for a dry run."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """One sweep, scope by scope; only scopes in which something had expired."""

    action: Literal["delete", "erase"]
    dry_run: bool
    scopes: tuple[ScopeSweep, ...]

    @property
    def num_items(self) -> int:
        return sum(len(scope.expired) for scope in self.scopes)
