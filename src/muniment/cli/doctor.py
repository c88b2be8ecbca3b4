"""`muniment doctor`: whether this installation and an archive are in order."""

from __future__ import annotations

import os
import platform
import shutil
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

from muniment import __version__
from muniment.archive import open_archive
from muniment.cli import exits
from muniment.cli.options import ArchiveOption, JsonOption
from muniment.cli.output import Output
from muniment.cli.text import count_of, size_of
from muniment.errors import MunimentError

Status = Literal["ok", "note", "bad"]

_STYLES: Final = {"ok": "green", "note": "yellow", "bad": "bold red"}
_DISTRIBUTION: Final = "apsw-sqlite3mc"
_ROOM_BYTES: Final = 100_000_000
"""Free bytes below which a disk is said to be nearly full."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    status: Status
    detail: str


def doctor(archive: ArchiveOption = None, as_json: JsonOption = False) -> int:
    """Check this installation, and an archive and its files.

    It works without an archive too; nothing is changed or created. Plain lines have the fields name, status (ok,
    note or bad) and detail. The exit code is 1 if anything is bad.
    """
    out = Output(as_json=as_json)
    worst: Status = "ok"
    for finding in _examine(archive):
        _print(out, finding)
        worst = "bad" if finding.status == "bad" else worst
    return exits.PROBLEM if worst == "bad" else exits.OK


def _print(out: Output, finding: Finding) -> None:
    if out.as_json:
        out.json({"name": finding.name, "status": finding.status, "detail": finding.detail})
    elif out.watched:
        out.line((f"{finding.status:<5}", _STYLES[finding.status]), (f"{finding.name:<12}", "dim"), finding.detail)
    else:
        out.record(finding.name, finding.status, finding.detail)


def _examine(archive: str | None) -> Iterator[Finding]:
    yield from _examine_installation()
    if not archive:
        yield Finding("archive", "note", "none named: give --archive PATH to have one examined")
        return
    path = _path_of(archive)
    yield from _examine_files(path)
    if path.is_file():
        yield from _examine_archive(path)


def _path_of(archive: str) -> Path:
    scheme, separator, rest = archive.partition("sqlite:///")
    return Path(unquote(rest) if separator and not scheme else archive).expanduser().absolute()


# --- The installation -------------------------------------------------------------------------------------------------


def _examine_installation() -> Iterator[Finding]:
    # This names the storage's technology, as nothing else above the adapters does: whoever asks for help needs it.
    from muniment.adapters.sqlite.connection import SQLITE_VERSION_MIN

    yield Finding("muniment", "ok", __version__)
    yield Finding("python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield Finding("platform", "ok", platform.platform())
    yield Finding("apsw", "ok", f"{metadata.version(_DISTRIBUTION)} ({_DISTRIBUTION})")
    found = _sqlite_version()
    wanted = ".".join(map(str, SQLITE_VERSION_MIN))
    good = tuple(map(int, found.split("."))) >= SQLITE_VERSION_MIN
    yield Finding("sqlite", "ok" if good else "bad", f"{found} ({wanted} or newer is needed)")


def _sqlite_version() -> str:
    import apsw

    return apsw.sqlite_lib_version()


# --- An archive -------------------------------------------------------------------------------------------------------


def _examine_files(path: Path) -> Iterator[Finding]:
    """The file, what lies beside it, and its folder; before it is opened, which may fold the log in."""
    if not path.exists():
        yield Finding("archive", "bad", f"{path} does not exist")
    elif not path.is_file():
        yield Finding("archive", "bad", f"{path} is not a file")
    else:
        rights = [name for name, mode in (("readable", os.R_OK), ("writable", os.W_OK)) if os.access(path, mode)]
        whole: Status = "ok" if len(rights) == 2 else "bad"
        yield Finding(
            "archive", whole, f"{path}, {size_of(path.stat().st_size)}, {' and '.join(rights) or 'no access'}"
        )
        wal = Path(f"{path}-wal")
        yield Finding("wal", "ok", f"{size_of(wal.stat().st_size)} not folded in yet" if wal.exists() else "none")
    yield from _examine_folder(path.parent)


def _examine_folder(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        yield Finding("folder", "bad", f"{folder} does not exist")
        return
    writable = os.access(folder, os.W_OK | os.X_OK)
    detail = f"{folder} is {'writable' if writable else 'not writable, and the log beside the archive must be'}"
    yield Finding("folder", "ok" if writable else "bad", detail)
    free = shutil.disk_usage(folder).free
    yield Finding("disk", "ok" if free > _ROOM_BYTES else "note", f"{size_of(free)} free")


def _examine_archive(path: Path) -> Iterator[Finding]:
    schema = _examine_schema(path)
    yield schema
    if schema.status != "ok":
        return  # opening it would be refused, or would upgrade it
    try:
        with open_archive(path, create=False) as opened:
            counts = opened.stats()
            yield Finding("contents", "ok", f"{count_of(counts.events, 'event')} in {count_of(counts.scopes, 'scope')}")
            yield Finding("settings", "ok", _list(opened.storage.find_settings()) or "all at their defaults")
            yield _examine_pending(len(opened.storage.find_pending()))
            problems = opened.storage.check()
    except MunimentError as error:
        yield Finding("opening", "bad", str(error))
        return
    for problem in problems:
        yield Finding("integrity", "bad", problem)
    if not problems:
        yield Finding("integrity", "ok", "the file is in order (`muniment verify` checks the ledgers)")


def _examine_schema(path: Path) -> Finding:
    """What the file says it is, from its header and without opening it."""
    from muniment.adapters.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION

    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
    except OSError as error:
        return Finding("schema", "bad", f"cannot be read: {error.strerror}")
    if len(header) < _HEADER.size:
        return Finding("schema", "bad", "not an archive: the file is too short to be one")
    version, application_id = _HEADER.unpack(header)
    if application_id != APPLICATION_ID:
        return Finding("schema", "bad", "not an archive: another program's file")
    if version == SCHEMA_VERSION:
        return Finding("schema", "ok", f"{version}, the one this version works with")
    if version < SCHEMA_VERSION:
        return Finding("schema", "note", f"{version}: the next command upgrades it to {SCHEMA_VERSION}, with a backup")
    return Finding("schema", "bad", f"{version}, newer than {SCHEMA_VERSION}: pip install --upgrade muniment")


_HEADER: Final = struct.Struct(">60xI4xI28x")
"""The schema version and the application's number in a SQLite header of 100 bytes."""


def _examine_pending(number: int) -> Finding:
    if not number:
        return Finding("erasures", "ok", "none is waiting to be cleaned")
    return Finding("erasures", "note", f"{count_of(number, 'erasure')} unreachable, but not cleaned from the file yet")


def _list(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))
