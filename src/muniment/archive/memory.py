"""One scope of an archive: everything an application does with one person's memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from hashlib import sha256
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from pydantic import JsonValue

from muniment.archive.arguments import (
    build_event,
    check_reason,
    parse_collection,
    parse_ids,
    parse_seq,
    parse_text,
    parse_texts,
)
from muniment.archive.cleaning import CleanStep, check_clean_step, finish
from muniment.archive.collector import collector_paused
from muniment.archive.engine import Engine, NoLedgerError
from muniment.archive.eraser import Destroyed, Eraser, nothing_to_erase
from muniment.archive.ledger import Ledger, kind_numbers, tier_numbers
from muniment.archive.reader import Reader
from muniment.archive.rebuilder import rebuild_projections
from muniment.archive.search import Searcher, parse_moment, parse_request, plain_request
from muniment.archive.standing import Changed, Standing, is_standing, standing_of
from muniment.archive.vectors import OnEmbedError
from muniment.archive.writer import Writer
from muniment.core.canonical import from_us
from muniment.core.check import check_count, check_request_id
from muniment.core.project import Draft, Known, draft, embedded_text
from muniment.core.prompt import build_memory_block
from muniment.errors import ConflictError, UsageError
from muniment.model.event import (
    CONTENT_KINDS,
    EVENT_TYPES,
    Content,
    Deletion,
    Event,
    EventBase,
    Note,
    Recall,
    Tier,
    event_to_dict,
)
from muniment.model.hit import Hit
from muniment.model.item import Item
from muniment.model.limits import ADD_MANY_MAX
from muniment.model.receipt import Receipt
from muniment.model.rows import ItemFilter, KeepVectors, ModelRow, VectorRow
from muniment.model.scope import Scope
from muniment.ports.storage import Transaction

C = TypeVar("C", bound=Content)
E = TypeVar("E", bound=EventBase)


class Unset(Enum):
    """A default that is told apart from None."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET

Embedded = tuple[ModelRow, list[tuple[int, bytes]]]
"""A model, and vectors as codes with the index of the event that each belongs to."""


