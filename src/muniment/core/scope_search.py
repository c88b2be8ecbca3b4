"""How the rows of a scope are scored and ranked: the steps that `muniment.core.scope_index` lists.

All sums run in one order over 64-bit floats, and arrays see only operations that IEEE 754 rounds exactly: equal rows
give equal scores to the last bit, whatever the machine or the way the rows came to be stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.core.bm25 import B_LONG, B_SHORT, K1, inverse_document_frequency, shortness
from muniment.core.fuse import fuse_reciprocal
from muniment.core.postings import Posting
from muniment.core.ranking import (
    ADDRESSED_SHARE,
    LEG_FACTOR,
    LENDING_TURNS_MIN,
    LENT_KEYWORDS_LONG,
    LENT_KEYWORDS_SHORT,
    LENT_VECTORS_LONG,
    LENT_VECTORS_SHORT,
    SPEAKER_BONUS,
    SPEAKER_TURNS_MIN,
    Filter,
    Found,
    Query,
    Ranking,
    Statistics,
)
from muniment.core.scope_rows import State, View, visible_postings
from muniment.core.vectors import cosines
from muniment.model.limits import QUERY_TERMS_MAX

_KEYWORD, _VECTOR = "keyword", "vector"
"""The legs, and the parts of a score that are theirs."""

_MEAN_STEPS: Final = 2**40
"""Steps of a cosine in a sum of cosines: 2^22 of them fit into 64 bits."""

_SELECT_MIN: Final = 512
"""Rows from which on it is faster to select the best before sorting than to sort them all."""


class Leg(NamedTuple):
    """One leg's scores of all rows; those of its own rows lie between `low` and `low + width`."""

    own: NDArray[np.float64]
    lent: NDArray[np.float64] | None
    """What neighbouring turns lend; None if they do not."""
    scores: NDArray[np.float64]
    """Both together."""
    rows: NDArray[np.bool_]
    """Which rows are in the leg."""
    low: float
    width: float


