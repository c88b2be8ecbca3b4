"""The laws of `ScopeIndex`, against a search written in plain Python that looks at every row."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from muniment.core import scope_search
from muniment.core.bm25 import B_LONG, B_SHORT, K1, shortness
from muniment.core.ranking import (
    ADDRESSED_SHARE,
    LENDING_TURNS_MIN,
    LENT_KEYWORDS_LONG,
    LENT_KEYWORDS_SHORT,
    LENT_VECTORS_LONG,
    LENT_VECTORS_SHORT,
    SPEAKER_BONUS,
    Filter,
    Found,
    Query,
    Ranking,
)
from muniment.core.scope_index import ALIVE, Row, ScopeIndex

SPEAKER_TURNS_MIN = 2

ALL_RANKINGS = [
    Ranking(fusion=fusion, weights=weights, context=context, speakers=speakers)
    for fusion in ("convex", "rrf")
    for weights in (None, (1.0, 0.0), (0.0, 1.0), (2.0, 1.0))
    for context in (None, False, True)
    for speakers in (False, True)
]


# --- the oracle ---------------------------------------------------------------------------------------------------


def terms_in(row: Row) -> tuple[int, ...]:
    return struct.unpack(f"<{len(row.terms) // 8}Q", row.terms)


def codes_in(vector: bytes) -> tuple[int, ...]:
    return struct.unpack(f"{len(vector)}b", vector)


@dataclass
class PlainLeg:
    scores: dict[int, float]
    """Of the rows in the leg, by seq."""
    low: float
    width: float


class PlainSearch:
    """What `ScopeIndex.search` means, with loops over all rows."""

    def __init__(self, rows: Sequence[Row], query: Query, ranking: Ranking) -> None:
        self.rows, self.query, self.ranking = rows, query, ranking
        self.documents = len(rows)
        self.length = sum(len(terms_in(row)) for row in rows)
        self.terms = list(query.terms)
        self.share = 1.0
        self.speaker = self.find_speaker() if ranking.speakers else None

    def named_by(self, term: int) -> set[int]:
        turns: dict[int, list[Row]] = {}
        for row in self.rows:
            turns.setdefault(row.speaker, []).append(row)
        return {
            speaker
            for speaker, said in turns.items()
            if speaker and len(said) >= SPEAKER_TURNS_MIN and all(term in terms_in(row) for row in said)
        }

    def find_speaker(self) -> int | None:
        named = {term: speakers for term in self.query.names if (speakers := self.named_by(term))}
        found = {term for term in self.terms if any(term in terms_in(row) for row in self.rows)}
        if found - set(named):
            self.terms = [term for term in self.terms if term not in named]
        meant = named or {term: speakers for term in self.query.asker if (speakers := self.named_by(term))}
        self.share = ADDRESSED_SHARE if self.query.speaks_to_another and not named else 1.0
        votes: dict[int, int] = {}
        for speakers in meant.values():
            for speaker in speakers:
                votes[speaker] = votes.get(speaker, 0) + 1
        leaders = [speaker for speaker, count in votes.items() if count == max(votes.values())]
        return leaders[0] if len(leaders) == 1 else None

    def lent(self, own: dict[int, float], short: Sequence[float], long: Sequence[float]) -> dict[int, float]:
        """What every row is lent; `own` has a score for every row."""
        result = dict.fromkeys(own, 0.0)
        turns = [row for row in self.rows if row.session]
        context = self.ranking.context
        if context is False or (context is None and len(turns) < LENDING_TURNS_MIN):
            return result
        part = 1.0 if context else shortness(self.length / self.documents)
        far = [*long, *[0.0] * (len(short) - len(long))]
        shares = [b + (a - b) * part for a, b in zip(short, far, strict=True)]
        for session in {row.session for row in turns}:
            seqs = [row.seq for row in turns if row.session == session]
            for place, seq in enumerate(seqs):
                lent = 0.0
                for distance, share in enumerate(shares, start=1):
                    before = own[seqs[place - distance]] if place >= distance else 0.0
                    after = own[seqs[place + distance]] if place + distance < len(seqs) else 0.0
                    lent += before * share
                    lent += after * share
                result[seq] = lent
        return result

    def keyword_leg(self) -> PlainLeg | None:
        holding = {term: sum(term in terms_in(row) for row in self.rows) for term in self.terms}
        mean = self.length / self.documents
        own: dict[int, float] = {}
        for row in self.rows:
            terms, score = terms_in(row), 0.0
            for term in self.terms:
                if term in terms:
                    weight = math.log(1.0 + (self.documents - holding[term] + 0.5) / (holding[term] + 0.5))
                    b = B_LONG + (B_SHORT - B_LONG) * shortness(mean)
                    penalty = K1 * (1.0 - b + b * len(terms) / mean)
                    frequency = terms.count(term)
                    score += weight * (frequency * (K1 + 1.0) / (frequency + penalty))
            own[row.seq] = score
        lent = self.lent(own, LENT_KEYWORDS_SHORT, LENT_KEYWORDS_LONG)
        scores = {seq: own[seq] + lent[seq] for seq in own}
        scores = {seq: score for seq, score in scores.items() if score > 0.0}
        return PlainLeg(scores, 0.0, max(scores.values())) if scores else None

    def vector_leg(self) -> PlainLeg | None:
        query = codes_in(self.query.vector or b"")
        own: dict[int, float] = {}
        for row in self.rows:
            codes = codes_in(row.codes or b"")
            own[row.seq] = 0.0
            if any(codes) and any(query):
                product = float(sum(a * b for a, b in zip(codes, query, strict=True)))
                lengths = [1.0 / math.sqrt(sum(code * code for code in vector)) for vector in (codes, query)]
                own[row.seq] = product * lengths[0] * lengths[1]
        inside = {row.seq for row in self.rows if row.codes and any(codes_in(row.codes))}
        if not any(query) or not inside:
            return None
        mean = sum(round(own[seq] * 2**40) for seq in inside) / len(inside) / 2**40
        lendable = {seq: cosine - mean if seq in inside else 0.0 for seq, cosine in own.items()}
        lent = self.lent(lendable, LENT_VECTORS_SHORT, LENT_VECTORS_LONG)
        scores = {seq: own[seq] + lent[seq] for seq in own}
        scores = {seq: score for seq, score in scores.items() if seq in inside}
        return PlainLeg(scores, min(scores.values()), max(scores.values()) - min(scores.values()))

    def ranked(self, scores: dict[int, float], allowed: set[int], limit: int, bonus: float) -> list[tuple[int, float]]:
        preferred = {row.seq for row in self.rows if self.speaker and row.speaker == self.speaker}
        final = {seq: score + self.share * bonus if seq in preferred else score for seq, score in scores.items()}
        pairs = [(seq, score) for seq, score in final.items() if seq in allowed]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def hits(self, allowed: set[int], limit: int) -> list[tuple[int, float]]:
        weights = self.ranking.leg_weights
        wanted = (bool(self.query.terms), self.query.vector is not None)
        asked = [there and weight > 0 for there, weight in zip(wanted, weights, strict=True)]
        legs = [
            self.keyword_leg() if asked[0] and self.rows else None,
            self.vector_leg() if asked[1] and self.rows else None,
        ]
        if not all(asked):
            leg = legs[0] or legs[1]
            return self.ranked(leg.scores, allowed, limit, SPEAKER_BONUS * leg.width) if leg else []
        if self.ranking.fusion == "rrf":
            total: dict[int, float] = {}
            for leg, weight in zip(legs, weights, strict=True):
                if leg:
                    best = self.ranked(leg.scores, allowed, 3 * limit, SPEAKER_BONUS * leg.width)
                    for rank, (seq, _) in enumerate(best, start=1):
                        total[seq] = total.get(seq, 0.0) + weight / (self.ranking.damping + rank)
            return self.ranked(total, allowed, limit, 0.0)
        total = {}
        for leg, weight in zip(legs, weights, strict=True):
            share = weight / sum(weights)
            for seq, score in leg.scores.items() if leg else ():
                scaled = (score - leg.low) * (share / leg.width) if leg and leg.width else share
                total[seq] = total.get(seq, 0.0) + scaled
        return self.ranked(total, allowed, limit, SPEAKER_BONUS)


def plain_search(
    rows: Sequence[Row],
    query: Query,
    limit: int,
    where: Filter,
    ranking: Ranking,
    as_of: int | None,
    kinds: set[int] | None,
) -> list[tuple[int, float]]:
    point = 10**9 if as_of is None else as_of
    visible = [
        row
        for row in rows
        if row.seq <= point and not ALIVE < row.died_seq <= point and (kinds is None or row.kind in kinds)
    ]
    allowed = {row.seq for row in visible if passes(row, where)}
    return PlainSearch(visible, query, ranking).hits(allowed, limit)


def passes(row: Row, where: Filter) -> bool:
    return (
        (where.kinds is None or row.kind in where.kinds)
        and (where.tiers is None or row.tier in where.tiers)
        and (where.session is None or row.session == where.session)
        and (where.since_us is None or row.timestamp_us >= where.since_us)
        and (where.until_us is None or row.timestamp_us < where.until_us)
        and (where.seqs is None or row.seq in where.seqs)
    )


@pytest.fixture(autouse=True, scope="module")
def _names_are_known_early() -> Iterator[None]:
    """So that small examples hold speakers that can be named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scope_search, "SPEAKER_TURNS_MIN", SPEAKER_TURNS_MIN)
        yield


