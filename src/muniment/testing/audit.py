"""The conformance suite of the audit contract: subclass `AuditContract`, say how an archive is opened, and run pytest.

```python
class TestAuditOnMyStorage(PersistentAuditContract):
    @pytest.fixture
    def opener(self, tmp_path):
        return lambda clock: my_open(tmp_path / "archive", clock=clock)
```

Tests carry the number of the required test (`test_37_…`) or of the law (`test_a07_…`) that they prove; `test_edge_…`
are the contract's edge cases and `test_errors_…` its table of errors. `PersistentAuditContract` adds what takes an
archive that can be opened again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta, timezone
from threading import Barrier, Thread
from typing import Any, Final, cast
from uuid import UUID, uuid4

import pytest
from pydantic import JsonValue

from muniment.archive import Archive
from muniment.archive import Memory as ScopeMemory
from muniment.audit import (
    Content,
    Deletion,
    Document,
    ErasedEvent,
    Erasure,
    Event,
    Memory,
    MemoryState,
    Message,
    Note,
    Recall,
    RecallStats,
    Scope,
    event_from_dict,
    event_to_dict,
    replay,
    search,
)
from muniment.errors import (
    ClosedError,
    ConflictError,
    DuplicateEventError,
    LimitExceededError,
    UsageError,
)
from muniment.model.event import KINDS, with_place
from muniment.model.limits import QUERY_CHARS_MAX, QUERY_TERMS_MAX, SEARCH_LIMIT_MAX, TARGETS_MAX
from muniment.ports.clock import Clock
from muniment.testing.doubles import START, FakeClock

Opener = Callable[[Clock], Archive]
"""Opens an archive on that clock; of a persistent one, each time the same."""

MemoryOf = Callable[[str], Memory]
"""The memory of a subject of the tenant `default`."""

PATIENCE_S: Final = 60.0
"""After which a thread that should have ended is taken to hang."""

NOON: Final = datetime(2026, 6, 10, 12, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
MICROSECOND: Final = timedelta(microseconds=1)
SURROGATE: Final = "a\ud800b"

COMMON_KEYS: Final = ["id", "timestamp", "seq", "recorded_at", "session_id", "source", "actor", "kind"]
OWN_KEYS: Final[Mapping[str, list[str]]] = {
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
ERASED_KEYS: Final = ["id", "kind", "seq", "recorded_at", "content_digest", "erased"]
LINK_KEYS: Final[Mapping[str, list[str]]] = {
    "note": ["supersedes"],
    "deletion": ["targets"],
    "erasure": ["targets", "whole_scope", "count"],
}


# --- What the tests write and see -------------------------------------------------------------------------------------


def say(content: str = "hello", *, speaker: str = "anna", **more: Any) -> Message:
    """A message that has not been stored yet."""
    return Message(speaker=speaker, content=content, **more)


def bring(text: str = "some text", *, name: str = "a.txt", **more: Any) -> Document:
    """A document that has not been stored yet."""
    return Document(name=name, text=text, **more)


def one_of_each() -> dict[str, Event]:
    """An event of each kind, with a value in every field that a caller may set."""
    common: dict[str, Any] = {"timestamp": NOON, "session_id": "s1", "source": "chat", "actor": "agent-1"}
    first, second = uuid4(), uuid4()
    return {
        "message": Message(speaker="anna", content="hello", retain_until=NOON, recall_id=first, **common),
        "document": Document(
            name="a.pdf", text="text", media_type="application/pdf", sha256="a" * 64, retain_until=NOON, **common
        ),
        "note": Note(
            content="a note",
            tier="insight",
            labels=("a", "b"),
            key="plan:current",
            summary="short",
            metadata={"deep": {"list": [1, 2.5, "three", None, True]}},
            retain_until=NOON,
            supersedes=first,
            derived_from=(first, second),
            **common,
        ),
        "recall": Recall(query="pump", recalled=(first, second, first), request={"limit": 5}, **common),
        "deletion": Deletion(targets=(first, second), reason="asked", requested_by="user-42", **common),
        "erasure": Erasure(
            targets=(first,), whole_scope=False, count=3, reason="asked", requested_by="user-42", **common
        ),
    }


def placed(events: Iterable[Event], first_seq: int = 0) -> list[Event]:
    """The events as a store would return them, one second apart."""
    return [with_place(event, seq, START + timedelta(seconds=seq)) for seq, event in enumerate(events, start=first_seq)]


def left_of(event: Event, erased: int) -> ErasedEvent:
    """What is left of a stored event after the Erasure at seq `erased`."""
    links = {name: getattr(event, name) for name in LINK_KEYS.get(event.kind, [])}
    return ErasedEvent.model_validate(
        {
            "id": event.id,
            "kind": event.kind,
            "seq": event.seq,
            "recorded_at": event.recorded_at,
            "content_digest": "ab" * 32,
            "erased": erased,
            **links,
        }
    )


def seqs_of(events: Iterable[Event | ErasedEvent]) -> list[int | None]:
    """The seqs of these events, in their order."""
    return [event.seq for event in events]


def through_json(event: Event | ErasedEvent) -> Event | ErasedEvent:
    """The event after a journey through JSON text."""
    return event_from_dict(json.loads(json.dumps(event_to_dict(event))))


def is_hidden(state: MemoryState, item_id: UUID) -> bool:
    """Whether the item stands in the state's tuples and in none of its visible ones."""
    everything = {item.id for item in (*state.messages, *state.documents, *state.notes)}
    visible = {item.id for item in (*state.visible_messages, *state.visible_documents, *state.visible_notes)}
    return item_id in everything and item_id not in visible


@contextmanager
def refused(memory: Memory, error: type[Exception], *words: str) -> Generator[None]:
    """A call that raises that error, which says these words, and leaves the ledger as it was."""
    before = memory.events()
    with pytest.raises(error) as caught:
        yield
    assert memory.events() == before
    assert len(memory) == len(before)
    for word in words:
        assert word in str(caught.value)


