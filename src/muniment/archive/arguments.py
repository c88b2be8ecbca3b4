"""The arguments of the public calls, checked where they come in: what is wrong is the caller's to mend.

Raises: UsageError for a value that cannot be; TypeError for a value of another type where a type is promised.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from pydantic import ValidationError

from muniment.core.check import check_chars, check_text
from muniment.errors import UsageError
from muniment.model.event import EventBase, to_utc
from muniment.model.limits import NAME_CHARS_MAX

E = TypeVar("E", bound=EventBase)
T = TypeVar("T")


def build_event(event_type: type[E], **fields: Any) -> E:
    """The event of those fields.

    Raises: UsageError, with the model's own error as its cause, for fields that it refuses.
    """
    try:
        return event_type(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or event_type.__name__
        raise UsageError(f"{place}: {first['msg']}; nothing was stored") from error


def parse_text(name: str, value: object) -> str:
    """The value, if it is text that can be written.

    Raises: UsageError
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} must not contain a lone surrogate") from None
    return value


def parse_texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """The texts of a collection.

    Raises: UsageError for a bare text in place of the collection.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"{name} must be a collection of texts, not {type(values).__name__}: pass [text]")
    texts = tuple(values)
    for text in texts:
        parse_text(name, text)
    return texts


def parse_collection(name: str, values: Iterable[T]) -> tuple[T, ...]:
    """The values of a collection.

    Raises: UsageError for what is none, a bare text included.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"{name} must be a collection, not {type(values).__name__}")
    return tuple(values)


def check_reason(reason: object, requested_by: object) -> None:
    """Accept why something is destroyed, and who asked.

    Raises: UsageError, LimitExceededError
    """
    if not parse_text("reason", reason):
        raise UsageError("reason must have at least 1 character; nothing was destroyed")
    check_text("reason", parse_text("reason", reason))
    if requested_by is not None:
        check_chars("requested_by", parse_text("requested_by", requested_by), NAME_CHARS_MAX)


def parse_ids(targets: Iterable[UUID | str]) -> tuple[UUID, ...]:
    """The ids of a collection of ids or their texts.

    Raises: TypeError for a bare id or what is no collection; UsageError for a text that is no id, and for no ids.
    """
    if isinstance(targets, UUID | str | bytes) or not isinstance(targets, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a collection of ids is needed, not {type(targets).__name__}: pass [id]")
    ids = tuple(_parse_id(target) for target in targets)
    if not ids:
        raise UsageError("at least one id is needed")
    return ids


def _parse_id(target: UUID | str) -> UUID:
    found = find_id(target)
    if found is None:
        raise UsageError(f"{target!r} is not an id; nothing was stored")
    return found


def find_id(event_id: UUID | str) -> UUID | None:
    """The id of a text in any spelling that `uuid.UUID` accepts, or None."""
    if isinstance(event_id, UUID):
        return event_id
    try:
        return UUID(event_id)
    except (ValueError, AttributeError, TypeError):
        return None


def parse_instant(name: str, value: datetime) -> datetime:
    """The instant in UTC.

    Raises: UsageError for a naive time.
    """
    try:
        return to_utc(value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def parse_seq(name: str, value: object) -> int:
    """The value, if it is a whole number.

    Raises: UsageError
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    return value
