"""Whose memory it is: `Scope(tenant, subject)`, matched by equality of both parts and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from muniment.errors import LimitExceededError, UsageError
from muniment.model.limits import NAME_CHARS_MAX


@dataclass(frozen=True, slots=True)
class Scope:
    """One tenant's one subject; `subject=None` is the tenant's unscoped shelf, which no text can name.

    Raises: UsageError for an empty part, a part with U+0000 or a lone surrogate, or one that is not text;
            LimitExceededError above 256 characters.
    """

    tenant: str
    subject: str | None

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant)
        if self.subject is not None:
            check_name("subject", self.subject)


def check_name(part: str, value: object) -> str:
    """The value, if it can be a tenant's or a subject's name: 1..256 characters, no U+0000, no surrogate."""
    if not isinstance(value, str):
        raise UsageError(f"{part} must be text, not {type(value).__name__}")
    if not value:
        raise UsageError(f"{part} must not be empty")
    if len(value) > NAME_CHARS_MAX:
        raise LimitExceededError(part, limit=NAME_CHARS_MAX, given=len(value), unit="characters")
    if "\x00" in value:
        raise UsageError(f"{part} must not contain U+0000")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{part} must not contain a lone surrogate") from None
    return value
