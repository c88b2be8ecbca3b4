"""The values of the facts contract: callers, keys, facts. Numbers are those of the contract's required tests."""

from __future__ import annotations

import ast
import asyncio
import inspect
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import muniment
from muniment import facts
from muniment.errors import LimitExceededError, UsageError
from muniment.facts import (
    ArchiveMemory,
    Caller,
    Memory,
    MemoryKey,
    MemoryStore,
    PromptMemory,
    StoreBackedMemory,
    memory_key,
)
from muniment.model.scope import Scope
from muniment.testing.doubles import START, FakeClock, SeededEntropy

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)


def key(tenant: str = "acme", end_user_id: str = "user-1") -> MemoryKey:
    return MemoryKey(tenant=tenant, end_user_id=end_user_id)


def build_memory(**more: Any) -> Memory:
    return Memory(**{"id": "1", "key": key(), "content": "a fact", "created_at": NOON, **more})


def test_01_a_key_has_both_parts() -> None:
    for fields in ({"tenant": "acme"}, {"end_user_id": "u"}, {}):
        with pytest.raises(ValueError, match="Field required"):
            MemoryKey.model_validate(fields)


def test_02_and_03_no_part_is_empty() -> None:
    for fields in ({"tenant": "", "end_user_id": "u"}, {"tenant": "acme", "end_user_id": ""}):
        with pytest.raises(ValueError, match="empty"):
            MemoryKey(**fields)


@pytest.mark.parametrize("name", ["x" * 257, "a\x00", "a\ud800", None, 5, b"acme"])
def test_what_no_part_can_be(name: Any) -> None:
    for fields in ({"tenant": name, "end_user_id": "u"}, {"tenant": "acme", "end_user_id": name}):
        with pytest.raises(ValidationError):
            MemoryKey(**fields)
        with pytest.raises(UsageError):
            memory_key(_Scope(fields["tenant"]), fields["end_user_id"])


class _Scope:
    def __init__(self, tenant: Any) -> None:
        self.tenant = tenant


def test_parts_of_256_characters_are_valid() -> None:
    assert memory_key(Caller("😀" * 256), " " * 256) == key("😀" * 256, " " * 256)


def test_04_a_key_cannot_be_changed() -> None:
    made = key()
    with pytest.raises(ValueError, match="frozen"):
        made.tenant = "globex"  # pyright: ignore[reportAttributeAccessIssue]
    assert made.tenant == "acme"


def test_05_keys_are_values() -> None:
    assert len({key("acme", "user-1"), key("acme", "user-1"), key("acme", "user-2")}) == 2


def test_06_the_key_of_a_caller() -> None:
    assert memory_key(Caller("acme", "agent-1"), "user-1") == key("acme", "user-1")
    assert memory_key(Scope("acme", "somebody"), "user-1") == key("acme", "user-1")
    assert memory_key(key("acme", "somebody"), "user-1") == key("acme", "user-1")


def test_07_the_principal_plays_no_part() -> None:
    callers = [Caller("acme", "agent-1"), Caller("acme", "agent-2"), Caller("acme"), Caller("acme", labels={"a": "b"})]
    assert {memory_key(caller, "user-1") for caller in callers} == {key()}


def test_08_tenants_differ() -> None:
    assert memory_key(Caller("acme"), "user-1") != memory_key(Caller("globex"), "user-1")


def test_09_end_users_differ() -> None:
    assert memory_key(Caller("acme"), "user-1") != memory_key(Caller("acme"), "user-2")
    assert memory_key(Caller("acme"), "User-1") != memory_key(Caller("acme"), "user-1")


def test_10_a_fact_says_something() -> None:
    with pytest.raises(ValueError, match="at least 1 character"):
        build_memory(content="")


def test_11_a_fact_cannot_be_changed() -> None:
    fact = build_memory()
    with pytest.raises(ValueError, match="frozen"):
        fact.content = "another"  # pyright: ignore[reportAttributeAccessIssue]
    assert fact.content == "a fact"


def test_what_a_fact_cannot_be() -> None:
    wrong: list[dict[str, Any]] = [
        {"content": "x" * 4097},
        {"content": "half of \ud83d"},
        {"content": 5},
        {"id": ""},
        {"id": "x" * 65},
        {"id": 5},
        {"key": None},
        {"created_at": datetime(2026, 6, 10, 12)},  # noqa: DTZ001
        {"score": 1.0},
    ]
    for fields in wrong:
        with pytest.raises(ValidationError):
            build_memory(**fields)


def test_the_time_of_a_fact_is_in_utc() -> None:
    fact = build_memory(created_at=datetime(2026, 6, 10, 14, tzinfo=timezone(timedelta(hours=2))))
    assert fact.created_at == NOON
    assert fact.created_at.tzinfo is UTC


def test_a_caller_by_place_and_by_name() -> None:
    assert Caller("acme", "agent-1", {"team": "b"}) == Caller(tenant="acme", principal="agent-1", labels={"team": "b"})
    assert Caller("acme").principal is None
    assert Caller("acme").labels == {}
    with pytest.raises(TypeError):
        Caller("acme", "agent-1", {}, "more")  # pyright: ignore[reportCallIssue]


