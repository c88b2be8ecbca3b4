"""The canonical bytes: pinned, so that a change of the encoding shows, and read back whole."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.canonical import (
    KIND_NUMBERS,
    Envelope,
    decode_erased,
    decode_event,
    decode_links,
    digest_of,
    encode_content,
    encode_envelope,
    encode_links,
    encode_object,
    from_us,
    kind_name,
    leaf_of,
    to_us,
)
from muniment.core.merkle import hash_leaf
from muniment.errors import IntegrityError
from muniment.model.event import (
    KINDS,
    Deletion,
    Document,
    Erasure,
    Event,
    Message,
    Note,
    Recall,
    event_from_dict,
    event_to_dict,
    with_place,
)
from muniment.model.json import FrozenDict
from muniment.testing.rows import INT64_MAX, INT64_MIN
from muniment.testing.strategies import events, instants, json_objects

LEDGER_ID = bytes(range(16, 32))
SALT = bytes(range(16))
SEQ = 258
RECORDED_AT = datetime(2026, 6, 10, 12, 30, tzinfo=UTC)
A = UUID("00000000-0000-4000-8000-0000000000a1")
B = UUID("ffffffff-ffff-4fff-bfff-ffffffffffb2")
ID = UUID("0d1f8a00-1111-4222-8333-444455556666")
COMMON: dict[str, Any] = {
    "id": ID,
    "timestamp": datetime(2026, 6, 10, 12, 0, 0, 1, tzinfo=UTC),
    "session_id": "s1",
    "source": "chat",
    "actor": "agent-1",
}
UNTIL = datetime(2027, 1, 1, tzinfo=UTC)

PREFIX = (
    "6d756e696d656e742f6576656e742f310a"  # "muniment/event/1\n"
    "0100000010101112131415161718191a1b1c1d1e1f"  # ledger id
    "02000000080000000000000102"  # seq
    "03000000100d1f8a00111142228333444455556666"  # event id
)
RECORDED = "0500000008000653e566f1c200"


class Golden(NamedTuple):
    event: Event
    content: str
    links: str
    digest: str
    leaf: str


GOLDENS = [
    Golden(
        Message(**COMMON, speaker="annä", content='say "hi"\n\U0001f9e0', retain_until=UNTIL, recall_id=A),
        '{"actor":"agent-1","content":"say \\"hi\\"\\n\U0001f9e0","recall_id":"00000000-0000-4000-8000-0000000000a1",'
        '"retain_until":"2027-01-01T00:00:00Z","session_id":"s1","source":"chat","speaker":"annä",'
        '"timestamp":"2026-06-10T12:00:00.000001Z"}',
        "",
        "4c7df4201ab7977e56d9919c209e0e321f2fbe93865717bb6e8dfdad76d13276",
        "bc05da39521b15f6d8e87e4d5157fdc453fe0b09da63941631d5b3f64c52a804",
    ),
    Golden(
        Document(
            **COMMON,
            name="report.txt",
            text="Budget </summary>\t\u2028",
            media_type="text/markdown",
            sha256="ab" * 32,
            retain_until=UNTIL,
        ),
        '{"actor":"agent-1","media_type":"text/markdown","name":"report.txt","retain_until":"2027-01-01T00:00:00Z",'
        '"session_id":"s1","sha256":"' + "ab" * 32 + '","source":"chat","text":"Budget </summary>\\t\u2028",'
        '"timestamp":"2026-06-10T12:00:00.000001Z"}',
        "",
        "0a4a1c06228d23f7b70c9f9a2d4a0d6f501f82178748b738c7c57b0371b4e152",
        "2cec4ac1ab1ec2c867dd5583aeed22f2ac9b92f27c0975863f79918093896bf5",
    ),
    Golden(
        Note(
            **COMMON,
            content="prefers tea",
            tier="core",
            labels=("b", "a"),
            key="drink",
            summary="tea",
            metadata={"z": 1, "a": [1.5, None, True, {"y": "日", "b": -0.0}], "\U0001f9e0": 10**18, "\uffee": 0.1},
            retain_until=UNTIL,
            supersedes=A,
            derived_from=(B, A),
        ),
        '{"actor":"agent-1","content":"prefers tea","derived_from":["ffffffff-ffff-4fff-bfff-ffffffffffb2",'
        '"00000000-0000-4000-8000-0000000000a1"],"key":"drink","labels":["b","a"],"metadata":{"a":[1.5,null,true,'
        '{"b":-0.0,"y":"日"}],"z":1,"\uffee":0.1,"\U0001f9e0":1000000000000000000},'
        '"retain_until":"2027-01-01T00:00:00Z","session_id":"s1","source":"chat","summary":"tea","tier":"core",'
        '"timestamp":"2026-06-10T12:00:00.000001Z"}',
        "1300000010000000000000400080000000000000a1",
        "6f10d439210b2f5682e6a5cc3c11623f5d9cdbb261f9830fd3c326eb457e12ae",
        "1c8f758ce6b451d52882a9836a23c0f469d80a7e779bcc84fb22e69aed8dfff5",
    ),
    Golden(
        Recall(**COMMON, query="tea?", recalled=(B, A, B), request={"mode": "hybrid", "limit": 5}),
        '{"actor":"agent-1","query":"tea?","recalled":["ffffffff-ffff-4fff-bfff-ffffffffffb2",'
        '"00000000-0000-4000-8000-0000000000a1","ffffffff-ffff-4fff-bfff-ffffffffffb2"],'
        '"request":{"limit":5,"mode":"hybrid"},"session_id":"s1","source":"chat",'
        '"timestamp":"2026-06-10T12:00:00.000001Z"}',
        "",
        "30063853aa017518ab53d933435ce43fec303afb57ff3a2d247fe64acb5b2d08",
        "61e2fcad514833aee0939435ee89267c9efd3521569bdc60cf2c3e3885e62fe4",
    ),
    Golden(
        Deletion(**COMMON, targets=(B, A), reason="asked", requested_by="user-42"),
        '{"actor":"agent-1","reason":"asked","requested_by":"user-42","session_id":"s1","source":"chat",'
        '"timestamp":"2026-06-10T12:00:00.000001Z"}',
        "1000000020ffffffffffff4fffbfffffffffffffb2000000000000400080000000000000a1",
        "7fce594561238cf869d284d481dce4cd0dd38a5bca1e79d1d027557973263cea",
        "770798691c69c6d5e1e8e717e991d79f73e69243a7acbf445e6b8f37f800dc14",
    ),
    Golden(
        Erasure(**COMMON, targets=(A,), whole_scope=False, count=3, reason="asked", requested_by="dpo"),
        '{"actor":"agent-1","reason":"asked","requested_by":"dpo","session_id":"s1","source":"chat",'
        '"timestamp":"2026-06-10T12:00:00.000001Z"}',
        "1000000010000000000000400080000000000000a111000000010012000000080000000000000003",
        "87416bbc89218d3903a3a6d7af951f164508f333666c3d6bb0add4f2007d6de0",
        "7607eb016bdaccfaf924b14f1cf734cf1f3a7a9b6f5c98a514c52c7eca81f488",
    ),
]

by_kind = pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.event.kind)


def envelope_of(event: Event, recorded_us: int = to_us(RECORDED_AT)) -> Envelope:
    digest = digest_of(SALT, encode_content(event))
    return Envelope(SEQ, event.id.bytes, KIND_NUMBERS[event.kind], recorded_us, digest, encode_links(event))


def read_back(event: Event, recorded_us: int = to_us(RECORDED_AT)) -> Event:
    """The event as it comes out of its canonical bytes."""
    envelope = envelope_of(event, recorded_us)
    return decode_event(
        envelope.kind,
        envelope.event_id,
        envelope.seq,
        from_us(envelope.recorded_us),
        envelope.links,
        encode_content(event),
    )


# --- Golden values: a change here is a change of the format, and needs a new version ---------------------------------


@by_kind
def test_golden_content(golden: Golden) -> None:
    assert encode_content(golden.event) == golden.content.encode()
    assert digest_of(SALT, golden.content.encode()).hex() == golden.digest


@by_kind
def test_golden_envelope(golden: Golden) -> None:
    number = f"{KINDS.index(golden.event.kind) + 1:02x}"
    envelope = PREFIX + "0400000001" + number + RECORDED + "0600000020" + golden.digest + golden.links
    assert encode_links(golden.event).hex() == golden.links
    assert encode_envelope(LEDGER_ID, envelope_of(golden.event)).hex() == envelope
    assert leaf_of(LEDGER_ID, envelope_of(golden.event)).hex() == golden.leaf
    assert hash_leaf(bytes.fromhex(envelope)).hex() == golden.leaf


def test_goldens_are_of_every_kind() -> None:
    assert [golden.event.kind for golden in GOLDENS] == list(KINDS)


def test_golden_contents_of_events_without_anything_optional() -> None:
    at: dict[str, Any] = {"id": ID, "timestamp": COMMON["timestamp"]}
    stamp = ',"timestamp":"2026-06-10T12:00:00.000001Z"}'
    expected: list[tuple[Event, str, str]] = [
        (Message(**at, speaker="a", content="b"), '{"content":"b","source":"unknown","speaker":"a"', ""),
        (
            Document(**at, name="a", text="b"),
            '{"media_type":"text/plain","name":"a","source":"unknown","text":"b"',
            "",
        ),
        (Note(**at, content=""), '{"content":"","source":"unknown","tier":"archival"', ""),
        (Recall(**at, query="q"), '{"query":"q","source":"unknown"', ""),
        (
            Deletion(**at, targets=(A,), reason="r"),
            '{"reason":"r","source":"unknown"',
            "1000000010000000000000400080000000000000a1",
        ),
        (
            Erasure(**at, whole_scope=True, reason="r"),
            '{"reason":"r","source":"unknown"',
            "100000000011000000010112000000080000000000000000",
        ),
    ]
    for event, content, links in expected:
        assert encode_content(event).decode() == content + stamp
        assert encode_links(event).hex() == links
        assert read_back(event) == with_place(event, SEQ, RECORDED_AT)


def test_kind_numbers() -> None:
    assert KIND_NUMBERS == {"message": 1, "document": 2, "note": 3, "recall": 4, "deletion": 5, "erasure": 6}
    assert [kind_name(number) for number in range(1, 7)] == list(KINDS)


# --- What the bytes say ---------------------------------------------------------------------------------------------


def test_envelope_is_a_sequence_of_fields() -> None:
    """Tag, four-byte length, value: a reader in any language needs no more than this loop."""
    event = GOLDENS[5].event
    data = encode_envelope(LEDGER_ID, envelope_of(event))
    magic, rest = data.split(b"\n", 1)
    fields: dict[int, bytes] = {}
    while rest:
        tag, length = struct.unpack_from(">BI", rest)
        fields[tag], rest = rest[5 : 5 + length], rest[5 + length :]
    assert magic == b"muniment/event/1"
    assert fields == {
        1: LEDGER_ID,
        2: SEQ.to_bytes(8, "big"),
        3: ID.bytes,
        4: b"\x06",
        5: to_us(RECORDED_AT).to_bytes(8, "big", signed=True),
        6: sha256(SALT + encode_content(event)).digest(),
        0x10: A.bytes,
        0x11: b"\x00",
        0x12: (3).to_bytes(8, "big"),
    }


CHANGES: list[tuple[str, Callable[[Envelope], Envelope]]] = [
    ("seq", lambda envelope: envelope._replace(seq=envelope.seq + 1)),
    ("event id", lambda envelope: envelope._replace(event_id=B.bytes)),
    ("kind", lambda envelope: envelope._replace(kind=2)),
    ("recorded_at", lambda envelope: envelope._replace(recorded_us=envelope.recorded_us + 1)),
    ("digest", lambda envelope: envelope._replace(digest=bytes(32))),
    ("links", lambda envelope: envelope._replace(links=b"")),
]


@pytest.mark.parametrize(("part", "change"), CHANGES, ids=[part for part, _ in CHANGES])
def test_every_part_of_the_envelope_moves_the_leaf(part: str, change: Callable[[Envelope], Envelope]) -> None:
    envelope = envelope_of(GOLDENS[4].event)
    assert leaf_of(LEDGER_ID, change(envelope)) != leaf_of(LEDGER_ID, envelope)


def test_the_ledger_moves_the_leaf() -> None:
    envelope = envelope_of(GOLDENS[0].event)
    assert leaf_of(bytes(16), envelope) != leaf_of(LEDGER_ID, envelope)


def test_the_salt_moves_the_digest() -> None:
    assert digest_of(b"a" * 16, b"{}") != digest_of(b"b" * 16, b"{}")


@by_kind
def test_no_content_is_in_the_envelope(golden: Golden) -> None:
    """An envelope stays after an erasure, so nothing of the content may be in it."""
    data = encode_envelope(LEDGER_ID, envelope_of(golden.event))
    for text in ("s1", "chat", "agent-1", "asked", "user-42", "dpo", "drink", "tea", "ann", "Budget", "report"):
        assert text.encode() not in data


@given(events(), events())
def test_events_of_other_content_have_other_bytes(one: Event, other: Event) -> None:
    """The encoding is one to one: what differs in content or links differs in bytes."""
    alike = {**event_to_dict(one), "id": None} == {**event_to_dict(other), "id": None}
    bytes_alike = one.kind == other.kind and (encode_content(one), encode_links(one)) == (
        encode_content(other),
        encode_links(other),
    )
    assert alike == bytes_alike


@given(json_objects(), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    def shuffle(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, shuffle(inner)) for key, inner in value.items()]
            random.shuffle(items)
            return dict(items)
        return [shuffle(inner) for inner in value] if isinstance(value, list) else value

    assert encode_object(shuffle(value)) == encode_object(value)
    assert encode_content(Note(id=ID, timestamp=RECORDED_AT, content="a", metadata=shuffle(value))) == encode_content(
        Note(id=ID, timestamp=RECORDED_AT, content="a", metadata=value)
    )


def test_encode_object_is_compact_and_sorted() -> None:
    value = {"b": [1, {"z": None, "a": True}], "a": "é\x7f\u2028", "B": {}}
    assert encode_object(value) == '{"B":{},"a":"é\x7f\u2028","b":[1,{"a":true,"z":null}]}'.encode()
    assert encode_object({}) == b"{}"


# --- Round trips ------------------------------------------------------------------------------------------------------


@given(events(), st.integers(to_us(datetime.min.replace(tzinfo=UTC)), to_us(datetime.max.replace(tzinfo=UTC))))
def test_every_event_is_read_back_whole(event: Event, recorded_us: int) -> None:
    again = read_back(event, recorded_us)
    assert again == with_place(event, SEQ, from_us(recorded_us))
    assert type(again).model_validate(dict(again)) == again
    assert event_from_dict(event_to_dict(again)) == again
    assert encode_content(again) == encode_content(event)
    assert encode_links(again) == encode_links(event)


@by_kind
def test_what_is_read_back_is_frozen(golden: Golden) -> None:
    again = read_back(golden.event)
    for field in ("metadata", "request"):
        if hasattr(again, field):
            assert isinstance(getattr(again, field), FrozenDict)


@given(events())
def test_an_erased_event_keeps_its_links(event: Event) -> None:
    envelope = envelope_of(event)
    erased = decode_erased(envelope.kind, envelope.event_id, SEQ, RECORDED_AT, envelope.links, envelope.digest, SEQ + 1)
    assert (erased.id, erased.kind, erased.seq, erased.recorded_at) == (event.id, event.kind, SEQ, RECORDED_AT)
    assert (erased.content_digest, erased.erased) == (envelope.digest.hex(), SEQ + 1)
    assert erased.supersedes == getattr(event, "supersedes", None)
    assert erased.targets == getattr(event, "targets", ())
    assert erased.whole_scope == getattr(event, "whole_scope", False)
    assert erased.count == getattr(event, "count", 0)
    assert event_from_dict(event_to_dict(erased)) == erased


@given(instants())
def test_instants_are_whole_microseconds(instant: datetime) -> None:
    assert from_us(to_us(instant)) == instant


@given(st.integers(to_us(datetime.min.replace(tzinfo=UTC)), to_us(datetime.max.replace(tzinfo=UTC))))
def test_microseconds_are_whole_instants(microseconds: int) -> None:
    assert to_us(from_us(microseconds)) == microseconds
    assert from_us(microseconds).tzinfo is UTC


def test_microseconds_before_1970() -> None:
    assert to_us(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1
    assert from_us(-1) == datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.mark.parametrize("recorded_us", [INT64_MIN, -1, 0, INT64_MAX])
def test_envelopes_of_any_recorded_instant(recorded_us: int) -> None:
    encode_envelope(LEDGER_ID, envelope_of(GOLDENS[0].event, recorded_us))


# --- Damage -----------------------------------------------------------------------------------------------------------


def field(tag: int, value: bytes) -> bytes:
    return bytes([tag]) + len(value).to_bytes(4, "big") + value


@pytest.mark.parametrize(
    "links",
    [
        b"\x10",
        b"\x10\x00\x00\x00",
        field(0x10, A.bytes)[:-1],
        field(0x10, A.bytes) + b"\x11",
        field(0x10, A.bytes[:-1]),
        field(0x10, A.bytes + b"\x00"),
        field(0x11, b""),
        field(0x11, b"\x02"),
        field(0x11, b"\x01\x01"),
        field(0x12, b"\x01"),
        field(0x12, bytes(9)),
        field(0x13, b""),
        field(0x13, A.bytes[:-1]),
        field(0x13, A.bytes + A.bytes),
        field(0x00, b""),
        field(0x0F, A.bytes),
        field(0x14, A.bytes),
        field(0xFF, A.bytes),
        field(0x10, A.bytes) + field(0x10, B.bytes),
        b"\x10\xff\xff\xff\xff" + A.bytes,
    ],
)
def test_damaged_links(links: bytes) -> None:
    with pytest.raises(IntegrityError):
        decode_links(links)


@given(st.binary(max_size=60))
def test_links_of_any_bytes_are_read_or_refused(links: bytes) -> None:
    with suppress(IntegrityError):
        decode_links(links)


@by_kind
def test_links_that_lost_a_byte(golden: Golden) -> None:
    links = encode_links(golden.event)
    for end in range(1, len(links)):
        try:
            decoded = decode_links(links[:end])
        except IntegrityError:
            continue
        assert decoded != decode_links(links), "a cut between two fields leaves fewer of them"


@pytest.mark.parametrize("number", [-1, 0, 7, 255])
def test_a_kind_that_was_never_written(number: int) -> None:
    for decode in (
        lambda: kind_name(number),
        lambda: decode_event(number, ID.bytes, 0, RECORDED_AT, b"", b"{}"),
        lambda: decode_erased(number, ID.bytes, 0, RECORDED_AT, b"", bytes(32), 1),
    ):
        with pytest.raises(IntegrityError, match=str(number)):
            decode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"text"',
        b"\xff",
        b'{"timestamp":5}',
        b'{"timestamp":"yesterday"}',
        b'{"timestamp":"2026-06-10T12:00:00Z","labels":5}',
        b'{"timestamp":"2026-06-10T12:00:00Z","derived_from":["no uuid"]}',
        b'{"timestamp":"2026-06-10T12:00:00Z","derived_from":[5]}',
        b'{"timestamp":"2026-06-10T12:00:00Z","metadata":[1]}',
    ],
)
def test_damaged_content(body: bytes) -> None:
    with pytest.raises(IntegrityError):
        decode_event(KIND_NUMBERS["note"], ID.bytes, 0, RECORDED_AT, b"", body)