def run_together(*jobs: Callable[[], object]) -> None:
    """Run the jobs, each in a thread of its own from the same moment on; the first error is raised."""
    barrier = Barrier(len(jobs))
    errors: list[BaseException] = []

    def work(job: Callable[[], object]) -> None:
        try:
            barrier.wait(PATIENCE_S)
            job()
        except BaseException as error:  # noqa: BLE001 (a failed assertion in a thread belongs to the test)
            errors.append(error)

    threads = [Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    if errors:
        raise errors[0]


# --- Values: events, the fold and the search, without a store ---------------------------------------------------------


class EventContract:
    """What an event is, required tests 1 to 27: nothing is stored."""

    def test_01_a_message(self) -> None:
        message = Message(speaker="user", content="Hello")
        assert message.kind == "message"
        assert isinstance(message.id, UUID)
        assert message.id.version == 4
        assert message.timestamp.tzinfo is UTC
        assert (message.seq, message.recorded_at, message.session_id, message.actor) == (None, None, None, None)
        assert message.source == "unknown"
        assert message.id != Message(speaker="user", content="Hello").id

    def test_02_a_message_needs_content(self) -> None:
        with pytest.raises(ValueError, match="content"):
            Message(speaker="user", content="")

    def test_03_a_message_needs_a_speaker(self) -> None:
        with pytest.raises(ValueError, match="speaker"):
            Message(speaker="", content="Hello")

    def test_04_a_naive_time_is_refused(self) -> None:
        with pytest.raises(ValueError, match="timestamp"):
            say(timestamp=datetime(2026, 6, 10, 12))  # noqa: DTZ001 (naive on purpose)

    def test_05_any_offset_becomes_utc(self) -> None:
        there = timezone(timedelta(hours=2))
        message = say(timestamp=datetime(2026, 6, 10, 14, tzinfo=there))
        assert message.timestamp.utcoffset() == timedelta(0)
        assert message.timestamp.hour == 12
        assert say(timestamp="2026-06-10T14:00:00+02:00").timestamp == NOON

    def test_06_a_field_cannot_be_assigned(self) -> None:
        message = say()
        with pytest.raises(ValueError, match="frozen"):
            message.content = "other"  # pyright: ignore[reportAttributeAccessIssue]
        assert message.content == "hello"

    def test_07_retain_until_is_kept(self) -> None:
        until = datetime(2027, 1, 1, tzinfo=UTC)
        assert say(retain_until=until).retain_until == until
        assert bring(retain_until=until).retain_until == until
        assert Note(content="a", retain_until=until).retain_until == until
        with pytest.raises(ValueError, match="retain_until"):
            say(retain_until=datetime(2027, 1, 1))  # noqa: DTZ001 (naive on purpose)

    def test_08_a_document(self) -> None:
        document = Document(name="report.txt", text="Budget summary")
        assert (document.kind, document.media_type, document.sha256) == ("document", "text/plain", None)

    def test_09_a_document_needs_a_name(self) -> None:
        with pytest.raises(ValueError, match="name"):
            Document(name="", text="Budget summary")

    def test_10_a_document_needs_text(self) -> None:
        with pytest.raises(ValueError, match="text"):
            Document(name="report.txt", text="")

    def test_11_what_a_document_says_of_its_original_is_kept(self) -> None:
        document = Document(name="a", text="b", media_type="application/pdf", sha256="a" * 64, actor="anna")
        assert (document.media_type, document.sha256, document.actor) == ("application/pdf", "a" * 64, "anna")

    def test_12_a_recall(self) -> None:
        first, second = uuid4(), uuid4()
        assert Recall(query="q", recalled=(first, second)).recalled == (first, second)
        assert Recall.model_validate({"query": "q", "recalled": [first, str(second)]}).recalled == (first, second)
        assert Recall(query="q", recalled=(first, first)).recalled == (first, first)

    def test_13_a_recall_of_nothing(self) -> None:
        assert Recall(query="q").recalled == ()

    def test_14_a_recall_needs_a_query(self) -> None:
        with pytest.raises(ValueError, match="query"):
            Recall(query="")

    def test_15_a_deletion_needs_targets(self) -> None:
        with pytest.raises(ValueError, match="targets"):
            Deletion(targets=(), reason="asked")
        with pytest.raises(ValueError, match="targets"):
            Deletion.model_validate({"reason": "asked"})

    def test_16_a_deletion_needs_a_reason(self) -> None:
        with pytest.raises(ValueError, match="reason"):
            Deletion(targets=(uuid4(),), reason="")

    def test_17_a_deletion(self) -> None:
        target = uuid4()
        deletion = Deletion(targets=(target,), reason="asked", requested_by="user-42")
        assert (deletion.targets, deletion.reason, deletion.requested_by) == ((target,), "asked", "user-42")

    def test_18_a_message_goes_through_dict_and_json(self) -> None:
        message = say(session_id="s1", source="chat", actor="agent-1")
        assert event_from_dict(event_to_dict(message)) == message
        assert through_json(message) == message

    @pytest.mark.parametrize("kind", ["document", "note"])
    def test_19_documents_and_notes_go_through_json(self, kind: str) -> None:
        event = one_of_each()[kind]
        assert event_from_dict(event_to_dict(event)) == event
        assert through_json(event) == event

    @pytest.mark.parametrize("kind", ["recall", "deletion", "erasure"])
    def test_20_acts_go_through_json(self, kind: str) -> None:
        event = one_of_each()[kind]
        assert event_from_dict(event_to_dict(event)) == event
        assert through_json(event) == event

    @pytest.mark.parametrize("kind", KINDS)
    def test_20_stored_events_go_through_json(self, kind: str) -> None:
        (event,) = placed([one_of_each()[kind]], 7)
        assert through_json(event) == event
        assert through_json(event).seq == 7

    @pytest.mark.parametrize("kind", KINDS)
    def test_21_an_erased_event_goes_through_json(self, kind: str) -> None:
        (event,) = placed([one_of_each()[kind]], 7)
        left = left_of(event, 9)
        assert event_from_dict(event_to_dict(left)) == left
        assert through_json(left) == left
        assert isinstance(through_json(left), ErasedEvent)

    def test_22_a_dict_gives_its_own_class(self) -> None:
        for kind, event in one_of_each().items():
            assert type(event_from_dict(event_to_dict(event))) is type(event)
            assert event.kind == kind

    @pytest.mark.parametrize("kind", ["mystery", "", "Message", None, 1, ["message"]])
    def test_23_an_unknown_kind_is_refused(self, kind: object) -> None:
        with pytest.raises(ValueError, match="kind"):
            event_from_dict({**event_to_dict(say()), "kind": kind})

    def test_23_a_kind_is_fixed(self) -> None:
        with pytest.raises(ValueError, match="kind"):
            say(kind="document")

    @pytest.mark.parametrize("kind", KINDS)
    def test_24_unknown_keywords_are_refused(self, kind: str) -> None:
        event = one_of_each()[kind]
        with pytest.raises(ValueError, match="colour"):
            event_from_dict({**event_to_dict(event), "colour": "red"})
        with pytest.raises(ValueError, match="colour"):
            type(event).model_validate({**event.model_dump(), "colour": "red"})
        with pytest.raises(ValueError, match="colour"):
            event_from_dict({**event_to_dict(left_of(placed([event])[0], 9)), "colour": "red"})

    @pytest.mark.parametrize("kind", KINDS)
    def test_24_missing_data_is_refused(self, kind: str) -> None:
        whole = event_to_dict(one_of_each()[kind])
        needed = {
            "message": ["speaker", "content"],
            "document": ["name", "text"],
            "note": ["content"],
            "recall": ["query"],
            "deletion": ["targets", "reason"],
            "erasure": ["reason"],
        }[kind]
        for name in ["kind", "id", "timestamp", *needed]:
            with pytest.raises(ValueError, match=name):
                event_from_dict({key: value for key, value in whole.items() if key != name})

    def test_24_what_is_no_event_is_refused(self) -> None:
        for data in (None, 5, "message", [say()], {}, {"state": "erased"}, {**event_to_dict(say()), "state": "new"}):
            with pytest.raises(ValueError):  # noqa: PT011 (each says another thing)
                event_from_dict(cast("Any", data))

    @pytest.mark.parametrize("value", [5, 5.0, True, None, b"anna", ["anna"]])
    def test_25_what_is_not_text_is_not_made_text(self, value: object) -> None:
        for build in (
            lambda: say(speaker=cast("str", value)),
            lambda: say(cast("str", value)),
            lambda: say(source=value),
            lambda: bring(cast("str", value)),
            lambda: bring(media_type=value),
            lambda: Note(content=cast("str", value)),
            lambda: Recall(query=cast("str", value)),
            lambda: Deletion(targets=(uuid4(),), reason=cast("str", value)),
        ):
            with pytest.raises(ValueError, match="string"):
                build()

    def test_25_other_ill_typed_data_is_refused(self) -> None:
        whole: Mapping[str, object] = event_to_dict(placed([one_of_each()["note"]])[0])
        for name, value in [
            ("id", 5),
            ("id", "no uuid"),
            ("timestamp", 5),
            ("timestamp", "yesterday"),
            ("timestamp", "2026-06-10T12:00:00"),
            ("seq", "1"),
            ("seq", -1),
            ("seq", 1.5),
            ("seq", True),
            ("tier", "cold"),
            ("labels", "label"),
            ("labels", [1]),
            ("metadata", []),
            ("metadata", {"a": float("nan")}),
            ("derived_from", ["no uuid"]),
            ("key", ""),
            ("key", "a\x00b"),
        ]:
            with pytest.raises(ValueError, match=name):
                event_from_dict({**whole, name: value})

    def test_25_lone_surrogates_are_refused(self) -> None:
        target = (uuid4(),)
        for build in (
            lambda: say(SURROGATE),
            lambda: say(speaker=SURROGATE),
            lambda: say(session_id=SURROGATE),
            lambda: say(source=SURROGATE),
            lambda: say(actor=SURROGATE),
            lambda: bring(SURROGATE),
            lambda: bring(name=SURROGATE),
            lambda: bring(media_type=SURROGATE),
            lambda: bring(sha256=SURROGATE),
            lambda: Note(content=SURROGATE),
            lambda: Note(content="a", labels=(SURROGATE,)),
            lambda: Note(content="a", key=SURROGATE),
            lambda: Note(content="a", summary=SURROGATE),
            lambda: Note(content="a", metadata={"a": [SURROGATE]}),
            lambda: Note(content="a", metadata={SURROGATE: 1}),
            lambda: Recall(query=SURROGATE),
            lambda: Recall(query="q", request={"a": SURROGATE}),
            lambda: Deletion(targets=target, reason=SURROGATE),
            lambda: Deletion(targets=target, reason="r", requested_by=SURROGATE),
            lambda: Erasure(targets=target, reason=SURROGATE),
            lambda: Erasure(targets=target, reason="r", requested_by=SURROGATE),
        ):
            with pytest.raises(ValueError, match=r"unicode|surrogate"):
                build()

    def test_25_a_bare_id_is_no_collection(self) -> None:
        for target in (uuid4(), str(uuid4())):
            with pytest.raises(ValueError, match="targets"):
                Deletion(targets=cast("Any", target), reason="r")
            with pytest.raises(ValueError, match="recalled"):
                Recall(query="q", recalled=cast("Any", target))

    def test_26_a_space_is_text(self) -> None:
        assert say(" ", speaker=" ").content == " "
        assert bring(" ", name=" ").text == " "
        assert Recall(query=" ").query == " "
        assert Deletion(targets=(uuid4(),), reason=" ").reason == " "

    def test_26_a_note_may_be_empty(self) -> None:
        assert Note(content="").content == ""

    @pytest.mark.parametrize("kind", KINDS)
    def test_27_keys_of_a_dict_stand_in_order(self, kind: str) -> None:
        event = one_of_each()[kind]
        assert list(event_to_dict(event)) == COMMON_KEYS + OWN_KEYS[kind]
        left = left_of(placed([event])[0], 9)
        assert list(event_to_dict(left)) == [*ERASED_KEYS, *LINK_KEYS.get(kind, []), "state"]
        assert event_to_dict(left)["state"] == "erased"

    @pytest.mark.parametrize("kind", KINDS)
    def test_27_a_dict_is_ready_for_json(self, kind: str) -> None:
        (event,) = placed([one_of_each()[kind]])
        written = event_to_dict(event)
        assert json.loads(json.dumps(written)) == written
        assert written["id"] == str(event.id)
        assert written["timestamp"] == "2026-06-10T12:00:00Z"
        assert str(written["recorded_at"]).endswith("Z")
        for name in ("targets", "recalled", "labels", "derived_from"):
            assert isinstance(written.get(name, []), list)

    def test_27_ids_are_taken_as_text_and_written_in_lower_case(self) -> None:
        given = uuid4()
        message = say(id=str(given).upper())
        assert message.id == given
        assert event_to_dict(message)["id"] == str(given)

    def test_27_a_dict_shares_nothing_with_its_event(self) -> None:
        note = Note(content="a", metadata={"list": [1]})
        written = event_to_dict(note)
        cast("dict[str, list[JsonValue]]", written["metadata"])["list"].append(2)
        assert note.metadata == {"list": [1]}
        with pytest.raises(TypeError):
            cast("dict[str, JsonValue]", note.metadata)["list"] = 2

    def test_edge_an_unstored_event_is_a_value(self) -> None:
        first = say("hello", timestamp=NOON)
        same = Message.model_validate(first.model_dump())
        other = say("hello", timestamp=NOON)
        assert first == same
        assert hash(first) == hash(same)
        assert first != other
        assert len({first, same, other}) == 2
        assert first != placed([first])[0]

    def test_edge_every_event_has_a_hash(self) -> None:
        for event in one_of_each().values():
            assert hash(event) == hash(type(event).model_validate(event.model_dump()))


class ReplayContract:
    """The fold without a store: required tests 53 to 62, 66 and 68, laws A17 and A19."""

    def test_53_nothing_gives_the_empty_state(self) -> None:
        state = replay([])
        assert state == MemoryState()
        assert (state.messages, state.documents, state.notes, state.last_seq) == ((), (), (), None)
        assert (state.visible_messages, state.visible_documents, state.visible_notes) == ((), (), ())
        assert (dict(state.deleted), dict(state.superseded), dict(state.erased), dict(state.recall_stats)) == (
            {},
            {},
            {},
            {},
        )

    def test_54_two_messages(self) -> None:
        first, second = placed([say("a"), say("b")])
        state = replay([first, second])
        assert state.messages == (first, second)
        assert state.visible_messages == (first, second)
        assert state.last_seq == 1

    def test_55_a_message_and_a_document(self) -> None:
        message, document, note = placed([say(), bring(), Note(content="n")])
        state = replay([message, document, note])
        assert (state.messages, state.documents, state.notes) == ((message,), (document,), (note,))
        assert state.last_seq == 2

    def test_56_a_deletion_hides_and_keeps(self) -> None:
        a, b = say("a"), say("b")
        first, second, deletion = placed([a, b, Deletion(targets=(a.id,), reason="asked")])
        state = replay([first, second, deletion])
        assert state.visible_messages == (second,)
        assert state.is_deleted(a.id)
        assert not state.is_deleted(b.id)
        assert state.deleted == {a.id: deletion}
        assert state.messages == (first, second)
        assert state.last_seq == 2

    def test_57_the_only_document_is_deleted(self) -> None:
        document = bring()
        state = replay(placed([document, Deletion(targets=(document.id,), reason="asked")]))
        assert state.visible_documents == ()
        assert [item.id for item in state.documents] == [document.id]

    def test_58_recalls_are_counted_and_the_last_in_log_order_stands(self) -> None:
        message = say()
        noon = Recall(query="q", recalled=(message.id,), timestamp=NOON)
        later = Recall(query="q", recalled=(message.id,), timestamp=NOON + HOUR)
        assert replay(placed([message, noon, later])).recall_stats == {message.id: RecallStats(2, NOON + HOUR)}
        assert replay(placed([message, later, noon])).recall_stats == {message.id: RecallStats(2, NOON)}

    def test_58_repeats_count(self) -> None:
        message = say()
        read = Recall(query="q", recalled=(message.id, message.id), timestamp=NOON)
        assert replay(placed([message, read])).recall_stats == {message.id: RecallStats(2, NOON)}

    def test_58_what_was_never_recalled_has_no_entry(self) -> None:
        message, other = say("a"), say("b")
        state = replay(placed([message, other, Recall(query="q", recalled=(message.id,)), Recall(query="z")]))
        assert set(state.recall_stats) == {message.id}
        assert RecallStats() == RecallStats(0, None)

    def test_59_twice_the_same(self) -> None:
        events = placed(one_of_each().values())
        assert replay(events) == replay(events)
        assert replay(events) == replay([through_json(event) for event in events])
        assert replay(events) != replay(events[:-1])

    @pytest.mark.parametrize("kind", KINDS)
    def test_60_an_event_without_seq_is_refused(self, kind: str) -> None:
        event = one_of_each()[kind]
        with pytest.raises(ValueError, match=str(event.id)):
            replay([event])

    @pytest.mark.parametrize("seqs", [(1, 0), (1, 1), (0, 5, 4), (0, 1, 1)])
    def test_61_equal_and_falling_seqs_are_refused(self, seqs: Sequence[int]) -> None:
        events = [with_place(say(), seq, START) for seq in seqs]
        with pytest.raises(ValueError, match="seq"):
            replay(events)
        with pytest.raises(ValueError, match="seq"):
            replay([*events[:-1], left_of(events[-1], 9)])

    def test_62_a_short_history(self) -> None:
        a, b = say("a"), say("b")
        events = placed([a, b, Recall(query="q", recalled=(a.id,)), Deletion(targets=(b.id,), reason="asked")])
        state = replay(events)
        assert state.visible_messages == (events[0],)
        assert state.recall_stats[a.id].num_recalled == 1
        assert state.last_seq == 3

    def test_66_a_state_cannot_be_changed(self) -> None:
        a = say("a")
        recall, deletion = Recall(query="q", recalled=(a.id,)), Deletion(targets=(a.id,), reason="asked")
        for state in (replay(placed([a, recall, deletion])), MemoryState()):
            for name in ("deleted", "superseded", "erased", "recall_stats"):
                mapping = getattr(state, name)
                with pytest.raises(TypeError):
                    mapping[a.id] = None
                with pytest.raises(TypeError):
                    del mapping[a.id]
            for field in fields(state):
                with pytest.raises(FrozenInstanceError):
                    setattr(state, field.name, None)

    def test_68_any_iterable_is_taken(self) -> None:
        events = placed(one_of_each().values())
        assert replay(event for event in events) == replay(tuple(events)) == replay(iter(events)) == replay(events)

    def test_a17_gaps_are_fine_and_the_first_seq_may_be_anything(self) -> None:
        first, second = with_place(say("a"), 5, START), with_place(say("b"), 900, START)
        state = replay([first, second])
        assert state.messages == (first, second)
        assert state.last_seq == 900

    @pytest.mark.parametrize("thing", [None, 5, "event", {}, object(), event_to_dict(say())])
    def test_a17_other_objects_are_refused(self, thing: object) -> None:
        with pytest.raises(TypeError):
            replay([placed([say()])[0], cast("Event", thing)])

    def test_a17_nothing_is_cross_checked(self) -> None:
        unknown, recall_id = uuid4(), uuid4()
        read = Recall(id=recall_id, query="q", recalled=(unknown, recall_id), timestamp=NOON)
        deletion = Deletion(targets=(unknown, recall_id), reason="asked")
        state = replay(placed([read, deletion]))
        assert set(state.deleted) == {unknown, recall_id}
        assert state.recall_stats == dict.fromkeys((unknown, recall_id), RecallStats(1, NOON))

    def test_a17_the_first_deletion_stays(self) -> None:
        a = say("a")
        events = placed([a, *[Deletion(targets=(a.id,), reason=reason) for reason in ("first", "second")]])
        assert replay(events).deleted == {a.id: events[1]}

    def test_a17_a_note_supersedes(self) -> None:
        old = Note(content="old", key="k")
        new = Note(content="new", key="k", supersedes=old.id)
        events = placed([old, new, Deletion(targets=(new.id,), reason="asked")])
        state = replay(events[:2])
        assert state.superseded == {old.id: new.id}
        assert state.notes == tuple(events[:2])
        assert state.visible_notes == (events[1],)
        # What was superseded stays so when its successor is deleted: nothing old comes back.
        assert replay(events).visible_notes == ()

    def test_a17_an_erasure_has_no_content_of_its_own(self) -> None:
        a = say("a")
        events = placed([a, Erasure(targets=(a.id,), count=1, reason="asked")])
        state = replay(events)
        assert state.messages == (events[0],)
        assert dict(state.erased) == {}
        assert state.last_seq == 1

    def test_a17_what_was_erased_is_only_named(self) -> None:
        a, old = say("a"), Note(content="old", key="k")
        new = Note(content="new", key="k", supersedes=old.id)
        read = Recall(query="q", recalled=(a.id, new.id, old.id), timestamp=NOON)
        events = placed([a, old, new, read])
        state = replay([left_of(events[0], 9), events[1], left_of(events[2], 9), events[3]])
        assert state.messages == ()
        assert state.erased == {a.id: 9, new.id: 9}
        assert state.recall_stats == {old.id: RecallStats(1, NOON)}
        assert dict(state.superseded) == {}
        assert state.last_seq == 3

    def test_a17_an_erased_deletion_still_hides(self) -> None:
        a = say("a")
        message, deletion = placed([a, Deletion(targets=(a.id,), reason="secret")])
        left = left_of(deletion, 5)
        state = replay([message, left])
        assert state.visible_messages == ()
        assert state.deleted == {a.id: left}
        assert state.erased == {deletion.id: 5}

    def test_a17_an_erased_recall_counts_no_more(self) -> None:
        a = say("a")
        message, read = placed([a, Recall(query="q", recalled=(a.id,))])
        state = replay([message, left_of(read, 5)])
        assert dict(state.recall_stats) == {}
        assert state.erased == {read.id: 5}

    def test_a19_states_compare_by_value(self) -> None:
        a, b = say("a"), say("b")
        left, right = replay(placed([a, b])), replay(placed([a, b]))
        assert left == right
        assert hash(left) == hash(right)
        assert left != replay(placed([b, a]))
        assert left != replay(placed([a, b], 1))

    def test_a19_a_state_is_not_changed_by_what_follows(self) -> None:
        events = placed([say("a"), say("b")])
        growing = events[:1]
        state = replay(growing)
        growing.append(events[1])
        assert state == replay(events[:1])


PUMP_TABLE: Final[Mapping[str, list[int]]] = {
    "pump": [0, 2],
    "PUMP pump": [0, 2],
    "pumps": [0, 2],
    "pumping": [0, 2],
    "pump on wednesday": [2, 0],
    "txt": [2],
    "repairs.txt": [2],
    "zebra": [],
    "   ": [],
    "?!": [],
    "": [],
    "the": [0, 1],
    "anna": [0],
    "i it the": [1, 0],
}
"""A14's examples: a query, and the seqs that it finds in `pump_ledger`, in order."""


def pump_ledger() -> list[Content]:
    """The three items of A14's examples."""
    return [
        say("the water pump failed on tuesday", speaker="anna"),
        say("i logged it with the contractor", speaker="bram"),
        bring("pump replaced on wednesday morning", name="repairs.txt"),
    ]


class SearchContract:
    """The search of a state without a store: required tests 70 to 75, law A14."""

    @pytest.mark.parametrize(("query", "found"), PUMP_TABLE.items())
    def test_70_the_table(self, query: str, found: list[int]) -> None:
        assert seqs_of(search(replay(placed(pump_ledger())), query)) == found

    def test_70_the_table_after_a_deletion(self) -> None:
        items = pump_ledger()
        state = replay(placed([*items, Deletion(targets=(items[0].id,), reason="asked")]))
        assert seqs_of(search(state, "pump")) == [2]

    def test_70_the_items_themselves_are_found(self) -> None:
        events = placed(pump_ledger())
        assert search(replay(events), "pump") == [events[0], events[2]]

    def test_71_by_a_word_in_any_case(self) -> None:
        state = replay(placed([say("the budget meeting is on friday"), say("cats are great")]))
        assert seqs_of(search(state, "budget")) == [0]
        assert seqs_of(search(state, "BUDGET")) == [0]

    def test_72_by_name_and_by_text(self) -> None:
        state = replay(placed([bring("quarterly numbers", name="budget.txt")]))
        assert seqs_of(search(state, "budget")) == [0]
        assert seqs_of(search(state, "quarterly")) == [0]

    def test_73_the_best_comes_first(self) -> None:
        state = replay(placed([say("budget"), say("budget meeting"), say("budget meeting notes")]))
        assert seqs_of(search(state, "budget meeting")) == [1, 2, 0]

    def test_74_limits(self) -> None:
        state = replay(placed([say(f"budget {number}") for number in range(10)]))
        assert len(search(state, "budget", limit=3)) == 3
        assert search(state, "budget", limit=3) == search(state, "budget", limit=10)[:3]
        assert len(search(state, "budget")) == 5
        assert len(search(state, "budget", limit=SEARCH_LIMIT_MAX)) == 10
        assert search(state, "budget", limit=0) == []

    @pytest.mark.parametrize("limit", [-1, True, False, None, 1.0, "5", SEARCH_LIMIT_MAX + 1])
    def test_74_a_limit_that_is_none_is_refused(self, limit: Any) -> None:
        for state in (MemoryState(), replay(placed([say("budget")]))):
            for query in ("budget", ""):
                with pytest.raises(UsageError, match="limit"):
                    search(state, query, limit=limit)

    def test_75_what_was_deleted_is_not_found(self) -> None:
        secret = say("budget secret")
        state = replay(placed([say("budget plan"), secret, Deletion(targets=(secret.id,), reason="asked")]))
        assert seqs_of(search(state, "budget")) == [0]
        assert search(state, "secret") == []

    def test_a13_what_was_superseded_or_erased_is_not_found(self) -> None:
        old = Note(content="budget old", key="k")
        new = Note(content="budget new", key="k", supersedes=old.id)
        events = placed([old, new, say("budget gone")])
        state = replay([*events[:2], left_of(events[2], 9)])
        assert seqs_of(search(state, "budget old new gone")) == [1]

    def test_a14_notes_by_content_and_summary(self) -> None:
        state = replay(placed([Note(content="the pump", summary="about water")]))
        assert seqs_of(search(state, "pump")) == [0]
        assert seqs_of(search(state, "water")) == [0]

    def test_a14_nothing_else_is_searched(self) -> None:
        common: dict[str, Any] = {"session_id": "elsewhere", "source": "elsewhere", "actor": "elsewhere"}
        state = replay(
            placed(
                [
                    say("a", **common),
                    bring("b", name="c", media_type="elsewhere", sha256="elsewhere", **common),
                    Note(content="d", labels=("elsewhere",), key="elsewhere", metadata={"a": "elsewhere"}, **common),
                    Recall(query="elsewhere", request={"a": "elsewhere"}, **common),
                    Deletion(targets=(uuid4(),), reason="elsewhere", requested_by="elsewhere", **common),
                ]
            )
        )
        assert search(state, "elsewhere") == []

    def test_a14_a_word_that_all_hold_is_worth_something(self) -> None:
        state = replay(placed([say("pump one"), say("pump two"), say("pump pump pump")]))
        assert seqs_of(search(state, "pump")) == [2, 0, 1]

    def test_a14_statistics_are_those_of_what_is_visible(self) -> None:
        # `meeting` is the commoner word among all, the rarer one among the visible.
        hidden = [say("meeting") for _ in range(6)]
        events = placed([say("budget one"), say("meeting one"), say("budget two"), *hidden])
        deletion = with_place(Deletion(targets=tuple(item.id for item in hidden), reason="asked"), len(events), START)
        assert seqs_of(search(replay(events), "budget meeting", limit=1)) == [0]
        assert seqs_of(search(replay([*events, deletion]), "budget meeting", limit=1)) == [1]

    def test_a14_neighbours_lend_nothing(self) -> None:
        state = replay(placed([say("pump", session_id="s"), say("ok", session_id="s"), say("pump", session_id="s")]))
        assert seqs_of(search(state, "pump")) == [0, 2]

    def test_a14_ties_stand_in_order_of_seq(self) -> None:
        state = replay(placed([say("same words") for _ in range(7)]))
        assert seqs_of(search(state, "words same", limit=7)) == list(range(7))

    def test_a14_a_search_is_pure(self) -> None:
        events = placed(pump_ledger())
        state = replay(events)
        assert search(state, "pump") == search(state, "pump")
        assert state == replay(events)
        assert search(replay([through_json(event) for event in events]), "pump") == search(state, "pump")

    def test_a14_no_query_has_a_syntax(self) -> None:
        state = replay(placed(pump_ledger()))
        for query in ('"pump"', "pump AND zebra", "pump*", "-pump", "NEAR(pump, 2)", "pump:pump", "(pump", "'; --pump"):
            assert 0 in seqs_of(search(state, query))

    def test_a14_a_query_keeps_its_limits(self) -> None:
        state = replay(placed(pump_ledger()))
        assert seqs_of(search(state, "pump ".ljust(QUERY_CHARS_MAX, "?"))) == [0, 2]
        with pytest.raises(LimitExceededError):
            search(state, "pump ".ljust(QUERY_CHARS_MAX + 1, "?"))
        for query in (None, 5, b"pump", ["pump"], "pump\x00"):
            with pytest.raises(UsageError, match="query"):
                search(state, cast("str", query))

    def test_a14_of_many_words_the_rarest_count(self) -> None:
        rare = " ".join(f"rare{number}" for number in range(QUERY_TERMS_MAX))
        absent = " ".join(f"absent{number}" for number in range(QUERY_TERMS_MAX))
        state = replay(placed([say("pump"), say("pump"), say(rare)]))
        assert seqs_of(search(state, f"pump {rare}")) == [2]
        assert seqs_of(search(state, f"{absent} pump")) == [0, 1]


# --- The ledger -------------------------------------------------------------------------------------------------------


class LedgerFixtures:
    """How the suite gets at a memory."""

    @pytest.fixture
    def opener(self) -> Opener:
        raise NotImplementedError(f"{type(self).__name__} says how an archive is opened by a fixture `opener`")

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def archive(self, opener: Opener, clock: FakeClock) -> Iterator[Archive]:
        archive = opener(clock)
        yield archive
        archive.close()

    @pytest.fixture
    def memory_of(self, archive: Archive) -> MemoryOf:
        """Override it to prove another way to get a `Memory`; it must be one of the archive that `opener` opens."""
        return lambda subject: Memory.over(archive, Scope("default", subject))

    @pytest.fixture
    def memory(self, memory_of: MemoryOf) -> Memory:
        return memory_of("default")

    @pytest.fixture
    def timed(self, archive: Archive) -> Memory:
        """The same scope on the clock of the test."""
        return Memory.over(archive, Scope("default", "default"))

    @pytest.fixture
    def engine(self, archive: Archive) -> ScopeMemory:
        """The same scope in the engine, to write notes with."""
        return archive.memory("default", tenant="default")


class LedgerContract(LedgerFixtures):
    """Writing and looking: required tests 28 to 52, laws A1 to A12."""

    def test_28_seqs_count_from_0(self, memory: Memory) -> None:
        assert seqs_of([memory.add_message(say("a")), memory.add_message(say("b"))]) == [0, 1]

    def test_29_the_stored_copy_has_a_place_and_the_original_none(self, memory: Memory) -> None:
        original = say("a")
        stored = memory.add_message(original)
        assert (original.seq, original.recorded_at) == (None, None)
        assert (stored.seq, stored.id) == (0, original.id)
        assert stored.recorded_at is not None
        assert stored == with_place(original, 0, stored.recorded_at)

    def test_30_a_stored_copy_is_not_added_again(self, memory: Memory) -> None:
        stored = memory.add_message(say("a"))
        with refused(memory, ValueError, str(stored.id), "seq 0"):
            memory.add_message(stored)

    def test_31_the_same_original_twice(self, memory: Memory) -> None:
        original = say("a")
        memory.add_message(original)
        for error in (DuplicateEventError, ConflictError, ValueError):
            with refused(memory, error, str(original.id)):
                memory.add_message(original)
        assert len(memory) == 1

    def test_32_a_document(self, memory: Memory) -> None:
        stored = memory.add_document(bring())
        assert stored.seq == 0
        assert memory.get(stored.id) == stored

    def test_33_a_message_and_a_document(self, memory: Memory) -> None:
        stored = [memory.add_message(say()), memory.add_document(bring())]
        assert seqs_of(stored) == [0, 1]
        assert memory.events() == stored

    def test_34_a_recall_names_what_was_read(self, memory: Memory) -> None:
        message, document = memory.add_message(say()), memory.add_document(bring())
        first = memory.record_recall(Recall(query="q", recalled=(message.id,)))
        assert (first.seq, first.recalled) == (2, (message.id,))
        assert memory.record_recall(Recall(query="q", recalled=(document.id,))).recalled == (document.id,)

    def test_34_a_recall_of_one_message_is_the_second_event(self, memory: Memory) -> None:
        message = memory.add_message(say())
        assert memory.record_recall(Recall(query="q", recalled=(message.id,))).seq == 1

    def test_35_what_cannot_have_been_read_is_refused(
        self, memory: Memory, memory_of: MemoryOf, engine: ScopeMemory
    ) -> None:
        fine = memory.add_message(say("fine"))
        gone = memory.add_message(say("gone"))
        deletion = memory.delete([gone.id], "asked")
        read = memory.record_recall(Recall(query="q"))
        elsewhere = memory_of("other").add_message(say("elsewhere"))
        note = engine.remember("a note")
        memory.delete([note.id], "asked")
        for wrong, why in [
            (uuid4(), "no such event"),
            (read.id, "recall"),
            (deletion.id, "deletion"),
            (gone.id, "deleted"),
            (note.id, "deleted"),
            (elsewhere.id, "no such event"),
        ]:
            for recalled in [(wrong,), (fine.id, wrong), (wrong, fine.id), (fine.id, wrong, fine.id)]:
                with refused(memory, UsageError, str(wrong), why):
                    memory.record_recall(Recall(query="q", recalled=recalled))

    def test_35_a_superseded_note_may_have_been_read(self, memory: Memory, engine: ScopeMemory) -> None:
        old = engine.put("k", "old")
        engine.put("k", "new")
        stored = memory.record_recall(Recall(query="q", recalled=(old.id,)))
        assert stored.recalled == (old.id,)
        assert memory.replay().recall_stats[old.id].num_recalled == 1

    def test_36_an_empty_recall_on_an_empty_ledger(self, memory: Memory) -> None:
        stored = memory.record_recall(Recall(query="q"))
        assert (stored.seq, stored.recalled) == (0, ())
        assert memory.events() == [stored]

    def test_37_delete_one_of_two(self, memory: Memory) -> None:
        first, second = memory.add_message(say("a")), memory.add_message(say("b"))
        deletion = memory.delete([first.id], "asked")
        assert memory.replay().visible_messages == (second,)
        assert memory.get(deletion.id) == deletion
        assert memory.get(first.id) == first

    def test_38_delete_a_document(self, memory: Memory) -> None:
        document = memory.add_document(bring())
        deletion = memory.delete([document.id], "asked", requested_by="user-42")
        assert deletion.requested_by == "user-42"
        assert memory.replay().visible_documents == ()
        assert memory.replay().documents == (document,)

    def test_39_what_cannot_be_deleted_is_refused(self, memory: Memory, memory_of: MemoryOf) -> None:
        message = memory.add_message(say())
        read = memory.record_recall(Recall(query="q", recalled=(message.id,)))
        deletion = memory.delete([message.id], "asked")
        elsewhere = memory_of("other").add_message(say("elsewhere"))
        for wrong, why in [
            (uuid4(), "no such event"),
            (read.id, "recall"),
            (deletion.id, "deletion"),
            (elsewhere.id, "no such event"),
        ]:
            with refused(memory, UsageError, "delete", str(wrong), why):
                memory.delete([wrong], "asked")
        assert memory_of("other").replay().visible_messages == (elsewhere,)

    def test_40_delete_twice(self, memory: Memory) -> None:
        message = memory.add_message(say())
        first, second = memory.delete([message.id], "first"), memory.delete([message.id], "second")
        assert memory.events(kind="deletion") == [first, second]
        assert memory.replay().deleted == {message.id: first}

    def test_41_all_targets_are_checked_first(self, memory: Memory) -> None:
        first, third, unknown = memory.add_message(say()), memory.add_message(say()), uuid4()
        with refused(memory, UsageError, str(unknown)):
            memory.delete([first.id, unknown, third.id], "asked")
        assert len(memory.replay().visible_messages) == 2

    def test_42_a_bare_id_is_no_collection(self, memory: Memory) -> None:
        message = memory.add_message(say())
        for bare in (message.id, str(message.id), message.id.bytes):
            with refused(memory, TypeError):
                memory.delete(cast("Any", bare), "asked")

    def test_43_the_wrong_class_is_refused(self, memory: Memory) -> None:
        deletion = Deletion(targets=(memory.add_message(say()).id,), reason="asked")
        for wrong in (bring(), deletion):
            with refused(memory, TypeError, type(wrong).__name__):
                memory.add_message(cast("Message", wrong))

    def test_44_a_message_a_recall_and_a_deletion(self, memory: Memory) -> None:
        message = memory.add_message(say())
        read = memory.record_recall(Recall(query="q", recalled=(message.id,)))
        deletion = memory.delete([message.id], "asked")
        assert memory.events() == [message, read, deletion]
        assert len(memory) == 3

    def test_45_events_of_one_kind(self, memory: Memory) -> None:
        message, document = memory.add_message(say()), memory.add_document(bring())
        read = memory.record_recall(Recall(query="q"))
        assert memory.events(kind="recall") == [read]
        assert memory.events(kind="message") == [message]
        assert memory.events(kind="document") == [document]
        for kind in ("note", "deletion", "erasure"):
            assert memory.events(kind=kind) == []
        for wrong in ("recal", "Recall", "", "recall ", 5, ["recall"]):
            with pytest.raises(UsageError, match="kind"):
                memory.events(kind=cast("str", wrong))

    def test_46_events_of_one_session(self, memory: Memory) -> None:
        stored = [memory.add_message(say(session_id=session)) for session in ("s1", "s2", "s1", None, "")]
        assert memory.events(session_id="s1") == [stored[0], stored[2]]
        assert memory.events(session_id="s3") == []
        assert memory.events(session_id="S1") == []
        assert memory.events(session_id="") == [stored[4]]
        assert memory.events(session_id=None) == stored

    def test_47_events_of_a_range(self, memory: Memory) -> None:
        stored = [memory.add_message(say(text)) for text in "abc"]
        assert memory.events(after_seq=0, up_to_seq=1) == [stored[1]]
        assert memory.events(after_seq=1) == [stored[2]]
        assert memory.events(up_to_seq=0) == [stored[0]]
        for after, up_to in [(-1, None), (-7, 2), (None, 9), (None, 10**30), (-(10**30), None)]:
            assert memory.events(after_seq=after, up_to_seq=up_to) == stored
        for after, up_to in [(2, None), (10**30, None), (None, -1), (1, 1), (2, 0)]:
            assert memory.events(after_seq=after, up_to_seq=up_to) == []
        for wrong in (True, 1.0, "1"):
            with pytest.raises(UsageError):
                memory.events(after_seq=cast("int", wrong))
            with pytest.raises(UsageError):
                memory.events(up_to_seq=cast("int", wrong))

    def test_48_get(self, memory: Memory) -> None:
        stored = memory.add_message(say())
        for spelling in (
            stored.id,
            str(stored.id),
            str(stored.id).upper(),
            stored.id.hex,
            f"{{{stored.id}}}",
            f"urn:uuid:{stored.id}",
        ):
            assert memory.get(spelling) == stored
        for unknown in (uuid4(), str(uuid4()), "no uuid", "", str(stored.id)[:-1], f" {stored.id}", "%", 5, None):
            assert memory.get(cast("str", unknown)) is None

    def test_49_a_note_is_content(self, memory: Memory, engine: ScopeMemory) -> None:
        note = engine.remember("the pump failed", tier="insight", labels=["repairs"])
        assert memory.get(note.id) == note
        assert memory.replay().visible_notes == (note,)
        assert memory.record_recall(Recall(query="q", recalled=(note.id,))).recalled == (note.id,)
        assert memory.recall("pump")[1] == [note]
        deletion = memory.delete([note.id], "asked")
        assert memory.replay().visible_notes == ()
        assert memory.replay().deleted == {note.id: deletion}
        assert memory.recall("pump")[1] == []

    def test_50_an_empty_memory_is_true(self, memory: Memory) -> None:
        assert bool(memory) is True
        assert len(memory) == 0
        assert memory.events() == []
        assert memory.replay() == MemoryState()
        assert memory.get(uuid4()) is None

    def test_51_closed_is_closed(self, memory: Memory) -> None:
        stored = memory.add_message(say())
        memory.close()
        memory.close()
        for call in every_call(memory, stored):
            with pytest.raises(ClosedError):
                call()
        with pytest.raises(ClosedError):
            memory.__enter__()
        assert bool(memory) is True

    def test_51_a_closed_view_leaves_the_archive_open(self, archive: Archive) -> None:
        scope = Scope("default", "default")
        view, other = Memory.over(archive, scope), Memory.over(archive, scope)
        with view as entered:
            assert entered is view
            stored = view.add_message(say())
        for call in every_call(view, stored):
            with pytest.raises(ClosedError):
                call()
        assert other.events() == [stored]

    def test_51_a_view_of_a_closed_archive_is_closed(self, archive: Archive) -> None:
        view = Memory.over(archive, Scope("default", "default"))
        stored = view.add_message(say())
        archive.close()
        for call in every_call(view, stored):
            with pytest.raises(ClosedError):
                call()

    def test_52_recorded_at_never_falls(self, timed: Memory, clock: FakeClock) -> None:
        clock.advance(HOUR)
        first = timed.add_message(say("a"))
        clock.advance(-HOUR)
        second = timed.add_message(say("b"))
        clock.advance(2 * HOUR)
        third = timed.add_message(say("c"))
        assert [first.recorded_at, second.recorded_at] == [START + HOUR, START + HOUR]
        assert third.recorded_at == START + 2 * HOUR
        assert timed.events() == [first, second, third]

    # --- A1 to A12 beyond the numbered ones

    def test_a01_what_was_stored_stays_as_it_was(self, memory: Memory, engine: ScopeMemory) -> None:
        stored: list[Event] = [memory.add_message(say()), memory.add_document(bring()), engine.put("k", "old")]
        stored.append(memory.record_recall(Recall(query="q", recalled=(stored[0].id,))))
        stored.append(memory.delete([stored[0].id], "asked"))
        stored.append(engine.put("k", "new"))
        stored.append(memory.delete([stored[1].id, stored[2].id], "asked"))
        assert memory.events() == stored
        assert [memory.get(event.id) for event in stored] == stored
        assert engine.verify().ok

    def test_a02_a_place_is_given_by_the_store_alone(self, memory: Memory) -> None:
        stored = memory.add_message(say())
        for event in (
            say(seq=0),
            say(seq=1),
            say(seq=99),
            say(recorded_at=NOON),
            with_place(say(), 1, NOON),
        ):
            value = "recorded_at" if event.seq is None else f"seq {event.seq}"
            with refused(memory, UsageError, str(event.id), value):
                memory.add_message(event)
        with refused(memory, UsageError):
            memory.add_document(bring(seq=1))
        with refused(memory, UsageError):
            memory.record_recall(Recall(query="q", seq=1))
        assert memory.add_message(say()).seq == 1
        assert memory.events(up_to_seq=0) == [stored]

    def test_a02_a_failed_write_uses_no_seq_up(self, memory: Memory) -> None:
        original = say("a")
        memory.add_message(original)
        for _ in range(3):
            with pytest.raises(DuplicateEventError):
                memory.add_message(original)
            with pytest.raises(UsageError):
                memory.delete([uuid4()], "asked")
            with pytest.raises(LimitExceededError):
                memory.add_message(say(speaker="a" * 257))
        assert memory.add_message(say("b")).seq == 1

    def test_a02_every_scope_counts_for_itself(self, memory: Memory, memory_of: MemoryOf) -> None:
        other = memory_of("other")
        assert [memory.add_message(say()).seq, memory.add_message(say()).seq, other.add_message(say()).seq] == [0, 1, 0]
        assert (len(memory), len(other), len(memory_of("third"))) == (2, 1, 0)

    def test_a02_under_threads_without_gaps(self, memory: Memory) -> None:
        stored: list[Message] = []

        def work(name: str) -> None:
            stored.extend([memory.add_message(say(f"{name} {number}")) for number in range(25)])

        run_together(*[lambda name=name: work(name) for name in "abcd"])
        assert sorted(cast("list[int]", seqs_of(stored))) == list(range(100))
        assert memory.events() == sorted(stored, key=lambda event: event.seq or 0)
        for name in "abcd":
            own = [event.content for event in memory.replay().messages if event.content.startswith(name)]
            assert own == [f"{name} {number}" for number in range(25)]

    def test_a04_only_the_right_class_is_taken(self, memory: Memory) -> None:
        class Louder(Message):
            volume: int = 11

        events: dict[str, Any] = {
            **{kind: type(event).model_validate(event.model_dump()) for kind, event in one_of_each().items()},
            "erased": left_of(placed([say()])[0], 9),
            "dict": event_to_dict(say()),
            "none": None,
            "text": "hello",
            "subclass": Louder(speaker="anna", content="hello"),
        }
        for call, right in [
            (memory.add_message, "message"),
            (memory.add_document, "document"),
            (memory.record_recall, "recall"),
        ]:
            for kind, event in events.items():
                if kind != right:
                    with refused(memory, TypeError, type(event).__name__):
                        cast("Callable[[Any], Any]", call)(event)

    def test_a05_an_id_is_used_once_whatever_the_kind(self, memory: Memory, memory_of: MemoryOf) -> None:
        message = memory.add_message(say())
        deletion = memory.delete([message.id], "asked")
        for taken in (message.id, deletion.id):
            for error in (DuplicateEventError, ConflictError, ValueError):
                with refused(memory, error, str(taken)):
                    memory.add_message(say("other words", id=taken))
                with refused(memory, error, str(taken)):
                    memory.add_document(bring(id=taken))
                with refused(memory, error, str(taken)):
                    memory.record_recall(Recall(query="q", id=taken))
        assert memory_of("other").add_message(say(id=message.id)).seq == 0

    def test_a06_order_and_repeats_are_kept(self, memory: Memory, engine: ScopeMemory) -> None:
        items: list[Event] = [memory.add_message(say()), memory.add_document(bring()), engine.remember("a note")]
        first, second, third = (item.id for item in items)
        recalled = (third, first, third, second, first)
        stored = memory.record_recall(Recall(query="*", recalled=recalled))
        assert stored.recalled == recalled
        assert memory.get(stored.id) == stored
        counts = {item_id: stats.num_recalled for item_id, stats in memory.replay().recall_stats.items()}
        assert counts == {first: 2, second: 1, third: 2}

    def test_a06_more_ids_than_fit_are_refused(self, memory: Memory) -> None:
        message = memory.add_message(say())
        with refused(memory, LimitExceededError):
            memory.record_recall(Recall(query="q", recalled=(message.id,) * (TARGETS_MAX + 1)))

    def test_a07_ids_in_any_form(self, memory: Memory) -> None:
        a, b, c = (memory.add_message(say(text)) for text in "abc")
        deletion = memory.delete((spelling for spelling in (a.id, str(b.id).upper(), c.id.hex)), "asked")
        assert deletion.targets == (a.id, b.id, c.id)
        assert memory.replay().visible_messages == ()

    def test_a07_repeats_are_kept(self, memory: Memory) -> None:
        a = memory.add_message(say())
        assert memory.delete([a.id, a.id], "asked").targets == (a.id, a.id)

    def test_a07_a_deletion_says_who_and_where(self, memory: Memory) -> None:
        a = memory.add_message(say())
        deletion = memory.delete(
            {a.id}, "asked", requested_by="user-42", session_id="s1", source="console", actor="clerk"
        )
        assert (deletion.reason, deletion.requested_by) == ("asked", "user-42")
        assert (deletion.session_id, deletion.source, deletion.actor) == ("s1", "console", "clerk")
        assert memory.delete([a.id], "asked").source == "unknown"

    def test_a07_what_is_no_deletion_is_refused(self, memory: Memory) -> None:
        a = memory.add_message(say())
        with refused(memory, UsageError, "id"):
            memory.delete([], "asked")
        with refused(memory, UsageError, "reason"):
            memory.delete([a.id], "")
        with refused(memory, UsageError, "no uuid"):
            memory.delete([a.id, "no uuid"], "asked")
        with refused(memory, UsageError):
            memory.delete([a.id, cast("Any", 5)], "asked")
        with refused(memory, ValueError):
            memory.delete([a.id], cast("Any", 5))
        with refused(memory, TypeError):
            memory.delete(cast("Any", None), "asked")
        with refused(memory, LimitExceededError):
            memory.delete([a.id] * (TARGETS_MAX + 1), "asked")
        with refused(memory, UsageError):
            memory.delete([a.id], "a\x00b")

    def test_a07_superseded_notes_can_be_deleted(self, memory: Memory, engine: ScopeMemory) -> None:
        old, new = engine.put("k", "old"), engine.put("k", "new")
        deletion = memory.delete([old.id], "asked")
        state = memory.replay()
        assert state.deleted == {old.id: deletion}
        assert state.visible_notes == (new,)

    def test_a09_hidden_is_not_destroyed(self, memory: Memory, engine: ScopeMemory) -> None:
        message, document = memory.add_message(say()), memory.add_document(bring())
        note = engine.remember("a note")
        stored = memory.events()
        memory.delete([message.id, document.id, note.id], "asked")
        assert memory.events(up_to_seq=2) == stored
        assert [memory.get(event.id) for event in stored] == stored
        state = memory.replay()
        assert (state.messages, state.documents, state.notes) == ((message,), (document,), (note,))
        assert all(is_hidden(state, event.id) for event in stored)

    def test_a10_any_timestamp_is_kept(self, timed: Memory, clock: FakeClock) -> None:
        times = [NOON, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), NOON]
        stored = [timed.add_message(say(timestamp=time)) for time in times]
        assert [event.timestamp for event in timed.replay().messages] == times
        assert [event.recorded_at for event in stored] == [clock.now] * 4
        assert timed.events() == stored

    def test_a12_filters_are_anded(self, memory: Memory) -> None:
        stored: list[Event] = []
        for session in ("s1", "s2", "s1"):
            stored.append(memory.add_message(say(session_id=session)))
            stored.append(memory.add_document(bring(session_id=session)))
        assert memory.events(kind="message", session_id="s1") == [stored[0], stored[4]]
        assert memory.events(kind="message", session_id="s1", after_seq=0) == [stored[4]]
        assert memory.events(kind="document", session_id="s1", up_to_seq=4) == [stored[1]]
        assert memory.events(kind="recall", session_id="s1") == []

    def test_a12_every_kind_has_its_session(self, memory: Memory) -> None:
        message = memory.add_message(say(session_id="s1"))
        read, _ = memory.recall("hello", session_id="s1")
        deletion = memory.delete([message.id], "asked", session_id="s1")
        memory.add_message(say())
        assert memory.events(session_id="s1") == [message, read, deletion]

    def test_a12_a_list_is_the_callers_own(self, memory: Memory) -> None:
        memory.add_message(say())
        events = memory.events()
        events.clear()
        assert len(memory.events()) == 1

    def test_errors_limits_arrive_as_themselves(self, memory: Memory) -> None:
        for event in (say(speaker="a" * 257), say("a" * (4 * 1024 * 1024 + 1)), say(session_id="a" * 257)):
            with refused(memory, LimitExceededError):
                memory.add_message(event)
        with refused(memory, LimitExceededError):
            memory.add_document(bring(name="a" * 257))
        with refused(memory, UsageError, "U+0000"):
            memory.add_message(say("a\x00b"))

    def test_edge_an_answer_that_quotes_what_was_deleted_stays(self, memory: Memory) -> None:
        secret = memory.add_message(say("the code is 1234"))
        answer = memory.add_message(say("you said the code is 1234", speaker="model"))
        memory.delete([secret.id], "asked")
        assert memory.recall("code")[1] == [answer]
        memory.delete([answer.id], "asked")
        assert memory.recall("code")[1] == []

    def test_edge_deleting_everything_shortens_nothing(self, memory: Memory) -> None:
        stored = [memory.add_message(say(text)) for text in "abc"]
        memory.delete([event.id for event in stored], "asked")
        assert len(memory) == 4

    def test_edge_the_same_key_in_two_scopes(self, archive: Archive) -> None:
        first, second = archive.memory("one", tenant="default"), archive.memory("two", tenant="default")
        notes = [first.put("k", "in one"), second.put("k", "in two")]
        assert [note.supersedes for note in notes] == [None, None]
        for scope, note in zip(("one", "two"), notes, strict=True):
            assert Memory.over(archive, Scope("default", scope)).replay().visible_notes == (note,)
        assert [event for _, event in archive.tenant("default").events()] == notes


def every_call(memory: Memory, stored: Message) -> list[Callable[[], object]]:
    """Every call that a closed memory refuses."""
    return [
        lambda: memory.add_message(say()),
        lambda: memory.add_document(bring()),
        lambda: memory.record_recall(Recall(query="q")),
        lambda: memory.recall("q"),
        lambda: memory.delete([stored.id], "asked"),
        lambda: memory.get(stored.id),
        lambda: memory.events(),
        lambda: memory.replay(),
        lambda: len(memory),
    ]


class PointsInTimeContract(LedgerFixtures):
    """States of a stored ledger: required tests 63, 64 and 67, laws A16 to A20."""

    def test_63_up_to_an_event(self, memory: Memory) -> None:
        a, b = memory.add_message(say("a")), memory.add_message(say("b"))
        deletion = memory.delete([a.id], "asked")
        assert deletion.seq is not None
        assert memory.replay(up_to_seq=deletion.seq - 1).visible_messages == (a, b)
        assert memory.replay(up_to_seq=deletion.seq).visible_messages == (b,)
        for before in (-1, -2, -(10**30)):
            assert memory.replay(up_to_seq=before) == MemoryState()
        for after in (deletion.seq + 1, 10**30):
            assert memory.replay(up_to_seq=after) == memory.replay()

    def test_64_up_to_a_moment(self, timed: Memory, clock: FakeClock) -> None:
        a, b = timed.add_message(say("a")), timed.add_message(say("b"))
        clock.advance(HOUR)
        deletion = timed.delete([a.id], "asked")
        assert deletion.recorded_at == START + HOUR
        assert timed.replay(at=START + HOUR - MICROSECOND).visible_messages == (a, b)
        assert timed.replay(at=START + HOUR).visible_messages == (b,)
        assert timed.replay(at=START - MICROSECOND) == MemoryState()
        assert timed.replay(at=datetime.max.replace(tzinfo=UTC)) == timed.replay()
        there = timezone(timedelta(hours=-7))
        assert timed.replay(at=(START + HOUR).astimezone(there)).visible_messages == (b,)

    def test_64_one_point_at_a_time(self, memory: Memory) -> None:
        memory.add_message(say())
        with pytest.raises(UsageError, match="both"):
            memory.replay(up_to_seq=0, at=NOON)
        with pytest.raises(UsageError, match="at"):
            memory.replay(at=datetime(2026, 6, 10, 12))  # noqa: DTZ001 (naive on purpose)
        for wrong in (True, 1.0, "1"):
            with pytest.raises(UsageError, match="up_to_seq"):
                memory.replay(up_to_seq=cast("int", wrong))

    def test_67_a_key_taken_over(self, memory: Memory, engine: ScopeMemory) -> None:
        first, second = engine.put("plan", "old plan"), engine.put("plan", "new plan")
        state = memory.replay()
        assert state.superseded == {first.id: second.id}
        assert state.notes == (first, second)
        assert state.visible_notes == (second,)
        memory.delete([second.id], "asked")
        assert memory.replay().visible_notes == ()
        assert memory.replay().notes == (first, second)

    def test_67_a_key_taken_over_is_found_no_more(self, memory: Memory, engine: ScopeMemory) -> None:
        engine.put("plan", "old plan")
        second = engine.put("plan", "new plan")
        assert memory.recall("plan old")[1] == [second]
        memory.delete([second.id], "asked")
        assert memory.recall("plan old")[1] == []
        third = engine.put("plan", "third plan")
        assert third.supersedes is None
        assert memory.recall("plan")[1] == [third]

    def test_a16_an_auditors_look_leaves_no_trace(self, memory: Memory) -> None:
        stored = memory.add_message(say())
        memory.get(stored.id)
        memory.events(kind="message")
        search(memory.replay(), "hello")
        len(memory)
        assert memory.events() == [stored]

    def test_a17_a_state_is_the_fold_of_the_events(self, memory: Memory, engine: ScopeMemory) -> None:
        events = fill(memory, engine)
        assert memory.events() == events
        assert memory.replay() == replay(events)
        for seq in range(-1, len(events) + 1):
            assert memory.replay(up_to_seq=seq) == replay(events[: seq + 1])

    def test_a18_moments_between_events(self, timed: Memory, engine: ScopeMemory, clock: FakeClock) -> None:
        events = fill(timed, engine, step=clock.advance)
        for seq, event in enumerate(events):
            assert event.recorded_at is not None
            assert timed.replay(at=event.recorded_at) == replay(events[: seq + 1])
            assert timed.replay(at=event.recorded_at - MICROSECOND) == replay(events[:seq])

    def test_a18_several_events_of_one_moment(self, timed: Memory, engine: ScopeMemory) -> None:
        events = fill(timed, engine)
        assert timed.replay(at=START) == replay(events)
        assert timed.replay(at=START - MICROSECOND) == MemoryState()

    def test_a18_a_past_state_does_not_know_the_future(self, memory: Memory) -> None:
        a = memory.add_message(say("pump"))
        read, _ = memory.recall("pump")
        memory.delete([a.id], "asked")
        past = memory.replay(up_to_seq=0)
        assert search(past, "pump") == [a]
        assert dict(past.recall_stats) == {}
        assert memory.replay(up_to_seq=1).recall_stats == {a.id: RecallStats(1, read.timestamp)}

    def test_a19_a_state_outlives_its_memory(self, archive: Archive) -> None:
        with Memory.over(archive, Scope("default", "default")) as memory:
            stored = memory.add_message(say("pump"))
            state = memory.replay()
        archive.close()
        assert state.visible_messages == (stored,)
        assert search(state, "pump") == [stored]

    def test_82_nothing_is_hidden_by_a_date_that_passes(
        self, timed: Memory, engine: ScopeMemory, clock: FakeClock
    ) -> None:
        message = timed.add_message(say("pump", retain_until=START + HOUR))
        document = timed.add_document(bring("pump", retain_until=START - HOUR))
        note = engine.remember("pump", retain_until=START + HOUR)
        clock.advance(10 * HOUR)
        state = timed.replay()
        assert (state.visible_messages, state.visible_documents) == ((message,), (document,))
        assert state.visible_notes == (note,)
        assert len(timed.recall("pump")[1]) == 3

    def test_edge_backdating_moves_the_timestamp_only(self, timed: Memory, clock: FakeClock) -> None:
        timed.add_message(say("a"))
        clock.advance(HOUR)
        imported = timed.add_message(say("from long ago", timestamp=START - 1000 * HOUR))
        assert (imported.seq, imported.recorded_at) == (1, START + HOUR)
        assert imported.timestamp == START - 1000 * HOUR
        assert imported not in timed.replay(at=START + HOUR - MICROSECOND).messages
        assert imported in timed.replay(at=START + HOUR).messages