# --- strategies ---------------------------------------------------------------------------------------------------

TERMS = st.integers(1, 9)
VECTORS = st.none() | st.lists(st.integers(-127, 127), min_size=3, max_size=3).map(
    lambda codes: struct.pack("3b", *codes)
)
NAME_OF = {0: (), 101: (1,), 102: (2,), 103: (2, 3)}


@st.composite
def row_lists(draw: st.DrawFn) -> list[Row]:
    count = draw(st.integers(0, 12) | st.integers(30, 45))
    seqs = sorted(draw(st.sets(st.integers(0, 99), min_size=count, max_size=count)))
    repeats = draw(st.sampled_from([1, 1, 15, 40]))  # short texts, long ones, and some between
    rows: list[Row] = []
    for seq in seqs:
        speaker = draw(st.sampled_from(list(NAME_OF)))
        terms = [*NAME_OF[speaker], *draw(st.lists(TERMS, max_size=5)) * repeats]
        died = draw(st.just(ALIVE) | st.integers(seq + 1, 120))
        rows.append(
            Row(
                seq=seq,
                kind=draw(st.integers(1, 3)),
                tier=draw(st.integers(0, 3)),
                timestamp_us=draw(st.integers(0, 5)),
                session=draw(st.sampled_from([0, -7, 7, 8])),
                speaker=speaker,
                died_seq=died,
                terms=struct.pack(f"<{len(terms)}Q", *terms),
                codes=draw(VECTORS),
            )
        )
    return rows


