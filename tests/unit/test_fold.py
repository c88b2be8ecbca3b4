"""The fold: `audit.md` A17 to A19 and its required tests 53 to 62, 66 and 68."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.fold import Fold, replay
from muniment.errors import UsageError
from muniment.model.event import (
    CONTENT_KINDS,
    Deletion,
    Document,
    ErasedEvent,
    Erasure,
    Event,
    Message,
    Note,
    Recall,
    with_place,
)
from muniment.model.state import MemoryState, RecallStats
from muniment.testing.strategies import histories

NOON = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)
ONE_O_CLOCK = NOON + timedelta(hours=1)


def place(*events: Any, first: int = 0) -> list[Any]:
    """The events as a store would give them back."""
    return [with_place(event, seq, NOON) for seq, event in enumerate(events, first)]


def say(content: str = "hello") -> Message:
    return Message(speaker="anna", content=content)


def erase(event: Event, erased: int) -> ErasedEvent:
    """What is left of a stored event after the Erasure at that seq."""
    assert event.seq is not None
    assert event.recorded_at is not None
    links = {name: getattr(event, name) for name in ("supersedes", "targets") if hasattr(event, name)}
    return ErasedEvent(
        id=event.id,
        kind=event.kind,
        seq=event.seq,
        recorded_at=event.recorded_at,
        content_digest="0" * 64,
        erased=erased,
        **links,
    )


# --- Required tests ---------------------------------------------------------------------------------------------------


def test_53_nothing() -> None:
    state = replay([])
    assert state == MemoryState()
    assert (state.messages, state.documents, state.notes, state.last_seq) == ((), (), (), None)
    assert (state.deleted, state.superseded, state.erased, state.recall_stats) == ({}, {}, {}, {})
    assert state.visible == ()


def test_54_two_messages() -> None:
    a, b = place(say("a"), say("b"))
    state = replay([a, b])
    assert (state.messages, state.visible_messages, state.last_seq) == ((a, b), (a, b), 1)


def test_55_message_and_document() -> None:
    message, document = place(say(), Document(name="a.txt", text="text"))
    state = replay([message, document])
    assert (state.messages, state.documents, state.notes) == ((message,), (document,), ())
    assert state.visible_documents == (document,)


def test_56_deletion() -> None:
    first, second = say("a"), say("b")
    a, b, deletion = place(first, second, Deletion(targets=(first.id,), reason="asked"))
    state = replay([a, b, deletion])
    assert state.visible_messages == (b,)
    assert (state.is_deleted(a.id), state.is_deleted(b.id)) == (True, False)
    assert state.deleted == {a.id: deletion}
    assert state.messages == (a, b)
    assert state.last_seq == 2


def test_57_the_only_document_deleted() -> None:
    document = Document(name="a.txt", text="text")
    state = replay(place(document, Deletion(targets=(document.id,), reason="asked")))
    assert state.visible_documents == ()
    assert len(state.documents) == 1


def test_58_recall_stats_follow_the_log() -> None:
    message = say()
    at_noon = Recall(query="q", recalled=(message.id,), timestamp=NOON)
    at_one = Recall(query="q", recalled=(message.id,), timestamp=ONE_O_CLOCK)
    assert replay(place(message, at_noon, at_one)).recall_stats == {message.id: RecallStats(2, ONE_O_CLOCK)}
    assert replay(place(message, at_one, at_noon)).recall_stats == {message.id: RecallStats(2, NOON)}


@given(histories())
def test_59_twice_gives_equal_states(history: list[Event]) -> None:
    assert replay(history) == replay(list(history))
    assert hash(replay(history)) == hash(replay(history))


def test_60_an_event_without_seq() -> None:
    with pytest.raises(ValueError, match="no seq"):
        replay([say()])
    with pytest.raises(UsageError, match="no seq"):
        replay([*place(say()), say()])


@pytest.mark.parametrize("seqs", [(1, 0), (1, 1), (0, 5, 5), (0, 5, 4)])
def test_61_seqs_that_do_not_rise(seqs: tuple[int, ...]) -> None:
    events = [with_place(say(), seq, NOON) for seq in seqs]
    with pytest.raises(ValueError, match=f"seq {seqs[-1]}"):
        replay(events)
    with pytest.raises(UsageError):
        replay(events)


def test_62_messages_recall_and_deletion() -> None:
    first, second = say("a"), say("b")
    recall, deletion = Recall(query="q", recalled=(first.id,)), Deletion(targets=(second.id,), reason="asked")
    a, *_ = history = place(first, second, recall, deletion)
    state = replay(history)
    assert state.visible_messages == (a,)
    assert state.recall_stats[a.id].num_recalled == 1


def test_66_the_state_is_read_only() -> None:
    message = say()
    deletion = Deletion(targets=(message.id,), reason="asked")
    state: Any = replay(place(message, deletion, Recall(query="q", recalled=(message.id,))))
    for name in ("deleted", "superseded", "erased", "recall_stats"):
        mapping = getattr(state, name)
        with pytest.raises(TypeError):
            mapping[message.id] = 1
        with pytest.raises(TypeError):
            del mapping[message.id]
        with pytest.raises(AttributeError):
            mapping.clear()
    for name in (field.name for field in dataclasses.fields(MemoryState)):
        with pytest.raises(AttributeError):
            setattr(state, name, None)
        with pytest.raises(AttributeError):
            delattr(state, name)
    with pytest.raises(TypeError):
        state.messages[0] = None
    with pytest.raises(AttributeError):
        state.recall_stats[message.id].num_recalled = 7


def test_66_the_empty_state_is_read_only_too() -> None:
    state: Any = MemoryState()
    with pytest.raises(TypeError):
        state.deleted[uuid4()] = 1
    assert isinstance(state.deleted, Mapping)


def test_68_a_generator() -> None:
    history = place(say("a"), say("b"))
    assert replay(event for event in history) == replay(history) == replay(iter(tuple(history)))


# --- A17: the table ---------------------------------------------------------------------------------------------------


def test_repeats_in_a_recall_count() -> None:
    message, other = say(), say()
    state = replay(place(message, other, Recall(query="q", recalled=(message.id, other.id, message.id))))
    assert {item: stats.num_recalled for item, stats in state.recall_stats.items()} == {message.id: 2, other.id: 1}


def test_an_item_never_recalled_has_no_entry() -> None:
    message = say()
    assert replay(place(message, Recall(query="q"))).recall_stats == {}
    assert RecallStats() == RecallStats(0, None)


def test_the_first_deletion_stays() -> None:
    message = say()
    first, second = (Deletion(targets=(message.id,), reason=reason) for reason in ("first", "second"))
    _, stored, _ = history = place(message, first, second)
    assert replay(history).deleted == {message.id: stored}


def test_a_deletion_hides_all_its_targets_of_any_kind() -> None:
    message, document, note = say(), Document(name="a", text="b"), Note(content="c")
    deletion = Deletion(targets=(note.id, message.id, document.id, message.id), reason="asked")
    state = replay(place(message, document, note, deletion))
    assert state.visible == state.visible_messages == state.visible_documents == state.visible_notes == ()
    assert set(state.deleted) == {message.id, document.id, note.id}


def test_a_note_with_supersedes() -> None:
    old = Note(content="old", key="k")
    new = Note(content="new", key="k", supersedes=old.id)
    first, second = place(old, new)
    state = replay([first, second])
    assert state.superseded == {old.id: new.id}
    assert state.notes == (first, second)
    assert state.visible_notes == (second,)
    assert (state.is_visible(old.id), state.is_deleted(old.id), state.is_visible(new.id)) == (False, False, True)


def test_what_was_superseded_stays_so_when_its_successor_is_deleted() -> None:
    old = Note(content="old", key="k")
    new = Note(content="new", key="k", supersedes=old.id)
    state = replay(place(old, new, Deletion(targets=(new.id,), reason="asked")))
    assert state.visible_notes == ()
    assert state.superseded == {old.id: new.id}


def test_an_erasure_moves_last_seq_and_nothing_else() -> None:
    history = place(say(), Erasure(targets=(uuid4(),), count=1, reason="asked"), first=3)
    state = replay(history)
    assert state.last_seq == 4
    assert dataclasses.replace(state, last_seq=3) == replay(history[:1])


def test_an_erased_item_is_named_and_has_nothing_else() -> None:
    message, recall = say(), Recall(query="q")
    first, second = place(message, recall.model_copy(update={"recalled": (message.id,)}))
    state = replay([erase(first, 9), second])
    assert state.erased == {message.id: 9}
    assert (state.messages, state.visible, state.recall_stats, state.last_seq) == ((), (), {}, 1)


def test_an_item_erased_after_its_recall_loses_its_entry() -> None:
    """The order of the two does not matter: the item's own event comes before any Recall of it."""
    kept, gone = say(), say()
    recall = Recall(query="q", recalled=(kept.id, gone.id))
    first, second, third = place(kept, gone, recall)
    assert set(replay([first, erase(second, 9), third]).recall_stats) == {kept.id}
    assert set(replay([first, third, erase(with_place(gone, 3, NOON), 9)]).recall_stats) == {kept.id}


