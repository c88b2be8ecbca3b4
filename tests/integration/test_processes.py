"""Several processes on one file: creating it, appending, reading while others append; a fork; other time zones.

Run as a script, this file is one of those processes: it says that everything is loaded, waits for the word, does what
its name says, and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import muniment
from muniment import ErasedEvent, Event, Memory, Message, event_to_dict
from muniment.errors import MunimentError

TENANT: Final = "acme"
SUBJECT: Final = "user-42"
PATIENCE_S: Final = 60.0
"""After which a process that should have answered is taken to hang."""

APPENDERS: Final = 4
APPENDS: Final = 50


# --- The processes ----------------------------------------------------------------------------------------------------


def open_memory(path: Path) -> Memory:
    return muniment.open(path, durability="normal").memory(SUBJECT, tenant=TENANT)


def create(path: Path, name: str) -> object:
    """Open, creating it where it is not there yet, and add one event."""
    with muniment.open(path) as archive:
        return archive.memory(SUBJECT, tenant=TENANT).add(Message(speaker=name, content="here")).seq


def append(path: Path, name: str) -> object:
    """Add events one by one; their seqs."""
    memory = open_memory(path)
    return [memory.add(Message(speaker=name, content=f"{name} {number}")).seq for number in range(APPENDS)]


def append_batches(path: Path, name: str) -> object:
    """Add events ten at a time; their seqs."""
    memory = open_memory(path)
    return [
        event.seq
        for first in range(0, APPENDS, 10)
        for event in memory.add_many(
            [Message(speaker=name, content=f"{name} {number}") for number in range(first, first + 10)]
        )
    ]


def tail(path: Path, name: str) -> object:
    """Read what is new until everything is there; the seqs in the order in which they were seen."""
    memory = open_memory(path)
    seen: list[int | None] = []
    while len(seen) < APPENDERS * APPENDS:
        newest = seen[-1] if seen else None
        seen += [event.seq for event in memory.events(after_seq=newest)]
        assert len(memory.replay().messages) >= len(seen), name
    return seen


def fork(path: Path, name: str) -> object:
    """Use an archive in a child that was forked after it was opened; then go on in the parent."""
    archive = muniment.open(path)
    memory = archive.memory(SUBJECT, tenant=TENANT)
    memory.add(Message(speaker=name, content="before"))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        calls: list[Callable[[], object]] = [
            lambda: memory.add(Message(speaker=name, content="in the child")),
            memory.replay,
            lambda: list(memory.events()),
            memory.verify,
            archive.stats,
        ]
        os.write(writing, json.dumps([_outcome(call) for call in calls]).encode())
        archive.close()
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        in_child = json.load(pipe)
    after = memory.add(Message(speaker=name, content="after")).seq
    return {"in child": in_child, "seq after": after, "verified": bool(archive.verify(deep=True))}


def fork_and_open(path: Path, name: str) -> object:
    """Open the archive in a child that was forked before anything was open."""
    child = os.fork()
    if not child:
        create(path, name)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return {"status": status, "seq after": create(path, name)}


def _outcome(call: Callable[[], object]) -> tuple[str, str]:
    try:
        call()
    except MunimentError as error:
        return type(error).__name__, str(error)
    return "no error", ""


def read_times(path: Path, name: str) -> object:
    """What an archive says of its times, and what one of this process's own says of the same events."""
    memory = open_memory(path)
    own = open_memory(path.with_name(f"{name}.db"))
    own.add_many(read_moments())
    return {
        "written elsewhere": [describe(event) for event in memory.events()],
        "written here": [describe(event, recorded=False) for event in own.events()],
        "states": [memory.replay(at=moment.timestamp).last_seq for moment in read_moments()],
        "verified": bool(memory.verify()) and bool(own.verify()),
    }


ROLES: Final[Mapping[str, Callable[[Path, str], object]]] = {
    role.__name__: role for role in (create, append, append_batches, tail, fork, fork_and_open, read_times)
}


def main(role: str, path: str, name: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(ROLES[role](Path(path), name)), flush=True)


# --- Starting them ----------------------------------------------------------------------------------------------------

Start = tuple[str, str]
"""A role and a name."""


