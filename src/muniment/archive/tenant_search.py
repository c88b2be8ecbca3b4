"""Searching every scope of a tenant: for administration, and for a service that looks across its scopes.

Scope by scope through the same index and scorer, with the statistics of the whole tenant, so that scores compare; the
two legs are merged by rank, because a mean of scores would need the best and worst of all scopes at once. Memory is
bounded by the index cache and the candidates.

Where the archive keeps full text, it names the items that hold a word of the query, and only those are read and scored;
what is found, and with which score, is the same (`tests/property/test_fulltext.py`).

Source: `engine.md` E8, E17; `service.md` S9, S12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from muniment.archive.engine import Engine, NoLedgerError
from muniment.archive.fulltext import VERSION
from muniment.archive.search import Answer, Searcher, SearchRequest
from muniment.core.candidates import TextScorer
from muniment.core.fuse import fuse_reciprocal
from muniment.core.ranking import LEG_FACTOR, Filter, Found, Query, Statistics, build_query
from muniment.core.text import query_terms
from muniment.model.hit import Hit
from muniment.model.limits import PAGE_MAX, QUERY_TERMS_MAX, SEQ_MAX
from muniment.model.rows import ItemRow, TextMatches
from muniment.model.scope import Scope
from muniment.ports.storage import Snapshot


@dataclass(frozen=True, slots=True)
class ScopedHit:
    """A hit, and the scope it lies in."""

    scope: Scope
    hit: Hit


@dataclass(frozen=True, slots=True)
class _Candidate:
    scope_no: int
    scope: Scope
    ledger_id: bytes
    found: Found

    @property
    def order(self) -> tuple[float, int, int]:
        """Best first, ties by the scope that began first, then by seq."""
        return (-self.found.score, self.scope_no, self.found.seq)


_LEGS: Final = ("keyword", "vector")


_BATCH: Final = 64
"""Proposed rows that are read first; each further round reads twice as many."""


def _statistics_of(matches: TextMatches) -> Statistics | None:
    """None where there is nothing to rank."""
    if not matches.documents or not matches.length:
        return None
    return Statistics(matches.documents, matches.length, tuple(map(len, matches.places)))


class _Matching:
    """Reads and scores the rows that full text proposes."""

    def __init__(self, engine: Engine, scopes: Mapping[int, Scope], request: SearchRequest, scorer: TextScorer) -> None:
        self._engine = engine
        self._scopes = scopes
        self._request = request
        self._scorer = scorer
        self._searcher = Searcher(engine)
        self._terms = query_terms(request.query, engine.tokenizer)
        self._filters: dict[int, Filter] = {}

    def score(self, places: Iterable[int]) -> Iterator[_Candidate]:
        """Those of the rows at these places that may be hits."""
        by_scope: dict[int, list[int]] = {}
        for place in places:
            by_scope.setdefault(place >> 32, []).append(place & SEQ_MAX)
        for scope_no, seqs in by_scope.items():
            scope = self._scopes.get(scope_no)
            if scope is not None:  # else it was erased since
                yield from self._score_scope(scope_no, scope, seqs)

    def _score_scope(self, scope_no: int, scope: Scope, seqs: Sequence[int]) -> Iterator[_Candidate]:
        with self._engine.storage.snapshot(scope) as view:
            if view is None or view.head.scope_no != scope_no:
                return
            rows, where = view.find_items(seqs), self._filter(view)
            wanted = self._engine.hashes_of(view.head).term_hasher.numbers_of(self._terms)
            for row in rows.values():
                if self._is_visible(row) and where.admits(row):
                    score = self._scorer.score(row.terms, wanted)
                    if score > 0.0:
                        found = Found(row.seq, score, {"keyword": score})
                        yield _Candidate(scope_no, scope, view.head.ledger_id, found)

    def _is_visible(self, row: ItemRow) -> bool:
        population = self._request.population
        hidden = row.deleted_seq is not None or row.superseded_seq is not None
        return not hidden and (population is None or row.kind in population)

    def _filter(self, view: Snapshot) -> Filter:
        """Worked out once per scope: labels and metadata are looked up note by note."""
        where = self._filters.get(view.head.scope_no)
        if where is None:
            where = self._searcher.filter(view, self._request)
            if where.seqs is not None:
                where = replace(where, seqs=frozenset(where.seqs))
            self._filters[view.head.scope_no] = where
        return where


class TenantSearcher:
    """One search over all scopes of a tenant."""

    def __init__(self, engine: Engine, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant
        self._searcher = Searcher(engine)

    def search(self, request: SearchRequest) -> tuple[list[ScopedHit], Mapping[Scope, Answer]]:
        """The hits, best first, and what each scope that has one contributed, in rising scope number."""
        if request.vector is None and not query_terms(request.query, self._engine.tokenizer):
            return [], {}
        model_no, vector = (
            self._searcher.embed(None, request) if self._searcher.reads_vectors(request) else (None, None)
        )
        matches = self._find_text(request)
        statistics = self._sum_statistics(request, model_no) if matches is None else _statistics_of(matches)
        legs = self._rank_legs(request, model_no, vector, statistics, matches)
        return self._read_hits(self._fuse(legs, request), request)

    def _find_text(self, request: SearchRequest) -> TextMatches | None:
        """What full text proposes; None where there is none, or where scores need more than the rows it proposes."""
        if request.mode == "vector" or request.ranking.context is not False or request.ranking.speakers:
            return None
        terms = query_terms(request.query, self._engine.tokenizer)
        if not 0 < len(terms) <= QUERY_TERMS_MAX:  # of more, each scope's index picks the rarest that it holds
            return None
        return self._engine.storage.find_text(self._tenant, terms, version=VERSION, kinds=request.population)

    def _scopes(self) -> Iterator[tuple[int, Scope]]:
        after = 0
        while rows := self._engine.storage.read_scopes(tenant=self._tenant, after=after, limit=PAGE_MAX):
            yield from ((row.scope_no, Scope(row.tenant, row.subject)) for row in rows)
            after = rows[-1].scope_no

    def _query(self, view: Snapshot, request: SearchRequest) -> Query:
        hasher = self._engine.hashes_of(view.head).term_hasher
        return build_query(request.query, self._engine.tokenizer, hasher)

    def _sum_statistics(self, request: SearchRequest, model_no: int | None) -> Statistics | None:
        """The statistics of the tenant; None where words play no part."""
        if request.mode == "vector":
            return None
        total: Statistics | None = None
        for _, scope in self._scopes():
            with self._engine.storage.snapshot(scope) as view:
                if view is None:
                    continue
                index, ahead = self._engine.indexes.find(view, model_no)
                own = index.statistics(self._query(view, request), as_of=ahead, kinds=request.population)
            total = own if total is None else total.plus(own)
        # Of no texts, or of none with a word, there is nothing to rank; what came since is for the next search.
        return total if total is not None and total.documents and total.length else None

    def _rank_legs(
        self,
        request: SearchRequest,
        model_no: int | None,
        vector: bytes | None,
        statistics: Statistics | None,
        matches: TextMatches | None,
    ) -> Mapping[str, list[_Candidate]]:
        """The best candidates of each leg over all scopes, best first."""
        most = request.limit if vector is None or statistics is None else LEG_FACTOR * request.limit
        weights = dict(zip(_LEGS, request.ranking.leg_weights, strict=True))
        wanted = [
            leg
            for leg, there in zip(_LEGS, (statistics is not None, vector is not None), strict=True)
            if there and weights[leg] > 0
        ]
        legs: dict[str, list[_Candidate]] = {leg: [] for leg in wanted}
        if "keyword" in wanted and matches is not None and statistics is not None:
            legs["keyword"] = self._rank_matches(matches, statistics, request, most)
            wanted.remove("keyword")
        if not wanted:
            return legs
        for scope_no, scope in self._scopes():
            with self._engine.storage.snapshot(scope) as view:
                if view is None:
                    continue
                index, ahead = self._engine.indexes.find(view, model_no)
                where = self._searcher.filter(view, request)
                for leg in wanted:
                    query = self._query(view, request) if leg == "keyword" else Query(vector=vector)
                    found = index.search(
                        query,
                        most,
                        where=where,
                        ranking=request.ranking,
                        as_of=ahead,
                        kinds=request.population,
                        statistics=statistics if leg == "keyword" else None,
                    )
                    legs[leg].extend(_Candidate(scope_no, scope, view.head.ledger_id, one) for one in found)
            for candidates in legs.values():
                if len(candidates) > 2 * most:
                    candidates.sort(key=lambda one: one.order)
                    del candidates[most:]
        return {leg: sorted(candidates, key=lambda one: one.order)[:most] for leg, candidates in legs.items()}

    def _rank_matches(
        self, matches: TextMatches, statistics: Statistics, request: SearchRequest, most: int
    ) -> list[_Candidate]:
        """The keyword leg from what full text proposes: rows in falling order of what they can score at best.

        Once there are enough hits, and no row that was not read yet can score as high as the last of them, it is done.
        """
        scorer = TextScorer.build(statistics)
        places, bounds = scorer.bound(matches.places)
        matching = _Matching(self._engine, dict(self._scopes()), request, scorer)
        best: list[_Candidate] = []
        done, batch = 0, _BATCH
        while done < len(places) and most > 0:
            if len(best) == most and bounds[done] < best[-1].found.score:
                break
            best.extend(matching.score(places[done : done + batch].tolist()))
            best.sort(key=lambda one: one.order)
            del best[most:]
            done, batch = done + batch, 2 * batch
        return best

    def _fuse(self, legs: Mapping[str, list[_Candidate]], request: SearchRequest) -> list[_Candidate]:
        if len(legs) < 2:
            return [one for candidates in legs.values() for one in candidates][: request.limit]
        places = sorted({(one.scope_no, one.found.seq) for candidates in legs.values() for one in candidates})
        number_of = {place: number for number, place in enumerate(places)}
        by_number = {number_of[one.scope_no, one.found.seq]: one for candidates in legs.values() for one in candidates}
        ranked = [[number_of[one.scope_no, one.found.seq] for one in legs[leg]] for leg in _LEGS]
        fused = fuse_reciprocal(ranked, request.ranking.leg_weights, k=request.ranking.damping)[: request.limit]
        return [
            replace(
                by_number[number],
                found=Found(
                    by_number[number].found.seq,
                    score,
                    {leg: part for leg, part in zip(_LEGS, parts, strict=True) if part},
                ),
            )
            for number, score, parts in fused
        ]

    def _read_hits(
        self, best: Sequence[_Candidate], request: SearchRequest
    ) -> tuple[list[ScopedHit], Mapping[Scope, Answer]]:
        by_scope: dict[Scope, list[_Candidate]] = {}
        for one in sorted(best, key=lambda one: one.scope_no):
            by_scope.setdefault(one.scope, []).append(one)
        order = {(one.scope, one.found.seq): place for place, one in enumerate(best)}
        answers: dict[Scope, Answer] = {}
        hits: list[tuple[int, ScopedHit]] = []
        for scope, candidates in by_scope.items():
            candidates.sort(key=lambda one: order[scope, one.found.seq])
            found = [one.found for one in candidates]
            answer = self._searcher.read(candidates[0].ledger_id, found, explain=request.explain)
            answers[scope] = answer
            hits.extend((order[scope, hit.seq], ScopedHit(scope, hit)) for hit in answer.hits)
        return [hit for _, hit in sorted(hits, key=lambda entry: entry[0])], answers

    def record(
        self,
        query: str,
        answers: Mapping[Scope, Answer],
        *,
        request: Mapping[str, JsonValue],
        source: str,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> frozenset[UUID]:
        """One Recall per scope that something was handed out of, one transaction each; of nothing, one unscoped.

        The ids that were handed out: what was erased since it was found is not among them, and a scope that was erased
        is not begun anew. What was asked is written into the unscoped ledger only: a query about one person has no
        place in the memory of another, and would outlive an erasure of the first.
        """
        unscoped = Scope(self._tenant, None)
        if not answers:
            with self._engine.storage.snapshot(unscoped) as view:
                answers = {unscoped: self._searcher.answer_of(view)}
        now_us = self._engine.clock()
        handed_out: set[UUID] = set()
        for scope, answer in answers.items():
            own = scope == unscoped
            with suppress(NoLedgerError):
                _, hits = self._searcher.record(
                    scope,
                    answer,
                    query=query if own else "*",
                    request=request if own else {},
                    session_id=session_id,
                    source=source,
                    actor=actor,
                    now_us=now_us,
                    begins=own,
                )
                handed_out.update(hit.id for hit in hits)
        return frozenset(handed_out)
