"""The order of turns inside their sessions, and what neighbouring turns lend each other.

A turn of a conversation is often answered, asked or explained by the turns around it. A short turn alone says too
little to be found; with a share of its neighbours' scores it is found by what it was about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

REACH: Final = 4
"""Turns to either side that may lend."""

_SPARSE_COST: Final = 4
"""How many times as long a turn takes that lends by itself as one that lends together with all others (measured)."""

_SPARSE_MIN: Final = 2_000
"""Places up to which either way takes as long as its numpy calls, of which turns by themselves need more."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Rows that are turns, laid out by session with room between sessions, so that lending never crosses one."""

    rows: NDArray[np.int32]
    """The rows that are turns, by session and, inside it, by row."""
    places: NDArray[np.int32]
    """Where each of them lies in the layout."""
    place_of: NDArray[np.int32]
    """The place of every row; a row that is no turn lies at 0, where nothing is."""
    row_at: NDArray[np.int32]
    """The row at every place; -1 where none is."""

    def lend(self, scores: NDArray[np.float64], shares: Sequence[float]) -> NDArray[np.float64]:
        """What each row is lent: the shares of the scores of the turns 1, 2, … before and after it in its session.

        Shapes: scores (n,) for all rows, turns or not; shares of at most `REACH` entries; the result is (n,).
        Cost:   O(rows that have a score), 1 ms for 100,000 and four shares. Whichever way it is computed, the parts of
                a sum come in one order: of the turn before, of the turn after, and so outward.
        """
        lenders = np.flatnonzero(scores)
        if not shares or not len(lenders):
            return np.zeros(len(scores))
        if max(_SPARSE_MIN, len(lenders) * len(shares) * _SPARSE_COST) < len(self.row_at):
            return self._lend_from(lenders, scores, shares)
        laid_out = np.zeros(len(self.row_at))
        laid_out[self.places] = scores[self.rows]
        inner = len(laid_out) - 2 * REACH
        lent = np.zeros(inner)
        for distance, share in enumerate(shares, start=1):
            given = laid_out * share
            lent += given[REACH - distance : REACH - distance + inner]
            lent += given[REACH + distance : REACH + distance + inner]
        result = np.zeros(len(scores))
        result[self.rows] = lent[self.places - REACH]
        return result

    def _lend_from(
        self, lenders: NDArray[np.int64], scores: NDArray[np.float64], shares: Sequence[float]
    ) -> NDArray[np.float64]:
        """The same, from the few rows that have anything to lend."""
        places = self.place_of[lenders]
        lenders, places = lenders[places > 0], places[places > 0]
        given = scores[lenders]
        steps = [step for distance in range(1, len(shares) + 1) for step in (distance, -distance)]
        borrowers = np.concatenate([self.row_at[places + step] for step in steps])
        amounts = np.concatenate([given * shares[abs(step) - 1] for step in steps])
        there = borrowers >= 0
        return np.bincount(borrowers[there], amounts[there], len(scores)).astype(np.float64, copy=False)


def order_turns(sessions: NDArray[np.int64], visible: NDArray[np.bool_] | None) -> Turns:
    """The turns among the rows: the visible ones that belong to a session.

    Shapes: `sessions` (n,) names each row's session, 0 for none; `visible` (n,), None for all.
    Cost:   O(rows), 1 ms for 100,000.
    """
    is_turn = sessions != 0 if visible is None else (sessions != 0) & visible
    rows = np.flatnonzero(is_turn).astype(np.int32)
    session_of = sessions[rows]
    # Sort the runs of one session, not the rows: there are few, because turns of a session mostly come together.
    run_at = np.flatnonzero(session_of[1:] != session_of[:-1]) + 1
    run_at = np.concatenate((np.zeros(min(1, len(rows)), dtype=np.int64), run_at))
    run_length = np.diff(run_at, append=len(rows))
    order = np.argsort(session_of[run_at], kind="stable")
    run_at, run_length = run_at[order], run_length[order]
    run_end = np.cumsum(run_length)
    rows = rows[np.arange(len(rows)) + np.repeat(run_at - (run_end - run_length), run_length)]
    session_of = sessions[rows]
    places = np.arange(REACH, REACH + len(rows), dtype=np.int32)
    places[1:] += REACH * np.cumsum(session_of[1:] != session_of[:-1], dtype=np.int32)
    place_of = np.zeros(len(sessions), dtype=np.int32)
    place_of[rows] = places
    row_at = np.full(int(places[-1]) + 1 + REACH if len(rows) else 2 * REACH, -1, dtype=np.int32)
    row_at[places] = rows
    return Turns(rows, places, place_of, row_at)
