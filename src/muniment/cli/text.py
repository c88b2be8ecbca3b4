"""Stored text made safe and short for a terminal and for one-line records.

Memories hold what anybody wrote: a control sequence in one must not move the cursor, recolour the screen or reorder the
line of the person who reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pydantic import ValidationError

from muniment.model.event import (
    Deletion,
    Document,
    ErasedEvent,
    Erasure,
    Event,
    Message,
    Note,
    Recall,
    format_instant,
)
from muniment.model.scope import Scope

# C0, DEL, C1, the two separators that end a line, the controls that reorder it, and halves of characters.
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_BLOCK: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT: Final[Mapping[str, str]] = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def one_line(text: str) -> str:
    """The text on one line, its control characters as escapes. For reading: `--json` gives the exact text."""
    return text if text.isprintable() else _UNSAFE.sub(_escape, text)


def block(text: str) -> str:
    """The text with its own lines and tabs, every other control character as an escape."""
    return _UNSAFE_IN_BLOCK.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def title_of(event: Event | ErasedEvent) -> str:
    """Who said it, what it is called, or what it did."""
    match event:
        case Message():
            return event.speaker
        case Document():
            return event.name
        case Note():
            return event.tier if event.key is None else f"{event.tier} {event.key}"
        case Recall():
            return f"{len(event.recalled)} read"
        case Deletion():
            return f"{len(event.targets)} hidden"
        case Erasure():
            return f"{event.count} destroyed"
        case ErasedEvent():
            return f"erased by {event.erased}"


def text_of(event: Event | ErasedEvent) -> str:
    """What was said, brought, learned or asked, or why it was done; nothing is left of an erased event."""
    match event:
        case Message() | Note():
            return event.content
        case Document():
            return event.text
        case Recall():
            return event.query
        case Deletion() | Erasure():
            return event.reason
        case ErasedEvent():
            return ""


def name_of(scope: Scope) -> str:
    """`tenant/subject`, for reading."""
    return f"{scope.tenant} (unscoped)" if scope.subject is None else f"{scope.tenant}/{scope.subject}"


def exact_time(value: datetime | None) -> str:
    """UTC ending in `Z`, to the microsecond; empty for None."""
    return "" if value is None else format_instant(value)


def short_time(value: datetime | None) -> str:
    """UTC ending in `Z`, to the second."""
    return "" if value is None else f"{value:%Y-%m-%d %H:%M:%S}Z"


def size_of(num_bytes: int) -> str:
    """A size for reading, in decimal units."""
    if num_bytes < 1_000:
        return f"{num_bytes} B"
    value = float(num_bytes)
    for unit in ("kB", "MB", "GB"):
        value /= 1_000
        if value < 1_000:
            return f"{value:.1f} {unit}"
    return f"{value / 1_000:.1f} TB"


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """`1 event`, `2,000 events`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def cell_of(value: object) -> str:
    """A value of an event as it stands in a one-line record."""
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def reasons_of(error: ValidationError) -> str:
    """What a model refused, on one line and without the values."""
    reasons: list[str] = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in problem["loc"])
        reason = problem["msg"].removeprefix("Value error, ")
        reasons.append(f"{place}: {reason}" if place else reason)
    return "; ".join(reasons)
