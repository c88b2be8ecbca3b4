"""The conformance suite of the facts contract: implement four methods, say how the store is opened, and run pytest.

```python
class TestMyFacts(FactsContract):
    adapter = MyFacts

    @pytest.fixture
    def opener(self) -> Opener:
        @asynccontextmanager
        async def open_store(clock):      # a store that does not take a clock leaves it aside
            yield MyFacts()
        return open_store
```

Each test opens a store of its own, empty, inside the event loop that it runs in, and needs no plugin of pytest.
`python -m pytest --pyargs muniment.testing` runs it on the adapters of this package.

Tests carry the number of the required test (`test_17_…`) or of the law (`test_f06_…`) that they prove; `test_edge_…`
are the contract's edge cases. Put `pytest.register_assert_rewrite("muniment.testing.facts")` into your conftest, and a
failure shows the values.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, timedelta
from typing import Any, ClassVar, Final

import pytest

from muniment.errors import LimitExceededError, UsageError
from muniment.facts import Caller, Memory, MemoryKey, MemoryStore, memory_key, memory_tools
from muniment.ports.clock import Clock
from muniment.testing.doubles import FakeClock

Opener = Callable[[Clock], AbstractAsyncContextManager[MemoryStore]]
"""Opens a store without any fact; it tells its times by that clock, if it can."""

ACME: Final = Caller("acme", "agent-1")
ACME_2: Final = Caller("acme", "agent-2")
GLOBEX: Final = Caller("globex", "agent-1")
USER: Final = "user-1"

COMPOSED: Final = "\u00e9"
DECOMPOSED: Final = "e\u0301"
NAMES: Final = (
    *("a", "ab", "a_b", "a%b", "A", "a/b", "a:b", "a*", "a?", "a_", "a%", "[a]", "a.b", "a\\b", "a'b", 'a"b', "a--"),
    *(COMPOSED, DECOMPOSED, " ", "a ", " a", "\t", "a\n", "\u2028", "\u200b", "%", "_", "*", "/", "..", "None"),
    *("x" * 256, "x" * 255, "\U0001f600" * 256),
)
"""Names that some store takes for another one, or for a pattern."""

NO_NAMES: Final[tuple[Any, ...]] = ("", "x" * 257, "a\x00", "a\ud800", None, 5, b"user-1", True)
"""What can be no tenant and no end user."""


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test of a store as one that pytest can run: in an event loop, on a store that the fixture `opener` opens.

    The test takes the store, and the clock that the store was opened with if it asks for one.
    """
    wanted = inspect.signature(test).parameters

    def run(self: object, opener: Opener) -> None:
        async def body() -> None:
            clock = FakeClock()
            async with opener(clock) as memory:
                more = {"clock": clock} if "clock" in wanted else {}
                await test(self, memory, **more)

        asyncio.run(body())

    run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return run


async def texts_of(memory: MemoryStore, scope: Caller = ACME, end_user_id: str = USER) -> list[str]:
    """The facts of that end user, as texts."""
    return [fact.content for fact in await memory.recall(scope, end_user_id)]


async def remember_all(memory: MemoryStore, *texts: str, scope: Caller = ACME, end_user_id: str = USER) -> list[Memory]:
    """The facts that were stored, one after the other."""
    return [await memory.remember(scope, end_user_id, text) for text in texts]


