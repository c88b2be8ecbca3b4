"""The portable contract as a suite: vectors for the functions, laws for the ports, both for other implementations too.

A vector is a store, steps on it and what each step must answer. It runs on the plain functions, or on a store that goes
through a port after every step: saved, opened anew, loaded and compared. The laws of `MemoryPort` that need two writers
stand beside the vectors as functions. `run_conformance` runs all of it and reports; `check_vector` and `PORT_LAWS` are
for a test suite that wants one test each. Nothing here needs pytest.

Three guards keep the suite honest. What it does not know (an operation, an argument, an expectation, a group) is a
failure and not skipped; a run that checked nothing is an error; and the suite's own tests break every operation and
every port law on purpose and want to see it fail.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol, cast

from muniment import portable
from muniment.core.prompt import place_block
from muniment.errors import ConflictError, UsageError
from muniment.portable import MemoryEntry, MemoryPort, MemoryStore, RememberResult, ScoredMemory

SHIPPED_VECTORS: Final = (
    Path(__file__).parent / "data" / "portable_vectors.json",
    Path(__file__).parent / "data" / "portable_vectors_more.json",
)
"""The vectors of the contract, and those added to them here."""

GROUP_LAWS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "recall": ("P10", "P13", "P14", "P15"),
        "empty_query": ("P12",),
        "tokens": ("P11", "P13"),
        "add": ("P4",),
        "remember": ("P5", "P6"),
        "evict": ("P7", "P10"),
        "mutate": ("P8", "P9"),
        "clear": ("P8", "P10"),
        "core": ("P8",),
        "format": ("P16", "P17"),
        "json": ("P1", "P2", "P3"),
        "turn": ("P18",),
    }
)
"""Which laws of the contract the vectors of a group prove."""

OpenPort = Callable[[], MemoryPort]
"""Opens the port under test. Every call opens the same place, which the suite overwrites."""


class LawBrokenError(AssertionError):
    """The implementation under test does not do what the contract says."""


class Operations(Protocol):
    """The functions under test; the module `muniment.portable` is one such object."""

    def add(self, store: MemoryStore, entry: MemoryEntry) -> None: ...
    def remember(self, store: MemoryStore, entry: MemoryEntry, max_entries: int = 0) -> RememberResult: ...
    def evict_to_cap(self, store: MemoryStore, max_entries: int) -> int: ...
    def update(self, store: MemoryStore, index: int, entry: MemoryEntry) -> None: ...
    def update_content(self, store: MemoryStore, index: int, content: str) -> None: ...
    def remove(self, store: MemoryStore, index: int) -> MemoryEntry: ...
    def clear(self, store: MemoryStore, category: str | None = None) -> int: ...
    def core_memories(self, store: MemoryStore) -> list[MemoryEntry]: ...
    def recall(self, store: MemoryStore, query: str, limit: int = 0) -> list[ScoredMemory]: ...
    def format_for_system_prompt(self, store: MemoryStore) -> str: ...
    def format_recall_results(self, results: Sequence[ScoredMemory]) -> str: ...


@dataclass(frozen=True, slots=True)
class Vector:
    """One vector as its file gives it."""

    id: str
    body: Mapping[str, object]

    @property
    def group(self) -> str:
        return self.id.partition("/")[0]

    @property
    def steps(self) -> Sequence[Mapping[str, object]]:
        return cast("Sequence[Mapping[str, object]]", self.body.get("steps", ()))


@dataclass(frozen=True, slots=True)
class Failure:
    """A vector or a port law that failed, and how."""

    name: str
    message: str


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """What a run checked and what failed.

    Shapes: `groups` is group -> vectors run; `port_laws` are the names of the port laws run, none without a port.
    """

    target: str
    vectors: int
    steps: int
    groups: Mapping[str, int]
    port_laws: tuple[str, ...]
    failures: tuple[Failure, ...]

    @property
    def ok(self) -> bool:
        """True exactly when nothing failed."""
        return not self.failures


def run_conformance(
    vector_file: str | Path | None = None, target: str | OpenPort | None = None, *, operations: Operations = portable
) -> ConformanceReport:
    """Run every vector of a file, and with a port every port law too; failures are in the report.

    Without `vector_file` the shipped vectors run. Without `target` they run on plain stores; with one, on stores that
    go through the port it opens. A target is a callable without arguments, or the import path of one:
    `package.module:name`. Each call must open the same place, which must be empty before the run and is empty after.

    Raises: UsageError for a file that holds no vectors or not the ones it counts, for a target that cannot be imported
            or does not open a port, and for a place that is not empty: what stands there is not overwritten.
    """
    vectors = shipped_vectors() if vector_file is None else read_vectors(vector_file)
    open_port = None if target is None else find_target(target)
    failures: list[Failure] = []
    if open_port is not None:
        _refuse_full_place(open_port)
        for name, law in PORT_LAWS.items():
            with _noted(name, failures):
                law(open_port)
    for vector in vectors:
        with _noted(vector.id, failures):
            check_vector(vector, open_port, operations=operations)
    if open_port is not None:
        with _noted("the place can be emptied", failures):
            _start(open_port, MemoryStore())
    return ConformanceReport(
        target=_name_target(target),
        vectors=len(vectors),
        steps=sum(len(vector.steps) for vector in vectors),
        groups=MappingProxyType(dict(Counter(vector.group for vector in vectors))),
        port_laws=tuple(PORT_LAWS) if open_port is not None else (),
        failures=tuple(failures),
    )


def shipped_vectors() -> tuple[Vector, ...]:
    """The vectors that ship with the package."""
    return tuple(vector for path in SHIPPED_VECTORS for vector in read_vectors(path))


def read_vectors(path: str | Path) -> tuple[Vector, ...]:
    """The vectors of a file; its own count of them must hold, so that no half file passes for a whole one.

    Raises: UsageError naming the file: unreadable, not JSON, no vectors, ids that are not unique `group/name`s.
    """
    try:
        content = cast("object", json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not a vector file: {error}") from error
    file = cast("dict[str, object]", content) if isinstance(content, dict) else {}
    bodies = file.get("vectors")
    if not isinstance(bodies, list):
        raise UsageError(f"{path}: not a vector file: no list `vectors`")
    vectors = tuple(
        [_read_vector(f"{path}: vectors[{n}]", body) for n, body in enumerate(cast("list[object]", bodies))]
    )
    if not vectors:
        raise UsageError(f"{path}: holds no vector, so nothing would be checked")
    if repeated := [name for name, count in Counter(vector.id for vector in vectors).items() if count > 1]:
        raise UsageError(f"{path}: the id {repeated[0]} is not unique")
    if "counts" in file and file["counts"] != (counted := count_vectors(vectors)):
        raise UsageError(f"{path}: counts {file['counts']} and holds {counted}")
    return vectors


def _read_vector(place: str, body: object) -> Vector:
    if not isinstance(body, dict):
        raise UsageError(f"{place}: must be an object")
    vector = cast("dict[str, object]", body)
    steps = vector.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in cast("list[object]", steps)):
        raise UsageError(f"{place}.steps: must be a list of objects")
    return Vector(str(vector.get("id")), vector)


def count_vectors(vectors: Sequence[Vector]) -> dict[str, object]:
    """The block `counts` of a vector file."""
    return {
        "vectors": len(vectors),
        "steps": sum(len(vector.steps) for vector in vectors),
        "by_group": dict(Counter(vector.group for vector in vectors)),
    }


def find_target(target: str | OpenPort) -> OpenPort:
    """The callable that a target names."""
    found = _import_target(target) if isinstance(target, str) else target
    if not callable(found):
        raise UsageError(f"the target {target!r} cannot be called to open a port")
    return cast("OpenPort", found)


def _import_target(path: str) -> object:
    module_name, separator, name = path.partition(":")
    if not separator or not module_name or not name:
        raise UsageError(f"the target {path!r} is not of the form package.module:name")
    try:
        found: object = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the target {path!r} cannot be imported: {error}") from error
    return found


def _name_target(target: str | OpenPort | None) -> str:
    if target is None:
        return "functions"
    return target if isinstance(target, str) else getattr(target, "__qualname__", repr(target))


def _refuse_full_place(open_port: OpenPort) -> None:
    try:
        port = cast("object", open_port())
    except TypeError as error:
        raise UsageError(f"the target cannot be called without arguments: {error}") from error
    if not isinstance(port, MemoryPort):
        raise UsageError(
            f"the target opens no MemoryPort but {type(port).__name__}: it needs the methods load and save"
        )
    if len(port.load()):
        raise UsageError("the target's place is not empty, and the suite overwrites it: give it an empty one")


@contextmanager
def _noted(name: str, failures: list[Failure]) -> Generator[None]:
    try:
        yield
    except LawBrokenError as error:
        failures.append(Failure(name, str(error)))
    except Exception as error:  # noqa: BLE001 (the code under test is foreign, and whatever it raises is a finding)
        failures.append(Failure(name, f"raised {type(error).__name__}: {error}"))


# ---- vectors -------------------------------------------------------------------------------------------------------

_VECTOR_KEYS: Final = frozenset({"id", "group", "note", "store", "steps", "expect_store"})

Answer = Mapping[str, object]
Step = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Op:
    """An operation of a vector's step: the arguments it takes, what can be expected of it, and how it is run."""

    arguments: frozenset[str]
    answers: frozenset[str]
    changes_store: bool
    run: Callable[[Walk, Step], Answer]


