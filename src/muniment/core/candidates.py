"""Scoring rows that were proposed, without an index of everything around them: BM25 by statistics that are handed in.

A row's score is that of `muniment.core.scope_search` for the same statistics, bit for bit, because both are sums in
the order of the query's terms over `muniment.core.bm25`. Only searches in which no row lends another anything can be
answered so: those with `Ranking(context=False, speakers=False)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.core.bm25 import K1, inverse_document_frequency, length_penalty, saturation
from muniment.core.postings import FREQUENCY_MAX
from muniment.core.ranking import Statistics
from muniment.core.text import terms_of


@dataclass(frozen=True, slots=True)
class TextScorer:
    """Scores for one query of at most `QUERY_TERMS_MAX` terms in one population, which has a text with a term."""

    weights: Sequence[float]
    """Of the query's terms, in their order."""
    mean_length: float

    @classmethod
    def build(cls, statistics: Statistics) -> TextScorer:
        documents, length, holding = statistics
        return cls([inverse_document_frequency(documents, held) for held in holding], length / documents)

    def bound(self, places: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Where any of the terms is held, and a score that the row there cannot exceed; the highest first.

        Rounding never turns an order around, so no exact score is above its bound.

        Shapes: `places` has one list per term; both answers one entry per place.
        Cost:   O(n log n) for n places.
        """
        holders = [np.asarray(held, dtype=np.int64) for held in places]
        everywhere = np.unique(np.concatenate(holders)) if holders else np.zeros(0, np.int64)
        bounds = np.zeros(len(everywhere))
        for weight, held in zip(self.weights, holders, strict=True):
            bounds[np.searchsorted(everywhere, held)] += weight * (K1 + 1.0)
        order = np.lexsort((everywhere, -bounds))
        return everywhere[order], bounds[order]

    def score(self, terms: bytes, wanted: Sequence[int]) -> float:
        """The score of a text by the hashes of its terms; `wanted` are those of the query in the same scope."""
        tokens = terms_of(terms)
        penalty = length_penalty(len(tokens), self.mean_length)
        score = 0.0
        for weight, number in zip(self.weights, wanted, strict=True):
            frequency = min(int(np.count_nonzero(tokens == np.uint64(number))), FREQUENCY_MAX)
            if frequency:
                score += weight * saturation(frequency, penalty)
        return score