def fill(
    memory: Memory, engine: ScopeMemory, *, step: Callable[[], object] = lambda: None
) -> list[Event | ErasedEvent]:
    """The events of a ledger with something of everything, with a step between any two."""
    events: list[Event | ErasedEvent] = []

    def keep(event: Event) -> Event:
        events.append(event)
        step()
        return event

    message = keep(memory.add_message(say("the pump failed", session_id="s1")))
    document = keep(memory.add_document(bring("the pump was replaced")))
    keep(engine.put("plan", "call the contractor"))
    keep(memory.recall("pump")[0])
    keep(engine.put("plan", "pay the contractor"))
    keep(memory.delete([message.id, document.id], "asked"))
    keep(memory.add_message(say("the pump failed again", session_id="s2")))
    keep(memory.delete([message.id], "asked again"))
    keep(memory.recall("pump contractor")[0])
    keep(memory.record_recall(Recall(query="*")))
    return events


class RecallContract(LedgerFixtures):
    """Reads that are recorded: required tests 76 to 80, laws A13 and A15."""

    def test_70_the_table_from_a_store(self, memory: Memory) -> None:
        message, other, document = pump_ledger()
        memory.add_message(cast("Message", message))
        memory.add_message(cast("Message", other))
        memory.add_document(cast("Document", document))
        state = memory.replay()
        for query, found in PUMP_TABLE.items():
            assert seqs_of(search(state, query)) == found
            if query:
                assert seqs_of(memory.recall(query)[1]) == found
        memory.delete([message.id], "asked")
        assert seqs_of(memory.recall("pump")[1]) == [2]

    def test_76_one_match(self, memory: Memory) -> None:
        message = memory.add_message(say("the pump failed"))
        memory.add_message(say("cats are great"))
        read, found = memory.recall("pump")
        assert found == [message]
        assert read.recalled == (message.id,)
        assert (read.query, read.seq, read.source, read.actor, read.session_id) == ("pump", 2, "unknown", None, None)
        assert memory.get(read.id) == read

    def test_77_no_match(self, memory: Memory) -> None:
        memory.add_message(say("the pump failed"))
        read, found = memory.recall("zebra")
        assert (found, read.recalled, read.query) == ([], (), "zebra")
        assert memory.events(kind="recall") == [read]

    def test_78_twice(self, memory: Memory) -> None:
        message = memory.add_message(say("the pump failed"))
        memory.recall("pump")
        read, _ = memory.recall("pump")
        assert memory.replay().recall_stats == {message.id: RecallStats(2, read.timestamp)}

    def test_79_an_empty_query_is_refused_and_a_blank_one_is_not(self, memory: Memory) -> None:
        memory.add_message(say("the pump failed"))
        with refused(memory, ValueError, "query"):
            memory.recall("")
        for query in ("   ", "?!"):
            read, found = memory.recall(query)
            assert (found, read.recalled, read.query) == ([], (), query)
        assert len(memory) == 3

    def test_80_a_search_leaves_no_trace(self, memory: Memory) -> None:
        memory.add_message(say("the pump failed"))
        assert search(memory.replay(), "pump")
        assert len(memory) == 1

    def test_a13_what_is_hidden_reaches_no_context(self, memory: Memory, engine: ScopeMemory) -> None:
        hidden: list[Event] = [
            memory.add_message(say("pump secret")),
            memory.add_document(bring("pump secret", name="secret pump.txt")),
            engine.remember("pump secret", summary="secret pump"),
            engine.put("k", "pump secret"),
        ]
        memory.delete([event.id for event in hidden[:3]], "asked")
        engine.put("k", "pump")
        shown = memory.add_message(say("pump"))
        state = memory.replay()
        for query in ("pump", "secret", "pump secret", "secret pump.txt"):
            for found in (search(state, query, limit=1000), memory.recall(query, limit=1000)[1]):
                assert not {item.id for item in found} & {event.id for event in hidden}
        assert all(is_hidden(state, event.id) for event in hidden)
        assert shown in search(state, "pump")
        with refused(memory, UsageError):
            memory.record_recall(Recall(query="q", recalled=(hidden[0].id,)))

    def test_a15_what_it_returns_is_what_it_recorded(self, memory: Memory, engine: ScopeMemory) -> None:
        memory.add_message(say("pump"))
        memory.add_document(bring("pump pump"))
        engine.remember("the pump of the pump house")
        for limit in (0, 1, 2, 3, 1000):
            expected = search(memory.replay(), "pump", limit=limit)
            read, found = memory.recall("pump", limit=limit)
            assert found == expected
            assert len(found) == min(limit, 3)
            assert read.recalled == tuple(item.id for item in found)
            assert memory.get(read.id) == read

    def test_a15_five_by_default(self, memory: Memory) -> None:
        for number in range(7):
            memory.add_message(say(f"pump {number}"))
        assert seqs_of(memory.recall("pump")[1]) == [0, 1, 2, 3, 4]

    def test_a15_an_empty_memory_can_be_asked(self, memory: Memory) -> None:
        read, found = memory.recall("pump")
        assert (read.seq, read.recalled, found) == (0, (), [])

    def test_a15_a_session_is_a_tag_and_no_filter(self, memory: Memory) -> None:
        message = memory.add_message(say("pump", session_id="s1"))
        read, found = memory.recall("pump", session_id="s2", source="chat", actor="agent-1")
        assert found == [message]
        assert (read.session_id, read.source, read.actor) == ("s2", "chat", "agent-1")
        assert memory.events(session_id="s2") == [read]

    def test_a15_past_reads_are_not_found(self, memory: Memory) -> None:
        memory.recall("zebra")
        assert memory.recall("zebra")[1] == []

    def test_a15_another_scope_is_not_read(self, memory: Memory, memory_of: MemoryOf) -> None:
        memory_of("other").add_message(say("pump"))
        assert memory.recall("pump")[1] == []

    @pytest.mark.parametrize("limit", [-1, True, None, 2.5, SEARCH_LIMIT_MAX + 1])
    def test_a15_a_bad_limit_is_refused(self, memory: Memory, limit: Any) -> None:
        memory.add_message(say("pump"))
        with refused(memory, UsageError, "limit"):
            memory.recall("pump", limit=limit)

    def test_a15_what_is_no_recall_is_refused(self, memory: Memory) -> None:
        memory.add_message(say("pump"))
        for query in (None, 5, b"pump", SURROGATE, "pump\x00"):
            with refused(memory, ValueError):
                memory.recall(cast("str", query))
        with refused(memory, LimitExceededError):
            memory.recall("p" * (QUERY_CHARS_MAX + 1))
        with refused(memory, LimitExceededError):
            memory.recall("pump", session_id="s" * 257)
        with refused(memory, ValueError):
            memory.recall("pump", source=cast("str", None))

    def test_a15_no_read_names_what_was_deleted_before_it(self, memory: Memory) -> None:
        for number in range(40):
            memory.add_message(say(f"pump {number}"))

        def read() -> None:
            for _ in range(10):
                stored, found = memory.recall("pump", limit=3)
                assert stored.recalled == tuple(item.id for item in found)
                assert memory.get(stored.id) == stored

        def delete() -> None:
            for message in memory.replay().messages[:30]:
                memory.delete([message.id], "asked")

        run_together(read, read, read, delete)
        gone: set[UUID] = set()
        for event in memory.events():
            if isinstance(event, Deletion):
                gone |= set(event.targets)
            elif isinstance(event, Recall):
                assert len(event.recalled) == 3
                assert not gone & set(event.recalled)
        assert len(memory) == 40 + 30 + 30