def test_an_erased_recall_counts_no_more() -> None:
    message = say()
    first, second = place(message, Recall(query="q", recalled=(message.id,)))
    assert replay([first, erase(second, 9)]).recall_stats == {}


def test_an_erased_deletion_still_hides_its_targets() -> None:
    message = say()
    first, second = place(message, Deletion(targets=(message.id,), reason="asked"))
    left = erase(second, 9)
    state = replay([first, left])
    assert state.deleted == {message.id: left}
    assert state.visible == ()
    assert state.erased == {second.id: 9}


def test_the_seq_of_an_erasure_may_be_above_last_seq() -> None:
    (first,) = place(say())
    state = replay([erase(first, 100)])
    assert (state.last_seq, state.erased) == (0, {first.id: 100})


def test_nothing_is_cross_checked() -> None:
    deleted, recalled, replaced = uuid4(), uuid4(), uuid4()
    deletion = Deletion(targets=(deleted,), reason="asked")
    state = replay(place(deletion, Recall(query="q", recalled=(recalled,)), Note(content="a", supersedes=replaced)))
    assert list(state.deleted) == [deleted]
    assert list(state.recall_stats) == [recalled]
    assert list(state.superseded) == [replaced]


@pytest.mark.parametrize("seqs", [(5,), (0, 7, 8), (10, 1_000_000)])
def test_gaps_and_any_first_seq(seqs: tuple[int, ...]) -> None:
    state = replay([with_place(say(), seq, NOON) for seq in seqs])
    assert (state.last_seq, len(state.messages)) == (seqs[-1], len(seqs))


