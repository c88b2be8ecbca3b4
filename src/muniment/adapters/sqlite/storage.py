"""The storage port on SQLite: one writer connection, a few readers, ledgers clustered by place."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, Literal

import apsw

from muniment.adapters.sqlite import fulltext
from muniment.adapters.sqlite.cleaning import clean_file, files_of, read_pending
from muniment.adapters.sqlite.connection import SQLITE_VERSION_MIN, Binding, Database, Synchronous, connect
from muniment.adapters.sqlite.erasure_log import ErasureLog
from muniment.adapters.sqlite.schema import check_file, prepare, use_write_ahead_log
from muniment.adapters.sqlite.snapshot import SqliteSnapshot
from muniment.adapters.sqlite.statements import STATEMENTS, read_migrations
from muniment.adapters.sqlite.transaction import SqliteTransaction
from muniment.errors import (
    ClosedError,
    ConflictError,
    IntegrityError,
    StorageBusyError,
    StorageError,
    StorageUnavailableError,
    UnsupportedError,
    UsageError,
)
from muniment.model.rows import (
    CleanOutcome,
    Head,
    ModelRow,
    NewLedger,
    PendingClean,
    ScopeRow,
    StorageStats,
    TextMatches,
)
from muniment.model.scope import Scope

Durability = Literal["full", "normal"]

_MEMORY: Final = ":memory:"
_READERS_KEPT: Final = 8
"""Reader connections kept open between uses; more are opened when more threads read at once."""


class SqliteStorage:
    """One SQLite file, or one private database in memory, opened as an archive.

    Threads share it freely: writes queue on one connection, reads run beside them on their own. Processes share the
    file; each opens it for itself (a connection must not cross a fork).
    """

    name: ClassVar[str] = "sqlite"

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool = True,
        durability: Durability = "full",
        busy_timeout_s: float = 30.0,
        page_count_max: int | None = None,
        migrations: Mapping[int, str] | None = None,
    ) -> None:
        """Open the archive, creating or upgrading it first where that is needed.

        `durability="normal"` never waits for the disk: a power cut may take the last writes, a crash of the process
        takes none.

        Raises: StorageUnavailableError if there is nothing to open or the folder cannot be written; StorageError for a
                file that is not an archive; SchemaMismatchError for a newer schema; IntegrityError for a damaged file;
                StorageBusyError. The file is left as it was.
        """
        _check_sqlite_version()
        self._private = str(path) == _MEMORY
        # Without symbolic links: the files beside the archive belong to it, not to a name that points to it.
        self._path = _MEMORY if self._private else _resolve(path)
        self._durability: Durability = durability
        self._busy_timeout_s = busy_timeout_s
        self._page_count_max = page_count_max
        self._pid = os.getpid()
        self._closed = False
        self._write_lock = threading.Lock()
        self._writing_thread: int | None = None
        self._reading_thread: int | None = None
        """Of a private database: the thread that holds a view, which may look again inside it."""
        self._readers_lock = threading.Lock()
        self._idle_readers: list[Database] = []
        self.upgrade_backup: Path | None = None
        """The copy that was written before an upgrade of the schema, if this opening made one."""
        self._writer = self._open_writer(create, read_migrations() if migrations is None else migrations)
        self._synchronous: Synchronous | None = None
        self._identity = None if self._private else _identity_of(self._path)
        """The device and inode of the file that was opened."""
        self._erasure_log = None if self._private else ErasureLog(self._path)

    def _open_writer(self, create: bool, migrations: Mapping[int, str]) -> Database:
        if not self._private:
            check_file(Path(self._path), create=create)
        writer = self._connect(create=create)
        try:
            self.upgrade_backup = prepare(writer, self._path, create=create or self._private, migrations=migrations)
            if not self._private:
                use_write_ahead_log(writer, self._path, self._busy_timeout_s)
        except BaseException:
            writer.close(untouched=True)  # what was refused is left as it was
            raise
        return writer

    def _connect(self, *, create: bool) -> Database:
        return connect(
            self._path,
            create=create or self._private,
            busy_timeout_s=self._busy_timeout_s,
            page_count_max=self._page_count_max,
        )

    @property
    def location(self) -> str:
        return self._path

    # --- Writing ------------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, scope: Scope, fresh: NewLedger, *, durable: bool = True) -> Generator[SqliteTransaction]:
        with self._exclusive():
            self._check_in_place()
            writer = self._writer
            self._set_synchronous("FULL" if durable and self._durability == "full" else "NORMAL")
            writer.run("BEGIN IMMEDIATE")
            try:
                head = _find_head(writer, scope) or _begin_ledger(writer, scope, fresh)
                tx = SqliteTransaction(writer, head)
                yield tx
                if self._erasure_log is not None and (tx.erased_ids or tx.erased_whole):
                    # Before the commit: what cannot be logged is not erased, so a restored backup never forgets it.
                    self._erasure_log.add(head.ledger_id, None if tx.erased_whole else tx.erased_ids)
                writer.run("COMMIT")
            except BaseException:
                writer.roll_back()
                raise

    @contextmanager
    def _writing_alone(self) -> Generator[Database]:
        """The writer connection in a transaction of no ledger, which commits when the block ends."""
        with self._exclusive():
            writer = self._writer
            self._set_synchronous("FULL")
            writer.run("BEGIN IMMEDIATE")
            try:
                yield writer
                writer.run("COMMIT")
            except BaseException:
                writer.roll_back()
                raise

    @contextmanager
    def _exclusive(self) -> Generator[None]:
        """The writer connection, for one thread at a time."""
        self._check_open()
        if self._writing_thread == threading.get_ident():
            raise UsageError("a call inside a transaction would wait for itself: end the transaction first")
        if not self._write_lock.acquire(timeout=self._busy_timeout_s):
            raise StorageBusyError(f"{self._path}: another thread held the writer for {self._busy_timeout_s} s; retry")
        try:
            self._check_open()
            self._writing_thread = threading.get_ident()
            yield
        finally:
            self._writing_thread = None
            self._write_lock.release()

    def _set_synchronous(self, level: Synchronous) -> None:
        if level != self._synchronous:
            self._writer.run(f"PRAGMA synchronous={level}")
            self._synchronous = level

    # --- Reading ------------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self, of: Scope | bytes) -> Generator[SqliteSnapshot | None]:
        with self._viewing() as reader:
            head = _find_head(reader, of)
            yield None if head is None else SqliteSnapshot(reader, head)

    @contextmanager
    def _viewing(self) -> Generator[Database]:
        """A connection to read with, whose reads are all of one moment."""
        with self._reading() as reader:
            outermost = not reader.in_transaction  # a private database has one connection for nested views too
            if outermost:
                reader.run("BEGIN")
            try:
                yield reader
            finally:
                if outermost:
                    reader.roll_back()

    @contextmanager
    def _reading(self) -> Generator[Database]:
        """A connection to read with: one of the idle readers, or the only connection of a private database."""
        if self._private:
            if self._reading_thread == threading.get_ident():
                yield self._writer
                return
            with self._exclusive():
                self._reading_thread = threading.get_ident()
                try:
                    yield self._writer
                finally:
                    self._reading_thread = None
            return
        self._check_open()
        with self._readers_lock:
            reader = self._idle_readers.pop() if self._idle_readers else None
        if reader is None:
            reader = self._connect(create=False)
        try:
            yield reader
        finally:
            self._put_back(reader)

    def _put_back(self, reader: Database) -> None:
        with self._readers_lock:
            if not self._closed and len(self._idle_readers) < _READERS_KEPT:
                self._idle_readers.append(reader)
                return
        reader.close()

    def find_tenants(self, *, after: str | None = None, limit: int) -> list[str]:
        with self._reading() as reader:
            rows = reader.rows(STATEMENTS["find_tenants"], {"after": after or "", "limit": limit})
        return [name for (name,) in rows]

    def read_scopes(
        self, *, tenant: str | None = None, erased: bool = False, after: int = 0, limit: int
    ) -> list[ScopeRow]:
        statement = "read_erased_scopes" if erased else "read_scopes"
        bindings: dict[str, Binding] = {"after": after, "limit": limit}
        if tenant is not None:
            statement += "_of_tenant"
            bindings["tenant"] = tenant
        with self._reading() as reader:
            rows = reader.rows(STATEMENTS[statement], bindings)
        return [ScopeRow._make(row)._replace(subject=row[2] or None) for row in rows]

    def find_models(self) -> list[ModelRow]:
        with self._reading() as reader:
            return [ModelRow._make(row) for row in reader.rows(STATEMENTS["find_models"])]

    def keep_model(self, name: str, dimension: int, probe: bytes) -> ModelRow:
        with self._exclusive():
            bindings: dict[str, Binding] = {"name": name, "dimension": dimension, "probe": probe}
            return ModelRow(self._writer.integer(STATEMENTS["insert_model"], bindings), name, dimension, probe)

    def find_settings(self) -> Mapping[str, str]:
        with self._reading() as reader:
            return dict(reader.rows(STATEMENTS["find_settings"]))

    def keep_setting(self, name: str, value: str) -> None:
        with self._exclusive():
            self._writer.run(STATEMENTS["keep_setting"], {"name": name, "value": value})

    def begin_text(self, version: str) -> None:
        with self._writing_alone() as writer:
            fulltext.begin(writer, version)

    def finish_text(self, version: str) -> None:
        with self._writing_alone() as writer:
            fulltext.finish(writer, version)

    def drop_text(self) -> None:
        with self._writing_alone() as writer:
            fulltext.drop(writer)

    def find_text(
        self, tenant: str, terms: Sequence[str], *, version: str, kinds: Collection[int] | None = None
    ) -> TextMatches | None:
        with self._viewing() as reader:
            return fulltext.find(reader, tenant, terms, version, kinds)

    def stats(self) -> StorageStats:
        with self._reading() as reader:
            counts = reader.rows(STATEMENTS["stats"])[0]
            pages = reader.integer("PRAGMA page_count") * reader.integer("PRAGMA page_size")
        files_bytes = sum(file.stat().st_size for file in files_of(None if self._private else self._path))
        return StorageStats(*counts, size_bytes=pages if self._private else files_bytes)

    def check(self) -> list[str]:
        with self._viewing() as reader:
            try:
                findings = [text for (text,) in reader.rows("PRAGMA integrity_check")]
                return [text for text in findings if text != "ok"] or fulltext.check(reader)
            except StorageError as error:
                return [str(error)]

    # --- Destroying ---------------------------------------------------------------------------------------------------

    def drop_tenant(self, name: str, pending: PendingClean) -> bool:
        with self._writing_alone() as writer:
            found = writer.row(STATEMENTS["find_tenant"], {"name": name})
            if found is not None:
                bindings = {"tenant_no": found[0]}
                if writer.integer(STATEMENTS["count_names_of_tenant"], bindings):
                    raise ConflictError(f"tenant {name!r} still has scopes: erase them first")
                writer.run(STATEMENTS["drop_tenant"], bindings)
                writer.run(STATEMENTS["await_clean"], tuple(pending))
        return found is not None

    def find_pending(self) -> list[PendingClean]:
        with self._reading() as reader:
            return read_pending(reader)

    def clean(self, *, markers: Sequence[bytes] = (), wait_s: float) -> CleanOutcome:
        with self._exclusive():
            self._check_in_place()
            path = None if self._private else self._path
            return clean_file(self._writer, path, markers=markers, wait_s=wait_s)

    # --- Closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close every connection; the last one to leave the file folds the write-ahead log in. Twice is fine.

        Raises: UsageError inside a transaction of the same thread.
        """
        if self._closed or os.getpid() != self._pid:
            return
        with self._exclusive():
            self._closed = True
            with self._readers_lock:
                readers, self._idle_readers = self._idle_readers, []
            for database in (*readers, self._writer):
                database.close()

    def _check_in_place(self) -> None:
        """Refuse to write to a file that was moved or deleted: what is written there is found by nobody."""
        if self._identity is not None and _identity_of(self._path) != self._identity:
            raise StorageUnavailableError(
                f"{self._path} is not the file that was opened: it was moved, deleted or replaced; open it again"
            )

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the archive {self._path} is closed: open it again")
        if os.getpid() != self._pid:
            raise UsageError(
                f"the archive {self._path} was opened before this process was forked: open it again in this process"
            )