def test_what_a_caller_cannot_be() -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"tenant": ""},
        {"tenant": "x" * 257},
        {"tenant": 5},
        {"tenant": "acme", "principal": "x" * 257},
        {"tenant": "acme", "principal": "\ud800"},
        {"tenant": "acme", "principal": 5},
        {"tenant": "acme", "labels": {f"label {number}": "" for number in range(33)}},
        {"tenant": "acme", "labels": {"": "value"}},
        {"tenant": "acme", "labels": {"x" * 257: "value"}},
        {"tenant": "acme", "labels": {"label": "x" * 257}},
        {"tenant": "acme", "labels": {"label": 5}},
        {"tenant": "acme", "labels": ["label"]},
        {"tenant": "acme", "labels": {"\ud800": "value"}},
        {"tenant": "acme", "user": "user-1"},
    ]
    for fields in wrong:
        with pytest.raises(ValueError, match="validation error"):
            Caller(**fields)


def test_a_caller_at_its_limits() -> None:
    labels = {f"label {number}": "x" * 256 for number in range(31)} | {"x" * 256: ""}
    caller = Caller("acme", "", labels)
    assert caller.labels == labels
    labels["more"] = "later"
    assert "more" not in caller.labels
    with pytest.raises(TypeError):
        caller.labels["more"] = "later"  # pyright: ignore[reportIndexIssue]
    with pytest.raises(ValueError, match="frozen"):
        caller.tenant = "globex"  # pyright: ignore[reportAttributeAccessIssue]


def test_f01_keys_are_built_in_one_place() -> None:
    """Every other module of the package asks `memory_key`."""
    package = Path(inspect.getfile(muniment)).parent
    places: list[str] = []
    for path in package.rglob("*.py"):
        source = path.read_text("utf-8")
        if path.is_relative_to(package / "testing") or "MemoryKey" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                places += [node.name for inner in ast.walk(node) if _builds_key(inner)]
    assert places == ["memory_key"]


def _builds_key(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name == "MemoryKey" or (name.startswith("model_") and "MemoryKey" in ast.dump(called))


def test_f02_a_scope_has_a_tenant() -> None:
    wrong: tuple[Any, ...] = ("acme", None, 5, object(), {"tenant": "acme"}, _Scope(None))
    for scope in wrong:
        with pytest.raises(UsageError, match="scope with a tenant"):
            memory_key(scope, "user-1")
    with pytest.raises(LimitExceededError, match=r"257.*256"):
        memory_key(Caller("acme"), "x" * 257)


def test_f05_the_ids_of_the_store_in_the_process() -> None:
    clock = FakeClock()
    memory = StoreBackedMemory(clock=clock, entropy=SeededEntropy(1))
    fact = asyncio.run(memory.remember(Caller("acme"), "user-1", "a fact"))
    assert fact.id == f"mem_{SeededEntropy(1)(12).hex()}"
    assert fact.created_at == START


def test_both_adapters_have_the_port() -> None:
    assert issubclass(StoreBackedMemory, MemoryStore)
    assert issubclass(ArchiveMemory, MemoryStore)
    assert issubclass(ArchiveMemory, PromptMemory)
    assert not issubclass(StoreBackedMemory, PromptMemory)


def test_49_a_given_store_is_never_touched() -> None:
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"the store was asked for {name}")

    async def use() -> None:
        memory = StoreBackedMemory(Untouchable())
        fact = await memory.remember(Caller("acme"), "user-1", "a fact")
        assert await memory.recall(Caller("acme"), "user-1") == (fact,)
        assert await memory.forget(Caller("acme"), "user-1", fact.id)
        assert await memory.erase(Caller("acme"), "user-1") == 0

    asyncio.run(use())


def test_50_two_stores_share_nothing() -> None:
    async def use() -> None:
        shared = object()
        one, other = StoreBackedMemory(shared), StoreBackedMemory(shared)
        fact = await one.remember(Caller("acme"), "user-1", "a fact")
        assert await other.recall(Caller("acme"), "user-1") == ()
        assert not await other.forget(Caller("acme"), "user-1", fact.id)
        assert await other.erase(Caller("acme"), "user-1") == 0
        assert await one.recall(Caller("acme"), "user-1") == (fact,)

    asyncio.run(use())


def test_what_an_archive_memory_takes() -> None:
    with muniment.open("memory://") as archive:
        memory = ArchiveMemory(archive)
        assert memory.archive is archive
        with pytest.raises(AttributeError):
            memory.archive = archive  # pyright: ignore[reportAttributeAccessIssue]
        wrong_clean: Any = "soon"
        with pytest.raises(UsageError, match="soon"):
            ArchiveMemory(archive, clean=wrong_clean)
    wrong_archive: Any = "memory://"
    with pytest.raises(UsageError, match="archive"):
        ArchiveMemory(wrong_archive)


def test_muniment_keeps_its_own_memory() -> None:
    assert not set(facts.__all__) & set(muniment.__all__) - {"Memory"}
    assert muniment.Memory is not facts.Memory
