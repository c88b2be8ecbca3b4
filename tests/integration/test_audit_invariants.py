"""The seven invariants of the audit contract, on real files, with real threads, processes and crashes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID, uuid4

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muniment
from muniment.archive import Archive
from muniment.archive import Memory as ScopeMemory
from muniment.audit import Deletion, Event, Memory, MemoryState, Message, Recall, Scope, event_to_dict, replay, search
from muniment.errors import UsageError
from muniment.model.event import with_place
from muniment.testing.audit import (
    PATIENCE_S,
    AuditContract,
    Opener,
    PersistentAuditContract,
    bring,
    fill,
    is_hidden,
    one_of_each,
    placed,
    run_together,
    say,
    seqs_of,
)
from muniment.testing.doubles import START

SCOPE: Final = Scope("default", "default")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory(path) as memory:
        yield memory


def fill_file(path: Path) -> None:
    """Something of everything in the default scope, and a little in another one."""
    with muniment.open(path) as archive:
        fill(Memory.over(archive, SCOPE), archive.memory("default", tenant="default"))
        Memory.over(archive, Scope("default", "other")).add_message(say("elsewhere"))


# --- 1: Append-only ---------------------------------------------------------------------------------------------------


class Watch:
    """What every connection that is opened meanwhile does to the rows of `events`.

    SQLite's authorizer names each table that a statement writes, through views, triggers and upserts too, but calls
    INSERT what is a REPLACE: that one is told by the text of the statements.
    """

    _CHANGES: Final = frozenset(
        {apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE, apsw.SQLITE_DROP_TABLE, apsw.SQLITE_ALTER_TABLE}
    )
    _COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
    _REPLACE: Final = re.compile(r"(?!\s*CREATE\b).*\bREPLACE\b.*\bevents\b", re.DOTALL | re.IGNORECASE)
    _SWITCH: Final = re.compile(r"\s*(DROP\s+TRIGGER\b|PRAGMA\s+writable_schema\s*=)", re.IGNORECASE)

    def __init__(self) -> None:
        self.inserts = 0
        self.changes: list[str] = []

    @contextmanager
    def watching(self) -> Generator[None]:
        """Watch every connection that is opened in the block."""
        apsw.connection_hooks.append(self._attach)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(self._attach)

    def _attach(self, connection: apsw.Connection) -> None:
        connection.authorizer = self._authorize
        connection.exec_trace = self._trace

    def _authorize(self, action: int, first: str | None, second: str | None, _: object, trigger: str | None) -> int:
        table = second if action == apsw.SQLITE_ALTER_TABLE else first
        if table == "events":
            self.inserts += action == apsw.SQLITE_INSERT
            if action in self._CHANGES:
                self.changes.append(f"{apsw.mapping_authorizer_function[action]} on events, by trigger {trigger}")
        return apsw.SQLITE_OK

    def _trace(self, _: object, sql: str, __: object) -> bool:
        bare = self._COMMENT.sub("", sql)
        if self._REPLACE.match(bare) or self._SWITCH.match(bare):
            self.changes.append(bare)
        return True


@pytest.fixture
def watched() -> Iterator[Watch]:
    watch = Watch()
    with watch.watching():
        yield watch
    assert watch.changes == []


@pytest.mark.usefixtures("watched")
class TestNoStatementChangesAnEvent(PersistentAuditContract):
    """The whole contract, with every statement watched."""

    @pytest.fixture
    def opener(self, path: Path) -> Opener:
        return lambda clock: muniment.open(path, durability="normal", clock=clock)


@pytest.mark.usefixtures("watched")
class TestNoStatementChangesAnEventInMemory(AuditContract):
    """The same on a private database, which reads and writes on one connection."""

    @pytest.fixture
    def opener(self) -> Opener:
        return lambda clock: muniment.open(":memory:", clock=clock)


def test_1_the_watch_sees_the_inserts(watched: Watch, path: Path) -> None:
    fill_file(path)
    assert watched.inserts > 0


CHANGES_BY_HAND: Final[Mapping[str, str]] = {
    "update": "UPDATE events SET kind = 1",
    "update that changes nothing": "UPDATE events SET kind = kind",
    "update of a place": "UPDATE events SET place = place + 1000",
    "update or replace": "UPDATE OR REPLACE events SET event_id = (SELECT max(event_id) FROM events)",
    "update or ignore": "UPDATE OR IGNORE events SET recorded_us = 0",
    "update by an upsert": "INSERT INTO events SELECT * FROM taken_place WHERE 1 ON CONFLICT DO UPDATE SET kind = 1",
    "delete": "DELETE FROM events",
    "delete of one": "DELETE FROM events WHERE place = (SELECT max(place) FROM events)",
    "replace of a place": "REPLACE INTO events SELECT * FROM taken_place",
    "replace of an id": "REPLACE INTO events SELECT * FROM taken_id",
    "insert or replace of a place": "INSERT OR REPLACE INTO events SELECT * FROM taken_place",
    "insert or replace of an id": "INSERT OR REPLACE INTO events SELECT * FROM taken_id",
    "insert or ignore of a place": "INSERT OR IGNORE INTO events SELECT * FROM taken_place",
    "insert or ignore of an id": "INSERT OR IGNORE INTO events SELECT * FROM taken_id",
    "insert of a place": "INSERT INTO events SELECT * FROM taken_place",
    "insert of an id": "INSERT INTO events SELECT * FROM taken_id",
}


@contextmanager
def by_hand(path: Path) -> Generator[apsw.Connection]:
    """A connection that knows nothing of the archive, with a new event on a taken place and one with a taken id."""
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TEMP TABLE taken_place AS SELECT * FROM events LIMIT 1")
    connection.execute("UPDATE taken_place SET event_id = randomblob(16)")
    connection.execute("CREATE TEMP TABLE taken_id AS SELECT * FROM events LIMIT 1")
    connection.execute("UPDATE taken_id SET place = place + 1000")
    try:
        yield connection
    finally:
        connection.close()


def read_by_hand(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    with by_hand(path) as connection:
        return list(connection.execute(sql))


@pytest.mark.parametrize("change", CHANGES_BY_HAND)
def test_1_by_hand_each_change_is_refused(path: Path, change: str) -> None:
    fill_file(path)
    before = read_by_hand(path, "SELECT * FROM events ORDER BY place")
    assert len(before) > 10
    with by_hand(path) as connection, pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute(CHANGES_BY_HAND[change])
    assert read_by_hand(path, "SELECT * FROM events ORDER BY place") == before
    with muniment.open(path) as archive:
        assert archive.verify(deep=True).ok


def test_1_by_hand_beside_an_open_archive(path: Path, memory: Memory) -> None:
    stored = memory.add_message(say())
    for change in CHANGES_BY_HAND.values():
        with by_hand(path) as connection, pytest.raises(apsw.ConstraintError, match="append-only"):
            connection.execute(change)
    assert memory.events() == [stored]
    assert memory.add_message(say()).seq == 1


@pytest.mark.parametrize(
    "change",
    [
        *[sql for name, sql in CHANGES_BY_HAND.items() if not name.startswith(("insert of", "insert or ignore"))],
        "WITH one AS (SELECT 1) DELETE FROM events WHERE place IN one",
        "DROP TABLE events",
        "ALTER TABLE events RENAME TO others",
        "DROP TRIGGER events_refuse_update",
    ],
)
def test_1_the_watch_sees_every_change(path: Path, change: str) -> None:
    fill_file(path)
    watch = Watch()
    with watch.watching(), by_hand(path) as connection:
        assert watch.changes == []
        connection.execute("BEGIN")
        with suppress(apsw.ConstraintError):
            connection.execute(change)
        connection.execute("ROLLBACK")
    assert watch.changes != []


# --- 2: seq -----------------------------------------------------------------------------------------------------------

NUM_THREADS: Final = 8
NUM_PROCESSES: Final = 4
NUM_EACH: Final = 250

APPEND: Final = """
import json, sys
import muniment
from muniment.audit import Memory, Message, Scope

path, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
with muniment.open(path, durability="normal") as archive:
    memory = Memory.over(archive, Scope("default", "default"))
    print("ready", flush=True)
    sys.stdin.readline()
    seqs = [memory.add_message(Message(speaker=name, content=str(number))).seq for number in range(times)]
print(json.dumps(seqs), flush=True)
"""


@contextmanager
def started(script: str, *arguments: object) -> Generator[subprocess.Popen[str]]:
    """Another Python with that script, which does not outlive the block."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_2_threads_and_processes_append_without_gaps(path: Path) -> None:
    given_out: dict[str, list[int]] = {}

    def append(memory: Memory, name: str) -> None:
        given_out[name] = [memory.add_message(say(str(n), speaker=name)).seq or 0 for n in range(NUM_EACH)]

    def let_go(process: subprocess.Popen[str], name: str) -> None:
        out, _ = process.communicate("go\n", timeout=PATIENCE_S)
        assert process.returncode == 0
        given_out[name] = json.loads(out)

    with muniment.open(path, durability="normal") as archive, ExitStack() as stack:
        memory = Memory.over(archive, SCOPE)
        jobs: list[Callable[[], None]] = []
        for name in [f"process {number}" for number in range(NUM_PROCESSES)]:
            process = stack.enter_context(started(APPEND, path, name, NUM_EACH))
            jobs.append(partial(let_go, process, name))
            assert read_line(process) == "ready"
        jobs += [partial(append, memory, f"thread {number}") for number in range(NUM_THREADS)]
        run_together(*jobs)

        total = (NUM_THREADS + NUM_PROCESSES) * NUM_EACH
        assert len(given_out) == NUM_THREADS + NUM_PROCESSES
        assert sorted(seq for seqs in given_out.values() for seq in seqs) == list(range(total))
        events = memory.events()
        assert seqs_of(events) == list(range(total))
        for name, seqs in given_out.items():
            assert seqs == sorted(seqs)
            own = [cast("Message", events[seq]) for seq in seqs]
            assert [(event.speaker, event.content) for event in own] == [(name, str(n)) for n in range(NUM_EACH)]
        assert memory.replay().last_seq == total - 1
        assert archive.verify().ok