class Walk:
    """One vector on its way: the store as it is now, the functions, and the port if there is one."""

    def __init__(self, store: MemoryStore, operations: Operations, open_port: OpenPort | None) -> None:
        self.store = store
        self.operations = operations
        self._open_port = open_port
        self._port = None if open_port is None else _start(open_port, store)
        self._cross_port()

    def take(self, step: Step) -> None:
        """Run one step and compare what it must answer."""
        op = _find_op(step)
        expected = cast("Answer", step.get("expect", {}))
        before = list(self.store.entries)
        if "error" in expected:
            self._take_failing(op, step, cast("Mapping[str, object]", expected["error"]))
        else:
            compare("", dict(expected), _only(op.run(self, step), expected))
        if ("error" in expected or not op.changes_store) and self.store.entries != before:
            raise LawBrokenError("the step changed the store, and must not")
        self._save()
        self._cross_port()

    def _take_failing(self, op: Op, step: Step, error: Mapping[str, object]) -> None:
        try:
            op.run(self, step)
        except Exception as raised:  # noqa: BLE001 (any error is compared with the expected one)
            _compare_error(error, raised)
        else:
            raise LawBrokenError(f"the step succeeded, and must fail with {error.get('kind')}")

    def _save(self) -> None:
        if self._port is not None:
            self._port.save(self.store)

    def _cross_port(self) -> None:
        if self._open_port is None:
            return
        self._port = self._open_port()
        loaded = self._port.load()
        compare("store", self.store.save(), loaded.save())
        self.store = loaded