class AuditContract(
    EventContract, ReplayContract, SearchContract, LedgerContract, PointsInTimeContract, RecallContract
):
    """The whole contract, on an archive that may live as long as its object."""


class PersistentAuditContract(AuditContract):
    """The whole contract on an archive that each call of `opener` opens again, at the same time or later."""

    def test_a03_seqs_go_on_after_reopening(self, opener: Opener, clock: FakeClock) -> None:
        scope = Scope("default", "default")
        with opener(clock) as archive:
            assert Memory.over(archive, scope).add_message(say("a")).seq == 0
        with opener(clock) as archive:
            assert Memory.over(archive, scope).add_message(say("b")).seq == 1
        with opener(clock) as archive:
            assert seqs_of(Memory.over(archive, scope).events()) == [0, 1]

    def test_a10_recorded_at_does_not_fall_across_a_reopening(self, opener: Opener, clock: FakeClock) -> None:
        scope = Scope("default", "default")
        with opener(clock) as archive:
            first = Memory.over(archive, scope).add_message(say("a"))
        clock.advance(-HOUR)
        with opener(clock) as archive:
            assert Memory.over(archive, scope).add_message(say("b")).recorded_at == first.recorded_at

    def test_65_reopened_it_is_the_same(self, opener: Opener, clock: FakeClock) -> None:
        scope = Scope("default", "default")
        with opener(clock) as archive:
            memory = Memory.over(archive, scope)
            events = fill(memory, archive.memory("default", tenant="default"), step=clock.advance)
            state = memory.replay()
            past = [memory.replay(up_to_seq=seq) for seq in range(len(events))]
        with opener(clock) as archive:
            memory = Memory.over(archive, scope)
            assert len(memory) == len(events)
            assert memory.events() == events
            assert [memory.get(event.id) for event in events] == events
            assert memory.replay() == state
            assert [memory.replay(up_to_seq=seq) for seq in range(len(events))] == past
            assert archive.verify().ok

    def test_edge_two_memories_of_one_archive_interleave(self, opener: Opener, clock: FakeClock) -> None:
        scope = Scope("default", "default")
        with opener(clock) as first_archive, opener(clock) as second_archive:
            first, second = Memory.over(first_archive, scope), Memory.over(second_archive, scope)
            stored = [memory.add_message(say()) for memory in (first, second, second, first)]
            assert seqs_of(stored) == [0, 1, 2, 3]
            assert first.events() == second.events() == stored
            second.delete([stored[0].id], "asked")
            assert first.recall("hello", limit=9)[1] == stored[1:]
            with pytest.raises(UsageError, match="deleted"):
                first.record_recall(Recall(query="q", recalled=(stored[0].id,)))
            with pytest.raises(DuplicateEventError):
                first.add_message(say(id=stored[2].id))
            assert first.replay() == second.replay()

    def test_edge_two_archives_are_written_by_threads_at_once(self, opener: Opener, clock: FakeClock) -> None:
        scope = Scope("default", "default")
        with opener(clock) as first_archive, opener(clock) as second_archive:
            memories = [Memory.over(archive, scope) for archive in (first_archive, second_archive)]

            def work(memory: Memory) -> None:
                for _ in range(25):
                    memory.add_message(say("pump"))
                    memory.recall("pump", limit=2)

            run_together(*[lambda memory=memory: work(memory) for memory in memories])
            assert seqs_of(memories[0].events()) == list(range(100))
            assert memories[0].replay() == memories[1].replay()
            assert first_archive.verify().ok
