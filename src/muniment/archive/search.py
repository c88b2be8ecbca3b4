"""Searching one scope: the index finds, the ledger answers, a Recall says what was handed out.

Source: `engine.md` E13 to E16, `audit.md` A15, A16.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, cast
from uuid import UUID

from pydantic import JsonValue

from muniment.archive.arguments import build_event, parse_instant, parse_text, parse_texts
from muniment.archive.engine import Engine, NoLedgerError
from muniment.archive.reader import Reader
from muniment.archive.writer import Writer
from muniment.core.canonical import KIND_NUMBERS, encode_object, from_us, to_us
from muniment.core.check import check_count
from muniment.core.project import TIER_NUMBERS, Known, draft
from muniment.core.ranking import PLAIN, Filter, Found, Query, Ranking, build_query
from muniment.core.text import query_terms, without_terms
from muniment.core.where import Condition, compile_where
from muniment.errors import EmbeddingUnavailableError, IntegrityError, ProviderError, UsageError
from muniment.model.event import CONTENT_KINDS, TIERS, Content, Note, Recall, format_instant
from muniment.model.hit import Hit
from muniment.model.json import depth_of, freeze_object
from muniment.model.limits import METADATA_BYTES_MAX, METADATA_DEPTH_MAX, QUERY_CHARS_MAX, SEARCH_LIMIT_MAX
from muniment.model.rows import ItemFilter
from muniment.model.scope import Scope
from muniment.ports.storage import Snapshot

Mode = Literal["auto", "keyword", "vector", "hybrid"]
MODES: Final[tuple[Mode, ...]] = ("auto", "keyword", "vector", "hybrid")
Fusion = Literal["convex", "rrf"]

REQUEST_BYTES_KEPT: Final = 16 * 1024
"""What a Recall's request keeps for everything but the condition: labels above all."""


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """A search as it was asked for, checked."""

    query: str
    limit: int
    mode: Mode = "auto"
    kinds: frozenset[int] | None = None
    tiers: frozenset[int] | None = None
    labels: tuple[str, ...] | None = None
    where: Mapping[str, JsonValue] | None = None
    condition: Condition | None = None
    session_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    ranking: Ranking
    vector: Sequence[float] | None = None
    """The query's vector, where the caller made it."""
    population: frozenset[int] | None = None
    """The kinds that take part at all, statistics included; None for all."""
    explain: bool = False

    def to_record(self, seq: int) -> dict[str, JsonValue]:
        """How the read was made, for the Recall: what was not given is left out."""
        values: dict[str, JsonValue] = {"call": "search", "seq": seq, "mode": self.mode, "limit": self.limit}
        if self.kinds is not None:
            values["kinds"] = [kind for kind in CONTENT_KINDS if KIND_NUMBERS[kind] in self.kinds]
        if self.tiers is not None:
            values["tiers"] = [tier for tier in TIERS if TIER_NUMBERS[tier] in self.tiers]
        if self.labels is not None:
            values["labels"] = list(self.labels)
        if self.where is not None:
            values["where"] = dict(self.where)
        if self.session_id is not None:
            values["session_id"] = self.session_id
        if self.since is not None:
            values["since"] = format_instant(self.since)
        if self.until is not None:
            values["until"] = format_instant(self.until)
        values["fusion"] = self.ranking.fusion
        return values


def parse_request(
    query: str,
    *,
    limit: int,
    mode: str,
    kinds: Collection[str] | None,
    tiers: Collection[str] | None,
    labels: Collection[str] | None,
    where: Mapping[str, Any] | None,
    session_id: str | None,
    since: datetime | None,
    until: datetime | None,
    fusion: str,
    context: bool | None,
    explain: bool,
    ranking: Ranking | None = None,
    vector: Sequence[float] | None = None,
    population: frozenset[int] | None = None,
) -> SearchRequest:
    """The request of a caller's arguments.

    Raises: UsageError, LimitExceededError
    """
    parse_text("query", query)
    check_count("query", len(query), QUERY_CHARS_MAX, "characters")
    if mode not in MODES:
        raise UsageError(f"mode {mode!r} is not one of {', '.join(MODES)}")
    if fusion not in ("convex", "rrf"):
        raise UsageError(f"fusion is 'convex' or 'rrf', not {fusion!r}")
    if session_id is not None:
        parse_text("session_id", session_id)
    return SearchRequest(
        query=query,
        limit=_parse_limit(limit),
        mode=mode,
        kinds=_parse_names("kind", kinds, KIND_NUMBERS, CONTENT_KINDS),
        tiers=_parse_names("tier", tiers, TIER_NUMBERS, TIERS),
        labels=None if labels is None else parse_texts("labels", labels),
        where=None if where is None else _parse_where(where),
        condition=None if where is None else compile_where(where),
        session_id=session_id,
        since=None if since is None else parse_instant("since", since),
        until=None if until is None else parse_instant("until", until),
        ranking=ranking or Ranking(fusion=fusion, context=context),
        vector=vector,
        population=population,
        explain=explain,
    )


