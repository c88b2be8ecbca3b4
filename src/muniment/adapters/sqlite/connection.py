"""One connection to a SQLite file: how it is opened and set, and where the driver's errors are translated.

The driver is apsw in its build with ciphers: it brings its own, current SQLite (versions before 3.51.3 can corrupt a
WAL database when a reader and a checkpoint meet).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, Protocol, cast

import apsw

from muniment.errors import (
    IntegrityError,
    StorageBusyError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
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


class Cursor(Protocol):
    """The rows of a statement. The driver's own annotations are too wide to check against."""

    @property
    def get(self) -> Any:
        """The one value of a one-column, one-row answer; None where there is no row."""
        ...

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...


class Connection(Protocol):
    """What this adapter uses of a connection of the driver."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, bindings: Bindings | None = None, /) -> Cursor: ...

    def executemany(self, sql: str, rows: Iterable[Bindings], /) -> Cursor: ...

    def config(self, op: int, value: int, /) -> object: ...

    def close(self) -> None: ...


def connect(path: str, *, create: bool, busy_timeout_s: float, page_count_max: int | None = None) -> Connection:
    """A connection that waits for others up to the timeout and overwrites what it deletes with zeros.

    Raises: StorageUnavailableError if the file cannot be opened.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    with translated_errors(path):
        opened = apsw.Connection(path, flags=flags, statementcachesize=STATEMENT_CACHE)
        opened.set_busy_handler(_wait_until(busy_timeout_s))
        connection = cast("Connection", opened)
        # Nothing that reaches SQL may touch the schema, the file's pages or functions with side effects.
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint={WAL_AUTOCHECKPOINT_PAGES}")
        if page_count_max is not None:
            connection.execute(f"PRAGMA max_page_count={page_count_max}")
    return connection


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


def read_int(connection: Connection, sql: str) -> int:
    """The one integer that a statement answers with."""
    value = connection.execute(sql).get
    if not isinstance(value, int):
        raise IntegrityError(f"{sql} answered {value!r}")
    return value


@contextmanager
def translated_errors(location: str) -> Generator[None]:
    """Turn what the driver raises into the package's errors, with the driver's as the cause."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error, location) from error


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
