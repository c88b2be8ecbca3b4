"""The storage port on SQLite: one writer connection, a few readers, ledgers clustered by place."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple

import apsw

from muniment.adapters.sqlite.connection import (
    SQLITE_VERSION_MIN,
    Binding,
    Connection,
    Cursor,
    Synchronous,
    connect,
    read_int,
    translate,
    translated_errors,
)
from muniment.adapters.sqlite.schema import check_file, prepare, use_write_ahead_log
from muniment.adapters.sqlite.statements import STATEMENTS, read_migrations
from muniment.errors import (
    ClosedError,
    DuplicateEventError,
    IntegrityError,
    StorageBusyError,
    UnsupportedError,
    UsageError,
)
from muniment.model.rows import (
    AddItems,
    Change,
    CountUses,
    DropProjections,
    EventFilter,
    Head,
    HideItems,
    ItemFilter,
    ItemRow,
    KeepRequest,
    NewEvent,
    NewLedger,
    ScopeRow,
    StorageStats,
    StoredEvent,
    StoredRequest,
    SupersedeItem,
    Use,
)
from muniment.model.scope import Scope

Durability = Literal["full", "normal"]

_MEMORY: Final = ":memory:"
_SEQ_BITS: Final = 32
_SEQ_MASK: Final = 0xFFFF_FFFF
_NOWHERE: Final = -1
_ALL: Final = -1
_ERASURE_ONLY: Final = 1 << 6
_READERS_KEPT: Final = 8
"""Reader connections kept open between uses; more are opened when more threads read at once."""


class _Rows(NamedTuple):
    """The places of a range of seqs in one ledger."""

    first: int
    last: int


def _mask(numbers: Collection[int] | None) -> int:
    if numbers is None:
        return _ALL
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


class SqliteSnapshot:
    """A view of one ledger on a connection that stands in a read or write transaction."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._head = head

    @property
    def head(self) -> Head:
        return self._head

    def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
        mask = _mask(where.kinds)
        if where.session_hash is not None:
            statement = "read_session_events"
        elif mask == _ERASURE_ONLY and not newest_first:
            statement = "read_erasures"
        else:
            statement = "read_events"
        if newest_first:
            statement += "_newest_first"
        cursor = self._run(statement, **self._event_bindings(where, mask), limit=limit)
        return list(map(StoredEvent._make, cursor))

    def count_events(self, where: EventFilter) -> int:
        mask = _mask(where.kinds)
        statement = "count_events" if where.session_hash is None else "count_session_events"
        return _first_int(self._run(statement, **self._event_bindings(where, mask)))

    def find_events(self, event_ids: Sequence[bytes]) -> Mapping[bytes, StoredEvent]:
        found: dict[bytes, StoredEvent] = {}
        for event_id in event_ids:
            for row in self._run("find_event", scope_no=self._head.scope_no, event_id=event_id):
                found[event_id] = StoredEvent._make(row)
        return found

    def find_seq_at(self, recorded_us: int) -> int:
        # `recorded_at` never falls along a ledger, so its order is that of the places: halve the range.
        low, high = -1, self._head.next_seq - 1
        while low < high:
            middle = (low + high + 1) // 2
            if _first_int(self._run("find_recorded", place=self._place(middle))) <= recorded_us:
                low = middle
            else:
                high = middle - 1
        return low

    def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]:
        statement = "read_items_newest_first" if newest_first else "read_items"
        return list(map(ItemRow._make, self._run(statement, **self._item_bindings(where), limit=limit)))

    def count_items(self, where: ItemFilter) -> int:
        return _first_int(self._run("count_items", **self._item_bindings(where)))

    def find_items(self, seqs: Sequence[int]) -> Mapping[int, ItemRow]:
        found: dict[int, ItemRow] = {}
        for seq in seqs:
            for row in self._run("find_item", place=self._place(seq)):
                found[seq] = ItemRow._make(row)
        return found

    def find_live_by_key(self, key_hash: int) -> list[ItemRow]:
        cursor = self._run("find_live_by_key", scope_no=self._head.scope_no, key_hash=key_hash)
        return list(map(ItemRow._make, cursor))

    def find_live_by_text(self, text_hash: int) -> list[ItemRow]:
        cursor = self._run("find_live_by_text", scope_no=self._head.scope_no, text_hash=text_hash)
        return list(map(ItemRow._make, cursor))

    def find_uses(self, root_seqs: Sequence[int]) -> Mapping[int, Use]:
        found: dict[int, Use] = {}
        for seq in root_seqs:
            for row in self._run("find_use", place=self._place(seq)):
                found[seq] = Use._make(row)
        return found

    def find_request(self, request_hash: bytes) -> StoredRequest | None:
        for row in self._run("find_request", scope_no=self._head.scope_no, request_hash=request_hash):
            return StoredRequest._make(row)
        return None

    def _place(self, seq: int) -> int:
        """The place of a seq in this ledger; for what cannot be a seq, one where nothing ever is."""
        return self._head.scope_no << _SEQ_BITS | seq if 0 <= seq <= _SEQ_MASK else _NOWHERE

    def _range(self, first: int, last: int | None) -> _Rows:
        """The places of those seqs, cut to what this view holds."""
        newest = self._head.next_seq - 1
        last = newest if last is None else min(last, newest)
        if last < first:
            return _Rows(1, 0)
        return _Rows(self._place(max(first, 0)), self._place(last))

    def _event_bindings(self, where: EventFilter, mask: int) -> dict[str, Binding]:
        rows = self._range(where.first, where.last)
        return {
            "first": rows.first,
            "last": rows.last,
            "kinds": mask,
            "scope_no": self._head.scope_no,
            "session_hash": where.session_hash,
        }

    def _item_bindings(self, where: ItemFilter) -> dict[str, Binding]:
        at_seq = self._head.next_seq - 1 if where.at_seq is None else where.at_seq
        last = at_seq if where.last is None else min(where.last, at_seq)
        rows = self._range(where.first, last)
        return {
            "first": rows.first,
            "last": rows.last,
            "kinds": _mask(where.kinds),
            "tiers": _mask(where.tiers),
            "hidden": where.hidden,
            "at_seq": at_seq,
        }

    def _run(self, statement: str, /, **bindings: Binding) -> Cursor:
        return self._connection.execute(STATEMENTS[statement], bindings)


