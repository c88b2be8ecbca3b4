"""The event model: `audit.md` section 2 and its required tests 1 to 27, and what they leave open."""

from __future__ import annotations

import copy
import json
import os
import pickle
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from muniment.errors import UsageError
from muniment.model.event import (
    CONTENT_KINDS,
    EVENT_TYPES,
    KINDS,
    TIERS,
    Deletion,
    Document,
    ErasedEvent,
    Erasure,
    Event,
    EventBase,
    Message,
    Note,
    Recall,
    build_trusted,
    event_from_dict,
    event_to_dict,
    to_utc,
    with_place,
)
from muniment.model.json import FrozenDict, FrozenList, depth_of, freeze_object
from muniment.testing.strategies import contents, events, histories, json_objects

NOON = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)
FIRST, SECOND = UUID(int=1), UUID(int=2)
DIGEST = "0f" * 32


def build(kind: str, /, **fields: Any) -> Event:
    """An event of that kind with whatever it requires, and these fields."""
    required: Mapping[str, dict[str, Any]] = {
        "message": {"speaker": "user", "content": "Hello"},
        "document": {"name": "report.txt", "text": "Budget summary"},
        "note": {"content": "prefers tea"},
        "recall": {"query": "budget"},
        "deletion": {"targets": [FIRST], "reason": "asked"},
        "erasure": {"reason": "asked"},
    }
    return EVENT_TYPES[kind](**{**required[kind], **fields})


def round_trip(event: Event | ErasedEvent) -> Event | ErasedEvent:
    """Through JSON text and back."""
    return event_from_dict(json.loads(json.dumps(event_to_dict(event))))


# --- Required tests 1 to 27 -------------------------------------------------------------------------------------------


def test_01_message() -> None:
    message = Message(speaker="user", content="Hello")
    assert message.kind == "message"
    assert (message.id.version, message.timestamp.tzinfo) == (4, UTC)
    assert (message.seq, message.source, message.actor) == (None, "unknown", None)
    assert (message.recorded_at, message.session_id, message.retain_until, message.recall_id) == (
        None,
        None,
        None,
        None,
    )


def test_02_message_without_content() -> None:
    with pytest.raises(ValueError, match="content"):
        Message(speaker="user", content="")


def test_03_message_without_speaker() -> None:
    with pytest.raises(ValueError, match="speaker"):
        Message(speaker="", content="Hello")


def test_04_naive_timestamp() -> None:
    with pytest.raises(ValueError, match="without an offset"):
        Message(speaker="user", content="Hello", timestamp=datetime(2026, 6, 10, 12, 0))  # noqa: DTZ001


