"""LangGraph's SQLite store with its vector index: a namespace per scope, the search inside that namespace."""

# pyright: reportMissingImports=false

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from exchange import LIMIT, Task, run
from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore

_BATCH = 1_000


def begin(task: Task, folder: Path) -> Callable[[int], list[int]]:
    vectors = dict(zip(task.texts, task.vectors, strict=True))
    vectors |= dict(zip(task.queries, task.query_vectors, strict=True))

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [vectors[text].tolist() for text in texts]

    connection = sqlite3.connect(folder / "langgraph.db", check_same_thread=False, isolation_level=None)
    store = SqliteStore(connection, index={"dims": task.vectors.shape[1], "embed": embed, "text_fields": ["text"]})
    store.setup()
    numbers = range(len(task.texts))
    for first in numbers[::_BATCH]:
        store.batch(
            [
                PutOp(("bench", task.scopes[number]), str(number), {"text": task.texts[number]})
                for number in numbers[first : first + _BATCH]
            ]
        )

    def ask(number: int) -> list[int]:
        items = store.search(("bench", task.query_scopes[number]), query=task.queries[number], limit=LIMIT)
        return [int(item.key) for item in items]

    return ask


if __name__ == "__main__":
    run("langgraph-checkpoint-sqlite", begin)
