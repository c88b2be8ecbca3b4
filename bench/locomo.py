"""Real conversations through the public API: LoCoMo's ten, with their sessions and dates, then replay, time and proof.

    python -m bench locomo --data FOLDER        # or MUNIMENT_DATA=FOLDER; the folder holds locomo10.json

Each conversation is a scope, each turn a message whose timestamp lies years back, each session one `add_many` on a
clock of its own. What is checked is that the ledger says what was loaded, whichever way it is asked.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import muniment
from bench.report import Report, quantiles
from muniment import Archive, Memory, Message, Scope

FILE: Final = "locomo10.json"
TENANT: Final = "locomo"
CONVERSATIONS: Final = 10
TURNS: Final = 5_882
LOADED_AT: Final = datetime(2026, 1, 1, 9, tzinfo=UTC)
"""When the first session is recorded; each session is recorded a minute after the one before."""


@dataclass(frozen=True)
class Session:
    """One session of a conversation, as messages that are not stored yet."""

    session_id: str
    messages: Sequence[Message]


@dataclass(frozen=True)
class Conversation:
    name: str
    sessions: Sequence[Session]

    @property
    def num_turns(self) -> int:
        return sum(len(session.messages) for session in self.sessions)


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> int:
        return round(self.now.timestamp() * 1_000_000)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench locomo", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUNIMENT_DATA"), help="the folder of the data")
    parser.add_argument("--results", type=Path, help="where the JSON goes; default: bench/results")
    options = parser.parse_args(arguments)
    file = None if options.data is None else Path(options.data) / FILE
    if file is None or not file.is_file():
        print(f"{FILE} is not here: give its folder with --data or MUNIMENT_DATA")
        return 2
    report = Report("locomo", "python -m bench locomo")
    print("LoCoMo")
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder:
        run(report, read_conversations(file), Path(folder) / "locomo.db")
    if options.results is None:
        report.write()
    else:
        report.write(options.results)
    return 0


def run(report: Report, conversations: Sequence[Conversation], path: Path) -> None:
    """Load everything, ask for it in every way, delete some, ask again."""
    assert len(conversations) == CONVERSATIONS
    assert sum(conversation.num_turns for conversation in conversations) == TURNS
    clock = Clock(LOADED_AT)
    recorded: dict[str, list[datetime]] = {}
    with muniment.open(path, clock=clock) as archive:
        started = perf_counter()
        for conversation in conversations:
            memory = archive.memory(conversation.name, tenant=TENANT)
            recorded[conversation.name] = load(memory, conversation, clock)
        seconds = perf_counter() - started
        report.add("conversations", len(conversations))
        report.add("sessions", sum(len(conversation.sessions) for conversation in conversations))
        report.add("turns", TURNS)
        report.add("loaded, one durable transaction a session", TURNS / seconds, "turns/s")
        for conversation in conversations:
            memory = archive.memory(conversation.name, tenant=TENANT)
            check_ledger(memory, conversation)
            check_times(memory, conversation, recorded[conversation.name])
            check_deletion(memory, conversation, clock)
        measure(report, archive, conversations)
        check_tenant(archive, conversations)
        before = {conversation.name: see(archive, conversation) for conversation in conversations}
    with muniment.open(path, create=False) as archive:
        after = {conversation.name: see(archive, conversation) for conversation in conversations}
        assert before == after, "the archive changed between closing and opening"
        verified = archive.verify(deep=True)
        assert verified, verified
        report.add("events verified after reopening", verified.num_events)
        report.add("archive", archive.stats().size_bytes / 2**20, "MiB")


# --- The data ---------------------------------------------------------------------------------------------------------


def read_conversations(file: Path) -> list[Conversation]:
    """The conversations of the file; a turn's timestamp is its session's date and a second per turn."""
    samples: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return [Conversation(sample["sample_id"], _read_sessions(sample["conversation"])) for sample in samples]


def _read_sessions(conversation: Mapping[str, Any]) -> list[Session]:
    numbers = sorted(
        int(name.removeprefix("session_"))
        for name, turns in conversation.items()
        if name.removeprefix("session_").isdigit() and isinstance(turns, list)
    )
    return [
        _read_session(
            f"session_{number}", conversation[f"session_{number}"], conversation[f"session_{number}_date_time"]
        )
        for number in numbers
    ]


def _read_session(session_id: str, turns: Sequence[Mapping[str, Any]], date: str) -> Session:
    at = parse_date(date)
    return Session(
        session_id,
        [
            Message(
                speaker=turn["speaker"],
                content=turn["text"],
                session_id=session_id,
                timestamp=at + timedelta(seconds=number),
                source=f"locomo/{turn['dia_id']}",
            )
            for number, turn in enumerate(turns)
        ],
    )


def parse_date(text: str) -> datetime:
    """The instant of `1:56 pm on 8 May, 2023`; the data names no zone, so it is taken for UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


# --- Loading and checking ---------------------------------------------------------------------------------------------


def load(memory: Memory, conversation: Conversation, clock: Clock) -> list[datetime]:
    """Store the sessions one after another; when each was recorded."""
    recorded: list[datetime] = []
    for session in conversation.sessions:
        stored = memory.add_many(session.messages)
        assert [event.id for event in stored] == [message.id for message in session.messages]
        recorded.append(clock.now)
        clock.now += timedelta(minutes=1)
    return recorded


