"""What a save into a ledger appends (P22, P23), on plain values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muniment.portable.changes as changes_module
from muniment.portable import MemoryEntry
from muniment.portable.changes import Changes, Standing, parse_rank, plan_changes, render_rank


def entries(text: str) -> list[MemoryEntry]:
    return [MemoryEntry(letter) for letter in text]


def standing(text: str, ranks: Sequence[object] | None = None) -> list[Standing]:
    rows = [
        Standing(UUID(int=seq), seq, Decimal(str(ranks[seq])) if ranks else Decimal(seq), MemoryEntry(letter))
        for seq, letter in enumerate(text)
    ]
    return sorted(rows, key=lambda row: (row.rank, row.seq))


def plan(before: str, after: str) -> Changes:
    return plan_changes(standing(before), entries(after), next_seq=len(before))


def told(changes: Changes) -> tuple[list[tuple[str, str | None]], list[int]]:
    notes = [(note.entry.content, None if note.rank is None else render_rank(note.rank)) for note in changes.notes]
    return notes, [row.seq for row in changes.gone]


def apply(changes: Changes, next_seq: int) -> list[Standing]:
    """The notes that stand after the save, as a ledger would give them."""
    rows = [row for _, row in changes.kept]
    for seq, note in enumerate(changes.notes, start=next_seq):
        rows.append(Standing(UUID(int=seq), seq, Decimal(seq) if note.rank is None else note.rank, note.entry))
    return sorted(rows, key=lambda row: (row.rank, row.seq))


@pytest.mark.parametrize(
    ("before", "after", "notes", "gone"),
    [
        ("", "", [], []),
        ("abc", "abc", [], []),
        ("", "ab", [("a", None), ("b", None)], []),
        ("ab", "abc", [("c", None)], []),
        ("abc", "ac", [], [1]),
        ("abcd", "d", [], [0, 1, 2]),
        ("abc", "", [], [0, 1, 2]),
        ("abc", "axc", [("x", "1")], [1]),
        ("abc", "abx", [("x", "2")], [2]),
        ("ab", "bx", [("x", None)], [0]),  # core replaced by tag set: the new one goes to the end
        ("ab", "xab", [("x", "-1")], []),
        ("ab", "xyab", [("x", "-2"), ("y", "-1")], []),
        ("ab", "axb", [("x", "0.5")], []),
        ("ab", "axyzb", [("x", "0.25"), ("y", "0.5"), ("z", "0.75")], []),
        ("abc", "cab", [("c", "-1")], [2]),
        ("abc", "bca", [("a", None)], [0]),
        ("abcd", "acbd", [("c", "0.5")], [2]),
        ("aa", "a", [], [1]),  # equal entries: the newer goes
        ("baa", "a", [], [0, 2]),
        ("aab", "ab", [], [1]),
        ("aba", "ba", [], [0]),
        ("aba", "a", [], [1, 2]),
        ("abc", "xyz", [("x", "0"), ("y", "1"), ("z", "2")], [0, 1, 2]),
        ("abc", "x", [("x", "0")], [0, 1, 2]),
    ],
)
def test_smallest_change(before: str, after: str, notes: list[tuple[str, str | None]], gone: list[int]):
    assert told(plan(before, after)) == (notes, gone)


def test_reversal_keeps_one_and_moves_the_rest():
    changes = plan("abcdef", "fedcba")
    assert (len(changes.notes), len(changes.gone), len(changes.kept)) == (5, 5, 1)
    assert [row.entry.content for row in apply(changes, 6)] == list("fedcba")


def test_ranks_above_the_seqs_are_continued():
    changes = plan_changes(standing("ab", [1000, "1000.5"]), entries("abcd"), next_seq=2)
    assert told(changes) == ([("c", "1001"), ("d", "1002")], [])


def test_equal_ranks_make_room():
    changes = plan_changes(standing("ab", [7, 7]), entries("axb"), next_seq=2)
    assert [row.entry.content for row in apply(changes, 2)] == list("axb")
    changes = plan_changes(standing("abc", [7, 7, 7]), entries("xbyc"), next_seq=3)
    assert [row.entry.content for row in apply(changes, 3)] == list("xbyc")


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("5", "5"),
        ("-2", "-2"),
        ("0.25", "0.25"),
        ("1e5", "9"),
        ("NaN", "9"),
        ("", "9"),
        (None, "9"),
        (3, "9"),
        ("٣", "9"),
    ],
)
def test_rank_of_a_note(text: object, rank: str):
    assert parse_rank(text, 9) == Decimal(rank)


def test_rank_text_is_plain():
    for text in ("0", "-1", "100", "0.5", "10.25", "0.0000000001"):
        assert render_rank(Decimal(text)) == text
    assert render_rank(Decimal("1E+3")) == "1000"
    assert render_rank(Decimal("2.500")) == "2.5"
    assert render_rank(Decimal("5E-11")) == "0.00000000005"


@pytest.mark.parametrize("ranks", [[0, 1], [1000, 1001], [-7, "-6.5"]])
def test_inserting_at_one_place_again_and_again(ranks: list[object]):
    rows, next_seq, wanted = standing("az", ranks), 2, entries("az")
    for number in range(300):
        wanted.insert(1, MemoryEntry(str(number)))
        changes = plan_changes(rows, wanted, next_seq=next_seq)
        assert (len(changes.notes), changes.gone) == (1, ())
        rows = [
            Standing(row.id, row.seq, parse_rank(render_rank(row.rank), row.seq), row.entry)
            for row in apply(changes, next_seq)
        ]
        next_seq += 1
        assert [row.entry for row in rows] == wanted
    assert max(len(render_rank(row.rank)) for row in rows) < 400


def test_large_store_is_planned_in_the_shape_of_its_change():
    before = [Standing(UUID(int=n), n, Decimal(n), MemoryEntry(str(n))) for n in range(10_000)]
    moved = [row.entry for row in before[1:]] + [before[0].entry]
    assert len(plan_changes(before, moved, next_seq=10_000).notes) == 1
    assert len(plan_changes(before, moved[::-1], next_seq=10_000).notes) == 9_998


def test_many_equal_entries_are_matched_the_simple_way(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(changes_module, "_PAIRS_MAX", 3)
    changes = plan("baaa", "aac")
    assert [row.entry.content for row in apply(changes, 4)] == list("aac")
    assert [row.seq for _, row in changes.kept] == [1, 2]


LETTERS = st.text("abcd", max_size=9)
RANKS = st.lists(st.sampled_from(["-3", "0", "0.5", "2", "2", "7.25", "40"]), min_size=9, max_size=9)


@given(LETTERS, RANKS | st.none(), st.lists(LETTERS, max_size=4))
def test_what_stands_after_a_save_is_what_was_saved(before: str, ranks: list[str] | None, saves: list[str]):
    rows, next_seq = standing(before, ranks), len(before)
    for text in saves:
        changes = plan_changes(rows, entries(text), next_seq=next_seq)
        assert {row.seq for row in changes.gone} | {row.seq for _, row in changes.kept} == {row.seq for row in rows}
        assert len(changes.gone) + len(changes.kept) == len(rows)
        assert all(entries(text)[index] == row.entry for index, row in changes.kept)
        rows = [
            Standing(row.id, row.seq, parse_rank(render_rank(row.rank), row.seq), row.entry)
            for row in apply(changes, next_seq)
        ]
        next_seq += len(changes.notes) + bool(changes.gone)
        assert "".join(row.entry.content for row in rows) == text
        assert plan_changes(rows, entries(text), next_seq=next_seq).notes == ()


@given(LETTERS, LETTERS)
def test_as_many_notes_as_possible_are_kept(before: str, after: str):
    row = [0] * (len(after) + 1)
    for letter in before:  # the longest common subsequence, by the book
        previous, row = row, [0]
        for at, other in enumerate(after):
            row.append(previous[at] + 1 if letter == other else max(previous[at + 1], row[at]))
    assert len(plan(before, after).kept) == row[-1]
