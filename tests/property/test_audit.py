"""The audit contract on random events and random ledgers, beside a model that is obviously right."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Final
from uuid import UUID, uuid4

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import muniment
from muniment.adapters.tokenizer import tokenize
from muniment.archive import Archive
from muniment.audit import (
    Content,
    Deletion,
    Document,
    ErasedEvent,
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
from muniment.core.project import searched_text
from muniment.core.text import analyse, query_terms
from muniment.errors import DuplicateEventError, UsageError
from muniment.model.event import KINDS
from muniment.testing.audit import left_of
from muniment.testing.doubles import FakeClock
from muniment.testing.strategies import contents, events, histories, texts

SCOPE: Final = Scope("default", "default")
WORDS: Final = ("pump", "pumps", "water", "budget", "the", "meeting", "x")

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
queries = sentences | texts(min_size=1)


# --- Events -----------------------------------------------------------------------------------------------------------


@given(event=events())
def test_an_event_goes_through_json_text(event: Event) -> None:
    written = event_to_dict(event)
    text = json.dumps(written, allow_nan=False)
    assert json.loads(text) == written
    assert event_from_dict(json.loads(text)) == event
    assert event_to_dict(event_from_dict(written)) == written


@given(history=histories(), data=st.data())
def test_what_is_left_of_an_event_goes_through_json_text(history: list[Event], data: st.DataObject) -> None:
    for event in history:
        left = left_of(event, data.draw(st.integers(0, 100)))
        assert event_from_dict(json.loads(json.dumps(event_to_dict(left)))) == left


@given(event=events(), data=st.data())
def test_no_key_of_an_event_is_too_many_or_unknown(event: Event, data: st.DataObject) -> None:
    written = dict(event_to_dict(event))
    with pytest.raises(ValueError):  # noqa: PT011 (each says another thing)
        event_from_dict({**written, data.draw(texts().filter(lambda name: name not in written)): None})


# --- The fold ---------------------------------------------------------------------------------------------------------


def fold_plainly(events: Sequence[Event | ErasedEvent]) -> MemoryState:
    """A17's table, one line a row."""
    messages: list[Message] = []
    documents: list[Document] = []
    notes: list[Note] = []
    deleted: dict[UUID, Deletion | ErasedEvent] = {}
    superseded: dict[UUID, UUID] = {}
    erased: dict[UUID, int] = {}
    times: Counter[UUID] = Counter()
    last: dict[UUID, datetime] = {}
    for event in events:
        if isinstance(event, Message):
            messages.append(event)
        if isinstance(event, Document):
            documents.append(event)
        if isinstance(event, Note):
            notes.append(event)
            superseded |= {event.supersedes: event.id} if event.supersedes else {}
        if isinstance(event, Recall):
            times.update(event.recalled)
            last |= dict.fromkeys(event.recalled, event.timestamp)
        if isinstance(event, Deletion) or (isinstance(event, ErasedEvent) and event.kind == "deletion"):
            deleted = {**dict.fromkeys(event.targets, event), **deleted}
        if isinstance(event, ErasedEvent):
            erased[event.id] = event.erased
    stats = {item: RecallStats(count, last[item]) for item, count in times.items() if item not in erased}
    last_seq = events[-1].seq if events else None
    return MemoryState(tuple(messages), tuple(documents), tuple(notes), deleted, superseded, erased, stats, last_seq)


@st.composite
def partly_erased(draw: st.DrawFn) -> list[Event | ErasedEvent]:
    """A history some of whose events have lost their content."""
    return [left_of(event, 99) if draw(st.booleans()) else event for event in draw(histories())]


@given(history=histories() | partly_erased())
def test_replay_is_the_fold_of_the_table(history: list[Event | ErasedEvent]) -> None:
    for length in range(len(history) + 1):
        assert replay(history[:length]) == fold_plainly(history[:length])


@given(history=partly_erased())
def test_equal_events_give_an_equal_state(history: list[Event | ErasedEvent]) -> None:
    again = [event_from_dict(json.loads(json.dumps(event_to_dict(event)))) for event in history]
    assert again == history
    assert replay(iter(again)) == replay(history)
    assert hash(replay(again)) == hash(replay(history))


