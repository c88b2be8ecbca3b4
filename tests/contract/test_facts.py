"""The facts contract on every adapter, and what it asks of facts in an archive beyond the four methods.

Numbers are those of the contract's required tests; `FactsContract` has 12 to 37.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

import pytest

import muniment
from muniment import Archive, Document, ErasedEvent, Message, Recall, Scope, audit
from muniment.archive import Memory as ScopeMemory
from muniment.errors import CleanPendingError, ClosedError, LimitExceededError, StorageUnavailableError, UsageError
from muniment.facts import ArchiveMemory, Caller, Memory, memory_block
from muniment.model import limits
from muniment.model.receipt import Receipt
from muniment.testing.doubles import FakeClock
from muniment.testing.facts import PATIENCE_S
from muniment.testing.residue import find_in_files, find_in_tables, forms_of
from muniment.testing.test_facts_adapters import (
    TestArchiveMemoryInMemory,
    TestArchiveMemoryOnAFile,
    TestArchiveMemoryOnTheOracle,
    TestStoreBackedMemory,
)

__all__ = [
    "TestArchiveMemoryInMemory",
    "TestArchiveMemoryOnAFile",
    "TestArchiveMemoryOnTheOracle",
    "TestStoreBackedMemory",
]

T = TypeVar("T")

ACME: Final = Caller("acme", "agent-1")
USER: Final = "user-42"
SECRET: Final = "the-secret-4711"  # noqa: S105
HEADING: Final = "## What you remember about this user"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


@pytest.fixture(params=["memory://", ":memory:", "file"])
def archive(request: pytest.FixtureRequest, path: Path, clock: FakeClock) -> Iterator[Archive]:
    with muniment.open(path if request.param == "file" else request.param, durability="normal", clock=clock) as archive:
        yield archive


@pytest.fixture
def memory(archive: Archive) -> ArchiveMemory:
    return ArchiveMemory(archive)


@pytest.fixture
def scope(archive: Archive) -> ScopeMemory:
    """The engine's handle of the same end user."""
    return archive.memory(USER, tenant="acme")


def run(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def remember(memory: ArchiveMemory, *texts: str, user: str = USER) -> list[Memory]:
    async def each() -> list[Memory]:
        return [await memory.remember(ACME, user, text) for text in texts]

    return run(each())


def recall(memory: ArchiveMemory, user: str = USER) -> tuple[Memory, ...]:
    return run(memory.recall(ACME, user))


def recalls_of(scope: ScopeMemory) -> list[Recall]:
    return [event for event in scope.events(kind="recall") if isinstance(event, Recall)]


def ids_of(facts: list[Memory]) -> tuple[UUID, ...]:
    return tuple(UUID(fact.id) for fact in facts)


# --- Survival ---------------------------------------------------------------------------------------------------------


def test_38_facts_survive_reopening(path: Path, clock: FakeClock) -> None:
    with muniment.open(path, clock=clock) as archive:
        stored: list[Memory] = []
        for text in ("first", "second", "third"):
            stored += remember(ArchiveMemory(archive), text)
            clock.advance(-timedelta(hours=1))
    with muniment.open(path, clock=clock) as archive:
        assert recall(ArchiveMemory(archive)) == tuple(stored)
    assert [fact.created_at.tzinfo for fact in stored] == [UTC] * 3


def test_48_two_processes_remember_200_each(path: Path) -> None:
    muniment.open(path).close()
    command = [sys.executable, __file__, str(path)]
    helpers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    for helper in helpers:
        assert helper.stdout is not None
        assert helper.stdout.readline() == "ready\n"
    answers = [helper.communicate("go\n", PATIENCE_S)[0] for helper in helpers]
    with muniment.open(path) as archive:
        facts = recall(ArchiveMemory(archive))
    assert len(facts) == len({fact.id for fact in facts}) == 400
    for number, answer in enumerate(answers):
        mine = [fact for fact in facts if fact.content.startswith(f"fact {number} ")]
        assert [fact.content for fact in mine] == words_of(number)
        assert [fact.id for fact in mine] == json.loads(answer)


def words_of(number: int) -> list[str]:
    return [f"fact {number} {index}" for index in range(200)]


def remember_in_a_process(path: str, number: str) -> None:
    """What this file does when it is run as a script: it waits for the word, remembers, and prints the ids."""
    with muniment.open(path, durability="normal") as archive:
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps([fact.id for fact in remember(ArchiveMemory(archive), *words_of(int(number)))]))