def test_05_offset_becomes_utc() -> None:
    local = datetime(2026, 6, 10, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    message = Message(speaker="user", content="Hello", timestamp=local)
    assert (message.timestamp.tzinfo, message.timestamp.hour) == (UTC, 12)


def test_06_assigning_is_an_error() -> None:
    message = Message(speaker="user", content="Hello")
    with pytest.raises(ValidationError):
        message.content = "changed"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        del message.content


def test_07_retain_until() -> None:
    until = datetime(2027, 1, 1, tzinfo=UTC)
    assert Message(speaker="user", content="Hello", retain_until=until).retain_until == until
    with pytest.raises(ValueError, match="retain_until"):
        Message(speaker="user", content="Hello", retain_until=datetime(2027, 1, 1))  # noqa: DTZ001


def test_08_document() -> None:
    document = Document(name="report.txt", text="Budget summary")
    assert (document.media_type, document.sha256) == ("text/plain", None)


def test_09_document_without_name() -> None:
    with pytest.raises(ValueError, match="name"):
        Document(name="", text="Budget summary")


def test_10_document_without_text() -> None:
    with pytest.raises(ValueError, match="text"):
        Document(name="report.txt", text="")


def test_11_document_keeps_what_it_is_told() -> None:
    document = Document(name="r.pdf", text="text", media_type="application/pdf", sha256="a" * 64, actor="anna")
    assert (document.media_type, document.sha256, document.actor) == ("application/pdf", "a" * 64, "anna")


def test_12_recall_of_two() -> None:
    recall = Recall(query="budget", recalled=[FIRST, str(SECOND)])  # pyright: ignore[reportArgumentType]
    assert recall.recalled == (FIRST, SECOND)


def test_13_recall_of_none() -> None:
    assert Recall(query="budget").recalled == ()


def test_14_recall_without_query() -> None:
    with pytest.raises(ValueError, match="query"):
        Recall(query="")


def test_15_deletion_without_targets() -> None:
    with pytest.raises(ValueError, match="targets"):
        Deletion(targets=(), reason="asked")


def test_16_deletion_without_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        Deletion(targets=(FIRST,), reason="")


def test_17_deletion() -> None:
    deletion = Deletion(targets=(FIRST,), reason="asked", requested_by="user-42")
    assert (deletion.targets, deletion.reason, deletion.requested_by) == ((FIRST,), "asked", "user-42")


def test_18_round_trip_of_a_message() -> None:
    message = Message(speaker="user", content="Hello", session_id="s1", source="chat", actor="agent-1")
    assert event_from_dict(event_to_dict(message)) == message
    assert round_trip(message) == message


def test_19_round_trip_of_a_document_and_a_note() -> None:
    document = Document(name="report.txt", text="Budget", media_type="text/markdown", sha256=DIGEST)
    note = Note(
        content="prefers tea",
        tier="core",
        labels=("drinks",),
        key="drink",
        summary="tea",
        metadata={"sure": True, "from": [1, 2.5, None, {"deep": "er"}]},
        retain_until=NOON,
        supersedes=FIRST,
        derived_from=(FIRST, SECOND),
    )
    for event in (document, note):
        assert event_from_dict(event_to_dict(event)) == event
        assert round_trip(event) == event


def test_20_round_trip_of_a_recall_a_deletion_and_an_erasure() -> None:
    recall = Recall(query="*", recalled=(FIRST, FIRST), request={"mode": "hybrid", "limit": 5})
    deletion = Deletion(targets=(FIRST, SECOND), reason="asked", requested_by="user-42")
    erasure = Erasure(targets=(FIRST,), count=1, reason="asked", requested_by="dpo")
    for event in (recall, deletion, erasure, Erasure(whole_scope=True, count=12, reason="asked")):
        assert event_from_dict(event_to_dict(event)) == event
        assert round_trip(event) == event


def test_21_round_trip_of_an_erased_event() -> None:
    plain = ErasedEvent(id=FIRST, kind="message", seq=3, recorded_at=NOON, content_digest=DIGEST, erased=9)
    assert event_to_dict(plain) == {
        "id": str(FIRST),
        "kind": "message",
        "seq": 3,
        "recorded_at": "2026-06-10T12:00:00Z",
        "content_digest": DIGEST,
        "erased": 9,
        "state": "erased",
    }
    others = [
        plain.model_copy(update={"kind": "note", "supersedes": SECOND}),
        plain.model_copy(update={"kind": "deletion", "targets": (SECOND, FIRST)}),
        plain.model_copy(update={"kind": "erasure", "targets": (), "whole_scope": True, "count": 7}),
        plain.model_copy(update={"kind": "recall"}),
    ]
    for event in (plain, *others):
        assert event_from_dict(event_to_dict(event)) == event
        assert round_trip(event) == event
        assert event_to_dict(event)["state"] == "erased"
    assert [key for key in event_to_dict(others[2]) if key not in event_to_dict(plain)] == [
        "targets",
        "whole_scope",
        "count",
    ]


def test_22_dict_of_a_message_gives_a_message() -> None:
    assert isinstance(event_from_dict(event_to_dict(Message(speaker="user", content="Hello"))), Message)


def test_23_unknown_kind() -> None:
    data = event_to_dict(Message(speaker="user", content="Hello"))
    with pytest.raises(ValueError, match="mystery"):
        event_from_dict({**data, "kind": "mystery"})


def test_24_unknown_keyword() -> None:
    with pytest.raises(ValueError, match="mood"):
        Message(speaker="user", content="Hello", mood="good")  # type: ignore[call-arg]
    data = event_to_dict(Message(speaker="user", content="Hello"))
    with pytest.raises(ValueError, match="mood"):
        event_from_dict({**data, "mood": "good"})


def test_25_numbers_are_not_text() -> None:
    with pytest.raises(ValueError, match="speaker"):
        Message(speaker=5, content="Hello")  # type: ignore[arg-type]


def test_26_a_space_is_a_character() -> None:
    assert Message(speaker=" ", content=" ").content == " "
    assert Document(name=" ", text=" ").text == " "
    assert Recall(query=" ").query == " "
    assert Deletion(targets=(FIRST,), reason=" ").reason == " "


COMMON_KEYS = ["id", "timestamp", "seq", "recorded_at", "session_id", "source", "actor", "kind"]
KEYS = {
    "message": ["speaker", "content", "retain_until", "recall_id"],
    "document": ["name", "text", "media_type", "sha256", "retain_until"],
    "note": [
        *("content", "tier", "labels", "key", "summary", "metadata", "retain_until", "supersedes"),
        "derived_from",
    ],
    "recall": ["query", "recalled", "request"],
    "deletion": ["targets", "reason", "requested_by"],
    "erasure": ["reason", "requested_by", "targets", "whole_scope", "count"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_27_key_order(kind: str) -> None:
    """The keys of section 2 in their order; what engine.md E3 added stands at the end of its kind."""
    assert list(event_to_dict(build(kind))) == COMMON_KEYS + KEYS[kind]


# --- Ids, times and their borders -------------------------------------------------------------------------------------


def test_ids_are_new_for_each_event() -> None:
    assert len({Message(speaker="a", content="b").id for _ in range(100)}) == 100


def test_ids_in_any_spelling() -> None:
    for spelling in (str(FIRST), FIRST.hex, str(FIRST).upper(), f"urn:uuid:{FIRST}", f"{{{FIRST}}}"):
        assert Message(id=spelling, speaker="a", content="b").id == FIRST  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="id"):
        Message(id="no uuid", speaker="a", content="b")  # type: ignore[arg-type]


def test_ids_are_written_in_lower_case() -> None:
    event = Message(id="ABCDEF00-0000-4000-8000-000000000000", speaker="a", content="b")  # type: ignore[arg-type]
    assert event_to_dict(event)["id"] == "abcdef00-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    "text",
    ["2026-06-10T12:00:00Z", "2026-06-10T14:00:00+02:00", "2026-06-10T06:30:00-05:30", "2026-06-10 12:00:00+00:00"],
)
def test_times_as_text_with_an_offset(text: str) -> None:
    assert build("message", timestamp=text).timestamp == NOON
    assert event_to_dict(build("message", timestamp=text))["timestamp"] == "2026-06-10T12:00:00Z"


@pytest.mark.parametrize(
    "value", ["2026-06-10T12:00:00", "2026-06-10", "noon", "", 1_781_092_800, 1.5, True, None, NOON.date()]
)
def test_times_that_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="timestamp"):
        build("message", timestamp=value)