@dataclass(frozen=True, slots=True)
class Search:
    """A search of one view, after everything that comes before the legs."""

    state: State
    view: View
    query: Query
    ranking: Ranking
    postings: Sequence[Posting]
    """Where the query's terms stand, without those that only say who is meant."""
    statistics: Statistics
    preferred: NDArray[np.float64] | None
    """The share of the bonus that each row gets; None if the query means no speaker, or more than one."""

    def hits(self, where: Filter, limit: int) -> list[Found]:
        """The best rows that pass the filter."""
        allowed = _allowed(self.state, where)
        keyword_weight, vector_weight = self.ranking.leg_weights
        by_keyword = bool(self.query.terms) and keyword_weight > 0.0
        by_vector = self.query.vector is not None and vector_weight > 0.0
        if by_keyword and by_vector:
            legs = {_KEYWORD: self.keyword_leg(), _VECTOR: self.vector_leg()}
            fuse = self._fuse_scores if self.ranking.fusion == "convex" else self._fuse_ranks
            return fuse(legs, allowed, limit)
        if by_keyword:
            return self._rank(_KEYWORD, self.keyword_leg(), allowed, limit)
        if by_vector:
            return self._rank(_VECTOR, self.vector_leg(), allowed, limit)
        return []

    # --- legs -----------------------------------------------------------------------------------------------------

    def keyword_leg(self) -> Leg | None:
        """BM25 of every row, by the rarest terms of the query; None if no row holds any."""
        documents, length, holding = self.statistics
        # A common term ties with others of its rarity: then the first in the query goes before.
        rarest = sorted({(holding[posting.term], posting.term) for posting in self.postings})[:QUERY_TERMS_MAX]
        weights = {term: inverse_document_frequency(documents, held) for held, term in rarest}
        postings = [posting for posting in self.postings if posting.term in weights]
        if not any(len(posting.rows) for posting in postings):
            return None
        # Terms come in the order of the query, so the sum of a row does not depend on the segment that the row is in.
        rows = np.concatenate([posting.rows for posting in postings])
        frequencies = np.concatenate([posting.frequencies for posting in postings]).astype(np.float64)
        weight_of = np.repeat([weights[one.term] for one in postings], [len(one.rows) for one in postings])
        mean_length = length / documents
        b = B_LONG + (B_SHORT - B_LONG) * shortness(mean_length)
        penalties = K1 * (1.0 - b + b * self.state.columns.length[rows] / mean_length)
        worth = weight_of * (frequencies * (K1 + 1.0) / (frequencies + penalties))
        own = np.bincount(rows, worth, self.state.count).astype(np.float64, copy=False)
        lent = self._lend(own, LENT_KEYWORDS_SHORT, LENT_KEYWORDS_LONG) if self._lends else None
        scores = own if lent is None else own + lent
        return Leg(own, lent, scores, scores > 0.0, 0.0, float(scores.max()))

    def vector_leg(self) -> Leg | None:
        """The cosine of every row; None if no row has a direction, or the query has none."""
        query = np.frombuffer(self.query.vector or b"", np.int8)
        lengths = self.state.column("inverse_norm")
        rows: NDArray[np.bool_] = lengths > 0.0
        if self.view.visible is not None:
            rows &= self.view.visible
        if not query.any() or not rows.any():
            return None
        own = cosines(self.state.column("codes"), lengths, query)
        every = bool(rows.all())
        if not every:
            own[~rows] = 0.0
        lent = None
        if self._lends:
            # Cosines are lent as they differ from the mean: a turn that lacks a neighbour, at the edge of its session,
            # shall not lose by it. LoCoMo, static model: +0.4 %.
            above_mean = own - _mean(own if every else own[rows])
            if not every:
                above_mean[~rows] = 0.0
            lent = self._lend(above_mean, LENT_VECTORS_SHORT, LENT_VECTORS_LONG)
        scores = own if lent is None else own + lent
        inside = scores if every else scores[rows]
        low = float(inside.min())
        return Leg(own, lent, scores, rows, low, float(inside.max()) - low)

    @property
    def _lends(self) -> bool:
        context = self.ranking.context
        return context if context is not None else self.view.num_turns >= LENDING_TURNS_MIN

    def _lend(self, scores: NDArray[np.float64], short: Sequence[float], long: Sequence[float]) -> NDArray[np.float64]:
        """What the turns are lent: the shares of short texts, those of long ones, or something between."""
        part = 1.0 if self.ranking.context else shortness(self.statistics.length / self.statistics.documents)
        far = [*long, *[0.0] * (len(short) - len(long))]
        shares = [b + (a - b) * part for a, b in zip(short, far, strict=True)]
        return self.view.turns.lend(scores, [share for share in shares if share])

    # --- hits -----------------------------------------------------------------------------------------------------

    def _rank(self, name: str, leg: Leg | None, allowed: NDArray[np.bool_] | None, limit: int) -> list[Found]:
        """The best rows of one leg, in its own units."""
        if leg is None:
            return []
        bonus = SPEAKER_BONUS * leg.width
        scores = self._with_bonus(leg.scores, bonus)
        best = _best(scores, _both(leg.rows, allowed), limit)
        parts = {name: leg.own[best]}
        if leg.lent is not None:
            parts[f"{name}_context"] = leg.lent[best]
        return self._found(best, scores, parts, bonus)

    def _fuse_scores(
        self, legs: Mapping[str, Leg | None], allowed: NDArray[np.bool_] | None, limit: int
    ) -> list[Found]:
        """The best rows by the weighted mean of the legs' scores, each scaled to 0..1 over the whole view."""
        weights = self.ranking.leg_weights
        scaled = [
            (name, leg, weight / sum(weights))
            for (name, leg), weight in zip(legs.items(), weights, strict=True)
            if leg is not None
        ]
        total = np.zeros(self.state.count)
        rows = np.zeros(self.state.count, dtype=np.bool_)
        for _, leg, weight in scaled:
            total += _scale(leg.scores, leg.rows, leg, weight)
            rows |= leg.rows
        scores = self._with_bonus(total, SPEAKER_BONUS)
        best = _best(scores, _both(rows, allowed), limit)
        parts: dict[str, NDArray[np.float64]] = {}
        for name, leg, weight in scaled:
            parts[name] = _scale(leg.own[best], leg.rows[best], leg, weight)
            if leg.lent is not None and leg.width:
                parts[f"{name}_context"] = leg.lent[best] * (weight / leg.width) * leg.rows[best]
        return self._found(best, scores, parts, SPEAKER_BONUS)

    def _fuse_ranks(self, legs: Mapping[str, Leg | None], allowed: NDArray[np.bool_] | None, limit: int) -> list[Found]:
        """The best rows by weighted reciprocal rank in the legs."""
        ranked: list[list[int]] = []
        for leg in legs.values():
            rows = np.zeros(0, np.int64)
            if leg is not None:
                scores = self._with_bonus(leg.scores, SPEAKER_BONUS * leg.width)
                rows = _best(scores, _both(leg.rows, allowed), LEG_FACTOR * limit)
            ranked.append(rows.tolist())
        fused = fuse_reciprocal(ranked, self.ranking.leg_weights, k=self.ranking.damping)[:limit]
        seqs = self.state.columns.seq
        return [
            Found(int(seqs[row]), score, {name: part for name, part in zip(legs, parts, strict=True) if part})
            for row, score, parts in fused
        ]

    def _with_bonus(self, scores: NDArray[np.float64], bonus: float) -> NDArray[np.float64]:
        return scores if self.preferred is None else scores + self.preferred * bonus

    def _found(
        self,
        rows: NDArray[np.int64],
        scores: NDArray[np.float64],
        parts: Mapping[str, NDArray[np.float64]],
        bonus: float,
    ) -> list[Found]:
        """Shapes: `rows` are the hits, best first; `scores` has one entry per row, `parts` and the hits go together."""
        columns = {name: values.tolist() for name, values in parts.items()}
        if self.preferred is not None:
            columns["speaker"] = [share * bonus for share in self.preferred[rows].tolist()]
        return [
            Found(seq, score, {name: values[place] for name, values in columns.items() if values[place]})
            for place, (seq, score) in enumerate(
                zip(self.state.columns.seq[rows].tolist(), scores[rows].tolist(), strict=True)
            )
        ]