class FactsContract:
    """Every law of the four methods that any store can keep."""

    adapter: ClassVar[type[MemoryStore]]
    """The class that is proved, for the guard that wants each one proved."""

    @pytest.fixture
    def opener(self) -> Opener:
        raise NotImplementedError(f"{type(self).__name__} says how a store is opened by a fixture `opener`")

    # --- The required tests -------------------------------------------------------------------------------------------

    @scenario
    async def test_12_a_fact_is_returned_as_it_was_stored(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "prefers email over phone")
        assert fact.content == "prefers email over phone"
        assert fact.key == MemoryKey(tenant="acme", end_user_id=USER)
        assert await memory.recall(ACME, USER) == (fact,)

    @scenario
    async def test_13_two_facts_have_two_ids(self, memory: MemoryStore) -> None:
        first, second = await remember_all(memory, "first", "second")
        assert first.id != second.id

    @scenario
    async def test_14_the_same_text_twice_is_two_facts(self, memory: MemoryStore) -> None:
        stored = await remember_all(memory, "likes tea", "likes tea")
        assert len({fact.id for fact in stored}) == 2
        assert await texts_of(memory) == ["likes tea", "likes tea"]

    @scenario
    async def test_15_facts_are_recalled_in_the_order_of_writing(self, memory: MemoryStore) -> None:
        stored = await remember_all(memory, "first", "second", "third")
        assert await memory.recall(ACME, USER) == tuple(stored)

    @scenario
    async def test_16_an_unknown_user_has_no_facts(self, memory: MemoryStore) -> None:
        assert await memory.recall(ACME, USER) == ()
        await memory.remember(ACME, "user-2", "a fact")
        assert await memory.recall(ACME, USER) == ()

    @scenario
    async def test_17_a_limit_gives_the_first_ones(self, memory: MemoryStore) -> None:
        stored = await remember_all(memory, "first", "second", "third")
        assert await memory.recall(ACME, USER, limit=2) == tuple(stored[:2])
        for limit in (3, 4, 10_000, 2**80):
            assert await memory.recall(ACME, USER, limit=limit) == tuple(stored)

    @scenario
    async def test_18_what_is_forgotten_is_gone(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        assert await memory.forget(ACME, USER, fact.id) is True
        assert await memory.recall(ACME, USER) == ()

    @scenario
    async def test_19_an_unknown_id_is_no_error(self, memory: MemoryStore) -> None:
        assert await memory.forget(ACME, USER, "mem_does_not_exist") is False
        await memory.remember(ACME, USER, "a fact")
        assert await memory.forget(ACME, USER, "mem_does_not_exist") is False
        assert await texts_of(memory) == ["a fact"]

    @scenario
    async def test_20_forgetting_one_leaves_the_other(self, memory: MemoryStore) -> None:
        first, second = await remember_all(memory, "first", "second")
        assert await memory.forget(ACME, USER, first.id) is True
        assert await memory.recall(ACME, USER) == (second,)

    @scenario
    async def test_21_erase_destroys_all_and_counts(self, memory: MemoryStore) -> None:
        await remember_all(memory, "first", "second")
        assert await memory.erase(ACME, USER) == 2
        assert await memory.recall(ACME, USER) == ()

    @scenario
    async def test_22_erase_of_an_unknown_user_is_0(self, memory: MemoryStore) -> None:
        assert await memory.erase(ACME, USER) == 0

    @scenario
    async def test_23_erase_leaves_other_users(self, memory: MemoryStore) -> None:
        await memory.remember(ACME, USER, "of the first")
        await memory.remember(ACME, "user-2", "of the second")
        assert await memory.erase(ACME, USER) == 1
        assert await texts_of(memory, end_user_id="user-2") == ["of the second"]

    @scenario
    async def test_24_another_tenant_recalls_nothing(self, memory: MemoryStore) -> None:
        await memory.remember(ACME, USER, "a fact")
        assert await memory.recall(GLOBEX, USER) == ()

    @scenario
    async def test_25_an_id_is_worth_nothing_to_another_tenant(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        await memory.remember(GLOBEX, USER, "of the other")
        assert await memory.forget(GLOBEX, USER, fact.id) is False
        assert await memory.recall(ACME, USER) == (fact,)
        assert await texts_of(memory, GLOBEX) == ["of the other"]

    @scenario
    async def test_26_another_tenant_erases_nothing(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        assert await memory.erase(GLOBEX, USER) == 0
        assert await memory.recall(ACME, USER) == (fact,)

    @scenario
    async def test_27_an_agent_does_not_see_one_user_as_another(self, memory: MemoryStore) -> None:
        await memory.remember(ACME, USER, "a fact")
        assert await memory.recall(ACME_2, "user-2") == ()

    @scenario
    async def test_28_another_agent_of_the_tenant_sees_the_same_user(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        assert await memory.recall(ACME_2, USER) == (fact,)
        assert await memory.forget(ACME_2, USER, fact.id) is True
        assert await memory.recall(ACME, USER) == ()

    @scenario
    async def test_29_two_tenants_with_the_same_user(self, memory: MemoryStore) -> None:
        await memory.remember(ACME, USER, "told acme")
        await memory.remember(GLOBEX, USER, "told globex")
        assert await texts_of(memory) == ["told acme"]
        assert await texts_of(memory, GLOBEX) == ["told globex"]

    @scenario
    async def test_30_one_clock_reading_for_five_facts(self, memory: MemoryStore) -> None:
        stored = await remember_all(memory, "e", "d", "c", "b", "a")
        assert await memory.recall(ACME, USER) == tuple(stored)
        assert await texts_of(memory) == ["e", "d", "c", "b", "a"]

    @scenario
    async def test_31_limits(self, memory: MemoryStore) -> None:
        await memory.remember(ACME, USER, "a fact")
        assert await memory.recall(ACME, USER, limit=0) == ()
        wrong: tuple[Any, ...] = (-1, True, False, 1.5, "1", -(2**80))
        for limit in wrong:
            with pytest.raises(UsageError, match="limit"):
                await memory.recall(ACME, USER, limit=limit)

    @scenario
    async def test_32_content_has_1_to_4096_characters(self, memory: MemoryStore) -> None:
        with pytest.raises(LimitExceededError, match=r"4097.*4096"):
            await memory.remember(ACME, USER, "x" * 4097)
        with pytest.raises(UsageError):
            await memory.remember(ACME, USER, "")
        assert await memory.recall(ACME, USER) == ()
        fact = await memory.remember(ACME, USER, "x" * 4096)
        assert await memory.recall(ACME, USER) == (fact,)

    @scenario
    async def test_33_100_at_once_are_100_facts(self, memory: MemoryStore) -> None:
        stored = await asyncio.gather(*(memory.remember(ACME, USER, f"fact {number}") for number in range(100)))
        assert len({fact.id for fact in stored}) == 100
        recalled = await memory.recall(ACME, USER)
        assert {fact.id: fact for fact in recalled} == {fact.id: fact for fact in stored}
        assert len(recalled) == 100

    @scenario
    async def test_34_forgetting_twice(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        assert await memory.forget(ACME, USER, fact.id) is True
        assert await memory.forget(ACME, USER, fact.id) is False

    @scenario
    async def test_35_a_scope_has_a_tenant(self, memory: MemoryStore) -> None:
        class Odd:
            tenant = 5

        fact = await memory.remember(ACME, USER, "a fact")
        wrong: tuple[Any, ...] = ("acme", None, 5, {"tenant": "acme"}, Odd())
        for scope in wrong:
            for call in calls_as(memory, scope, USER, fact.id):
                with pytest.raises(UsageError):
                    await call
        assert await memory.recall(ACME, USER) == (fact,)

    @scenario
    async def test_36_no_name_is_a_pattern(self, memory: MemoryStore) -> None:
        for name in ("a", "a%", "a/b", "A"):
            await memory.remember(ACME, name, f"of {name}")
        assert await memory.erase(ACME, "a") == 1
        assert await texts_of(memory, end_user_id="a") == []
        for name in ("a%", "a/b", "A"):
            assert await texts_of(memory, end_user_id=name) == [f"of {name}"]

    @scenario
    async def test_37_a_lone_surrogate_is_no_text(self, memory: MemoryStore) -> None:
        with pytest.raises(UsageError, match="surrogate"):
            await memory.remember(ACME, USER, "half of \ud83d")
        assert await memory.recall(ACME, USER) == ()

    # --- The laws -----------------------------------------------------------------------------------------------------

    @scenario
    async def test_f02_nothing_is_done_under_half_a_key(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        for name in NO_NAMES:
            for call in calls_as(memory, ACME, name, fact.id):
                with pytest.raises(UsageError):
                    await call
            for call in calls_as(memory, _Anything(name), USER, fact.id):
                with pytest.raises(UsageError):
                    await call
        assert await memory.recall(ACME, USER) == (fact,)

    @scenario
    async def test_f02_a_name_that_is_too_long_says_so(self, memory: MemoryStore) -> None:
        with pytest.raises(LimitExceededError, match=r"257.*256"):
            await memory.recall(ACME, "x" * 257)

    @scenario
    async def test_f04_content_is_text(self, memory: MemoryStore) -> None:
        wrong: tuple[Any, ...] = (None, 5, b"bytes", ["a"], "a\x00b")
        for content in wrong:
            with pytest.raises(UsageError, match="content"):
                await memory.remember(ACME, USER, content)
        assert await memory.recall(ACME, USER) == ()

    @scenario
    async def test_f05_what_a_fact_is(self, memory: MemoryStore, clock: FakeClock) -> None:
        clock.advance(timedelta(days=1))
        fact = await memory.remember(ACME, USER, "a fact")
        assert isinstance(fact, Memory)
        assert 1 <= len(fact.id) <= 64
        assert fact.created_at.utcoffset() == timedelta(0)
        assert fact.created_at.tzinfo is UTC
        assert Memory.model_validate_json(fact.model_dump_json()) == fact

    @scenario
    async def test_f06_whatever_is_no_id_is_no_error(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        ids: tuple[Any, ...] = ("", " ", f" {fact.id}", f"{fact.id} ", fact.id[:-1], f"{{{fact.id}}}", "%", "*", "\x00")
        ids += ("a\ud800", "x" * 10_000, "00000000-0000-0000-0000-000000000000", None, 5)
        for memory_id in ids:
            assert await memory.forget(ACME, USER, memory_id) is False
        assert await memory.recall(ACME, USER) == (fact,)

    @scenario
    async def test_f06_an_id_is_worth_nothing_to_another_user(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        await memory.remember(ACME, "user-2", "of the other")
        assert await memory.forget(ACME, "user-2", fact.id) is False
        assert await memory.forget(ACME, "user-3", fact.id) is False
        assert await texts_of(memory) == ["a fact"]
        assert await texts_of(memory, end_user_id="user-2") == ["of the other"]

    @scenario
    async def test_f07_a_clock_that_goes_back_changes_no_order(self, memory: MemoryStore, clock: FakeClock) -> None:
        first = await memory.remember(ACME, USER, "first")
        clock.advance(-timedelta(hours=1))
        second = await memory.remember(ACME, USER, "second")
        clock.advance(timedelta(hours=2))
        third = await memory.remember(ACME, USER, "third")
        assert await memory.recall(ACME, USER) == (first, second, third)

    @scenario
    async def test_f08_after_an_erasure_the_user_starts_empty(self, memory: MemoryStore) -> None:
        old = await remember_all(memory, "first", "second")
        assert await memory.erase(ACME, USER) == 2
        assert await memory.erase(ACME, USER) == 0
        new = await memory.remember(ACME, USER, "third")
        assert await memory.recall(ACME, USER) == (new,)
        for fact in old:
            assert await memory.forget(ACME, USER, fact.id) is False
        assert await memory.erase(ACME, USER) == 1

    @scenario
    async def test_f09_every_name_is_exactly_itself(self, memory: MemoryStore) -> None:
        """Of end users and of tenants: what is done to one name is done to no other one."""
        assert len(set(NAMES)) == len(NAMES)
        keys = [(Caller("acme"), name) for name in NAMES] + [(Caller(name), USER) for name in NAMES]
        ids: list[str] = []
        for scope, user in keys:
            facts = await remember_all(memory, f"{scope.tenant} {user}", "another", scope=scope, end_user_id=user)
            ids.append(facts[0].id)
        for number, (scope, user) in enumerate(keys):
            assert await texts_of(memory, scope, user) == [f"{scope.tenant} {user}", "another"]
            other = ids[(number + 1) % len(ids)]
            assert await memory.forget(scope, user, other) is False
            assert await memory.forget(scope, user, ids[number]) is True
            assert await memory.erase(scope, user) == 1
            assert await memory.recall(scope, user) == ()

    @scenario
    async def test_f12_users_interleave_without_mixing(self, memory: MemoryStore) -> None:
        users = [(scope, f"user-{number}") for scope in (ACME, GLOBEX) for number in range(10)]

        async def live(scope: Caller, user: str, number: int) -> None:
            fact = await memory.remember(scope, user, f"{scope.tenant} {user} {number}")
            assert fact.key == memory_key(scope, user)
            for seen in await memory.recall(scope, user):
                assert seen.key == fact.key
                assert seen.content.startswith(f"{scope.tenant} {user} ")
            if number % 5 == 0:
                assert await memory.forget(scope, user, fact.id)

        await asyncio.gather(*(live(scope, user, number) for number in range(5) for scope, user in users))
        for scope, user in users:
            assert sorted(await texts_of(memory, scope, user)) == [f"{scope.tenant} {user} {n}" for n in range(1, 5)]

    @scenario
    async def test_f12_one_fact_is_forgotten_once(self, memory: MemoryStore) -> None:
        fact = await memory.remember(ACME, USER, "a fact")
        answers = await asyncio.gather(*(memory.forget(ACME, USER, fact.id) for _ in range(20)))
        assert sorted(answers) == [False] * 19 + [True]

    @scenario
    async def test_f12_a_write_that_was_begun_is_done(self, memory: MemoryStore) -> None:
        """Whoever stops waiting, the store ends in a state that it says itself; what was not cancelled is there."""
        kept = [asyncio.ensure_future(memory.remember(ACME, USER, f"kept {number}")) for number in range(10)]
        begun = [asyncio.ensure_future(memory.remember(ACME, USER, f"begun {number}")) for number in range(10)]
        await asyncio.sleep(0)  # each has begun
        for task in begun:
            task.cancel()
        await asyncio.gather(*kept)
        await asyncio.gather(*begun, return_exceptions=True)
        wanted = {f"{word} {number}" for word in ("kept", "begun") for number in range(10)}
        async with asyncio.timeout(PATIENCE_S):
            while set(await texts_of(memory)) != wanted:
                await asyncio.sleep(0)

    @scenario
    async def test_f18_the_tools_work_on_any_store(self, memory: MemoryStore) -> None:
        remember, forget = memory_tools(memory, ACME, USER)
        assert await remember.run(content="likes tea") == {"remembered": True, "content": "likes tea"}
        assert await texts_of(memory) == ["likes tea"]
        assert await forget.run(content="likes tea") == {"forgotten": True, "content": "likes tea"}
        assert await texts_of(memory) == []
        missed = await forget.run(content="likes tea")
        assert missed["forgotten"] is False
        assert "'likes tea'" in str(missed["error"])

    # --- Edge cases ---------------------------------------------------------------------------------------------------

    @scenario
    async def test_edge_texts_are_kept_as_they_are(self, memory: MemoryStore) -> None:
        texts = [" ", "\n", "a\nb", "a\r\nb\n", " likes tea ", "LIKES TEA", COMPOSED, DECOMPOSED, "\U0001f600" * 4096]
        texts += ["\ufeff", "x\u2028y", "'; DROP TABLE facts; --", '{"a": 1}', "\u202eabc", "Å", "\x1b[0m", "\x7f"]
        stored = await remember_all(memory, *texts)
        assert [fact.content for fact in stored] == texts
        assert await texts_of(memory) == texts

    @scenario
    async def test_edge_the_oldest_of_two_equal_texts(self, memory: MemoryStore) -> None:
        first, second = await remember_all(memory, "likes tea", "likes tea")
        assert await memory.forget(ACME, USER, first.id) is True
        assert await memory.recall(ACME, USER) == (second,)
        assert await memory.erase(ACME, USER) == 1

    @scenario
    async def test_edge_erase_while_facts_are_written(self, memory: MemoryStore) -> None:
        """Each fact is destroyed and counted, or written afterwards; none is lost or counted twice."""

        async def write(number: int) -> Memory:
            return await memory.remember(ACME, USER, f"fact {number}")

        tasks = [asyncio.ensure_future(write(number)) for number in range(30)]
        erased = 0
        while not all(task.done() for task in tasks):
            erased += await memory.erase(ACME, USER)
            await asyncio.sleep(0)
        stored = {fact.id for fact in await asyncio.gather(*tasks)}
        left = await memory.recall(ACME, USER)
        assert {fact.id for fact in left} <= stored
        assert erased + len(left) == len(stored) == 30


PATIENCE_S: Final = 60.0
"""After which what was begun is taken to be lost; a sound store never makes it wait."""


class _Anything:
    """A scope with any tenant at all."""

    def __init__(self, tenant: Any) -> None:
        self.tenant = tenant


def calls_as(memory: MemoryStore, scope: Any, end_user_id: Any, memory_id: str) -> list[Awaitable[object]]:
    """The four methods, each called once and to be awaited one after the other."""
    return [
        _Later(memory.remember, scope, end_user_id, "a text"),
        _Later(memory.recall, scope, end_user_id),
        _Later(memory.forget, scope, end_user_id, memory_id),
        _Later(memory.erase, scope, end_user_id),
    ]


class _Later:
    """A call that is made when it is awaited, so that one that is never awaited leaves no warning."""

    def __init__(self, call: Callable[..., Awaitable[object]], *arguments: object) -> None:
        self._call = call
        self._arguments = arguments

    def __await__(self) -> Any:
        return self._call(*self._arguments).__await__()