def _first_int(cursor: Cursor) -> int:
    value = cursor.get
    if not isinstance(value, int):
        raise IntegrityError(f"a row that must be there is missing (found {value!r})")
    return value


class SqliteTransaction(SqliteSnapshot):
    """The one writer of a ledger: its connection stands in an immediate transaction."""

    def append(self, events: Sequence[NewEvent], edge: bytes) -> None:
        head = self._head
        _check_seqs(events, head.next_seq)
        if not events:
            return
        shift = head.scope_no << _SEQ_BITS
        self._connection.execute("SAVEPOINT append")
        try:
            self._connection.executemany(
                STATEMENTS["insert_event"],
                [(shift | e.seq, e.event_id, e.kind, e.recorded_us, e.digest, e.links, e.leaf) for e in events],
            )
        except apsw.ConstraintError as error:
            duplicate = self._duplicate_among(events)
            self._connection.execute("ROLLBACK TO append")
            raise duplicate from error
        finally:
            self._connection.execute("RELEASE append")
        self._connection.executemany(
            STATEMENTS["insert_content"], [(shift | e.seq, e.salt, e.session_hash, e.body) for e in events]
        )
        self._head = Head(
            scope_no=head.scope_no,
            ledger_id=head.ledger_id,
            next_seq=events[-1].seq + 1,
            edge=edge,
            epoch=head.epoch,
            salt=head.salt,
            recorded_us=events[-1].recorded_us,
            erased_us=head.erased_us,
        )
        self._run(
            "move_head",
            next_seq=self._head.next_seq,
            edge=edge,
            recorded_us=self._head.recorded_us,
            scope_no=head.scope_no,
        )

    def _duplicate_among(self, events: Sequence[NewEvent]) -> DuplicateEventError | IntegrityError:
        """The event that was refused: the first one without a row at its place."""
        for event in events:
            if self._run("find_recorded", place=self._place(event.seq)).get is None:
                return DuplicateEventError(_format_id(event.event_id))
        return IntegrityError("an append was refused although its places were free")

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        match change:
            case AddItems(rows):
                shift = self._head.scope_no << _SEQ_BITS
                self._connection.executemany(STATEMENTS["insert_item"], [(shift | row.seq, *row[1:]) for row in rows])
            case HideItems(seqs, at_seq):
                for seq in seqs:
                    self._run("hide_item", place=self._place(seq), at_seq=at_seq)
            case SupersedeItem(seq, by_seq):
                self._run("supersede_item", place=self._place(seq), by_seq=by_seq)
            case CountUses(uses):
                self._connection.executemany(
                    STATEMENTS["count_use"],
                    [(self._place(use.root_seq), use.times, use.last_used_us) for use in uses],
                )
            case KeepRequest(request):
                self._connection.execute(STATEMENTS["insert_request"], (self._head.scope_no, *request))
            case DropProjections():
                self._drop_projections()

    def _drop_projections(self) -> None:
        first, last = self._place(0), self._place(_SEQ_MASK)
        self._run("drop_items", first=first, last=last)
        self._run("drop_usage", first=first, last=last)
        epoch = _first_int(self._run("raise_epoch", scope_no=self._head.scope_no))
        head = self._head
        self._head = Head(
            scope_no=head.scope_no,
            ledger_id=head.ledger_id,
            next_seq=head.next_seq,
            edge=head.edge,
            epoch=epoch,
            salt=head.salt,
            recorded_us=head.recorded_us,
            erased_us=head.erased_us,
        )


