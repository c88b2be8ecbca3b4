"""The immutable records of a ledger: six kinds, and what is left of one whose content was destroyed.

An event is built by the caller without a place; the store returns a copy that has `seq` and `recorded_at`. Ids and
timestamps are made at construction, which is the one place in `model` and `core` that asks for randomness and the time:
the audit contract wants an event to be a complete value before it is stored.

Source: `audit.md` section 2, `engine.md` E1 to E3.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args
from uuid import UUID, uuid4

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictInt,
    StringConstraints,
    WithJsonSchema,
)

from muniment.errors import UsageError
from muniment.model.json import FrozenDict, freeze_object

Kind = Literal["message", "document", "note", "recall", "deletion", "erasure"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
CONTENT_KINDS: Final[tuple[Kind, ...]] = ("message", "document", "note")

Tier = Literal["core", "archival", "insight"]
TIERS: Final[tuple[Tier, ...]] = get_args(Tier)


def now_utc() -> datetime:
    """The time now, aware, in UTC."""
    return datetime.now(UTC)


def to_utc(value: object) -> datetime:
    """The instant in UTC, from an aware datetime or ISO 8601 text with an offset.

    Raises: ValueError for a naive time, for other types, and for an instant outside the years 1 to 9999.
    """
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        raise ValueError(f"a datetime is needed, not {type(value).__name__}")
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise ValueError("a time without an offset is ambiguous: give an aware datetime")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("the instant lies outside the years 1 to 9999 in UTC") from None


def format_instant(value: datetime) -> str:
    """ISO 8601 ending in `Z`."""
    return value.isoformat().replace("+00:00", "Z")


def _check_key(value: str) -> str:
    if "\x00" in value:
        raise ValueError("a key must not contain U+0000")
    return value


Instant = Annotated[
    datetime,
    PlainValidator(to_utc),
    PlainSerializer(format_instant, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
TEXT_CHARS_MAX: Final = 2**40
"""No limit: a constraint is what makes pydantic look at the characters and refuse a lone surrogate."""

AnyText = Annotated[str, StringConstraints(strict=True, max_length=TEXT_CHARS_MAX)]
Text = Annotated[str, StringConstraints(strict=True, min_length=1)]
Key = Annotated[str, StringConstraints(strict=True, min_length=1), AfterValidator(_check_key)]
JsonObject = Annotated[
    Mapping[str, JsonValue],
    PlainValidator(freeze_object),
    PlainSerializer(dict, return_type=dict[str, JsonValue]),
    WithJsonSchema({"type": "object"}),
]


class EventBase(BaseModel):
    """What every event carries; frozen, and unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)

    id: UUID = Field(default_factory=uuid4)
    timestamp: Instant = Field(default_factory=now_utc)
    seq: StrictInt | None = Field(default=None, ge=0)
    recorded_at: Instant | None = None
    session_id: AnyText | None = None
    source: AnyText = "unknown"
    actor: AnyText | None = None

    def __hash__(self) -> int:
        # Equal events have equal ids; metadata cannot be hashed.
        return hash((type(self), self.id, self.seq))


class Message(EventBase):
    """What was said: one turn of a conversation."""

    kind: Literal["message"] = "message"
    speaker: Text
    content: Text
    retain_until: Instant | None = None
    recall_id: UUID | None = None
    """The read an answer was given from."""

    __hash__ = EventBase.__hash__


class Document(EventBase):
    """What was brought: the extracted plain text of a document."""

    kind: Literal["document"] = "document"
    name: Text
    text: Text
    media_type: AnyText = "text/plain"
    sha256: AnyText | None = None
    """The digest of the original bytes, which are kept elsewhere."""
    retain_until: Instant | None = None

    __hash__ = EventBase.__hash__


class Note(EventBase):
    """What was learned. A note with a key replaces the live note of that key in its scope."""

    kind: Literal["note"] = "note"
    content: AnyText
    tier: Tier = "archival"
    labels: tuple[AnyText, ...] = ()
    key: Key | None = None
    summary: AnyText | None = None
    metadata: JsonObject = Field(default_factory=FrozenDict)
    retain_until: Instant | None = None
    supersedes: UUID | None = None
    """The note whose key this one took over; only the store sets it."""
    derived_from: tuple[UUID, ...] = ()

    __hash__ = EventBase.__hash__


class Recall(EventBase):
    """What was read: the ids that entered a context, in order."""

    kind: Literal["recall"] = "recall"
    query: Text
    recalled: tuple[UUID, ...] = ()
    request: JsonObject = Field(default_factory=FrozenDict)
    """How the read was made: mode, filters, limit, the seq it read at, the digest of what was handed out."""

    __hash__ = EventBase.__hash__


class Deletion(EventBase):
    """What was hidden, and why. The ledger still holds its targets."""

    kind: Literal["deletion"] = "deletion"
    targets: tuple[UUID, ...] = Field(min_length=1)
    reason: Text
    requested_by: AnyText | None = None

    __hash__ = EventBase.__hash__


