"""Search while others write: a search that begins after a write has returned sees it, whoever wrote it and wherever.

Run as a script, this file is another process on the same archive: it reads one command a line, does it, and answers
with one line of JSON when the call has returned.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any, Final

import numpy as np
import pytest

import muniment
from muniment import Message, Recall
from muniment.archive import Archive, Memory, indexes
from muniment.errors import (
    EmbeddingDimensionError,
    EmbeddingUnavailableError,
    LimitExceededError,
    ProviderError,
)
from muniment.service import ServiceMemory

TENANT: Final = "acme"
SUBJECT: Final = "user-42"
PATIENCE_S: Final = 60.0
"""After which a process or a thread that should have answered is taken to hang."""


def embed(texts: list[str]) -> list[list[float]]:
    """Everything points the same way, so that a vector search finds every item."""
    return [[1.0, 0.5, float(len(text) % 3)] for text in texts]


# --- The other process ------------------------------------------------------------------------------------------------


def do(archive: Archive, command: dict[str, Any]) -> str | None:
    """Carry out a command; the id of what it stored."""
    memory = archive.memory(command.get("subject", SUBJECT), tenant=TENANT)
    match command["do"]:
        case "add":
            return str(memory.remember(command["text"]).id)
        case "put":
            return str(memory.put(command["key"], command["text"]).id)
        case "delete":
            memory.delete([command["id"]], "asked")
        case "forget":
            memory.forget([command["id"]], clean="later")
        case "erase":
            memory.erase(clean="later")
        case "read":
            memory.search("alpha", limit=1)
        case _:
            raise ValueError(command)
    return None


def serve(path: str) -> None:
    with muniment.open(path, durability="normal", embedder=embed) as archive:
        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            print(json.dumps(do(archive, json.loads(line))), flush=True)


class Other:
    """A process of its own with the archive open."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "ready"

    def __call__(self, **command: Any) -> Any:
        """What it answered, once its call has returned."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the other process has died"
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


@pytest.fixture
def archive(path: Path) -> Iterator[Archive]:
    with muniment.open(path, durability="normal", embedder=embed) as archive:
        yield archive


@pytest.fixture
def other(path: Path, archive: Archive) -> Iterator[Other]:
    del archive  # The file is made by this process.
    with closing(Other(path)) as other:
        yield other


def found_everywhere(archive: Archive, subject: str = SUBJECT) -> list[set[str]]:
    """The ids that each way of searching finds, in the same scope."""
    memory = archive.memory(subject, tenant=TENANT)
    service = ServiceMemory(archive, TENANT)
    ways: list[set[str]] = [
        {str(hit.id) for hit in memory.search("alpha", limit=1_000, mode=mode)}
        for mode in ("keyword", "vector", "hybrid")
    ]
    ways.append({one.id for one in service.search("alpha", scope=subject, limit=1_000)})
    ways.append({one.id for one in service.search("alpha", mode="keyword_only", limit=1_000) if one.scope == subject})
    ways.append({one.id for one in service.list_all(scope=subject, limit=None)})
    return ways


@pytest.mark.parametrize("seed", range(2))
def test_what_another_process_wrote_is_seen_by_the_next_search(archive: Archive, other: Other, seed: int) -> None:
    """Random writes here and there; after each one, every way of searching finds exactly what is alive."""
    chance = random.Random(seed)
    alive: dict[str, str | None] = {}
    for number in range(60):
        write: Callable[..., Any] = other if chance.random() < 0.7 else lambda **command: do(archive, command)
        kind = chance.choice(
            ["add", "add", "add", "put", "delete", "forget", "read", "erase" if number % 20 == 19 else "add"]
        )
        if kind in ("add", "put"):
            key = chance.choice("ab") if kind == "put" else None
            stored = write(do=kind, text=f"alpha number {number}", key=key)
            alive = {one: other_key for one, other_key in alive.items() if key is None or other_key != key}
            alive[stored] = key
        elif kind in ("delete", "forget") and alive:
            gone = chance.choice(sorted(alive))
            write(do=kind, id=gone)
            del alive[gone]
        elif kind == "erase":
            write(do=kind)
            alive = {}
        elif kind == "read":
            write(do=kind)
        assert found_everywhere(archive) == [set(alive)] * 6, (number, kind)


def test_a_cached_index_is_brought_up_to_date_and_not_built_anew(
    archive: Archive, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An addition or a deletion elsewhere costs what it adds; only an erasure costs the whole scope."""
    memory = archive.memory(SUBJECT, tenant=TENANT)
    notes = [memory.remember(f"alpha {number}") for number in range(50)]
    memory.search("alpha", limit=1_000)
    loaded: list[int] = []
    refresh = indexes._refresh  # pyright: ignore[reportPrivateUsage]

    def spy(index: Any, view: Any, first: int, model_no: int | None) -> None:
        loaded.append(view.head.next_seq - first)
        refresh(index, view, first, model_no)

    monkeypatch.setattr(indexes, "_refresh", spy)
    memory.search("alpha")
    assert loaded == [], "the read that was recorded just now changed nothing"
    other(do="add", text="alpha there")
    assert len(memory.search("alpha", limit=1_000)) == 51
    other(do="delete", id=str(notes[0].id))
    assert len(memory.search("alpha", limit=1_000)) == 50
    assert max(loaded) <= 3
    loaded.clear()
    other(do="forget", id=str(notes[1].id))
    assert len(memory.search("alpha", limit=1_000)) == 49
    assert loaded[0] == len(memory) - 1