def check_vector(vector: Vector, open_port: OpenPort | None = None, *, operations: Operations = portable) -> None:
    """Run one vector; through a port, the store is saved, opened anew, loaded and compared after every step.

    Raises: LawBrokenError naming the step.
    """
    _check_shape(vector)
    walk = Walk(MemoryStore.load(cast("Mapping[str, object]", vector.body["store"])), operations, open_port)
    for number, step in enumerate(vector.steps, start=1):
        try:
            walk.take(step)
        except LawBrokenError as error:
            raise LawBrokenError(f"{vector.id}, step {number} ({step.get('op')}): {error}") from None
        except Exception as error:
            message = f"{vector.id}, step {number} ({step.get('op')}): raised {type(error).__name__}: {error}"
            raise LawBrokenError(message) from error
    if "expect_store" in vector.body:
        try:
            compare("store", vector.body["expect_store"], walk.store.save())
        except LawBrokenError as error:
            raise LawBrokenError(f"{vector.id}, after the last step: {error}") from None


def _check_shape(vector: Vector) -> None:
    if unknown := vector.body.keys() - _VECTOR_KEYS:
        raise LawBrokenError(f"{vector.id}: the key {min(unknown)} is not known to this suite")
    if vector.group not in GROUP_LAWS or vector.body.get("group") != vector.group:
        raise LawBrokenError(f"{vector.id}: the group {vector.body.get('group')} is not known to this suite")
    if not vector.steps or "store" not in vector.body:
        raise LawBrokenError(f"{vector.id}: has no store or no steps, so it would check nothing")


