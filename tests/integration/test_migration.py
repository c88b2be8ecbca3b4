"""Upgrading the schema: a backup first, all or nothing, once, whoever else opens the file at that moment.

There is one schema so far, so these tests bring their own migrations and open archives as a later version would.
Run as a script, this file is one of the processes that open an archive at the same time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final
from unittest.mock import patch

import apsw
import pytest

import muniment
from muniment import Archive, Memory, Message
from muniment.adapters.sqlite import SqliteStorage, schema, storage
from muniment.adapters.sqlite.connection import connect
from muniment.adapters.sqlite.schema import SCHEMA_VERSION, prepare
from muniment.adapters.tokenizer import tokenize
from muniment.errors import SchemaMismatchError, StorageError
from muniment.ports.clock import system_clock, system_entropy

NEXT: Final = SCHEMA_VERSION + 1
MARK: Final = (
    "CREATE TABLE marks (step INTEGER PRIMARY KEY); INSERT INTO marks SELECT user_version + 1 FROM pragma_user_version;"
)
MARK_AGAIN: Final = (
    "INSERT INTO marks SELECT user_version + 1 FROM pragma_user_version; ALTER TABLE marks ADD COLUMN note TEXT;"
)
MIGRATIONS: Final = {NEXT: MARK, NEXT + 1: MARK_AGAIN}
"""Each notes that it ran, and cannot run twice."""

FAILING: Final = ("INSERT INTO no_such_table VALUES (1)", "UPDATE events SET kind = 2", "this is not SQL")

NUM_OPENERS: Final = 3


@contextmanager
def version_of_the_package(version: int) -> Iterator[None]:
    """Inside the block the package works with that schema."""

    def check(location: str, found: int, wanted: int = version) -> None:
        original(location, found, wanted)

    original = schema.check_version
    with (
        patch.object(schema, "check_version", check),
        patch.object(storage, "prepare", partial(prepare, wanted=version)),
    ):
        yield


def open_at(path: Path, version: int = NEXT, migrations: Mapping[int, str] = MIGRATIONS) -> Archive:
    """The archive as the package with that schema opens it."""
    with version_of_the_package(version):
        opened = SqliteStorage(path, durability="normal", migrations=migrations)
    return Archive(opened, clock=system_clock, entropy=system_entropy, tokenizer=tokenize)


def memory_of(archive: Archive) -> Memory:
    return archive.memory("user-42", tenant="acme")


def backup_of(archive: Archive) -> Path | None:
    assert isinstance(archive.storage, SqliteStorage)
    return archive.storage.upgrade_backup


def ask(path: Path, sql: str) -> list[object]:
    """The first column of the answer, from a connection of its own."""
    connection = apsw.Connection(str(path))
    answer = [row[0] for row in connection.execute(sql)]
    connection.close()
    return answer


def version_of(path: Path) -> object:
    return ask(path, "PRAGMA user_version")[0]


def backups_beside(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if ".backup" in entry.name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An archive of today's schema, with a few events."""
    path = tmp_path / "archive.db"
    with muniment.open(path, durability="normal") as archive:
        memory = memory_of(archive)
        memory.add_many([Message(speaker="anna", content=f"number {number}") for number in range(50)])
        memory.put("plan", "call the contractor")
    return path


@pytest.fixture
def told(path: Path) -> object:
    """Everything the archive tells before the upgrade."""
    with muniment.open(path, create=False) as archive:
        return tell(archive)


def tell(archive: Archive) -> object:
    memory = memory_of(archive)
    assert archive.verify(deep=True)
    return memory.head(), memory.replay(), list(memory.events()), list(memory.items())


def test_an_upgrade_keeps_everything_and_leaves_a_backup_of_what_was(path: Path, told: object) -> None:
    with open_at(path) as archive:
        backup = backup_of(archive)
        assert tell(archive) == told
        assert memory_of(archive).add(Message(speaker="anna", content="after")).seq == 51
    assert backup is not None
    assert backups_beside(path) == [backup.name]
    assert version_of(path) == NEXT
    assert ask(path, "SELECT step FROM marks") == [NEXT]
    assert version_of(backup) == SCHEMA_VERSION
    with muniment.open(backup, create=False) as archive:
        assert tell(archive) == told
    with open_at(path) as archive:
        assert backup_of(archive) is None, "the second opening has nothing to do"


