"""The audit contract on every storage, and on a file by its path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment.archive import Archive
from muniment.audit import Memory
from muniment.testing.audit import AuditContract, MemoryOf, Opener, PersistentAuditContract


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


class TestAuditOnAFile(PersistentAuditContract):
    @pytest.fixture
    def opener(self, path: Path) -> Opener:
        return lambda clock: muniment.open(path, clock=clock)


class TestAuditByPath(PersistentAuditContract):
    """`Memory(path)`, each memory with connections of its own."""

    @pytest.fixture
    def opener(self, path: Path) -> Opener:
        return lambda clock: muniment.open(path, durability="normal", clock=clock)

    @pytest.fixture
    def memory_of(self, path: Path, archive: Archive) -> Iterator[MemoryOf]:
        opened: list[Memory] = []

        def open_memory(subject: str) -> Memory:
            opened.append(Memory(path, subject=subject))
            return opened[-1]

        yield open_memory
        for memory in opened:
            memory.close()


class TestAuditInMemory(AuditContract):
    @pytest.fixture
    def opener(self) -> Opener:
        return lambda clock: muniment.open(":memory:", clock=clock)


class TestAuditOnTheOracle(AuditContract):
    @pytest.fixture
    def opener(self) -> Opener:
        return lambda clock: muniment.open("memory://", clock=clock)
