"""The facts suite is honest: it runs on every adapter and every storage, and finds each store that is broken."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import muniment.adapters
from muniment import facts
from muniment.errors import UsageError
from muniment.facts import ArchiveMemory, Caller, HasTenant, Memory, MemoryKey, MemoryStore, StoreBackedMemory
from muniment.ports.clock import Clock
from muniment.testing import test_facts_adapters
from muniment.testing.doubles import FakeClock
from muniment.testing.facts import FactsContract, Opener
from muniment.testing.guards import find_storages, find_tests

SUITES: Final = [kind for name, kind in vars(test_facts_adapters).items() if name.startswith("Test")]
REQUIRED: Final = range(12, 38)


def failures_of(store: type[StoreBackedMemory], prefix: str = "") -> set[str]:
    """The tests of the suite that a store fails.

    Raises: UsageError if no test was run.
    """

    @asynccontextmanager
    async def open_store(clock: Clock) -> AsyncGenerator[MemoryStore]:
        yield store(clock=clock)

    names = find_tests(FactsContract, prefix)
    if not names:
        raise UsageError(f"the suite has no test that begins with test_{prefix}")
    failed: set[str] = set()
    for name in names:
        try:
            getattr(FactsContract(), name)(open_store)
        except (Exception, pytest.fail.Exception):  # noqa: BLE001
            failed.add(name)
    return failed


def test_every_required_test_is_there() -> None:
    numbers = [int(name.split("_")[1]) for name in find_tests(FactsContract) if name.split("_")[1].isdigit()]
    assert numbers == list(REQUIRED)


def test_every_adapter_runs_the_suite() -> None:
    methods = [name for name in vars(MemoryStore) if not name.startswith("_")]
    own = [kind for kind in vars(facts).values() if inspect.isclass(kind) and kind.__module__ == facts.__name__]
    adapters = {kind for kind in own if kind is not MemoryStore and all(hasattr(kind, name) for name in methods)}
    assert adapters == {StoreBackedMemory, ArchiveMemory}
    assert {suite.adapter for suite in SUITES} == adapters


def test_archives_run_it_on_every_storage(tmp_path: Path) -> None:
    found: set[type[Any]] = set()

    async def look(opener: Opener) -> None:
        async with opener(FakeClock()) as memory:
            assert isinstance(memory, ArchiveMemory)
            found.add(type(memory.archive.storage))

    for suite in SUITES:
        if suite.adapter is ArchiveMemory:
            opener: Callable[..., Opener] = inspect.unwrap(suite.opener)
            function = getattr(opener, "_fixture_function", opener)
            more = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(function).parameters else {}
            asyncio.run(look(function(suite(), **more)))
    assert found == find_storages(muniment.adapters)


def test_the_suites_replace_no_test() -> None:
    for suite in SUITES:
        assert [name for name in find_tests(suite) if name in vars(suite)] == []


def test_a_sound_store_passes_whole() -> None:
    assert failures_of(StoreBackedMemory) == set()


def test_a_run_without_a_test_is_an_error() -> None:
    with pytest.raises(UsageError):
        failures_of(StoreBackedMemory, "99")


# --- Stores that are broken on purpose --------------------------------------------------------------------------------


class Merging(StoreBackedMemory):
    """Keeps equal texts once."""

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        for fact in await self.recall(scope, end_user_id):
            if fact.content == content:
                return fact
        return await super().remember(scope, end_user_id, content)


class Stripping(StoreBackedMemory):
    """Tidies what it is given."""

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        return await super().remember(scope, end_user_id, content.strip() or content)


class NewestFirst(StoreBackedMemory):
    """Recalls in the wrong order."""

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        return (await super().recall(scope, end_user_id))[::-1][:limit]


class CuttingAtTheEnd(StoreBackedMemory):
    """Takes a negative limit for an index."""

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        return (await super().recall(scope, end_user_id))[:limit]


class Capped(StoreBackedMemory):
    """Never gives more than twenty."""

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        return (await super().recall(scope, end_user_id, limit=limit))[:20]


class Tombstones(StoreBackedMemory):
    """Erases nothing, and hides it."""

    def __init__(self, *more: Any, **named: Any) -> None:
        super().__init__(*more, **named)
        self._hidden: set[str] = set()

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        facts_found = await super().recall(scope, end_user_id)
        kept = tuple(fact for fact in facts_found if fact.id not in self._hidden)
        await super().recall(scope, end_user_id, limit=limit)
        return kept if limit is None else kept[:limit]

    async def erase(self, scope: HasTenant, end_user_id: str) -> int:
        facts_found = await super().recall(scope, end_user_id)
        self._hidden |= {fact.id for fact in facts_found}
        return len(facts_found)


class AlwaysForgotten(StoreBackedMemory):
    """Says that it forgot, whatever there was."""

    async def forget(self, scope: HasTenant, end_user_id: str, memory_id: str) -> bool:
        await super().forget(scope, end_user_id, memory_id)
        return True


class Complaining(StoreBackedMemory):
    """Raises for an id that is not there."""

    async def forget(self, scope: HasTenant, end_user_id: str, memory_id: str) -> bool:
        if not await super().forget(scope, end_user_id, memory_id):
            raise LookupError(memory_id)
        return True


class OneTenant(StoreBackedMemory):
    """Drops the tenant from its key."""

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        return await super().remember(Caller("x"), end_user_id, content)

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        return await super().recall(Caller("x"), end_user_id, limit=limit)


class FoldingCase(StoreBackedMemory):
    """Takes users whose names differ in case for one."""

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        return await super().remember(scope, _fold(end_user_id), content)

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        return await super().recall(scope, _fold(end_user_id), limit=limit)

    async def erase(self, scope: HasTenant, end_user_id: str) -> int:
        return await super().erase(scope, _fold(end_user_id))


def _fold(name: Any) -> Any:
    return name.casefold() if isinstance(name, str) else name


class ByPrefix(StoreBackedMemory):
    """Erases every user whose name begins alike."""

    async def erase(self, scope: HasTenant, end_user_id: str) -> int:
        count = await super().erase(scope, end_user_id)
        for key in list(self._facts):
            if key.tenant == scope.tenant and key.end_user_id.startswith(end_user_id):
                count += await super().erase(scope, key.end_user_id)
        return count


class ForgettingById(StoreBackedMemory):
    """Looks an id up without the key."""

    async def forget(self, scope: HasTenant, end_user_id: str, memory_id: str) -> bool:
        for key in list(self._facts):
            if await super().forget(Caller(key.tenant), key.end_user_id, memory_id):
                return True
        return await super().forget(scope, end_user_id, memory_id)


class Unchecked(StoreBackedMemory):
    """Stores what it is given."""

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        fact = await super().remember(scope, end_user_id, "x")
        return fact.model_copy(update={"content": content})


class NoTenantNeeded(StoreBackedMemory):
    """Takes a bare string for a scope."""

    async def recall(self, scope: Any, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        return await super().recall(Caller(scope) if isinstance(scope, str) else scope, end_user_id, limit=limit)


class Racing(StoreBackedMemory):
    """Reads, waits and writes back without a lock."""

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        fact = await StoreBackedMemory(clock=self._clock).remember(scope, end_user_id, content)
        before = dict(self._facts.get(fact.key, {}))
        await asyncio.sleep(0)
        self._facts[fact.key] = {**before, fact.id: fact}
        return fact


class SharedIds(StoreBackedMemory):
    """Numbers the facts of each user."""

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        fact = await super().remember(scope, end_user_id, content)
        facts_now = self._facts[fact.key]
        del facts_now[fact.id]
        renamed = fact.model_copy(update={"id": "1"})
        facts_now["1"] = renamed
        return renamed


MUTANTS: Final[dict[type[StoreBackedMemory], str]] = {
    Merging: "14",
    Stripping: "edge_texts",
    NewestFirst: "15",
    CuttingAtTheEnd: "31",
    Capped: "33",
    Tombstones: "f08",
    AlwaysForgotten: "19",
    Complaining: "19",
    OneTenant: "24",
    FoldingCase: "36",
    ByPrefix: "36",
    ForgettingById: "25",
    Unchecked: "32",
    NoTenantNeeded: "35",
    Racing: "33",
    SharedIds: "13",
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_each_mutant_fails_what_it_breaks(mutant: type[StoreBackedMemory]) -> None:
    assert mutant.__doc__
    assert failures_of(mutant, MUTANTS[mutant])


def test_mutants_are_keyed_like_the_store() -> None:
    assert all(issubclass(mutant, StoreBackedMemory) for mutant in MUTANTS)
    assert MemoryKey(tenant="a", end_user_id="b") in {MemoryKey(tenant="a", end_user_id="b")}
