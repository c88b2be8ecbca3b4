"""Where a whole store lives: the port of two methods, and the adapter for one file."""

from __future__ import annotations

import errno
import hashlib
import math
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, cast, runtime_checkable

from muniment.errors import (
    ConflictError,
    LimitExceededError,
    StorageBusyError,
    StorageFullError,
    StorageUnavailableError,
    UsageError,
)
from muniment.portable import files, json_text
from muniment.portable.store import MemoryStore, TextForm, check_known_keys, check_store, yaml_form

STORE_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of a store's file, checked at load and at save: a whole store is held in memory several times over."""

_ABSENT: Final = "absent"
"""The version of a file that is not there."""

_FULL: Final = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})
_NOT_A_FILE: Final = (FileExistsError, IsADirectoryError, NotADirectoryError)


@runtime_checkable
class MemoryPort(Protocol):
    """Where a whole store is loaded from and saved to.

    The laws, each proved on every adapter by `muniment.testing.portable`:

    1. A port that holds nothing loads an empty store. (`empty_place_loads_empty_store`)
    2. `load` after `save(s)`, through this port or through another one on the same place, equals `s`, whatever `s` is:
       empty contents, equal entries twice, None against `()` tags, any order. (`load_after_save_is_identity`)
    3. What `load` returned is the caller's: changing it changes nothing in the place or the port, and a later change of
       a saved store is not seen by the place. (`stores_are_not_shared`)
    4. `save` over what another writer changed since this port last loaded or saved is a ConflictError, and nothing is
       written. (`second_writer_conflicts`)
    5. `save` over something that this port never loaded is the same conflict. (`unseen_place_conflicts`)
    6. After a conflict, `load` and `save` go through. (`reload_after_conflict`)
    """

    def load(self) -> MemoryStore: ...
    def save(self, store: MemoryStore) -> None: ...


class FileMemoryPort:
    """One store in one file: `.json`, `.yaml` or `.yml`.

    A save writes a temporary file beside the target, syncs it, replaces the target in one step and syncs the folder,
    all under a lock on `NAME.lock`. So a reader sees the old file or the new one and never a part, and a process that
    is killed leaves the old file, and a lock that died with it. The lock file stays; it is empty.

    A file that cannot be loaded without loss is never overwritten: not one that is broken, nor one with keys outside
    the contract.

    Raises: UsageError for another suffix or a bad `lock_timeout_s`; UnsupportedError for YAML without the extra `yaml`.
    """

    def __init__(self, path: str | Path, *, lock_timeout_s: float = 5.0) -> None:
        self._path = Path(path)
        self._form = _find_form(self._path)
        # Where a symbolic link points to, so that a save replaces the file and not the link, under one lock for both.
        self._target = Path(os.path.realpath(self._path))
        self._lock_timeout_s = _check_timeout(lock_timeout_s)
        self._seen: str | None = None
        """Version of the file that this port last loaded or saved; None before that."""

    def load(self) -> MemoryStore:
        """The store of the file; an empty one if there is no file.

        Raises: UsageError naming path and place for a file that is not a store; LimitExceededError above
                64 MiB; StorageUnavailableError when it cannot be read.
        """
        content = self._read()
        store = MemoryStore() if content is None else self._parse(content)
        self._seen = _version(content)
        return store

    def save(self, store: MemoryStore) -> None:
        """Make the file hold this store, if it still holds what this port last loaded or saved.

        Raises: ConflictError with the expected and the actual version, and as `load` for a file that is not a store;
                StorageBusyError when another writer holds the lock for longer than `lock_timeout_s`;
                StorageFullError and StorageUnavailableError. In each case the file is what it was.
        """
        content = self._form.render(check_store(store).save()).encode()
        self._check_size(len(content))
        with self._translated("written"):
            files.make_folder(self._target.parent)
            with files.locked(self._target.with_name(self._target.name + ".lock"), self._lock_timeout_s) as is_locked:
                if not is_locked:
                    raise StorageBusyError(f"{self._path}: another writer held its lock for {self._lock_timeout_s:g} s")
                self._check_unchanged()
                files.replace_file(self._target, content)
                self._seen = _version(content)

    def _read(self) -> bytes | None:
        with self._translated("read"):
            try:
                with open(self._target, "rb") as file:
                    self._check_size(os.fstat(file.fileno()).st_size)
                    content = file.read(STORE_BYTES_MAX + 1)
            except FileNotFoundError:
                return None
        self._check_size(len(content))  # another program may append while we read
        return content

    def _parse(self, content: bytes) -> MemoryStore:
        try:
            saved = self._form.parse(content.decode())
            check_known_keys(saved)
            return MemoryStore.load(cast("dict[str, object]", saved))
        except UnicodeDecodeError as error:
            raise UsageError(f"{self._path}: store: not UTF-8 at byte {error.start}") from None
        except UsageError as error:
            raise UsageError(f"{self._path}: {error.message}") from None

    def _check_unchanged(self) -> None:
        content = self._read()
        actual = _version(content)
        if actual == self._seen or (content is None and self._seen is None):
            return
        if content is not None:
            self._parse(content)  # a broken file is for the caller to mend, not a change to load and save over
        raise ConflictError(
            f"{self._path} is not what this port last loaded or saved: load it again and repeat the change",
            expected=self._seen,
            actual=actual,
        )

    def _check_size(self, given: int) -> None:
        if given > STORE_BYTES_MAX:
            raise LimitExceededError(f"{self._path}: the store", limit=STORE_BYTES_MAX, given=given, unit="bytes")

    @contextmanager
    def _translated(self, done: str) -> Generator[None]:
        """The one place where an error of the operating system becomes one of ours."""
        try:
            yield
        except _NOT_A_FILE as error:
            raise UsageError(f"{self._path}: is not the path of a file in a folder") from error
        except OSError as error:
            kind = StorageFullError if error.errno in _FULL else StorageUnavailableError
            raise kind(f"{self._path}: cannot be {done}: {error.strerror or error}") from error


def _version(content: bytes | None) -> str:
    """Names a state of the file: the SHA-256 of its bytes, or `absent`."""
    return _ABSENT if content is None else hashlib.sha256(content).hexdigest()


def _find_form(path: Path) -> TextForm:
    if path.suffix == ".json":
        return json_text
    if path.suffix in (".yaml", ".yml"):
        return yaml_form()
    raise UsageError(f"{path}: a store's file ends in .json, .yaml or .yml, not in {path.suffix!r}")


def _check_timeout(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise UsageError(f"lock_timeout_s must be a number of seconds, 0 or more, not {value!r}")
    return value
