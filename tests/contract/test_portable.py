"""The shipped portable suite: every vector on every path, every port law on every adapter, and its three guards."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

import muniment
import muniment.testing.portable as suite
from muniment import portable
from muniment.core.prompt import TurnMessages
from muniment.errors import ConflictError, UsageError
from muniment.portable import (
    ArchiveMemoryPort,
    FileMemoryPort,
    MemoryCategory,
    MemoryEntry,
    MemoryPort,
    MemoryStore,
    ranking,
    rendering,
)
from muniment.portable import operations as operations_module
from muniment.portable import store as store_module
from muniment.testing.portable import PORT_LAWS, LawBrokenError, Vector, check_vector, run_conformance

VECTORS = suite.shipped_vectors()

NewPlace = Callable[[], suite.OpenPort]
"""Finds a new, empty place, and answers with what opens a port on it."""


@contextmanager
def files(suffix: str, folder: Path) -> Generator[NewPlace]:
    places = count()
    yield lambda: partial(FileMemoryPort, folder / f"{next(places)}{suffix}")


@contextmanager
def archives(url: str, folder: Path) -> Generator[NewPlace]:
    with muniment.open(url.format(folder=folder), durability="normal") as archive:
        subjects = count()
        yield lambda: partial(ArchiveMemoryPort, archive.memory(f"user-{next(subjects)}", tenant="acme"))


ADAPTERS: dict[str, tuple[type[MemoryPort], Callable[[Path], AbstractContextManager[NewPlace]]]] = {
    "json file": (FileMemoryPort, partial(files, ".json")),
    "yaml file": (FileMemoryPort, partial(files, ".yaml")),
    "archive in memory": (ArchiveMemoryPort, partial(archives, "memory://")),
    "archive in sqlite": (ArchiveMemoryPort, partial(archives, "{folder}/archive.db")),
}


@pytest.fixture(scope="module", params=ADAPTERS)
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[NewPlace]:
    with ADAPTERS[request.param][1](tmp_path_factory.mktemp("places")) as found:
        yield found


@pytest.fixture
def open_port(new_place: NewPlace) -> suite.OpenPort:
    return new_place()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_vector_on_the_functions(vector: Vector):
    check_vector(vector)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_vector_through_the_port(vector: Vector, open_port: suite.OpenPort):
    check_vector(vector, open_port)


@pytest.mark.parametrize("law", PORT_LAWS)
def test_port_law(law: str, open_port: suite.OpenPort):
    PORT_LAWS[law](open_port)


def test_run_on_a_port(open_port: suite.OpenPort, tmp_path: Path):
    report = run_conformance(write_vectors(tmp_path, GOOD), open_port)  # each shipped vector is a test of its own above
    assert report.ok, report.failures
    assert (report.vectors, report.steps, dict(report.groups)) == (1, 1, {"add": 1})
    assert report.port_laws == tuple(PORT_LAWS)
    assert open_port().load() == MemoryStore()


def test_run_on_the_functions():
    report = run_conformance()
    assert (report.ok, report.target, report.port_laws) == (True, "functions", ())
    assert report.vectors == len(VECTORS) == sum(report.groups.values())
    assert report.steps == sum(len(vector.steps) for vector in VECTORS)


# ---- guard one: everything is covered ------------------------------------------------------------------------------


def test_every_adapter_of_the_port_is_covered():
    named = {kind for name, kind in vars(portable).items() if inspect.isclass(kind) and name.endswith("MemoryPort")}
    assert named - {MemoryPort} == {kind for kind, _ in ADAPTERS.values()}
    assert all(issubclass(kind, MemoryPort) for kind in named)


def test_every_group_and_operation_is_used_and_every_law_has_a_group():
    assert {vector.group for vector in VECTORS} == set(suite.GROUP_LAWS)
    assert {step["op"] for vector in VECTORS for step in vector.steps} == set(suite.OPS)
    assert {law for laws in suite.GROUP_LAWS.values() for law in laws} == {f"P{n}" for n in range(1, 19)}


def test_the_laws_in_the_docstring_of_the_port_are_the_laws_of_the_suite():
    docstring = MemoryPort.__doc__ or ""
    assert all(f"(`{law}`)" in docstring for law in PORT_LAWS)
    assert docstring.count("(`") == len(PORT_LAWS)


def test_the_vectors_of_the_contract_are_unchanged_in_number():
    given = suite.read_vectors(suite.SHIPPED_VECTORS[0])
    assert suite.count_vectors(given)["vectors"] == 107
    assert suite.count_vectors(given)["steps"] == 223


# ---- guard two: mutants fail ---------------------------------------------------------------------------------------


def replaced_by_ordered_tags(entries: Sequence[MemoryEntry], new: MemoryEntry) -> list[int]:
    return [i for i, old in enumerate(entries) if old.category == new.category == "core" and old.tags == new.tags]


def replaced_in_any_tier(entries: Sequence[MemoryEntry], new: MemoryEntry) -> list[int]:
    return [i for i, old in enumerate(entries) if set(old.tags or ()) == set(new.tags or ())]


def first_replaced_only(entries: Sequence[MemoryEntry], new: MemoryEntry) -> list[int]:
    return FIND_REPLACED(entries, new)[:1]


def oldest_first(entries: Sequence[MemoryEntry], max_entries: int) -> list[int]:
    return list(range(len(entries)))[: len(entries) - max_entries] if max_entries else []


def newest_archival_first(entries: Sequence[MemoryEntry], max_entries: int) -> list[int]:
    if not max_entries or len(entries) <= max_entries:
        return []
    archival = [i for i, entry in enumerate(entries) if entry.category == "archival"]
    others = [i for i, entry in enumerate(entries) if entry.category != "archival"]
    return [*reversed(archival), *others][: len(entries) - max_entries]


def insight_before_core(entries: Sequence[MemoryEntry], max_entries: int) -> list[int]:
    if not max_entries or len(entries) <= max_entries:
        return []
    order = {"archival": 0, "insight": 1, "core": 2}
    ranked = sorted(range(len(entries)), key=lambda i: order[entries[i].category.value])
    return ranked[: len(entries) - max_entries]


def never_the_newest(entries: Sequence[MemoryEntry], max_entries: int) -> list[int]:
    victims = CHOOSE_VICTIMS(entries, max_entries + 1 if max_entries else 0)
    return [index for index in victims if index != len(entries) - 1]


def cap_zero_is_empty(entries: Sequence[MemoryEntry], max_entries: int) -> list[int]:
    return CHOOSE_VICTIMS(entries, max_entries) if max_entries else list(range(len(entries)))


def ties_newest_first(entries: Sequence[MemoryEntry], tokens: Sequence[str]) -> list[portable.ScoredMemory]:
    return RANK(list(reversed(entries)), tokens)


def most_matches_first(entries: Sequence[MemoryEntry], tokens: Sequence[str]) -> list[portable.ScoredMemory]:
    return sorted(RANK(entries, tokens), key=lambda hit: -hit.keyword_matches)


def newest_created_first(entries: Sequence[MemoryEntry], tokens: Sequence[str]) -> list[portable.ScoredMemory]:
    return sorted(RANK(entries, tokens), key=lambda hit: (hit.score, hit.entry.created_at or ""), reverse=True)


def whole_words(entry: MemoryEntry, tokens: Sequence[str]) -> portable.ScoredMemory | None:
    words = entry.content.lower().split()
    matches = [token for token in tokens if token in words]
    return portable.ScoredMemory(entry, 2.0 * len(matches), len(matches)) if matches else None


def boost_without_match(entry: MemoryEntry, tokens: Sequence[str]) -> portable.ScoredMemory | None:
    core = entry.category is MemoryCategory.CORE
    return SCORE(entry, tokens) or (portable.ScoredMemory(entry, 1.0, 0) if core else None)


def split_like_python(query: str) -> list[str]:
    return FIND_TOKENS(" ".join(query.split()))


def trim_like_isalnum(piece: str) -> str:
    while piece and not piece[0].isalnum():
        piece = piece[1:]
    while piece and not piece[-1].isalnum():
        piece = piece[:-1]
    return piece


def trim_keeps_underscore(piece: str) -> str:
    return piece if "_" in piece else TRIM(piece)


def no_trim(piece: str) -> str:
    return piece


def index_from_the_end(store: MemoryStore, index: int) -> int:
    return index % len(store) if -len(store) <= index < 0 else CHECK_INDEX(store, index)


def tags_of_letters(tags: object) -> tuple[str, ...]:
    return tuple(tags) if isinstance(tags, str) else CHECK_TAGS(tags)


def unknown_is_core(place: str, value: object) -> MemoryCategory:
    return MemoryCategory(value) if value in set(MemoryCategory) else MemoryCategory.CORE


def any_number(name: str, value: object) -> int:
    return max(0, int(cast("int", value) or 0))


def escaped_prompt(store: MemoryStore) -> str:
    return FORMAT_PROMPT(store).replace("\n##", "\n  ##")


def prompt_of_every_tier(store: MemoryStore) -> str:
    return "## Memory\n" + "".join(f"- {entry.content}\n" for entry in store.entries)


def list_with_scores(number: int, result: portable.ScoredMemory) -> str:
    return FORMAT_RESULT(number, result).replace("\n", f" ({result.score})\n", 1)


def tag_line_always(number: int, result: portable.ScoredMemory) -> str:
    return FORMAT_RESULT(number, result) if result.entry.tags else FORMAT_RESULT(number, result) + "   tags: \n"


def save_without_empty_tags(entry: MemoryEntry) -> dict[str, object]:
    return {key: value for key, value in SAVE_ENTRY(entry).items() if value != []}


def save_nulls(entry: MemoryEntry) -> dict[str, object]:
    return {"createdAt": None, "tags": None, **SAVE_ENTRY(entry)}


def save_sorted_tags(entry: MemoryEntry) -> dict[str, object]:
    saved = SAVE_ENTRY(entry)
    return {**saved, "tags": sorted(set(entry.tags))} if entry.tags else saved


def block_after_system(block: str, messages: Sequence[dict[str, str]]) -> TurnMessages:
    first = [m for m in messages if m["role"] == "system"]
    rest = [m for m in messages if m["role"] != "system"]
    placed = (*first, *([{"role": "system", "content": block}] if block else []), *rest)
    return TurnMessages(placed, len(placed))


def empty_block_too(block: str, messages: Sequence[dict[str, str]]) -> TurnMessages:
    placed = ({"role": "system", "content": block}, *messages)
    return TurnMessages(placed, len(placed))


def first_message_is_prefix(block: str, messages: Sequence[dict[str, str]]) -> TurnMessages:
    return TurnMessages(PLACE_BLOCK(block, messages).messages, 1)


def only_first_core(store: MemoryStore) -> list[MemoryEntry]:
    return CORE_MEMORIES(store)[:1]


FIND_REPLACED = operations_module._find_replaced  # pyright: ignore[reportPrivateUsage]
CHOOSE_VICTIMS = operations_module._choose_victims  # pyright: ignore[reportPrivateUsage]
CHECK_INDEX = operations_module._check_index  # pyright: ignore[reportPrivateUsage]
RANK = ranking._rank  # pyright: ignore[reportPrivateUsage]
SCORE = ranking._score  # pyright: ignore[reportPrivateUsage]
TRIM = ranking._trim  # pyright: ignore[reportPrivateUsage]
FIND_TOKENS = ranking.find_tokens
CHECK_TAGS = store_module._check_tags  # pyright: ignore[reportPrivateUsage]
FORMAT_PROMPT = rendering.format_for_system_prompt
FORMAT_RESULT = rendering._format_result  # pyright: ignore[reportPrivateUsage]
SAVE_ENTRY = MemoryEntry.save
PLACE_BLOCK = suite.place_block
CORE_MEMORIES = portable.core_memories

MUTANTS: list[tuple[str, object, str, object]] = [
    ("recall", ranking, "_CONTENT_WEIGHT", 1.0),
    ("recall", ranking, "_TAG_WEIGHT", 2.0),
    ("recall", ranking, "_CORE_BOOST", 0.0),
    ("recall", ranking, "_CORE_BOOST", 2.0),
    ("recall", ranking, "_rank", ties_newest_first),
    ("recall", ranking, "_rank", most_matches_first),
    ("recall", ranking, "_rank", newest_created_first),
    ("recall", ranking, "_score", boost_without_match),
    ("recall", ranking, "check_count", any_number),
    ("tokens", ranking, "_score", whole_words),
    ("tokens", ranking, "find_tokens", split_like_python),
    ("tokens", ranking, "_trim", trim_like_isalnum),
    ("tokens", ranking, "_trim", trim_keeps_underscore),
    ("empty_query", ranking, "_trim", no_trim),
    ("remember", operations_module, "_find_replaced", replaced_by_ordered_tags),
    ("remember", operations_module, "_find_replaced", replaced_in_any_tier),
    ("remember", operations_module, "_find_replaced", first_replaced_only),
    ("evict", operations_module, "_choose_victims", oldest_first),
    ("evict", operations_module, "_choose_victims", newest_archival_first),
    ("evict", operations_module, "_choose_victims", insight_before_core),
    ("evict", operations_module, "_choose_victims", never_the_newest),
    ("evict", operations_module, "_choose_victims", cap_zero_is_empty),
    ("evict", operations_module, "check_count", any_number),
    ("add", portable, "add", portable.remember),
    ("mutate", operations_module, "_check_index", index_from_the_end),
    ("clear", operations_module, "check_category", unknown_is_core),
    ("core", portable, "core_memories", only_first_core),
    ("format", portable, "format_for_system_prompt", escaped_prompt),
    ("format", portable, "format_for_system_prompt", prompt_of_every_tier),
    ("format", rendering, "_format_result", list_with_scores),
    ("format", rendering, "_format_result", tag_line_always),
    ("json", store_module, "_check_tags", tags_of_letters),
    ("json", store_module, "check_category", unknown_is_core),
    ("json", MemoryEntry, "save", save_without_empty_tags),
    ("json", MemoryEntry, "save", save_nulls),
    ("json", MemoryEntry, "save", save_sorted_tags),
    ("turn", suite, "place_block", block_after_system),
    ("turn", suite, "place_block", empty_block_too),
    ("turn", suite, "place_block", first_message_is_prefix),
]


@pytest.mark.parametrize(
    ("group", "where", "name", "broken"),
    MUTANTS,
    ids=[f"{group}-{name}-{getattr(broken, '__name__', broken)}" for group, _, name, broken in MUTANTS],
)
def test_broken_function_fails_its_group(
    group: str, where: object, name: str, broken: object, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(LawBrokenError):
        check_group(group)


def check_group(group: str) -> None:
    for vector in VECTORS:
        if vector.group == group:
            check_vector(vector)


def test_every_group_has_a_mutant():
    assert {group for group, *_ in MUTANTS} == set(suite.GROUP_LAWS)


def test_a_function_that_reads_must_not_write():
    def recall_and_forget(store: MemoryStore, query: str, limit: int = 0) -> list[portable.ScoredMemory]:
        found = portable.recall(store, query, limit)
        store.entries.clear()
        return found

    broken = SimpleNamespace(**{**vars(portable), "recall": recall_and_forget})
    report = run_conformance(operations=cast("suite.Operations", broken))
    assert any("changed the store" in failure.message for failure in report.failures)


class SharedPlacePort:
    """A correct port on a place in memory, to be broken below."""

    def __init__(self, place: dict[str, str]) -> None:
        self.place = place
        self.seen: str | None = None

    def load(self) -> MemoryStore:
        self.seen = self.read()
        return self.decode(self.seen)

    def save(self, store: MemoryStore) -> None:
        if self.is_conflict():
            raise ConflictError(expected=self.seen, actual=self.read())
        self.seen = self.place["text"] = self.encode(store)

    def read(self) -> str:
        return self.place.get("text", "")

    def is_conflict(self) -> bool:
        return self.read() != (self.seen or "")

    def encode(self, store: MemoryStore) -> str:
        return store.to_json()

    def decode(self, text: str) -> MemoryStore:
        return MemoryStore.from_json(text) if text else MemoryStore()


class StartsWithAGreeting(SharedPlacePort):
    def decode(self, text: str) -> MemoryStore:
        return MemoryStore.from_json(text) if text else MemoryStore([MemoryEntry("hello")])


class ForgetsEmptyTags(SharedPlacePort):
    def encode(self, store: MemoryStore) -> str:
        return json.dumps({"entries": [save_without_empty_tags(entry) for entry in store.entries]})


class SortsByTier(SharedPlacePort):
    def encode(self, store: MemoryStore) -> str:
        return MemoryStore(sorted(store.entries, key=lambda entry: entry.category.value)).to_json()


class DropsEqualEntries(SharedPlacePort):
    def encode(self, store: MemoryStore) -> str:
        return MemoryStore(list(dict.fromkeys(store.entries))).to_json()


class IgnoresOrder(SharedPlacePort):
    def save(self, store: MemoryStore) -> None:
        held = self.decode(self.read()).entries
        if sorted(map(repr, held)) != sorted(map(repr, store.entries)):
            super().save(store)


class ConflictsWithItself(SharedPlacePort):
    def save(self, store: MemoryStore) -> None:
        super().save(store)
        self.seen = None


class HandsOutItsOwnStore(SharedPlacePort):
    held: MemoryStore | None = None

    def load(self) -> MemoryStore:
        self.held = self.held or super().load()
        return self.held

    def save(self, store: MemoryStore) -> None:
        super().save(store)
        self.held = store


class LastWriterWins(SharedPlacePort):
    def is_conflict(self) -> bool:
        return self.seen is None and bool(self.read())


class WritesAnyway(SharedPlacePort):
    def save(self, store: MemoryStore) -> None:
        try:
            super().save(store)
        except ConflictError:
            self.place["text"] = self.encode(store)
            raise


class SavesOverWhatItNeverSaw(SharedPlacePort):
    def is_conflict(self) -> bool:
        return self.seen is not None and super().is_conflict()


class ConflictsOnce(SharedPlacePort):
    def save(self, store: MemoryStore) -> None:
        try:
            super().save(store)
        except ConflictError:
            self.seen = self.read()
            raise


class ConflictsForever(SharedPlacePort):
    broken = False

    def save(self, store: MemoryStore) -> None:
        self.broken = self.broken or self.is_conflict()
        if self.broken:
            raise ConflictError(expected=self.seen, actual="")
        super().save(store)


class NamesOneVersionTwice(SharedPlacePort):
    def save(self, store: MemoryStore) -> None:
        if self.is_conflict():
            raise ConflictError(expected="1", actual="1")
        super().save(store)


PORT_MUTANTS: list[tuple[type[SharedPlacePort], str]] = [
    (StartsWithAGreeting, "empty_place_loads_empty_store"),
    (ForgetsEmptyTags, "load_after_save_is_identity"),
    (SortsByTier, "load_after_save_is_identity"),
    (DropsEqualEntries, "load_after_save_is_identity"),
    (IgnoresOrder, "load_after_save_is_identity"),
    (ConflictsWithItself, "load_after_save_is_identity"),
    (HandsOutItsOwnStore, "stores_are_not_shared"),
    (LastWriterWins, "second_writer_conflicts"),
    (WritesAnyway, "second_writer_conflicts"),
    (NamesOneVersionTwice, "second_writer_conflicts"),
    (SavesOverWhatItNeverSaw, "unseen_place_conflicts"),
    (ConflictsOnce, "reload_after_conflict"),
    (ConflictsForever, "reload_after_conflict"),
]


def test_the_correct_port_in_memory_passes():
    report = run_conformance(target=partial(SharedPlacePort, {}))
    assert report.ok, report.failures


@pytest.mark.parametrize(("kind", "law"), PORT_MUTANTS, ids=lambda value: getattr(value, "__name__", value))
def test_broken_port_fails_its_law(kind: type[SharedPlacePort], law: str):
    with pytest.raises((LawBrokenError, ConflictError)):  # the conflict is that of a save that had to go through
        PORT_LAWS[law](partial(kind, {}))


@pytest.mark.parametrize("kind", [ForgetsEmptyTags, SortsByTier, DropsEqualEntries])
def test_broken_port_fails_vectors_too(kind: type[SharedPlacePort]):
    report = run_conformance(target=partial(kind, {}))
    assert any("/" in failure.name for failure in report.failures)


def test_every_port_law_has_a_mutant():
    assert {law for _, law in PORT_MUTANTS} == set(PORT_LAWS)


# ---- guard three: a run that checked nothing, or not all, is an error ----------------------------------------------

GOOD: dict[str, object] = {
    "id": "add/one",
    "group": "add",
    "store": {"entries": []},
    "steps": [{"op": "len", "expect": {"returned": 0}}],
}


def write_vectors(folder: Path, *vectors: object, **more: object) -> Path:
    path = folder / "vectors.json"
    path.write_text(json.dumps({"vectors": vectors, **more}), encoding="utf-8")
    return path


def changed(**fields: object) -> dict[str, object]:
    return {**deepcopy(GOOD), **fields}


def step(**fields: object) -> dict[str, object]:
    return changed(steps=[fields])


def test_a_file_of_one_good_vector_passes(tmp_path: Path):
    counts = {"vectors": 1, "steps": 1, "by_group": {"add": 1}}
    assert run_conformance(write_vectors(tmp_path, GOOD, counts=counts, schema={})).ok


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (changed(group="other", id="other/one"), "the group other is not known"),
        (changed(group="json"), "the group json is not known"),
        (changed(expects=3), "the key expects is not known"),
        (changed(steps=[]), "no steps"),
        ({key: value for key, value in GOOD.items() if key != "store"}, "no store"),
        (step(op="compact"), "the operation is not known"),
        (step(expect={}), "the operation is not known"),
        (step(op="len", of=3), "takes the arguments"),
        (step(op="recall", query="a"), "takes the arguments"),
        (step(op="len", expect={"length": 0}), "the expectation length is not known"),
        (step(op="len", expect={"returned": 1}), "returned: expected 1, got 0"),
        (step(op="len", expect={"returned": False}), "returned: expected False, got 0"),
        (step(op="is_empty", expect={"returned": 1}), "returned: expected 1, got True"),
        (step(op="len", expect={"error": {"kind": "value_error"}}), "must fail with value_error"),
        (step(op="len", expect={"error": {"kind": "value_error"}, "returned": 0}), "an error and an answer"),
        (step(op="remove", index=0), "raised MemoryIndexError"),
        (step(op="remove", index=0, expect={"error": {"kind": "value_error"}}), "expected ValueError"),
        (step(op="remove", index=0, expect={"error": {"kind": "other"}}), "is not known to this suite"),
        (
            step(op="remove", index=0, expect={"error": {"kind": "index_out_of_range", "message": "x"}}),
            "the error reads",
        ),
        (step(op="remove", index=0, expect={"error": {"kind": "index_out_of_range", "more": 1}}), "is not known"),
        (
            step(op="load_store", data=[], expect={"error": {"kind": "value_error", "at": "entries"}}),
            "the place entries",
        ),
        (changed(expect_store={"entries": [{"content": "a", "category": "core"}]}), "expected 1 values, got 0"),
        (changed(expect_store={}), "expected the keys"),
    ],
)
def test_what_the_suite_does_not_know_or_find_is_a_failure(vector: dict[str, object], message: str, tmp_path: Path):
    report = run_conformance(write_vectors(tmp_path, vector))
    assert not report.ok
    assert len(report.failures) == 1
    assert message in report.failures[0].message
    assert report.failures[0].name == vector["id"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a vector file"),
        ("[]", "no list `vectors`"),
        ('{"vectors": {}}', "no list `vectors`"),
        ('{"vectors": []}', "nothing would be checked"),
        ('{"vectors": [3]}', r"vectors\[0\]: must be an object"),
        ('{"vectors": [{"id": "add/a", "steps": 3}]}', "must be a list of objects"),
        ('{"vectors": [{"id": "add/a", "steps": [3]}]}', "must be a list of objects"),
        ('{"vectors": [{"id": "add/a"}, {"id": "add/a"}]}', "add/a is not unique"),
        ('{"counts": {"vectors": 2}, "vectors": [{"id": "add/a"}]}', "counts"),
    ],
)
def test_a_file_that_is_no_vector_file_is_refused(content: str, message: str, tmp_path: Path):
    path = tmp_path / "vectors.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        run_conformance(path)


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="not a vector file"):
        run_conformance(tmp_path / "none.json")


def open_nothing() -> object:
    return object()


def open_with_argument(path: str) -> MemoryPort:
    return FileMemoryPort(path)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("muniment.portable", "package.module:name"),
        (":x", "package.module:name"),
        ("muniment.nowhere:x", "cannot be imported"),
        ("muniment.portable:nothing", "cannot be imported"),
        ("muniment.portable:__all__", "cannot be called"),
        (open_nothing, "opens no MemoryPort but object"),
        (open_with_argument, "without arguments"),
    ],
)
def test_a_bad_target_is_refused(target: str | suite.OpenPort, message: str):
    with pytest.raises(UsageError, match=message):
        run_conformance(target=target)


PLACE: dict[str, str] = {}


def open_place() -> MemoryPort:
    return SharedPlacePort(PLACE)


def test_a_target_is_found_by_its_import_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(suite, "open_place", open_place, raising=False)
    report = run_conformance(target="muniment.testing.portable:open_place")
    assert (report.ok, report.target) == (True, "muniment.testing.portable:open_place")


def test_a_full_place_is_not_overwritten(tmp_path: Path):
    kept = MemoryStore([MemoryEntry("of a person")])
    open_kept = partial(FileMemoryPort, tmp_path / "store.json")
    port = open_kept()
    port.load()
    port.save(kept)
    with pytest.raises(UsageError, match="not empty"):
        run_conformance(target=open_kept)
    assert open_kept().load() == kept


def test_a_port_that_raises_is_a_failure_and_not_the_end_of_the_run():
    class Explodes(SharedPlacePort):
        def save(self, store: MemoryStore) -> None:
            raise RuntimeError("no disk")

    report = run_conformance(target=partial(Explodes, {}))
    assert len(report.failures) == len(VECTORS) + len(PORT_LAWS) + 1
    assert all("RuntimeError: no disk" in failure.message for failure in report.failures)