# --- Threads ----------------------------------------------------------------------------------------------------------


def in_threads(*jobs: Callable[[], None]) -> None:
    """Run the jobs at the same time; the first error is raised."""
    barrier = Barrier(len(jobs))
    errors: list[BaseException] = []

    def work(job: Callable[[], None]) -> None:
        try:
            barrier.wait(PATIENCE_S)
            job()
        except BaseException as error:  # noqa: BLE001 (a failed assertion in a thread belongs to the test)
            errors.append(error)

    threads = [Thread(target=work, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    if errors:
        raise errors[0]


def test_no_stale_hit_while_threads_and_a_process_write(archive: Archive, other: Other) -> None:
    """What was gone before a search began is not in it; what was there before and after is."""
    memory = archive.memory(SUBJECT, tenant=TENANT)
    service = ServiceMemory(archive, TENANT)
    added: list[str] = [str(memory.remember(f"alpha {number}").id) for number in range(20)]
    begun: set[str] = set()
    """What somebody has begun to take away."""
    gone: set[str] = set()
    """What somebody has taken away: the call has returned."""
    done = Event()

    def write(seed: int, act: Callable[..., Any]) -> None:
        chance = random.Random(seed)
        try:
            for number in range(40):
                if chance.random() < 0.5:
                    added.append(act(do="add", text=f"alpha {seed} {number}"))
                else:
                    mine = [one for one in list(added)[seed % 2 :: 2] if one not in begun]
                    if mine:
                        target = chance.choice(mine)
                        begun.add(target)
                        act(do=chance.choice(["delete", "forget"]), id=target)
                        gone.add(target)
        finally:
            if seed == 0:
                done.set()

    def search(look: Callable[[], set[str]]) -> None:
        rounds = 0
        while not done.is_set() or rounds < 3:
            there, gone_before = set(added), set(gone)
            found = look()
            assert not found & gone_before, "a stale hit"
            assert found >= there - begun, "a lost memory"
            rounds += 1

    in_threads(
        lambda: write(0, other),
        lambda: write(1, lambda **command: do(archive, command)),
        lambda: search(lambda: {str(hit.id) for hit in memory.search("alpha", limit=1_000, mode="keyword")}),
        lambda: search(lambda: {str(hit.id) for hit in memory.search("alpha", limit=1_000, mode="hybrid")}),
        lambda: search(lambda: {one.id for one in service.search("alpha", limit=1_000)}),
    )
    assert found_everywhere(archive) == [set(added) - gone] * 6
    assert archive.verify()


def test_a_hundred_scopes_interleaved_stay_apart(archive: Archive) -> None:
    """Many requests of many scopes on shared objects: each answer, and each record of it, is of its own scope."""
    names = [(tenant, f"scope{number}") for tenant in ("acme", "globex") for number in range(50)]
    services = {tenant: ServiceMemory(archive, tenant) for tenant in ("acme", "globex")}

    def word_of(tenant: str, subject: str) -> str:
        return f"{tenant}x{subject}"

    def use(seed: int) -> None:
        chance = random.Random(seed)
        mine = [names[number] for number in range(len(names)) if number % 4 == seed % 4 or chance.random() < 0.2]
        for number in range(60):
            tenant, subject = chance.choice(mine)
            word, service = word_of(tenant, subject), services[tenant]
            memory = archive.memory(subject, tenant=tenant)
            match number % 4:
                case 0:
                    memory.remember(f"alpha {word} {seed} {number}")
                case 1:
                    service.add(f"alpha {word} {seed} {number}", scope=subject)
                case 2:
                    assert all(word in hit.text for hit in memory.search("alpha", limit=50))
                case _:
                    found = service.search("alpha", scope=subject, limit=50)
                    assert all(word in one.content and one.scope == subject for one in found)

    in_threads(*[lambda seed=seed: use(seed) for seed in range(6)])
    for tenant, subject in names:
        memory = archive.memory(subject, tenant=tenant)
        own = {item.id for item in memory.items()}
        for recall in memory.events(kind="recall"):
            assert isinstance(recall, Recall)
            assert set(recall.recalled) <= own
    for tenant, service in services.items():
        everything = service.search("alpha", limit=1_000)
        assert {one.content.split()[1] for one in everything} == {
            word_of(tenant, one.scope or "") for one in everything
        }
        assert len(everything) == sum(len(info.ledger.items()) for info in archive.tenant(tenant).scopes())


# --- The cache --------------------------------------------------------------------------------------------------------


def cache_of(archive: Archive) -> indexes.IndexCache:
    return archive._engine.indexes  # pyright: ignore[reportPrivateUsage]


def fill_scopes(archive: Archive, number: int) -> list[Memory]:
    memories = [archive.memory(f"scope-{one}", tenant=TENANT) for one in range(number)]
    for memory in memories:
        memory.add_many([Message(speaker="Anna", content=f"alpha {memory.scope.subject} {one}") for one in range(40)])
    return memories


def test_the_cache_is_bounded_in_bytes(archive: Archive) -> None:
    memories = fill_scopes(archive, 30)
    cache = cache_of(archive)
    memories[0].search("alpha")
    largest = cache.bytes_used
    assert 0 < largest < 100_000
    cache._bytes_max = 5 * largest  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        for memory in memories:
            hits = memory.search("alpha", limit=50, mode="keyword")
            assert len(hits) == 40
            assert all(str(memory.scope.subject) in hit.text for hit in hits)
            assert cache.bytes_used <= 6 * largest
    cache._bytes_max = 0  # pyright: ignore[reportPrivateUsage]
    assert len(memories[3].search("alpha", limit=50)) == 40


def test_erased_scopes_leave_the_cache_at_once(archive: Archive) -> None:
    memory, kept = fill_scopes(archive, 2)
    for one in (memory, kept):
        one.search("alpha")
    before = cache_of(archive).bytes_used
    memory.erase(clean="later")
    assert 0 < cache_of(archive).bytes_used < before
    assert memory.search("alpha") == []
    memory.remember("alpha anew")
    assert [hit.text for hit in memory.search("alpha")] == ["alpha anew"]


def test_idle_indexes_leave_the_cache_when_another_process_erases(
    archive: Archive, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "CHECK_EVERY_S", 0.02)
    (memory,) = fill_scopes(archive, 1)
    memory.search("alpha")
    assert cache_of(archive).bytes_used > 0
    other(do="erase", subject="scope-0")
    deadline = time.monotonic() + PATIENCE_S
    while cache_of(archive).bytes_used:
        assert time.monotonic() < deadline, "an erased scope stays in memory"
        threading.Event().wait(0.01)


# --- Hostile queries --------------------------------------------------------------------------------------------------

TEXT: Final = "The user-id of POL-358 v1.2.3 is in /path, it's C++ (or foo_bar) AND near 2026-05-08"
FOUND: Final = [
    *("pre-POL-358", "POL-358", "2026-05-08", "it's C++", "C++", "/path", "user-id", "foo_bar", "v1.2.3"),
    *('"user', "user AND", "(user", "path:val", "user*", "^user", "-user", "NEAR(user, 5)", "user OR", "NOT user"),
    *("{path}: user", "user + path", "'user''", "user; DROP TABLE items", "user\\", "user -- x", "user\n\tpath"),
    *("user \U0001f680", "USER", "user" * 1 + " " * 9_000, "user\u0301", "ＵＳＥＲ", "path % _ ? [ . : /"),
]
NOTHING: Final = [
    *(" ", "\t\n", "!!!", "\U0001f680", '"', "'", "''", '""', "(", ")", "()", "*", "^", "-", "+", ":", "{}", "[]", "%"),
    *("_", "\\", ";", "--", "/*", "*/", "…", "\u200b", "\ufeff", "., ;:!?", "\u202e", "AND" * 0 + "&&", "||"),
]


def test_every_query_is_words(archive: Archive) -> None:
    memory = archive.memory(SUBJECT, tenant=TENANT)
    memory.remember(TEXT)
    archive.memory("someone else", tenant=TENANT).remember(f"{TEXT} elsewhere")
    for query in FOUND:
        for mode in ("keyword", "auto", "hybrid"):
            assert [hit.text for hit in memory.search(query, mode=mode)] == [TEXT], (query, mode)
        assert [event.content for event in [memory.recall(query)[1][0]] if isinstance(event, muniment.Note)] == [TEXT]
    before = len(memory)
    for query in NOTHING:
        assert memory.search(query) == [], query
        assert memory.recall(query)[1] == []
    assert len(memory) == before + 2 * len(NOTHING), "each was recorded"
    assert memory.search("") == []
    assert len(memory) == before + 2 * len(NOTHING)


def test_queries_that_are_too_long_or_no_text(archive: Archive) -> None:
    memory = archive.memory(SUBJECT, tenant=TENANT)
    memory.remember("needle in a haystack")
    before = len(memory)
    with pytest.raises(LimitExceededError, match="100000 given, at most 10000"):
        memory.search("x" * 100_000)
    wrong: tuple[Any, ...] = ("\ud800", "a\udfffb", None, 5, b"needle", ["needle"])
    for query in wrong:
        with pytest.raises(muniment.MunimentError):
            memory.search(query)
    assert len(memory) == before
    many = " ".join(f"word{number}" for number in range(1_000))
    assert [hit.text for hit in memory.search(f"{many} needle")] == ["needle in a haystack"]


# --- Embedders --------------------------------------------------------------------------------------------------------


def failing(texts: list[str]) -> Any:
    raise ConnectionError("the model is down")


ANSWERS: Final[dict[str, tuple[Callable[[list[str]], Any], type[Exception]]]] = {
    "raises": (failing, ProviderError),
    "too few": (lambda texts: [[1.0, 1.0]] * (len(texts) - 1), ProviderError),
    "too many": (lambda texts: [[1.0, 1.0]] * (len(texts) + 1), ProviderError),
    "empty": (lambda texts: [[] for _ in texts], ProviderError),
    "NaN": (lambda texts: [[float("nan"), 1.0] for _ in texts], ProviderError),
    "infinity": (lambda texts: [[float("-inf"), 1.0] for _ in texts], ProviderError),
    "text": (lambda texts: "ab", ProviderError),
    "None": (lambda texts: None, ProviderError),
    "another length": (lambda texts: [[1.0] * 7 for _ in texts], EmbeddingDimensionError),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("on_embed_error", ["raise", "keyword"])
def test_an_embedder_that_misbehaves(path: Path, name: str, on_embed_error: Any) -> None:
    answer, error = ANSWERS[name]
    with muniment.open(path, durability="normal", embedder=embed) as archive:
        stored = archive.memory(SUBJECT, tenant=TENANT).remember("alpha one")
        archive.memory("other", tenant=TENANT).remember("alpha elsewhere")
    with muniment.open(path, durability="normal", embedder=answer, on_embed_error=on_embed_error) as archive:
        memory = archive.memory(SUBJECT, tenant=TENANT)
        before = len(memory)
        falls_back = on_embed_error == "keyword" and error is ProviderError
        for mode in ("vector", "hybrid"):
            with pytest.raises(error):
                memory.search("alpha", mode=mode)
        if falls_back:
            assert [hit.id for hit in memory.search("alpha")] == [stored.id]
            memory.remember("alpha two")
            assert len(memory.search("alpha", mode="keyword")) == 2
        else:
            with pytest.raises(error):
                memory.search("alpha")
            with pytest.raises(error):
                memory.remember("alpha two")
            with pytest.raises(error):
                memory.add_many([Message(speaker="anna", content="alpha two")])
            assert len(memory) == before, "a failed search or addition leaves nothing"
            assert [hit.id for hit in memory.search("alpha", mode="keyword")] == [stored.id]


def test_zeros_point_nowhere(path: Path) -> None:
    with muniment.open(path, durability="normal", embedder=lambda texts: [[0.0, 0.0, 0.0] for _ in texts]) as archive:
        memory = archive.memory(SUBJECT, tenant=TENANT)
        memory.remember("alpha one")
        memory.remember("beta two")
        for fusion in ("convex", "rrf"):
            for mode in ("auto", "hybrid"):
                assert [hit.text for hit in memory.search("alpha", mode=mode, fusion=fusion)] == ["alpha one"]
            assert memory.search("alpha", mode="vector", fusion=fusion) == []


class Model:
    """An embedder with a name."""

    def __init__(self, name: str, turn: float) -> None:
        self.name = name
        self.dimension = 3
        self._turn = turn

    def embed(self, texts: Sequence[str], /) -> Any:
        rows = [[1.0, self._turn * len(text), self._turn] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 3)


def test_another_model_names_both_and_keywords_go_on(path: Path) -> None:
    with muniment.open(path, durability="normal", embedder=Model("model-one", 1.0)) as archive:
        archive.memory(SUBJECT, tenant=TENANT).remember("alpha one")
    for on_embed_error in ("raise", "keyword"):
        with muniment.open(
            path, durability="normal", embedder=Model("model-two", -1.0), on_embed_error=on_embed_error
        ) as archive:
            memory = archive.memory(SUBJECT, tenant=TENANT)
            for mode in ("vector", "hybrid") if on_embed_error == "keyword" else ("vector", "hybrid", "auto"):
                with pytest.raises(EmbeddingUnavailableError, match=r"'model-one'.*'model-two'.*reindex"):
                    memory.search("alpha", mode=mode)
            assert [hit.text for hit in memory.search("alpha one", mode="keyword", limit=1)] == ["alpha one"]
            memory.remember(f"alpha {on_embed_error}")
    # The model that the vectors are of still works, and finds what has a vector of it.
    with muniment.open(path, durability="normal", embedder=Model("model-one", 1.0)) as archive:
        memory = archive.memory(SUBJECT, tenant=TENANT)
        assert [hit.text for hit in memory.search("alpha", mode="vector")] == ["alpha one"]
    with muniment.open(path, durability="normal", embedder=Model("model-two", -1.0)) as archive:
        assert archive.reindex() == 3
        assert len(archive.memory(SUBJECT, tenant=TENANT).search("alpha", mode="vector")) == 3
    # A model that changed under its name shows by its probe.
    with (
        muniment.open(path, durability="normal", embedder=Model("model-two", 5.0)) as archive,
        pytest.raises(EmbeddingUnavailableError, match="model-two"),
    ):
        archive.memory(SUBJECT, tenant=TENANT).search("alpha", mode="vector")


if __name__ == "__main__":
    serve(sys.argv[1])