@pytest.mark.parametrize(
    "value",
    [
        datetime(1, 1, 1, 0, 0, tzinfo=timezone(timedelta(hours=14))),
        datetime(1, 1, 1, 0, 0, tzinfo=timezone(timedelta(minutes=1))),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-1))),
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-12:00",
    ],
)
def test_instants_outside_the_years_1_to_9999(value: object) -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        build("message", timestamp=value)


@pytest.mark.parametrize("value", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_first_and_the_last_instant(value: datetime) -> None:
    event = build("message", timestamp=value, retain_until=value)
    assert event.timestamp == value
    assert round_trip(event) == event


def test_microseconds_are_kept() -> None:
    event = build("message", timestamp=NOON.replace(microsecond=1))
    assert event_to_dict(event)["timestamp"] == "2026-06-10T12:00:00.000001Z"
    assert round_trip(event) == event


class _NoOffset(tzinfo):
    """A time zone that does not know its offset: aware in form, naive in fact."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None

    def tzname(self, dt: datetime | None) -> str:
        return "?"

    def dst(self, dt: datetime | None) -> None:
        return None


def test_a_zone_without_an_offset_is_naive() -> None:
    with pytest.raises(ValueError, match="without an offset"):
        to_utc(NOON.replace(tzinfo=_NoOffset()))


def test_an_hour_that_comes_twice_keeps_its_fold() -> None:
    """At the end of summer time 02:30 is two instants, an hour apart."""
    berlin = ZoneInfo("Europe/Berlin")
    first, second = (datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=berlin) for fold in (0, 1))
    assert (to_utc(first).hour, to_utc(second).hour) == (0, 1)
    assert round_trip(build("message", timestamp=second)).timestamp.hour == 1  # type: ignore[union-attr]


@pytest.fixture
def local_time_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize("local_time_zone", ["UTC", "Asia/Kathmandu", "America/St_Johns"], indirect=True)
@pytest.mark.usefixtures("local_time_zone")
def test_the_local_time_zone_changes_nothing() -> None:
    event = build("message", id=FIRST, timestamp="2026-06-10T14:00:00+02:00", retain_until=NOON)
    assert event_to_dict(event)["timestamp"] == event_to_dict(event)["retain_until"] == "2026-06-10T12:00:00Z"
    assert round_trip(event) == event
    assert abs(build("message").timestamp.timestamp() - time.time()) < 60
    with pytest.raises(ValueError, match="timestamp"):
        build("message", timestamp=datetime(2026, 6, 10, 12, 0))  # noqa: DTZ001


# --- Fields that are refused ------------------------------------------------------------------------------------------

TEXT_FIELDS = [
    *[(kind, field) for kind in KINDS for field in ("session_id", "source", "actor")],
    *[("message", "speaker"), ("message", "content"), ("document", "name"), ("document", "text")],
    *[("document", "media_type"), ("document", "sha256"), ("note", "content"), ("note", "key"), ("note", "summary")],
    *[("recall", "query"), ("deletion", "reason"), ("deletion", "requested_by")],
    *[("erasure", "reason"), ("erasure", "requested_by")],
]


@pytest.mark.parametrize(("kind", "field"), TEXT_FIELDS)
@pytest.mark.parametrize("value", ["\ud800", "a\udfffb", 5, 1.0, True, b"bytes", ["a"]])
def test_what_is_not_text(kind: str, field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        build(kind, **{field: value})


@pytest.mark.parametrize("labels", ["label", ["a", 5], ["\ud800"], None, 5])
def test_what_is_not_a_list_of_labels(labels: object) -> None:
    with pytest.raises(ValueError, match="labels"):
        build("note", labels=labels)


@pytest.mark.parametrize("key", ["", "a\x00b", "\x00", 5])
def test_keys_that_are_refused(key: object) -> None:
    with pytest.raises(ValueError, match="key"):
        build("note", key=key)


@pytest.mark.parametrize("tier", ["", "Core", "cores", None, 1])
def test_tiers_that_are_refused(tier: object) -> None:
    with pytest.raises(ValueError, match="tier"):
        build("note", tier=tier)


@pytest.mark.parametrize(("kind", "field"), [("recall", "recalled"), ("deletion", "targets"), ("erasure", "targets")])
@pytest.mark.parametrize("value", [str(FIRST), ["no uuid"], [None], [5], 5, FIRST])
def test_what_is_not_a_list_of_ids(kind: str, field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        build(kind, **{field: value})


@pytest.mark.parametrize("field", ["timestamp", "retain_until", "recorded_at"])
def test_naive_times_in_any_field(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        build("message", **{field: datetime(2026, 6, 10, 12, 0)})  # noqa: DTZ001


@pytest.mark.parametrize("seq", [-1, True, "1", 1.0])
def test_seqs_that_are_refused(seq: object) -> None:
    with pytest.raises(ValueError, match="seq"):
        build("message", seq=seq)


@pytest.mark.parametrize("kind", KINDS)
def test_another_kind_is_refused(kind: str) -> None:
    for other in (*KINDS, "mystery", None):
        if other != kind:
            with pytest.raises(ValueError, match="kind"):
                build(kind, kind=other)


@pytest.mark.parametrize(("field", "value"), [("count", -1), ("count", "1"), ("count", True), ("whole_scope", 1)])
def test_erasures_that_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        build("erasure", **{field: value})


@pytest.mark.parametrize("kind", KINDS)
def test_an_extra_keyword_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="surprise"):
        build(kind, surprise=1)


def test_empty_texts_that_are_allowed() -> None:
    assert build("message", source="", actor="", session_id="").source == ""
    assert Note(content="").content == ""
    assert Note(content="", summary="", labels=("",)).labels == ("",)


# --- Metadata ---------------------------------------------------------------------------------------------------------


def test_metadata_is_frozen_at_every_depth() -> None:
    given_data: dict[str, Any] = {"list": [1, {"deep": [2]}], "object": {"a": {"b": 1}}}
    note = Note(content="a", metadata=given_data)
    given_data["list"][1]["deep"].append(3)
    given_data["new"] = 1
    assert note.metadata == {"list": [1, {"deep": [2]}], "object": {"a": {"b": 1}}}
    metadata: Any = note.metadata
    changes: list[Any] = [
        lambda: metadata.__setitem__("a", 1),
        lambda: metadata.__delitem__("list"),
        lambda: metadata.update(a=1),
        lambda: metadata.clear(),
        lambda: metadata.pop("list"),
        lambda: metadata.popitem(),
        lambda: metadata.setdefault("a", 1),
        lambda: metadata.__ior__({"a": 1}),
        lambda: metadata["object"]["a"].__setitem__("b", 2),
        lambda: metadata["list"].append(1),
        lambda: metadata["list"].extend([1]),
        lambda: metadata["list"].__setitem__(0, 2),
        lambda: metadata["list"].__delitem__(0),
        lambda: metadata["list"].__iadd__([1]),
        lambda: metadata["list"].__imul__(2),
        lambda: metadata["list"].insert(0, 1),
        lambda: metadata["list"].pop(),
        lambda: metadata["list"].remove(1),
        lambda: metadata["list"].clear(),
        lambda: metadata["list"].sort(),
        lambda: metadata["list"].reverse(),
        lambda: metadata["list"][1]["deep"].append(3),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert note.metadata == {"list": [1, {"deep": [2]}], "object": {"a": {"b": 1}}}


@pytest.mark.parametrize(
    "metadata",
    [
        [1],
        "text",
        None,
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": {"b": [float("-inf")]}},
        {1: "a"},
        {"a": {None: 1}},
        {"a": b"bytes"},
        {"a": {1, 2}},
        {"a": NOON},
        {"a": "\ud800"},
        {"\udfff": 1},
        {"a": object()},
        {"a": 2**64},
        {"a": [-(2**64)]},
    ],
)
def test_what_is_not_a_json_object(metadata: object) -> None:
    with pytest.raises(ValueError, match="metadata"):
        build("note", metadata=metadata)
    with pytest.raises(ValueError, match="request"):
        build("recall", request=metadata)


def test_json_that_is_nested_too_deeply_or_without_end() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = [endless]
    with pytest.raises(ValueError, match="nested deeper"):
        build("note", metadata=endless)
    nested: Any = 1
    for _ in range(63):
        nested = [nested]
    assert depth_of(Note(content="a", metadata={"a": nested}).metadata) == 64  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nested deeper"):
        build("note", metadata={"a": [[nested]]})


def test_frozen_json_is_json() -> None:
    frozen = freeze_object({"a": (1, [2, {"b": None}]), "c": True})
    assert frozen == {"a": [1, [2, {"b": None}]], "c": True}
    assert json.loads(json.dumps(frozen)) == frozen
    assert isinstance(frozen["a"], FrozenList)
    assert freeze_object(frozen) is frozen
    for again in (copy.deepcopy(frozen), copy.copy(frozen), pickle.loads(pickle.dumps(frozen))):  # noqa: S301
        assert again == frozen
        assert isinstance(again, FrozenDict)
        assert isinstance(again["a"], FrozenList)


@given(json_objects())
def test_metadata_comes_back_as_it_was_given(metadata: dict[str, Any]) -> None:
    note = Note(content="a", metadata=metadata)
    assert note.metadata == metadata
    assert event_to_dict(note)["metadata"] == metadata
    assert round_trip(note) == note


def test_a_dict_of_an_event_can_be_changed_without_changing_the_event() -> None:
    note = Note(content="a", metadata={"list": [1], "object": {"a": 1}}, labels=("x",))
    data: Any = event_to_dict(note)
    data["metadata"]["list"].append(2)
    data["metadata"]["object"]["a"] = 2
    data["labels"].append("y")
    assert note.metadata == {"list": [1], "object": {"a": 1}}
    assert note.labels == ("x",)


# --- Values -----------------------------------------------------------------------------------------------------------


def test_events_compare_by_all_their_fields() -> None:
    message = build("message", id=FIRST, timestamp=NOON)
    assert message == build("message", id=FIRST, timestamp=NOON)
    assert message != build("message", id=SECOND, timestamp=NOON)
    assert message != build("message", id=FIRST, timestamp=NOON, content="Hullo")
    stored = with_place(message, 0, NOON)
    assert stored != message
    assert (message.seq, message.recorded_at) == (None, None)
    assert (stored.seq, stored.recorded_at, stored.id) == (0, NOON, FIRST)


@pytest.mark.parametrize("kind", KINDS)
def test_events_hash_like_values(kind: str) -> None:
    event = build(kind, id=FIRST, timestamp=NOON)
    assert hash(event) == hash(build(kind, id=FIRST, timestamp=NOON))
    assert len({event, build(kind, id=FIRST, timestamp=NOON), build(kind, id=SECOND, timestamp=NOON)}) == 2
    assert hash(with_place(event, 3, NOON)) == hash(with_place(event, 3, NOON))


@given(histories())
def test_stored_copies_are_whole_events(history: list[Event]) -> None:
    """What was built without validation equals what validation builds, and can be copied and pickled."""
    for event in history:
        again = type(event).model_validate(dict(event))
        assert again == event
        assert hash(again) == hash(event)
        assert event.model_copy() == copy.deepcopy(event) == pickle.loads(pickle.dumps(event)) == event  # noqa: S301
        assert repr(again) == repr(event)
        with pytest.raises(ValidationError):
            event.session_id = "changed"


def test_trusted_events_keep_the_values_they_are_given() -> None:
    values = dict(Message(speaker="a", content="b"))
    assert build_trusted(Message, values) == Message.model_validate(values)


@given(events())
def test_every_event_round_trips_through_json(event: Event) -> None:
    assert round_trip(event) == event
    assert type(round_trip(event)) is type(event)


@given(contents())
def test_json_of_pydantic_agrees_with_the_contract(content: Event) -> None:
    """`model_dump_json` writes the same as `event_to_dict`, so both can be read back."""
    assert json.loads(content.model_dump_json()) == json.loads(json.dumps(event_to_dict(content)))
    assert type(content).model_validate_json(content.model_dump_json()) == content


# --- event_from_dict --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [None, [], "text", 5, [("kind", "message")]])
def test_what_is_not_an_object(data: Any) -> None:
    with pytest.raises(UsageError, match="JSON object"):
        event_from_dict(data)


@pytest.mark.parametrize("kind", [None, "", "mystery", "Message", 5, [], {}])
def test_kinds_that_are_not_one(kind: object) -> None:
    data = event_to_dict(build("message"))
    with pytest.raises(ValueError, match="kind"):
        event_from_dict({**data, "kind": kind})


def test_a_missing_kind_or_field() -> None:
    data = event_to_dict(build("message"))
    for field in ("kind", "speaker", "content"):
        with pytest.raises(ValueError, match=field):
            event_from_dict({name: value for name, value in data.items() if name != field})


@pytest.mark.parametrize("state", ["alive", "", None, 1, []])
def test_a_state_that_is_never_written(state: object) -> None:
    data = event_to_dict(ErasedEvent(id=FIRST, kind="note", seq=0, recorded_at=NOON, content_digest=DIGEST, erased=1))
    with pytest.raises(ValueError, match="state"):
        event_from_dict({**data, "state": state})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content_digest", "0F" * 32),
        ("content_digest", "0f" * 31),
        ("content_digest", "0f" * 32 + "\n"),
        ("content_digest", 5),
        ("seq", -1),
        ("seq", None),
        ("erased", None),
        ("erased", -1),
        ("kind", "mystery"),
        ("recorded_at", "2026-06-10T12:00:00"),
        ("text", "what was there"),
    ],
)
def test_erased_events_that_are_refused(field: str, value: object) -> None:
    data = event_to_dict(ErasedEvent(id=FIRST, kind="note", seq=0, recorded_at=NOON, content_digest=DIGEST, erased=1))
    with pytest.raises(ValueError, match=field):
        event_from_dict({**data, field: value})


def test_the_dict_that_is_given_is_left_alone() -> None:
    data = event_to_dict(ErasedEvent(id=FIRST, kind="note", seq=0, recorded_at=NOON, content_digest=DIGEST, erased=1))
    before = copy.deepcopy(data)
    event_from_dict(data)
    assert data == before


# --- Names ------------------------------------------------------------------------------------------------------------


def test_kinds_and_tiers() -> None:
    assert KINDS == ("message", "document", "note", "recall", "deletion", "erasure")
    assert CONTENT_KINDS == ("message", "document", "note")
    assert TIERS == ("core", "archival", "insight")
    assert Note(content="a").tier == "archival"
    assert list(EVENT_TYPES) == list(KINDS)
    for kind, event_type in EVENT_TYPES.items():
        assert event_type.model_fields["kind"].default == kind
        assert issubclass(event_type, EventBase)


def test_every_kind_has_its_schema() -> None:
    """The JSON schema of every kind can be made: edges publish it."""
    for event_type in EVENT_TYPES.values():
        schema = event_type.model_json_schema()
        assert schema["additionalProperties"] is False
        assert schema["properties"]["timestamp"]["format"] == "date-time"


@given(st.uuids())
def test_deletion_targets_repeat_and_keep_their_order(other: UUID) -> None:
    targets = (other, FIRST, other)
    assert Deletion(targets=targets, reason="asked").targets == targets
    assert uuid4() not in targets