def _parse_where(where: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    """The condition as a JSON value that a Recall can keep.

    Raises: UsageError for what is no JSON; LimitExceededError for one that is too large or too deep to be recorded.
    """
    try:
        frozen = freeze_object(where)
    except ValueError as error:
        raise UsageError(f"where: {error}") from None
    check_count("where nesting", depth_of(frozen), METADATA_DEPTH_MAX - 1, "levels")
    check_count("where", len(encode_object(frozen)), METADATA_BYTES_MAX - REQUEST_BYTES_KEPT, "bytes of JSON")
    return frozen


def plain_request(query: str, *, limit: int) -> SearchRequest:
    """A search by the query's words alone: BM25 without anything lent, as the audit contract has it.

    Raises: UsageError, LimitExceededError
    """
    return parse_request(
        query,
        limit=limit,
        mode="keyword",
        kinds=None,
        tiers=None,
        labels=None,
        where=None,
        session_id=None,
        since=None,
        until=None,
        fusion="rrf",
        context=False,
        explain=False,
        ranking=PLAIN,
    )


def parse_moment(as_of: object) -> AsOf:
    """The past point of a seq or a time.

    Raises: UsageError
    """
    if isinstance(as_of, datetime):
        return AsOf(at=parse_instant("as_of", as_of))
    if isinstance(as_of, bool) or not isinstance(as_of, int):
        raise UsageError(f"as_of is a seq or a time, not {as_of!r}")
    return AsOf(seq=as_of)


def _parse_limit(limit: object) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise UsageError(f"limit must be a whole number from 0 to {SEARCH_LIMIT_MAX}, not {limit!r}")
    check_count("limit", limit, SEARCH_LIMIT_MAX, "hits")
    return limit


def _parse_names(
    name: str, values: Collection[str] | None, numbers: Mapping[str, int], allowed: Sequence[str]
) -> frozenset[int] | None:
    if values is None:
        return None
    names = parse_texts(f"{name}s", values)
    for value in names:
        if value not in allowed:
            raise UsageError(f"{name} {value!r} is not one of {', '.join(allowed)}")
    return frozenset(numbers[value] for value in names)


# --- Searching --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found in one view of a ledger."""

    hits: list[Hit]
    roots: Mapping[UUID, int]
    """The chain of each hit, whose uses a Recall counts."""
    seq: int
    """The last event that the search saw; -1 where there is no ledger."""
    epoch: int
    ledger_id: bytes


NOTHING: Final = Answer([], {}, -1, 0, b"")


class Searcher:
    """Searches of one archive."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def search(self, address: Scope | bytes, request: SearchRequest, *, as_of: AsOf | None = None) -> Answer:
        """What the scope holds on that query, as it stands now or stood then; nothing is recorded here.

        Raises: EmbeddingUnavailableError, ProviderError, EmbeddingDimensionError as the mode says.
        """
        if request.vector is None and not query_terms(request.query, self._engine.tokenizer):
            with self._engine.storage.snapshot(address) as view:
                return self.answer_of(view)
        model_no, vector = self.embed(address, request) if self.reads_vectors(request) else (None, None)
        with self._engine.storage.snapshot(address) as view:
            if view is None:
                return NOTHING
            return self._search_view(view, request, model_no, vector, as_of)

    def _search_view(
        self,
        view: Snapshot,
        request: SearchRequest,
        model_no: int | None,
        vector: bytes | None,
        as_of: AsOf | None = None,
    ) -> Answer:
        index, ahead = self._engine.indexes.find(view, model_no)
        found = index.search(
            self._build_query(view, request, vector),
            request.limit,
            where=self.filter(view, request),
            ranking=request.ranking,
            as_of=ahead if as_of is None else as_of.find_seq(view),
            kinds=request.population,
        )
        return _answer(view, found, explain=request.explain)

    def recall(
        self, scope: Scope, request: SearchRequest, *, session_id: str | None, source: str, actor: str | None
    ) -> tuple[Recall, list[Content]]:
        """Search by words and record, under one lock: what it names is what stood there then (A15).

        Where reads are not recorded the Recall has no place (A16).
        """
        engine = self._engine
        if not engine.records_reads:
            answer = self.search(scope, request)
            recall = self._build_recall(request, answer, session_id=session_id, source=source, actor=actor)
            return recall, [hit.event for hit in answer.hits]
        with engine.storage.snapshot(scope) as view:
            if view is not None:
                engine.indexes.find(view, None)  # what takes long is done before the lock
        with engine.storage.transaction(scope, engine.new_ledger(), durable=False) as tx:
            answer = self._search_view(tx, request, None, None)
            recall = self._build_recall(request, answer, session_id=session_id, source=source, actor=actor)
            known = Known(roots_by_id=dict(answer.roots))
            (stored,) = Writer(engine, tx).append([draft(recall, engine.tokenizer)], known=known)
            head = tx.head
        engine.indexes.pass_over(head.ledger_id, head.next_seq - 1, head.next_seq)
        return cast("Recall", stored), [hit.event for hit in answer.hits]

    def _build_recall(
        self, request: SearchRequest, answer: Answer, *, session_id: str | None, source: str, actor: str | None
    ) -> Recall:
        return build_event(
            Recall,
            id=self._engine.new_id(),
            timestamp=from_us(self._engine.clock()),
            query=request.query,
            recalled=tuple([hit.id for hit in answer.hits]),
            session_id=session_id,
            source=source,
            actor=actor,
        )

    def answer_of(self, view: Snapshot | None, found: Sequence[Found] = (), *, explain: bool = False) -> Answer:
        """What was found in a view, with its events; nothing, seen at the ledger's end, where nothing was."""
        return NOTHING if view is None else _answer(view, found, explain=explain)

    def read(self, ledger_id: bytes, found: Sequence[Found], *, explain: bool) -> Answer:
        """The events of what was found in a ledger a moment ago; what was erased since is left out."""
        with self._engine.storage.snapshot(ledger_id) as view:
            if view is None:
                return NOTHING
            alive = view.find_items([one.seq for one in found])
            return _answer(view, [one for one in found if one.seq in alive], explain=explain)

    def reads_vectors(self, request: SearchRequest) -> bool:
        """Whether the mode asks for vectors, given what the archive was opened with."""
        if request.mode == "auto":
            return request.vector is not None or self._engine.vectors.has_embedder
        return request.mode in ("vector", "hybrid")

    def embed(self, address: Scope | bytes | None, request: SearchRequest) -> tuple[int | None, bytes | None]:
        """The model and the query's codes, worked out with no view open; None where a search goes on without."""
        vectors = self._engine.vectors
        if request.vector is not None:
            model, codes = vectors.quantise_query(request.vector)
            return (None if model is None else model.model_no), codes
        try:
            model, codes = vectors.embed_query(self._text_to_embed(address, request))
        except (ProviderError, EmbeddingUnavailableError):
            if request.mode == "auto" and vectors.on_embed_error == "keyword":
                return None, None
            raise
        return model.model_no, codes

    def _text_to_embed(self, address: Scope | bytes | None, request: SearchRequest) -> str:
        """The query without the names of speakers: they say who is meant, and hide what."""
        text, engine = request.query, self._engine
        current = engine.vectors.find_current()
        if address is None or not request.ranking.speakers or current is None:
            return text
        with engine.storage.snapshot(address) as view:
            if view is None:
                return text
            hasher = engine.hashes_of(view.head).term_hasher
            index, ahead = engine.indexes.find(view, current.model_no)
            query = build_query(text, engine.tokenizer, hasher)
            named = index.names_in(query, as_of=ahead, kinds=request.population)
        if not named:
            return text
        terms = query_terms(text, engine.tokenizer)
        numbers = hasher.numbers_of(terms)
        unwanted = {term for term, number in zip(terms, numbers, strict=True) if number in named}
        return without_terms(text, engine.tokenizer, unwanted)

    def _build_query(self, view: Snapshot, request: SearchRequest, vector: bytes | None) -> Query:
        if request.mode == "vector":
            return Query(vector=vector)
        hasher = self._engine.hashes_of(view.head).term_hasher
        return build_query(request.query, self._engine.tokenizer, hasher, vector)

    def filter(self, view: Snapshot, request: SearchRequest) -> Filter:
        """What may be a hit, in the hashes of the view's ledger."""
        return Filter(
            kinds=request.kinds,
            tiers=request.tiers,
            session=self._engine.hashes_of(view.head).session(request.session_id),
            since_us=None if request.since is None else to_us(request.since),
            until_us=None if request.until is None else to_us(request.until),
            seqs=self._passing(view, request),
        )

    def _passing(self, view: Snapshot, request: SearchRequest) -> list[int] | None:
        """The seqs of the notes that pass what an index knows nothing of: labels and metadata."""
        labels, condition = request.labels, request.condition
        if labels is None and condition is None:
            return None
        reader = Reader(view)
        wanted = frozenset(labels or ())
        where = ItemFilter(kinds={KIND_NUMBERS["note"]}, tiers=request.tiers, hidden=True)
        passing: list[int] = []
        first = 0
        while rows := view.read_items(replace(where, first=first), limit=_CHUNK):
            for row in rows:
                note = reader.find_content(row.seq)
                if isinstance(note, Note) and _passes(note, wanted if labels is not None else None, condition):
                    passing.append(row.seq)
            first = rows[-1].seq + 1
        return passing

    # --- Recording ----------------------------------------------------------------------------------------------------

    def record(
        self,
        scope: Scope,
        answer: Answer,
        *,
        query: str,
        request: Mapping[str, JsonValue],
        session_id: str | None,
        source: str,
        actor: str | None,
        now_us: int | None = None,
        begins: bool = True,
    ) -> tuple[Recall, list[Hit]]:
        """Append the Recall of an answer, and the hits that are in it.

        What was erased since the answer was read is in neither; what was deleted since stays in both, for it was read
        (E14). A ledger that was replaced since leaves nothing of the answer; without `begins`, it is not written to.

        Raises: NoLedgerError without `begins` where the ledger of the answer is gone.
        """
        engine = self._engine
        now_us = engine.clock() if now_us is None else now_us
        with engine.storage.transaction(scope, engine.new_ledger(), durable=False) as tx:
            hits, roots = answer.hits, answer.roots
            if tx.head.ledger_id != answer.ledger_id:
                if not begins:
                    raise NoLedgerError
                hits, roots = [], {}
            elif tx.head.epoch != answer.epoch:
                items = tx.find_items([hit.seq for hit in hits])
                hits = [hit for hit in hits if hit.seq in items]
                roots = {hit.id: items[hit.seq].root_seq for hit in hits}
            recall = build_event(
                Recall,
                id=engine.new_id(),
                timestamp=from_us(now_us),
                query=query,
                recalled=tuple([hit.id for hit in hits]),
                request=request,
                session_id=session_id,
                source=source,
                actor=actor,
            )
            (stored,) = Writer(engine, tx).append(
                [draft(recall, engine.tokenizer)], known=Known(roots_by_id=dict(roots)), now_us=now_us
            )
            head = tx.head
        engine.indexes.pass_over(head.ledger_id, head.next_seq - 1, head.next_seq)
        return cast("Recall", stored), hits


@dataclass(frozen=True, slots=True)
class AsOf:
    """A past point: after an event, or at a time."""

    seq: int | None = None
    at: datetime | None = None

    def find_seq(self, view: Snapshot) -> int:
        if self.at is not None:
            return view.find_seq_at(to_us(self.at))
        return view.head.next_seq - 1 if self.seq is None else self.seq


_CHUNK: Final = 1_000


def _passes(note: Note, labels: frozenset[str] | None, condition: Condition | None) -> bool:
    if labels is not None and not labels <= set(note.labels):
        return False
    return condition is None or condition(note.metadata)


def _answer(view: Snapshot, found: Sequence[Found], *, explain: bool) -> Answer:
    """The hits with their events, all from the view that they were found in."""
    reader = Reader(view)
    head = view.head
    seqs = [one.seq for one in found]
    rows = view.find_by_seqs(seqs)
    hits: list[Hit] = []
    roots: dict[UUID, int] = {}
    for one in found:
        row = rows.get(one.seq)
        if row is None:
            raise IntegrityError(f"the item at seq {one.seq} has no event", seq=one.seq)
        event = cast("Content", reader.decode_one(row))
        hits.append(Hit(event, one.score, one.parts if explain else {}))
        roots[event.id] = one.seq
    keyed = {hit.seq: hit.id for hit in hits if isinstance(hit.event, Note) and hit.event.key is not None}
    if keyed:  # only the versions of one key share a chain
        roots.update({keyed[seq]: item.root_seq for seq, item in view.find_items(list(keyed)).items()})
    return Answer(hits, roots, head.next_seq - 1, head.epoch, head.ledger_id)
