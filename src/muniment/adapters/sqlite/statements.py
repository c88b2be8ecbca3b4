"""The SQL of this adapter, read from its files: statements by name, the schema, the migrations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

_FOLDER: Final = files("muniment.adapters.sqlite") / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def _read_statements() -> Mapping[str, str]:
    parts = _NAME.split((_FOLDER / "statements.sql").read_text("utf-8"))
    return {name: sql.strip().removesuffix(";") for name, sql in zip(parts[1::2], parts[2::2], strict=True)}


STATEMENTS: Final = _read_statements()
"""Each statement by its name."""

SCHEMA: Final = (_FOLDER / "schema.sql").read_text("utf-8")
"""Everything a new archive is made of."""

FULLTEXT_TABLES: Final = (_FOLDER / "fulltext.sql").read_text("utf-8")
"""What full text is made of."""

DROP_FULLTEXT: Final = (_FOLDER / "drop_fulltext.sql").read_text("utf-8")
"""Takes it away again, whatever of it is there."""


def read_migrations() -> Mapping[int, str]:
    """The script that leads to a schema version from the one before, by the version it leads to."""
    folder = _FOLDER / "migrations"
    if not folder.is_dir():
        return {}
    return {
        int(entry.name.removesuffix(".sql")): entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".sql")
    }