def test_2_a_preset_seq_is_refused(memory: Memory) -> None:
    for seq in (0, 1, 7):
        with pytest.raises(UsageError, match=f"seq {seq}"):
            memory.add_message(say(seq=seq))
    assert len(memory) == 0
    assert memory.add_message(say()).seq == 0


# --- 3: seq and reopening ---------------------------------------------------------------------------------------------

APPEND_FOR_EVER: Final = """
import sys
from muniment.audit import Memory, Message

memory = Memory(sys.argv[1])
while True:
    stored = memory.add_message(Message(speaker="anna", content="pump"))
    read, _ = memory.recall("pump", limit=1)
    print(f"{stored.seq} {stored.id},{read.seq} {read.id}", flush=True)
"""


def test_3_seq_goes_on_after_a_close(path: Path) -> None:
    stored: list[Event] = []
    for number in range(4):
        with Memory(path) as memory:
            stored.append(memory.add_message(say(str(number))))
            stored.append(memory.delete([stored[-1].id], "asked"))
    assert seqs_of(stored) == list(range(8))
    with Memory(path) as memory:
        assert memory.events() == stored


@pytest.mark.parametrize("survivor", [False, True], ids=["alone", "beside another process"])
def test_3_seq_goes_on_after_a_kill(path: Path, survivor: bool) -> None:
    beside = Memory(path) if survivor else None
    with started(APPEND_FOR_EVER, path) as process:
        lines = [read_line(process) for _ in range(25)]
        process.kill()
        rest, _ = process.communicate(timeout=PATIENCE_S)
    lines += rest.split("\n")[:-1]  # the last line may have been cut off
    pairs = [pair.split() for line in lines for pair in line.split(",")]
    acknowledged = [(int(seq), UUID(event_id)) for seq, event_id in pairs]
    assert [seq for seq, _ in acknowledged] == list(range(len(acknowledged)))
    memory = beside if beside is not None else Memory(path)
    with memory:
        events = memory.events()
        assert [(event.seq, event.id) for event in events[: len(acknowledged)]] == acknowledged
        # What was written and not yet acknowledged is there as a whole or not at all.
        assert len(events) - len(acknowledged) in (0, 1, 2)
        assert seqs_of(events) == list(range(len(events)))
        assert memory.add_message(say()).seq == len(events)
        assert memory.replay().last_seq == len(events)
    with muniment.open(path) as archive:
        assert archive.verify(deep=True).ok