def begin_search(
    state: State, view: View, query: Query, ranking: Ranking, statistics: Statistics | None = None
) -> Search:
    """A search with the statistics of its view, or those given, and knowing whom the query means."""
    postings = visible_postings(state, view, query.terms)
    if statistics is None:
        statistics = Statistics(view.documents, view.length, count_holding(postings, len(query.terms)))
    if not ranking.speakers:
        return Search(state, view, query, ranking, postings, statistics, None)
    names = set(query.names)
    named = speakers_named(state, view, [one for one in postings if query.terms[one.term] in names])
    meant, share = named, 1.0
    if not named and query.asker:
        meant = speakers_named(state, view, visible_postings(state, view, query.asker))
        share = ADDRESSED_SHARE if query.speaks_to_another else 1.0
    speaker = _only_speaker(meant.values())
    preferred = None if speaker is None else (state.column("speaker") == speaker) * share
    # A name says whose turns are meant; among them it tells nothing apart.
    telling = [one for one in postings if one.term not in named]
    return Search(state, view, query, ranking, telling or postings, statistics, preferred)


def count_holding(postings: Sequence[Posting], num_terms: int) -> tuple[int, ...]:
    """How many rows hold each term."""
    holding = [0] * num_terms
    for posting in postings:
        holding[posting.term] += len(posting.rows)
    return tuple(holding)


def speakers_named(state: State, view: View, postings: Sequence[Posting]) -> dict[int, list[int]]:
    """The numbers of the speakers that each term names; terms that name nobody are left out.

    A term names a speaker if every turn of the speaker holds it. The name itself is such a term, because turns are
    searched by speaker and content; hardly another word is. So names are known without one having been stored.
    """
    if not postings:
        return {}
    eligible = view.turns_of >= SPEAKER_TURNS_MIN
    eligible[0] = False
    if not eligible.any():
        return {}
    fewest = int(view.turns_of[eligible].min())
    holding = count_holding(postings, 1 + max(posting.term for posting in postings))
    held: dict[int, NDArray[np.int64]] = {}
    for posting in postings:
        if holding[posting.term] >= fewest:
            counts = np.bincount(state.columns.speaker[posting.rows], minlength=len(eligible))
            held[posting.term] = counts + held.get(posting.term, 0)
    named = {term: np.flatnonzero(eligible & (counts == view.turns_of)).tolist() for term, counts in held.items()}
    return {term: speakers for term, speakers in named.items() if speakers}


def _only_speaker(named: Collection[Sequence[int]]) -> int | None:
    """The speaker whom most terms name; None if there is none, or more than one."""
    tally = Counter(speaker for speakers in named for speaker in speakers)
    most = max(tally.values(), default=0)
    leaders = [speaker for speaker, times in tally.items() if times == most]
    return leaders[0] if len(leaders) == 1 else None


def _allowed(state: State, where: Filter) -> NDArray[np.bool_] | None:
    """Which rows pass the filter; None for all."""
    passed: list[NDArray[np.bool_]] = []
    if where.kinds is not None:
        passed.append(np.isin(state.column("kind"), list(where.kinds)))
    if where.tiers is not None:
        passed.append(np.isin(state.column("tier"), list(where.tiers)))
    if where.session is not None:
        passed.append(state.column("session") == where.session)
    if where.since_us is not None:
        passed.append(state.column("timestamp_us") >= where.since_us)
    if where.until_us is not None:
        passed.append(state.column("timestamp_us") < where.until_us)
    if where.seqs is not None:
        passed.append(np.isin(state.column("seq"), np.fromiter(where.seqs, np.int64)))
    return np.logical_and.reduce(passed) if passed else None


def _both(rows: NDArray[np.bool_], allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    return rows if allowed is None else rows & allowed


def _mean(values: NDArray[np.float64]) -> float:
    """Their mean, to 12 decimals: summed as integers, because a sum of floats depends on the processor's width."""
    return int(np.rint(values * _MEAN_STEPS).astype(np.int64).sum()) / len(values) / _MEAN_STEPS


def _scale(scores: NDArray[np.float64], rows: NDArray[np.bool_], leg: Leg, weight: float) -> NDArray[np.float64]:
    """Scores of a leg, from 0 for its worst row to `weight` for its best; 0 where `rows` says that one is not in it."""
    if not leg.width:
        return np.where(rows, weight, 0.0)
    return (scores - leg.low) * (weight / leg.width) * rows


def _best(scores: NDArray[np.float64], candidates: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
    """The candidates with the highest scores, best first, ties by the smaller row; at most `limit`."""
    rows = np.flatnonzero(candidates)
    values = scores[rows]
    if len(rows) > max(limit, _SELECT_MIN):
        worst = np.partition(values, len(values) - limit)[len(values) - limit]
        chosen = np.flatnonzero(values >= worst)
        rows, values = rows[chosen], values[chosen]
    return rows[np.argsort(-values, kind="stable")[:limit]]
