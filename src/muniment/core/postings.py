"""Which rows hold which term, and how often: one immutable segment of an inverted index, as arrays.

Segments are built from token lists, looked up by many terms at once and merged; `ScopeIndex` keeps a few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

FREQUENCY_MAX: Final = 2**16 - 1
"""Occurrences of one term in one text that are told apart. Beyond, `saturation` differs by less than 1e-4."""


class Posting(NamedTuple):
    """The rows of a segment that hold one term of a query, ascending, and how often each does."""

    term: int
    """The term's place in the query."""
    rows: NDArray[np.int32]
    frequencies: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Postings:
    """One segment: term `i` is held by the rows `rows[starts[i]:starts[i + 1]]`; terms and rows ascend."""

    row_count: int
    terms: NDArray[np.uint64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    frequencies: NDArray[np.uint16]

    @property
    def bytes_used(self) -> int:
        """Bytes of the arrays."""
        return self.terms.nbytes + self.starts.nbytes + self.rows.nbytes + self.frequencies.nbytes

    def find(self, wanted: NDArray[np.uint64]) -> list[Posting]:
        """The postings of those wanted terms that the segment holds, in the order of `wanted`."""
        if not len(self.terms) or not len(wanted):
            return []
        places = np.searchsorted(self.terms, wanted)
        places[places == len(self.terms)] = 0
        found = np.flatnonzero(self.terms[places] == wanted)
        held = places[found]
        return [
            Posting(term, self.rows[start:end], self.frequencies[start:end])
            for term, start, end in zip(
                found.tolist(), self.starts[held].tolist(), self.starts[held + 1].tolist(), strict=True
            )
        ]


def build_postings(tokens: NDArray[np.uint64], lengths: NDArray[np.int32], first_row: int) -> Postings:
    """The segment of texts given by their tokens.

    Shapes: `tokens` are the tokens of all texts, one text after another; `lengths` how many each text has; the texts
            are the rows from `first_row` on.
    Cost:   0.1 ms for 100 texts of 20 tokens, 0.25 s for 100,000.
    """
    row_of = np.repeat(np.arange(first_row, first_row + len(lengths), dtype=np.int32), lengths)
    # A stable sort leaves the rows of one term in their order, equal rows side by side.
    order = np.argsort(tokens, kind="stable")
    tokens, row_of = tokens[order], row_of[order]
    new_term = _changes(tokens)
    posting_at = np.flatnonzero(new_term | _changes(row_of))
    frequencies = np.minimum(np.diff(posting_at, append=len(tokens)), FREQUENCY_MAX)
    return _segment(len(lengths), tokens[posting_at], row_of[posting_at], frequencies.astype(np.uint16))


def merge_postings(segments: Sequence[Postings]) -> Postings:
    """One segment in place of several, whose rows ascend from one to the next."""
    terms = np.concatenate([_term_of_each(segment) for segment in segments])
    rows = np.concatenate([segment.rows for segment in segments])
    frequencies = np.concatenate([segment.frequencies for segment in segments])
    order = np.argsort(terms, kind="stable")
    return _segment(sum(segment.row_count for segment in segments), terms[order], rows[order], frequencies[order])


def keep_rows(postings: Postings, kept: NDArray[np.bool_]) -> Postings:
    """The segment of all rows without those that are not kept; the others are numbered anew, without gaps."""
    staying = kept[postings.rows]
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    terms = _term_of_each(postings)[staying]
    return _segment(int(kept.sum()), terms, number[postings.rows[staying]], postings.frequencies[staying])


def _term_of_each(segment: Postings) -> NDArray[np.uint64]:
    return np.repeat(segment.terms, np.diff(segment.starts))


def _segment(
    row_count: int, terms: NDArray[np.uint64], rows: NDArray[np.int32], frequencies: NDArray[np.uint16]
) -> Postings:
    """Shapes: `terms`, `rows` and `frequencies` have one entry a posting, sorted by term and row."""
    starts = np.flatnonzero(_changes(terms))
    return Postings(row_count, terms[starts], np.append(starts, len(terms)), rows, frequencies)


def _changes(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it; true for the first."""
    changed = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed
