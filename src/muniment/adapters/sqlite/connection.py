"""One connection to a SQLite file: how it is opened and set, and where the driver's errors are translated.

The driver is apsw in its build with ciphers: it brings its own, current SQLite (versions before 3.51.3 can corrupt a
WAL database when a reader and a checkpoint meet).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, Protocol, cast

import apsw

from muniment.errors import (
    IntegrityError,
    StorageBusyError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    UsageError,
)

SQLITE_VERSION_MIN: Final = (3, 51, 3)

BUSY_SLEEP_S: Final = 0.0002
"""Measured with four writer processes: a short sleep gives 8,400 writes/s and a worst wait of 81 ms, SQLite's own
back-off 6,000 and 852 ms."""

WAL_AUTOCHECKPOINT_PAGES: Final = 16_000
"""Measured: p99 of an add 0.4 ms with a WAL of up to 66 MB; with SQLite's default of 1,000 it is 10 ms."""

CACHE_KIB: Final = 64 * 1024
STATEMENT_CACHE: Final = 128

Synchronous = Literal["FULL", "NORMAL"]

Binding = int | bytes | str | None
Bindings = Mapping[str, Binding] | Sequence[Binding]


Row = tuple[Any, ...]


class Database:
    """A connection whose errors are the package's and whose rows are plain tuples."""

    def __init__(self, connection: apsw.Connection, location: str, *, busy_timeout_s: float) -> None:
        # The driver's own annotations are too wide to check against.
        self._connection = cast("_Connection", connection)
        self._location = location
        self._busy_timeout_s = busy_timeout_s
        self._wait_at_most(busy_timeout_s)

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def rows(self, sql: str, bindings: Bindings | None = None) -> list[Row]:
        """Every row of the answer."""
        try:
            return list(self._connection.execute(sql, bindings))
        except (apsw.Error, OverflowError, UnicodeDecodeError) as error:
            raise self._translate(error) from error

    def _translate(self, error: apsw.Error | OverflowError | UnicodeDecodeError) -> StorageError | UsageError:
        if isinstance(error, OverflowError):
            return UsageError("a number beyond 64 bits stands for nothing that is stored")
        if isinstance(error, UnicodeDecodeError):
            return IntegrityError(f"{self._location}: a stored text is not UTF-8; the file is damaged")
        return translate(error, self._location)

    def row(self, sql: str, bindings: Bindings | None = None) -> Row | None:
        """The first row of the answer, if there is one."""
        rows = self.rows(sql, bindings)
        return rows[0] if rows else None

    def integer(self, sql: str, bindings: Bindings | None = None) -> int:
        """The one integer that the statement answers with.

        Raises: IntegrityError if it answers with anything else.
        """
        row = self.row(sql, bindings)
        value = None if row is None else row[0]
        if not isinstance(value, int):
            raise IntegrityError(f"{self._location}: a row that must be there is missing (found {value!r})")
        return value

    def run(self, sql: str, bindings: Bindings | None = None) -> None:
        """Run one statement, or several without bindings."""
        try:
            self._connection.execute(sql, bindings)
        except (apsw.Error, OverflowError, UnicodeDecodeError) as error:
            raise self._translate(error) from error

    def run_many(self, sql: str, rows: Iterable[Sequence[Binding]]) -> None:
        """Run one statement once per row of bindings."""
        try:
            self._connection.executemany(sql, rows)
        except (apsw.Error, OverflowError, UnicodeDecodeError) as error:
            raise self._translate(error) from error

    @contextmanager
    def waiting(self, timeout_s: float) -> Generator[None]:
        """Meanwhile, wait no longer than that for others."""
        self._wait_at_most(timeout_s)
        try:
            yield
        finally:
            self._wait_at_most(self._busy_timeout_s)

    def _wait_at_most(self, timeout_s: float) -> None:
        self._connection.set_busy_handler(_wait_until(timeout_s))

    def roll_back(self) -> None:
        """End the transaction without its writes; fine where the driver has already ended it."""
        if self._connection.in_transaction:
            self.run("ROLLBACK")

    def close(self, *, untouched: bool = False) -> None:
        """Close it; with `untouched`, without folding the write-ahead log into the file on the way out."""
        if untouched:
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self._connection.close()


class _Connection(Protocol):
    """What is used of the driver's connection."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, bindings: Bindings | None = None, /) -> Iterable[Row]: ...

    def executemany(self, sql: str, rows: Iterable[Bindings], /) -> object: ...

    def config(self, op: int, value: int, /) -> object: ...

    def set_busy_handler(self, handler: Callable[[int], bool], /) -> None: ...

    def close(self) -> None: ...


def connect(path: str, *, create: bool, busy_timeout_s: float, page_count_max: int | None = None) -> Database:
    """A connection that waits for others up to the timeout and overwrites what it deletes with zeros.

    Raises: StorageUnavailableError if the file cannot be opened.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    try:
        connection = apsw.Connection(path, flags=flags, statementcachesize=STATEMENT_CACHE)
        # Nothing that reaches SQL may touch the schema, the file's pages or functions with side effects.
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        # Else a statement is prepared anew whenever a value is bound to it: 8.6 µs instead of 1.5 for a head.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    except apsw.Error as error:
        raise translate(error, path) from error
    except UnicodeEncodeError as error:
        raise UsageError(f"{path!r} cannot be a path: SQLite takes names that are UTF-8") from error
    database = Database(connection, path, busy_timeout_s=busy_timeout_s)
    database.run("PRAGMA secure_delete=ON")
    database.run("PRAGMA temp_store=MEMORY")
    database.run("PRAGMA cell_size_check=ON")
    database.run(f"PRAGMA cache_size=-{CACHE_KIB}")
    database.run(f"PRAGMA wal_autocheckpoint={WAL_AUTOCHECKPOINT_PAGES}")
    if page_count_max is not None:
        database.run(f"PRAGMA max_page_count={page_count_max}")
    return database


def _wait_until(timeout_s: float) -> Callable[[int], bool]:
    started = 0.0

    def wait(calls: int) -> bool:
        nonlocal started
        if calls == 0:
            started = time.monotonic()
        elif time.monotonic() - started > timeout_s:
            return False
        time.sleep(BUSY_SLEEP_S)
        return True

    return wait


def translate(error: apsw.Error, location: str) -> StorageError:
    """The package's error for a driver's."""
    for kinds, build in _TRANSLATIONS:
        if isinstance(error, kinds):
            return build(f"{location}: {error}")
    return StorageError(f"{location}: {error}")


def _busy(text: str) -> StorageError:
    return StorageBusyError(f"{text}; other writers held the archive for longer than the timeout, retry")


def _full(text: str) -> StorageError:
    return StorageFullError(f"{text}; nothing of this write was stored, make room and retry")


def _damaged(text: str) -> StorageError:
    return IntegrityError(f"{text}; the file is damaged, restore it from a backup")


def _unavailable(text: str) -> StorageError:
    return StorageUnavailableError(f"{text}; check that the folder exists and can be written, and that the disk works")


_TRANSLATIONS: Final[tuple[tuple[tuple[type[apsw.Error], ...], Callable[[str], StorageError]], ...]] = (
    ((apsw.BusyError, apsw.LockedError), _busy),
    ((apsw.FullError,), _full),
    ((apsw.CorruptError, apsw.NotADBError, apsw.FormatError), _damaged),
    ((apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError, apsw.AuthError), _unavailable),
)