@st.composite
def queries(draw: st.DrawFn) -> Query:
    terms = tuple(draw(st.lists(TERMS, unique=True, max_size=5)))
    names = tuple(term for term in terms if draw(st.booleans()))
    return Query(terms, draw(VECTORS), names, draw(st.sampled_from([(), (1,), (3, 9)])), draw(st.booleans()))


FILTERS = st.builds(
    Filter,
    kinds=st.none() | st.sets(st.integers(1, 3)),
    tiers=st.none() | st.sets(st.integers(0, 3)),
    session=st.sampled_from([None, None, 7, -7]),
    since_us=st.none() | st.integers(0, 5),
    until_us=st.none() | st.integers(0, 5),
    seqs=st.none() | st.lists(st.integers(0, 99)),
)
RANKINGS = st.sampled_from(ALL_RANKINGS)
POINTS = st.none() | st.integers(-1, 120)
KINDS = st.none() | st.sets(st.integers(1, 3))
LIMITS = st.integers(0, 12)


def pairs(found: Sequence[Found]) -> list[tuple[int, float]]:
    return [(one.seq, one.score) for one in found]


# --- laws ---------------------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(row_lists(), queries(), LIMITS, FILTERS, RANKINGS, POINTS, KINDS)
def test_law_1_a_search_gives_what_a_naive_scan_gives(
    rows: list[Row],
    query: Query,
    limit: int,
    where: Filter,
    ranking: Ranking,
    as_of: int | None,
    kinds: set[int] | None,
) -> None:
    found = ScopeIndex(rows).search(query, limit, where=where, ranking=ranking, as_of=as_of, kinds=kinds)
    event(f"{len(found)} hits")
    assert pairs(found) == plain_search(rows, query, limit, where, ranking, as_of, kinds)


