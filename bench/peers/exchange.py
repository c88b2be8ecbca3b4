"""What `bench.search` and a peer's script tell each other through a folder and the script's standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

LIMIT = 10


@dataclass(frozen=True)
class Task:
    """Memories, each of a scope, and queries, each to one; vectors are ready made, so no model is in the times."""

    scopes: Sequence[str]
    texts: Sequence[str]
    vectors: NDArray[np.float32]
    query_scopes: Sequence[str]
    queries: Sequence[str]
    query_vectors: NDArray[np.float32]

    def write(self, folder: Path) -> None:
        names = ("scopes", "texts", "query_scopes", "queries")
        content = {name: getattr(self, name) for name in names}
        (folder / "task.json").write_text(json.dumps(content), encoding="utf-8")
        np.save(folder / "vectors.npy", self.vectors)
        np.save(folder / "query_vectors.npy", self.query_vectors)

    @classmethod
    def read(cls, folder: Path) -> Task:
        content = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        return cls(
            **content, vectors=np.load(folder / "vectors.npy"), query_vectors=np.load(folder / "query_vectors.npy")
        )


@dataclass(frozen=True)
class Outcome:
    """What a peer did."""

    package: str
    version: str
    load_s: float
    seconds: list[float]
    """Of each query, asked the second time."""
    found: list[list[int]]
    """Of each query, the numbers of the memories found, best first."""


def run(package: str, begin: Callable[[Task, Path], Callable[[int], list[int]]]) -> None:
    """Load, ask everything once, ask everything again with the clock on, and print the outcome.

    `begin` stores the task's memories and answers with a function from the number of a query to what it found.
    """
    folder = Path(sys.argv[1])
    task = Task.read(folder)
    started = perf_counter()
    ask = begin(task, folder)
    load_s = perf_counter() - started
    numbers = range(len(task.queries))
    found = [ask(number) for number in numbers]
    seconds: list[float] = []
    for number in numbers:
        started = perf_counter()
        ask(number)
        seconds.append(perf_counter() - started)
    print(json.dumps(asdict(Outcome(package, version(package), load_s, seconds, found))))
