"""Destruction that is cut short: by `kill -9` between any two of its steps, by a full disk, by another process.

Run as a script, this file is one of the processes that are killed or that run out of room.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

import muniment
import muniment.archive.archive as module
from muniment import Archive, ErasedEvent, Memory, Message, Recall, Scope
from muniment.adapters.sqlite.connection import Database
from muniment.adapters.sqlite.erasure_log import ErasureLog
from muniment.archive.eraser import Eraser
from muniment.errors import ConflictError, StorageFullError, UsageError
from muniment.model.receipt import Receipt
from muniment.testing.doubles import START
from muniment.testing.residue import find_in_files, find_in_tables, find_orphans, forms_of, secrets_of

TENANT: Final = "tenant-aldebaran"
SUBJECT: Final = "subject-4711"
OTHER: Final = "subject-4712"
SESSION: Final = "session-0815"
SECRET: Final = "quarkstrudel"  # noqa: S105
if sys.platform == "win32":
    pytest.skip("needs fork, SIGKILL and limits of resources", allow_module_level=True)

PATIENCE_S: Final = 60.0
"""After which a process that should have answered is taken to hang."""


def memory_of(archive: Archive, subject: str = SUBJECT) -> Memory:
    return archive.memory(subject, tenant=TENANT)


def build(path: Path, *, size: int = 6) -> list[UUID]:
    """Two subjects with some of everything; the ids of what the first one said."""
    with muniment.open(path, durability="normal") as archive:
        said: list[UUID] = []
        for number in range(size):
            for subject in (SUBJECT, OTHER):
                memory = memory_of(archive, subject)
                event = memory.add(
                    Message(speaker=subject, content=f"{SECRET} {subject} {number}", session_id=SESSION),
                    request_id=f"{subject} {number}",
                )
                if subject == SUBJECT:
                    said.append(event.id)
                memory.put("plan", f"{SECRET} plan {number}", session_id=SESSION)
        memory_of(archive).record(Recall(query=SECRET, recalled=tuple(said[:3]), session_id=SESSION))
        memory_of(archive).delete(said[:1], SECRET)
    return said


# --- The processes ----------------------------------------------------------------------------------------------------


def erase(archive: Archive, *_: str) -> Sequence[Receipt]:
    return [memory_of(archive).erase()]


def forget(archive: Archive, *ids: str) -> Sequence[Receipt]:
    return [memory_of(archive).forget(ids)]


def erase_session(archive: Archive, *_: str) -> Sequence[Receipt]:
    return [memory_of(archive).erase_session(SESSION)]


def drop(archive: Archive, *_: str) -> Sequence[Receipt]:
    return archive.tenant(TENANT).drop()


ACTS: Final[dict[str, Callable[..., Sequence[Receipt]]]] = {
    act.__name__: act for act in (erase, forget, erase_session, drop)
}


def die_everywhere(base: str, folder: str, act: str, *ids: str) -> None:
    """Destroy in one copy of the file after the other, each time killed one step later; prints how often."""
    steps = 0
    while True:
        path = shutil.copy(base, Path(folder) / f"{steps}.db")
        child = os.fork()
        if child == 0:
            die_at(steps)
            with muniment.open(path, durability="normal") as archive:
                arm()
                ACTS[act](archive, *ids)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            print(json.dumps(steps))
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
        steps += 1


_armed = False


def arm() -> None:
    global _armed
    _armed = True


def die_at(step: int) -> None:
    """From `arm` on, be killed before the step with that number; a step is a statement that writes, or the log's."""
    left = step

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any) -> Any:
            nonlocal left
            if _armed:
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
            return call(*arguments)

        return count

    for owner, name in ((Database, "run"), (Database, "run_many"), (ErasureLog, "add")):
        setattr(owner, name, counted(getattr(owner, name)))
    rows = Database.rows

    def checkpoint(self: Database, sql: str, *more: Any) -> Any:
        return (counted(rows) if "checkpoint" in sql or "RETURNING" in sql else rows)(self, sql, *more)

    Database.rows = checkpoint  # pyright: ignore[reportAttributeAccessIssue]