# --- 4: Replay is a pure fold -----------------------------------------------------------------------------------------

FOLD: Final = """
import json, sys
import apsw
from muniment.audit import event_from_dict, event_to_dict, replay

events = [event_from_dict(data) for data in json.loads(sys.stdin.readline())]
looking = True

def refuse(event, arguments):
    if looking and event.split(".")[0] in {"open", "os", "socket", "subprocess", "sqlite3", "time", "import", "exec"}:
        raise RuntimeError(f"the fold does {event} {arguments}")

def refuse_connection(*arguments, **more):
    raise RuntimeError("the fold opens a database")

sys.addaudithook(refuse)
apsw.Connection = refuse_connection
state, again = replay(events), replay(iter(events))
looking = False
assert state == again
print(json.dumps([
    [event_to_dict(event) for event in (*state.messages, *state.documents, *state.notes)],
    [event_to_dict(event) for event in (*state.visible_messages, *state.visible_documents, *state.visible_notes)],
    [[str(key), event_to_dict(value)] for key, value in state.deleted.items()],
    [[str(key), str(value)] for key, value in state.superseded.items()],
    [[str(key), str(value)] for key, value in state.recall_stats.items()],
    state.last_seq,
]))
"""


def test_4_replay_does_nothing_but_fold(path: Path) -> None:
    fill_file(path)
    with Memory(path) as memory:
        events = memory.events()
        state = memory.replay()
    # No archive is open any more.
    assert replay(events) == replay(iter(events)) == state
    text = json.dumps([event_to_dict(event) for event in events])
    answers: set[str] = set()
    for seed, zone in [("1", "UTC"), ("2", "Asia/Tokyo")]:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", FOLD],
            input=text + "\n",
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers.add(done.stdout)
    assert len(answers) == 1
    everything, visible, deleted, superseded, _, last_seq = json.loads(answers.pop())
    assert [item["id"] for item in everything] == [
        str(item.id) for item in (*state.messages, *state.documents, *state.notes)
    ]
    assert len(visible) == len(state.visible)
    assert [key for key, _ in deleted] == [str(key) for key in state.deleted]
    assert superseded == [[str(key), str(value)] for key, value in state.superseded.items()]
    assert last_seq == state.last_seq


def test_4_what_cannot_be_in_order_is_refused() -> None:
    a, b = say("a"), say("b")
    for events in (
        [a],
        [with_place(a, 0, START), b],
        [with_place(a, 1, START), with_place(b, 1, START)],
        [with_place(a, 1, START), with_place(b, 0, START)],
    ):
        with pytest.raises(ValueError, match="seq"):
            replay(events)


# --- 5: Targets exist and are content ---------------------------------------------------------------------------------


@contextmanager
def refused(memory: Memory) -> Generator[None]:
    """A call that is refused and stores nothing."""
    before = memory.events()
    with pytest.raises(UsageError, match="nothing was stored"):
        yield
    assert len(memory) == len(before)
    assert memory.events() == before


def test_5_targets_are_content_of_this_scope(path: Path) -> None:
    with muniment.open(path) as archive:
        engine = archive.memory("default", tenant="default")
        memory = Memory.over(archive, SCOPE)
        content = [memory.add_message(say()).id, memory.add_document(bring()).id, engine.remember("a note").id]
        hidden = memory.add_message(say("hidden")).id
        deletion = memory.delete([hidden], "asked")
        read = memory.record_recall(Recall(query="q", recalled=tuple(content)))
        elsewhere = [
            Memory.over(archive, Scope("default", "other")).add_message(say("other subject")).id,
            Memory.over(archive, Scope("default", None)).add_message(say("the shelf")).id,
            Memory.over(archive, Scope("other", "default")).add_message(say("other tenant")).id,
        ]
        wrong = [uuid4(), deletion.id, read.id, *elsewhere]
        for target in wrong:
            for place in range(len(content) + 1):
                targets = [*content[:place], target, *content[place:]]
                with refused(memory):
                    memory.delete(targets, "asked")
                with refused(memory):
                    memory.record_recall(Recall(query="q", recalled=tuple(targets)))
        with refused(memory):
            memory.record_recall(Recall(query="q", recalled=(*content, hidden)))
        assert len(memory.replay().visible) == len(content)
        assert memory.delete([*content, hidden], "asked").targets == (*content, hidden)