def _find_op(step: Step) -> Op:
    op = OPS.get(str(step.get("op")))
    if op is None:
        raise LawBrokenError("the operation is not known to this suite")
    if (given := frozenset(step) - {"op", "expect"}) != op.arguments:
        raise LawBrokenError(f"takes the arguments {sorted(op.arguments)}, not {sorted(given)}")
    expected = cast("Answer", step.get("expect", {}))
    if unknown := expected.keys() - op.answers - {"error"}:
        raise LawBrokenError(f"the expectation {min(unknown)} is not known to this suite")
    if "error" in expected and len(expected) > 1:
        raise LawBrokenError("expects an error and an answer")
    return op


def _only(answer: Answer, expected: Answer) -> dict[str, object]:
    return {key: value for key, value in answer.items() if key in expected}


_ERROR_KINDS: Final[Mapping[str, type[Exception]]] = {"index_out_of_range": IndexError, "value_error": ValueError}
_ERROR_KEYS: Final = frozenset({"kind", "message", "at"})


def _compare_error(expected: Mapping[str, object], raised: Exception) -> None:
    kind = _ERROR_KINDS.get(str(expected.get("kind")))
    if kind is None or expected.keys() - _ERROR_KEYS:
        raise LawBrokenError(f"the expected error {dict(expected)} is not known to this suite") from raised
    if not isinstance(raised, kind):
        raise LawBrokenError(f"raised {type(raised).__name__}, expected {kind.__name__}: {raised}") from raised
    text = str(raised)
    if "message" in expected and text != expected["message"]:
        raise LawBrokenError(f"the error reads {text!r}, expected {expected['message']!r}") from raised
    if "at" in expected and not text.startswith(f"{expected['at']}:"):
        raise LawBrokenError(f"the error does not start with the place {expected['at']}: {text!r}") from raised


