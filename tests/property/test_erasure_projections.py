"""After any destruction the projections are what the events that are left lead to (E16, E20, E24, A20).

The oracle knows nothing of the engine: it goes through `memory.events()` and works out what items and uses must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import event as hypothesis_event
from hypothesis import given
from hypothesis import strategies as st

import muniment
from muniment import Archive, Deletion, Document, ErasedEvent, Event, Memory, Message, Note, Recall
from muniment.archive.chooser import Chooser
from muniment.archive.eraser import Eraser
from muniment.core.canonical import from_us
from muniment.model.rows import ItemFilter, ItemRow, StoredEvent, Use
from muniment.testing.doubles import START, FakeClock, SeededEntropy

SESSIONS: Final = (None, "s1", "s2")
KEYS: Final = ("plan", "home")
TIERS: Final = {"core": 1, "archival": 2, "insight": 3}
KINDS: Final = {"message": 1, "document": 2, "note": 3}


# --- The oracle -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """What can be known of an item from the events alone."""

    seq: int
    kind: str
    tier: int
    timestamp: datetime
    created: datetime
    root_seq: int
    deleted_seq: int | None
    superseded_seq: int | None
    retain_until: datetime | None


def expect(events: Iterable[Event | ErasedEvent]) -> tuple[list[Expected], dict[int, tuple[int, datetime]]]:
    """The items, and of each chain that was handed out how often and when last."""
    items: dict[UUID, Expected] = {}
    reads: list[Recall] = []
    for event in events:
        seq = event.seq
        assert seq is not None
        if isinstance(event, Deletion):
            for target in event.targets:
                if target in items and items[target].deleted_seq is None:
                    items[target] = replace(items[target], deleted_seq=seq)
        elif isinstance(event, Recall):
            reads.append(event)
        elif isinstance(event, Message | Document | Note):
            older = items.get(event.supersedes) if isinstance(event, Note) and event.supersedes is not None else None
            if isinstance(event, Note) and event.supersedes is not None and older is not None:
                items[event.supersedes] = replace(older, superseded_seq=seq)
            items[event.id] = Expected(
                seq=seq,
                kind=event.kind,
                tier=TIERS[event.tier] if isinstance(event, Note) else 0,
                timestamp=event.timestamp,
                created=event.timestamp if older is None else older.created,
                root_seq=seq if older is None else older.root_seq,
                deleted_seq=None,
                superseded_seq=None,
                retain_until=event.retain_until,
            )
    uses: dict[int, tuple[int, datetime]] = {}
    for read in reads:
        for target in read.recalled:
            if target in items:
                root = items[target].root_seq
                uses[root] = (uses.get(root, (0, START))[0] + 1, read.timestamp)
    return sorted(items.values(), key=lambda item: item.seq), uses


def read_projections(archive: Archive, memory: Memory) -> tuple[list[ItemRow], dict[int, Use]]:
    with archive.storage.snapshot(memory.scope) as view:
        if view is None:
            return [], {}
        rows = view.read_items(ItemFilter(hidden=True), limit=10_000)
        return rows, dict(view.find_uses(range(view.head.next_seq)))


def check(archive: Archive, memory: Memory) -> None:
    """Items and uses are what the oracle says, what a rebuild makes, and what the replay shows."""
    rows, uses = read_projections(archive, memory)
    items, counts = expect(memory.events())
    assert [as_expected(row) for row in rows] == items
    assert {root: (use.times, from_us(use.last_used_us)) for root, use in uses.items()} == counts
    state = memory.replay()
    assert [item.id for item in memory.items()] == [item.id for item in state.visible]
    shown = {item.id: item for item in memory.items(hidden=True)}
    assert set(shown) == {item.id for item in (*state.messages, *state.documents, *state.notes)}
    for item in shown.values():
        times, last = counts.get(item.root_seq, (0, None))
        assert (item.usage_count, item.last_used_at) == (times, last)
    memory.rebuild()
    assert read_projections(archive, memory) == (rows, uses)
    assert memory.verify()


def as_expected(row: ItemRow) -> Expected:
    return Expected(
        seq=row.seq,
        kind=next(kind for kind, number in KINDS.items() if number == row.kind),
        tier=row.tier,
        timestamp=from_us(row.timestamp_us),
        created=from_us(row.created_us),
        root_seq=row.root_seq,
        deleted_seq=row.deleted_seq,
        superseded_seq=row.superseded_seq,
        retain_until=None if row.retain_us is None else from_us(row.retain_us),
    )


# --- Histories --------------------------------------------------------------------------------------------------------

BUILDING: Final = ("say", "note", "put", "put", "put", "read", "read", "delete")
DESTROYING: Final = (
    "forget",
    "derived",
    "forget read",
    "session",
    "sweep delete",
    "sweep erase",
    "sweep reads",
    "erase",
)

numbers: Final = st.integers(0, 11)
steps: Final = st.lists(
    st.tuples(st.sampled_from((*BUILDING, *BUILDING, *DESTROYING)), numbers, numbers, numbers), min_size=12, max_size=30
)


class History:
    def __init__(self, url: str) -> None:
        self.clock = FakeClock()
        self.archive = muniment.open(url, clock=self.clock, entropy=SeededEntropy(1))
        self.memory = self.archive.memory("user-42", tenant="acme")

    def ids(self, *kinds: str) -> list[UUID]:
        """What still has its content, of these kinds."""
        return [
            event.id for event in self.memory.events() if event.kind in kinds and not isinstance(event, ErasedEvent)
        ]

    def do(self, step: str, a: int, b: int, c: int) -> bool:
        """Take one step; whether it could have destroyed or hidden something."""
        self.clock.advance()
        memory, items = self.memory, self.ids("message", "document", "note")
        more: dict[str, Any] = {
            "session_id": SESSIONS[a % 3],
            "retain_until": START + timedelta(seconds=5 * b) if b < 8 else None,
        }
        match step:
            case "say":
                memory.add(Message(speaker="anna", content="hello", timestamp=self.clock.now, **more))
            case "note":
                memory.remember("a note", derived_from=pick(items, c, c + 1), **more)
            case "put":
                memory.put(KEYS[c % 2], f"version {a}", derived_from=pick(items, c, c), **more)
            case "read":
                visible = [item.id for item in memory.items()]
                recalled = [*pick(visible, a, b), *pick(visible, c, c + 2)]
                # Times run backwards now and then: the last use is the last in the log.
                happened = self.clock.now - timedelta(seconds=a)
                memory.record(
                    Recall(query="*", recalled=tuple(recalled), session_id=SESSIONS[c % 3], timestamp=happened)
                )
            case "delete" if items:
                memory.delete(pick(items, a, a + b % 3 + 1) or items[:1], "asked")
            case "forget" | "derived" if items:
                memory.forget(pick(items, a, a + b % 3 + 1) or items[:1], derived=step == "derived", clean="later")
            case "forget read" if self.ids("recall"):
                memory.forget(pick(self.ids("recall"), a, a + 2) or self.ids("recall")[:1], clean="later")
            case "session":
                memory.erase_session(SESSIONS[1 + a % 2] or "", clean="later")
            case "sweep delete" | "sweep erase":
                self.archive.sweep(self.clock.now, "erase" if step == "sweep erase" else "delete", clean="later")
            case "sweep reads":
                before = self.clock.now - timedelta(seconds=a)
                self.archive.sweep(START, recalls_before=before, clean="later")
            case "erase" if a < 3:
                memory.erase(clean="later")
            case _:
                return False
        return step not in BUILDING


def pick(ids: Sequence[UUID], start: int, stop: int) -> list[UUID]:
    return list(ids[start:stop])


@pytest.mark.parametrize("url", ["memory://", ":memory:"])
@given(steps)
def test_projections_are_what_the_events_lead_to(url: str, history: list[tuple[str, int, int, int]]) -> None:
    story = History(url)
    with story.archive:
        for step in history:
            if story.do(*step):
                hypothesis_event(step[0])
                check(story.archive, story.memory)
        check(story.archive, story.memory)


# --- Named cases ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory://", ":memory:"])
def story(request: pytest.FixtureRequest) -> Any:
    story = History(request.param)
    with story.archive:
        yield story


def put(story: History, text: str, **more: Any) -> Note:
    story.clock.advance()
    return story.memory.put("plan", text, **more)


def read(story: History, *notes: Note) -> Recall:
    story.clock.advance()
    recalled = tuple(note.id for note in notes)
    return story.memory.record(Recall(query="*", recalled=recalled, timestamp=story.clock.now))


def test_e16_use_falls_with_a_read_that_is_forgotten(story: History) -> None:
    first = put(story, "first")
    one = read(story, first, first)
    second = put(story, "second")
    two = read(story, second)
    (item,) = story.memory.items()
    assert (item.usage_count, item.last_used_at) == (3, two.timestamp)
    story.memory.forget([two.id], clean="later")
    (item,) = story.memory.items()
    assert (item.usage_count, item.last_used_at) == (2, one.timestamp)
    story.memory.forget([one.id], clean="later")
    (item,) = story.memory.items()
    assert (item.usage_count, item.last_used_at) == (0, None)
    check(story.archive, story.memory)


def test_a_chain_that_loses_its_beginning_counts_from_what_is_left(story: History) -> None:
    first = put(story, "first", retain_until=START + timedelta(days=1))
    read(story, first)
    second = put(story, "second", retain_until=None)
    third = put(story, "third")
    read(story, second, third)
    report = story.archive.sweep(START + timedelta(days=2), "erase", clean="later")
    assert [scope.expired for scope in report.scopes] == [(first.id,)]
    (item,) = story.memory.items()
    assert (item.id, item.created_at, item.usage_count) == (third.id, second.timestamp, 2)
    check(story.archive, story.memory)


def test_a_version_that_expires_takes_those_before_it_along(story: History) -> None:
    """Otherwise what was replaced would be the newest that is left, and come back."""
    first = put(story, "first")
    second = put(story, "second", retain_until=START + timedelta(days=1))
    story.archive.sweep(START + timedelta(days=2), "erase", clean="later")
    assert isinstance(story.memory.get(first.id), ErasedEvent)
    assert isinstance(story.memory.get(second.id), ErasedEvent)
    assert list(story.memory.items(hidden=True)) == []
    assert story.memory.replay().visible_notes == ()
    check(story.archive, story.memory)


def test_a_session_takes_every_version_of_its_keys_along(story: History) -> None:
    put(story, "first", session_id="s1")
    put(story, "second", session_id="s2")
    put(story, "third", session_id="s1")
    receipt = story.memory.erase_session("s2", clean="later")
    assert receipt.counts == {"note": 3}
    assert story.memory.get_live("plan") is None
    check(story.archive, story.memory)


# --- Mutants ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "case"),
    [
        ("_recount", test_e16_use_falls_with_a_read_that_is_forgotten),
        ("_recount", test_a_chain_that_loses_its_beginning_counts_from_what_is_left),
        ("_mend_chains", test_a_chain_that_loses_its_beginning_counts_from_what_is_left),
    ],
)
def test_an_eraser_that_skips_a_step_is_caught(
    story: History, monkeypatch: pytest.MonkeyPatch, method: str, case: Callable[[History], None]
) -> None:
    monkeypatch.setattr(Eraser, method, lambda *_: None)
    with pytest.raises(AssertionError):
        case(story)


def test_a_chooser_that_leaves_old_versions_is_caught(story: History, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: object, row: StoredEvent, chosen: dict[int, StoredEvent], **_: object) -> None:
        del self
        chosen[row.seq] = row

    monkeypatch.setattr(Chooser, "_take", take)
    with pytest.raises(AssertionError):
        test_a_version_that_expires_takes_those_before_it_along(story)
