"""The portable contract on a store of 10,000 entries: recall, and loading and saving it as a file and as a scope.

python -m bench portable --entries 10000
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import muniment
from bench.report import Report
from muniment.portable import (
    ArchiveMemoryPort,
    FileMemoryPort,
    MemoryCategory,
    MemoryEntry,
    MemoryPort,
    MemoryStore,
    recall,
)

RUNS = 9


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench portable", description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    options = parser.parse_args(arguments)
    report = Report("portable", f"python -m bench portable --entries {options.entries}")
    store = build_store(options.entries)
    print(f"a store of {options.entries:,} entries")
    query = "which warehouse does the customer prefer for parcels"
    assert recall(store, query, 10)
    report.add("recall, every entry looked at, median", median_ms(lambda: recall(store, query, 10)), "ms", below=20)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("store.json", "store.yaml"):
            measure(report, f"file, {name.partition('.')[2]}", FileMemoryPort(Path(folder) / name), store, below=200)
        with muniment.open(Path(folder) / "archive.db") as archive:
            port = ArchiveMemoryPort(archive.memory("user", tenant="bench"))
            port.load()
            started = perf_counter()
            port.save(store)
            report.add("scope, first save of all", (perf_counter() - started) * 1_000, "ms")
            measure(report, "scope", port, store, below=None)
    report.write()
    return 0


def build_store(num_entries: int) -> MemoryStore:
    """Entries of three tiers that all share a word with the query, so that every one is scored."""
    tiers = list(MemoryCategory)
    return MemoryStore(
        [
            MemoryEntry(
                f"customer {number} prefers warehouse {number % 97} for parcels of week {number % 53}",
                tiers[number % 3],
                created_at="2026-01-01T00:00:00Z",
                tags=(f"t{number}",),
            )
            for number in range(num_entries)
        ]
    )


def measure(report: Report, name: str, port: MemoryPort, store: MemoryStore, *, below: float | None) -> None:
    """Loading, and saving with one entry changed, which is how a host works."""
    port.save(store)
    current = port.load()
    assert current == store

    def save() -> None:
        current.entries[0] = replace(current.entries[0], content=f"changed {perf_counter()}")
        port.save(current)

    report.add(f"{name}: save with one change, median", median_ms(save), "ms", below=below)
    report.add(f"{name}: load, median", median_ms(port.load), "ms", below=below)


def median_ms(work: Callable[[], object]) -> float:
    """The median of some runs, in milliseconds."""
    times: list[float] = []
    for _ in range(RUNS):
        started = perf_counter()
        work()
        times.append(perf_counter() - started)
    return statistics.median(times) * 1_000
