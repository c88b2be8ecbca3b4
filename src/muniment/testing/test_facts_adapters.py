"""The facts suite on every adapter of this package: `python -m pytest --pyargs muniment.testing`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import muniment
from muniment.facts import ArchiveMemory, MemoryStore, StoreBackedMemory
from muniment.ports.clock import Clock
from muniment.testing.facts import FactsContract, Opener


def opener_at(url: Callable[[], str | Path]) -> Opener:
    """Opens the facts in an archive at that place."""

    @asynccontextmanager
    async def open_store(clock: Clock) -> AsyncGenerator[MemoryStore]:
        # Nothing here is about a power cut, so nothing waits for the disk.
        with muniment.open(url(), durability="normal", clock=clock) as archive:
            yield ArchiveMemory(archive)

    return open_store


class TestStoreBackedMemory(FactsContract):
    adapter = StoreBackedMemory

    @pytest.fixture
    def opener(self) -> Opener:
        @asynccontextmanager
        async def open_store(clock: Clock) -> AsyncGenerator[MemoryStore]:
            yield StoreBackedMemory(clock=clock)

        return open_store


class TestArchiveMemoryOnTheOracle(FactsContract):
    adapter = ArchiveMemory

    @pytest.fixture
    def opener(self) -> Opener:
        return opener_at(lambda: "memory://")


class TestArchiveMemoryInMemory(FactsContract):
    adapter = ArchiveMemory

    @pytest.fixture
    def opener(self) -> Opener:
        return opener_at(lambda: ":memory:")


class TestArchiveMemoryOnAFile(FactsContract):
    adapter = ArchiveMemory

    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return opener_at(lambda: tmp_path / "archive.db")