def run_out_of_room(path: str, spare: str) -> None:
    """Erase where no file may grow beyond some bytes; prints the receipt."""
    import resource  # not on every system

    with muniment.open(path, durability="normal") as archive:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(spare), resource.RLIM_INFINITY))
        receipt = memory_of(archive).erase()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(receipt.to_json().replace("\n", ""))


def write_once_erased(path: str) -> None:
    """Add one event, which has to wait for whoever holds the scope; prints its place and its ledger."""
    with muniment.open(path, durability="normal") as archive:
        memory = memory_of(archive)
        assert len(memory) > 0
        print("ready", flush=True)
        sys.stdin.readline()
        event = memory.add(Message(speaker="late", content="a late word"))
        head = memory.head()
        print(json.dumps([event.seq, head and head.ledger_id]))


def start(name: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, name, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer_of(process: subprocess.Popen[str], word: str = "") -> Any:
    """What the process prints in the end."""
    out, _ = process.communicate(word, PATIENCE_S)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


# --- Killed -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Base:
    path: Path
    said: list[UUID]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    path = tmp_path_factory.mktemp("base") / "archive.db"
    return Base(path, build(path))


@pytest.mark.parametrize("act", ACTS)
def test_killed_between_two_steps_all_or_nothing_is_done(base: Base, tmp_path: Path, act: str) -> None:
    with muniment.open(base.path) as archive:
        before = list(memory_of(archive).events())
        others = list(memory_of(archive, OTHER).events())
        head = memory_of(archive).head()
        assert head is not None
    doomed = {event.seq or 0 for event in before if act != "forget" or event.id in base.said}
    doomed -= {event.seq for event in before if act == "erase_session" and event.kind == "deletion"}
    markers = secrets_of(base.path, head.ledger_id, None if act in ("erase", "drop") else doomed)
    if act == "drop":
        markers |= forms_of(TENANT)
    ids = [str(event_id) for event_id in base.said]
    steps = answer_of(start("die_everywhere", str(base.path), str(tmp_path), act, *ids))
    outcomes = [outcome_of(tmp_path / f"{step}.db", act, before, others, markers) for step in range(steps + 1)]
    assert outcomes == sorted(outcomes, key=["nothing", "partly", "unreachable", "clean"].index)
    assert outcomes[0] == "nothing"
    assert outcomes[-1] == "clean"
    assert outcomes.count("nothing") > 5
    assert "unreachable" in outcomes
    assert ("partly" in outcomes) == (act == "drop")  # one transaction per scope (E8)


def outcome_of(path: Path, act: str, before: list[Any], others: list[Any], markers: set[bytes]) -> str:
    """What a killed process left behind, once the file is opened again; and that it can be finished."""
    with muniment.open(path) as archive:
        memory = memory_of(archive)
        assert archive.verify(deep=True)
        assert find_orphans(path) == []
        now = list(memory.events())
        pending = archive.pending()
        if now == before:
            assert pending == ()
            outcome = "nothing"
        else:
            gone_in_tables = find_in_tables(path, markers) == []
            if act == "drop" and not gone_in_tables:
                outcome = "partly"
            else:
                assert gone_in_tables
                outcome = "unreachable" if pending else "clean"
            assert now == [] or all(isinstance(event, ErasedEvent) or event.kind in KEPT for event in now)
        if act != "drop":
            assert list(memory_of(archive, OTHER).events()) == others
        finish(archive, act, [event.id for event in before])
        assert archive.pending() == ()
        assert find_in_files(path, markers) == []
        assert find_orphans(path) == []
        assert archive.verify(deep=True)
    return outcome


KEPT: Final = ("deletion", "erasure", "note", "recall")
"""What `forget` of the messages leaves, beside what is erased."""


def finish(archive: Archive, act: str, ids: Sequence[UUID]) -> None:
    """Do it again, as somebody would who does not know how far it came."""
    memory = memory_of(archive)
    if act == "forget":
        targets = [event_id for event_id in ids if getattr(memory.get(event_id), "kind", "") == "message"]
        memory.forget(targets)
    else:
        ACTS[act](archive)
    assert archive.clean()


# --- Out of room ------------------------------------------------------------------------------------------------------


def test_a_disk_that_fills_while_cleaning_leaves_a_pending_receipt(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    build(path, size=300)
    with muniment.open(path) as archive:
        head = memory_of(archive).head()
        others = list(memory_of(archive, OTHER).events())
        assert head is not None
    markers = secrets_of(path, head.ledger_id)
    size = path.stat().st_size
    receipt = Receipt.model_validate(answer_of(start("run_out_of_room", str(path), str(size * 9 // 10))))
    assert receipt.state == "pending"
    assert receipt.blocked
    assert receipt.counts["message"] == 300
    assert find_in_tables(path, markers) == []
    with muniment.open(path) as archive:
        assert list(memory_of(archive).events()) == []
        assert archive.pending() == (receipt.id,)
        assert archive.verify(deep=True)
        report = archive.clean()
        assert receipt.completed(report).state == "clean"
        assert find_in_files(path, markers) == []
        assert list(memory_of(archive, OTHER).events()) == others


def test_a_step_without_room_says_so(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(shutil.copy(base.path, tmp_path / "archive.db"))
    with muniment.open(path) as archive:
        run = Database.run

        def fill(self: Database, sql: str, *more: Any) -> None:
            if sql == "VACUUM":
                raise StorageFullError
            run(self, sql, *more)

        monkeypatch.setattr(Database, "run", fill)
        receipt = memory_of(archive).erase()
        assert receipt.state == "pending"
        assert receipt.blocked is not None
        assert "no room" in receipt.blocked
        monkeypatch.undo()
        assert receipt.completed(archive.clean()).state == "clean"


def test_what_cannot_be_logged_is_not_erased(base: Base, tmp_path: Path) -> None:
    path = Path(shutil.copy(base.path, tmp_path / "archive.db"))
    Path(f"{path}.erasures").mkdir()
    with muniment.open(path) as archive:
        before = list(memory_of(archive).events())
        with pytest.raises(muniment.MunimentError, match="nothing was erased"):
            memory_of(archive).erase()
        assert list(memory_of(archive).events()) == before
        assert archive.pending() == ()


# --- Erased while others wait -----------------------------------------------------------------------------------------


@pytest.fixture
def path(base: Base, tmp_path: Path) -> Path:
    return Path(shutil.copy(base.path, tmp_path / "archive.db"))


@pytest.fixture
def archive(path: Path) -> Iterator[Archive]:
    with muniment.open(path) as archive:
        yield archive


def erase_while(archive: Archive, begin: Callable[[], object]) -> str:
    """Erase the scope, others beginning to write after it is locked and before it is gone; the old ledger's id."""
    engine = archive._engine  # pyright: ignore[reportPrivateUsage]
    with archive.storage.transaction(Scope(TENANT, SUBJECT), engine.new_ledger()) as tx:
        begin()
        Eraser(engine, tx).erase_scope(reason="asked", requested_by=None)
        return tx.head.ledger_id.hex()


def test_e09_a_process_that_waited_begins_the_new_ledger(archive: Archive, path: Path) -> None:
    waiting = start("write_once_erased", str(path))
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "ready\n"

    def let_go() -> None:
        assert waiting.stdin is not None
        waiting.stdin.write("go\n")
        waiting.stdin.flush()

    old = erase_while(archive, let_go)
    seq, ledger_id = answer_of(waiting)
    assert seq == 0
    assert ledger_id != old
    memory = memory_of(archive)
    assert [event.seq for event in memory.events()] == [0]
    assert archive.ledger(old).replay().messages == ()
    assert archive.verify(deep=True)
    assert find_orphans(path) == []


def test_e09_threads_that_waited_begin_the_new_ledger(archive: Archive) -> None:
    """Whatever kind of write it is: it never revives the erased ledger, and what refers to it is refused."""
    memory = memory_of(archive)
    old_note = memory.get_live("plan")
    said = [event.id for event in memory.events(kind="message")]
    assert old_note is not None
    results: dict[str, object] = {}
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: memory.add(Message(speaker="late", content="a late word")),
        "put": lambda: memory.put("plan", "a new plan"),
        "put seen": lambda: memory.put("plan", "a newer plan", expected_seq=old_note.seq),
        "again": lambda: memory.add(Message(speaker="x", content="y"), request_id=f"{SUBJECT} 3"),
        "delete": lambda: memory.delete(said[:1], "asked"),
        "forget": lambda: memory.forget(said[:1], clean="later"),
        "record": lambda: memory.record(Recall(query="*", recalled=tuple(said[:1]))),
        "search": lambda: memory.search(SECRET),
        "prompt": lambda: memory.prompt(),
    }

    def call(name: str) -> None:
        try:
            results[name] = calls[name]()
        except Exception as error:  # noqa: BLE001
            results[name] = error

    threads = [threading.Thread(target=call, args=(name,), daemon=True) for name in calls]
    old = erase_while(archive, lambda: [thread.start() for thread in threads])
    for thread in threads:
        thread.join(PATIENCE_S)
    assert set(results) == set(calls)
    assert isinstance(results["add"], Message)
    assert isinstance(results["put"], muniment.Note)
    assert results["put"].supersedes is None
    assert isinstance(results["again"], Message)  # its request ids went with the ledger
    for name in ("put seen",):
        assert isinstance(results[name], ConflictError)
    for name in ("delete", "forget", "record"):
        assert isinstance(results[name], UsageError), name
    assert not isinstance(results["search"], Exception)
    assert results["prompt"] == ""
    head = memory.head()
    assert head is not None
    assert head.ledger_id != old
    assert [event.seq for event in memory.events()] == list(range(len(memory)))
    assert archive.ledger(old).replay().messages == ()
    assert not {event.id for event in memory.events()} & set(said)
    assert archive.verify(deep=True)


def test_a_scope_is_erased_once(path: Path) -> None:
    """Many at once, each with connections of its own: one destroys, the others find nothing."""
    receipts: list[Receipt] = []

    def erase_it() -> None:
        with muniment.open(path, durability="normal") as mine:
            receipts.append(memory_of(mine).erase(clean="later"))

    threads = [threading.Thread(target=erase_it, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(receipts) == 4
    assert sorted(receipt.count > 0 for receipt in receipts) == [False, False, False, True]
    assert {receipt.ledger_id for receipt in receipts if receipt.count == 0} == {None}
    with muniment.open(path) as archive:
        assert [receipt.id for receipt in receipts if receipt.count] == list(archive.pending())
        assert len(list(archive.tenant(TENANT).scopes(erased=True))) == 1


def test_a_sweep_never_brings_back_the_name_of_an_erased_scope(
    archive: Archive, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scope is erased after the sweep has listed it."""
    read = module.read_scope_rows

    def read_late(*arguments: Any, **more: Any) -> Iterator[Any]:
        rows = list(read(*arguments, **more))
        memory_of(archive).erase(clean="later")
        return iter(rows)

    for dry_run in (True, False):
        for action in ("delete", "erase"):
            memory_of(archive).remember("expired", retain_until=START)
            with monkeypatch.context() as patch:
                patch.setattr(module, "read_scope_rows", read_late)
                report = archive.sweep(START, action, dry_run, recalls_before=START, clean="later")
            assert [scope.subject for scope in report.scopes] == []
            assert find_in_tables(path, [SUBJECT.encode()]) == []
            assert [info.scope for info in archive.tenant(TENANT).scopes()] == [Scope(TENANT, OTHER)]


if __name__ == "__main__":
    {one.__name__: one for one in (die_everywhere, run_out_of_room, write_once_erased)}[sys.argv[1]](*sys.argv[2:])