class Erasure(EventBase):
    """What was destroyed, and why. Its targets have no content any more."""

    kind: Literal["erasure"] = "erasure"
    reason: Text
    requested_by: AnyText | None = None
    targets: tuple[UUID, ...] = ()
    whole_scope: StrictBool = False
    count: StrictInt = Field(default=0, ge=0)
    """How many events lost their content."""

    __hash__ = EventBase.__hash__


class ErasedEvent(BaseModel):
    """What is left of an event whose content was destroyed: its envelope."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: UUID
    kind: Kind
    seq: StrictInt = Field(ge=0)
    recorded_at: Instant
    content_digest: Annotated[str, StringConstraints(strict=True, pattern="^[0-9a-f]{64}$")]
    erased: StrictInt = Field(ge=0)
    """The seq of the Erasure that destroyed it."""
    targets: tuple[UUID, ...] = ()
    supersedes: UUID | None = None
    whole_scope: StrictBool = False
    count: StrictInt = 0


Event = Message | Document | Note | Recall | Deletion | Erasure
Content = Message | Document | Note

EVENT_TYPES: Final[Mapping[str, type[Event]]] = {
    "message": Message,
    "document": Document,
    "note": Note,
    "recall": Recall,
    "deletion": Deletion,
    "erasure": Erasure,
}

E = TypeVar("E", bound=EventBase)

_ALL_FIELDS: Final[Mapping[type[EventBase], set[str]]] = {
    event_type: set(event_type.model_fields) for event_type in EVENT_TYPES.values()
}


def build_trusted(event_type: type[E], values: dict[str, Any]) -> E:
    """An event from the values of all its fields, without checking them again.

    For values that were checked when they were written and are covered by a digest: decoding a ledger of a million
    events would otherwise spend most of its time on proving what is known. `values` becomes the event's own.
    """
    event = event_type.__new__(event_type)
    set_attribute = object.__setattr__
    set_attribute(event, "__dict__", values)
    set_attribute(event, "__pydantic_fields_set__", _ALL_FIELDS[event_type])
    set_attribute(event, "__pydantic_extra__", None)
    set_attribute(event, "__pydantic_private__", None)
    return event


def with_place(event: E, seq: int, recorded_at: datetime) -> E:
    """The stored copy of an event: the same fields, with the place that the store gave it."""
    return build_trusted(type(event), {**event.__dict__, "seq": seq, "recorded_at": recorded_at})


# --- JSON -------------------------------------------------------------------------------------------------------------


def event_to_dict(event: Event | ErasedEvent) -> dict[str, JsonValue]:
    """The event as JSON-ready values, keys in the order of the contract, times ending in `Z`."""
    if isinstance(event, ErasedEvent):
        return _erased_to_dict(event)
    order = _FIELD_ORDER[event.kind]
    fields = event.__dict__
    return {name: _to_json(fields[name]) for name in order}


def _erased_to_dict(event: ErasedEvent) -> dict[str, JsonValue]:
    out: dict[str, JsonValue] = {
        name: _to_json(getattr(event, name))
        for name in ("id", "kind", "seq", "recorded_at", "content_digest", "erased")
    }
    for name in LINK_FIELDS.get(event.kind, ()):
        out[name] = _to_json(getattr(event, name))
    out["state"] = "erased"
    return out


def _to_json(value: object) -> JsonValue:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, tuple):
        return [_to_json(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, FrozenDict):
        return _thaw(value)
    return cast("JsonValue", value)


def _thaw(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _thaw(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_thaw(inner) for inner in value]
    return value


def event_from_dict(data: Mapping[str, object]) -> Event | ErasedEvent:
    """The event that `event_to_dict` wrote, from its dict or from parsed JSON.

    Raises: ValueError for unknown, missing or ill-typed fields and for an unknown kind.
    """
    if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"an event is a JSON object, not {type(data).__name__}")
    fields = dict(data)
    if "state" in fields:
        if fields.pop("state") != "erased":
            raise UsageError(f"state {data['state']!r} is not one: only 'erased' is written")
        return ErasedEvent.model_validate(fields)
    kind = fields.get("kind")
    event_type = EVENT_TYPES.get(kind) if isinstance(kind, str) else None
    if event_type is None:
        raise UsageError(f"kind {kind!r} is not one of {', '.join(KINDS)}")
    missing = [name for name in ("id", "timestamp") if name not in fields]
    if missing:
        raise UsageError(f"a {kind} without {' and '.join(missing)} is not a record of one")
    return event_type.model_validate(fields)


_FIELD_ORDER: Final[Mapping[str, tuple[str, ...]]] = {
    kind: tuple(event_type.model_fields) for kind, event_type in EVENT_TYPES.items()
}

LINK_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "note": ("supersedes",),
    "deletion": ("targets",),
    "erasure": ("targets", "whole_scope", "count"),
}
"""The fields that live in the envelope, per kind: what the fold needs after an erasure."""
