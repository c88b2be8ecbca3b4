"""BM25: how well a text answers a query, by the words they share.

A word counts the more, the fewer texts have it (`inverse_document_frequency`), and the more often it stands in a text
that is short for its kind (`saturation`). `muniment.core.scope_index` computes the same sums over arrays, bit for bit.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.5; the
inverse document frequency with 1 added under the logarithm, so that it is never negative, is Lucene's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

K1: Final = 0.9
"""How fast repeating a word stops counting. Source: Trotman, Puurula and Burgess, "Improvements to BM25 and Language
Models Examined", 2014. LoCoMo 1-5, recall@10 by keywords: 0.756, and 0.752 with the 1.2 of Lucene and FTS5."""

B_SHORT: Final = 0.4
"""How much a text longer than the mean is held against it, 0 to 1, where texts are short. Source: as K1. LoCoMo 1-5,
27 terms a turn: 0.756, and 0.750 with 0.75."""
B_LONG: Final = 0.75
"""The same where they are long: the default of Lucene and FTS5. BEAM 1-10, 300 terms a message: 0.544, and 0.537 with
0.4, because there a long answer that mentions everything would win every query."""

SHORT_TERMS: Final = 40
LONG_TERMS: Final = 120
"""Mean lengths, in terms, up to which texts count as short and from which on as long. The measured collections lie far
to either side (24 to 31, 240 to 390); between the two everything that depends on length changes gradually, so that one
more item never turns a ranking over."""


def shortness(mean_length: float) -> float:
    """Where texts of this mean length stand between short (1) and long (0)."""
    return min(1.0, max(0.0, (LONG_TERMS - mean_length) / (LONG_TERMS - SHORT_TERMS)))


def length_penalty(length: float, mean_length: float) -> float:
    """What `saturation` sets against the frequency of a word in a text of `length` terms; K1 at the mean length."""
    b = B_LONG + (B_SHORT - B_LONG) * shortness(mean_length)
    return K1 * (1.0 - b + b * length / mean_length)


def saturation(frequency: float, penalty: float) -> float:
    """What `frequency` occurrences of a word are worth, from 0 up to K1 + 1."""
    return frequency * (K1 + 1.0) / (frequency + penalty)


def inverse_document_frequency(documents: int, holding: int) -> float:
    """The weight of a word that `holding` of `documents` texts hold: positive, and smaller the commoner the word."""
    return math.log(1.0 + (documents - holding + 0.5) / (holding + 0.5))


def rank_documents(documents: Sequence[Sequence[str]], query: Sequence[str], limit: int) -> list[tuple[int, float]]:
    """The texts that share a term with the query, best first, ties by the smaller index: `(index, score)`.

    Shapes: `documents` are the terms of each text, `query` the terms looked for; repeats in the query count once.
    Units:  a score is a sum of weights, comparable only within one call.
    Cost:   O(all terms of all documents): for lists of a few thousand; larger ones belong into a `ScopeIndex`.
    """
    wanted = list(dict.fromkeys(query))
    counts = [Counter(terms) for terms in documents]
    total_length = sum(map(len, documents))
    if limit <= 0 or not total_length:
        return []
    mean_length = total_length / len(documents)
    weights = {
        term: inverse_document_frequency(len(documents), sum(term in count for count in counts)) for term in wanted
    }
    scored: list[tuple[int, float]] = []
    for index, count in enumerate(counts):
        penalty = length_penalty(len(documents[index]), mean_length)
        score = 0.0
        for term in wanted:  # and not sum(), which rounds differently from Python 3.12 on
            if term in count:
                score += weights[term] * saturation(count[term], penalty)
        if score > 0.0:
            scored.append((index, score))
    scored.sort(key=lambda pair: (-pair[1], pair[0]))
    return scored[:limit]