# --- 6: Deleted is unreachable ----------------------------------------------------------------------------------------

WORDS: Final = ("pump", "water", "budget")
KEYS: Final = ("plan", "profile")


def ids_read(archive: Archive, memory: Memory) -> Mapping[str, set[UUID]]:
    """The ids that each read which hands memory to a context hands out now, by the name of the read."""
    engine = archive.memory("default", tenant="default")
    state = memory.replay()
    live = [engine.get_live(key) for key in KEYS]
    query = " ".join(WORDS)
    return {
        "visible messages": {item.id for item in state.visible_messages},
        "visible documents": {item.id for item in state.visible_documents},
        "visible notes": {item.id for item in state.visible_notes},
        "visible": {item.id for item in state.visible},
        "search": {item.id for word in (*WORDS, query) for item in search(state, word, limit=1000)},
        "recall": {item.id for item in memory.recall(query, limit=1000)[1]},
        "items": {item.id for item in engine.items()},
        "live notes": {note.id for note in live if note is not None},
    }


Step = tuple[str, int, int]

steps = st.lists(
    st.tuples(
        st.sampled_from(["message", "document", "note", "keyed", "if_absent", "recall", "delete", "delete", "reopen"]),
        st.integers(0, 30),
        st.integers(0, 2),
    ),
    max_size=30,
)


def take_step(step: Step, memory: Memory, engine: ScopeMemory, known: list[UUID]) -> tuple[set[UUID], set[UUID]]:
    """Do one thing; the ids that it hid, and the ids that it handed out or made."""
    what, number, word = step
    text = " ".join(WORDS[: word + 1])
    match what:
        case "message":
            new = memory.add_message(say(text, speaker=WORDS[number % 3]))
        case "document":
            new = memory.add_document(bring(text, name=WORDS[number % 3]))
        case "note":
            new = engine.remember(text, summary=WORDS[number % 3])
        case "if_absent":
            new = engine.remember(text, if_absent=True)
        case "keyed":
            new = engine.put(KEYS[number % 2], text)
            known.append(new.id)
            return ({new.supersedes} if new.supersedes is not None else set()), {new.id}
        case "recall":
            return set(), {item.id for item in memory.recall(text, limit=number)[1]}
        case "delete" if known:
            targets = {known[number % len(known)], known[(number * 7 + word) % len(known)]}
            memory.delete(targets, "asked")
            return targets, set()
        case _:
            return set(), set()
    known.append(new.id)
    return set(), {new.id}


@pytest.mark.parametrize("url", ["memory://", ":memory:"])
@given(history=steps)
def test_6_no_read_returns_what_was_deleted(url: str, history: Sequence[Step]) -> None:
    with muniment.open(url) as archive:
        check_history(archive, history)


@given(history=steps)
def test_6_no_read_returns_what_was_deleted_from_a_file(
    tmp_path_factory: pytest.TempPathFactory, history: Sequence[Step]
) -> None:
    path = tmp_path_factory.mktemp("history") / "archive.db"
    with muniment.open(path, durability="normal") as archive:
        hidden = check_history(archive, history)
    with muniment.open(path, durability="normal") as archive:
        for name, ids in ids_read(archive, Memory.over(archive, SCOPE)).items():
            assert not ids & hidden, name


def check_history(archive: Archive, history: Sequence[Step]) -> set[UUID]:
    """Take the steps, and look with every read after each one; the ids that are hidden at the end."""
    memory, engine = Memory.over(archive, SCOPE), archive.memory("default", tenant="default")
    known: list[UUID] = []
    hidden: set[UUID] = set()
    for step in history:
        newly_hidden, handed_out = take_step(step, memory, engine, known)
        hidden |= newly_hidden
        assert not handed_out & hidden
        reads = ids_read(archive, memory)
        for name, ids in reads.items():
            assert not ids & hidden, name
        # Nothing else is hidden, so the reads are not merely empty.
        assert reads["visible"] == reads["items"] == reads["search"] == reads["recall"] == set(known) - hidden
        state = memory.replay()
        assert all(is_hidden(state, item_id) for item_id in hidden)
    check_recalls(memory.events())
    return hidden