def _check_seqs(events: Sequence[NewEvent], next_seq: int) -> None:
    for expected, event in enumerate(events, next_seq):
        if event.seq != expected:
            raise UsageError(f"an event with seq {event.seq} does not follow: the next seq is {expected}")
    if next_seq + len(events) > _SEQ_MASK:
        raise UnsupportedError(f"a ledger holds at most {_SEQ_MASK} events")


def _format_id(event_id: bytes) -> str:
    text = event_id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


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
        self._path = _MEMORY if self._private else os.fspath(Path(path).absolute())
        self._durability: Durability = durability
        self._busy_timeout_s = busy_timeout_s
        self._page_count_max = page_count_max
        self._pid = os.getpid()
        self._closed = False
        self._write_lock = threading.Lock()
        self._writing_thread: int | None = None
        self._readers_lock = threading.Lock()
        self._idle_readers: list[Connection] = []
        self.upgrade_backup: Path | None = None
        """The copy that was written before an upgrade of the schema, if this opening made one."""
        self._writer = self._open_writer(create, read_migrations() if migrations is None else migrations)
        self._synchronous: Synchronous | None = None

    def _open_writer(self, create: bool, migrations: Mapping[int, str]) -> Connection:
        if not self._private:
            check_file(Path(self._path), create=create)
        writer = self._connect(create=create)
        try:
            with translated_errors(self._path):
                self.upgrade_backup = prepare(writer, self._path, create=create or self._private, migrations=migrations)
                if not self._private:
                    use_write_ahead_log(writer, self._path, self._busy_timeout_s)
        except BaseException:
            # What was refused is left as it was: not even its write-ahead log is folded in on the way out.
            writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            writer.close()
            raise
        return writer

    def _connect(self, *, create: bool) -> Connection:
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
        with self._exclusive(), translated_errors(self._path):
            writer = self._writer
            self._set_synchronous("FULL" if durable and self._durability == "full" else "NORMAL")
            writer.execute("BEGIN IMMEDIATE")
            try:
                head = _find_head(writer, scope) or _begin_ledger(writer, scope, fresh)
                yield SqliteTransaction(writer, head)
                writer.execute("COMMIT")
            except BaseException:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
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
            self._writer.execute(f"PRAGMA synchronous={level}")
            self._synchronous = level

    # --- Reading ------------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self, scope: Scope) -> Generator[SqliteSnapshot | None]:
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                head = _find_head(connection, scope)
                yield None if head is None else SqliteSnapshot(connection, head)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        """A connection to read with: one of the idle readers, or the only connection of a private database."""
        if self._private:
            with self._exclusive(), translated_errors(self._path):
                yield self._writer
            return
        self._check_open()
        with self._readers_lock:
            reader = self._idle_readers.pop() if self._idle_readers else None
        if reader is None:
            reader = self._connect(create=False)
        try:
            with translated_errors(self._path):
                yield reader
        finally:
            self._put_back(reader)

    def _put_back(self, reader: Connection) -> None:
        with self._readers_lock:
            if not self._closed and len(self._idle_readers) < _READERS_KEPT:
                self._idle_readers.append(reader)
                return
        reader.close()

    def find_tenants(self, *, after: str | None = None, limit: int) -> list[str]:
        with self._reading() as connection:
            rows = connection.execute(STATEMENTS["find_tenants"], {"after": after or "", "limit": limit})
            return [str(name) for (name,) in rows]

    def read_scopes(self, *, tenant: str | None = None, after: int = 0, limit: int) -> list[ScopeRow]:
        statement = "read_scopes" if tenant is None else "read_scopes_of_tenant"
        bindings: dict[str, Binding] = {"after": after, "limit": limit}
        if tenant is not None:
            bindings["tenant"] = tenant
        with self._reading() as connection:
            rows = connection.execute(STATEMENTS[statement], bindings)
            return [ScopeRow._make(row)._replace(subject=row[2] or None) for row in rows]

    def stats(self) -> StorageStats:
        with self._reading() as connection:
            (counts,) = connection.execute(STATEMENTS["stats"])
            pages = read_int(connection, "PRAGMA page_count") * read_int(connection, "PRAGMA page_size")
        return StorageStats(*counts, size_bytes=pages if self._private else self._files_bytes())

    def _files_bytes(self) -> int:
        files = (Path(self._path + suffix) for suffix in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.exists())

    def check(self) -> list[str]:
        with self._reading() as connection:
            try:
                findings = [str(text) for (text,) in connection.execute("PRAGMA integrity_check")]
            except apsw.Error as error:
                return [str(translate(error, self._path))]
        return [] if findings == ["ok"] else findings

    # --- Closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close every connection; the last one to leave the file folds the write-ahead log in. Twice is fine."""
        if self._closed or os.getpid() != self._pid:
            return
        with self._write_lock:
            self._closed = True
            with self._readers_lock:
                readers, self._idle_readers = self._idle_readers, []
            for connection in (*readers, self._writer):
                connection.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the archive {self._path} is closed: open it again")
        if os.getpid() != self._pid:
            raise UsageError(
                f"the archive {self._path} was opened before this process was forked: open it again in this process"
            )


