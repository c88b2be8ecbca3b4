"""What neighbouring turns lend each other: `muniment.core.turns`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core import turns
from muniment.core.turns import REACH, order_turns


def lent(
    sessions: list[int], scores: list[float], shares: list[float], visible: list[bool] | None = None
) -> list[float]:
    seen = None if visible is None else np.array(visible, np.bool_)
    return order_turns(np.array(sessions, np.int64), seen).lend(np.array(scores, np.float64), shares).tolist()


def test_a_turn_lends_to_both_sides() -> None:
    assert lent([1, 1, 1, 1, 1], [0, 0, 8, 0, 0], [0.5, 0.25]) == [2, 4, 0, 4, 2]


def test_a_turn_lends_inside_its_session_only() -> None:
    assert lent([1, 1, 2, 2, 0, 2], [0, 8, 0, 0, 5, 0], [0.5]) == [4, 0, 0, 0, 0, 0]


def test_sessions_may_be_interleaved() -> None:
    assert lent([1, 2, 1, 2, 1], [0, 0, 8, 0, 0], [0.5]) == [4, 0, 0, 0, 4]


def test_hidden_turns_neither_lend_nor_stand_between() -> None:
    assert lent([1, 1, 1], [8, 8, 0], [0.5, 0.25], [True, False, True]) == [0, 0, 4]


def test_nobody_to_lend() -> None:
    assert lent([], [], [0.5]) == []
    assert lent([0, 0], [1, 1], [0.5]) == [0, 0]
    assert lent([1, 1], [1, 1], []) == [0, 0]


SCORES = st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.7, -0.3, 1e-9])


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, -3]), SCORES, st.booleans()), max_size=40), st.integers(0, REACH))
def test_few_lenders_give_what_all_give(rows: list[tuple[int, float, bool]], reach: int) -> None:
    sessions = [session for session, _, _ in rows]
    scores = [score for _, score, _ in rows]
    visible = [seen for _, _, seen in rows]
    shares = [0.4, 0.3, 0.2, 0.1][:reach]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "_SPARSE_MIN", -1)
        patch.setattr(turns, "_SPARSE_COST", 0)
        sparse = lent(sessions, scores, shares, visible)
        patch.setattr(turns, "_SPARSE_COST", 10**9)
        assert lent(sessions, scores, shares, visible) == sparse
