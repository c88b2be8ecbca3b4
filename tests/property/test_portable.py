"""Laws of the portable contract on random stores, texts and operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import regex
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import MemoryIndexError, UsageError
from muniment.portable import (
    FileMemoryPort,
    MemoryCategory,
    MemoryEntry,
    MemoryStore,
    add,
    clear,
    core_memories,
    evict_to_cap,
    format_for_system_prompt,
    format_recall_results,
    recall,
    remember,
    remove,
    update,
    update_content,
)
from muniment.portable.ranking import find_tokens

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FEW_TEXTS = st.sampled_from(["", "a", "b", "a b", "A", "deploy", "Deploy now", "é", "e\u0301", "x\ny"])
TEXTS = FEW_TEXTS | ANY_TEXT
TAGS = st.none() | st.lists(FEW_TEXTS | ANY_TEXT, max_size=3).map(tuple)


def entries(texts: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[MemoryEntry]:
    return st.builds(MemoryEntry, texts, st.sampled_from(MemoryCategory), st.none() | TEXTS, TAGS)


def stores() -> st.SearchStrategy[MemoryStore]:
    return st.builds(MemoryStore, st.lists(entries(), max_size=8))


QUERIES = st.sampled_from(["", "a", "b a", "deploy", "DEPLOY now!", "e", "..."]) | st.text()

Write = Callable[[MemoryStore], object]


def writes() -> st.SearchStrategy[Write]:
    """One operation with its arguments; a bad index is part of the game."""
    index = st.integers(-2, 9)
    return st.one_of(
        st.builds(lambda entry: lambda store: add(store, entry), entries()),
        st.builds(lambda entry, cap: lambda store: remember(store, entry, cap), entries(), st.integers(0, 6)),
        st.builds(lambda cap: lambda store: evict_to_cap(store, cap), st.integers(0, 6)),
        st.builds(lambda at, entry: lambda store: update(store, at, entry), index, entries()),
        st.builds(lambda at, text: lambda store: update_content(store, at, text), index, TEXTS),
        st.builds(lambda at: lambda store: remove(store, at), index),
        st.builds(lambda tier: lambda store: clear(store, tier), st.none() | st.sampled_from(MemoryCategory)),
    )


def copy(store: MemoryStore) -> MemoryStore:
    return MemoryStore(list(store.entries))


def run(store: MemoryStore, write: Write) -> object:
    before = list(store.entries)
    try:
        return write(store)
    except MemoryIndexError:
        assert store.entries == before
        return None


@given(stores())
def test_round_trips(store: MemoryStore):
    assert MemoryStore.load(store.save()) == store
    assert MemoryStore.from_json(store.to_json()) == store
    assert MemoryStore.from_json(store.to_json(indent=None)) == store
    assert MemoryStore.from_yaml(store.to_yaml()) == store
    assert [MemoryEntry.load(entry.save()) for entry in store.entries] == store.entries


@given(stores(), st.lists(writes(), max_size=6))
def test_save_and_load_after_every_step_changes_nothing(store: MemoryStore, steps: list[Write]):
    plain, through_json, through_yaml = copy(store), copy(store), copy(store)
    for write in steps:
        answers = [run(each, write) for each in (plain, through_json, through_yaml)]
        assert answers[0] == answers[1] == answers[2]
        through_json = MemoryStore.from_json(through_json.to_json())
        through_yaml = MemoryStore.from_yaml(through_yaml.to_yaml())
        assert plain == through_json == through_yaml


@given(st.lists(stores(), max_size=4), st.sampled_from([".json", ".yaml", ".yml"]))
def test_file_port_round_trips(saved: list[MemoryStore], suffix: str):
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"store{suffix}"
        port = FileMemoryPort(path)
        assert port.load() == MemoryStore()
        for store in saved:
            port.save(store)
            assert FileMemoryPort(path).load() == store
            assert port.load() == store


@given(stores(), entries(), st.integers(0, 10))
def test_remember_accounts_for_every_entry(store: MemoryStore, entry: MemoryEntry, cap: int):
    before = list(store.entries)
    result = remember(store, entry, cap)
    assert Counter([*before, entry]) == Counter([*store.entries, *result.replaced, *result.evicted])
    assert all(old.category is MemoryCategory.CORE for old in result.replaced)
    assert all(set(old.tags or ()) == set(entry.tags or ()) for old in result.replaced)
    if result.index is None:
        assert result.evicted
    else:
        assert store.entries[result.index] == entry
        assert result.index == len(store.entries) - 1
    assert cap == 0 or len(store) <= cap


@given(stores(), entries())
def test_remember_leaves_one_core_entry_per_tag_set_it_wrote(store: MemoryStore, entry: MemoryEntry):
    remember(store, entry)
    same = [old for old in core_memories(store) if set(old.tags or ()) == set(entry.tags or ())]
    assert entry.category is not MemoryCategory.CORE or same == [entry]


@given(stores(), entries())
def test_remember_again_changes_nothing_more_for_core(store: MemoryStore, entry: MemoryEntry):
    remember(store, entry)
    once = copy(store)
    result = remember(store, entry)
    if entry.category is MemoryCategory.CORE:
        assert store == once
        assert result.replaced == (entry,)
    else:
        assert store.entries == [*once.entries, entry]


@given(stores(), st.integers(0, 10))
def test_eviction_is_one_by_one(store: MemoryStore, cap: int):
    """The law as it is written, step by step, beside the code that sorts."""
    expected = list(store.entries)
    while cap and len(expected) > cap:
        archival = [at for at, entry in enumerate(expected) if entry.category is MemoryCategory.ARCHIVAL]
        expected.pop(archival[0] if archival else 0)
    length = len(store)
    assert evict_to_cap(store, cap) == length - len(expected)
    assert store.entries == expected
    assert evict_to_cap(store, cap) == 0


@given(stores(), st.integers(1, 10), st.integers(1, 10))
def test_eviction_in_two_steps_is_eviction_in_one(store: MemoryStore, cap: int, smaller: int):
    at_once = copy(store)
    evict_to_cap(at_once, min(cap, smaller))
    evict_to_cap(store, cap)
    evict_to_cap(store, min(cap, smaller))
    assert store == at_once


@given(stores(), st.sampled_from(MemoryCategory))
def test_clear_takes_one_tier_and_is_idempotent(store: MemoryStore, tier: MemoryCategory):
    before = list(store.entries)
    rest = [entry for entry in before if entry.category is not tier]
    assert clear(store, tier) == len(before) - len(rest)
    assert store.entries == rest
    assert clear(store, tier) == 0


@given(stores(), st.integers(-3, 10))
def test_remove_then_index(store: MemoryStore, index: int):
    before = list(store.entries)
    if 0 <= index < len(before):
        assert remove(store, index) == before[index]
        assert store.entries == before[:index] + before[index + 1 :]
    else:
        assert run(store, lambda each: remove(each, index)) is None


@given(stores(), QUERIES, st.integers(0, 6))
def test_recall_reads_only_and_is_deterministic(store: MemoryStore, query: str, limit: int):
    before = copy(store)
    found = recall(store, query, limit)
    assert store == before
    assert recall(store, query, limit) == found
    assert recall(store, query)[: limit or None] == found
    assert recall(MemoryStore.from_json(store.to_json()), query, limit) == found


@given(stores(), QUERIES)
def test_recall_orders_and_scores_by_the_law(store: MemoryStore, query: str):
    """The law as it is written, entry by entry and token by token."""
    tokens = find_tokens(query)
    expected: list[tuple[float, int, MemoryEntry, int]] = []
    for at, entry in enumerate(store.entries):
        in_content = [token in entry.content.lower() for token in tokens]
        in_tags = [any(token in tag.lower() for tag in entry.tags or ()) for token in tokens]
        score = 2.0 * sum(in_content) + 3.0 * sum(in_tags)
        if score and entry.category is MemoryCategory.CORE:
            score += 1.0
        if score or not tokens:
            matches = sum(content or tag for content, tag in zip(in_content, in_tags, strict=True))
            expected.append((-score, at, entry, matches))
    expected.sort(key=lambda row: row[:2])
    found = [(-hit.score, hit.entry, hit.keyword_matches) for hit in recall(store, query)]
    assert found == [(score, entry, matches) for score, _, entry, matches in expected]


WHITE_SPACE = regex.compile(r"\p{White_Space}+")
TRIMMED = regex.compile(r"^[^\p{Alphabetic}\p{Nd}\p{Nl}\p{No}]+|[^\p{Alphabetic}\p{Nd}\p{Nl}\p{No}]+$")
EDGE_TEXT = st.lists(
    st.sampled_from([*"aA_-' 0²½Ⅷéßİ🚀", "\u0301", "ी", "่", "ี", "\u200b", "\x1c", "\x85", "\u2028", "\u3000", "Ⓐ"])
).map("".join)


@given(st.text() | EDGE_TEXT)
def test_tokens_equal_a_reference_by_unicode_properties(query: str):
    pieces = [TRIMMED.sub("", piece).lower() for piece in WHITE_SPACE.split(query)]
    assert find_tokens(query) == list(dict.fromkeys(piece for piece in pieces if piece))


@given(stores(), QUERIES)
def test_texts_hold_every_content_verbatim(store: MemoryStore, query: str):
    prompt = format_for_system_prompt(store)
    assert prompt == "" if not core_memories(store) else prompt.startswith("## Memory\n- ")
    assert all(f"- {entry.content}\n" in prompt for entry in core_memories(store))
    results = recall(store, query)
    listed = format_recall_results(results)
    assert (listed == "") == (not results)
    assert all(f"[{hit.entry.category}] {hit.entry.content}\n" in listed for hit in results)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.sampled_from(["a", "core", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["entries", "content", "category", "createdAt", "tags", "x"]), inner, max_size=4
        )
    ),
)


PLACE = re.compile(r"(store|entries(\[\d+\](\.(content|category|createdAt|tags(\[\d+\])?))?)?): ")


@given(JSON_VALUES)
def test_any_json_value_loads_or_is_refused_with_a_place(value: object):
    try:
        store = MemoryStore.load(value)  # pyright: ignore[reportArgumentType]
    except UsageError as refused:
        message = str(refused)
    else:
        message = "store: "
        assert MemoryStore.load(store.save()) == store
    assert PLACE.match(message)
