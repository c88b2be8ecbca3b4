"""Times as people type them: ISO 8601 with an offset, or a date; never a time whose zone must be guessed."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

from muniment.errors import UsageError
from muniment.model.event import to_utc


def parse_time(option: str, text: str | None) -> datetime | None:
    """The instant in UTC; a date is its first moment in UTC; None for None.

    Raises: UsageError for a time without an offset, and for what is not ISO 8601.
    """
    if text is None:
        return None
    day = _find_date(text)
    if day is not None:
        return datetime.combine(day, time(), UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is not a time: write 2026-03-01T09:30:00Z, 2026-03-01T11:30+02:00 or 2026-03-01"
        ) from None
    if moment.utcoffset() is None:
        raise UsageError(f"{option} {text!r} has no offset, so its instant is a guess: add Z for UTC, or one as +02:00")
    try:
        return to_utc(moment)
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None


def _find_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
