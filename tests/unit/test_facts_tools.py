"""The tools of the facts contract (F18, F19) on both kinds of store. Numbers are those of the required tests."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import JsonValue

import muniment
from muniment import Archive
from muniment.errors import LimitExceededError, UsageError
from muniment.facts import (
    ArchiveMemory,
    Caller,
    HasTenant,
    Memory,
    MemoryStore,
    StoreBackedMemory,
    Tool,
    memory_key,
    memory_tools,
)
from muniment.testing.doubles import START

ACME = Caller("acme", "agent-1")
USER = "user-1"
CONTENT_SCHEMA: JsonValue = {
    "type": "object",
    "additionalProperties": False,
    "required": ["content"],
    "properties": {"content": {"type": "string", "minLength": 1, "maxLength": 4096}},
}


@pytest.fixture
def archive() -> Iterator[Archive]:
    with muniment.open("memory://") as archive:
        yield archive


@pytest.fixture(params=["in the process", "in an archive"])
def memory(request: pytest.FixtureRequest, archive: Archive) -> MemoryStore:
    return StoreBackedMemory() if request.param == "in the process" else ArchiveMemory(archive)


@pytest.fixture
def tools(memory: MemoryStore) -> dict[str, Tool]:
    return {tool.name: tool for tool in memory_tools(memory, ACME, USER)}


@pytest.fixture
def run(tools: dict[str, Tool]) -> Callable[..., dict[str, JsonValue]]:
    """The result of a tool."""

    async def use(name: str, arguments: dict[str, Any]) -> dict[str, JsonValue]:
        return await tools[name].run(**arguments)

    return lambda name, **arguments: asyncio.run(use(name, arguments))


def texts_of(memory: MemoryStore) -> list[str]:
    return [fact.content for fact in asyncio.run(recall(memory))]


async def recall(memory: MemoryStore) -> tuple[Memory, ...]:
    return await memory.recall(ACME, USER)


async def remember_all(memory: MemoryStore, *texts: str) -> list[Memory]:
    return [await memory.remember(ACME, USER, text) for text in texts]


def missed(text: str) -> dict[str, JsonValue]:
    return {
        "forgotten": False,
        "error": f"no remembered fact is exactly {text!r}; pass its exact text as listed under 'What you remember "
        "about this user'",
    }


def test_56_there_are_two_tools(memory: MemoryStore) -> None:
    tools = memory_tools(memory, ACME, USER)
    assert [tool.name for tool in tools] == ["remember", "forget"]
    for tool in tools:
        assert tool.parameters == CONTENT_SCHEMA
        assert list(inspect.signature(tool.run).parameters) == ["content"]
    assert "should last" in tools[0].description
    assert "exact text" in tools[1].description
    assert "'What you remember about this user'" in tools[1].description


def test_57_remember(memory: MemoryStore, run: Callable[..., dict[str, JsonValue]]) -> None:
    assert run("remember", content="likes tea") == {"remembered": True, "content": "likes tea"}
    assert texts_of(memory) == ["likes tea"]


def test_58_forget_removes_the_oldest_of_equal_texts(
    memory: MemoryStore, run: Callable[..., dict[str, JsonValue]]
) -> None:
    first, other, second = asyncio.run(remember_all(memory, "likes tea", "likes Oslo", "likes tea"))
    assert run("forget", content="likes tea") == {"forgotten": True, "content": "likes tea"}
    assert asyncio.run(recall(memory)) == (other, second)
    assert first not in asyncio.run(recall(memory))


@pytest.mark.parametrize("text", ["likes tea", 'it\'s "quoted"', "a\nb", "é"])
def test_59_forget_of_an_unknown_text(memory: MemoryStore, run: Callable[..., dict[str, JsonValue]], text: str) -> None:
    asyncio.run(remember_all(memory, "Likes tea", "likes  tea", "likes tea "))
    assert run("forget", content=text) == missed(text)
    assert texts_of(memory) == ["Likes tea", "likes  tea", "likes tea "]


def test_60_forget_takes_the_form_that_was_shown(memory: MemoryStore, run: Callable[..., dict[str, JsonValue]]) -> None:
    asyncio.run(remember_all(memory, "likes tea\nand cake\n", "likes tea\r\nand cake"))
    assert run("forget", content="likes tea\n  and cake") == {"forgotten": True, "content": "likes tea\n  and cake"}
    assert texts_of(memory) == ["likes tea\r\nand cake"]
    assert run("forget", content="likes tea\nand cake") == missed("likes tea\nand cake")


def test_an_equal_text_goes_before_one_that_is_shown_alike(
    memory: MemoryStore, run: Callable[..., dict[str, JsonValue]]
) -> None:
    asyncio.run(remember_all(memory, "a\nb", "a\n  b"))
    assert run("forget", content="a\n  b")["forgotten"] is True
    assert texts_of(memory) == ["a\nb"]


def test_61_forgetting_by_text_reads_nothing_out(archive: Archive) -> None:
    memory = ArchiveMemory(archive)
    scope = archive.memory(USER, tenant="acme")

    async def use() -> None:
        await remember_all(memory, "likes tea", "likes Oslo")
        await recall(memory)
        before = [(item.usage_count, item.last_used_at) for item in scope.items()][1:]
        num_recalls = len(scope.events(kind="recall"))
        _, forget = memory_tools(memory, ACME, USER)
        assert (await forget.run(content="likes tea"))["forgotten"] is True
        assert (await forget.run(content="likes tea"))["forgotten"] is False
        assert len(scope.events(kind="recall")) == num_recalls
        assert [(item.usage_count, item.last_used_at) for item in scope.items()] == before
        assert before[0][0] == 1

    asyncio.run(use())


class FourMethods:
    """A store that was written by somebody else: it holds one fact, and has just lost it to somebody else."""

    def __init__(self) -> None:
        self.forgets: list[tuple[str, str, str]] = []

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        raise AssertionError

    async def forget(self, scope: HasTenant, end_user_id: str, memory_id: str) -> bool:
        self.forgets.append((scope.tenant, end_user_id, memory_id))
        return False

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        key = memory_key(scope, end_user_id)
        return (Memory(id="7", key=key, content="likes tea", created_at=START),)

    async def erase(self, scope: HasTenant, end_user_id: str) -> int:
        raise AssertionError


def test_62_what_the_store_says_is_reported() -> None:
    memory = FourMethods()
    _, forget = memory_tools(memory, ACME, USER)
    assert asyncio.run(_run(forget, content="likes tea")) == missed("likes tea")
    assert asyncio.run(_run(forget, content="likes cake")) == missed("likes cake")
    assert memory.forgets == [("acme", USER, "7")]


async def _run(tool: Tool, **arguments: Any) -> dict[str, JsonValue]:
    return await tool.run(**arguments)


def test_wrong_arguments_name_the_field_and_its_rule(
    memory: MemoryStore, run: Callable[..., dict[str, JsonValue]]
) -> None:
    for name in ("remember", "forget"):
        for content in (None, 5, ["a"], "", "a\ud800"):
            with pytest.raises(UsageError, match="content"):
                run(name, content=content)
        with pytest.raises(LimitExceededError, match=r"content.*4097.*4096"):
            run(name, content="x" * 4097)
        for arguments in ({}, {"content": "a", "end_user_id": "user-2"}, {"content": "a", "tenant": "globex"}):
            with pytest.raises(TypeError):
                run(name, **arguments)
    assert texts_of(memory) == []


def test_the_key_is_taken_when_the_tools_are_made(memory: MemoryStore) -> None:
    class Shifting:
        tenant = "acme"

    scope = Shifting()
    remember, forget = memory_tools(memory, scope, USER)
    scope.tenant = "globex"
    asyncio.run(_run(remember, content="likes tea"))
    assert texts_of(memory) == ["likes tea"]
    assert asyncio.run(_run(forget, content="likes tea"))["forgotten"] is True
    assert texts_of(memory) == []


@pytest.mark.parametrize("end_user_id", ["", None, 5, "x" * 257])
def test_there_are_no_tools_of_nobody(memory: MemoryStore, end_user_id: Any) -> None:
    with pytest.raises(UsageError):
        memory_tools(memory, ACME, end_user_id)
    scope: Any = "acme"
    with pytest.raises(UsageError):
        memory_tools(memory, scope, USER)
