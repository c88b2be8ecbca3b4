"""The laws of the storage port on every adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from muniment.adapters.memory import MemoryStorage
from muniment.adapters.sqlite import SqliteStorage
from muniment.testing.storage import Opener, PersistentStorageContract, StorageContract


class TestMemoryStorage(StorageContract):
    adapter = MemoryStorage

    @pytest.fixture
    def opener(self) -> Opener:
        return MemoryStorage


class TestSqliteStorage(PersistentStorageContract):
    adapter = SqliteStorage

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "archive.db"

    @pytest.fixture
    def opener(self, path: Path) -> Opener:
        return partial(SqliteStorage, path)

    @pytest.fixture
    def files(self, path: Path) -> Callable[[], Iterable[Path]]:
        return lambda: sorted(path.parent.iterdir())

    @pytest.fixture
    def damage(self, path: Path) -> Callable[[], None]:
        def overwrite() -> None:
            path.write_bytes(b"no database at all" * 1000)

        return overwrite


class TestSqliteStorageInMemory(StorageContract):
    adapter = SqliteStorage
    readers_wait = True

    @pytest.fixture
    def opener(self) -> Opener:
        return partial(SqliteStorage, ":memory:")