# --- Destruction ------------------------------------------------------------------------------------------------------


def test_39_forgotten_facts_are_in_no_table_and_then_in_no_file(path: Path) -> None:
    markers = forms_of(SECRET)
    with muniment.open(path) as archive:
        memory = ArchiveMemory(archive)
        remember(memory, "something else")
        (fact,) = remember(memory, f"knows {SECRET}")
        assert find_in_tables(path, markers)
        assert find_in_files(path, markers)
        assert run(memory.forget(ACME, USER, fact.id))
        assert find_in_tables(path, markers) == []
        assert len(archive.pending()) == 1
        assert archive.clean()
        assert find_in_files(path, markers) == []
        assert archive.pending() == ()


@pytest.mark.parametrize("clean", ["now", "later"])
def test_39_erased_users_are_in_no_file(path: Path, clean: Any) -> None:
    user = "end-user-0815"
    markers = forms_of(SECRET) | forms_of(user)
    with muniment.open(path) as archive:
        memory = ArchiveMemory(archive, clean=clean)
        remember(memory, "something else", user="another")
        remember(memory, f"knows {SECRET}", "and more", user=user)
        recall(memory, user)
        assert find_in_files(path, markers)
        assert run(memory.erase(ACME, user)) == 2
        assert find_in_tables(path, markers) == []
        if clean == "later":
            assert archive.clean()
        assert find_in_files(path, markers) == []
        assert [fact.content for fact in recall(memory, "another")] == ["something else"]


def test_f10_erase_also_cleans_what_was_forgotten_before(path: Path) -> None:
    with muniment.open(path) as archive:
        memory = ArchiveMemory(archive)
        (fact,) = remember(memory, f"knows {SECRET}")
        run(memory.forget(ACME, USER, fact.id))
        assert run(memory.erase(ACME, "nobody")) == 0
        assert len(archive.pending()) == 1
        remember(memory, "a fact", user="user-2")
        assert run(memory.erase(ACME, "user-2")) == 1
        assert archive.pending() == ()
        assert find_in_files(path, forms_of(SECRET)) == []