@contextmanager
def started(path: Path, *starts: Start, zone: str | None = None) -> Iterator[list[subprocess.Popen[str]]]:
    """The processes, loaded and waiting for the word."""
    environment = {**os.environ, **({} if zone is None else {"TZ": zone})}
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", __file__, role, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for role, name in starts
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                pytest.fail(process.communicate()[1])
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def run(path: Path, *starts: Start, zone: str | None = None) -> list[Any]:
    """The answers of processes that begin at the same moment; none of them may fail."""
    with started(path, *starts, zone=zone) as processes:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [answer_of(process) for process in processes]


def answer_of(process: subprocess.Popen[str]) -> Any:
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    return json.loads(out)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


# --- Tests ------------------------------------------------------------------------------------------------------------


def test_two_that_create_the_same_file_at_once_create_one(path: Path) -> None:
    seqs = run(path, ("create", "first"), ("create", "second"))
    assert sorted(seqs) == [0, 1]
    with muniment.open(path, create=False) as archive:
        assert archive.stats().scopes == 1
        assert archive.verify(deep=True)


def test_many_that_append_to_one_scope_leave_no_gap(path: Path) -> None:
    """Nobody sees `database is locked`, and a reader among them sees the seqs in order, each once."""
    writers = [("append" if number % 2 else "append_batches", f"writer {number}") for number in range(APPENDERS)]
    *answers, seen = run(path, *writers, ("tail", "reader"))
    total = APPENDERS * APPENDS
    assert sorted(seq for seqs in answers for seq in seqs) == list(range(total))
    assert all(seqs == sorted(seqs) for seqs in answers)
    assert seen == list(range(total))
    with muniment.open(path, create=False) as archive:
        memory = archive.memory(SUBJECT, tenant=TENANT)
        by_speaker: dict[str, list[str]] = {}
        for message in memory.replay().messages:
            by_speaker.setdefault(message.speaker, []).append(message.content)
        assert by_speaker == {
            name: [f"{name} {number}" for number in range(APPENDS)] for name in (name for _, name in writers)
        }
        assert archive.verify(deep=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_archive_does_not_cross_a_fork(path: Path) -> None:
    """In the child every call says so; the parent is not disturbed by what the child does or by its end."""
    (answer,) = run(path, ("fork", "anna"))
    for name, text in answer["in child"]:
        assert name == "UsageError", (name, text)
        assert "open it again in this process" in text
    assert answer["seq after"] == 1
    assert answer["verified"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_archive_can_be_opened_after_a_fork(path: Path) -> None:
    assert run(path, ("fork_and_open", "anna")) == [{"status": 0, "seq after": 1}]


# --- Time zones -------------------------------------------------------------------------------------------------------

ZONES: Final = ("UTC", "Asia/Kolkata", "EST5EDT,M3.2.0,M11.1.0")
"""The last by its rule, with daylight saving, on a machine without a zone database too."""


def read_moments() -> list[Message]:
    """Messages around the hours that a zone with daylight saving has twice or never, and around local midnights."""
    starts = [
        datetime(2025, 3, 9, 6, 30, tzinfo=UTC),
        datetime(2025, 11, 2, 5, 30, tzinfo=UTC),
        datetime(2025, 12, 31, 18, 15, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ]
    return [
        Message(speaker="anna", content=f"{number}", timestamp=start + timedelta(minutes=30 * step))
        for number, start in enumerate(starts)
        for step in range(5)
    ]


def describe(event: Event | ErasedEvent, *, recorded: bool = True) -> dict[str, Any]:
    """The event as JSON, without what differs from run to run."""
    fields = event_to_dict(event)
    return {name: fields[name] for name in fields if name != "id" and (recorded or name != "recorded_at")}


def test_the_zone_of_a_process_changes_nothing(tmp_path: Path) -> None:
    """Written and read in every zone, every instant is the same instant, also where a local hour comes twice."""
    path = tmp_path / "archive.db"
    clock = [moment.timestamp for moment in read_moments()]
    with muniment.open(path, clock=lambda: 1_750_000_000_000_000) as archive:
        archive.memory(SUBJECT, tenant=TENANT).add_many(read_moments())
    answers = {zone: run(path, ("read_times", f"zone {number}"), zone=zone)[0] for number, zone in enumerate(ZONES)}
    first = answers["UTC"]
    assert first["verified"]
    assert [entry["timestamp"] for entry in first["written here"]] == [
        moment.isoformat().replace("+00:00", "Z") for moment in clock
    ]
    for zone, answer in answers.items():
        assert answer == first, zone


if __name__ == "__main__":
    main(*sys.argv[1:])
