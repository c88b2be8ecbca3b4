"""From a URL to an opened archive: the one place that knows every storage adapter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

from muniment.adapters.embed import open_embedder
from muniment.adapters.embed.function import EmbeddingFunction
from muniment.adapters.memory import MemoryStorage
from muniment.adapters.sqlite import SqliteStorage
from muniment.adapters.tokenizer import tokenize
from muniment.archive.archive import Archive
from muniment.archive.vectors import OnEmbedError
from muniment.errors import UnsupportedError, UsageError
from muniment.ports.clock import Clock, Entropy, system_clock, system_entropy
from muniment.ports.embedder import Embedder
from muniment.ports.storage import Storage

READ_AUDIT: Final = "read_audit"
"""The setting that says whether reads are recorded."""


def open_archive(
    url: str | os.PathLike[str],
    *,
    create: bool = True,
    durability: Literal["full", "normal"] = "full",
    busy_timeout_s: float = 30.0,
    embedder: Embedder | EmbeddingFunction | str | None = None,
    on_embed_error: OnEmbedError = "raise",
    read_audit: Literal["on", "off"] | None = None,
    fulltext: bool | None = None,
    clock: Clock = system_clock,
    entropy: Entropy = system_entropy,
) -> Archive:
    """Open an archive, creating it unless `create=False`.

    `url` is a path, `sqlite:///relative.db`, `sqlite:////absolute.db`, `":memory:"` for a private database that dies
    with the process, or `memory://` for the reference implementation without SQL.

    `durability="normal"` never waits for the disk: a power cut may take the last writes, a crash of the process none.

    `embedder` turns texts into vectors: an `Embedder`, a function of texts, `"local"` (a small static model, from the
    `local` extra) or `"minilm"` (from the `onnx` extra); without one, search is by words. When it fails, an addition
    fails, unless `on_embed_error="keyword"`: then the item is stored without a vector until `reindex` makes one.

    `read_audit="off"` stops recording reads; the archive's settings say so, and it stays off until it is opened with
    "on".

    `fulltext=True` keeps an index of words over all scopes, which makes searches of a whole tenant fast and changes
    nothing that they find; `False` drops it, `None` leaves it as it is. It is off in a new archive. What is missing in
    it is indexed here, which takes about 60 µs an item.

    Raises: StorageUnavailableError when there is nothing to open or the folder cannot be written; StorageError for a
            file that is not an archive; SchemaMismatchError for one of a newer version; IntegrityError for a damaged
            one; UnsupportedError for another kind of URL. A file that is refused is left as it was.
    """
    if durability not in ("full", "normal"):
        raise UsageError(f"durability is 'full' or 'normal', not {durability!r}")
    if on_embed_error not in ("raise", "keyword"):
        raise UsageError(f"on_embed_error is 'raise' or 'keyword', not {on_embed_error!r}")
    if fulltext not in (None, True, False):
        raise UsageError(f"fulltext is True, False or None, not {fulltext!r}")
    storage = _open_storage(url, create=create, durability=durability, busy_timeout_s=busy_timeout_s)
    archive = Archive(
        storage,
        clock=clock,
        entropy=entropy,
        tokenizer=tokenize,
        embedder=None if embedder is None else open_embedder(embedder),
        on_embed_error=on_embed_error,
        records_reads=_keep_read_audit(storage, read_audit) == "on",
    )
    try:
        archive.set_fulltext(archive.has_fulltext if fulltext is None else fulltext)
    except BaseException:
        archive.close()
        raise
    return archive


def _keep_read_audit(storage: Storage, wanted: str | None) -> str:
    stored = storage.find_settings().get(READ_AUDIT, "on")
    if wanted is None or wanted == stored:
        return stored
    if wanted not in ("on", "off"):
        raise UsageError(f"read_audit is 'on' or 'off', not {wanted!r}")
    storage.keep_setting(READ_AUDIT, wanted)
    return wanted


def _open_storage(
    url: str | os.PathLike[str], *, create: bool, durability: Literal["full", "normal"], busy_timeout_s: float
) -> Storage:
    if not isinstance(url, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"an archive's path or URL is text, not {type(url).__name__}")
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
    if "\x00" in path:
        raise UsageError(f"{text!r} names a path with U+0000")
    try:
        expanded = Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path!r}: {error}") from error
    return SqliteStorage(expanded, create=create, durability=durability, busy_timeout_s=busy_timeout_s)


def _path_of(url: str, rest: str) -> str:
    """The path of a SQLite URL: after three slashes relative, after four absolute."""
    if not rest.startswith("/") or rest == "/":
        raise UsageError(f"{url!r} is not a SQLite URL: write sqlite:///relative.db or sqlite:////absolute.db")
    return unquote(rest[1:])
