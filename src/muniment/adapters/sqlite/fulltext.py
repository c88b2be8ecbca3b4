"""Full text on FTS5: which items hold a term, for searches over many scopes. It proposes rows and never ranks them.

The table answers one term at a time with places, nothing else: FTS5's own ranking walks the postings of every tenant,
and its query language is never given anything but one quoted term.

Source: `architecture.md` section 4; `measurements.md`, "Text search in a scope".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Final

from muniment.adapters.sqlite.connection import Database
from muniment.adapters.sqlite.snapshot import SEQ_BITS, SEQ_MASK, mask_of
from muniment.adapters.sqlite.statements import DROP_FULLTEXT, FULLTEXT_TABLES, STATEMENTS
from muniment.model.rows import TextMatches
from muniment.ports.storage import FULLTEXT

_TOKEN_BYTES_MAX: Final = 1_000
"""FTS5 cuts a token at 32,768 bytes, and keeps whole tokens as separators of pages: long ones go in as a hash."""


def text_of(terms: Sequence[str]) -> str:
    """What is indexed for these terms, and what is given again to take it out."""
    return " ".join(map(_token_of, terms))


def _token_of(term: str) -> str:
    if len(term) * 4 <= _TOKEN_BYTES_MAX or len(encoded := term.encode()) <= _TOKEN_BYTES_MAX:
        return term
    return blake2b(encoded, digest_size=16).hexdigest()


def _quoted(term: str) -> str:
    """The query for one term: a string of FTS5, in which only a quote would mean anything."""
    return '"' + _token_of(term).replace('"', '""') + '"'


def read_state(database: Database) -> str:
    """What the setting says: `off`, `building <version>` or `on <version>`."""
    row = database.row(STATEMENTS["find_setting"], {"name": FULLTEXT})
    return "off" if row is None else str(row[0])


def keeps_text(database: Database) -> bool:
    """Whether its tables are there."""
    return read_state(database) != "off"


def begin(database: Database, version: str) -> None:
    """Make the tables, empty; the caller has begun the transaction."""
    if read_state(database) in (f"building {version}", f"on {version}"):
        return
    database.run(DROP_FULLTEXT)
    database.run(FULLTEXT_TABLES)
    _keep_state(database, f"building {version}")


def finish(database: Database, version: str) -> None:
    """Say that every item is in it, unless it was dropped or begun anew meanwhile."""
    if read_state(database) == f"building {version}":
        _keep_state(database, f"on {version}")


def drop(database: Database) -> None:
    """Take the tables away."""
    database.run(DROP_FULLTEXT)
    _keep_state(database, "off")


def _keep_state(database: Database, state: str) -> None:
    database.run(STATEMENTS["keep_setting"], {"name": FULLTEXT, "value": state})


def find(
    database: Database, tenant: str, terms: Sequence[str], version: str, kinds: Collection[int] | None
) -> TextMatches | None:
    """The matches of a tenant; the caller has begun the transaction that makes them of one moment."""
    if read_state(database) != f"on {version}":
        return None
    tenant_row = database.row(STATEMENTS["find_tenant"], {"name": tenant})
    if tenant_row is None:
        return TextMatches(0, 0, [[] for _ in terms])
    asked = {"tenant_no": tenant_row[0], "kinds": mask_of(kinds)}
    ((documents, length),) = database.rows(STATEMENTS["sum_text"], asked)
    ((lowest, highest),) = database.rows(STATEMENTS["bound_scopes"], {"tenant_no": tenant_row[0]})
    asked.update(first=lowest << SEQ_BITS, last=highest << SEQ_BITS | SEQ_MASK)
    found = [database.rows(STATEMENTS["find_text"], {**asked, "term": _quoted(term)}) for term in terms]
    return TextMatches(documents, length, [[place for (place,) in rows] for rows in found])


def optimize(database: Database) -> None:
    """Write the index anew from what it holds: terms of rows that went are kept nowhere, not as separators either."""
    if keeps_text(database):
        database.run(STATEMENTS["optimize_text"])


def count_strays(database: Database) -> int:
    """Rows that belong to no item."""
    return database.integer(STATEMENTS["count_stray_text"]) if keeps_text(database) else 0


def check(database: Database) -> list[str]:
    """Where it is not what the items come to; FTS5 itself is asked by SQLite's own check."""
    if not keeps_text(database):
        return []
    counts = {
        "rows of full text belong to no item": count_strays(database),
        "terms of full text belong to no item": database.integer(STATEMENTS["count_stray_instances"]),
    }
    if read_state(database).startswith("on "):
        counts["items are missing in full text"] = database.integer(STATEMENTS["count_missing_text"])
    return [f"{number} {what}: set full text off and on again" for what, number in counts.items() if number]