def compare(place: str, expected: object, actual: object) -> None:
    """Nothing, if the two JSON values are equal: keys and lists exactly, numbers by value, true is not 1."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        _compare_mappings(place, cast("dict[str, object]", expected), cast("dict[str, object]", actual))
    elif isinstance(expected, list) and isinstance(actual, list):
        _compare_lists(place, cast("list[object]", expected), cast("list[object]", actual))
    elif isinstance(expected, bool) is not isinstance(actual, bool) or expected != actual:
        raise LawBrokenError(f"{place or 'answer'}: expected {expected!r}, got {actual!r}")


def _compare_mappings(place: str, expected: dict[str, object], actual: dict[str, object]) -> None:
    if expected.keys() != actual.keys():
        raise LawBrokenError(f"{place or 'answer'}: expected the keys {sorted(expected)}, got {sorted(actual)}")
    for key, value in expected.items():
        compare(f"{place}.{key}" if place else key, value, actual[key])


def _compare_lists(place: str, expected: list[object], actual: list[object]) -> None:
    for index, (wanted, found) in enumerate(zip(expected, actual, strict=False)):
        compare(f"{place}[{index}]", wanted, found)
    if len(expected) != len(actual):
        raise LawBrokenError(f"{place}: expected {len(expected)} values, got {len(actual)}")


def _entry(step: Step) -> MemoryEntry:
    return MemoryEntry.load(cast("Mapping[str, object]", step["entry"]))


def _saved(entries: Sequence[MemoryEntry]) -> list[object]:
    return [entry.save() for entry in entries]


def _run_recall(walk: Walk, step: Step) -> Answer:
    results = walk.operations.recall(walk.store, cast("str", step["query"]), cast("int", step["limit"]))
    return {
        "results": [
            {"entry": result.entry.save(), "score": result.score, "keyword_matches": result.keyword_matches}
            for result in results
        ]
    }


def _run_remember(walk: Walk, step: Step) -> Answer:
    result = walk.operations.remember(walk.store, _entry(step), cast("int", step["max_entries"]))
    return {"index": result.index, "replaced": _saved(result.replaced), "evicted": _saved(result.evicted)}


def _run_add(walk: Walk, step: Step) -> Answer:
    walk.operations.add(walk.store, _entry(step))
    return {}


def _run_evict(walk: Walk, step: Step) -> Answer:
    return {"returned": walk.operations.evict_to_cap(walk.store, cast("int", step["max_entries"]))}


def _run_update(walk: Walk, step: Step) -> Answer:
    walk.operations.update(walk.store, cast("int", step["index"]), _entry(step))
    return {}


def _run_update_content(walk: Walk, step: Step) -> Answer:
    walk.operations.update_content(walk.store, cast("int", step["index"]), cast("str", step["content"]))
    return {}


def _run_remove(walk: Walk, step: Step) -> Answer:
    return {"entry": walk.operations.remove(walk.store, cast("int", step["index"])).save()}


def _run_clear(walk: Walk, step: Step) -> Answer:
    return {"returned": walk.operations.clear(walk.store, cast("str | None", step["category"]))}


def _run_core_memories(walk: Walk, step: Step) -> Answer:
    return {"entries": _saved(walk.operations.core_memories(walk.store))}


def _run_len(walk: Walk, step: Step) -> Answer:
    return {"returned": len(walk.store)}


def _run_is_empty(walk: Walk, step: Step) -> Answer:
    return {"returned": len(walk.store) == 0}


def _run_format_prompt(walk: Walk, step: Step) -> Answer:
    return {"text": walk.operations.format_for_system_prompt(walk.store)}


def _run_format_recall(walk: Walk, step: Step) -> Answer:
    results = walk.operations.recall(walk.store, cast("str", step["query"]), cast("int", step["limit"]))
    return {"text": walk.operations.format_recall_results(results)}


def _run_save_store(walk: Walk, step: Step) -> Answer:
    return {"json": walk.store.save()}


def _run_load_store(walk: Walk, step: Step) -> Answer:
    walk.store = MemoryStore.load(cast("Mapping[str, object]", step["data"]))
    return {"entries": _saved(walk.store.entries)}


def _run_save_and_load(walk: Walk, step: Step) -> Answer:
    walk.store = MemoryStore.from_json(walk.store.to_json())
    return {}


def _run_turn(walk: Walk, step: Step) -> Answer:
    messages = cast("Sequence[Mapping[str, str]]", step["messages"])
    turn = place_block(walk.operations.format_for_system_prompt(walk.store), messages)
    return {
        "messages": [dict(message) for message in turn.messages],
        "stable_prefix_messages": turn.stable_prefix_messages,
    }


def _op(arguments: str, answers: str, run: Callable[[Walk, Step], Answer], *, changes_store: bool = False) -> Op:
    return Op(frozenset(arguments.split()), frozenset(answers.split()), changes_store, run)


OPS: Final[Mapping[str, Op]] = MappingProxyType(
    {
        "recall": _op("query limit", "results", _run_recall),
        "remember": _op("entry max_entries", "index replaced evicted", _run_remember, changes_store=True),
        "add": _op("entry", "", _run_add, changes_store=True),
        "evict_to_cap": _op("max_entries", "returned", _run_evict, changes_store=True),
        "update": _op("index entry", "", _run_update, changes_store=True),
        "update_content": _op("index content", "", _run_update_content, changes_store=True),
        "remove": _op("index", "entry", _run_remove, changes_store=True),
        "clear": _op("category", "returned", _run_clear, changes_store=True),
        "core_memories": _op("", "entries", _run_core_memories),
        "len": _op("", "returned", _run_len),
        "is_empty": _op("", "returned", _run_is_empty),
        "format_for_system_prompt": _op("", "text", _run_format_prompt),
        "format_recall_results": _op("query limit", "text", _run_format_recall),
        "save_store": _op("", "json", _run_save_store),
        "load_store": _op("data", "entries", _run_load_store, changes_store=True),
        "save_and_load": _op("", "", _run_save_and_load, changes_store=True),
        "turn_messages": _op("messages", "messages stable_prefix_messages", _run_turn),
    }
)
"""The operations that a vector can use."""


# ---- port laws -----------------------------------------------------------------------------------------------------


def _start(open_port: OpenPort, store: MemoryStore) -> MemoryPort:
    """A port on the place under test after it saved that store over whatever stood there."""
    port = open_port()
    port.load()
    port.save(store)
    return port


def _store(*contents: str) -> MemoryStore:
    return MemoryStore([MemoryEntry(content) for content in contents])


_EXAMPLES: Final = (
    MemoryStore(),
    _store(""),
    _store("same", "same", "same"),
    MemoryStore(
        [
            MemoryEntry("none", tags=None),
            MemoryEntry("empty", tags=()),
            MemoryEntry("one empty tag", tags=("",)),
            MemoryEntry("order and repeats", tags=("b", "a", "b")),
            MemoryEntry("none", tags=None),
        ]
    ),
    MemoryStore([MemoryEntry(tier, portable.MemoryCategory(tier)) for tier in ("insight", "core", "archival", "core")]),
    _store(
        "yes",
        "null",
        "3",
        "2026-06-09",
        "- a: b",
        " edges ",
        "#",
        "line\nline\r\nline\r",
        '"quoted" \\ \t',
        "é東🚀\u2028\x85\ufeff",
    ),
    MemoryStore([MemoryEntry("time", created_at="2026-06-09T20:00:00Z"), MemoryEntry("any text", created_at="")]),
)


def empty_place_loads_empty_store(open_port: OpenPort) -> None:
    """Law 1: a place that holds nothing, or an empty store, loads as an empty store."""
    _compare_stores("a new place", MemoryStore(), open_port().load())
    _start(open_port, _store("a")).save(MemoryStore())
    _compare_stores("a place that was emptied", MemoryStore(), open_port().load())


def load_after_save_is_identity(open_port: OpenPort) -> None:
    """Law 2: what was saved is loaded, through this port and through another one, and can be saved over again."""
    port = _start(open_port, MemoryStore())
    for example in _EXAMPLES:
        port.save(example)
        port.save(example)
        _compare_stores("another port", example, open_port().load())
        _compare_stores("the same port", example, port.load())
    reordered = MemoryStore([MemoryEntry("first"), MemoryEntry("second", tags=("a",)), MemoryEntry("third", tags=())])
    port.save(reordered)
    port.load()
    reordered.entries.reverse()
    port.save(reordered)
    _compare_stores("after a reversal", reordered, open_port().load())


def stores_are_not_shared(open_port: OpenPort) -> None:
    """Law 3: a store that was loaded or saved is the caller's, and changing it changes nothing else."""
    saved = _store("a")
    port = _start(open_port, saved)
    saved.entries.append(MemoryEntry("added after the save"))
    loaded = port.load()
    _compare_stores("after a change of the saved store", _store("a"), loaded)
    loaded.entries.clear()
    _compare_stores("after a change of the loaded store", _store("a"), port.load())


