"""The bytes that a ledger is made of: of an envelope, of a content, of their digests.

An envelope is a sequence of fields, each a tag byte, a four-byte big-endian length and a value, after a magic that
names the version; the leaf of the tree is the hash of those bytes. A content is JSON with sorted keys, without the
fields that are None or empty; it is stored as the bytes that were hashed, so a check never encodes anything again. A
change of either encoding is a new version, and the golden values in the tests make an accidental one show.

Source: `engine.md` E1 to E3.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast
from uuid import UUID, SafeUUID

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from muniment.core.merkle import hash_leaf
from muniment.errors import IntegrityError
from muniment.model.event import (
    EVENT_TYPES,
    KINDS,
    LINK_FIELDS,
    ErasedEvent,
    Event,
    Kind,
    build_trusted,
    format_instant,
)
from muniment.model.json import EMPTY, freeze_object

FORMAT: Final = 1
_MAGIC: Final = b"muniment/event/1\n"

SALT_BYTES: Final = 16
LEDGER_ID_BYTES: Final = 16
DIGEST_BYTES: Final = 32

KIND_NUMBERS: Final[Mapping[str, int]] = {kind: number for number, kind in enumerate(KINDS, 1)}
"""The number of a kind in an envelope and in SQL. 7 is kept for administrative acts (engine.md E4)."""

_TAG_TARGETS, _TAG_WHOLE, _TAG_COUNT, _TAG_SUPERSEDES = 0x10, 0x11, 0x12, 0x13

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_FIXED: Final = struct.Struct(">BI16sBIQBI16sBIBBIqBI32s")


_new_uuid: Final = object.__new__
_set_attribute: Final = object.__setattr__


class Envelope(NamedTuple):
    """The part of an event that never changes and holds nothing personal, ready to be stored."""

    seq: int
    event_id: bytes
    kind: int
    recorded_us: int
    digest: bytes
    links: bytes


def unpack_uuid(value: bytes) -> UUID:
    """The id of those 16 bytes; a third of the time that `UUID(bytes=…)` takes to check what is known."""
    made = _new_uuid(UUID)
    _set_attribute(made, "int", int.from_bytes(value))
    _set_attribute(made, "is_safe", SafeUUID.unknown)
    return made


def to_us(instant: datetime) -> int:
    """Microseconds since 1970 in UTC."""
    return (instant - _EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """The aware datetime of that many microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=microseconds)


# --- Envelope ---------------------------------------------------------------------------------------------------------


def encode_envelope(ledger_id: bytes, envelope: Envelope) -> bytes:
    """The canonical bytes of an envelope in that ledger."""
    return (
        _MAGIC
        + _FIXED.pack(
            *(1, 16, ledger_id),
            *(2, 8, envelope.seq),
            *(3, 16, envelope.event_id),
            *(4, 1, envelope.kind),
            *(5, 8, envelope.recorded_us),
            *(6, 32, envelope.digest),
        )
        + envelope.links
    )


def leaf_of(ledger_id: bytes, envelope: Envelope) -> bytes:
    """The leaf hash of an envelope."""
    return hash_leaf(encode_envelope(ledger_id, envelope))


def find_leaf(ledger_id: bytes, envelope: Envelope) -> bytes | None:
    """The leaf hash of a stored envelope, or None for one that cannot be encoded because no version wrote it."""
    try:
        return leaf_of(ledger_id, envelope)
    except struct.error:
        return None


def digest_of(salt: bytes, body: bytes) -> bytes:
    """The digest that an envelope keeps of its content; without the salt it says nothing about it."""
    return sha256(salt + body).digest()


def encode_links(event: Event) -> bytes:
    """The links of an event that the fold needs: targets, whole scope, count, supersedes."""
    fields = event.__dict__
    match event.kind:
        case "note":
            supersedes: UUID | None = fields["supersedes"]
            return b"" if supersedes is None else _field(_TAG_SUPERSEDES, supersedes.bytes)
        case "deletion":
            return _field(_TAG_TARGETS, _pack_ids(fields["targets"]))
        case "erasure":
            return (
                _field(_TAG_TARGETS, _pack_ids(fields["targets"]))
                + _field(_TAG_WHOLE, bytes([fields["whole_scope"]]))
                + _field(_TAG_COUNT, cast("int", fields["count"]).to_bytes(8, "big"))
            )
        case _:
            return b""


def decode_links(links: bytes) -> dict[str, Any]:
    """The link fields by name.

    Raises: IntegrityError for bytes that no version has written.
    """
    out: dict[str, Any] = {}
    at = 0
    while at < len(links):
        end = at + 5 + int.from_bytes(links[at + 1 : at + 5], "big")
        if at + 5 > len(links) or end > len(links):
            raise IntegrityError("the links of an event are cut short")
        name, decode = _LINK_DECODERS.get(links[at], (None, None))
        if name is None or decode is None or name in out:
            raise IntegrityError(f"the links of an event have an unexpected field {links[at]}")
        out[name] = decode(links[at + 5 : end])
        at = end
    return out


def _field(tag: int, value: bytes) -> bytes:
    return bytes([tag]) + len(value).to_bytes(4, "big") + value


def _pack_ids(ids: tuple[UUID, ...]) -> bytes:
    return b"".join([item.bytes for item in ids])