@pytest.mark.parametrize("foreign", [None, "event", 5, {}, object(), RecallStats(), MemoryState()])
def test_objects_of_another_type(foreign: Any) -> None:
    with pytest.raises(TypeError, match="replay takes events"):
        replay([foreign])
    with pytest.raises(TypeError):
        replay([*place(say()), foreign])


@pytest.mark.parametrize("foreign", [None, 5])
def test_what_cannot_be_iterated(foreign: Any) -> None:
    with pytest.raises(TypeError):
        replay(foreign)


# --- A18, A19: points in time, equal states ---------------------------------------------------------------------------


@given(histories(), st.data())
def test_a_past_state_is_the_replay_of_what_was_there(history: list[Event], data: st.DataObject) -> None:
    """A fold that goes on equals a fold that starts anew, at every event; and its past states stay as they were."""
    fold = Fold()
    states = [fold.state()]
    for event in history:
        fold.add(event)
        states.append(fold.state())
    at = data.draw(st.integers(0, len(history)))
    assert states[at] == replay(history[:at])
    assert [state.last_seq for state in states] == [None, *range(len(history))]


@given(histories())
def test_the_state_agrees_with_its_laws(history: list[Event]) -> None:
    state = replay(history)
    content = [event for event in history if event.kind in CONTENT_KINDS]
    hidden = {target for event in history if isinstance(event, Deletion) for target in event.targets}
    replaced = {event.supersedes for event in history if isinstance(event, Note) and event.supersedes}
    assert sorted([*state.messages, *state.documents, *state.notes], key=lambda item: item.seq or 0) == content
    assert set(state.deleted) == hidden
    assert set(state.superseded) == replaced
    assert list(state.visible) == [event for event in content if event.id not in hidden | replaced]
    assert list(state.visible) == sorted(
        [*state.visible_messages, *state.visible_documents, *state.visible_notes], key=lambda item: item.seq or 0
    )
    recalled = [item for event in history if isinstance(event, Recall) for item in event.recalled]
    assert {item: stats.num_recalled for item, stats in state.recall_stats.items()} == {
        item: recalled.count(item) for item in recalled
    }
    assert all(state.is_visible(item.id) for item in state.visible)


@given(histories(), st.data())
def test_erasing_takes_away_the_item_and_nothing_else(history: list[Event], data: st.DataObject) -> None:
    before = replay(history)
    content = [event for event in history if event.kind in CONTENT_KINDS and getattr(event, "supersedes", None) is None]
    if not content:
        return
    gone = data.draw(st.sampled_from(content))
    after = replay([erase(event, 99) if event is gone else event for event in history])
    assert after.erased == {gone.id: 99}
    assert after.visible == tuple(item for item in before.visible if item.id != gone.id)
    assert (after.deleted, after.superseded, after.last_seq) == (before.deleted, before.superseded, before.last_seq)
    assert after.recall_stats == {item: stats for item, stats in before.recall_stats.items() if item != gone.id}


def test_states_compare_by_value() -> None:
    history = place(say("a"), say("b"))
    assert replay(history) == replay([event.model_copy() for event in history])
    assert replay(history) != replay(history[:1])
    assert replay(history) != replay([*history, *place(Recall(query="q"), first=2)])
    assert replay(history).deleted == MappingProxyType({})


def test_the_fold_does_not_change_what_it_is_given() -> None:
    message = say()
    history = place(message, Deletion(targets=(message.id,), reason="asked"))
    before = [event.model_copy(deep=True) for event in history]
    replay(history)
    assert history == before


def test_an_unknown_id_is_neither_deleted_nor_hidden() -> None:
    state = replay(place(say()))
    assert (state.is_deleted(UUID(int=5)), state.is_visible(UUID(int=5))) == (False, True)