@given(history=histories(), places=st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_events_out_of_order_are_refused(history: list[Event], places: tuple[int, int]) -> None:
    assume(len(history) > 1)
    first, second = (place % len(history) for place in places)
    swapped = list(history)
    if first == second:
        swapped.insert(first, history[first])
    else:
        swapped[first], swapped[second] = history[second], history[first]
    with pytest.raises(UsageError, match="seq"):
        replay(swapped)


# --- The search -------------------------------------------------------------------------------------------------------


def terms_of(item: Content) -> set[str]:
    return set(analyse(searched_text(item) or "", tokenize))


@st.composite
def spoken(draw: st.DrawFn) -> MemoryState:
    """A state of a few items with few words, some of them hidden."""
    placed: list[Event] = []
    for seq, item in enumerate(draw(st.lists(contents(), max_size=12))):
        changes: dict[str, object] = {"seq": seq, "text" if isinstance(item, Document) else "content": draw(sentences)}
        if isinstance(item, Note):
            changes["supersedes"] = None
        placed.append(item.model_copy(update=changes))
    gone = tuple(event.id for event in placed if draw(st.integers(0, 3)) == 0)
    if gone:
        placed.append(Deletion(targets=gone, reason="asked", seq=len(placed)))
    return replay(placed)


@given(state=spoken(), query=queries, limit=st.integers(0, 15))
def test_a_search_finds_what_is_visible_and_shares_a_term(state: MemoryState, query: str, limit: int) -> None:
    everything = search(state, query, limit=1000)
    wanted = set(query_terms(query, tokenize))
    assert {item.id for item in everything} == {item.id for item in state.visible if terms_of(item) & wanted}
    assert len({item.id for item in everything}) == len(everything)
    assert search(state, query, limit=limit) == everything[:limit]


@given(state=spoken(), query=queries)
def test_a_search_does_not_know_what_is_hidden(state: MemoryState, query: str) -> None:
    assert search(state, query, limit=1000) == search(replay(state.visible), query, limit=1000)


@given(state=spoken(), query=sentences)
def test_repeating_words_in_a_query_changes_nothing(state: MemoryState, query: str) -> None:
    assert search(state, f"{query} {query}".upper(), limit=1000) == search(state, query, limit=1000)


@given(query=sentences, text=sentences, times=st.integers(2, 6))
def test_equal_items_stand_in_order_of_seq(query: str, text: str, times: int) -> None:
    state = replay([Message(speaker="x", content=text, seq=seq) for seq in range(times)])
    found = [item.seq for item in search(state, query, limit=1000)]
    assert found in ([], list(range(times)))


@given(contents=st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=150), max_size=12), data=st.data())
def test_a_recall_finds_what_a_search_of_its_state_finds(contents: list[list[int]], data: st.DataObject) -> None:
    """The index of the engine and the pure search agree to the last bit, for short queries and for very long ones."""
    words = [f"w{number}" for number in range(110)]
    with muniment.open("memory://") as archive:
        memory = Memory.over(archive, SCOPE)
        for numbers in contents:
            memory.add_message(Message(speaker="x", content=" ".join(words[number] for number in numbers)))
        for size in (1, 3, 64, 65, 110):
            query = " ".join(data.draw(st.permutations(words))[:size])
            expected = search(memory.replay(), query, limit=1000)
            assert memory.recall(query, limit=1000)[1] == expected