def test_f10_a_conversation_is_not_forgotten_with_a_fact(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    said = scope.add(Message(speaker="user", content="remember that i like tea"))
    (fact,) = remember(memory, "likes tea")
    run(memory.forget(ACME, USER, fact.id))
    assert scope.get(said.id) == said
    assert run(memory.erase(ACME, USER)) == 0
    assert scope.get(said.id) is None
    assert len(scope) == 0


def test_42_erase_reaches_everything_of_the_user(archive: Archive, memory: ArchiveMemory, scope: ScopeMemory) -> None:
    kept = archive.memory("another", tenant="acme").remember("of another", tier="core")
    remember(memory, "likes tea", "likes Oslo")
    said = scope.add(Message(speaker="anna", content="tea please"))
    note = scope.remember("tea was ordered", tier="archival")
    ledger_id = archive.tenant("acme").scopes()
    ledgers = [info.ledger for info in ledger_id if info.scope == scope.scope]
    assert run(memory.erase(ACME, USER)) == 2
    assert scope.search("tea") == []
    assert recall(memory) == ()
    view = audit.Memory.over(archive, scope.scope)
    assert audit.search(view.replay(), "tea") == []
    assert view.recall("tea")[1] == []
    state = scope.replay()
    assert (state.messages, state.documents, state.notes) == ((), (), ())
    left = list(ledgers[0].events())
    assert {event.id for event in left if isinstance(event, ErasedEvent)} >= {said.id, note.id}
    assert ledgers[0].verify()
    assert archive.memory("another", tenant="acme").get(kept.id) == kept
    everything = [event for _, event in archive.tenant("acme").events()]
    assert not {said.id, note.id} & {event.id for event in everything}


def test_47_after_an_erasure_the_user_is_new(archive: Archive, memory: ArchiveMemory, scope: ScopeMemory) -> None:
    old = remember(memory, "likes tea", "likes Oslo")
    before = scope.head()
    assert run(memory.erase(ACME, USER)) == 2
    (new,) = remember(memory, "likes cake")
    assert recall(memory) == (new,)
    state = scope.replay()
    assert [str(note.id) for note in state.notes] == [new.id]
    after = scope.head()
    assert before is not None
    assert after is not None
    assert before.ledger_id != after.ledger_id
    ledger = archive.ledger(before.ledger_id)
    assert ledger.replay().notes == ()
    for fact in old:
        assert isinstance(ledger.get(fact.id), ErasedEvent)
        assert scope.get(fact.id) is None


def test_a_clean_step_that_cannot_finish_is_an_error_that_says_what_is_done(path: Path) -> None:
    with muniment.open(path, busy_timeout_s=0.2) as archive:
        memory = ArchiveMemory(archive)
        remember(memory, f"knows {SECRET}", "likes tea")
        with muniment.open(path) as reader, reader.storage.snapshot(Scope("acme", USER)) as view:
            assert view is not None
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("muniment.archive.cleaning.CLEAN_WAIT_S", 0.05)
                patch.setattr("muniment.archive.cleaning.clean_archive.__kwdefaults__", {"markers": (), "wait_s": 0.05})
                with pytest.raises(CleanPendingError, match=r"unreachable.*2 facts.*reader") as caught:
                    run(memory.erase(ACME, USER))
        receipt = caught.value.receipt
        assert isinstance(receipt, Receipt)
        assert (caught.value.count, receipt.num_facts, receipt.state) == (2, 2, "pending")
        assert caught.value.retryable
        assert find_in_tables(path, forms_of(SECRET)) == []
        assert archive.pending() == (receipt.id,)
        report = archive.clean()
        assert report.completed == (receipt.id,)
        assert receipt.completed(report).state == "clean"
        assert find_in_files(path, forms_of(SECRET)) == []


def test_a_step_that_fails_never_hides_what_was_destroyed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with muniment.open(path) as archive:
        memory = ArchiveMemory(archive)
        remember(memory, "likes tea")

        def fail(**_: object) -> None:
            raise StorageUnavailableError("the disk is gone")

        monkeypatch.setattr(archive.storage, "clean", fail)
        with pytest.raises(CleanPendingError, match="the disk is gone") as caught:
            run(memory.erase(ACME, USER))
        assert caught.value.count == 1
        monkeypatch.undo()
        assert recall(memory) == ()
        assert archive.clean()


# --- Reads are recorded -----------------------------------------------------------------------------------------------


def test_40_a_read_is_recorded_with_what_was_handed_out(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    stored = remember(memory, "first", "second")
    recall(memory)
    (read,) = recalls_of(scope)
    assert (read.query, read.source, read.recalled) == ("*", "facts.recall", ids_of(stored))
    assert run(memory.recall(ACME, USER, limit=1)) == (stored[0],)
    assert run(memory.recall(ACME, USER, limit=0)) == ()
    assert [read.recalled for read in recalls_of(scope)[1:]] == [ids_of(stored[:1]), ()]
    assert [item.usage_count for item in scope.items()] == [2, 1]


def test_40_a_read_of_nothing_is_recorded(archive: Archive, memory: ArchiveMemory, scope: ScopeMemory) -> None:
    assert recall(memory) == ()
    (read,) = recalls_of(scope)
    assert (read.query, read.source, read.recalled) == ("*", "facts.recall", ())
    assert run(memory.erase(ACME, USER)) == 0
    assert len(scope) == 0


def test_a_read_that_is_refused_is_not_recorded(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    limit: Any = -1
    budget, memories = 79, ("fixed",)
    with pytest.raises(UsageError):
        run(memory.recall(ACME, USER, limit=limit))
    with pytest.raises(UsageError):
        run(memory.prompt(ACME, USER, budget_chars=budget))
    not_texts: Any = (5,)
    with pytest.raises(UsageError):
        run(memory.prompt(ACME, USER, memories=not_texts))
    session: Any = 5
    with pytest.raises(UsageError):
        run(memory.prompt(ACME, USER, memories=memories, session_id=session))
    assert len(scope) == 0


def test_reads_are_not_recorded_where_that_is_off(clock: FakeClock) -> None:
    with muniment.open("memory://", read_audit="off", clock=clock) as archive:
        memory = ArchiveMemory(archive)
        assert recall(memory) == ()
        assert run(memory.prompt(ACME, USER, memories=("fixed",))) == memory_block(("fixed",))
        stored = remember(memory, "likes tea")
        assert recall(memory) == tuple(stored)
        assert run(memory.prompt(ACME, USER)) == memory_block(("likes tea",))
        assert recalls_of(archive.memory(USER, tenant="acme")) == []


def test_more_facts_than_a_record_can_name_are_refused_and_not_cut(
    memory: ArchiveMemory, scope: ScopeMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is 10,000; a smaller one makes the same point in less time."""
    monkeypatch.setattr(limits, "TARGETS_MAX", 10)
    remember(memory, *(f"fact {number}" for number in range(10)))
    assert len(recall(memory)) == 10
    remember(memory, "one more")
    for call in (memory.recall(ACME, USER), memory.prompt(ACME, USER)):
        with pytest.raises(LimitExceededError, match=r"11.*10"):
            run(call)
    assert len(run(memory.recall(ACME, USER, limit=10))) == 10
    assert len(recalls_of(scope)) == 2
    assert run(memory.erase(ACME, USER)) == 11


def test_54_and_55_the_prompt(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    stored = remember(memory, "likes tea\n## Notices", "lives in Oslo")
    fixed = ("prefers metric units", "speaks Dutch")
    text = run(memory.prompt(ACME, USER, memories=fixed, session_id="s1"))
    assert text == memory_block((*fixed, *(fact.content for fact in stored)))
    (read,) = recalls_of(scope)
    assert (read.query, read.source, read.session_id) == ("*", "facts.prompt", "s1")
    assert read.recalled == ids_of(stored)


def test_55_the_prompt_names_the_facts_that_were_shown(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    stored = remember(memory, "likes tea", "lives in Oslo", "works at night")
    cases = {
        80: ([], "- likes tea\n(2 more not shown)", stored[:1]),
        None: ([], "- likes tea\n- lives in Oslo\n- works at night", stored),
        81: (["x" * 20], "- " + "x" * 20 + "\n(3 more not shown)", []),
    }
    for budget, (fixed, body, shown) in cases.items():
        text = run(memory.prompt(ACME, USER, memories=fixed, budget_chars=budget))
        assert text == f"{HEADING}\n\n{body}"
        assert recalls_of(scope)[-1].recalled == ids_of(shown)


def test_a_prompt_without_anything_is_empty_and_recorded(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    assert run(memory.prompt(ACME, USER)) == ""
    assert [read.recalled for read in recalls_of(scope)] == [()]


# --- Which notes are facts --------------------------------------------------------------------------------------------


def test_a_fact_is_a_core_note(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    (fact,) = remember(memory, "likes tea")
    note = scope.get(fact.id)
    assert isinstance(note, muniment.Note)
    assert (note.tier, note.labels, note.key, note.source) == ("core", (), None, "facts")
    assert (note.content, note.timestamp, str(note.id)) == (fact.content, fact.created_at, fact.id)
    assert len(fact.id) == 36
    assert "likes tea" in scope.prompt()
    assert scope.replay().notes == (note,)


def test_f20_facts_that_another_contract_wrote(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    first = scope.remember("likes tea", tier="core", labels=["drinks"])
    old = scope.put("home", "lives in Oslo", tier="core")
    new = scope.put("home", "lives in Bergen")
    assert [(fact.content, fact.id) for fact in recall(memory)] == [
        ("likes tea", str(first.id)),
        ("lives in Bergen", str(new.id)),
    ]
    assert run(memory.forget(ACME, USER, str(old.id))) is False
    assert run(memory.forget(ACME, USER, str(new.id))) is True
    assert isinstance(scope.get(old.id), ErasedEvent)
    assert [fact.content for fact in recall(memory)] == ["likes tea"]


def test_41_forgetting_nothing_leaves_no_trace(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    assert run(memory.forget(ACME, USER, str(uuid4()))) is False
    assert run(memory.forget_text(ACME, USER, "likes tea")) is False
    assert run(memory.erase(ACME, USER)) == 0
    assert len(scope) == 0
    remember(memory, "likes tea")
    assert run(memory.forget(ACME, USER, str(uuid4()))) is False
    assert run(memory.forget_text(ACME, USER, "likes Tea")) is False
    assert len(scope) == 1
    assert memory.archive.pending() == ()


def test_41_only_facts_are_forgotten_by_id(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    others: list[Any] = [
        scope.add(Message(speaker="anna", content="hello")),
        scope.add(Document(name="a.txt", text="text")),
        scope.remember("archival", tier="archival"),
        scope.remember("insight", tier="insight"),
        scope.remember("", tier="core"),
        scope.remember("x" * 4097, tier="core"),
    ]
    others.append(scope.record(Recall(query="*")))
    others.append(scope.delete([others[0].id], "asked"))
    length = len(scope)
    for event in others:
        assert run(memory.forget(ACME, USER, str(event.id))) is False
    assert len(scope) == length
    (fact,) = remember(memory, "likes tea")
    for spelling in (fact.id.upper(), f"{{{fact.id}}}", f"urn:uuid:{fact.id}", fact.id.replace("-", "")):
        assert run(memory.forget(ACME, USER, spelling)) is False or spelling == fact.id
    assert recall(memory) == (fact,)


def test_44_and_45_what_is_no_fact_is_destroyed_all_the_same(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    scope.remember("archival", tier="archival")
    long = scope.remember("x" * 5000, tier="core")
    empty = scope.remember("", tier="core")
    (fact,) = remember(memory, "likes tea")
    assert recall(memory) == (fact,)
    assert run(memory.prompt(ACME, USER)) == memory_block(("likes tea",))
    assert run(memory.erase(ACME, USER)) == 1
    assert scope.get(long.id) is None
    assert scope.get(empty.id) is None


def test_46_a_hidden_fact(memory: ArchiveMemory, scope: ScopeMemory) -> None:
    hidden, shown, other = remember(memory, "likes tea", "likes tea", "likes Oslo")
    scope.delete([UUID(hidden.id), UUID(other.id)], "asked")
    assert recall(memory) == (shown,)
    assert run(memory.forget_text(ACME, USER, "likes Oslo")) is False
    assert run(memory.forget_text(ACME, USER, "likes tea")) is True
    assert recall(memory) == ()
    assert run(memory.forget(ACME, USER, hidden.id)) is True
    assert isinstance(scope.get(hidden.id), ErasedEvent)
    assert run(memory.erase(ACME, USER)) == 1


def test_43_facts_are_found_by_the_service(archive: Archive, memory: ArchiveMemory) -> None:
    from muniment.service import ServiceMemory

    remember(memory, "prefers the Berlin warehouse")
    found = ServiceMemory(archive, "acme").search("berlin", scope=USER)
    assert [memory_object.content for memory_object in found] == ["prefers the Berlin warehouse"]
    run(memory.erase(ACME, USER))
    assert ServiceMemory(archive, "acme").search("berlin", scope=USER) == []
    assert ServiceMemory(archive, "acme").search("berlin") == []


# --- Failures and concurrency -----------------------------------------------------------------------------------------


def every_call(memory: ArchiveMemory) -> list[Callable[[], Awaitable[object]]]:
    return [
        lambda: memory.remember(ACME, USER, "likes tea"),
        lambda: memory.recall(ACME, USER),
        lambda: memory.forget(ACME, USER, str(uuid4())),
        lambda: memory.forget_text(ACME, USER, "likes tea"),
        lambda: memory.erase(ACME, USER),
        lambda: memory.prompt(ACME, USER),
    ]


def test_closed_is_closed(archive: Archive, memory: ArchiveMemory) -> None:
    async def each() -> None:
        for call in every_call(memory):
            with pytest.raises(ClosedError):
                await call()

    archive.close()
    run(each())


def test_f12_a_submitted_write_is_done_although_nobody_waits(archive: Archive, memory: ArchiveMemory) -> None:
    """All threads of the loop are busy, so the writes are still queued when their waiters are cancelled."""
    go, started = threading.Event(), threading.Semaphore(0)

    def block() -> None:
        started.release()
        assert go.wait(PATIENCE_S)

    async def submit() -> None:
        loop = asyncio.get_running_loop()
        blockers = [loop.run_in_executor(None, block) for _ in range(64)]
        tasks = [asyncio.ensure_future(memory.remember(ACME, USER, f"fact {number}")) for number in range(5)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        assert all(task.cancelled() for task in tasks)
        go.set()
        await asyncio.gather(*blockers)

    run(submit())  # the end of the loop waits for its threads
    assert sorted(fact.content for fact in recall(memory)) == [f"fact {number}" for number in range(5)]


def test_f13_reads_under_concurrent_deletion_record_what_they_hand_out(
    memory: ArchiveMemory, scope: ScopeMemory
) -> None:
    async def write(number: int) -> None:
        fact = await memory.remember(ACME, USER, f"fact {number}")
        if number % 3 == 0:
            await memory.forget(ACME, USER, fact.id)
        elif number % 3 == 1:
            await asyncio.to_thread(scope.delete, [fact.id], "asked")

    async def read() -> list[tuple[UUID, ...]]:
        handed_out: list[tuple[UUID, ...]] = []
        for _ in range(15):
            facts = await memory.recall(ACME, USER)
            handed_out.append(ids_of(list(facts)))
        return handed_out

    async def all_at_once() -> list[list[tuple[UUID, ...]]]:
        writers = [asyncio.ensure_future(write(number)) for number in range(45)]
        readings = await asyncio.gather(*(read() for _ in range(3)))
        await asyncio.gather(*writers)
        return readings

    readings = [ids for reading in run(all_at_once()) for ids in reading]
    assert sorted(readings) == sorted(read.recalled for read in recalls_of(scope))
    gone: set[UUID] = set()
    for event in scope.events():
        if isinstance(event, Recall):
            assert not gone & set(event.recalled)
        elif event.kind in ("deletion", "erasure"):
            gone |= set(event.targets)  # pyright: ignore[reportAttributeAccessIssue]
    assert len(recall(memory)) == 15


def test_facts_are_stored_when_the_embedder_fails(clock: FakeClock) -> None:
    def fail(_: list[str]) -> list[list[float]]:
        raise RuntimeError("no model today")

    with muniment.open("memory://", embedder=fail, clock=clock) as archive:
        stored = remember(ArchiveMemory(archive), "likes tea")
        assert recall(ArchiveMemory(archive)) == tuple(stored)


if __name__ == "__main__":
    remember_in_a_process(*sys.argv[1:])