def _check_sqlite_version() -> None:
    found = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if found < SQLITE_VERSION_MIN:
        wanted = ".".join(map(str, SQLITE_VERSION_MIN))
        raise UnsupportedError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a database that several processes use: "
            f"install an apsw-sqlite3mc that brings {wanted} or newer"
        )


def _find_head(connection: Connection, scope: Scope) -> Head | None:
    bindings = {"tenant": scope.tenant, "subject": scope.subject or ""}
    for row in connection.execute(STATEMENTS["find_head"], bindings):
        return Head(*row)
    return None


def _begin_ledger(connection: Connection, scope: Scope, fresh: NewLedger) -> Head:
    tenant_no = connection.execute(STATEMENTS["find_tenant"], {"name": scope.tenant}).get
    if tenant_no is None:
        tenant_no = connection.execute(STATEMENTS["insert_tenant"], {"name": scope.tenant}).get
    scope_no = connection.execute(
        STATEMENTS["insert_scope"], {"tenant_no": tenant_no, "ledger_id": fresh.ledger_id, "salt": fresh.salt}
    ).get
    connection.execute(
        STATEMENTS["insert_name"], {"tenant_no": tenant_no, "subject": scope.subject or "", "scope_no": scope_no}
    )
    head = _find_head(connection, scope)
    if head is None:
        raise IntegrityError("a scope that was just created is not there")
    return head