def _unpack_ids(value: bytes) -> tuple[UUID, ...]:
    _check_length(value, len(value) // 16 * 16)
    return tuple([UUID(bytes=value[at : at + 16]) for at in range(0, len(value), 16)])


def _unpack_id(value: bytes) -> UUID:
    _check_length(value, 16)
    return UUID(bytes=value)


def _unpack_bool(value: bytes) -> bool:
    if value not in (b"\x00", b"\x01"):
        raise IntegrityError("a link of an event is neither true nor false")
    return value == b"\x01"


def _unpack_count(value: bytes) -> int:
    _check_length(value, 8)
    return int.from_bytes(value, "big")


def _check_length(value: bytes, wanted: int) -> None:
    if len(value) != wanted:
        raise IntegrityError(f"a link of an event has {len(value)} bytes")


_LINK_DECODERS: Final[Mapping[int, tuple[str, Callable[[bytes], Any]]]] = {
    _TAG_TARGETS: ("targets", _unpack_ids),
    _TAG_WHOLE: ("whole_scope", _unpack_bool),
    _TAG_COUNT: ("count", _unpack_count),
    _TAG_SUPERSEDES: ("supersedes", _unpack_id),
}


# --- Content ----------------------------------------------------------------------------------------------------------


def encode_content(event: Event) -> bytes:
    """The canonical bytes of an event's content.

    Raises: ValueError (from the encoder) for text that is not UTF-8; the models refuse it before.
    """
    fields = event.__dict__
    out: dict[str, object] = {}
    holds_object = False
    for name, encode in _ENCODERS[event.kind]:
        value = fields[name]
        if value is None:
            continue
        if encode is not None:
            if not value:
                continue
            value = encode(value)
            holds_object = holds_object or isinstance(value, dict)
        out[name] = value
    # The quick encoder writes the same bytes but for numbers with a fraction, whose form is not its promise.
    return _to_canonical_json(out) if holds_object else to_json(out)


def encode_object(value: Mapping[str, JsonValue]) -> bytes:
    """Canonical JSON of an object: keys sorted by code point on every level, no white space, the shortest floats."""
    return _to_canonical_json(dict(value))


def _to_canonical_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def decode_event(kind: int, event_id: bytes, seq: int, recorded_at: datetime, links: bytes, body: bytes) -> Event:
    """The stored event from its envelope and content, without checking the fields again: a digest covers them.

    Raises: IntegrityError for bytes that no version has written.
    """
    name = kind_name(kind)
    values = _DEFAULTS[name].copy()
    values["id"] = unpack_uuid(event_id)
    values["seq"] = seq
    values["recorded_at"] = recorded_at
    if links:
        values.update(decode_links(links))
        if not values.keys() <= _FIELDS[name]:
            raise IntegrityError(f"event {values['id']} has the links of another kind", seq=seq)
    decoders = _DECODERS[name]
    try:
        for field, value in from_json(body).items():
            decode = decoders[field]
            values[field] = value if decode is None else decode(value)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise IntegrityError(
            f"the content of event {values['id']} is not one that was ever written", seq=seq
        ) from error
    return build_trusted(EVENT_TYPES[name], values)


def decode_erased(
    kind: int, event_id: bytes, seq: int, recorded_at: datetime, links: bytes, digest: bytes, erased: int
) -> ErasedEvent:
    """What is left of an event whose content the Erasure at seq `erased` destroyed."""
    return ErasedEvent(
        id=UUID(bytes=event_id),
        kind=kind_name(kind),
        seq=seq,
        recorded_at=recorded_at,
        content_digest=digest.hex(),
        erased=erased,
        **decode_links(links),
    )


def kind_name(number: int) -> Kind:
    """The kind of that number.

    Raises: IntegrityError for a number that no version has written.
    """
    if not 1 <= number <= len(KINDS):
        raise IntegrityError(f"event kind {number} is not known to this version")
    return KINDS[number - 1]


def _decode_ids(values: list[str]) -> tuple[UUID, ...]:
    return tuple([UUID(value) for value in values])


def _encode_ids(values: tuple[UUID, ...]) -> list[str]:
    return [str(value) for value in values]


_ENCODE: Final[Mapping[str, Callable[[Any], object]]] = {
    "timestamp": format_instant,
    "retain_until": format_instant,
    "recall_id": str,
    "labels": list,
    "metadata": dict,
    "request": dict,
    "derived_from": _encode_ids,
    "recalled": _encode_ids,
}
_DECODE: Final[Mapping[str, Callable[[Any], object]]] = {
    "timestamp": datetime.fromisoformat,
    "retain_until": datetime.fromisoformat,
    "recall_id": UUID,
    "labels": tuple,
    "metadata": freeze_object,
    "request": freeze_object,
    "derived_from": _decode_ids,
    "recalled": _decode_ids,
}
_EMPTY_VALUES: Final[Mapping[str, object]] = {
    "labels": (),
    "metadata": EMPTY,
    "request": EMPTY,
    "derived_from": (),
    "recalled": (),
    "targets": (),
}
_ENVELOPE_FIELDS: Final = frozenset({"id", "seq", "recorded_at", "kind"})


def _content_fields(kind: Kind) -> list[str]:
    links = LINK_FIELDS.get(kind, ())
    return sorted(name for name in EVENT_TYPES[kind].model_fields if name not in _ENVELOPE_FIELDS and name not in links)


_FIELDS: Final[Mapping[str, frozenset[str]]] = {kind: frozenset(EVENT_TYPES[kind].model_fields) for kind in KINDS}
_ENCODERS: Final[Mapping[str, list[tuple[str, Callable[[Any], object] | None]]]] = {
    kind: [(name, _ENCODE.get(name)) for name in _content_fields(kind)] for kind in KINDS
}
_DECODERS: Final[Mapping[str, Mapping[str, Callable[[Any], object] | None]]] = {
    kind: {name: _DECODE.get(name) for name in _content_fields(kind)} for kind in KINDS
}
_DEFAULTS: Final[Mapping[str, dict[str, Any]]] = {
    kind: {name: _EMPTY_VALUES.get(name) for name in EVENT_TYPES[kind].model_fields} | {"kind": kind} for kind in KINDS
}
"""Every field of a kind, in order, as it is where nothing is written."""