def test_the_backup_is_there_before_the_first_change(path: Path) -> None:
    """At the moment the migration runs: it looks for the backup itself."""
    seen: list[object] = []
    original = schema._write_backup  # pyright: ignore[reportPrivateUsage]

    def write_and_look(location: str, version: int) -> Path:
        backup = original(location, version)
        seen.extend([version_of(backup), version_of(path), backups_beside(path)])
        return backup

    with patch.object(schema, "_write_backup", write_and_look):
        open_at(path).close()
    assert seen == [SCHEMA_VERSION, SCHEMA_VERSION, [f"{path.name}.schema-{SCHEMA_VERSION}.backup"]]


def test_the_backup_holds_what_only_the_log_holds_yet(path: Path) -> None:
    """Another process has the archive open, so its last writes have not reached the file itself."""
    with muniment.open(path, durability="normal") as other:
        late = memory_of(other).add(Message(speaker="anna", content="only in the log"))
        with open_at(path) as archive:
            backup = backup_of(archive)
            assert memory_of(archive).get(late.id) == late
        assert backup is not None
        with muniment.open(backup, create=False) as before:
            assert memory_of(before).get(late.id) == late


def test_several_steps_are_one_change(path: Path, told: object) -> None:
    with open_at(path, NEXT + 1) as archive:
        assert tell(archive) == told
    assert version_of(path) == NEXT + 1
    assert ask(path, "SELECT step FROM marks ORDER BY step") == [NEXT, NEXT + 1]
    assert len(backups_beside(path)) == 1


@pytest.mark.parametrize("failing", FAILING)
def test_a_failed_migration_leaves_version_and_data(path: Path, told: object, failing: str) -> None:
    with pytest.raises(StorageError) as caught:
        open_at(path, NEXT, {NEXT: f"{MARK} {failing}"})
    assert caught.value.__cause__ is not None
    assert version_of(path) == SCHEMA_VERSION
    assert not ask(path, "SELECT name FROM sqlite_schema WHERE name = 'marks'")
    with muniment.open(path, create=False) as archive:
        assert tell(archive) == told
        assert memory_of(archive).add(Message(speaker="anna", content="after")).seq == 51
    with open_at(path) as archive:
        assert memory_of(archive).verify()
    assert version_of(path) == NEXT


def test_a_later_step_that_fails_takes_the_earlier_ones_back(path: Path, told: object) -> None:
    with pytest.raises(StorageError):
        open_at(path, NEXT + 1, {NEXT: MARK, NEXT + 1: FAILING[0]})
    assert version_of(path) == SCHEMA_VERSION
    with muniment.open(path, create=False) as archive:
        assert tell(archive) == told


def test_no_way_to_the_wanted_schema_says_so_and_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    for migrations in ({}, {NEXT: MIGRATIONS[NEXT]}, {NEXT + 1: MIGRATIONS[NEXT + 1]}):
        with pytest.raises(SchemaMismatchError, match="no way") as caught:
            open_at(path, NEXT + 1, migrations)
        assert (caught.value.found, caught.value.wanted) == (SCHEMA_VERSION, NEXT + 1)
    assert path.read_bytes() == before
    assert not backups_beside(path)


def test_an_older_package_refuses_what_was_upgraded(path: Path) -> None:
    open_at(path).close()
    before = path.read_bytes()
    with pytest.raises(SchemaMismatchError, match="pip install --upgrade"):
        muniment.open(path)
    assert path.read_bytes() == before


def test_a_backup_of_an_earlier_upgrade_is_never_overwritten(path: Path) -> None:
    earlier = path.with_name(f"{path.name}.schema-{SCHEMA_VERSION}.backup")
    earlier.write_bytes(b"somebody's only copy")
    with open_at(path) as archive:
        backup = backup_of(archive)
    assert earlier.read_bytes() == b"somebody's only copy"
    assert backup is not None
    assert backup != earlier
    assert version_of(backup) == SCHEMA_VERSION


