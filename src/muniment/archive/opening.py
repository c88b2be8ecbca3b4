"""From a URL to an opened archive: the one place that knows every storage adapter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from muniment.adapters.memory import MemoryStorage
from muniment.adapters.sqlite import SqliteStorage
from muniment.adapters.tokenizer import tokenize
from muniment.archive.archive import Archive
from muniment.errors import UnsupportedError, UsageError
from muniment.ports.clock import Clock, Entropy, system_clock, system_entropy
from muniment.ports.storage import Storage


def open_archive(
    url: str | os.PathLike[str],
    *,
    create: bool = True,
    durability: Literal["full", "normal"] = "full",
    busy_timeout_s: float = 30.0,
    clock: Clock = system_clock,
    entropy: Entropy = system_entropy,
) -> Archive:
    """Open an archive, creating it unless `create=False`.

    `url` is a path, `sqlite:///relative.db`, `sqlite:////absolute.db`, `":memory:"` for a private database that dies
    with the process, or `memory://` for the reference implementation without SQL.

    `durability="normal"` never waits for the disk: a power cut may take the last writes, a crash of the process none.

    Raises: StorageUnavailableError when there is nothing to open or the folder cannot be written; StorageError for a
            file that is not an archive; SchemaMismatchError for one of a newer version; IntegrityError for a damaged
            one; UnsupportedError for another kind of URL. A file that is refused is left as it was.
    """
    if durability not in ("full", "normal"):
        raise UsageError(f"durability is 'full' or 'normal', not {durability!r}")
    storage = _open_storage(url, create=create, durability=durability, busy_timeout_s=busy_timeout_s)
    return Archive(storage, clock=clock, entropy=entropy, tokenizer=tokenize)


def _open_storage(
    url: str | os.PathLike[str], *, create: bool, durability: Literal["full", "normal"], busy_timeout_s: float
) -> Storage:
    text = os.fspath(url)
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # os.fspath lets bytes through
        raise UsageError("an archive's path or URL is text, not bytes")
    if not text or "\x00" in text:
        raise UsageError("an archive needs a path or a URL, without U+0000")
    scheme, separator, rest = text.partition("://")
    if not separator:
        path = text
    elif scheme == "memory":
        return MemoryStorage()
    elif scheme == "sqlite":
        path = _path_of(text, rest)
    else:
        raise UnsupportedError(f"{scheme}:// is not a storage that this installation knows: use a path or sqlite:///…")
    if path == ":memory:":
        return SqliteStorage(path, durability=durability, busy_timeout_s=busy_timeout_s)
    return SqliteStorage(Path(path).expanduser(), create=create, durability=durability, busy_timeout_s=busy_timeout_s)


def _path_of(url: str, rest: str) -> str:
    """The path of a SQLite URL: after three slashes relative, after four absolute."""
    if not rest.startswith("/") or rest == "/":
        raise UsageError(f"{url!r} is not a SQLite URL: write sqlite:///relative.db or sqlite:////absolute.db")
    return unquote(rest[1:])