def check_ledger(memory: Memory, conversation: Conversation) -> None:
    """The ledger holds exactly the turns, in order, under new seqs and with their own dates."""
    messages = [message for session in conversation.sessions for message in session.messages]
    events = list(memory.events())
    assert [event.seq for event in events] == list(range(len(messages)))
    assert [_said(event) for event in events] == [_said(message) for message in messages]
    assert len(memory) == len(memory.events(kind="message")) == len(messages)
    assert not memory.events(kind="recall")
    for session in conversation.sessions:
        of_session = memory.events(session_id=session.session_id)
        assert len(of_session) == len(session.messages)
        assert [_said(event) for event in of_session] == [_said(message) for message in session.messages]
    for number in (0, len(messages) // 2, len(messages) - 1):
        found = memory.get(messages[number].id)
        assert isinstance(found, Message)
        assert found.seq == number
    assert [event.id for event in reversed(memory.events())] == [message.id for message in reversed(messages)]


def check_times(memory: Memory, conversation: Conversation, recorded: Sequence[datetime]) -> None:
    """The state at a time is that of the sessions recorded until then, whatever their own dates."""
    first_said = min(message.timestamp for message in conversation.sessions[0].messages)
    assert first_said.year < LOADED_AT.year
    assert memory.replay(at=first_said).last_seq is None, "nothing was recorded when it was said"
    assert memory.seq_at(recorded[0] - timedelta(microseconds=1)) is None
    num_turns = 0
    for session, at in zip(conversation.sessions, recorded, strict=True):
        assert memory.seq_at(at - timedelta(microseconds=1)) == (num_turns - 1 if num_turns else None)
        num_turns += len(session.messages)
        assert memory.seq_at(at) == num_turns - 1
        state = memory.replay(at=at)
        assert state == memory.replay(up_to_seq=num_turns - 1)
        assert len(state.messages) == len(memory.items(at=at)) == num_turns
        assert state.messages[-1].session_id == session.session_id
        page = memory.items(at=at).page(limit=5, newest_first=True)
        assert [item.event for item in page] == list(reversed(state.messages[-5:]))
    assert memory.replay() == memory.replay(at=recorded[-1]) == muniment.replay(memory.events())


def check_deletion(memory: Memory, conversation: Conversation, clock: Clock) -> None:
    """What is deleted is hidden from then on, was there before, and is still in the ledger."""
    before = memory.replay()
    hidden = [event.id for event in memory.events(session_id=conversation.sessions[0].session_id)]
    clock.now += timedelta(minutes=1)
    deletion = memory.delete(hidden, "the first session is not to be remembered", requested_by=TENANT)
    assert deletion.seq == conversation.num_turns
    assert deletion.recorded_at == clock.now
    last_before = conversation.num_turns - 1
    after = memory.replay()
    assert memory.replay(up_to_seq=last_before) == before
    assert memory.replay(at=clock.now - timedelta(microseconds=1)) == before
    assert memory.replay(at=clock.now) == after
    assert after.messages == before.messages
    assert set(after.deleted) == set(hidden)
    assert [message.id for message in after.visible_messages] == [
        message.id for message in before.messages if message.id not in after.deleted
    ]
    assert len(memory.items()) == conversation.num_turns - len(hidden)
    assert len(memory.items(up_to_seq=last_before)) == len(memory.items(hidden=True)) == conversation.num_turns
    assert [item.event for item in memory.items()] == list(after.visible)
    assert isinstance(memory.get(hidden[0]), Message)
    assert memory.verify()


def check_tenant(archive: Archive, conversations: Sequence[Conversation]) -> None:
    """The view over all scopes has every event, in the order of recording."""
    merged = [event.recorded_at for _, event in archive.tenant(TENANT).events() if event.recorded_at is not None]
    assert merged == sorted(merged)
    assert len(merged) == TURNS + len(conversations)
    wanted = [Scope(TENANT, conversation.name) for conversation in conversations]
    assert [info.scope for info in archive.tenant(TENANT).scopes()] == wanted


def see(archive: Archive, conversation: Conversation) -> object:
    """What must be the same after reopening."""
    memory = archive.memory(conversation.name, tenant=TENANT)
    return memory.head(), memory.replay(), list(memory.events()), memory.verify()


def measure(report: Report, archive: Archive, conversations: Sequence[Conversation]) -> None:
    """What asking takes on conversations of about 600 turns."""
    replayed: list[float] = []
    verified: list[float] = []
    for conversation in conversations:
        memory = archive.memory(conversation.name, tenant=TENANT)
        started = perf_counter()
        memory.replay()
        between = perf_counter()
        assert memory.verify()
        replayed.append(between - started)
        verified.append(perf_counter() - between)
    report.details["replay of a conversation"] = quantiles(replayed)
    report.details["verify of a conversation"] = quantiles(verified)
    report.add("replay of a conversation, median", sorted(replayed)[len(replayed) // 2] * 1_000, "ms")
    report.add("verify of a conversation, median", sorted(verified)[len(verified) // 2] * 1_000, "ms")


def _said(event: object) -> tuple[str, str, str | None, datetime, str]:
    assert isinstance(event, Message)
    return event.speaker, event.content, event.session_id, event.timestamp, event.source
