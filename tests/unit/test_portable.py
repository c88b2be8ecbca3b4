"""The portable contract by hand: the examples of its section 10 that stand beside the vectors."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError

import pytest

import muniment.portable as portable
from muniment.errors import MemoryIndexError, NotFoundError, UsageError
from muniment.portable import (
    MemoryCategory,
    MemoryEntry,
    MemoryStore,
    RememberResult,
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

SAMPLE = {
    "content": "The user prefers concise answers.",
    "category": "core",
    "createdAt": "2026-06-09T20:00:00Z",
    "tags": ["preference", "tone"],
}


def core(content: str, *tags: str) -> MemoryEntry:
    return MemoryEntry(content, MemoryCategory.CORE, tags=tags or None)


def archival(content: str, *tags: str) -> MemoryEntry:
    return MemoryEntry(content, MemoryCategory.ARCHIVAL, tags=tags or None)


def insight(content: str, *tags: str) -> MemoryEntry:
    return MemoryEntry(content, MemoryCategory.INSIGHT, tags=tags or None)


def store(*entries: MemoryEntry) -> MemoryStore:
    return MemoryStore(list(entries))


def contents(of: MemoryStore) -> list[str]:
    return [entry.content for entry in of.entries]


def found(of: MemoryStore, query: str, limit: int = 0) -> list[tuple[str, float, int]]:
    return [(hit.entry.content, hit.score, hit.keyword_matches) for hit in recall(of, query, limit)]


class TestRecall:
    def test_two_words(self):
        memory = store(
            insight("the sky is clear"),
            insight("favorite color is blue sky"),
            insight("unrelated text", "space"),
            core("always deploy on green"),
        )
        assert found(memory, "blue sky") == [("favorite color is blue sky", 4.0, 2), ("the sky is clear", 2.0, 1)]

    def test_tag_hit_above_content_hit(self):
        assert found(store(insight("space"), insight("x", "space")), "space") == [("x", 3.0, 1), ("space", 2.0, 1)]

    def test_core_boost_only_with_a_match(self):
        memory = store(core("deploy", "deploy"), core("other"))
        assert found(memory, "deploy") == [("deploy", 6.0, 1)]

    def test_case_and_punctuation(self):
        assert found(store(insight("The Sky Is Blue.")), "SKY, blue!") == [("The Sky Is Blue.", 4.0, 2)]

    @pytest.mark.parametrize("query", ["", "  \t", "!!!", "🚀 ✨", "?! ... --"])
    def test_no_token_finds_all(self, query: str):
        memory = store(insight("a"), core("b"), archival("c"))
        assert found(memory, query) == [("a", 0.0, 0), ("b", 0.0, 0), ("c", 0.0, 0)]
        assert found(memory, query, 2) == [("a", 0.0, 0), ("b", 0.0, 0)]

    def test_ties_keep_store_order(self):
        memory = store(insight("match 1"), insight("match 2"), insight("match 3"))
        answers = [found(memory, "match") for _ in range(5)]
        assert answers == [[("match 1", 2.0, 1), ("match 2", 2.0, 1), ("match 3", 2.0, 1)]] * 5

    @pytest.mark.parametrize(("limit", "length"), [(2, 2), (0, 3), (10, 3)])
    def test_limit(self, limit: int, length: int):
        assert len(recall(store(insight("m1"), insight("m2"), insight("m3")), "m", limit)) == length

    @pytest.mark.parametrize("limit", [-1, True, 1.0, None, "1"])
    def test_bad_limit(self, limit: object):
        for query in ("m", ""):
            with pytest.raises(UsageError, match="limit"):
                recall(store(insight("m")), query, limit)  # pyright: ignore[reportArgumentType]

    def test_query_must_be_text(self):
        with pytest.raises(UsageError, match="query"):
            recall(store(), None)  # pyright: ignore[reportArgumentType]

    def test_spec_example(self):
        memory = store(
            archival("all about deploy"), insight("unrelated text", "deploy"), core("always deploy on green")
        )
        assert found(memory, "deploy") == [
            ("unrelated text", 3.0, 1),
            ("always deploy on green", 3.0, 1),
            ("all about deploy", 2.0, 1),
        ]

    def test_held_result_does_not_change(self):
        memory = store(core("old"))
        held, listed = recall(memory, "old"), core_memories(memory)
        update_content(memory, 0, "new")
        clear(memory)
        assert held[0].entry.content == "old"
        assert listed == [core("old")]

    @pytest.mark.parametrize(
        ("query", "tokens"),
        [
            ("DEPLOY, deploy!!! café", ["deploy", "café"]),
            ("session: abc123", ["session", "abc123"]),
            ("_private_", ["private"]),
            ("don't", ["don't"]),
            ("C++", ["c"]),
            ("user@example.com", ["user@example.com"]),
            ("🚀 ✨", []),
            ("?! ... --", []),
            ("x²", ["x²"]),
            ("ΟΔΟΣ οδοσ", ["οδος", "οδοσ"]),
            ("a\x1cb", ["a\x1cb"]),
            ("a\x85b", ["a", "b"]),
        ],
    )
    def test_tokens(self, query: str, tokens: list[str]):
        assert find_tokens(query) == tokens

    def test_long_run_of_trimmed_characters_is_linear(self):
        assert find_tokens("-" * 200_000 + "a" + "-" * 200_000) == ["a"]


class TestRemember:
    def test_replaced_core_moves_to_the_end(self):
        memory = store(core("old", "subject"), archival("summary", "subject"), core("other", "z"))
        assert remember(memory, core("new", "subject")) == RememberResult(2, (core("old", "subject"),), ())
        assert contents(memory) == ["summary", "other", "new"]

    def test_absent_and_empty_tags_are_one_set(self):
        absent, empty = MemoryEntry("absent"), MemoryEntry("empty", tags=())
        memory = store(absent, empty, archival("kept"))
        assert remember(memory, MemoryEntry("new", tags=())).replaced == (absent, empty)
        assert contents(memory) == ["kept", "new"]

    def test_archival_never_replaces(self):
        memory = store(core("fact", "k"), archival("one", "k"))
        assert remember(memory, archival("two", "k")) == RememberResult(2, (), ())

    @pytest.mark.parametrize("tags", [("b", "a"), ("a", "b", "a")])
    def test_tag_set_ignores_order_and_repeats(self, tags: tuple[str, ...]):
        memory = store(core("old", "a", "b"))
        assert remember(memory, core("new", *tags)).replaced == (core("old", "a", "b"),)
        assert memory.entries[0].tags == tags

    def test_tag_set_keeps_case(self):
        assert remember(store(core("old", "Style")), core("new", "style")).replaced == ()

    def test_tells_what_it_replaced(self):
        memory = store(core("likes tea"))
        assert remember(memory, core("works at night")) == RememberResult(0, (core("likes tea"),), ())

    def test_tells_that_the_new_entry_was_evicted(self):
        memory = store(core("a", "a"), core("b", "b"))
        result = remember(memory, archival("fresh summary"), 2)
        assert result == RememberResult(None, (), (archival("fresh summary"),))

    def test_store_over_its_cap_reports_three_evicted(self):
        memory = store(archival("s1"), core("c", "c"), archival("s2"), insight("i"))
        result = remember(memory, core("n", "n"), 2)
        assert result == RememberResult(1, (), (archival("s1"), archival("s2"), core("c", "c")))
        assert contents(memory) == ["i", "n"]

    def test_cap(self):
        memory = store(core("a", "a"), archival("b"))
        remember(memory, core("c", "c"), 2)
        assert contents(memory) == ["a", "c"]

    def test_archival_under_a_cap(self):
        memory = store()
        for content in "abcd":
            remember(memory, archival(content), 2)
        assert contents(memory) == ["c", "d"]

    @pytest.mark.parametrize("cap", [-1, True, 2.0, None])
    def test_bad_cap_changes_nothing(self, cap: object):
        memory = store(core("a", "k"))
        with pytest.raises(UsageError, match="max_entries"):
            remember(memory, core("b", "k"), cap)  # pyright: ignore[reportArgumentType]
        with pytest.raises(UsageError, match="max_entries"):
            evict_to_cap(memory, cap)  # pyright: ignore[reportArgumentType]
        assert contents(memory) == ["a"]

    def test_evict_returns_how_many(self):
        memory = store(core("a", "a"), core("b", "b"), core("c", "c"))
        assert evict_to_cap(memory, 2) == 1
        assert contents(memory) == ["b", "c"]
        assert evict_to_cap(memory, 0) == 0

    def test_the_list_stays_the_same_list(self):
        memory = store(core("a"), archival("b"))
        held = memory.entries
        remember(memory, core("c"))
        evict_to_cap(memory, 1)
        clear(memory, "archival")
        assert memory.entries is held

    def test_only_entries_go_in(self):
        memory = store(core("a"))
        for write in (add, remember):
            with pytest.raises(UsageError, match="entry"):
                write(memory, SAMPLE)  # pyright: ignore[reportArgumentType]
        with pytest.raises(UsageError, match="entry"):
            update(memory, 0, SAMPLE)  # pyright: ignore[reportArgumentType]
        with pytest.raises(UsageError, match="store"):
            add([], core("a"))  # pyright: ignore[reportArgumentType]
        assert contents(memory) == ["a"]


class TestMutate:
    def test_bad_index_has_the_exact_message_and_changes_nothing(self):
        memory = store(core("a"), insight("b"))
        cases = {
            5: lambda: update(memory, 5, core("x")),
            9: lambda: update_content(memory, 9, "x"),
            2: lambda: remove(memory, 2),
            -1: lambda: remove(memory, -1),
        }
        for index, write in cases.items():
            with pytest.raises(MemoryIndexError) as raised:
                write()
            assert str(raised.value) == f"memory index {index} out of bounds (len 2)"
            assert (raised.value.index, raised.value.length) == (index, 2)
            assert isinstance(raised.value, NotFoundError | IndexError)
            assert not isinstance(raised.value, ValueError)
        assert contents(memory) == ["a", "b"]

    @pytest.mark.parametrize("index", [True, 0.0, None, "0"])
    def test_index_must_be_an_int(self, index: object):
        with pytest.raises(UsageError, match="index"):
            remove(store(core("a")), index)  # pyright: ignore[reportArgumentType]

    def test_update_content_keeps_the_rest(self):
        memory = store(MemoryEntry.load(SAMPLE))
        update_content(memory, 0, "new")
        assert memory.entries[0].save() == {**SAMPLE, "content": "new"}

    def test_update_content_must_be_text(self):
        memory = store(core("a"))
        with pytest.raises(UsageError, match=r"^content: "):
            update_content(memory, 0, 3)  # pyright: ignore[reportArgumentType]
        assert contents(memory) == ["a"]

    def test_remove_returns_and_shifts(self):
        memory = store(core("a"), core("b"), core("c"))
        assert remove(memory, 1) == core("b")
        assert contents(memory) == ["a", "c"]

    def test_clear(self):
        memory = store(core("a"), archival("b"), core("c"))
        assert clear(memory, MemoryCategory.CORE) == 2
        assert clear(memory, None) == 1
        assert clear(memory) == 0

    @pytest.mark.parametrize("category", ["semantic", "Core", "", 3])
    def test_clear_of_an_unknown_tier(self, category: object):
        memory = store(core("a"))
        with pytest.raises(UsageError, match="category"):
            clear(memory, category)  # pyright: ignore[reportArgumentType]
        assert contents(memory) == ["a"]


class TestText:
    def test_prompt(self):
        memory = store(core("a"), archival("b"), core("c", "k"))
        assert format_for_system_prompt(memory) == "## Memory\n- a\n- c\n"
        assert format_for_system_prompt(store(archival("b"))) == ""

    def test_recall_list(self):
        memory = store(core("deploy on friday", "process", "release"), archival("deploy notes"))
        expected = "1. [core] deploy on friday\n   tags: process, release\n2. [archival] deploy notes\n"
        assert format_recall_results(recall(memory, "deploy")) == expected
        assert format_recall_results([]) == ""
        assert format_recall_results(recall(store(MemoryEntry("x", tags=())), "x")) == "1. [core] x\n"


class TestEntry:
    def test_saved_keys(self):
        assert list(MemoryEntry("a", created_at="t", tags=()).save()) == ["content", "category", "createdAt", "tags"]
        assert MemoryEntry().save() == {"content": "", "category": "core"}
        assert [category.value for category in MemoryCategory] == ["core", "archival", "insight"]

    def test_saved_values_are_plain(self):
        saved = MemoryEntry(
            MemoryCategory.CORE, MemoryCategory.CORE, MemoryCategory.CORE, (MemoryCategory.CORE,)
        ).save()
        assert saved == {"content": "core", "category": "core", "createdAt": "core", "tags": ["core"]}
        flat = [saved["content"], saved["category"], saved["createdAt"], saved["tags"][0]]  # pyright: ignore
        assert {type(value) for value in flat} == {str}

    def test_host_row_round_trips_to_the_same_bytes(self):
        row = (
            '{"content": "remember the deploy step", "category": "core", '
            '"createdAt": "2024-01-01T00:00:00Z", "tags": ["deploy"]}'
        )
        assert json.dumps(MemoryEntry.load(json.loads(row)).save()) == row

    def test_list_of_tags_becomes_a_tuple(self):
        given = ["a", "b"]
        entry = MemoryEntry("x", tags=given)  # pyright: ignore[reportArgumentType]
        given.append("c")
        assert entry.tags == ("a", "b")

    def test_tier_as_text_becomes_the_tier(self):
        assert MemoryEntry("x", "insight").category is MemoryCategory.INSIGHT  # pyright: ignore[reportArgumentType]

    @pytest.mark.parametrize(
        ("field", "value", "place"),
        [
            ("content", 3, "content"),
            ("content", None, "content"),
            ("content", b"a", "content"),
            ("content", "\ud800", "content"),
            ("category", "semantic", "category"),
            ("category", "Core", "category"),
            ("category", None, "category"),
            ("category", [], "category"),
            ("created_at", 3, "createdAt"),
            ("created_at", "\udfff", "createdAt"),
            ("tags", "abc", "tags"),
            ("tags", {"a"}, "tags"),
            ("tags", ("a", 3), "tags[1]"),
            ("tags", ["\ud800"], "tags[0]"),
        ],
    )
    def test_constructing_checks_like_loading(self, field: str, value: object, place: str):
        with pytest.raises(UsageError) as raised:
            MemoryEntry(**{field: value})  # pyright: ignore[reportArgumentType]
        assert str(raised.value).startswith(f"{place}: ")
        key = "createdAt" if field == "created_at" else field
        if not (value is None or isinstance(value, set | bytes)):
            with pytest.raises(UsageError) as raised:
                MemoryEntry.load({key: value})
            assert str(raised.value).startswith(f"{place}: ")

    @pytest.mark.parametrize("data", [None, [], "text", 3])
    def test_load_wants_a_mapping(self, data: object):
        with pytest.raises(UsageError, match=r"^entry: "):
            MemoryEntry.load(data)  # pyright: ignore[reportArgumentType]

    def test_error_text_repeats_little_of_a_long_value(self):
        with pytest.raises(UsageError) as raised:
            MemoryEntry.load({"category": "secret" * 1000})
        assert len(str(raised.value)) < 120

    def test_frozen_and_a_value(self):
        entry = core("a", "t")
        with pytest.raises(FrozenInstanceError):
            entry.content = "b"  # pyright: ignore[reportAttributeAccessIssue]
        assert entry == core("a", "t")
        assert len({entry, core("a", "t")}) == 1
        assert pickle.loads(pickle.dumps(entry)) == entry  # noqa: S301 (our own bytes)


class TestStore:
    @pytest.mark.parametrize(
        ("data", "place"),
        [
            ([], "store"),
            (None, "store"),
            ({"entries": {}}, "entries"),
            ({"entries": "text"}, "entries"),
            ({"entries": None}, "entries"),
            ({"entries": [{}, "text"]}, "entries[1]"),
            ({"entries": [{"content": 3}]}, "entries[0].content"),
            *(({"entries": [{"category": c}]}, "entries[0].category") for c in ("semantic", "Core", "", 3, None)),
            ({"entries": [{"createdAt": 3}]}, "entries[0].createdAt"),
            ({"entries": [{"tags": "abc"}]}, "entries[0].tags"),
            ({"entries": [{"tags": ["a", 3]}]}, "entries[0].tags[1]"),
        ],
    )
    def test_wrong_data_names_its_place(self, data: object, place: str):
        with pytest.raises(UsageError) as raised:
            MemoryStore.load(data)  # pyright: ignore[reportArgumentType]
        assert str(raised.value).startswith(f"{place}: ")
        assert isinstance(raised.value, ValueError)

    def test_empty_store_is_true(self):
        assert MemoryStore()
        assert len(MemoryStore()) == 0
        assert (MemoryStore() or None) == MemoryStore()

    def test_stores_do_not_share_a_list(self):
        add(MemoryStore(), core("a"))
        assert len(MemoryStore()) == 0

    @pytest.mark.parametrize("saved", [{"entries": [SAMPLE]}, {"entries": []}])
    def test_sample_through_every_form(self, saved: dict[str, object]):
        loaded = MemoryStore.load(saved)
        assert loaded.save() == saved
        assert MemoryStore.from_json(loaded.to_json()) == loaded
        assert MemoryStore.from_yaml(loaded.to_yaml()) == loaded

    def test_remember_save_load_recall(self):
        memory = store()
        remember(memory, core("remember this"), 200)
        assert found(MemoryStore.load(memory.save()), "remember") == [("remember this", 3.0, 1)]

    def test_save_refuses_what_is_no_entry(self):
        memory = MemoryStore([core("a"), SAMPLE])  # pyright: ignore[reportArgumentType]
        with pytest.raises(UsageError, match=r"^entries\[1\]: "):
            memory.save()


def test_public_names_are_those_of_the_contract():
    assert set(portable.__all__) == {
        *("MemoryCategory", "MemoryEntry", "MemoryStore", "ScoredMemory", "RememberResult", "MemoryIndexError"),
        *("add", "remember", "evict_to_cap", "update", "update_content", "remove", "clear", "core_memories"),
        *("recall", "format_for_system_prompt", "format_recall_results", "MemoryPort", "FileMemoryPort"),
        "ArchiveMemoryPort",
    }
