"""Looking for what was destroyed: in the tables of an archive's file, and in the bytes of all its files.

What is searched for are markers: bytes that must not be there. `forms_of` makes them from a text, `secrets_of` from
the rows of a ledger as they stand before it is destroyed, whatever column they are in.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, cast
from uuid import UUID

import apsw

from muniment.adapters.sqlite.residue import MARKER_BYTES_MIN, find_in_bytes, find_in_files, forms_of
from muniment.core.canonical import encode_content
from muniment.model.event import Erasure

__all__ = [
    "MARKER_BYTES_MIN",
    "find_in_bytes",
    "find_in_files",
    "find_in_tables",
    "find_orphans",
    "forms_of",
    "secrets_of",
]

_WINDOW_BYTES: Final = 24
"""Of a long value, pieces of this length are markers too: a page may hold but a part of it."""
_INTEGER_MIN: Final = 2**47
"""SQLite stores integers from here on in eight bytes."""


def secrets_of(path: Path, ledger_id: str, seqs: Collection[int] | None = None) -> set[bytes]:
    """What the file's tables hold of a ledger, or of some of its events, and of nothing that stays.

    Texts, salts, hashes, terms, vectors; of a whole ledger also its salt, its requests and the name of its scope.
    Envelopes stay, ids among them in any form, and so does whatever also stands in a row of something else.
    """
    going: list[object] = []
    staying: list[object] = []
    with _open(path) as file:
        ((scope_no,),) = _rows(file, "SELECT scope_no FROM scopes WHERE ledger_id = ?", bytes.fromhex(ledger_id))
        for table, columns in _CONTENT.items():
            sql = f"SELECT place >> 32, place & 4294967295, {columns} FROM {table}"  # noqa: S608
            for row_scope, seq, *values in _rows(file, sql):
                goes = row_scope == scope_no and (seqs is None or seq in seqs)
                (going if goes else staying).extend(values)
        for table, columns in _SCOPE.items():
            for row_scope, *values in _rows(file, f"SELECT scope_no, {columns} FROM {table}"):  # noqa: S608
                (going if row_scope == scope_no and seqs is None else staying).extend(values)
        staying += [f'"{UUID(bytes=event_id)}"' for (event_id,) in _rows(file, "SELECT event_id FROM events")]
        for table in ("events", "tenants", "models", "settings"):
            for row in _rows(file, f"SELECT * FROM {table}"):  # noqa: S608
                staying.extend(row)
    markers = {marker for value in going for marker in _markers_of(value) if not _is_form(marker)}
    return markers - set(find_in_bytes(b"\x00".join(map(_bytes_of, staying)), markers))


_CONTENT: Final = {
    "contents": "salt, session_hash, body",
    "items": "session_hash, speaker_hash, key_hash, text_hash, terms",
    "vectors": "codes",
}
_SCOPE: Final = {"scopes": "salt", "names": "subject", "requests": "request_hash, fingerprint"}


_DIGITS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_FORM: Final = encode_content(Erasure(reason="erased", whole_scope=True)).translate(_DIGITS)
"""What every content has in common, also that of the Erasure which is written when others go."""


def _is_form(marker: bytes) -> bool:
    return marker.translate(_DIGITS) in _FORM


def _markers_of(value: object) -> Iterator[bytes]:
    if isinstance(value, int):
        if abs(value) >= _INTEGER_MIN:
            yield value.to_bytes(8, "big", signed=True)
        return
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes) and len(value) >= MARKER_BYTES_MIN:
        yield value[:_WINDOW_BYTES]
        for start in range(_WINDOW_BYTES, len(value) - _WINDOW_BYTES + 1, _WINDOW_BYTES):
            yield value[start : start + _WINDOW_BYTES]


def find_in_tables(path: Path, markers: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """The markers that stand in a row of a table, each with the table's name."""
    wanted = sorted(set(markers))
    found: list[tuple[str, bytes]] = []
    with _open(path) as file:
        for (table,) in _rows(file, "SELECT name FROM sqlite_schema WHERE type = 'table'"):
            rows = _rows(file, f"SELECT * FROM {table}")  # noqa: S608
            content = b"\x00".join(_bytes_of(value) for row in rows for value in row)
            found += [(table, marker) for marker in find_in_bytes(content, wanted)]
    return found


def _bytes_of(value: object) -> bytes:
    if value is None:
        return b""
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return value.to_bytes(8, "big", signed=True)
    return str(value).encode()


def find_orphans(path: Path) -> list[str]:
    """Rows that belong to nothing any more, described; each table is gone through."""
    with _open(path) as file:
        return [f"{name}: {row}" for name, sql in _ORPHANS.items() for row in _rows(file, sql)[:5]]


_ORPHANS: Final = {
    "content without event": "SELECT place FROM contents WHERE place NOT IN (SELECT place FROM events)",
    "content of an erased scope": """
        SELECT place FROM contents WHERE place >> 32 IN (SELECT scope_no FROM scopes WHERE erased_us IS NOT NULL)
        AND place NOT IN (SELECT max(place) FROM events GROUP BY place >> 32)""",
    "item without content": "SELECT place FROM items WHERE place NOT IN (SELECT place FROM contents)",
    "use without item": "SELECT place FROM usage WHERE place NOT IN (SELECT place FROM items)",
    "use without root": """
        SELECT place FROM usage
        WHERE place NOT IN (SELECT (place >> 32 << 32) | root_seq FROM items)""",
    "root without item": """
        SELECT place FROM items WHERE (place >> 32 << 32) | root_seq NOT IN (SELECT place FROM items)""",
    "vector without item": "SELECT place FROM vectors WHERE place NOT IN (SELECT place FROM items)",
    "request without scope": "SELECT scope_no FROM requests WHERE scope_no NOT IN (SELECT scope_no FROM names)",
    "name without scope": """
        SELECT scope_no FROM names WHERE scope_no NOT IN (SELECT scope_no FROM scopes WHERE erased_us IS NULL)""",
    "scope without name": """
        SELECT scope_no FROM scopes WHERE erased_us IS NULL AND scope_no NOT IN (SELECT scope_no FROM names)""",
    "salt of an erased scope": "SELECT scope_no FROM scopes WHERE erased_us IS NOT NULL AND length(salt) > 0",
    "event of no scope": "SELECT place FROM events WHERE place >> 32 NOT IN (SELECT scope_no FROM scopes)",
}


class _Connection(Protocol):
    """What is used of the driver's connection."""

    def execute(self, statements: str, bindings: tuple[Any, ...] = (), /) -> Iterable[tuple[Any, ...]]: ...


@contextmanager
def _open(path: Path) -> Generator[_Connection]:
    """A connection with one view of the file, closed at the end without touching it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(10_000)
    file = cast("_Connection", connection)
    try:
        file.execute("BEGIN")
        yield file
        file.execute("ROLLBACK")
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()


def _rows(file: _Connection, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
    return list(file.execute(sql, bindings))
