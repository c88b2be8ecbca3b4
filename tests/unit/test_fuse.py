"""Merging rankings: `muniment.core.fuse`, with the examples of contract law S9."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.fuse import fuse_convex, fuse_reciprocal
from muniment.errors import UsageError

KEYWORD, VECTOR = [3, 1], [1, 2]
"""S9, example 1: the two rankings of D1, D2 and D3."""


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((1.0, 1.0), [(1, 0.0325225), (3, 0.0163934), (2, 0.0161290)]),
        ((0.5, 0.5), [(1, 0.0162612), (3, 0.0081967), (2, 0.0080645)]),
        ((1.0, 0.0), [(3, 0.0163934), (1, 0.0161290)]),
        ((0.0, 1.0), [(1, 0.0163934), (2, 0.0161290)]),
    ],
)
def test_s9_example_1(weights: tuple[float, float], expected: list[tuple[int, float]]) -> None:
    fused = fuse_reciprocal([KEYWORD, VECTOR], weights)
    assert [one.item for one in fused] == [item for item, _ in expected]
    assert [one.score for one in fused] == pytest.approx([score for _, score in expected], abs=1e-6)


def test_s9_example_2() -> None:
    # "alpha beta gamma" 0, "gamma delta epsilon" 1, "alpha delta" 2, "beta epsilon" 3; query "alpha".
    fused = fuse_reciprocal([[2, 0], [2, 0, 1, 3]], [1.0, 1.0])
    assert [one.item for one in fused] == [2, 0, 1, 3]
    assert [one.score for one in fused] == pytest.approx([0.0327869, 0.0322581, 0.0158730, 0.0156250], abs=1e-6)


def test_parts_add_up_and_say_where_they_come_from() -> None:
    first, second, third = fuse_reciprocal([KEYWORD, VECTOR], [1.0, 1.0])
    assert first.parts == (1 / 62, 1 / 61)
    assert second.parts == (1 / 61, 0.0)
    assert third.parts == (0.0, 1 / 62)


@pytest.mark.parametrize("weights", [(-1.0, 1.0), (math.nan, 1.0), (math.inf, 1.0), (0.0, 0.0), (1.0,)])
def test_weights_that_mean_nothing(weights: tuple[float, ...]) -> None:
    with pytest.raises(UsageError):
        fuse_reciprocal([[1], [2]], weights)
    with pytest.raises(UsageError):
        fuse_convex([{1: 1.0}, {2: 1.0}], weights)


def test_other_arguments_that_mean_nothing() -> None:
    with pytest.raises(UsageError):
        fuse_reciprocal([[1], [2]], [1, 1], k=0)
    with pytest.raises(UsageError):
        fuse_reciprocal([[1, 1], [2]], [1, 1])


def test_convex_scales_each_leg() -> None:
    fused = fuse_convex([{1: 10.0, 2: 5.0, 3: 0.0}, {1: -1.0, 2: 1.0, 4: 0.0}], [0.4, 0.6])
    assert {one.item: one.score for one in fused} == pytest.approx({1: 0.4, 2: 0.8, 3: 0.0, 4: 0.3})
    assert [one.item for one in fused] == [2, 1, 4, 3]


def test_convex_of_equal_scores_is_one() -> None:
    assert [(one.item, one.score) for one in fuse_convex([{2: 5.0, 1: 5.0}, {}], [1, 1])] == [(1, 0.5), (2, 0.5)]


RANKED = st.lists(st.integers(0, 20), unique=True, max_size=10)


@given(st.lists(RANKED, min_size=1, max_size=4))
def test_reciprocal_laws(lists: list[list[int]]) -> None:
    fused = fuse_reciprocal(lists, [1.0] * len(lists))
    assert {one.item for one in fused} == {item for items in lists for item in items}
    assert fused == sorted(fused, key=lambda one: (-one.score, one.item))


@given(st.lists(st.dictionaries(st.integers(0, 20), st.floats(-1e6, 1e6), max_size=10), min_size=1, max_size=4))
def test_convex_laws(legs: list[dict[int, float]]) -> None:
    fused = fuse_convex(legs, [1.0] * len(legs))
    assert all(-1e-9 <= one.score <= 1 + 1e-9 for one in fused)
    assert fused == sorted(fused, key=lambda one: (-one.score, one.item))
