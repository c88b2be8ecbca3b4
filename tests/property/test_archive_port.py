"""Random edits of a store in one scope: what is loaded is what was saved, and replay gives each store again."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

import muniment
from muniment import Memory
from muniment.portable import (
    ArchiveMemoryPort,
    MemoryCategory,
    MemoryEntry,
    MemoryStore,
    add,
    clear,
    evict_to_cap,
    remember,
)
from muniment.portable.archive_port import build_store

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TEXTS = st.sampled_from(["", "a", "b", "c", "a b", " a", "é", "x\ny"]) | ANY_TEXT
ENTRIES = st.builds(
    MemoryEntry,
    TEXTS,
    st.sampled_from(MemoryCategory),
    st.none() | TEXTS,
    st.none() | st.lists(TEXTS, max_size=3).map(tuple),
)
STORES = st.builds(MemoryStore, st.lists(ENTRIES, max_size=8))

Edit = Callable[[MemoryStore], object]


@st.composite
def inserts(draw: st.DrawFn) -> Edit:
    at, entry = draw(st.integers(0, 9)), draw(ENTRIES)
    return lambda store: store.entries.insert(at, entry)


@st.composite
def moves(draw: st.DrawFn) -> Edit:
    origin, target = draw(st.integers(0, 9)), draw(st.integers(0, 9))

    def move(store: MemoryStore) -> None:
        if store.entries:
            store.entries.insert(target, store.entries.pop(origin % len(store)))

    return move


@st.composite
def shuffles(draw: st.DrawFn) -> Edit:
    random = draw(st.randoms())
    return lambda store: random.shuffle(store.entries)


EDITS = st.one_of(
    st.builds(lambda entry: lambda store: add(store, entry), ENTRIES),
    st.builds(lambda entry, cap: lambda store: remember(store, entry, cap), ENTRIES, st.integers(0, 6)),
    st.builds(lambda cap: lambda store: evict_to_cap(store, cap), st.integers(0, 6)),
    st.builds(lambda tier: lambda store: clear(store, tier), st.sampled_from(MemoryCategory)),
    st.builds(lambda entries: lambda store: setattr(store, "entries", list(entries)), st.lists(ENTRIES, max_size=8)),
    inserts(),
    moves(),
    shuffles(),
    st.just(lambda store: store.entries.reverse()),
)


@given(st.sampled_from(["memory://", ":memory:"]), STORES, st.lists(st.lists(EDITS, max_size=2), max_size=6))
def test_what_is_saved_is_loaded_and_replayed(url: str, store: MemoryStore, saves: list[list[Edit]]) -> None:
    with muniment.open(url) as archive:
        memory = archive.memory("user-42", tenant="acme")
        port = ArchiveMemoryPort(memory)
        past: list[tuple[int, MemoryStore]] = []
        for edits in [[], *saves]:
            for edit in edits:
                edit(store)
            port.save(store)
            size = len(memory)
            port.save(store)
            assert len(memory) == size
            assert ArchiveMemoryPort(memory).load() == store
            past.append((size - 1, MemoryStore(list(store.entries))))
        for seq, earlier in past:
            assert build_store(memory.replay(up_to_seq=seq).visible_notes) == earlier
        assert memory.verify()


def write_beside(memory: Memory, entry: MemoryEntry, rank: Decimal | None) -> None:
    """A note as another contract, or an importer, may have written it."""
    metadata: dict[str, JsonValue] = {} if rank is None else {"portable": {"rank": format(rank, "f")}}
    memory.remember(
        entry.content, tier=entry.category.value, labels=entry.tags or (), source="other", metadata=metadata
    )


RANKS = st.none() | st.decimals(-3, 9, places=1)


@given(st.lists(st.tuples(st.lists(st.tuples(ENTRIES, RANKS), max_size=3), st.lists(EDITS, max_size=3)), max_size=4))
def test_notes_of_others_are_part_of_the_store(
    rounds: list[tuple[list[tuple[MemoryEntry, Decimal | None]], list[Edit]]],
):
    with muniment.open("memory://") as archive:
        memory = archive.memory("user-42", tenant="acme")
        port = ArchiveMemoryPort(memory, foreign="manage")
        for written, edits in rounds:
            for entry, rank in written:
                write_beside(memory, entry, rank)
            store = port.load()
            for edit in edits:
                edit(store)
            port.save(store)
            assert ArchiveMemoryPort(memory).load() == store
            assert build_store(memory.replay().visible_notes) == store
