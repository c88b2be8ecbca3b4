"""Creating, recognising and upgrading the file: an archive is opened whole, or refused and left as it was.

A new archive is created in one transaction of the rollback journal, so that a crash leaves either nothing or all of it;
only then does the file change to the write-ahead log.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import apsw

from muniment.adapters.sqlite.connection import BUSY_SLEEP_S, Database, translate
from muniment.adapters.sqlite.statements import SCHEMA
from muniment.errors import SchemaMismatchError, StorageBusyError, StorageError, StorageUnavailableError, UsageError

APPLICATION_ID: Final = 0x4D4E4D54
"""`MNMT`, in the header of every archive."""

SCHEMA_VERSION: Final = 1

_HEADER_BYTES: Final = 100
_MAGIC: Final = b"SQLite format 3\x00"


def check_file(path: Path, *, create: bool) -> None:
    """Refuse, by its first bytes and without touching it, a file that this version cannot open.

    Raises: StorageUnavailableError if there is nothing to open; StorageError for a file that is not an archive;
            SchemaMismatchError for a newer one.
    """
    try:
        if not path.exists():
            if create and path.parent.is_dir():
                return
            missing = path if path.parent.is_dir() else path.parent
            raise StorageUnavailableError(f"{path}: there is no archive; {missing} does not exist")
        if not path.is_file():
            raise StorageUnavailableError(f"{path} is not a file")
        if path.stat().st_nlink > 1:
            raise StorageUnavailableError(
                f"{path} has another name (a hard link): opened under both, each would keep a log of its own"
            )
        header = _read_header(path)
    except OSError as error:
        raise StorageUnavailableError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{str(path)!r} cannot be a path: {error}") from error
    if not header or Path(f"{path}-journal").exists():
        return  # new, or its creation was cut short and SQLite will roll it back
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise StorageError(f"{path} is not a Muniment archive: it is not a SQLite database")
    version, application_id = struct.unpack(">60xI4xI28x", header)
    if application_id != APPLICATION_ID:
        raise StorageError(f"{path} is not a Muniment archive: it is another application's SQLite database")
    check_version(str(path), version)


def _read_header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEADER_BYTES)


def check_version(location: str, found: int, wanted: int = SCHEMA_VERSION) -> None:
    """Refuse a schema that is newer than this version knows.

    Raises: SchemaMismatchError
    """
    if found > wanted:
        raise SchemaMismatchError(
            f"{location} has schema {found}, this version of muniment works with {wanted}: "
            "upgrade it with `pip install --upgrade muniment`",
            found=found,
            wanted=wanted,
        )


def prepare(
    database: Database,
    path: str,
    *,
    create: bool,
    migrations: Mapping[int, str],
    wanted: int = SCHEMA_VERSION,
) -> Path | None:
    """Make the file an archive of the wanted schema; the backup that was written before an upgrade, if there was one.

    Raises: SchemaMismatchError for a newer schema or one that no migration leads away from; StorageError for a database
            of another application.
    """
    found = database.integer("PRAGMA user_version")
    check_version(path, found, wanted)
    if found == wanted:
        return None
    if found == 0:
        if not create:
            raise StorageUnavailableError(f"{path}: there is no archive")
        _create(database, path, wanted)
        return None
    return _upgrade(database, path, migrations, wanted)


def _create(database: Database, path: str, wanted: int) -> None:
    database.run("BEGIN IMMEDIATE")
    try:
        # Another process may have created it while this one waited.
        if database.integer("PRAGMA user_version") == 0:
            if database.integer("SELECT count(*) FROM sqlite_schema"):
                raise StorageError(f"{path} is not a Muniment archive: it is another application's SQLite database")
            database.run(SCHEMA)
            database.run(f"PRAGMA application_id={APPLICATION_ID}")
            database.run(f"PRAGMA user_version={wanted}")
        database.run("COMMIT")
    except BaseException:
        database.roll_back()
        raise


def _upgrade(database: Database, path: str, migrations: Mapping[int, str], wanted: int) -> Path | None:
    """Run the migrations in one transaction, after a backup of the file as it was."""
    database.run("BEGIN IMMEDIATE")
    try:
        # Another process may have upgraded it while this one waited.
        found = database.integer("PRAGMA user_version")
        check_version(path, found, wanted)
        if found == wanted:
            database.run("COMMIT")
            return None
        steps = range(found + 1, wanted + 1)
        missing = [step for step in steps if step not in migrations]
        if missing:
            raise SchemaMismatchError(
                f"{path} has schema {found}, and this version of muniment has no way from it to {wanted}: "
                "open it once with the versions in between",
                found=found,
                wanted=wanted,
            )
        backup = _write_backup(path, found)
        for step in steps:
            database.run(migrations[step])
            database.run(f"PRAGMA user_version={step}")
        database.run("COMMIT")
    except BaseException:
        database.roll_back()
        raise
    return backup


def _write_backup(path: str, version: int) -> Path:
    """A copy of the archive as it stands, beside it, through SQLite's own backup.

    The upgrade holds the write lock meanwhile, so nothing is added between the copy and the change.
    """
    target = Path(f"{path}.schema-{version}.backup")
    number = 1
    while target.exists():
        number += 1
        target = Path(f"{path}.schema-{version}.backup-{number}")
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        _copy(path, part)
        part.replace(target)
    except apsw.Error as error:
        raise translate(error, str(part)) from error
    finally:
        part.unlink(missing_ok=True)
    return target


def _copy(path: str, target: Path) -> None:
    source = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        copy = apsw.Connection(str(target))
        try:
            with copy.backup("main", source, "main") as backup:
                backup.step()
        finally:
            copy.close()
    finally:
        source.close()


def use_write_ahead_log(database: Database, path: str, timeout_s: float) -> None:
    """Switch the file to the write-ahead log; SQLite does not call the busy handler for that, so wait here.

    Raises: StorageBusyError after the timeout; StorageUnavailableError where the file system cannot do it.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            mode = database.row("PRAGMA journal_mode=WAL")
        except StorageBusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(BUSY_SLEEP_S)
            continue
        if mode != ("wal",):
            raise StorageUnavailableError(f"{path}: its file system cannot hold a write-ahead log ({mode})")
        return
