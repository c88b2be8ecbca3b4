"""Segments of the inverted index: `muniment.core.postings`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.postings import FREQUENCY_MAX, Postings, build_postings, keep_rows, merge_postings

TEXTS = st.lists(st.lists(st.integers(0, 6) | st.just(2**64 - 1), max_size=6), max_size=8)


def build(texts: Sequence[Sequence[int]], first_row: int = 0) -> Postings:
    tokens = np.array([token for text in texts for token in text], np.uint64)
    return build_postings(tokens, np.array([len(text) for text in texts], np.int32), first_row)


def held(postings: Postings, term: int) -> dict[int, int]:
    found = postings.find(np.array([term], np.uint64))
    return {row: count for one in found for row, count in zip(one.rows.tolist(), one.frequencies.tolist(), strict=True)}


def held_by(texts: Sequence[Sequence[int]], term: int, first_row: int = 0) -> dict[int, int]:
    return {row: count for row, text in enumerate(texts, start=first_row) if (count := Counter(text)[term])}


@given(TEXTS, st.integers(0, 5))
def test_postings_say_who_holds_what(texts: list[list[int]], first_row: int) -> None:
    postings = build(texts, first_row)
    assert postings.row_count == len(texts)
    for term in (*range(8), 2**64 - 1):
        assert held(postings, term) == held_by(texts, term, first_row)
        rows = postings.find(np.array([term], np.uint64))
        assert all((np.diff(one.rows) > 0).all() for one in rows)


@given(TEXTS, TEXTS, TEXTS)
def test_merging_is_building_at_once(first: list[list[int]], second: list[list[int]], third: list[list[int]]) -> None:
    segments = [build(first), build(second, len(first)), build(third, len(first) + len(second))]
    assert_equal(merge_postings(segments), build([*first, *second, *third]))


@given(TEXTS, st.data())
def test_keeping_is_building_without_the_others(texts: list[list[int]], data: st.DataObject) -> None:
    kept = [data.draw(st.booleans()) for _ in texts]
    staying = [text for text, is_kept in zip(texts, kept, strict=True) if is_kept]
    assert_equal(keep_rows(build(texts), np.array(kept, np.bool_)), build(staying))


def test_terms_are_found_in_the_order_asked() -> None:
    found = build([[1, 2, 3], [3]]).find(np.array([3, 9, 1], np.uint64))
    assert [(one.term, one.rows.tolist()) for one in found] == [(0, [0, 1]), (2, [0])]
    assert build([[1]]).find(np.zeros(0, np.uint64)) == []


def test_a_term_repeated_beyond_measure_is_counted_as_often_as_can_be_told() -> None:
    assert held(build([[1] * (FREQUENCY_MAX + 5), [1]]), 1) == {0: FREQUENCY_MAX, 1: 1}


def assert_equal(one: Postings, other: Postings) -> None:
    assert one.row_count == other.row_count
    for name in ("terms", "starts", "rows", "frequencies"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert one.bytes_used == other.bytes_used