# --- Ledgers ----------------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """What a ledger must hold, by the laws alone."""

    events: list[Event] = field(default_factory=list[Event])
    recorded_at: datetime | None = None

    def take(self, stored: Event, given: Event, now: datetime) -> None:
        """The event was stored: it has the next place, and is otherwise what was given."""
        self.recorded_at = now if self.recorded_at is None else max(now, self.recorded_at)
        assert stored == given.model_copy(update={"seq": len(self.events), "recorded_at": self.recorded_at})
        assert given.seq is None
        self.events.append(stored)

    @property
    def content(self) -> list[UUID]:
        return [event.id for event in self.events if isinstance(event, Message | Document | Note)]

    @property
    def others(self) -> list[UUID]:
        return [event.id for event in self.events if isinstance(event, Recall | Deletion)]

    @property
    def deleted(self) -> set[UUID]:
        return {target for event in self.events if isinstance(event, Deletion) for target in event.targets}

    @property
    def superseded(self) -> set[UUID]:
        return {event.supersedes for event in self.events if isinstance(event, Note) and event.supersedes is not None}

    def live(self, key: str) -> UUID | None:
        """The note that a new note of that key supersedes."""
        notes = [event for event in self.events if isinstance(event, Note) and event.key == key]
        hidden = self.deleted | self.superseded
        return next((note.id for note in reversed(notes) if note.id not in hidden), None)


numbers = st.integers(0, 1000)


def pick(ids: Sequence[UUID], places: Sequence[int]) -> tuple[UUID, ...]:
    return tuple(ids[place % len(ids)] for place in places)


