"""The conformance suite of the service contract: subclass `ServiceContract`, say how a service is opened, run pytest.

```python
class TestServiceOnMyStorage(ServiceContract):
    adapter = ServiceMemory

    @pytest.fixture
    def opener(self) -> Opener:
        return partial(open_service, "my://storage", "acme")
```

Tests carry the number of the required test (`test_37_…`) or of the law (`test_s09_…`) that they prove; `test_edge_…`
are the contract's edge cases. `PersistentServiceContract` adds what takes an archive that can be opened again and
that other processes share. Put `pytest.register_assert_rewrite("muniment.testing.service")` into your conftest, and a
failure shows the values.

`run` runs tests of a suite without pytest, to show that a broken service fails the law that it breaks.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import FrozenInstanceError, asdict, replace
from datetime import UTC, datetime
from json import dumps, loads
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, Final, Protocol, cast
from unittest.mock import patch
from uuid import UUID, uuid4

import numpy as np
import pytest
from numpy.typing import NDArray

import muniment.service as service_module
from muniment import facts
from muniment.archive import open_archive
from muniment.core.fuse import fuse_reciprocal
from muniment.errors import (
    ClosedError,
    EmbeddingDimensionError,
    EmbeddingUnavailableError,
    LimitExceededError,
    NotFoundError,
    ProviderError,
    UsageError,
)
from muniment.model.event import Deletion, ErasedEvent, Erasure, Message, Note, Recall
from muniment.model.limits import QUERY_CHARS_MAX
from muniment.model.scope import Scope
from muniment.service import ANY, UNSCOPED, MemoryObject, MemoryService, SearchMode, ServiceMemory
from muniment.testing.guards import Report, find_tests
from muniment.testing.scenes import PATIENCE_S, run_together

KEYS: Final = [
    *("id", "ext_id", "content", "summary", "scope", "metadata", "categories"),
    *("created_at", "updated_at", "last_used_at", "usage_count", "source"),
]


class Opener(Protocol):
    """Opens a service; a persistent one, called again, on the same archive.

    The options are `embedding_fn` and `on_embed_error` of `SqliteMemory`.
    """

    def __call__(self, *, embedding_fn: Any = ..., on_embed_error: Any = ...) -> ServiceMemory: ...


class OwningMemory(ServiceMemory):
    """A service that closes its archive with itself."""

    def close(self) -> None:
        super().close()
        self.archive.close()


def open_service(url: str, tenant: str, *, embedding_fn: Any = None, on_embed_error: Any = "raise") -> ServiceMemory:
    """A service on an archive of its own; as a `partial` it is an opener that can be pickled."""
    archive = open_archive(url, durability="normal", embedder=embedding_fn, on_embed_error=on_embed_error)
    return OwningMemory(archive, tenant)


# --- Embedders --------------------------------------------------------------------------------------------------------

VOCABULARY: Final = ("alpha", "beta", "gamma", "delta", "epsilon")


def count_words(texts: list[str]) -> list[list[float]]:
    """Normalised counts of five words, so that a text's vector can be worked out by hand."""
    counts = [[float(text.split().count(word)) for word in VOCABULARY] for text in texts]
    lengths = [sum(number * number for number in row) ** 0.5 or 1.0 for row in counts]
    return [[number / length for number in row] for row, length in zip(counts, lengths, strict=True)]


def all_zeros(texts: list[str]) -> list[list[float]]:
    """The embedder of the seed's example."""
    return [[0.0] * 4 for _ in texts]