class FullDisk(apsw.Connection):
    """A connection whose disk is full in the middle of a backup."""

    def backup(self, databasename: str, sourceconnection: Any, sourcedatabasename: str) -> apsw.Backup:
        copying = super().backup(databasename, sourceconnection, sourcedatabasename)
        copying.step(2)
        copying.close(force=True)
        raise apsw.FullError("database or disk is full")


def test_a_backup_that_cannot_be_written_stops_the_upgrade(path: Path, told: object) -> None:
    """What the driver says while copying arrives as a typed error, and no half of a backup stays."""
    with patch.object(apsw, "Connection", FullDisk), pytest.raises(StorageError) as caught:
        open_at(path)
    assert isinstance(caught.value.__cause__, apsw.FullError)
    assert version_of(path) == SCHEMA_VERSION
    assert not backups_beside(path)
    with muniment.open(path, create=False) as archive:
        assert tell(archive) == told


def test_a_new_archive_is_made_with_the_wanted_schema_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with open_at(path) as archive:
        assert backup_of(archive) is None
        assert memory_of(archive).add(Message(speaker="anna", content="hello")).seq == 0
    assert version_of(path) == NEXT
    assert not backups_beside(path)


def test_an_upgrade_by_a_newer_version_while_this_one_waits(path: Path) -> None:
    """It read the old version, waited for the lock, and now finds a schema that it does not know."""
    newer = apsw.Connection(str(path))
    newer.execute(f"BEGIN IMMEDIATE; PRAGMA user_version={NEXT + 1}")
    looked = Event()

    def check(location: str, found: int, wanted: int) -> None:
        original(location, found, wanted)
        looked.set()

    original = schema.check_version
    database = connect(str(path), create=False, busy_timeout_s=30.0)
    with patch.object(schema, "check_version", check), ThreadPoolExecutor(1) as threads:
        upgrade = threads.submit(prepare, database, str(path), create=False, migrations=MIGRATIONS, wanted=NEXT)
        assert looked.wait(30.0)
        newer.execute("COMMIT")
        with pytest.raises(SchemaMismatchError):
            upgrade.result(30.0)
    database.close()
    newer.close()
    assert version_of(path) == NEXT + 1
    assert not backups_beside(path)


def test_those_who_open_at_the_same_time_upgrade_once(path: Path, told: object) -> None:
    """Processes of the new version; one upgrades, the others wait for it and find it done."""
    openers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", __file__, str(path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(NUM_OPENERS)
    ]
    answers: list[str] = []
    try:
        for opener in openers:
            assert opener.stdout is not None
            assert opener.stdout.readline() == "ready\n"
        for opener in openers:
            assert opener.stdin is not None
            opener.stdin.write("go\n")
            opener.stdin.flush()
        for opener in openers:
            out, _ = opener.communicate(timeout=60)
            assert opener.returncode == 0
            answers.append(out.strip())
    finally:
        for opener in openers:
            opener.kill()
            opener.communicate()
    assert sorted(answers) == ["found it done"] * (NUM_OPENERS - 1) + ["upgraded"]
    assert backups_beside(path) == [f"{path.name}.schema-{SCHEMA_VERSION}.backup"]
    assert ask(path, "SELECT step FROM marks") == [NEXT]
    with open_at(path) as archive:
        assert len(memory_of(archive)) == 51 + NUM_OPENERS
        assert archive.verify(deep=True)
    with muniment.open(path.parent / backups_beside(path)[0], create=False) as before:
        assert tell(before) == told


def open_with_the_others(path: Path, number: str) -> None:
    """One of the processes: say that all is loaded, wait for the word, open, add one event, say who upgraded."""
    print("ready", flush=True)
    sys.stdin.readline()
    with open_at(path) as archive:
        memory_of(archive).add(Message(speaker=number, content="here"))
        print("upgraded" if backup_of(archive) is not None else "found it done", flush=True)


if __name__ == "__main__":
    open_with_the_others(Path(sys.argv[1]), sys.argv[2])
