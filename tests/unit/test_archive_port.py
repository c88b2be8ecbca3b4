"""A scope of an archive as a store: what the notes hold, what a save appends, and what it refuses (P22, P23)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import muniment
import muniment.portable.archive_port as port_module
from muniment import Archive, Deletion, Document, Memory, Message, Note, facts
from muniment.errors import ClosedError, ConflictError, LimitExceededError, UsageError
from muniment.portable import (
    ArchiveMemoryPort,
    MemoryCategory,
    MemoryEntry,
    MemoryStore,
    add,
    evict_to_cap,
    remember,
    remove,
    update,
)
from muniment.portable.archive_port import build_store

CORE, ARCHIVAL, INSIGHT = MemoryCategory


@pytest.fixture(params=["memory://", ":memory:", "{folder}/archive.db"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    with muniment.open(request.param.format(folder=tmp_path), durability="normal") as opened:
        yield opened


@pytest.fixture
def memory(archive: Archive) -> Memory:
    return archive.memory("user-42", tenant="acme")


def store_of(*contents: str) -> MemoryStore:
    return MemoryStore([MemoryEntry(content) for content in contents])


def saved(memory: Memory, *contents: str) -> ArchiveMemoryPort:
    """A port that has saved these entries into an empty scope."""
    port = ArchiveMemoryPort(memory)
    port.save(store_of(*contents))
    return port


def contents(memory: Memory) -> list[str]:
    return [entry.content for entry in ArchiveMemoryPort(memory).load().entries]


def notes(memory: Memory) -> list[Note]:
    return [cast("Note", item.event) for item in memory.items(kinds=["note"])]


# --- What a note holds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "fields"),
    [
        (MemoryEntry("a"), ("a", "core", (), {})),
        (MemoryEntry("", INSIGHT), ("", "insight", (), {})),
        (MemoryEntry("a", tags=()), ("a", "core", (), {"portable": {"tags": []}})),
        (MemoryEntry("a", tags=("",)), ("a", "core", ("",), {})),
        (MemoryEntry("a", ARCHIVAL, tags=("b", "a", "b ")), ("a", "archival", ("b", "a", "b "), {})),
        (MemoryEntry("a", created_at="yesterday"), ("a", "core", (), {"portable": {"createdAt": "yesterday"}})),
        (MemoryEntry("a", CORE, "", ()), ("a", "core", (), {"portable": {"createdAt": "", "tags": []}})),
    ],
)
def test_an_entry_is_a_note(memory: Memory, entry: MemoryEntry, fields: object) -> None:
    ArchiveMemoryPort(memory).save(MemoryStore([entry]))
    (note,) = notes(memory)
    assert (note.content, note.tier, note.labels, note.metadata) == fields
    assert (note.source, note.key, note.summary, note.retain_until) == ("portable", None, None, None)
    assert ArchiveMemoryPort(memory).load() == MemoryStore([entry])


def test_notes_of_others_appear_and_nothing_else_does(memory: Memory) -> None:
    memory.add(Message(speaker="anna", content="hello"))
    memory.remember("a fact", tier="core", source="facts", metadata={"score": 3})
    memory.add(Document(name="terms", text="ten minutes"))
    memory.put("plan", "first", labels=["b", "a"])
    memory.put("plan", "second", tier="insight")
    memory.recall("hello")
    assert ArchiveMemoryPort(memory).load() == MemoryStore(
        [MemoryEntry("a fact", CORE), MemoryEntry("second", INSIGHT, tags=("b", "a"))]
    )


@pytest.mark.parametrize(
    "metadata",
    [
        {"portable": 3},
        {"portable": []},
        {"portable": {"createdAt": 3, "tags": ["x"], "rank": 7}},
        {"portable": {"createdAt": None, "tags": None, "rank": "NaN"}},
    ],
)
def test_what_no_port_writes_counts_as_absent(memory: Memory, metadata: Any) -> None:
    memory.remember("first", tier="core")
    memory.remember("second", tier="core", metadata=metadata)
    memory.remember("third", tier="core")
    assert ArchiveMemoryPort(memory).load() == store_of("first", "second", "third")


def test_a_rank_is_the_place_and_equal_ranks_stand_in_seq_order(memory: Memory) -> None:
    for content, rank in (("e", None), ("c", "-1"), ("a", "-7.25"), ("d", "-1"), ("f", "0.5"), ("b", "-7.2")):
        memory.remember(content, metadata={} if rank is None else {"portable": {"rank": rank}})
    assert contents(memory) == list("abcdef")


def test_a_load_records_nothing_and_begins_no_ledger(memory: Memory) -> None:
    port = ArchiveMemoryPort(memory)
    assert port.load() == MemoryStore()
    assert memory.head() is None
    port.save(store_of("a"))
    port.load()
    assert [event.kind for event in memory.events()] == ["note"]


# --- What a save appends ----------------------------------------------------------------------------------------------

Edit = Callable[[MemoryStore], object]


def reorder(order: str) -> Edit:
    def edit(store: MemoryStore) -> None:
        by_content = {entry.content: entry for entry in store.entries}
        store.entries[:] = [by_content[content] for content in order]

    return edit


@pytest.mark.parametrize(
    ("edit", "appended"),
    [
        (lambda store: None, []),
        (lambda store: add(store, MemoryEntry("e")), ["e"]),
        (lambda store: remove(store, 1), [{1}]),
        (lambda store: store.entries.clear(), [{0, 1, 2, 3}]),
        (lambda store: evict_to_cap(store, 2), [{0, 1}]),
        (lambda store: update(store, 2, MemoryEntry("x", INSIGHT)), ["x", {2}]),
        (lambda store: remember(store, MemoryEntry("x", CORE, tags=("d",))), ["x", {3}]),
        (lambda store: remember(store, MemoryEntry("x", ARCHIVAL), 4), ["x", {0}]),
        (reorder("bcda"), ["a", {0}]),
        (reorder("badc"), ["b", "d", {1, 3}]),
        (reorder("dcba"), ["d", "c", "b", {1, 2, 3}]),
    ],
)
def test_a_save_appends_the_difference(memory: Memory, edit: Edit, appended: list[object]) -> None:
    port = ArchiveMemoryPort(memory)
    tiers = {"a": ARCHIVAL, "b": ARCHIVAL, "c": INSIGHT, "d": CORE}
    port.save(MemoryStore([MemoryEntry(text, tier, tags=(text,)) for text, tier in tiers.items()]))
    store = port.load()
    edit(store)
    port.save(store)
    events = list(memory.events(after_seq=3))
    seqs = {note.id: note.seq for note in cast("list[Note]", list(memory.events(up_to_seq=3)))}
    assert [
        event.content if isinstance(event, Note) else {seqs[target] for target in cast("Deletion", event).targets}
        for event in events
    ] == appended
    assert {cast("Note", event).source for event in events} <= {"portable"}
    assert [event.reason for event in events if isinstance(event, Deletion)] == ["no longer in the saved store"] * sum(
        isinstance(each, set) for each in appended
    )
    assert ArchiveMemoryPort(memory).load() == store


def test_an_update_in_place_takes_the_rank(memory: Memory) -> None:
    port = saved(memory, "a", "b", "c")
    for content in ("x", "y"):
        port.save(store_of("a", content, "c"))
    assert [note.metadata for note in notes(memory)] == [{}, {}, {"portable": {"rank": "1"}}]
    assert contents(memory) == ["a", "y", "c"]


def test_of_equal_entries_the_newer_goes(memory: Memory) -> None:
    port = saved(memory, "same", "same")
    older, newer = notes(memory)
    port.save(store_of("same"))
    assert [note.id for note in notes(memory)] == [older.id]
    (deletion,) = cast("list[Deletion]", list(memory.events(kind="deletion")))
    assert deletion.targets == (newer.id,)


def test_every_earlier_store_is_replayed(memory: Memory) -> None:
    port = ArchiveMemoryPort(memory)
    stores = [store_of(*text) for text in ("a", "abc", "cab", "", "xyz", "axb")]
    heads: list[int] = []
    for store in stores:
        port.save(store)
        heads.append(len(memory) - 1)
    for store, seq in zip(stores, heads, strict=True):
        assert build_store(memory.replay(up_to_seq=seq).visible_notes) == store


def test_what_is_evicted_is_hidden_and_stays_in_the_ledger(memory: Memory) -> None:
    port = ArchiveMemoryPort(memory)
    store = MemoryStore([MemoryEntry("the pump failed", CORE, tags=("pump",)), MemoryEntry("kept", CORE)])
    port.save(store)
    (hidden, _) = notes(memory)
    remember(store, MemoryEntry("the pump works", CORE, tags=("pump",)))
    port.save(store)
    assert [hit.text for hit in memory.search("pump")] == ["the pump works"]
    assert "failed" not in memory.prompt()
    assert memory.get(hidden.id) == hidden


def test_ranks_stay_short(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_module, "_RANK_CHARS_MAX", 12)
    monkeypatch.setattr(port_module, "_RANK_CHARS_SHORT", 5)
    port, store = ArchiveMemoryPort(memory), store_of("first", "last")
    port.save(store)
    for number in range(60):
        store.entries.insert(1, MemoryEntry(str(number)))
        port.save(store)
        assert port.load() == store
    ranks = [cast("dict[str, str]", note.metadata["portable"])["rank"] for note in notes(memory) if note.metadata]
    assert max(map(len, ranks)) <= 12
    assert len(memory) < 60 * 10  # every now and then the crowded ones are written anew, and not every time


def test_a_large_store() -> None:
    store = MemoryStore([MemoryEntry(f"entry {number}", ARCHIVAL, str(number)) for number in range(10_000)])
    with muniment.open(":memory:") as archive:
        memory = archive.memory("large", tenant="acme")
        port = ArchiveMemoryPort(memory)
        port.save(store)
        store.entries[5_000:5_002] = [MemoryEntry("in the middle")]
        port.save(store)
        assert len(memory) == 10_002
        assert port.load() == store


# --- Who else wrote ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "own", "own changed", "fact own"])
def test_a_note_of_others_is_not_hidden(memory: Memory, text: str) -> None:
    port = saved(memory, "own")
    fact = memory.remember("fact", tier="core", source="facts")
    port.load()
    with pytest.raises(UsageError, match=f"hide note {fact.id} .*'facts'.*foreign='manage'"):
        port.save(store_of(*text.split()))
    assert len(memory) == 2
    port.save(store_of("other", "fact", "appended"))
    assert contents(memory) == ["other", "fact", "appended"]


def test_a_port_may_manage_the_notes_of_others(memory: Memory) -> None:
    memory.put("plan", "a fact", tier="core")
    port = ArchiveMemoryPort(memory, foreign="manage")
    store = port.load()
    remember(store, MemoryEntry("in its place"))
    port.save(store)
    assert contents(memory) == ["in its place"]
    assert memory.get_live("plan") is None


def test_facts_are_core_entries_and_core_entries_are_facts(archive: Archive, memory: Memory) -> None:
    adapter, caller = facts.ArchiveMemory(archive), facts.Caller("acme")
    asyncio.run(adapter.remember(caller, "user-42", "likes tea"))
    port = ArchiveMemoryPort(memory)
    store = port.load()
    assert store == MemoryStore([MemoryEntry("likes tea", CORE)])
    store.entries += [MemoryEntry("works at night", CORE, tags=("hours",)), MemoryEntry("said once", ARCHIVAL)]
    port.save(store)
    found = asyncio.run(adapter.recall(caller, "user-42"))
    assert [fact.content for fact in found] == ["likes tea", "works at night"]


def test_scopes_do_not_meet(archive: Archive, memory: Memory) -> None:
    saved(memory, "a")
    for other in (archive.memory("user-43", tenant="acme"), archive.memory("user-42", tenant="other")):
        assert ArchiveMemoryPort(other).load() == MemoryStore()


# --- Conflicts --------------------------------------------------------------------------------------------------------

Interfere = Callable[[Memory], object]


@pytest.mark.parametrize(
    "interfere",
    [
        lambda memory: memory.remember("of another"),
        lambda memory: memory.put("key", "of another"),
        lambda memory: memory.delete([notes(memory)[0].id], "unwanted"),
        lambda memory: memory.forget([notes(memory)[0].id]),
        lambda memory: memory.erase(),
        lambda memory: (memory.erase(), saved(memory, "a", "b")),
    ],
    ids=["remember", "put", "delete", "forget", "erase", "erase and write the same"],
)
@pytest.mark.parametrize("wanted", ["ab", "abc"])
def test_a_change_by_others_is_a_conflict(memory: Memory, interfere: Interfere, wanted: str) -> None:
    port = saved(memory, "a", "b")
    port.save(store_of("a", "b"))
    interfere(memory)
    before = memory.head()
    for _ in range(2):
        with pytest.raises(ConflictError, match="load again") as conflict:
            port.save(store_of(*wanted))
        assert conflict.value.expected != conflict.value.actual
    assert memory.head() == before
    store = port.load()
    add(store, MemoryEntry("next"))
    port.save(store)
    assert contents(memory)[-1] == "next"


@pytest.mark.parametrize("first", ["", "a"])
def test_messages_and_reads_are_no_conflict(memory: Memory, first: str) -> None:
    port = ArchiveMemoryPort(memory)
    store = store_of(*first)
    port.save(store)
    memory.add(Message(speaker="anna", content="hello"))
    memory.recall("hello")
    memory.prompt()
    add(store, MemoryEntry("b"))
    port.save(store)
    assert contents(memory) == [*first, "b"]


def test_a_port_that_never_loaded(memory: Memory) -> None:
    hidden = memory.remember("hidden")
    with pytest.raises(ConflictError) as conflict:
        ArchiveMemoryPort(memory).save(MemoryStore())
    assert (conflict.value.expected, str(conflict.value.actual).rpartition(":")[2]) == (None, "0")
    memory.delete([hidden.id], "unwanted")
    port = ArchiveMemoryPort(memory)
    port.save(store_of("a"))
    port.save(store_of("a", "b"))
    assert contents(memory) == ["a", "b"]


def test_an_empty_store_saved_into_nothing_begins_no_ledger(memory: Memory) -> None:
    port = ArchiveMemoryPort(memory)
    port.save(MemoryStore())
    assert memory.head() is None
    memory.remember("of another")
    with pytest.raises(ConflictError) as conflict:
        port.save(MemoryStore())
    assert conflict.value.expected == "absent"


def test_a_ledger_that_was_erased_as_soon_as_the_port_began_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    change = memory.change

    def change_and_lose(decide: Any) -> Any:
        changed = change(decide)
        memory.erase()
        memory.remember("of another")
        return changed

    monkeypatch.setattr(memory, "change", change_and_lose)
    port = saved(memory, "a")
    monkeypatch.undo()
    with pytest.raises(ConflictError):
        port.save(store_of("b"))
    assert contents(memory) == ["of another"]


def test_a_change_in_the_middle_of_a_save_is_a_conflict(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    port = saved(memory, "a")
    find_changes = port_module.plan_changes

    def find_while_others_write(*arguments: Any, **options: Any) -> Any:
        memory.remember("of another")
        return find_changes(*arguments, **options)

    monkeypatch.setattr(port_module, "plan_changes", find_while_others_write)
    with pytest.raises(ConflictError):
        port.save(store_of("a", "b"))
    assert contents(memory) == ["a", "of another"]


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "kind", "message"),
    [
        (MemoryEntry("a\0"), UsageError, r"^entries\[1\]\.content must not contain U\+0000"),
        (MemoryEntry("é" * (2**21 + 1)), LimitExceededError, r"^entries\[1\]\.content is over"),
        (MemoryEntry(created_at="a\0"), UsageError, r"^entries\[1\]\.createdAt must not"),
        (MemoryEntry(created_at="a" * 65_536), LimitExceededError, "^metadata is over"),
        (MemoryEntry(tags=("a", "b\0")), UsageError, r"^entries\[1\]\.tags\[1\] must not"),
        (MemoryEntry(tags=("a", "b" * 129)), LimitExceededError, r"^entries\[1\]\.tags\[1\] is over.*128"),
        (MemoryEntry(tags=("a",) * 65), LimitExceededError, r"^entries\[1\]\.tags is over.*64"),
    ],
    ids=["NUL", "4 MiB", "NUL in createdAt", "64 KiB of createdAt", "NUL in a tag", "128 characters", "64 tags"],
)
def test_what_a_ledger_cannot_hold_is_refused_and_named(
    memory: Memory, entry: MemoryEntry, kind: type[Exception], message: str
) -> None:
    port = saved(memory, "a")
    with pytest.raises(kind, match=message):
        port.save(MemoryStore([MemoryEntry("a"), entry]))
    assert len(memory) == 1
    port.save(store_of("a", "b"))


def test_a_save_has_the_size_of_a_transaction(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.archive.memory.ADD_MANY_MAX", 3)
    port = saved(memory, "a", "b", "c")
    with pytest.raises(LimitExceededError, match="4 given, at most 3 events"):
        port.save(store_of("x", "y", "z"))
    assert contents(memory) == ["a", "b", "c"]


def test_arguments_are_checked(memory: Memory) -> None:
    with pytest.raises(UsageError, match=r"muniment\.Memory, not str"):
        ArchiveMemoryPort(cast("Memory", "acme"))
    with pytest.raises(UsageError, match="'refuse' or 'manage', not 'hide'"):
        ArchiveMemoryPort(memory, foreign=cast("Any", "hide"))
    with pytest.raises(UsageError, match="must be a MemoryStore, not dict"):
        ArchiveMemoryPort(memory).save(cast("MemoryStore", {}))
    with pytest.raises(UsageError, match=r"^entries\[0\]: must be a MemoryEntry, not str"):
        ArchiveMemoryPort(memory).save(MemoryStore([cast("MemoryEntry", "a")]))
    assert repr(ArchiveMemoryPort(memory)) == "<ArchiveMemoryPort <Memory 'user-42' of 'acme'>>"


def test_a_closed_archive_is_an_error(archive: Archive, memory: Memory) -> None:
    port = saved(memory, "a")
    archive.close()
    with pytest.raises(ClosedError):
        port.load()
    with pytest.raises(ClosedError):
        port.save(store_of("b"))