class Table:
    """The vector of each text as it is written here; for any other text it fails, and while it is broken for all."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        self.vectors = dict(vectors)
        self.broken = False
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        if self.broken:
            raise RuntimeError("the model is down")
        return [list(self.vectors[text]) for text in texts]


class Named:
    """An embedder with a name, whose vectors say which model made them."""

    def __init__(self, name: str, first: float, dimension: int | None = 3) -> None:
        self.name = name
        self.dimension = dimension
        self._first = first

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        rows = [[self._first, float(len(text) % 7), float(text.count("a"))] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 3)


BAD_ANSWERS: Final[Mapping[str, Callable[[list[str]], Any]]] = {
    "too few vectors": lambda texts: [[1.0, 2.0]] * (len(texts) - 1),
    "too many vectors": lambda texts: [[1.0, 2.0]] * (len(texts) + 1),
    "empty vectors": lambda texts: [[] for _ in texts],
    "NaN": lambda texts: [[1.0, float("nan")] for _ in texts],
    "infinity": lambda texts: [[float("inf"), 1.0] for _ in texts],
    "no vectors": lambda texts: None,
    "no numbers": lambda texts: [["a", "b"] for _ in texts],
    "an error": lambda texts: 1 / 0,
}


# --- What the tests see -----------------------------------------------------------------------------------------------


def contents(memories: Iterable[MemoryObject]) -> list[str]:
    return [memory.content for memory in memories]


def ids(memories: Iterable[MemoryObject]) -> list[str]:
    return [memory.id for memory in memories]


def events_of(service: ServiceMemory, scope: str | None = None) -> list[Any]:
    """The ledger of one scope."""
    return list(service.archive.memory(scope, tenant=service.tenant).events())


def recalls_of(service: ServiceMemory, scope: str | None = None) -> list[Recall]:
    return [event for event in events_of(service, scope) if isinstance(event, Recall)]


def num_events(service: ServiceMemory) -> int:
    """Of all scopes."""
    return service.archive.stats().events


def scopes_of(service: ServiceMemory) -> set[str | None]:
    """The scopes that have a ledger."""
    return {info.scope.subject for info in service.archive.tenant(service.tenant).scopes() if info.scope is not None}


def vector_lengths(service: ServiceMemory, scope: str | None = None) -> list[int | None]:
    """Of each note that is stored in a scope, how long its vector is; None without one."""
    storage = service.archive.storage
    models = storage.find_models()
    with storage.snapshot(Scope(service.tenant, scope)) as view:
        if view is None:
            return []
        rows = view.read_index_rows(0, model_no=models[-1].model_no if models else None, limit=10_000)
    return [None if row.codes is None else len(row.codes) for row in rows]


def uses(memory: MemoryObject | None) -> tuple[int, float | None]:
    assert memory is not None, "the memory is not there"
    return memory.usage_count, memory.last_used_at


def present(memory: MemoryObject | None) -> MemoryObject:
    """The memory, where there must be one."""
    assert memory is not None, "the memory is not there"
    return memory


@contextmanager
def refused(service: ServiceMemory, error: type[Exception], *words: str) -> Generator[None]:
    """A call that raises exactly that error, which says these words, and that stores nothing."""
    before = num_events(service)
    with pytest.raises(error) as caught:
        yield
    assert num_events(service) == before, "something was stored"
    for word in words:
        assert word in str(caught.value)


# --- The suite --------------------------------------------------------------------------------------------------------


class ServiceContract:
    """Every law of the contract that can be proved without opening the archive again."""

    adapter: ClassVar[type[MemoryService]]
    """The class that is proved, for the guard that wants each one proved."""

    @pytest.fixture
    def opener(self) -> Iterator[Opener]:
        raise NotImplementedError(f"{type(self).__name__} says how a service is opened by a fixture `opener`")

    @pytest.fixture
    def service(self, opener: Opener) -> Iterator[ServiceMemory]:
        service = opener()
        yield service
        service.close()

    # --- Store

    def test_01_add_and_find(self, service: ServiceMemory) -> None:
        text = "OCaml is a statically typed functional language"
        stored = service.add(text, summary="about OCaml", scope="project-a", categories=["language", "types"])
        (found,) = service.search("OCaml", scope="project-a")
        assert found == replace(stored, usage_count=1, last_used_at=found.last_used_at)
        assert (found.content, found.summary, found.scope) == (text, "about OCaml", "project-a")
        assert (found.categories, found.metadata, found.source) == (["language", "types"], {}, "manual")

    def test_02_a_search_stays_in_its_scope(self, service: ServiceMemory) -> None:
        service.add("alpha secret", scope="scope-a")
        service.add("beta secret", scope="scope-b")
        assert contents(service.search("secret", scope="scope-a")) == ["alpha secret"]
        assert contents(service.search("secret", scope="scope-b")) == ["beta secret"]

    def test_03_a_search_without_scope_finds_in_all(self, service: ServiceMemory) -> None:
        service.add("alpha secret", scope="a")
        service.add("beta secret", scope="b")
        assert sorted(contents(service.search("secret"))) == ["alpha secret", "beta secret"]

    def test_04_update_inserts(self, service: ServiceMemory) -> None:
        old = service.add("v1 content", summary="the first", categories=["x"], metadata={"a": 1}, source="agent")
        new = service.update(replace(old, content="v2 content"))
        assert contents(service.search("v1")) == ["v1 content"]
        assert contents(service.search("v2")) == ["v2 content"]
        assert contents(service.search("content")) == ["v1 content", "v2 content"]
        assert len(service.list_all()) == 2
        assert new.id != old.id
        assert new.metadata == {"a": 1, "revises": old.id}
        assert old.metadata == {"a": 1}
        assert (new.summary, new.categories, new.source, new.ext_id) == ("the first", ["x"], "agent", None)
        assert new.created_at == old.created_at < new.updated_at
        assert (new.usage_count, new.last_used_at) == (0, None)

    def test_05_rarer_and_more_words_rank_first(self, service: ServiceMemory) -> None:
        for text in ("programming in Python is fun", "OCaml programming is fun", "cooking is fun"):
            service.add(text)
        found = contents(service.search("OCaml programming"))
        assert found == ["OCaml programming is fun", "programming in Python is fun"]

    def test_06_the_index_of_a_scope(self, service: ServiceMemory) -> None:
        first = service.add("long text one", summary="First note", scope="proj", categories=["a", "b"])
        second = service.add("long text two", summary="Second note", scope="proj")
        service.add("elsewhere", summary="Not shown", scope="other")
        assert service.render_index(scope="proj") == (
            f"- {first.id} [proj] (a, b) — First note\n- {second.id} [proj] — Second note\n"
        )

    def test_07_a_deleted_memory_is_out_of_sight_and_in_the_ledger(self, service: ServiceMemory) -> None:
        stored = service.add("the old plan")
        assert contents(service.search("plan")) == ["the old plan"]
        receipt = service.delete(stored.id, reason="obsolete")
        assert (receipt.action, receipt.state, receipt.targets) == ("delete", "hidden", (UUID(stored.id),))
        assert (receipt.reason, receipt.count, receipt.whole_scope) == ("obsolete", 1, False)
        assert type(receipt).from_json(receipt.to_json()) == receipt
        assert service.search("plan") == service.list_all() == []
        assert service.get(stored.id) is None
        assert service.render_index() == ""
        (note, *_), deletions = events_of(service), [one for one in events_of(service) if isinstance(one, Deletion)]
        assert note.content == "the old plan"
        assert [(one.targets, one.reason) for one in deletions] == [((note.id,), "obsolete")]

    def test_08_deleting_nothing_is_not_found(self, service: ServiceMemory) -> None:
        stored = service.add("once")
        for erase in (False, True):
            with refused(service, NotFoundError):
                service.delete("nonexistent-id", erase=erase)
            with refused(service, NotFoundError):
                service.delete(str(uuid4()), scope="nowhere", erase=erase)
        assert "nowhere" not in scopes_of(service)
        service.delete(stored.id)
        for erase in (False, True):
            with refused(service, NotFoundError):
                service.delete(stored.id, erase=erase)

    def test_09_closed_is_closed(self, opener: Opener) -> None:
        service = opener()
        stored = service.add("something")
        service.close()
        service.close()
        calls: list[Callable[[], object]] = [
            lambda: service.add("x"),
            lambda: service.search("x"),
            lambda: service.hybrid_search("x", [1.0]),
            lambda: service.get("x"),
            lambda: service.update(stored),
            lambda: service.upsert(replace(stored, ext_id="k")),
            lambda: service.delete(stored.id),
            service.list_all,
            service.render_index,
            service.__enter__,
        ]
        for call in calls:
            with pytest.raises(ClosedError):
                call()

    def test_09_a_block_closes_it(self, opener: Opener) -> None:
        with opener() as service:
            service.add("something")
        with pytest.raises(ClosedError):
            service.list_all()

    def test_10_lists_of_one_scope_and_of_all(self, service: ServiceMemory) -> None:
        for text, scope in (("one", "a"), ("two", "b"), ("three", "a")):
            service.add(text, scope=scope)
        assert contents(service.list_all(scope="a")) == ["one", "three"]
        assert contents(service.list_all(scope="b")) == ["two"]
        assert len(service.list_all()) == 3

    def test_11_search_and_list_count_and_nothing_else_does(self, service: ServiceMemory) -> None:
        stored = service.add("count me")
        assert uses(stored) == (0, None)
        service.search("count")
        times, last = uses(service.get(stored.id))
        assert times == 1
        assert last is not None
        service.list_all()
        service.get(stored.id)
        service.render_index()
        assert uses(service.get(stored.id))[0] == 2
        service.hybrid_search("count", [1.0])
        assert uses(service.get(stored.id))[0] == 3

    def test_12_get_by_id(self, service: ServiceMemory) -> None:
        stored = service.add("find me", scope="a")
        assert service.get(stored.id) == service.get(stored.id, scope="a") == stored
        assert service.get(stored.id, scope="b") is None
        assert service.get(stored.id, scope=None) is None
        for unknown in (str(uuid4()), "unknown", "", stored.id.upper(), f"{{{stored.id}}}", stored.id.replace("-", "")):
            assert service.get(unknown) is None

    def test_13_upsert_replaces_under_its_stable_id(self, service: ServiceMemory) -> None:
        first = service.upsert(MemoryObject(content="v1", ext_id="plan:current", scope="s", categories=["a"]))
        second = service.upsert(MemoryObject(content="v2", ext_id="plan:current", scope="s", summary="two"))
        assert ids(service.list_all()) == [second.id]
        assert (first.ext_id, second.ext_id) == ("plan:current", "plan:current")
        assert first.id != second.id
        assert second.created_at == first.created_at == first.updated_at < second.updated_at
        assert (second.summary, second.categories) == ("two", [])
        assert service.get("plan:current") == present(service.get(second.id))
        assert service.get(first.id) is None

    def test_14_counters_come_from_the_stored_row(self, service: ServiceMemory) -> None:
        carrying = MemoryObject(content="plan one", ext_id="plan", usage_count=42, last_used_at=12345.6)
        assert uses(service.upsert(carrying)) == (0, None)
        (found,) = service.search("plan")
        again = service.upsert(MemoryObject(content="plan two", ext_id="plan"))
        assert uses(again) == uses(found) == uses(service.get("plan"))
        assert again.usage_count == 1
        assert again.last_used_at is not None

    def test_15_upsert_is_found_by_the_new_words_only(self, service: ServiceMemory) -> None:
        service.upsert(MemoryObject(content="about bananas", ext_id="k"))
        service.upsert(MemoryObject(content="about apples", ext_id="k"))
        assert contents(service.search("apples")) == ["about apples"]
        assert service.search("bananas") == []

    # --- Vectors and modes

    def test_17_an_added_memory_has_one_vector(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            service.add("alpha beta")
            assert vector_lengths(service) == [5]

    def test_18_without_an_embedder_it_has_none(self, service: ServiceMemory) -> None:
        service.add("alpha beta")
        assert vector_lengths(service) == [None]
        assert service.archive.storage.find_models() == []

    def test_19_a_failing_embedder_stores_nothing(self, opener: Opener) -> None:
        table = Table({"good": [1.0, 0.0], "late": [0.0, 1.0]})
        table.broken = True
        with closing(opener(embedding_fn=table)) as service:
            for write in (
                lambda: service.add("good"),
                lambda: service.update(MemoryObject(content="good")),
                lambda: service.upsert(MemoryObject(content="good", ext_id="k")),
            ):
                with refused(service, ProviderError, "the model is down"):
                    write()
            assert service.list_all() == []

    def test_19_or_a_memory_that_reindex_repairs(self, opener: Opener) -> None:
        broken = True

        def embed(texts: list[str]) -> list[list[float]]:
            if broken:
                raise RuntimeError("the model is down")
            return count_words(texts)

        with closing(opener(embedding_fn=embed, on_embed_error="keyword")) as service:
            service.add("alpha")
            assert vector_lengths(service) == [None]
            assert contents(service.search("alpha", mode="keyword_only")) == ["alpha"]
            broken = False
            assert service.search("alpha", mode="vector_only") == []
            assert service.archive.reindex() == 1
            assert vector_lengths(service) == [5]
            assert contents(service.search("alpha", mode="vector_only")) == ["alpha"]

    def test_20_a_keyword_search_does_not_embed(self, opener: Opener) -> None:
        table = Table({"alpha": [1.0, 0.0]})
        with closing(opener(embedding_fn=table)) as service:
            service.add("alpha")
            calls = len(table.calls)
            assert contents(service.search("alpha", mode="keyword_only")) == ["alpha"]
            assert len(table.calls) == calls
            service.search("alpha")
            assert table.calls[calls:] == [["alpha"]]

    def test_21_modes_without_an_embedder(self, service: ServiceMemory) -> None:
        service.add("alpha beta")
        for mode in (SearchMode.VECTOR_ONLY, SearchMode.HYBRID):
            for scope in (None, "a", UNSCOPED):
                with refused(service, EmbeddingUnavailableError):
                    service.search("alpha", mode=mode, scope=scope)
        assert contents(service.search("alpha", mode="auto")) == ["alpha beta"]

    def test_22_modes_when_the_embedder_fails(self, opener: Opener) -> None:
        for on_error, falls_back in (("raise", False), ("keyword", True)):
            table = Table({f"alpha {on_error}": [1.0, 0.0]})
            with closing(opener(embedding_fn=table, on_embed_error=on_error)) as service:
                service.add(f"alpha {on_error}", scope=on_error)
                table.broken = True
                for scope in (None, on_error):
                    for mode in ("hybrid", "vector_only"):
                        with refused(service, ProviderError, "the model is down"):
                            service.search(f"alpha {on_error}", mode=mode, scope=scope)
                    assert len(service.search(f"alpha {on_error}", mode="keyword_only", scope=scope)) >= 1
                    if falls_back:
                        assert contents(service.search(on_error, scope=scope)) == [f"alpha {on_error}"]
                    else:
                        with refused(service, ProviderError):
                            service.search(on_error, scope=scope)

    def test_23_the_default_mode_is_the_best_there_is(self, opener: Opener) -> None:
        texts = ["alpha beta gamma", "gamma delta epsilon", "alpha delta", "beta epsilon"]
        with closing(opener(embedding_fn=count_words)) as service:
            for text in texts:
                service.add(text, scope="with")
            for scope in ("with", None):
                assert ids(service.search("alpha", scope=scope)) == ids(
                    service.search("alpha", mode="hybrid", scope=scope)
                )
            assert len(service.search("alpha", scope="with")) == 4

    def test_23_or_keywords_without_an_embedder(self, service: ServiceMemory) -> None:
        for text in ("alpha beta gamma", "gamma delta epsilon", "alpha delta", "beta epsilon"):
            service.add(text)
        assert ids(service.search("alpha")) == ids(service.search("alpha", mode="keyword_only"))
        assert contents(service.search("alpha")) == ["alpha delta", "alpha beta gamma"]

    def test_24_names_of_modes(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            service.add("alpha")
            for mode in ("Keyword_only", "KEYWORD_ONLY", "AUTO", "Hybrid", "vector_Only", *SearchMode):
                assert contents(service.search("alpha", mode=mode)) == ["alpha"]
            wrong: tuple[Any, ...] = ("fuzzy", "", "keyword", " auto", None, 1, SearchMode)
            for mode in wrong:
                with refused(service, UsageError, "keyword_only", "vector_only", "hybrid", "auto"):
                    service.search("alpha", mode=mode)
        assert [mode.value for mode in SearchMode] == ["keyword_only", "vector_only", "hybrid", "auto"]

    def test_26_the_first_vector_fixes_the_length(self, opener: Opener) -> None:
        table = Table({"three": [1.0, 2.0, 3.0], "four": [1.0, 2.0, 3.0, 4.0]})
        for on_error in ("raise", "keyword"):
            with closing(opener(embedding_fn=table, on_embed_error=on_error)) as service:
                service.add("three")
                calls: list[Callable[[], object]] = [
                    lambda: service.add("four"),  # called at once
                    lambda: service.upsert(MemoryObject(content="four", ext_id="k")),
                    lambda: service.search("four"),
                    lambda: service.search("four", mode="hybrid"),
                    lambda: service.hybrid_search("four", [1.0, 2.0, 3.0, 4.0]),
                ]
                for call in calls:
                    with refused(service, EmbeddingDimensionError, "3", "4"):
                        call()

    def test_28_replaced_and_updated_memories_are_found_by_vector(self, opener: Opener) -> None:
        table = Table({"one": [1.0, 0.0, 0.0], "two": [0.0, 1.0, 0.0], "three": [0.0, 0.0, 1.0]})
        with closing(opener(embedding_fn=table)) as service:
            old = service.upsert(MemoryObject(content="one", ext_id="k"))
            service.upsert(MemoryObject(content="two", ext_id="k"))
            service.update(replace(old, content="three"))
            assert contents(service.search("two", mode="vector_only", limit=1)) == ["two"]
            assert contents(service.search("three", mode="vector_only", limit=1)) == ["three"]
            assert "one" not in contents(service.search("one", mode="vector_only", limit=10))

    def test_29_a_deleted_memory_is_not_found_by_vector(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            kept, hidden, erased = (service.add(text) for text in ("alpha", "alpha beta", "alpha gamma"))
            service.delete(hidden.id)
            service.delete(erased.id, erase=True)
            for scope in (None, UNSCOPED):
                assert ids(service.search("alpha", mode="vector_only", scope=scope)) == [kept.id]
            assert vector_lengths(service) == [5, 5]

    def test_30_answers_that_are_no_vectors(self, opener: Opener) -> None:
        for embedder in BAD_ANSWERS.values():
            with closing(opener(embedding_fn=embedder)) as service:
                for call in (
                    lambda: service.add("a text"),  # called at once
                    lambda: service.search("a text"),
                    lambda: service.search("a text", mode="vector_only"),
                ):
                    with refused(service, ProviderError):
                        call()

    def test_31_zero_vectors_have_no_direction(self, opener: Opener) -> None:
        table = Table({"alpha": [1.0, 0.0], "zero alpha": [0.0, 0.0], "nothing": [0.0, 0.0]})
        with closing(opener(embedding_fn=table)) as service:
            service.add("alpha")
            service.add("zero alpha")
            for scope in (None, UNSCOPED):
                assert contents(service.search("alpha", mode="vector_only", scope=scope)) == ["alpha"]
                assert service.search("nothing", mode="vector_only", scope=scope) == []
                assert contents(service.hybrid_search("zero", [0.0, 0.0], scope=scope)) == ["zero alpha"]

    # --- Hybrid

    @contextmanager
    def example_1(self, opener: Opener) -> Generator[ServiceMemory]:
        vectors = {"alpha beta gamma delta": [1.0, 0.0, 0.0, 0.0], "gamma delta": [0.6, 0.8, 0.0, 0.0]}
        with closing(opener(embedding_fn=Table(vectors), on_embed_error="keyword")) as service:
            for text in (*vectors, "alpha novector content"):
                service.add(text)
            assert vector_lengths(service) == [4, 4, None]
            yield service

    def test_32_example_1(self, opener: Opener) -> None:
        first, second, third = "alpha beta gamma delta", "gamma delta", "alpha novector content"
        expected = {
            (1.0, 1.0): [(first, 0.0325225), (third, 0.0163934), (second, 0.0161290)],
            (0.5, 0.5): [(first, 0.0162612), (third, 0.0081967), (second, 0.0080645)],
            (1.0, 0.0): [(third, 0.0163934), (first, 0.0161290)],
            (0.0, 1.0): [(first, 0.0163934), (second, 0.0161290)],
        }
        texts = [first, second, third]
        with self.example_1(opener) as service:
            for weights, ranked in expected.items():
                fused = fuse_reciprocal([[2, 0], [0, 1]], weights)
                assert [texts[one.item] for one in fused] == [text for text, _ in ranked]
                assert [one.score for one in fused] == pytest.approx([score for _, score in ranked], abs=1e-6)
                for scope in (None, UNSCOPED):
                    found = service.hybrid_search(
                        "alpha", [1.0, 0.0, 0.0, 0.0], weight_fts=weights[0], weight_vec=weights[1], scope=scope
                    )
                    assert contents(found) == [text for text, _ in ranked]

    def test_33_example_2(self, opener: Opener) -> None:
        texts = ["alpha beta gamma", "gamma delta epsilon", "alpha delta", "beta epsilon"]
        with closing(opener(embedding_fn=count_words)) as service:
            for text in texts:
                service.add(text)
            for scope in (None, UNSCOPED):
                by_words = contents(service.search("alpha", mode="keyword_only", scope=scope))
                by_vectors = contents(service.search("alpha", mode="vector_only", scope=scope))
                by_both = contents(service.search("alpha", mode="hybrid", scope=scope))
                assert by_words == ["alpha delta", "alpha beta gamma"]
                assert by_vectors[0] == "alpha delta"
                assert by_both == ["alpha delta", "alpha beta gamma", "gamma delta epsilon", "beta epsilon"]
        fused = fuse_reciprocal([[2, 0], [2, 0, 1, 3]], (1.0, 1.0))
        assert [one.item for one in fused] == [2, 0, 1, 3]
        assert [one.score for one in fused] == pytest.approx([0.0327869, 0.0322581, 0.0158730, 0.0156250], abs=1e-6)

    def test_34_the_same_call_gives_the_same_order(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(12):
                service.add(f"alpha {VOCABULARY[number % 5]}", scope="ab"[number % 2])
            for scope in (None, "a"):
                found = ids(service.search("alpha beta", scope=scope, limit=10))
                assert found == ids(service.search("alpha beta", scope=scope, limit=10))
                assert len(found) in (6, 10)

    def test_35_an_unknown_scope_holds_nothing(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            service.add("alpha", scope="a")
            for mode in SearchMode:
                assert service.search("alpha", mode=mode, scope="b") == []
            assert service.hybrid_search("alpha", [1.0, 0.0, 0.0, 0.0, 0.0], scope="b") == []
            assert service.list_all(scope="b") == []
            assert service.render_index(scope="b") == ""

    def test_36_the_scope_filters_in_every_mode(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for scope in ("a", "b", None):
                service.add(f"alpha of {scope}", scope=scope)
            for mode in SearchMode:
                for scope, text in (("a", "alpha of a"), ("b", "alpha of b"), (UNSCOPED, "alpha of None")):
                    assert contents(service.search("alpha", mode=mode, scope=scope)) == [text]
                assert len(service.search("alpha", mode=mode)) == 3

    def test_37_limits(self, opener: Opener) -> None:
        vector = [1.0, 0.0, 0.0, 0.0, 0.0]
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(4):
                service.add(f"alpha {number}", scope="ab"[number % 2])
            reads: list[Callable[[Any, Any], list[Any]]] = [
                lambda limit, scope: service.search("alpha", limit=limit, scope=scope),
                lambda limit, scope: service.hybrid_search("alpha", vector, limit=limit, scope=scope),
                lambda limit, scope: service.list_all(limit=limit, scope=scope),
                lambda limit, scope: service.render_index(max_entries=limit, scope=scope).splitlines(),
            ]
            for read in reads:
                assert [len(read(limit, None)) for limit in (0, 1, 2, 3, 1000)] == [0, 1, 2, 3, 4]
                assert [len(read(limit, "a")) for limit in (0, 1, 2, 3, 1000)] == [0, 1, 2, 2, 2]
                for limit in (-1, True, 1.0, "5"):
                    with refused(service, UsageError):
                        read(limit, None)
                with refused(service, LimitExceededError):
                    read(10_001, None)
            for read in reads[:2]:
                with refused(service, LimitExceededError):
                    read(1001, None)
                with refused(service, UsageError):
                    read(None, None)
            for read in reads[2:]:
                assert len(read(None, None)) == len(read(10_000, None)) == 4

    def test_38_weights_and_k(self, opener: Opener) -> None:
        with self.example_1(opener) as service:
            wrong: list[dict[str, Any]] = [
                *({name: value} for name in ("weight_fts", "weight_vec") for value in (-1, float("nan"), float("inf"))),
                *({name: value} for name in ("weight_fts", "weight_vec") for value in ("1", None, True)),
                {"weight_fts": 0, "weight_vec": 0},
                *({"rrf_k": value} for value in (0, -1, 1.5, True, None, "60")),
            ]
            for options in wrong:
                with refused(service, UsageError):
                    service.hybrid_search("alpha", [1.0, 0.0, 0.0, 0.0], **options)
            assert len(service.hybrid_search("alpha", [1, 0, 0, 0], weight_fts=2, weight_vec=3, rrf_k=1)) == 3

    def test_39_a_query_vector_of_another_length(self, opener: Opener) -> None:
        with self.example_1(opener) as service:
            for length in (3, 5):
                for scope in (None, UNSCOPED, "nowhere"):
                    with refused(service, EmbeddingDimensionError):
                        service.hybrid_search("alpha", [1.0] * length, scope=scope)
            wrong: tuple[Any, ...] = (
                *([], [float("nan")] * 4, [float("inf"), 0, 0, 0], ["a"] * 4, None, 5, "abcd"),
                *([[1.0] * 4], [None] * 4, [1e400, 0, 0, 0], [1 + 2j] * 4),
            )
            for vector in wrong:
                with refused(service, UsageError):
                    service.hybrid_search("alpha", vector)
            for vector in (np.array([1e300, 0, 0, 0]), (1, 0, 0, 0), [1e-300, 0.0, 0.0, 0.0]):
                assert contents(service.hybrid_search("alpha", cast("Sequence[float]", vector)))[0].startswith("alpha")

    # --- Traps

    def test_40_queries_without_a_word_find_nothing(self, service: ServiceMemory) -> None:
        service.add("user prefers dark mode")
        for query in ("", "   ", "!!!", "🚀", '"', "'", "(", "*", "^", "\t\n", "--", "…"):
            assert service.search(query) == []
            assert service.search(query, scope=UNSCOPED) == []

    @pytest.mark.parametrize(
        ("text", "queries"),
        [
            ("The user prefers dark mode", ["prefer", "preferring", "PREFERS", "user banana", "user !!!", "user 🚀"]),
            (
                "The user prefers dark mode",
                ["content:user", "^user", "-user", "(user", '"user', "user*", "user)", "user AND"],
            ),
            ("meet at the Café with a résumé", ["CAFÉ", "cafe", "resume", "re\u0301sume\u0301"]),
            ("conc is a word", ["conc*", "conc"]),
            ("the foo_bar of user-id in v1.2.3", ["foo_bar", "foo", "bar", "user-id", "id", "v1.2.3", "v1 2 3"]),
            ("日本語のテキスト", ["日本", "テキスト", "日本語"]),
            ("near or and not: an operator", ["NEAR", "operator OR", "NEAR(operator, 3)"]),
            ("hello brave world", ['"hello world"', "world hello"]),
            ("POL-358 of 2026-05-08, it's C++ at /path", ["POL-358", "2026-05-08", "it's C++", "/path", "C++"]),
        ],
    )
    def test_40_a_query_is_words(self, service: ServiceMemory, text: str, queries: list[str]) -> None:
        service.add(text)
        service.add("something quite different", scope="elsewhere")
        for query in queries:
            assert contents(service.search(query, limit=1)) == [text], query
            assert contents(service.search(query, scope=UNSCOPED)) == [text], query

    def test_40_a_prefix_and_a_scope_find_nothing(self, service: ServiceMemory) -> None:
        service.add("concurrency", scope="proj")
        for query in ("conc*", "conc", "proj", "scope:proj", "concurrenc*"):
            assert service.search(query) == service.search(query, scope="proj") == []

    def test_40_stop_words_count_where_there_is_nothing_else(self, service: ServiceMemory) -> None:
        service.add("to be or not to be")
        service.add("the end of the story")
        assert contents(service.search("to be or not to be")) == ["to be or not to be"]
        assert contents(service.search("what is the story")) == ["the end of the story"]

    def test_40_the_summary_is_searched_too(self, service: ServiceMemory) -> None:
        service.add("a text", summary="about zebras")
        assert contents(service.search("zebra")) == ["a text"]

    def test_40_limits_of_a_query(self, service: ServiceMemory) -> None:
        service.add("needle")
        assert contents(service.search("needle " * 1_400)) == ["needle"]
        wrong: tuple[Any, ...] = ("x" * (QUERY_CHARS_MAX + 1), "word " * 20_000, "a\ud800", None, 5, b"x")
        for query in wrong:
            with refused(service, UsageError):
                service.search(query)
        with refused(service, LimitExceededError):
            service.search("x" * 100_000)

    def test_41_a_small_scope_does_not_starve(self, opener: Opener) -> None:
        near = {f"near {number}": [1.0, number / 1000] for number in range(20)}
        with closing(opener(embedding_fn=Table({**near, "far": [0.1, 1.0], "query": [1.0, 0.0]}))) as service:
            for text in near:
                service.add(text, scope="big")
            service.add("far", scope="small")
            for mode in ("vector_only", "hybrid"):
                assert contents(service.search("query", mode=mode, scope="small", limit=1)) == ["far"]

    def test_42_other_scopes_have_no_part_in_the_ranking(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(20):
                service.add(f"alpha {'beta ' * (number % 3)}{VOCABULARY[number % 5]}", scope="mine")
            memory = service.archive.memory("mine", tenant=service.tenant)

            def rank() -> tuple[list[list[str]], list[tuple[UUID, float]]]:
                orders = [
                    ids(service.search("alpha beta", mode=mode, scope="mine", limit=10))
                    for mode in ("keyword_only", "vector_only", "hybrid")
                ]
                hits = memory.search("alpha beta", mode="keyword", kinds=["note"], limit=20)
                return orders, [(hit.id, hit.score) for hit in hits]

            before = rank()
            service.archive.add_many(
                (Scope(service.tenant, f"other-{number // 250}"), Note(content=f"alpha beta {number}"))
                for number in range(1_000)
            )
            assert rank() == before
            assert len(before[1]) == 20

    def test_43_scopes_are_equal_or_not(self, service: ServiceMemory) -> None:
        scopes = ["proj", "proj2", "Proj", "pr%", "pr_j", "pro", "proj ", "proj/a", "proj:a", "*", "%", "_", "PROJ"]
        for scope in scopes:
            service.add(f"secret of {scope!r}", scope=scope)
        for scope in scopes:
            assert contents(service.search("secret", scope=scope, limit=50)) == [f"secret of {scope!r}"]
            assert contents(service.list_all(scope=scope)) == [f"secret of {scope!r}"]
            assert len(service.render_index(scope=scope).splitlines()) == 1
        wrong: tuple[Any, ...] = ("", 5, b"proj", "a\x00", "a\ud800", "x" * 257, ["proj"], True)
        for scope in wrong:
            for call in (
                lambda: service.add("x", scope=scope),  # noqa: B023  # called at once
                lambda: service.search("secret", scope=scope),  # noqa: B023
                lambda: service.list_all(scope=scope),  # noqa: B023
                lambda: service.render_index(scope=scope),  # noqa: B023
                lambda: service.get("x", scope=scope),  # noqa: B023
                lambda: service.delete("x", scope=scope),  # noqa: B023
                lambda: service.upsert(MemoryObject(content="x", ext_id="k", scope=scope)),  # noqa: B023
            ):
                with refused(service, UsageError):
                    call()

    def test_44_unscoped_is_not_all(self, service: ServiceMemory) -> None:
        service.add("alpha one")
        service.add("alpha two", scope="a")
        assert contents(service.search("alpha", scope=UNSCOPED)) == ["alpha one"]
        assert len(service.search("alpha")) == 2
        assert contents(service.list_all(scope=UNSCOPED)) == ["alpha one"]
        assert "alpha two" not in service.render_index(scope=UNSCOPED)
        (only,) = service.search("one")
        assert service.get(only.id, scope=None) is not None
        assert service.get(only.id, scope="a") is None

    def test_45_one_stable_id_in_two_scopes(self, service: ServiceMemory) -> None:
        first = service.upsert(MemoryObject(content="a1", ext_id="plan", scope="a"))
        second = service.upsert(MemoryObject(content="b1", ext_id="plan", scope="b"))
        for call in (
            lambda: service.get("plan"),
            lambda: service.delete("plan"),
            lambda: service.get("plan", scope=ANY),
        ):
            with refused(service, UsageError, "scope="):
                call()
        assert service.get("plan", scope="a") == first
        assert service.get("plan", scope="b") == second
        assert service.get("plan", scope=None) is None
        third = service.upsert(MemoryObject(content="a2", ext_id="plan", scope="a"))
        assert service.get("plan", scope="b") == second
        assert service.get("plan", scope="a") == third
        assert service.delete("plan", scope="a").count == 1
        assert service.get("plan") == second

    def test_46_a_stable_id_goes_before_an_id(self, service: ServiceMemory) -> None:
        plain = service.add("plain", scope="a")
        assert service.get(plain.id) == plain
        posing = service.upsert(MemoryObject(content="posing", ext_id=plain.id, scope="b"))
        assert service.get(plain.id) == posing
        assert service.get(plain.id, scope="a") == plain
        service.delete(plain.id)
        assert service.get(plain.id) == plain

    def test_47_the_order_of_lists(self, service: ServiceMemory) -> None:
        for number in range(5):
            service.add(f"memory number{number}")
        assert [text[-1] for text in contents_in_index(service)] == ["0", "1", "2", "3", "4"]
        service.search("number3")
        assert [text[-1] for text in contents_in_index(service)] == ["3", "0", "1", "2", "4"]
        service.search("number1")
        service.search("number1 number4")
        # 1 and 4 were used last, in one read; 1 more often; the rest never.
        assert [text[-1] for text in contents_in_index(service)] == ["1", "4", "3", "0", "2"]
        assert [text[-1] for text in contents(service.list_all(limit=3))] == ["1", "4", "3"]
        # Now the three were used last, in one read, 1 three times and the others twice.
        assert [text[-1] for text in contents_in_index(service)] == ["1", "3", "4", "0", "2"]

    def test_47_and_of_lists_over_several_scopes(self, service: ServiceMemory) -> None:
        for number, scope in enumerate(("b", None, "a", "b")):
            service.add(f"memory number{number}", scope=scope)
        for _ in range(3):
            assert [text[-1] for text in contents(service.list_all())] == ["0", "1", "2", "3"]
        service.search("number2 number3")
        assert [text[-1] for text in contents(service.list_all(limit=3))] == ["2", "3", "0"]
        assert [text[-1] for text in contents_in_index(service)] == ["2", "3", "0", "1"]

    def test_48_returned_counters_are_those_of_get(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(3):
                service.add(f"alpha {number}", scope=("a", None)[number % 2])
            service.upsert(MemoryObject(content="alpha plan", ext_id="plan", scope="a"))
            vector = [1.0, 0.0, 0.0, 0.0, 0.0]
            reads: list[Callable[[str | None], list[MemoryObject]]] = [
                lambda scope: service.search("alpha", scope=scope),
                lambda scope: service.hybrid_search("alpha", vector, scope=scope),
                lambda scope: service.list_all(scope=scope),
            ]
            for read in reads:
                for scope in (None, "a"):
                    found = read(scope)
                    assert len(found) >= 3
                    assert found == [service.get(memory.id) for memory in found]

    def test_49_one_recall_per_read(self, service: ServiceMemory) -> None:
        for text in ("alpha one", "alpha two alpha", "beta"):
            service.add(text, scope="a")
        found = service.search("alpha", scope="a")
        listed = service.list_all(scope="a", limit=2)
        fused = service.hybrid_search("alpha beta", [1.0], scope="a", limit=2)
        nothing = service.search("!!!", scope="a")
        service.search("", scope="a")
        service.render_index(scope="a")
        service.get(found[0].id)
        recalls = recalls_of(service, "a")
        assert [[str(one) for one in recall.recalled] for recall in recalls] == [
            ids(found),
            ids(listed),
            ids(fused),
            ids(nothing),
        ]
        assert [recall.query for recall in recalls] == ["alpha", "*", "alpha beta", "!!!"]
        assert [recall.source for recall in recalls] == [
            "service.search",
            "service.list_all",
            "service.hybrid_search",
            "service.search",
        ]
        assert recalls[-1].recalled == ()
        assert recalls[0].request["limit"] == 5

    def test_49_one_per_scope_of_a_read_over_several(self, service: ServiceMemory) -> None:
        for text, scope in (
            ("alpha one", "a"),
            ("alpha two", "b"),
            ("alpha three", "a"),
            ("beta", "c"),
            ("gamma", None),
        ):
            service.add(text, scope=scope)
        before = num_events(service)
        found = service.search("alpha secret-word")
        assert num_events(service) == before + 2
        for scope in ("a", "b"):
            (recall,) = recalls_of(service, scope)
            assert [str(one) for one in recall.recalled] == [one.id for one in found if one.scope == scope]
            assert recall.query == "*"
            assert "secret" not in dumps(dict(recall.request))
        times = {recall.timestamp for scope in ("a", "b") for recall in recalls_of(service, scope)}
        assert len(times) == 1
        assert service.search("unheard") == []
        assert [(recall.query, recall.recalled) for recall in recalls_of(service)] == [("unheard", ())]
        service.search("gamma")
        assert [recall.query for recall in recalls_of(service)] == ["unheard", "gamma"]
        assert service.search("") == service.search("", scope="a") == []
        assert num_events(service) == before + 4

    def test_51_an_error_in_the_middle_leaves_the_prior_row(self, service: ServiceMemory) -> None:
        service.upsert(MemoryObject(content="before", ext_id="k"))
        service.search("before")
        stored = service.get("k")
        with (
            patch.object(service_module, "_objects_of", side_effect=KeyboardInterrupt),
            refused(service, cast("type[Exception]", KeyboardInterrupt)),
        ):
            service.upsert(MemoryObject(content="after", ext_id="k"))
        assert service.get("k") == stored
        assert service.search("after") == []

    def test_52_the_lines_of_the_index(self, service: ServiceMemory) -> None:
        cases = {
            "plain": "plain",
            "x" * 79: "x" * 79,
            "x" * 80: "x" * 80,
            "x" * 81: "x" * 80,
            "y" * 79 + "🚀🚀": "y" * 79 + "🚀",
            "a\r\nb\nc\rd\u2028e\u2029f\x0bg\x0ch\x85i": "a b c d e f g h i",
            "z" * 79 + "\r\nafter": "z" * 79 + " ",
            "  kept spaces  ": "  kept spaces  ",
        }
        for text, shown in cases.items():
            stored = service.add(text, scope="cut")
            assert service.render_index(scope="cut") == f"- {stored.id} [cut] — {shown}\n"
            service.delete(stored.id)
        for blank in ("", "   ", "\n\t"):
            stored = service.add("the content", summary=blank)
            assert stored.summary == blank
            assert service.render_index(scope=UNSCOPED) == f"- {stored.id} — the content\n"
            service.delete(stored.id)
        service.upsert(
            MemoryObject(
                content="…",
                ext_id="plan:current",
                scope="proj",
                categories=["convention", "build"],
                summary="Build system convention",
            )
        )
        assert service.render_index(scope="proj") == (
            "- plan:current [proj] (convention, build) — Build system convention\n"
        )
        service.upsert(
            MemoryObject(
                content="c", ext_id="k\n1", scope="p\r\nq", categories=["a\nb", "c"], summary="s" * 100 + "\n!"
            )
        )
        assert service.render_index(scope="p\r\nq") == f"- k 1 [p q] (a b, c) — {'s' * 100} !\n"

    def test_53_an_erased_memory_takes_every_version_with_it(self, service: ServiceMemory) -> None:
        other = service.add("the other marker-other")
        for number in range(3):
            service.upsert(MemoryObject(content=f"marker-{number} text", ext_id="k", summary=f"sum-{number}"))
        service.search("marker")
        receipt = service.delete("k", erase=True, reason="asked")
        assert (receipt.action, receipt.reason, receipt.counts) == ("forget", "asked", {"note": 3})
        assert receipt.state == "clean"
        for _ in range(2):
            assert contents(service.search("marker text sum", limit=50)) == ["the other marker-other"]
            assert service.get("k") is None
            assert contents(service.list_all()) == ["the other marker-other"]
            service.archive.rebuild()
        assert sum(isinstance(event, ErasedEvent) for event in events_of(service)) == 3
        assert uses(service.upsert(MemoryObject(content="anew", ext_id="k"))) == (0, None)
        assert service.get(other.id) is not None
        plain = service.add("marker-plain")
        assert service.delete(plain.id, erase=True).counts == {"note": 1}

    def test_54_a_rebuild_changes_nothing(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(6):
                service.add(f"alpha {number}", scope=("a", "b", None)[number % 3], metadata={"n": number})
            for number in range(3):
                service.upsert(MemoryObject(content=f"plan {number}", ext_id="plan", scope="a"))
                service.search("plan alpha", limit=3)
            service.delete(service.search("alpha", scope="b")[0].id)
            service.list_all(limit=2)
            known = ids(service.list_all(limit=None))
            before = [service.get(one) for one in known], service.render_index()
            service.archive.rebuild()
            assert ([service.get(one) for one in known], service.render_index()) == before
            assert ids(service.search("alpha", mode="hybrid")) == ids(service.search("alpha", mode="hybrid"))

    def test_55_facts_and_service_see_each_other(self, service: ServiceMemory) -> None:
        memory = facts.ArchiveMemory(service.archive)
        caller = facts.Caller(service.tenant)
        fact = asyncio.run(memory.remember(caller, "user-42", "prefers the Berlin warehouse"))
        (found,) = service.search("berlin", scope="user-42")
        assert (found.id, found.scope, found.content) == (fact.id, "user-42", fact.content)
        assert contents(service.list_all()) == [fact.content]
        service.add("only the service's", scope="user-42")
        assert [one.content for one in asyncio.run(memory.recall(caller, "user-42"))] == [fact.content]
        assert present(service.get(fact.id)).usage_count == 3
        assert asyncio.run(memory.erase(caller, "user-42")) == 1
        assert service.search("berlin service") == service.list_all() == []

    def test_55_what_is_no_note_is_no_memory(self, service: ServiceMemory) -> None:
        memory = service.archive.memory("a", tenant=service.tenant)
        message = memory.add(Message(speaker="anna", content="alpha said"))
        note = memory.remember("alpha noted", tier="insight", labels=["x"], key="k")
        assert ids(service.search("alpha")) == ids(service.list_all()) == [str(note.id)]
        assert service.get(str(message.id)) is None
        with refused(service, NotFoundError):
            service.delete(str(message.id))
        found = present(service.get("k"))
        assert (found.categories, found.source, found.updated_at) == (["x"], "unknown", found.updated_at)
        replaced = service.upsert(replace(found, content="alpha replaced"))
        assert replaced.created_at == found.created_at
        assert memory.get_live("k") is not None

    def test_57_no_text_names_the_unscoped(self, service: ServiceMemory) -> None:
        service.add("alpha")
        for scope in ("None", "null", "unscoped", "UNSCOPED", "any", "default", " ", "''", "%", "*", "\n", "\u200b"):
            assert service.search("alpha", scope=scope) == service.list_all(scope=scope) == []
        for scope in ("", "\x00"):
            with refused(service, UsageError):
                service.search("alpha", scope=scope)

    def test_58_objects_as_dicts(self, service: ServiceMemory) -> None:
        stored = service.upsert(
            MemoryObject(
                content="é\U0001f600\n",
                ext_id="k",
                summary="",
                scope="s",
                metadata={"deep": {"list": [1, 2.5, None, True, {"x": "y"}]}},
                categories=["b", "a", "b"],
                source="import",
            )
        )
        service.search("anything")
        for memory in (stored, MemoryObject(content="x"), service.list_all()[0]):
            data = memory.to_dict()
            assert list(data) == KEYS
            assert data == asdict(memory)
            assert MemoryObject.from_dict(data) == MemoryObject.from_dict(loads(dumps(data))) == memory
        wrong: list[Any] = [
            {},
            {"id": "x"},
            {"content": "x", "colour": "red"},
            {"content": None},
            {"content": "x", "usage_count": -1},
            {"content": "x", "usage_count": True},
            {"content": "x", "usage_count": 1.5},
            {"content": "x", "created_at": "now"},
            {"content": "x", "created_at": 10**400},
            {"content": "x", "last_used_at": False},
            {"content": "x", "metadata": [1]},
            {"content": "x", "categories": "abc"},
            {"content": "x", "categories": [1]},
            {"content": "x", "ext_id": 5},
            {"content": "x", 5: "five"},
            ["content"],
            None,
        ]
        for data in wrong:
            with pytest.raises(UsageError):
                MemoryObject.from_dict(data)

    def test_59_objects_are_copies(self, service: ServiceMemory) -> None:
        metadata: dict[str, Any] = {"list": [1]}
        stored = service.add("the content", metadata=metadata, categories=["a"], scope="s")
        metadata["list"].append(2)
        assert replace(stored, content="other").content == "other"
        with pytest.raises(FrozenInstanceError):
            stored.content = "other"  # pyright: ignore[reportAttributeAccessIssue]
        found = present(service.get(stored.id))
        cast("list[Any]", found.metadata["list"]).append(3)
        found.categories.append("b")
        found.to_dict()["metadata"] = None
        assert service.get(stored.id) == MemoryObject.from_dict({**stored.to_dict()})
        assert present(service.get(stored.id)).metadata == {"list": [1]}

    # --- Laws beyond the required tests

    def test_s01_a_new_memory(self, service: ServiceMemory) -> None:
        before = datetime.now(UTC).timestamp()
        first, second = service.add("the same text"), service.add("the same text")
        assert first.id != second.id
        assert str(UUID(first.id)) == first.id
        assert first.created_at == first.updated_at >= before - 0.001
        assert (first.ext_id, first.usage_count, first.last_used_at) == (None, 0, None)
        assert len(service.list_all()) == 2

    def test_s01_arguments(self, service: ServiceMemory) -> None:
        wrong: list[dict[str, Any]] = [
            *({"content": value} for value in ("", None, 5, b"x", "a\x00", "a\ud800")),
            *({"content": "x", "summary": value} for value in (5, "a\x00", "\udfff")),
            *({"content": "x", "categories": value} for value in ("abc", [5], ["a\x00"], ["x" * 129], ["x"] * 65)),
            *({"content": "x", "metadata": value} for value in ([1], "x", {"a": float("nan")}, {"a": {1, 2}}, {5: 1})),
            {"content": "x", "metadata": {"a": "x" * 70_000}},
            *({"content": "x", "source": value} for value in (None, 5, "x" * 257)),
        ]
        for arguments in wrong:
            with refused(service, UsageError):
                service.add(**arguments)
        with refused(service, LimitExceededError):
            service.add("é" * (2 * 1024 * 1024 + 1))

    def test_s02_update_leaves_everything_as_it_was(self, service: ServiceMemory) -> None:
        old = service.upsert(MemoryObject(content="old words", ext_id="k", scope="s", metadata={"revises": "x"}))
        service.search("old")
        stored = service.get("k")
        new = service.update(replace(present(stored), content="new words"))
        assert service.get("k") == stored
        assert service.get(new.id) == new
        assert (new.ext_id, new.scope, new.usage_count) == (None, "s", 0)
        assert new.metadata == {"revises": old.id}
        loose = service.update(MemoryObject(content="loose", created_at=1234.5, usage_count=9, last_used_at=1.0))
        assert loose.metadata == {}
        assert (loose.created_at, uses(loose)) == (1234.5, (0, None))
        assert service.update(MemoryObject(content="now")).created_at > 1_700_000_000

    def test_s03_upsert_arguments(self, service: ServiceMemory) -> None:
        good = MemoryObject(content="x", ext_id="k")
        wrong: list[Any] = [
            *(replace(good, ext_id=value) for value in (None, "", "x" * 257, 5, "a\x00", "\ud800")),
            *(replace(good, content=value) for value in ("", None)),
            *(replace(good, created_at=value) for value in (float("nan"), float("inf"), 1e18, "now", None, True)),
            *(replace(good, metadata=value) for value in (None, [1])),
            *(replace(good, id=value) for value in (None, 5)),
            *({"content": "x", "ext_id": "k"}, None, "x"),
        ]
        for obj in wrong:
            with refused(service, UsageError):
                service.upsert(obj)
        assert service.upsert(replace(good, created_at=-5.0)).created_at > 1_700_000_000

    def test_s03_created_at_is_that_of_the_object_only_for_a_new_memory(self, service: ServiceMemory) -> None:
        made = service.upsert(MemoryObject(content="one", ext_id="k", created_at=1000.25))
        assert made.created_at == 1000.25 < made.updated_at
        again = service.upsert(MemoryObject(content="two", ext_id="k", created_at=2000.5))
        assert again.created_at == 1000.25
        assert service.get("k") == again

    def test_s03_the_old_versions_stay_in_the_ledger(self, service: ServiceMemory) -> None:
        for number in range(3):
            service.upsert(MemoryObject(content=f"version {number}", ext_id="k", metadata={"n": number}))
        notes = [event for event in events_of(service) if isinstance(event, Note)]
        assert [note.content for note in notes] == ["version 0", "version 1", "version 2"]
        assert [note.supersedes for note in notes] == [None, notes[0].id, notes[1].id]
        assert {note.tier for note in notes} == {"archival"}
        assert contents(service.search("version")) == ["version 2"]

    def test_s03_two_threads_leave_one_live_row(self, service: ServiceMemory) -> None:
        def replace_often(name: str) -> int:
            for number in range(20):
                service.upsert(MemoryObject(content=f"{name} {number}", ext_id="k"))
            return 20

        run_together(lambda: replace_often("a"), lambda: replace_often("b"))
        assert len(service.list_all()) == 1
        assert sum(isinstance(event, Note) for event in events_of(service)) == 40

    def test_s04_a_tombstone_and_an_erasure_need_a_reason(self, service: ServiceMemory) -> None:
        stored = service.add("x")
        for erase in (False, True):
            wrong: tuple[Any, ...] = ("", None, 5, "\ud800")
            for reason in wrong:
                with refused(service, UsageError):
                    service.delete(stored.id, reason=reason, erase=erase)
        service.delete(stored.id, reason="r1", erase=True)
        assert [event.reason for event in events_of(service) if isinstance(event, Erasure)] == ["r1"]

    def test_s06_one_scope_ranks_like_a_tenant_that_has_no_other(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(30):
                service.add(f"{VOCABULARY[number % 5]} {'alpha ' * (number % 4)}{number}", scope="only")
            for mode in SearchMode:
                for query in ("alpha beta", "gamma 7", "epsilon delta alpha"):
                    alone = ids(service.search(query, mode=mode, scope="only", limit=20))
                    assert ids(service.search(query, mode=mode, limit=20)) == alone
                    assert len(alone) >= 6

    def test_s09_a_leg_of_weight_0_gives_no_candidates(self, opener: Opener) -> None:
        with self.example_1(opener) as service:
            only_words = service.hybrid_search("gamma", [1, 0, 0, 0], weight_vec=0)
            only_vectors = service.hybrid_search("novector", [1, 0, 0, 0], weight_fts=0)
            assert contents(only_words) == ["gamma delta", "alpha beta gamma delta"]
            assert contents(only_vectors) == ["alpha beta gamma delta", "gamma delta"]
            assert service.hybrid_search("!!!", [1, 0, 0, 0], weight_vec=0) == []
            assert contents(service.hybrid_search("!!!", [1, 0, 0, 0])) == ["alpha beta gamma delta", "gamma delta"]

    def test_s09_mode_hybrid_is_a_hybrid_search(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(40):
                service.add(" ".join(VOCABULARY[(number * step) % 5] for step in range(1, 2 + number % 6)))
            for query in ("alpha", "beta gamma gamma", "alpha beta gamma delta epsilon", "epsilon alpha alpha alpha"):
                (vector,) = count_words([query])
                for limit in (1, 5, 30):
                    for scope in (None, UNSCOPED):
                        found = ids(service.search(query, mode="hybrid", limit=limit, scope=scope))
                        assert ids(service.hybrid_search(query, vector, limit=limit, scope=scope)) == found

    def test_s09_the_first_ranks_count_less_with_a_larger_k(self, opener: Opener) -> None:
        with self.example_1(opener) as service:
            for k in (1, 60, 100_000):
                assert contents(service.hybrid_search("alpha", [1, 0, 0, 0], rrf_k=k))[0] == "alpha beta gamma delta"

    def test_s12_handing_out_without_words_is_recorded_too(self, opener: Opener) -> None:
        with self.example_1(opener) as service:
            found = service.hybrid_search("", [1, 0, 0, 0])
            assert len(found) == 2
            (recall,) = recalls_of(service)
            assert ([str(one) for one in recall.recalled], recall.query) == (ids(found), "*")
            assert service.hybrid_search("", [0, 0, 0, 0]) == []
            assert len(recalls_of(service)) == 1

    def test_s12_a_limit_of_0_hands_out_nothing_and_says_so(self, service: ServiceMemory) -> None:
        service.add("alpha")
        assert service.search("alpha", limit=0) == service.list_all(limit=0) == []
        assert [recall.recalled for recall in recalls_of(service)] == [(), ()]

    def test_s12_a_scope_erased_during_the_read_is_not_begun_anew(self, service: ServiceMemory) -> None:
        service.add("alpha kept", scope="kept")
        service.add("alpha gone", scope="gone")
        handed_out = service_module.ServiceMemory._hand_out  # pyright: ignore[reportPrivateUsage]

        def erase_first(self: ServiceMemory, *values: Any, **options: Any) -> list[MemoryObject]:
            service.archive.memory("gone", tenant=service.tenant).erase(clean="later")
            return handed_out(self, *values, **options)

        for read in (lambda: service.search("alpha"), service.list_all):
            service.add("alpha gone", scope="gone")
            with patch.object(service_module.ServiceMemory, "_hand_out", erase_first):
                assert contents(read()) == ["alpha kept"]
            assert scopes_of(service) == {"kept"}

    def test_s12_a_memory_erased_during_the_read_is_in_neither(self, service: ServiceMemory) -> None:
        kept = service.add("alpha kept")
        handed_out = service_module.ServiceMemory._hand_out  # pyright: ignore[reportPrivateUsage]

        def erase_first(self: ServiceMemory, *values: Any, **options: Any) -> list[MemoryObject]:
            service.delete("gone", erase=True)
            return handed_out(self, *values, **options)

        for read in (
            lambda: service.search("alpha", scope=UNSCOPED),
            lambda: service.search("alpha"),
            service.list_all,
        ):
            service.upsert(MemoryObject(content="alpha gone", ext_id="gone"))
            with patch.object(service_module.ServiceMemory, "_hand_out", erase_first):
                assert ids(read()) == [kept.id]
            assert [str(one) for one in recalls_of(service)[-1].recalled] == [kept.id]

    def test_s14_the_content_is_embedded_once(self, opener: Opener) -> None:
        table = Table({"one": [1.0], "two": [0.5], "three": [0.2]})
        with closing(opener(embedding_fn=table)) as service:
            stored = service.add("one", summary="not embedded")
            service.update(replace(stored, content="two"))
            service.upsert(replace(stored, content="three", ext_id="k"))
            assert table.calls == [["one"], ["two"], ["three"]]
            with refused(service, UsageError):
                service.add("one", categories=["x" * 1000])
            assert len(table.calls) == 3

    def test_s12_everything_is_handed_out_however_much_it_is(self, service: ServiceMemory) -> None:
        stored = [service.add(f"note {number}", scope="many") for number in range(25)]
        with patch.object(service_module, "TARGETS_MAX", 10):  # 10,000 ids, what one Recall holds
            found = service.list_all(limit=None, scope="many")
        assert ids(found) == ids(stored)
        assert {memory.usage_count for memory in found} == {1}
        recalls = recalls_of(service, "many")
        assert [len(recall.recalled) for recall in recalls] == [10, 10, 5]
        assert [str(one) for recall in recalls for one in recall.recalled] == ids(stored)

    # --- Edge cases

    def test_edge_zeros_rank_by_keyword_alone(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=all_zeros)) as service:
            service.add("alpha beta gamma")
            service.add("alpha")
            assert contents(service.search("alpha")) == ["alpha", "alpha beta gamma"]
            assert service.search("alpha", mode="vector_only") == []

    def test_edge_after_upsert_the_old_id_means_nothing(self, service: ServiceMemory) -> None:
        old = service.upsert(MemoryObject(content="one", ext_id="k"))
        service.upsert(MemoryObject(content="two", ext_id="k"))
        assert service.get(old.id) is None
        with refused(service, NotFoundError):
            service.delete(old.id)
        service.delete("k")
        assert service.get("k") is None

    def test_edge_after_a_tombstone_counters_start_anew(self, service: ServiceMemory) -> None:
        service.upsert(MemoryObject(content="one", ext_id="k", created_at=1000.0))
        service.upsert(MemoryObject(content="two", ext_id="k"))
        service.search("two")
        for erase in (False, True):
            service.delete("k", erase=erase)
            assert service.search("one two") == service.list_all() == []
            again = service.upsert(MemoryObject(content="three", ext_id="k"))
            assert uses(again) == (0, None)
            assert again.created_at == again.updated_at

    def test_edge_a_list_makes_its_rows_the_most_recent(self, service: ServiceMemory) -> None:
        for number in range(5):
            service.add(f"memory {number}")
        assert contents(service.list_all(limit=2)) == contents(service.list_all(limit=2)) == ["memory 0", "memory 1"]

    def test_edge_an_empty_service(self, service: ServiceMemory) -> None:
        assert service.search("x") == service.list_all() == []
        assert service.render_index() == ""
        assert service.get("x") is None
        assert isinstance(service, MemoryService)

    def test_edge_texts_in_every_script(self, service: ServiceMemory) -> None:
        texts = {
            "设备 的 止损 设置": "止损",
            "重跑gen-itgc后": "重跑",
            "한국어는 어렵다": "한국",
            "東京タワー": "東京",
            "สวัสดีครับผม": "สวัสดี",
            "Straße in İstanbul": "strasse",
            "العربية من اليمين": "العربية",
        }
        for text in texts:
            service.add(text)
        for text, query in texts.items():
            assert text in contents(service.search(query)), query


def contents_in_index(service: ServiceMemory) -> list[str]:
    """What the lines of the index say, in their order."""
    return [line.split(" — ", 1)[1] for line in service.render_index().splitlines()]


# --- Across openings and processes ------------------------------------------------------------------------------------


class PersistentServiceContract(ServiceContract):
    """The laws that speak of other openings, other processes and the time after a crash. The opener is picklable."""

    num_upserts: ClassVar[int] = 100
    """Of each of four writers of one key; fewer only where every write waits for a disk, and other adapters do 100."""

    @pytest.fixture
    def files(self) -> Callable[[], Iterable[Path]]:
        """The files that hold the archive, now; none where nobody can read them."""
        raise NotImplementedError(f"{type(self).__name__} names the archive's files by a fixture `files`")

    def test_16_opened_again(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            for number in range(4):
                service.add(f"alpha {number}", scope=("a", None)[number % 2])
            service.upsert(MemoryObject(content="beta plan", ext_id="plan"))
            service.search("alpha 2", limit=2)
            known = [line.split()[1] for line in service.render_index().splitlines()]
            before = [service.get(one) for one in known], service.render_index()
        with closing(opener(embedding_fn=count_words)) as service:
            assert ([service.get(one) for one in known], service.render_index()) == before
            assert contents(service.search("beta", mode="vector_only", limit=1)) == ["beta plan"]

    def test_26_the_length_is_kept_in_the_database(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            service.add("alpha")
        with closing(opener(embedding_fn=all_zeros)) as service:
            with refused(service, EmbeddingDimensionError):
                service.add("beta")
            with refused(service, EmbeddingDimensionError):
                service.search("alpha")
            assert contents(service.hybrid_search("alpha", [1.0, 0.0, 0.0, 0.0, 0.0])) == ["alpha"]
            with refused(service, EmbeddingDimensionError):
                service.hybrid_search("alpha", [1.0, 0.0, 0.0, 0.0])
        with closing(opener()) as service, refused(service, EmbeddingDimensionError):
            service.hybrid_search("alpha", [1.0, 2.0])

    def test_s16_another_model(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=Named("model-one", 1.0))) as service:
            service.add("alpha text")
        with closing(opener(embedding_fn=Named("model-two", -5.0))) as service:
            for mode in ("vector_only", "hybrid", "auto"):
                for scope in (None, UNSCOPED):
                    with refused(service, EmbeddingUnavailableError, "model-one", "model-two", "reindex"):
                        service.search("alpha", mode=mode, scope=scope)
            assert contents(service.search("alpha", mode="keyword_only")) == ["alpha text"]
            service.add("alpha later")
            assert vector_lengths(service)[-1] is None
        with closing(opener(embedding_fn=Named("model-two", -5.0), on_embed_error="keyword")) as service:
            assert len(service.search("alpha")) == 2
            assert service.archive.reindex() == 2
            assert len(service.search("alpha", mode="vector_only")) == 2

    def test_edge_vectors_without_an_embedder(self, opener: Opener) -> None:
        with closing(opener(embedding_fn=count_words)) as service:
            service.add("alpha beta")
            service.upsert(MemoryObject(content="gamma", ext_id="k"))
        with closing(opener()) as service:
            assert contents(service.search("alpha")) == ["alpha beta"]
            service.upsert(MemoryObject(content="delta", ext_id="k"))
            assert service.delete("k").count == 1
            assert contents(service.hybrid_search("", [1, 0, 0, 0, 0])) == ["alpha beta"]

    def test_50_many_writers_of_one_key(self, opener: Opener) -> None:
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(2)]
        workers = [
            context.Process(target=upsert_in_two_threads, args=(opener, self.num_upserts, pipe[1]), daemon=True)
            for pipe in pipes
        ]
        with closing(opener()) as service:
            for worker in workers:
                worker.start()
            for here, _ in pipes:
                assert here.poll(PATIENCE_S)
                assert here.recv() == "ready"
            for here, _ in pipes:
                here.send("go")
            for (here, there), worker in zip(pipes, workers, strict=True):
                assert here.poll(PATIENCE_S)
                assert here.recv() == "done"
                worker.join(PATIENCE_S)
                worker.close()
                here.close()
                there.close()
            notes = [event for event in events_of(service) if isinstance(event, Note)]
            assert len(notes) == 4 * self.num_upserts
            assert len({note.supersedes for note in notes if note.supersedes is not None}) == 4 * self.num_upserts - 1
            (live,) = service.list_all()
            assert live.id == str(notes[-1].id)

    def test_51_a_crash_in_the_middle_leaves_the_prior_row(self, opener: Opener) -> None:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        worker = context.Process(target=upsert_and_hang, args=(opener, there), daemon=True)
        worker.start()
        assert here.poll(PATIENCE_S)
        assert here.recv() == "in the middle"
        worker.kill()
        worker.join(PATIENCE_S)
        assert worker.exitcode == -signal.SIGKILL
        worker.close()
        here.close()
        there.close()
        with closing(opener()) as service:
            stored = present(service.get("k"))
            assert (stored.content, stored.usage_count) == ("before", 1)
            assert service.search("after") == []
            assert len(service.archive.memory(None, tenant=service.tenant).events(kind="note")) == 1

    def test_53_no_byte_is_left_in_any_file(self, opener: Opener, files: Callable[[], Iterable[Path]]) -> None:
        with closing(opener()) as service:
            for number in range(3):
                service.upsert(
                    MemoryObject(
                        content=f"marker-content-{number}",
                        ext_id="marker-key",
                        summary=f"marker-summary-{number}",
                        metadata={"m": f"marker-metadata-{number}"},
                        categories=[f"marker-label-{number}"],
                    )
                )
            service.add("kept-content")
            assert service.delete("marker-key", erase=True).state == "clean"
            data = [file.read_bytes() for file in files()]
            assert not any(b"marker-" in part for part in data)
            assert not data or any(b"kept-content" in part for part in data)

    def test_s03_two_openings_see_each_other(self, opener: Opener) -> None:
        with closing(opener()) as first, closing(opener()) as second:
            stored = first.upsert(MemoryObject(content="alpha one", ext_id="k"))
            assert ids(second.search("alpha")) == [stored.id]
            second.upsert(MemoryObject(content="beta two", ext_id="k"))
            assert first.search("alpha") == []
            assert contents(first.search("beta")) == ["beta two"]
            second.delete("k", erase=True)
            assert first.search("beta") == first.list_all() == []


def upsert_in_two_threads(opener: Opener, times: int, connection: Connection) -> None:
    """Replace one memory that often in each of two threads, once the other side says go."""
    service = opener()
    connection.send("ready")
    connection.recv()
    errors: list[BaseException] = []

    def replace_often(name: str) -> None:
        try:
            for number in range(times):
                service.upsert(MemoryObject(content=f"{name} {number}", ext_id="k"))
        except BaseException as error:  # noqa: BLE001 (a failure in a thread belongs to the test)
            errors.append(error)

    threads = [Thread(target=replace_often, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    service.close()
    connection.send(repr(errors) if errors else "done")


def upsert_and_hang(opener: Opener, connection: Connection) -> None:
    """Store a memory, read it, begin to replace it, and wait in the middle of that to be killed."""
    service = opener()
    service.upsert(MemoryObject(content="before", ext_id="k"))
    service.search("before")

    def hang(*_: object) -> None:
        connection.send("in the middle")
        connection.recv()

    with patch.object(service_module, "_objects_of", hang):
        service.upsert(MemoryObject(content="after", ext_id="k"))


# --- Guards -----------------------------------------------------------------------------------------------------------


def run(contract: type[ServiceContract], opener: Opener, prefix: str = "") -> Report:
    """Run the tests of that prefix without pytest, each on a service of its own.

    Tests with parameters are left out. Raises: UsageError if no test was run: that would prove nothing.
    """
    passed: list[str] = []
    failed: dict[str, BaseException] = {}
    for name in find_tests(contract, prefix):
        test = getattr(contract(), name)
        wanted = inspect.signature(test).parameters
        if not set(wanted) <= {"service", "opener"}:
            continue
        try:
            if "opener" in wanted:
                test(opener=opener)
            else:
                with closing(opener()) as service:
                    test(service=service)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 (whatever a broken service makes of a test)
            failed[name] = error
        else:
            passed.append(name)
    if not passed and not failed:
        raise UsageError(f"{contract.__name__} has no test that begins with test_{prefix} and was run")
    return Report(tuple(passed), failed)