class LedgerMachine(RuleBasedStateMachine):
    """Any calls in any order, on the adapter that the subclass names; after each, every read agrees with the model."""

    url: ClassVar[str] = "memory://"

    def open(self) -> Archive:
        return muniment.open(self.url, clock=self.clock)

    @initialize()
    def begin(self) -> None:
        self.clock = FakeClock()
        self.model = Model()
        self.archive = self.open()
        self.memory = Memory.over(self.archive, SCOPE)
        self.elsewhere = Memory.over(self.archive, Scope("default", "other")).add_message(
            Message(speaker="x", content="pump")
        )

    def teardown(self) -> None:
        if hasattr(self, "archive"):
            self.archive.close()

    @rule(seconds=st.integers(-3600, 3600))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    @rule(item=contents(), text=sentences | texts(min_size=1))
    def add(self, item: Content, text: str) -> None:
        if isinstance(item, Message):
            item = item.model_copy(update={"content": text})
            self.model.take(self.memory.add_message(item), item, self.clock.now)
        elif isinstance(item, Document):
            item = item.model_copy(update={"text": text})
            self.model.take(self.memory.add_document(item), item, self.clock.now)
        else:
            item = item.model_copy(update={"content": text, "supersedes": None})
            stored = self.archive.memory("default", tenant="default").add(item)
            linked = item if item.key is None else item.model_copy(update={"supersedes": self.model.live(item.key)})
            self.model.events.append(stored)
            self.model.events.pop()
            self.model.take(stored, linked, self.clock.now)

    @rule(query=queries, limit=st.integers(0, 8), session=st.none() | st.sampled_from(["s1", "s2"]))
    def recall(self, query: str, limit: int, session: str | None) -> None:
        expected = search(replay(self.model.events), query, limit=limit)
        read, found = self.memory.recall(query, limit=limit, session_id=session)
        assert found == expected
        given = Recall(
            id=read.id,
            timestamp=read.timestamp,
            query=query,
            recalled=tuple(item.id for item in expected),
            session_id=session,
            request=read.request,
        )
        self.model.take(read, given, self.clock.now)

    @precondition(lambda self: self.model.content)
    @rule(places=st.lists(numbers, max_size=4))
    def record(self, places: list[int]) -> None:
        given = Recall(query="*", recalled=pick(self.model.content, places))
        if self.model.deleted & set(given.recalled):
            with pytest.raises(UsageError, match="deleted"):
                self.memory.record_recall(given)
        else:
            self.model.take(self.memory.record_recall(given), given, self.clock.now)

    @precondition(lambda self: self.model.content)
    @rule(places=st.lists(numbers, min_size=1, max_size=4), reason=texts(min_size=1))
    def delete(self, places: list[int], reason: str) -> None:
        targets = pick(self.model.content, places)
        stored = self.memory.delete(targets, reason)
        given = Deletion(id=stored.id, timestamp=stored.timestamp, targets=targets, reason=reason)
        self.model.take(stored, given, self.clock.now)

    @rule(places=st.lists(numbers, max_size=3), where=numbers, which=numbers)
    def name_what_is_no_content_here(self, places: list[int], where: int, which: int) -> None:
        targets = list(pick(self.model.content, places)) if self.model.content else []
        wrong = [uuid4(), self.elsewhere.id, *self.model.others]
        targets.insert(where % (len(targets) + 1), wrong[which % len(wrong)])
        with pytest.raises(UsageError):
            self.memory.delete(targets, "asked")
        with pytest.raises(UsageError):
            self.memory.record_recall(Recall(query="q", recalled=tuple(targets)))

    @precondition(lambda self: self.model.events)
    @rule(place=numbers)
    def add_again(self, place: int) -> None:
        taken = self.model.events[place % len(self.model.events)]
        with pytest.raises(DuplicateEventError):
            self.memory.add_message(Message(id=taken.id, speaker="x", content="y"))
        with pytest.raises(UsageError):
            self.memory.add_message(Message(speaker="x", content="y", seq=taken.seq))

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "model"):
            return
        expected = self.model.events
        assert self.memory.events() == expected
        assert len(self.memory) == len(expected)
        assert self.memory.replay() == fold_plainly(expected)

    @precondition(lambda self: self.model.events)
    @rule(after=st.none() | st.integers(-2, 30), up_to=st.none() | st.integers(-2, 30), kind=st.sampled_from(KINDS))
    def look(self, after: int | None, up_to: int | None, kind: str) -> None:
        expected = [
            event
            for seq, event in enumerate(self.model.events)
            if (after is None or seq > after) and (up_to is None or seq <= up_to)
        ]
        assert self.memory.events(after_seq=after, up_to_seq=up_to) == expected
        of_kind = [event for event in expected if event.kind == kind]
        assert self.memory.events(after_seq=after, up_to_seq=up_to, kind=kind) == of_kind
        for session in {event.session_id for event in self.model.events} - {None}:
            of_session = [event for event in of_kind if event.session_id == session]
            found = self.memory.events(after_seq=after, up_to_seq=up_to, kind=kind, session_id=session)
            assert found == of_session
        for event in expected:
            assert self.memory.get(event.id) == event
        if up_to is not None:
            assert self.memory.replay(up_to_seq=up_to) == fold_plainly(self.model.events[: max(0, up_to + 1)])

    @precondition(lambda self: self.model.events)
    @rule(place=numbers, microseconds=st.integers(-1, 1))
    def look_at_a_moment(self, place: int, microseconds: int) -> None:
        moment = self.model.events[place % len(self.model.events)].recorded_at
        assert moment is not None
        moment += timedelta(microseconds=microseconds)
        expected = [
            event for event in self.model.events if event.recorded_at is not None and event.recorded_at <= moment
        ]
        assert self.memory.replay(at=moment) == fold_plainly(expected)

    @rule()
    def verify(self) -> None:
        assert self.archive.verify().ok


class InMemoryMachine(LedgerMachine):
    url = ":memory:"


class FileMachine(LedgerMachine):
    """The same on a file, which is closed and opened again now and then."""

    def open(self) -> Archive:
        if not hasattr(self, "folder"):
            self.folder = TemporaryDirectory()
        return muniment.open(Path(self.folder.name) / "archive.db", durability="normal", clock=self.clock)

    @rule()
    def reopen(self) -> None:
        before = self.memory.replay()
        self.archive.close()
        self.archive = self.open()
        self.memory = Memory.over(self.archive, SCOPE)
        assert self.memory.replay() == before

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


_STEPS: Final = settings(stateful_step_count=25, max_examples=max(10, settings().max_examples // 2))

TestLedgerOnTheOracle = LedgerMachine.TestCase
TestLedgerOnTheOracle.settings = _STEPS
TestLedgerInMemory = InMemoryMachine.TestCase
TestLedgerInMemory.settings = _STEPS
TestLedgerOnAFile = FileMachine.TestCase
TestLedgerOnAFile.settings = _STEPS