class Memory(Ledger):
    """The memory of one scope: its ledger, and everything that an application does with it."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        super().__init__(engine, scope)
        self._scope = scope

    @property
    def scope(self) -> Scope:
        return self._scope

    def __repr__(self) -> str:
        return f"<Memory {self._scope.subject!r} of {self._scope.tenant!r}>"

    # --- Writing ------------------------------------------------------------------------------------------------------

    def add(self, event: C, *, request_id: str | None = None) -> C:
        """Store a message, document or note; the stored copy, with its seq and the time of recording.

        A note with a key supersedes the live note of that key.

        Raises: TypeError for anything else; UsageError for an event that already has a place; LimitExceededError;
                DuplicateEventError; ConflictError for a request id that another call used.
        """
        (stored,) = self.add_many([event], request_id=request_id)
        return cast("C", stored)

    def add_many(self, events: Iterable[Content], *, request_id: str | None = None) -> list[Content]:
        """Store up to 10,000 messages, documents and notes in one transaction: all of them, or none.

        Raises: as `add`.
        """
        events = list(events)
        for event in events:
            _check_type(event, CONTENT_KINDS)
        if request_id is not None:
            check_request_id(request_id)
        if not events:
            return []
        call = _call("add_many", events=[_given_fields(event) for event in events]) if request_id is not None else {}
        return cast("list[Content]", self._append(events, request_id, call))

    def remember(
        self,
        text: str,
        *,
        tier: Tier = "archival",
        labels: Iterable[str] = (),
        key: str | None = None,
        summary: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        derived_from: Iterable[UUID] = (),
        retain_until: datetime | None = None,
        session_id: str | None = None,
        source: str = "unknown",
        actor: str | None = None,
        if_absent: bool = False,
        on_embed_error: OnEmbedError | None = None,
        request_id: str | None = None,
    ) -> Note:
        """Store a note; with `if_absent`, the live note of equal text and tier instead, if there is one.

        `on_embed_error="keyword"` stores it without a vector where the embedder fails, whatever the archive was opened
        with.

        Raises: as `add`.
        """
        note = self.build(
            Note,
            content=text,
            tier=tier,
            labels=parse_texts("labels", labels),
            key=key,
            summary=summary,
            metadata=metadata or {},
            derived_from=parse_collection("derived_from", derived_from),
            retain_until=retain_until,
            session_id=session_id,
            source=source,
            actor=actor,
        )
        call = _call("remember", note=_note_call(note), if_absent=if_absent) if request_id is not None else {}

        def find(writer: Writer) -> Note | None:
            return writer.find_same(tier, text) if if_absent else None

        return cast("Note", self._append_one(note, request_id, call, find=find, on_embed_error=on_embed_error))

    def put(
        self,
        key: str,
        text: str,
        *,
        tier: Tier | Unset = UNSET,
        labels: Iterable[str] | Unset = UNSET,
        summary: str | Unset | None = UNSET,
        metadata: Mapping[str, JsonValue] | Unset | None = UNSET,
        retain_until: datetime | Unset | None = UNSET,
        derived_from: Iterable[UUID] = (),
        session_id: str | None = None,
        source: str = "unknown",
        actor: str | None = None,
        expected_seq: int | Unset | None = UNSET,
        request_id: str | None = None,
    ) -> Note:
        """Store a note under a key in place of the live one, which stays in the ledger as superseded.

        Tier, labels, summary, metadata and retain_until are kept from the live note unless they are given.
        `expected_seq` is the seq of the version that the caller saw; `expected_seq=None` means that there must be none.

        Raises: ConflictError when another version stands there (`expected` and `actual` name both); else as `add`.
        """
        parse_text("key", key)
        if expected_seq is not None and not isinstance(expected_seq, Unset):
            parse_seq("expected_seq", expected_seq)
        given: dict[str, Any] = {
            "tier": tier,
            "labels": labels if isinstance(labels, Unset) else parse_texts("labels", labels),
            "summary": summary,
            "metadata": (metadata or {}) if not isinstance(metadata, Unset) else metadata,
            "retain_until": retain_until,
        }
        given = {name: value for name, value in given.items() if value is not UNSET}
        fields: dict[str, Any] = {
            "id": self._engine.new_id(),
            "timestamp": from_us(self._engine.clock()),
            "content": text,
            "key": key,
            "derived_from": parse_collection("derived_from", derived_from),
            "session_id": session_id,
            "source": source,
            "actor": actor,
            **given,
        }
        note = build_event(Note, **fields)
        call: dict[str, JsonValue] = {}
        if request_id is not None:
            expected = "unset" if isinstance(expected_seq, Unset) else expected_seq
            call = _call("put", note=_note_call(note), given=",".join(sorted(given)), expected_seq=expected)

        def inherit(writer: Writer) -> Note:
            live = writer.find_live(key)
            _check_version(key, expected_seq, None if live is None else live[0])
            if live is None:
                return note
            kept = {name: getattr(live[0], name) for name in _KEPT if name not in given}
            return build_event(Note, **fields, **kept)

        return cast("Note", self._append_one(note, request_id, call, build=inherit))

    def record(self, recall: Recall, *, request_id: str | None = None) -> Recall:
        """Store a read that happened elsewhere: the ids that entered a context, in order.

        Raises: UsageError for an id that is not content of this scope, or that is deleted or erased; else as `add`.
        """
        _check_type(recall, ("recall",))
        call = _call("record", recall=_given_fields(recall)) if request_id is not None else {}
        return cast("Recall", self._append_one(recall, request_id, call))

    def delete(
        self,
        targets: Iterable[UUID | str],
        reason: str,
        *,
        requested_by: str | None = None,
        session_id: str | None = None,
        source: str = "unknown",
        actor: str | None = None,
        request_id: str | None = None,
    ) -> Deletion:
        """Hide messages, documents and notes from every read that hands memory to a model; the ledger keeps them.

        Deleting again is accepted and recorded. `forget` and `erase` destroy instead.

        Raises: UsageError, with nothing stored, for no targets, an empty reason, and an id that is unknown here, not
                content, or erased; TypeError for a bare id in place of a collection.
        """
        deletion = self.build(
            Deletion,
            targets=parse_ids(targets),
            reason=reason,
            requested_by=requested_by,
            session_id=session_id,
            source=source,
            actor=actor,
        )
        call: dict[str, JsonValue] = {}
        if request_id is not None:
            fields = event_to_dict(deletion)
            call = _call("delete", **{name: fields[name] for name in fields if name not in ("id", "timestamp")})
        return cast("Deletion", self._append_one(deletion, request_id, call))

    def build(self, event_type: type[E], **fields: Any) -> E:
        """An event with an id and a timestamp of this archive's own randomness and clock; nothing is stored.

        Raises: UsageError for fields that the model refuses.
        """
        return build_event(
            event_type, **{"id": self._engine.new_id(), "timestamp": from_us(self._engine.clock()), **fields}
        )

    def standing(self) -> Standing:
        """The visible notes as they stand, with what `change` compares; recorded nowhere. Cost: O(notes)."""
        with self._engine.storage.snapshot(self._scope) as view:
            return standing_of(view)

    def change(self, decide: Callable[[Standing], Sequence[Note | Deletion]]) -> Changed:
        """Store what follows from the notes as they stand: compare-and-set over all of them.

        `decide` is asked outside the lock and its answer stored only if no note came, went or was replaced meanwhile;
        else it is asked again. Where it answers with nothing, nothing is stored and no ledger is begun.

        Raises: what `decide` raises; ConflictError when others kept changing the notes for ten tries; else as
                `add_many`.
        """
        tokenizer = self._engine.tokenizer
        for _ in range(_TRIES):
            standing = self.standing()
            events = list(decide(standing))
            for event in events:
                _check_type(event, ("note", "deletion"))
            if not events:
                return Changed(standing.ledger_id, standing.change_seq, ())
            check_count("change", len(events), ADD_MANY_MAX, "events")
            drafts = [draft(event, tokenizer) for event in events]
            embedded = self._embed(events, None)
            with self._engine.storage.transaction(self._scope, self._engine.new_ledger()) as tx:
                if is_standing(standing, tx):
                    stored = Writer(self._engine, tx).append(drafts)
                    _keep_vectors(tx, embedded, len(stored))
                    return Changed(tx.head.ledger_id.hex(), tx.head.next_seq - 1, tuple(stored))
                if tx.head.next_seq == 0:
                    raise ConflictError(
                        "ledger replaced: the scope was erased while it was changed", expected=standing.ledger_id
                    )
        raise ConflictError(f"the notes of this scope were changed by others {_TRIES} times in a row: retry")

    def _append_one(
        self,
        event: Event,
        request_id: str | None,
        call: Mapping[str, JsonValue],
        *,
        find: Callable[[Writer], Event | None] | None = None,
        build: Callable[[Writer], Event] | None = None,
        on_embed_error: OnEmbedError | None = None,
    ) -> Event:
        (stored,) = self._append([event], request_id, call, find=find, build=build, on_embed_error=on_embed_error)
        return stored

    def _append(
        self,
        events: Sequence[Event],
        request_id: str | None,
        call: Mapping[str, JsonValue],
        *,
        find: Callable[[Writer], Event | None] | None = None,
        build: Callable[[Writer], Event] | None = None,
        on_embed_error: OnEmbedError | None = None,
    ) -> list[Event]:
        """Store the events in one transaction.

        `find` may answer with what is already stored instead; `build` may give the event its last fields from what the
        locked ledger holds.
        """
        check_count("add_many", len(events), ADD_MANY_MAX, "events")
        if request_id is not None:
            check_request_id(request_id)
        tokenizer = self._engine.tokenizer
        with collector_paused(if_many=len(events)):
            drafts = [draft(event, tokenizer) for event in events]
        embedded = self._embed(events, on_embed_error)
        durable = not all(isinstance(event, Recall) for event in events)
        with self._engine.storage.transaction(self._scope, self._engine.new_ledger(), durable=durable) as tx:
            writer = Writer(self._engine, tx)
            if request_id is not None:
                answer = writer.find_answer(request_id, call)
                if answer is not None:
                    return cast("list[Event]", answer)
            if find is not None and (found := find(writer)) is not None:
                if request_id is not None:
                    writer.keep_answer(request_id, call, [found])
                return [found]
            if build is not None:
                drafts = [_rebuilt(drafts[0], build(writer), self._engine)]
            with collector_paused(if_many=len(drafts)):
                stored = writer.append(drafts)
            _keep_vectors(tx, embedded, len(stored))
            if request_id is not None:
                writer.keep_answer(request_id, call, stored)
        return stored

    def _embed(self, events: Sequence[Event], on_embed_error: OnEmbedError | None) -> Embedded | None:
        """The vectors of the content among the events, by index; None where it is stored without."""
        if not self._engine.vectors.has_embedder:
            return None
        texts = [(at, text) for at, event in enumerate(events) if (text := embedded_text(event))]
        found = self._engine.vectors.embed_items([text for _, text in texts], on_error=on_embed_error)
        if found is None:
            return None
        model, codes = found
        return model, [(at, code) for (at, _), code in zip(texts, codes, strict=True)]

    # --- Searching ----------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str = "auto",
        kinds: Collection[str] | None = None,
        tiers: Collection[str] | None = None,
        labels: Collection[str] | None = None,
        where: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        fusion: str = "convex",
        context: bool | None = None,
        as_of: int | datetime | None = None,
        explain: bool = False,
        source: str = "search",
        actor: str | None = None,
    ) -> list[Hit]:
        """The visible items that answer the query best, best first; and one Recall with exactly their ids.

        Everything is found inside this scope: the filters hold before anything is ranked and cut, and no other scope
        has any part in the ranking. `mode` is "keyword", "vector", "hybrid", or "auto": hybrid with an embedder and
        keyword without. `labels` are all wanted; `where` is a condition on metadata (`muniment.core.where`); `since` is
        inclusive and `until` exclusive, on timestamps. `context` and the speakers' names are used as suits the scope,
        unless `context` is given. `as_of`, a seq or a time, asks what the query would have found then: an auditor's
        look, which records nothing.

        An empty query finds nothing and records nothing; one without a word finds nothing and is recorded.

        Raises: UsageError, LimitExceededError; EmbeddingUnavailableError when vectors are asked for and there are none;
                ProviderError when the embedder fails and the archive was not opened with `on_embed_error="keyword"`.
        """
        request = parse_request(
            query,
            limit=limit,
            mode=mode,
            kinds=kinds,
            tiers=tiers,
            labels=labels,
            where=where,
            session_id=session_id,
            since=since,
            until=until,
            fusion=fusion,
            context=context,
            explain=explain,
        )
        moment = None if as_of is None else parse_moment(as_of)
        if not query:
            return []
        searcher = Searcher(self._engine)
        answer = searcher.search(self._scope, request, as_of=moment)
        if moment is not None or not self._engine.records_reads:
            return answer.hits
        record = request.to_record(answer.seq)
        _, hits = searcher.record(
            self._scope, answer, query=query, request=record, session_id=None, source=source, actor=actor
        )
        return hits

    def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        session_id: str | None = None,
        source: str = "unknown",
        actor: str | None = None,
    ) -> tuple[Recall, list[Content]]:
        """Search by the words of the query alone and record it, as one act: the Recall, and what it names, best first.

        `session_id` tags the Recall and filters nothing. Plain BM25, as the audit contract has it (A14, A15).

        Raises: UsageError for an empty query or a bad limit.
        """
        if query == "":
            raise UsageError("a recall needs a query of at least 1 character; nothing was stored")
        return Searcher(self._engine).recall(
            self._scope,
            plain_request(query, limit=limit),
            session_id=session_id,
            source=source,
            actor=actor,
        )

    def prompt(
        self,
        *,
        tiers: Collection[str] = ("core",),
        budget_chars: int | None = None,
        session_id: str | None = None,
        source: str = "prompt",
        actor: str | None = None,
    ) -> str:
        """The notes of these tiers as a block for a system prompt, oldest first; `""` when there are none.

        Recorded with exactly the ids shown; the Recall keeps the digest of the text, so that a replay can show that the
        same context comes out again.

        Raises: UsageError for a budget below 80 characters or a tier that there is not.
        """
        build_memory_block((), budget_chars)
        tiers = parse_texts("tiers", tiers)
        text = ""

        def show(items: Iterable[Item]) -> Sequence[Item]:
            nonlocal text
            found = list(items)
            block = build_memory_block([item.text for item in found], budget_chars)
            text = block.text
            return found[: block.shown]

        def describe() -> Mapping[str, JsonValue]:
            digest = sha256(text.encode()).hexdigest()
            return {"call": "prompt", "tiers": list(tiers), "budget_chars": budget_chars, "sha256": digest}

        self.hand_out(
            show, kinds=("note",), tiers=tiers, request=describe, session_id=session_id, source=source, actor=actor
        )
        return text

    def hand_out(
        self,
        choose: Callable[[Iterable[Item]], Sequence[Item]],
        *,
        query: str = "*",
        kinds: Collection[str] | None = None,
        tiers: Collection[str] | None = None,
        request: Callable[[], Mapping[str, JsonValue]] | None = None,
        session_id: str | None = None,
        source: str = "unknown",
        actor: str | None = None,
    ) -> list[Item]:
        """Hand visible items to a model or a caller, and record it, as one act.

        In one transaction `choose` is given the visible items, oldest first, and answers with those that are handed
        out, in order; one Recall names exactly these. `request` is asked afterwards what to write of how the read was
        made.

        Raises: LimitExceededError for more than 10,000 items, with nothing recorded.
        Cost:   O(items of these kinds and tiers), while the writers of the scope wait.
        """
        where = ItemFilter(kinds=kind_numbers(kinds), tiers=tier_numbers(tiers))
        engine = self._engine
        roots: dict[UUID, int] = {}

        def offered(reader: Reader) -> Iterator[Item]:
            for item in reader.visible_items(where):
                roots[item.id] = item.root_seq
                yield item

        def chosen_from(reader: Reader) -> list[Item]:
            chosen = list(choose(offered(reader)))
            for item in chosen:
                if not isinstance(item, Item) or item.id not in roots:  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise UsageError("choose answered with what it was not given; nothing was recorded")
            return chosen

        if not engine.records_reads:
            with engine.storage.snapshot(self._scope) as view:
                return [] if view is None else chosen_from(Reader(view))
        with engine.storage.transaction(self._scope, engine.new_ledger(), durable=False) as tx:
            writer = Writer(engine, tx)
            chosen = chosen_from(writer.reader)
            recall = self.build(
                Recall,
                query=query,
                recalled=tuple([item.id for item in chosen]),
                request={} if request is None else request(),
                session_id=session_id,
                source=source,
                actor=actor,
            )
            known = Known(roots_by_id={item.id: roots[item.id] for item in chosen})
            writer.append([draft(recall, engine.tokenizer)], known=known)
            head = tx.head
        engine.indexes.pass_over(head.ledger_id, head.next_seq - 1, head.next_seq)
        return chosen

    # --- Mending ------------------------------------------------------------------------------------------------------

    def rebuild(self) -> int:
        """Derive items and usage anew from the ledger, in one transaction; how many events that took.

        The rows are equal to those that were there, unless somebody meddled.

        Cost: about 40 µs an event, while writers of the archive wait.
        """
        with self._engine.storage.transaction(self._scope, self._engine.new_ledger()) as tx:
            return rebuild_projections(self._engine, tx)

    # --- Destroying ---------------------------------------------------------------------------------------------------

    def forget(
        self,
        targets: Iterable[UUID | str],
        *,
        derived: bool = False,
        reason: str = "forgotten",
        requested_by: str | None = None,
        clean: CleanStep = "now",
    ) -> Receipt:
        """Destroy messages, documents, notes or recalls; of a note with a key, every version that ever held the key.

        With `derived`, also what names one of them in `derived_from`, and what was derived from that. What is already
        erased is passed over; the receipt says what was really destroyed.

        The content is unreachable when the transaction ends. `clean="now"` also runs the clean step; `"later"` leaves
        it to `Archive.clean`, once for many.

        Raises: UsageError, with nothing destroyed, for an id that is unknown here or that is a Deletion or an Erasure.
        Cost:   milliseconds, and with `clean="now"` about 5 s per GB of the archive.
        """
        ids = parse_ids(targets)
        check_reason(reason, requested_by)

        def destroy(eraser: Eraser) -> Destroyed:
            rows = eraser.choose_targets(ids, derived=derived)
            return eraser.erase_events(rows, action="forget", reason=reason, requested_by=requested_by)

        receipt = self._destroy(destroy, clean)
        if receipt is None:
            raise UsageError(f"cannot forget {ids[0]}: there is no such event in this scope; nothing was destroyed")
        return receipt

    def erase(self, *, reason: str = "erased", requested_by: str | None = None, clean: CleanStep = "now") -> Receipt:
        """Destroy everything of this scope and the scope's name; what is written afterwards begins a new ledger.

        The envelopes stay as a ledger without a name, so that what was there can still be proved to have been there.
        `reason` and `requested_by` stand in the receipt only.

        Cost: as `forget`.
        """
        check_reason(reason, requested_by)

        def destroy(eraser: Eraser) -> Destroyed:
            return eraser.erase_scope(reason=reason, requested_by=requested_by)

        return self._destroy(destroy, clean) or nothing_to_erase(self._engine, "erase", reason, requested_by)

    def erase_session(
        self,
        session_id: str,
        *,
        reason: str = "session erased",
        requested_by: str | None = None,
        clean: CleanStep = "now",
    ) -> Receipt:
        """Destroy the messages, documents, notes and recalls of one session of this scope.

        Cost: as `forget`.
        """

        parse_text("session_id", session_id)
        check_reason(reason, requested_by)

        def destroy(eraser: Eraser) -> Destroyed:
            rows = eraser.choose_session(session_id)
            return eraser.erase_events(rows, action="erase_session", reason=reason, requested_by=requested_by)

        receipt = self._destroy(destroy, clean)
        return receipt or nothing_to_erase(self._engine, "erase_session", reason, requested_by)

    def _destroy(self, act: Callable[[Eraser], Destroyed], clean: CleanStep) -> Receipt | None:
        """Destroy in one transaction, then clean; None where the scope has no ledger, and then none is begun."""
        check_clean_step(clean)
        try:
            with self._engine.storage.transaction(self._scope, self._engine.new_ledger()) as tx:
                if tx.head.next_seq == 0:
                    raise NoLedgerError
                destroyed = act(Eraser(self._engine, tx))
        except NoLedgerError:
            return None
        if destroyed.receipt.whole_scope:
            self._engine.forget_ledger(bytes.fromhex(destroyed.receipt.ledger_id or ""))
        if clean == "later" or destroyed.receipt.state == "clean":
            return destroyed.receipt
        (receipt,) = finish(self._engine, [destroyed.receipt], destroyed.markers)
        return receipt


def _keep_vectors(tx: Transaction, embedded: Embedded | None, num_stored: int) -> None:
    """Store the vectors of the events that were appended last."""
    if embedded is None:
        return
    model, codes = embedded
    first = tx.head.next_seq - num_stored
    tx.apply([KeepVectors([VectorRow(first + at, model.model_no, code) for at, code in codes])])


_TRIES: Final = 10
_KEPT: Final = ("tier", "labels", "summary", "metadata", "retain_until")


def _rebuilt(old: Draft, event: Event, engine: Engine) -> Draft:
    return old if event is old.event else draft(event, engine.tokenizer)


def _check_type(event: object, kinds: Sequence[str]) -> None:
    if type(event) not in [EVENT_TYPES[kind] for kind in kinds]:
        wanted = " or ".join(name.capitalize() for name in kinds)
        raise TypeError(f"a {wanted} is needed, not {type(event).__name__}; nothing was stored")


def _check_version(key: str, expected_seq: int | Unset | None, live: Note | None) -> None:
    if isinstance(expected_seq, Unset):
        return
    actual = None if live is None else live.seq
    if actual != expected_seq:
        found = "nothing stands there" if actual is None else f"the version at seq {actual} stands there"
        wanted = "no version" if expected_seq is None else f"the version at seq {expected_seq}"
        raise ConflictError(f"key {key!r}: expected {wanted}, but {found}", expected=expected_seq, actual=actual)


def _call(name: str, **arguments: JsonValue) -> dict[str, JsonValue]:
    return {"call": name, **arguments}


def _given_fields(event: EventBase) -> JsonValue:
    """The fields the caller gave: a retry may build the event anew, with another id and another time."""
    fields = event_to_dict(cast("Event", event))
    given = event.model_fields_set
    return {name: value for name, value in fields.items() if name in given or name == "kind"}


def _note_call(note: Note) -> JsonValue:
    return {name: value for name, value in event_to_dict(note).items() if name not in ("id", "timestamp")}