def check_recalls(events: Sequence[object]) -> None:
    """No Recall names what was hidden before it."""
    gone: set[UUID] = set()
    for event in events:
        if isinstance(event, Deletion):
            gone |= set(event.targets)
        elif isinstance(event, Recall):
            assert not gone & set(event.recalled)


def test_6_a_deletion_that_races_with_reads(path: Path) -> None:
    with muniment.open(path, durability="normal") as archive, muniment.open(path, durability="normal") as beside:
        memory, other = Memory.over(archive, SCOPE), Memory.over(beside, SCOPE)
        for number in range(60):
            memory.add_message(say(f"pump {number}"))

        def read(memory: Memory) -> None:
            for _ in range(15):
                stored, found = memory.recall("pump", limit=20)
                assert stored.recalled == tuple(item.id for item in found)
                assert stored.seq is not None
                before = memory.replay(up_to_seq=stored.seq - 1)
                assert set(stored.recalled) <= {item.id for item in before.visible}

        def delete(memory: Memory, first: int) -> None:
            for message in memory.replay().messages[first : first + 20]:
                memory.delete([message.id], "asked")

        run_together(lambda: read(memory), lambda: read(other), lambda: delete(memory, 0), lambda: delete(other, 20))
        events = memory.events()
        check_recalls(events)
        assert seqs_of(events) == list(range(60 + 30 + 40))


@pytest.mark.parametrize("url", ["memory://", ":memory:", "file"])
@pytest.mark.parametrize("meanwhile", ["a deletion", "a new version", "an addition"])
def test_6_a_recall_is_one_act(url: str, meanwhile: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens just before a recall takes the lock is seen by it: it searches what it follows in the ledger."""
    with muniment.open(path if url == "file" else url) as archive:
        memory, engine = Memory.over(archive, SCOPE), archive.memory("default", tenant="default")
        message = memory.add_message(say("pump pump"))
        engine.put("plan", "pump")
        lock = archive.storage.transaction

        def be_late(*arguments: Any, **more: Any) -> Any:
            monkeypatch.setattr(archive.storage, "transaction", lock)
            match meanwhile:
                case "a deletion":
                    memory.delete([message.id], "asked")
                case "a new version":
                    engine.put("plan", "pump again")
                case _:
                    memory.add_message(say("pump"))
            return lock(*arguments, **more)

        memory.recall("pump")
        monkeypatch.setattr(archive.storage, "transaction", be_late)
        read, found = memory.recall("pump")
        assert read.seq == 4
        assert found == search(memory.replay(up_to_seq=3), "pump")
        assert read.recalled == tuple(item.id for item in found)


# --- 7: A tombstone hides and destroys nothing ------------------------------------------------------------------------


def test_7_a_deletion_destroys_nothing(path: Path) -> None:
    words = "xyzzy plugh"
    with muniment.open(path) as archive:
        memory, engine = Memory.over(archive, SCOPE), archive.memory("default", tenant="default")
        stored: list[Event] = [
            memory.add_message(say(words)),
            memory.add_document(bring(words)),
            engine.remember(words),
            engine.put("k", words),
            engine.put("k", words + " again"),
        ]
        memory.delete([event.id for event in stored], "asked")
        memory.delete([event.id for event in stored], "asked again")
    with muniment.open(path) as archive:
        memory = Memory.over(archive, SCOPE)
        assert [memory.get(event.id) for event in stored] == stored
        assert memory.events(up_to_seq=len(stored) - 1) == stored
        state = memory.replay()
        assert {*state.messages, *state.documents, *state.notes} == set(stored)
        assert state.visible == ()
        report = archive.verify(deep=True)
        assert report.ok
        assert report.num_events == len(stored) + 2
    bodies = read_by_hand(path, "SELECT body FROM contents ORDER BY place")
    assert len(bodies) == len(stored) + 2
    assert all(words.encode() in body for (body,) in bodies[: len(stored)])


def test_7_the_fold_keeps_what_a_deletion_names() -> None:
    events = placed([*one_of_each().values()][:3])
    deletion = with_place(Deletion(targets=tuple(event.id for event in events), reason="asked"), 3, START)
    state = replay([*events, deletion])
    assert [*state.messages, *state.documents, *state.notes] == events
    assert state.visible == MemoryState().visible