def second_writer_conflicts(open_port: OpenPort) -> None:
    """Law 4: of two ports that loaded the same, the second to save is told so, and nothing of it is written."""
    _start(open_port, _store("a"))
    first, second = open_port(), open_port()
    first.load()
    second.load()
    first.save(_store("a", "of the first"))
    _expect_conflict(second, _store("a", "of the second"))
    _compare_stores("after the conflict", _store("a", "of the first"), open_port().load())


def unseen_place_conflicts(open_port: OpenPort) -> None:
    """Law 5: saving over a store that this port never loaded is a conflict, and nothing is written."""
    _start(open_port, _store("a"))
    _expect_conflict(open_port(), _store("b"))
    _compare_stores("after the conflict", _store("a"), open_port().load())


def reload_after_conflict(open_port: OpenPort) -> None:
    """Law 6: a port that met a conflict still meets it until it loads, and then saves."""
    _start(open_port, _store("a"))
    port = open_port()
    port.load()
    _start(open_port, _store("b"))
    _expect_conflict(port, _store("c"))
    _expect_conflict(port, _store("c"))
    _compare_stores("a reload", _store("b"), port.load())
    port.save(_store("b", "c"))
    _compare_stores("a save after the reload", _store("b", "c"), open_port().load())


PORT_LAWS: Final[Mapping[str, Callable[[OpenPort], None]]] = MappingProxyType(
    {
        law.__name__: law
        for law in (
            empty_place_loads_empty_store,
            load_after_save_is_identity,
            stores_are_not_shared,
            second_writer_conflicts,
            unseen_place_conflicts,
            reload_after_conflict,
        )
    }
)
"""The laws of `MemoryPort` (P19, P20) by name; the first wants a place that holds nothing yet."""


def _compare_stores(where: str, expected: MemoryStore, actual: MemoryStore) -> None:
    compare(where, expected.save(), actual.save())


def _expect_conflict(port: MemoryPort, store: MemoryStore) -> None:
    try:
        port.save(store)
    except ConflictError as error:
        if error.expected == error.actual:
            raise LawBrokenError(f"the conflict names the version {error.actual!r} twice") from error
    else:
        raise LawBrokenError("the save went through, and must be a ConflictError")
