"""The baseline: the same bytes as an add of the engine, in one bare transaction of the driver."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from muniment import Message
from muniment.adapters.sqlite.connection import WAL_AUTOCHECKPOINT_PAGES
from muniment.adapters.tokenizer import tokenize
from muniment.core.project import Hashes, Known, draft, place
from muniment.model.rows import AddItems, Head, ItemRow
from muniment.ports.clock import system_clock, system_entropy

_ITEM_COLUMNS: Final = ", ".join(ItemRow._fields[1:])

BARE: Final = f"""
CREATE TABLE scopes (scope_no INTEGER PRIMARY KEY, tenant_no INTEGER, ledger_id BLOB, next_seq INTEGER, edge BLOB,
    epoch INTEGER, salt BLOB, recorded_us INTEGER, erased_us INTEGER);
CREATE TABLE events (place INTEGER PRIMARY KEY, event_id BLOB, format INTEGER DEFAULT 1, kind INTEGER,
    recorded_us INTEGER, digest BLOB, links BLOB, leaf BLOB);
CREATE TABLE contents (place INTEGER PRIMARY KEY, salt BLOB, session_hash INTEGER, body BLOB);
CREATE TABLE items (place INTEGER PRIMARY KEY, {_ITEM_COLUMNS});
"""

_EVENT: Final = (
    "INSERT INTO events (place, event_id, kind, recorded_us, digest, links, leaf) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_CONTENT: Final = "INSERT INTO contents (place, salt, session_hash, body) VALUES (?, ?, ?, ?)"
_ITEM: Final = (
    f"INSERT INTO items (place, {_ITEM_COLUMNS}) "  # noqa: S608
    f"VALUES ({', '.join('?' * len(ItemRow._fields))})"
)
_HEAD: Final = "UPDATE scopes SET next_seq = ?, edge = ?, recorded_us = ? WHERE scope_no = 1"
_FIRST_HEAD: Final = "INSERT INTO scopes (scope_no, tenant_no, ledger_id, salt) VALUES (1, 1, ?, ?)"


class Written(NamedTuple):
    """The rows of one add, ready to be bound."""

    head: Head
    event: tuple[Any, ...]
    content: tuple[Any, ...]
    item: tuple[Any, ...]
    moved: tuple[Any, ...]


def build_written(messages: Sequence[Message]) -> list[Written]:
    """What adding these messages one after another to a new ledger writes."""
    head = Head(1, system_entropy(16), 0, b"", 0, system_entropy(16), -(2**63), None)
    hashes = Hashes(head.salt)
    out: list[Written] = []
    for message in messages:
        placed = place(
            head,
            [draft(message, tokenize)],
            now_us=system_clock(),
            salts=system_entropy(16),
            hashes=hashes,
            known=Known(),
        )
        (row,) = placed.rows
        change, *_ = placed.changes
        assert isinstance(change, AddItems)
        (item,) = change.rows
        spot = 1 << 32 | row.seq
        out.append(
            Written(
                head=head,
                event=(spot, row.event_id, row.kind, row.recorded_us, row.digest, row.links, row.leaf),
                content=(spot, row.salt, row.session_hash, row.body),
                item=(spot, *item[1:]),
                moved=(row.seq + 1, placed.edge, row.recorded_us),
            )
        )
        head = Head(1, head.ledger_id, row.seq + 1, placed.edge, 0, head.salt, row.recorded_us, None)
    return out


class BareWriter:
    """A connection that does nothing but insert."""

    def __init__(self, path: Path, schema: str, synchronous: str, first: Written) -> None:
        self._connection = apsw.Connection(str(path))
        execute = self._connection.execute
        execute("PRAGMA journal_mode=WAL")
        execute(f"PRAGMA synchronous={synchronous}")
        execute(f"PRAGMA wal_autocheckpoint={WAL_AUTOCHECKPOINT_PAGES}")
        execute(schema)
        if "REFERENCES" in schema:
            execute("INSERT INTO tenants (tenant_no, name) VALUES (1, 'bench')")
        execute(_FIRST_HEAD, (first.head.ledger_id, first.head.salt))

    def write(self, written: Written) -> None:
        """The rows of one add, durably."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        execute(_EVENT, written.event)
        execute(_CONTENT, written.content)
        execute(_ITEM, written.item)
        execute(_HEAD, written.moved)
        execute("COMMIT")

    def close(self) -> None:
        self._connection.close()

    @staticmethod
    @contextmanager
    def opened(path: Path) -> Generator[apsw.Connection]:
        """The file, to look at what was written."""
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            yield connection
        finally:
            connection.close()
