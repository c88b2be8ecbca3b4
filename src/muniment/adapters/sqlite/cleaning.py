"""Leaving no byte of what was erased: rewrite the file, empty its write-ahead log, and look.

`secure_delete` zeroes what a delete frees, but page splits leave copies of rows in the gaps of other pages, so the file
is rewritten from its live rows. Only then can the log be truncated, and only if no reader still needs it.

Source: `measurements.md`, "Deletion that leaves no byte"; `engine.md` E21.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from muniment.adapters.sqlite import fulltext
from muniment.adapters.sqlite.connection import Database
from muniment.adapters.sqlite.statements import STATEMENTS
from muniment.errors import StorageBusyError, StorageError, StorageFullError
from muniment.model.rows import CleanOutcome, PendingClean

_SEARCH_BYTES_MAX: Final = 8 * 1024**3
"""Bytes compared while searching for markers: about 8 s. Of more markers than that pays for, a spread is searched."""
_READ_BYTES: Final = 16 * 1024**2


def files_of(path: str | None) -> list[Path]:
    """The files of an archive that exist; none for a private database."""
    if path is None:
        return []
    return [file for suffix in ("", "-wal", "-shm") if (file := Path(path + suffix)).exists()]


def read_pending(database: Database) -> list[PendingClean]:
    """The erasures that wait for a clean step, oldest first."""
    return [PendingClean._make(row) for row in database.rows(STATEMENTS["find_pending"])]


def clean_file(database: Database, path: str | None, *, markers: Sequence[bytes], wait_s: float) -> CleanOutcome:
    """Run the clean step on a file; the writer connection is handed in, outside a transaction."""
    pending = read_pending(database)
    size_before = _size_of(path)
    blocked = _rewrite(database) or _empty_log(database, wait_s)
    orphans = database.integer(STATEMENTS["count_orphans"]) + fulltext.count_strays(database)
    free_pages = database.integer("PRAGMA freelist_count")
    searched = _affordable(markers, _size_of(path))
    hits = _search(files_of(path), searched)
    if blocked is None and (hits or orphans or free_pages):
        blocked = f"{hits} markers, {orphans} orphan rows and {free_pages} free pages are left in the files"
    if blocked is None:
        database.run_many(STATEMENTS["complete_clean"], [(row.receipt_id,) for row in pending])
    return CleanOutcome(
        completed=tuple(pending) if blocked is None else (),
        blocked=blocked,
        markers_searched=len(searched),
        residue_hits=hits,
        orphan_rows=orphans,
        free_pages=free_pages,
        size_before=size_before,
        size_after=_size_of(path),
        copies=() if path is None else _copies_of(Path(path)),
    )


def _copies_of(path: Path) -> tuple[str, ...]:
    return tuple(str(copy) for copy in sorted(path.parent.glob(f"{path.name}.schema-*.backup*")))


def _rewrite(database: Database) -> str | None:
    """Write the live rows anew; why that could not be done, if it could not."""
    try:
        fulltext.optimize(database)
        database.run("VACUUM")
    except (StorageBusyError, StorageFullError) as error:
        return f"the file could not be rewritten: {error}"
    return None


def _empty_log(database: Database, wait_s: float) -> str | None:
    """Fold the log into the file and cut it to nothing; why that could not be done, if it could not.

    A reader that holds an older view makes SQLite answer "busy" in the row and raise nothing, so the row is read.
    """
    with database.waiting(wait_s):
        try:
            row = database.row("PRAGMA wal_checkpoint(TRUNCATE)")
        except StorageError as error:
            return f"the write-ahead log could not be emptied: {error}"
    if row is None or row[0] != 0:
        return "a reader holds an older view of the archive, so its write-ahead log cannot be emptied yet"
    return None


def _size_of(path: str | None) -> int:
    return sum(file.stat().st_size for file in files_of(path))


def _affordable(markers: Sequence[bytes], size: int) -> list[bytes]:
    unique = [marker for marker in dict.fromkeys(markers) if marker]
    most = max(1, _SEARCH_BYTES_MAX // max(1, size))
    return unique if len(unique) <= most else unique[:: -(-len(unique) // most)]


def _search(files: Sequence[Path], markers: Sequence[bytes]) -> int:
    """How many of the markers stand somewhere in the files."""
    if not markers:
        return 0
    overlap = max(map(len, markers)) - 1
    found: set[bytes] = set()
    for file in files:
        before = b""
        with file.open("rb") as opened:
            while chunk := opened.read(_READ_BYTES):
                window = before + chunk
                found.update(marker for marker in markers if marker in window)
                before = window[-overlap:] if overlap else b""
    return len(found)