@given(row_lists(), row_lists(), queries(), RANKINGS, st.data())
def test_law_2_equal_rows_give_equal_results_however_they_came(
    rows: list[Row], dropped: list[Row], query: Query, ranking: Ranking, data: st.DataObject
) -> None:
    taken = {row.seq for row in rows}
    passing = [row for row in dropped if row.seq not in taken]
    arriving = sorted([*rows, *passing], key=lambda row: row.seq)
    index = ScopeIndex()
    while arriving:
        count = data.draw(st.integers(1, len(arriving)))
        index.extend(row._replace(died_seq=ALIVE) for row in arriving[:count])
        del arriving[:count]
        index.search(query, 5)
    for row in sorted(rows, key=lambda row: row.died_seq):
        if row.died_seq != ALIVE:
            index.mark_died([row.seq, 1_000], row.died_seq)
            index.mark_died([row.seq], row.died_seq + 1)
    index.drop([row.seq for row in passing])
    fresh = ScopeIndex(rows)
    assert len(index) == len(fresh)
    for as_of in (None, 60):
        assert index.search(query, 10, ranking=ranking, as_of=as_of) == fresh.search(
            query, 10, ranking=ranking, as_of=as_of
        )


@given(row_lists(), queries(), RANKINGS, st.integers(-1, 120))
def test_law_3_as_of_is_the_index_of_that_time(rows: list[Row], query: Query, ranking: Ranking, as_of: int) -> None:
    then = [row._replace(died_seq=ALIVE) for row in rows if row.seq <= as_of and not ALIVE < row.died_seq <= as_of]
    past = ScopeIndex(rows).search(query, 10, ranking=ranking, as_of=as_of)
    assert past == ScopeIndex(then).search(query, 10, ranking=ranking)


@given(row_lists(), queries(), FILTERS, st.sampled_from([one for one in ALL_RANKINGS if one.fusion == "convex"]))
def test_law_4_a_filter_leaves_out_hits_and_changes_no_score(
    rows: list[Row], query: Query, where: Filter, ranking: Ranking
) -> None:
    index, passing = ScopeIndex(rows), {row.seq for row in rows if passes(row, where)}
    everything = index.search(query, 100, ranking=ranking)
    assert index.search(query, 100, where=where, ranking=ranking) == [one for one in everything if one.seq in passing]


@given(row_lists(), queries(), LIMITS, RANKINGS)
def test_parts_sum_up_to_the_score(rows: list[Row], query: Query, limit: int, ranking: Ranking) -> None:
    for one in ScopeIndex(rows).search(query, limit, ranking=ranking):
        assert math.isclose(sum(one.parts.values()), one.score, abs_tol=1e-9)
        assert set(one.parts) <= {"keyword", "keyword_context", "vector", "vector_context", "speaker"}


@given(row_lists(), queries(), st.data())
def test_statistics_of_scopes_add_up(rows: list[Row], query: Query, data: st.DataObject) -> None:
    mine = [data.draw(st.booleans()) for _ in rows]
    first = ScopeIndex([row for row, is_mine in zip(rows, mine, strict=True) if is_mine])
    second = ScopeIndex([row for row, is_mine in zip(rows, mine, strict=True) if not is_mine])
    together = ScopeIndex(rows)
    ranking = Ranking(fusion="rrf", context=False, speakers=False)
    query = Query(query.terms)
    statistics = first.statistics(query).plus(second.statistics(query))
    assert statistics == together.statistics(query)
    merged = first.search(query, 100, ranking=ranking, statistics=statistics)
    merged += second.search(query, 100, ranking=ranking, statistics=statistics)
    assert sorted(merged, key=lambda one: (-one.score, one.seq)) == together.search(query, 100, ranking=ranking)
