"""Whether an event may be stored: every limit of the engine, checked before anything is written.

The models check what a value is; this checks how much of it there is, so that `LimitExceededError` reaches the caller
as itself and not inside a validation error.

Source: `engine.md` section 7, `audit.md` A2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Final, cast
from uuid import UUID

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from muniment.errors import LimitExceededError, UsageError
from muniment.model import limits
from muniment.model.event import TIERS, Event
from muniment.model.json import depth_of


def check_event(event: Event) -> None:
    """Accept an event that the store has not seen and that keeps every limit.

    Raises: LimitExceededError; UsageError for an event that already has a place, and for text with U+0000.
    """
    if event.seq is not None or event.recorded_at is not None:
        raise UsageError(
            f"event {event.id} already has a place (seq {event.seq}, recorded_at {event.recorded_at}): "
            "the store gives it, add the event as it was built"
        )
    fields = event.__dict__
    try:
        if event.timestamp.tzinfo is not UTC:
            raise UsageError(f"event {event.id} has a timestamp that is not in UTC: build it anew")
        for name, check in _CHECKS[event.kind]:
            value = fields[name]
            if value:
                check(name, value)
            elif name in _REQUIRED and event.kind != "note":
                raise UsageError(f"{name} must have at least 1 character")
        if event.kind == "note" and fields["tier"] not in TIERS:
            raise UsageError(f"tier {fields['tier']!r} is not one of {', '.join(TIERS)}")
        if not isinstance(event.id, UUID):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"id {event.id!r} is not a UUID: build the event anew")
    except (TypeError, AttributeError, PydanticSerializationError) as error:
        # The model checks types when an event is built; `model_copy(update=…)` does not.
        raise UsageError(f"event {event.id} has a field of a type that its model refuses: build it anew") from error


def check_text(name: str, value: str) -> None:
    """Accept a text of at most 4 MiB of UTF-8 without U+0000."""
    if len(value) * 4 > limits.TEXT_BYTES_MAX:  # no character takes more than four bytes
        size = len(value) if value.isascii() else len(value.encode())
        if size > limits.TEXT_BYTES_MAX:
            raise LimitExceededError(name, limit=limits.TEXT_BYTES_MAX, given=size, unit="bytes of UTF-8")
    if "\x00" in value:
        raise UsageError(f"{name} must not contain U+0000")


def check_chars(name: str, value: str, limit: int) -> None:
    """Accept a text of at most that many characters without U+0000."""
    if len(value) > limit:
        raise LimitExceededError(name, limit=limit, given=len(value), unit="characters")
    if "\x00" in value:
        raise UsageError(f"{name} must not contain U+0000")


def check_request_id(value: str) -> None:
    """Accept a request id: 1..128 characters."""
    if not isinstance(value, str) or not value:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("request_id must be text of at least one character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError("request_id must not contain a lone surrogate") from None
    check_chars("request_id", value, limits.REQUEST_ID_CHARS_MAX)


def check_count(name: str, given: int, limit: int, unit: str) -> None:
    """Accept at most that many."""
    if given > limit:
        raise LimitExceededError(name, limit=limit, given=given, unit=unit)


def _chars(limit: int) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        check_chars(name, cast("str", value), limit)

    return check


def _text(name: str, value: object) -> None:
    check_text(name, cast("str", value))


def _ids(name: str, value: object) -> None:
    check_count(name, len(cast("Sequence[object]", value)), limits.TARGETS_MAX, "ids")


def _labels(name: str, value: object) -> None:
    labels = cast("Sequence[str]", value)
    check_count(name, len(labels), limits.LABELS_MAX, "labels")
    for label in labels:
        check_chars("label", label, limits.LABEL_CHARS_MAX)


def _object(name: str, value: object) -> None:
    content = cast("Mapping[str, JsonValue]", value)
    depth = depth_of(cast("JsonValue", value))
    check_count(f"{name} nesting", depth, limits.METADATA_DEPTH_MAX, "levels")
    check_count(name, len(to_json(content)), limits.METADATA_BYTES_MAX, "bytes of JSON")
    if _holds_nul(cast("JsonValue", value)):
        raise UsageError(f"{name} must not contain U+0000")


def _holds_nul(value: JsonValue) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any("\x00" in key or _holds_nul(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(_holds_nul(inner) for inner in value)
    return False


_REQUIRED: Final = frozenset({"speaker", "content", "name", "text", "query", "reason"})

_COMMON: Final = (
    ("session_id", _chars(limits.SESSION_CHARS_MAX)),
    ("source", _chars(limits.SOURCE_CHARS_MAX)),
    ("actor", _chars(limits.ACTOR_CHARS_MAX)),
)
_CHECKS: Final[Mapping[str, tuple[tuple[str, Callable[[str, object], None]], ...]]] = {
    "message": (*_COMMON, ("speaker", _chars(limits.SPEAKER_CHARS_MAX)), ("content", _text)),
    "document": (
        *_COMMON,
        ("name", _chars(limits.NAME_CHARS_MAX)),
        ("text", _text),
        ("media_type", _chars(limits.NAME_CHARS_MAX)),
        ("sha256", _chars(limits.NAME_CHARS_MAX)),
    ),
    "note": (
        *_COMMON,
        ("content", _text),
        ("labels", _labels),
        ("key", _chars(limits.KEY_CHARS_MAX)),
        ("summary", _text),
        ("metadata", _object),
        ("derived_from", _ids),
    ),
    "recall": (
        *_COMMON,
        ("query", _chars(limits.QUERY_CHARS_MAX)),
        ("recalled", _ids),
        ("request", _object),
    ),
    "deletion": (*_COMMON, ("targets", _ids), ("reason", _text), ("requested_by", _chars(limits.NAME_CHARS_MAX))),
    "erasure": (*_COMMON, ("targets", _ids), ("reason", _text), ("requested_by", _chars(limits.NAME_CHARS_MAX))),
}