def _resolve(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except ValueError as error:
        raise UsageError(f"{str(path)!r} cannot be a path: {error}") from error
    except OSError as error:
        raise StorageUnavailableError(f"{path} cannot be reached: {error.strerror}") from error


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check_sqlite_version() -> None:
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if found < SQLITE_VERSION_MIN:
        wanted = ".".join(map(str, SQLITE_VERSION_MIN))
        raise UnsupportedError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a database that several processes use: "
            f"install an apsw-sqlite3mc that brings {wanted} or newer"
        )


def _find_head(database: Database, of: Scope | bytes) -> Head | None:
    if isinstance(of, bytes):
        row = database.row(STATEMENTS["find_head_of_ledger"], {"ledger_id": of})
    else:
        row = database.row(STATEMENTS["find_head"], {"tenant": of.tenant, "subject": of.subject or ""})
    return None if row is None else Head(*row)


def _begin_ledger(database: Database, scope: Scope, fresh: NewLedger) -> Head:
    found = database.row(STATEMENTS["find_tenant"], {"name": scope.tenant})
    tenant_no = database.integer(STATEMENTS["insert_tenant"], {"name": scope.tenant}) if found is None else found[0]
    scope_no = database.integer(
        STATEMENTS["insert_scope"], {"tenant_no": tenant_no, "ledger_id": fresh.ledger_id, "salt": fresh.salt}
    )
    database.run(
        STATEMENTS["insert_name"], {"tenant_no": tenant_no, "subject": scope.subject or "", "scope_no": scope_no}
    )
    head = _find_head(database, scope)
    if head is None:
        raise IntegrityError("a scope that was just created is not there")
    return head
