"""The service contract on every storage, what is special to `SqliteMemory`, and whether the suite is honest."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import muniment
import muniment.service as service_module
from muniment.errors import (
    ClosedError,
    EmbeddingDimensionError,
    NotFoundError,
    ProviderError,
    StorageError,
    StorageUnavailableError,
    UsageError,
)
from muniment.model.receipt import Receipt
from muniment.service import (
    ANY,
    UNSCOPED,
    MemoryObject,
    MemoryService,
    ServiceMemory,
    SqliteMemory,
)
from muniment.testing.guards import find_tests
from muniment.testing.service import (
    Named,
    Opener,
    OwningMemory,
    PersistentServiceContract,
    ServiceContract,
    contents,
    count_words,
    open_service,
    run,
    vector_lengths,
)

TENANT = "acme"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


class TestSqliteMemoryOnAFile(PersistentServiceContract):
    adapter = SqliteMemory
    num_upserts = 25

    @pytest.fixture
    def opener(self, path: Path) -> Opener:
        return partial(SqliteMemory, path)

    @pytest.fixture
    def files(self, path: Path) -> Callable[[], Iterable[Path]]:
        return lambda: sorted(path.parent.iterdir())


class TestSqliteMemoryInMemory(ServiceContract):
    adapter = SqliteMemory

    @pytest.fixture
    def opener(self) -> Opener:
        return partial(SqliteMemory, ":memory:")


class TestServiceMemoryOnAFile(PersistentServiceContract):
    adapter = ServiceMemory

    @pytest.fixture
    def opener(self, path: Path) -> Opener:
        return partial(open_service, str(path), TENANT)

    @pytest.fixture
    def files(self, path: Path) -> Callable[[], Iterable[Path]]:
        return lambda: sorted(path.parent.iterdir())


class TestServiceMemoryOnTheOracle(ServiceContract):
    adapter = ServiceMemory

    @pytest.fixture
    def opener(self) -> Opener:
        return partial(open_service, "memory://", TENANT)


# --- SqliteMemory -----------------------------------------------------------------------------------------------------


def test_25_a_given_dimension_holds(path: Path) -> None:
    def of_1536(texts: list[str]) -> list[list[float]]:
        return [[0.5] * 1536 for _ in texts]

    with SqliteMemory(path, dimension=768, embedding_fn=of_1536) as service:
        with pytest.raises(EmbeddingDimensionError) as caught:
            service.add("x")
        assert (caught.value.expected, caught.value.given) == (768, 1536)
        for length in (767, 1536):
            with pytest.raises(EmbeddingDimensionError):
                service.hybrid_search("x", [1.0] * length)
        assert service.archive.stats().events == 0
    with SqliteMemory(":memory:", dimension=3) as service:
        service.add("alpha")
        assert contents(service.hybrid_search("alpha", [1.0, 2.0, 3.0])) == ["alpha"]
        with pytest.raises(EmbeddingDimensionError):
            service.hybrid_search("alpha", [1.0])
    with SqliteMemory(":memory:", dimension=5, embedding_fn=count_words) as service:
        service.add("alpha")
        assert vector_lengths(service) == [5]


@pytest.mark.parametrize("dimension", [0, -1, True, 1.5, "3"])
def test_27_what_is_no_dimension(path: Path, dimension: Any) -> None:
    for embedder in (None, count_words, Named("model", 1.0)):
        with pytest.raises(UsageError):
            SqliteMemory(path, dimension=dimension, embedding_fn=embedder)
    assert not path.exists()


def test_s15_a_dimension_that_the_embedder_contradicts(path: Path) -> None:
    with pytest.raises(EmbeddingDimensionError, match="model-a"):
        SqliteMemory(path, dimension=4, embedding_fn=Named("model-a", 1.0))
    assert not path.exists()
    for dimension, named in ((3, Named("m", 1.0)), (3, Named("m", 1.0, None)), (None, Named("m", 1.0, None))):
        with SqliteMemory(":memory:", dimension=dimension, embedding_fn=named) as service:
            service.add("alpha")
            assert vector_lengths(service) == [3]
            assert [model.name for model in service.archive.storage.find_models()] == ["m"]
    with SqliteMemory(":memory:", dimension=2, embedding_fn=Named("m", 1.0, None)) as service:
        with pytest.raises(EmbeddingDimensionError):
            service.add("alpha")
        assert service.list_all() == []


def test_56_the_home_directory_and_missing_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with SqliteMemory("~/x/y.db") as service:
        service.add("alpha")
    assert (tmp_path / "home" / "x" / "y.db").is_file()
    deep = tmp_path / "a" / "b" / "c.db"
    for path in (deep, str(deep)):
        with SqliteMemory(path) as service:
            service.upsert(MemoryObject(content="beta", ext_id="k"))
            assert len(service.list_all()) == 1
    assert deep.is_file()


@pytest.mark.parametrize(
    "wrong",
    ["", "a\x00b", "~nobody-of-that-name/x.db", "memory://", "sqlite:///x.db", 5, None, b"x.db", "\ud800/x.db"],
    ids=repr,
)
def test_what_is_no_path(wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        SqliteMemory(wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageUnavailableError):
        SqliteMemory(tmp_path / "file" / "x.db")
    (tmp_path / "other.db").write_bytes(b"not an archive" * 100)
    with pytest.raises(StorageError):
        SqliteMemory(tmp_path / "other.db")


def test_options_that_cannot_be(path: Path) -> None:
    wrong: list[dict[str, Any]] = [{"on_embed_error": "ignore"}, {"embedding_fn": 5}, {"embedding_fn": "local"}]
    for options in wrong:
        with pytest.raises(UsageError):
            SqliteMemory(path, **options)
    assert not path.parent.joinpath("memory.db").exists()
    archive = muniment.open(":memory:")
    arguments: list[tuple[Any, Any]] = [(None, "acme"), (path, "acme"), (archive, ""), (archive, None), (archive, 5)]
    for values in arguments:
        with pytest.raises(UsageError):
            ServiceMemory(*values)
    archive.close()


def test_closing_a_view_leaves_the_archive_open() -> None:
    with muniment.open("memory://") as archive:
        with ServiceMemory(archive, "acme") as service:
            service.add("alpha")
        assert len(ServiceMemory(archive, "acme").list_all()) == 1
        assert ServiceMemory(archive, "globex").list_all() == []
    with pytest.raises(ClosedError):
        ServiceMemory(archive, "acme").list_all()
    closing = SqliteMemory(":memory:")
    closing.close()
    with pytest.raises(ClosedError):
        closing.archive.stats()


def test_reads_that_are_not_recorded_count_nothing() -> None:
    with muniment.open("memory://", read_audit="off") as archive:
        service = ServiceMemory(archive, "acme")
        stored = service.add("alpha", scope="a")
        assert service.search("alpha") == service.search("alpha", scope="a") == service.list_all() == [stored]
        assert archive.stats().events == 1


def test_tenants_are_apart() -> None:
    with muniment.open("memory://") as archive:
        mine, theirs = ServiceMemory(archive, "acme"), ServiceMemory(archive, "Acme")
        stored = mine.upsert(MemoryObject(content="alpha", ext_id="k", scope="s"))
        assert theirs.search("alpha") == theirs.search("alpha", scope="s") == theirs.list_all() == []
        assert theirs.get("k") is theirs.get(stored.id) is None
        for address in ("k", stored.id):
            with pytest.raises(NotFoundError):
                theirs.delete(address)


def test_every_memory_is_a_service() -> None:
    for kind in (SqliteMemory, ServiceMemory):
        assert issubclass(kind, MemoryService)
        for name in ("add", "search", "hybrid_search", "get", "update", "upsert", "delete", "list_all", "render_index"):
            assert inspect.signature(getattr(kind, name)) == inspect.signature(getattr(MemoryService, name))


# --- Guards -----------------------------------------------------------------------------------------------------------

SUITES = [kind for name, kind in list(globals().items()) if name.startswith("Test")]


def numbers_of(names: Iterable[str]) -> set[int]:
    return {int(found[1]) for name in names if (found := re.match(r"test_(\d\d)_", name))}


def test_every_required_test_is_there() -> None:
    here = [name for name in globals() if name.startswith("test_")]
    assert numbers_of([*find_tests(PersistentServiceContract), *here]) == set(range(1, 60))


def test_every_service_runs_the_suite() -> None:
    services = {
        kind
        for kind in vars(service_module).values()
        if inspect.isclass(kind) and issubclass(kind, MemoryService) and kind is not MemoryService
    }
    assert services == {suite.adapter for suite in SUITES} == {SqliteMemory, ServiceMemory}
    assert {suite.adapter for suite in SUITES if issubclass(suite, PersistentServiceContract)} == services


def test_the_suites_replace_no_test() -> None:
    for suite in SUITES:
        assert [name for name in find_tests(suite) if name in vars(suite)] == []


def test_a_run_that_executes_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="test_99"):
        run(SuiteOnMutants, partial(open_service, "memory://", TENANT), "99")


class SuiteOnMutants(ServiceContract):
    adapter = ServiceMemory


class Mutant(OwningMemory):
    """A service with one fault."""

    breaks: str


class CountsNothing(Mutant):
    """Returns the counters of before."""

    breaks = "11"

    def _record(self, scope: Any, answer: Any, recall: Any, now_us: int, *, begins: bool) -> Any:
        engine = self._engine
        engine.records_reads = False
        try:
            return super()._record(scope, answer, recall, now_us, begins=begins)
        finally:
            engine.records_reads = True


class CountsGets(Mutant):
    """A look counts as a use."""

    breaks = "11"

    def get(self, ext_id: str, *, scope: Any = ANY) -> MemoryObject | None:
        found = super().get(ext_id, scope=scope)
        if found is not None:
            self.list_all(scope=found.scope or UNSCOPED)
        return found


class ReturnsOldCounters(Mutant):
    """The counters of before the call."""

    breaks = "48"

    def search(self, query: str, **options: Any) -> list[MemoryObject]:
        return [replace(one, usage_count=one.usage_count - 1) for one in super().search(query, **options)]


class RecordsTwice(Mutant):
    """One read, two Recalls."""

    breaks = "49"

    def _record(self, scope: Any, answer: Any, recall: Any, now_us: int, *, begins: bool) -> Any:
        super()._record(scope, answer, recall, now_us, begins=begins)
        return super()._record(scope, answer, recall, now_us, begins=begins)


class TellsEverybody(Mutant):
    """Writes what was asked into the memory of everybody who is found."""

    breaks = "49_one_per_scope"

    def search(self, query: str, **options: Any) -> list[MemoryObject]:
        self._asked = query
        return super().search(query, **options)

    def _record(self, scope: Any, answer: Any, recall: Any, now_us: int, *, begins: bool) -> Any:
        return super()._record(scope, answer, {**recall, "query": self._asked}, now_us, begins=begins)


class UpdatesInPlace(Mutant):
    """An update takes the old row away."""

    breaks = "04"

    def update(self, obj: MemoryObject) -> MemoryObject:
        if obj.id:
            self.delete(obj.id)
        return super().update(obj)


class AddsInsteadOfReplacing(Mutant):
    """Two live rows of one stable id."""

    breaks = "13"

    def upsert(self, obj: MemoryObject) -> MemoryObject:
        return replace(self.add(obj.content, scope=obj.scope), ext_id=obj.ext_id)


class ForgetsTheAge(Mutant):
    """Each version is made anew."""

    breaks = "13"

    def upsert(self, obj: MemoryObject) -> MemoryObject:
        stored = super().upsert(obj)
        return replace(stored, created_at=stored.updated_at)


class BelievesTheObject(Mutant):
    """Counters from the object instead of the row."""

    breaks = "14"

    def upsert(self, obj: MemoryObject) -> MemoryObject:
        stored = super().upsert(obj)
        return replace(stored, usage_count=obj.usage_count, last_used_at=obj.last_used_at)


class ReplacesInTwoSteps(Mutant):
    """The old row goes in one transaction, the new one comes in another."""

    breaks = "51"

    def upsert(self, obj: MemoryObject) -> MemoryObject:
        memory = self.archive.memory(obj.scope, tenant=self.tenant)
        live = memory.get_live(obj.ext_id or "")
        if live is not None:
            memory.delete([live.id], "replaced")
        return super().upsert(obj)


class SwallowsErrors(Mutant):
    """An embedder that fails is an empty result."""

    breaks = "22"

    def search(self, query: str, **options: Any) -> list[MemoryObject]:
        try:
            return super().search(query, **options)
        except ProviderError:
            return []


class FallsBack(Mutant):
    """Words where vectors were asked for."""

    breaks = "21"

    def search(self, query: str, *, mode: Any = "auto", scope: Any = None, limit: int = 5) -> list[MemoryObject]:
        return super().search(query, mode="auto", scope=scope, limit=limit)


class FiltersAfterwards(Mutant):
    """The nearest of all, then those of the scope."""

    breaks = "41"

    def search(self, query: str, *, mode: Any = "auto", scope: Any = None, limit: int = 5) -> list[MemoryObject]:
        found = super().search(query, mode=mode, limit=limit)
        return [one for one in found if scope is None or one.scope == scope]


class MatchesPrefixes(Mutant):
    """A scope is a beginning."""

    breaks = "43"

    def list_all(self, *, scope: Any = None, limit: int | None = 50) -> list[MemoryObject]:
        if not isinstance(scope, str) or not scope:
            return super().list_all(scope=scope, limit=limit)
        return [one for one in super().list_all(limit=limit) if (one.scope or "").startswith(scope)]


class TakesUnscopedForAll(Mutant):
    """No scope and any scope are one."""

    breaks = "44"

    def search(self, query: str, *, mode: Any = "auto", scope: Any = None, limit: int = 5) -> list[MemoryObject]:
        return super().search(query, mode=mode, scope=None if scope is UNSCOPED else scope, limit=limit)


class TakesTheFirst(Mutant):
    """One of several, without asking."""

    breaks = "45"

    def _find(self, address: str, scope: Any) -> Any:
        try:
            return super()._find(address, scope)
        except UsageError:
            first = next(one for one in self.list_all() if one.ext_id == address)
            return super()._find(address, first.scope)


class ListsInAnyOrder(Mutant):
    """Use plays no part in the order."""

    breaks = "47"

    def _list(self, only: Any, limit: int | None) -> Any:
        return sorted(super()._list(only, None), key=lambda one: one.seq)[:limit]


class DeletesTwice(Mutant):
    """Deleting nothing is fine."""

    breaks = "08"

    def delete(self, id: str, **options: Any) -> Receipt:  # noqa: A002  # the contract's name
        try:
            return super().delete(id, **options)
        except NotFoundError:
            return super().delete(self.add("nothing").id)


class HidesInsteadOfErasing(Mutant):
    """A tombstone for an erasure."""

    breaks = "53"

    def delete(self, id: str, *, erase: bool = False, **options: Any) -> Receipt:  # noqa: A002
        return super().delete(id, **options)


class ErasesOneVersion(Mutant):
    """The versions before stay."""

    breaks = "53"

    def _destroy(self, scope: Any, address: str, reason: str) -> Receipt:
        found = self._find(address, scope.subject)
        assert found is not None
        self._hide(scope, address, reason)
        note = self.archive.memory(scope.subject, tenant=self.tenant).get(found[1].id)
        assert isinstance(note, muniment.Note)
        return super()._hide(scope, self.add(note.content, scope=scope.subject).id, reason)


class SharesItsLists(Mutant):
    """Whoever changes what was returned changes what is returned next."""

    breaks = "59"
    _kept: Mapping[str, MemoryObject] = {}

    def get(self, ext_id: str, *, scope: Any = ANY) -> MemoryObject | None:
        found = super().get(ext_id, scope=scope)
        if found is not None:
            self._kept = {found.id: found, **self._kept}
            return self._kept[found.id]
        return None


class AnswersWhenClosed(Mutant):
    """Closing means nothing."""

    breaks = "09"

    def close(self) -> None: ...


class LikesLongLimits(Mutant):
    """No limit is too large."""

    breaks = "37"

    def search(self, query: str, *, limit: Any = 5, **options: Any) -> list[MemoryObject]:
        return super().search(query, limit=min(limit, 1000) if isinstance(limit, int) else 1000, **options)


class CutsWithDots(Mutant):
    """An ellipsis where a line was cut."""

    breaks = "52"

    def render_index(self, **options: Any) -> str:
        lines = super().render_index(**options).splitlines()
        return "".join(f"{line[:-1]}…\n" if len(line) > 80 else f"{line}\n" for line in lines)


class ShowsEveryKind(Mutant):
    """Messages are memories too."""

    breaks = "55"

    def list_all(self, *, scope: Any = None, limit: int | None = 50) -> list[MemoryObject]:
        said = [
            MemoryObject(content=event.content, id=str(event.id))
            for info in self.archive.tenant(self.tenant).scopes()
            for event in info.ledger.events(kind="message")
            if isinstance(event, muniment.Message)
        ]
        return [*super().list_all(scope=scope, limit=limit), *said]


MUTANTS = Mutant.__subclasses__()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_each_mutant_fails_what_it_breaks(mutant: type[Mutant]) -> None:
    assert mutant.__doc__

    def open_mutant(*, embedding_fn: Any = None, on_embed_error: Any = "raise") -> ServiceMemory:
        return mutant(muniment.open("memory://", embedder=embedding_fn, on_embed_error=on_embed_error), TENANT)

    report = run(SuiteOnMutants, open_mutant, mutant.breaks)
    assert report.failed, f"{mutant.__name__} passes test_{mutant.breaks}*: {report.passed}"


def test_a_sound_service_passes_what_the_mutants_break() -> None:
    for breaks in sorted({mutant.breaks for mutant in MUTANTS}):
        assert run(SuiteOnMutants, partial(open_service, "memory://", TENANT), breaks).failed == {}
