"""Chroma on disk: one collection, the scope as metadata, the search filtered by it."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import chromadb
from chromadb.config import Settings
from exchange import LIMIT, Task, run

_BATCH = 5_000


def begin(task: Task, folder: Path) -> Callable[[int], list[int]]:
    client = chromadb.PersistentClient(str(folder / "chroma"), settings=Settings(anonymized_telemetry=False))
    collection = client.create_collection("bench", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    numbers = range(len(task.texts))
    for first in numbers[::_BATCH]:
        batch = numbers[first : first + _BATCH]
        collection.add(
            ids=[str(number) for number in batch],
            documents=[task.texts[number] for number in batch],
            embeddings=task.vectors[first : first + _BATCH],
            metadatas=[{"scope": task.scopes[number]} for number in batch],
        )

    def ask(number: int) -> list[int]:
        answer = collection.query(
            query_embeddings=[task.query_vectors[number]],
            n_results=LIMIT,
            where={"scope": task.query_scopes[number]},
            include=["documents", "distances"],
        )
        return [int(one) for one in answer["ids"][0]]

    return ask


if __name__ == "__main__":
    run("chromadb", begin)
