"""One scope of an archive: everything an application does with one person's memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Final, TypeVar, cast
from uuid import UUID

from pydantic import JsonValue

from muniment.archive.engine import Engine
from muniment.archive.listing import Listing
from muniment.archive.reader import Reader, read_in_chunks
from muniment.archive.sources import EventSource, ItemSource
from muniment.archive.verify import Progress, verify_ledger
from muniment.archive.writer import Writer
from muniment.core.canonical import KIND_NUMBERS, from_us, to_us
from muniment.core.check import check_count, check_request_id
from muniment.core.fold import Fold
from muniment.core.merkle import root_of, unpack_edge
from muniment.core.project import TIER_NUMBERS, Draft, draft
from muniment.errors import ConflictError, UsageError
from muniment.model.event import (
    CONTENT_KINDS,
    KINDS,
    TIERS,
    Content,
    Deletion,
    Document,
    ErasedEvent,
    Event,
    EventBase,
    Message,
    Note,
    Recall,
    Tier,
    event_to_dict,
    to_utc,
)
from muniment.model.item import Item
from muniment.model.limits import ADD_MANY_MAX
from muniment.model.report import LedgerHead, VerifyReport
from muniment.model.rows import EventFilter
from muniment.model.scope import Scope
from muniment.model.state import MemoryState

C = TypeVar("C", Message, Document, Note)


class Unset(Enum):
    """A default that is told apart from None."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


class Memory:
    """The memory of one scope: its ledger, and what follows from it.

    A handle without state of its own: make as many as you like, share them between threads. `bool()` is True, also when
    the memory is empty.
    """

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    @property
    def scope(self) -> Scope:
        return self._scope

    def __repr__(self) -> str:
        return f"<Memory {self._scope.subject!r} of {self._scope.tenant!r}>"

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        """How many events the ledger has, whatever became of them."""
        head = self.head()
        return 0 if head is None else head.size

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
        request_id: str | None = None,
    ) -> Note:
        """Store a note; with `if_absent`, the live note of equal text and tier instead, if there is one.

        Raises: as `add`.
        """
        note = Note(
            id=self._engine.new_id(),
            timestamp=from_us(self._engine.clock()),
            content=text,
            tier=tier,
            labels=tuple(labels),
            key=key,
            summary=summary,
            metadata=metadata or {},
            derived_from=tuple(derived_from),
            retain_until=retain_until,
            session_id=session_id,
            source=source,
            actor=actor,
        )
        call = _call("remember", note=_note_call(note), if_absent=if_absent) if request_id is not None else {}

        def find(writer: Writer) -> Note | None:
            return writer.find_same(tier, text) if if_absent else None

        return cast("Note", self._append_one(note, request_id, call, find=find))

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
        given: dict[str, object] = {
            "tier": tier,
            "labels": tuple(labels) if not isinstance(labels, Unset) else labels,
            "summary": summary,
            "metadata": (metadata or {}) if not isinstance(metadata, Unset) else metadata,
            "retain_until": retain_until,
        }
        given = {name: value for name, value in given.items() if value is not UNSET}
        fields: dict[str, object] = {
            "id": self._engine.new_id(),
            "timestamp": from_us(self._engine.clock()),
            "content": text,
            "key": key,
            "derived_from": tuple(derived_from),
            "session_id": session_id,
            "source": source,
            "actor": actor,
            **given,
        }
        note = Note.model_validate(fields)
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
            return Note.model_validate({**fields, **kept})

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
        deletion = Deletion(
            id=self._engine.new_id(),
            timestamp=from_us(self._engine.clock()),
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

    def _append_one(
        self,
        event: Event,
        request_id: str | None,
        call: Mapping[str, JsonValue],
        *,
        find: Callable[[Writer], Event | None] | None = None,
        build: Callable[[Writer], Event] | None = None,
    ) -> Event:
        (stored,) = self._append([event], request_id, call, find=find, build=build)
        return stored

    def _append(
        self,
        events: Sequence[Event],
        request_id: str | None,
        call: Mapping[str, JsonValue],
        *,
        find: Callable[[Writer], Event | None] | None = None,
        build: Callable[[Writer], Event] | None = None,
    ) -> list[Event]:
        """Store the events in one transaction.

        `find` may answer with what is already stored instead; `build` may give the event its last fields from what the
        locked ledger holds.
        """
        check_count("add_many", len(events), ADD_MANY_MAX, "events")
        if request_id is not None:
            check_request_id(request_id)
        tokenizer = self._engine.tokenizer
        drafts = [draft(event, tokenizer) for event in events]
        durable = not all(isinstance(event, Recall) for event in events)
        with self._engine.storage.transaction(self._scope, self._engine.new_ledger(), durable=durable) as tx:
            writer = Writer(self._engine, tx)
            if request_id is not None:
                answer = writer.find_answer(request_id, call)
                if answer is not None:
                    return cast("list[Event]", answer)
            if find is not None and (found := find(writer)) is not None:
                return [found]
            if build is not None:
                drafts = [_rebuilt(drafts[0], build(writer), self._engine)]
            stored = writer.append(drafts)
            if request_id is not None:
                writer.keep_answer(request_id, call, stored)
        return stored

    # --- Reading ------------------------------------------------------------------------------------------------------

    def get(self, event_id: UUID | str) -> Event | ErasedEvent | None:
        """The event of this scope with that id, what is left of it if it was erased, or None."""
        wanted = find_id(event_id)
        if wanted is None:
            return None
        with self._engine.storage.snapshot(self._scope) as view:
            return None if view is None else Reader(view).find(wanted)

    def get_live(self, key: str) -> Note | None:
        """The live note of a key: neither deleted nor superseded."""
        with self._engine.storage.snapshot(self._scope) as view:
            if view is None:
                return None
            hashes = self._engine.hashes_of(view.head)
            reader = Reader(view)
            notes = [reader.find_content(row.seq) for row in view.find_live_by_key(cast("int", hashes.key(key)))]
        return next((note for note in notes if isinstance(note, Note) and note.key == key), None)

    def events(
        self,
        *,
        kind: str | None = None,
        session_id: str | None = None,
        after_seq: int | None = None,
        up_to_seq: int | None = None,
    ) -> Listing[Event | ErasedEvent]:
        """The events in seq order, as far as the ledger goes now; filters are AND-ed, `up_to_seq` is inclusive.

        Erased events answer to their kind and to seq, and to no session.

        Raises: UsageError for a kind that there is not.
        """
        kinds = None if kind is None else {_kind_number(kind, KINDS)}
        ledger_id, newest = self._pin()
        source = EventSource(
            self._engine,
            self._scope,
            ledger_id,
            first=0 if after_seq is None else max(0, _seq("after_seq", after_seq) + 1),
            last=newest if up_to_seq is None else min(newest, _seq("up_to_seq", up_to_seq)),
            kinds=kinds,
            session_id=session_id,
        )
        return Listing(source)

    def items(
        self,
        *,
        kinds: Collection[str] | None = None,
        tiers: Collection[str] | None = None,
        up_to_seq: int | None = None,
        at: datetime | None = None,
        hidden: bool = False,
    ) -> Listing[Item]:
        """The messages, documents and notes as they stood after an event or at a time, by query and without a fold.

        An auditor's look, recorded nowhere. `hidden` adds what was deleted or superseded by then.

        Raises: UsageError for both points at once, a naive time, or a kind or tier that there is not.
        Cost:   one page is one range read, whatever the length of the ledger.
        """
        ledger_id, newest = self._pin()
        at_seq = self._point(up_to_seq, at)
        at_seq = newest if at_seq is None else min(newest, at_seq)
        source = ItemSource(
            self._engine,
            self._scope,
            ledger_id,
            first=0,
            last=at_seq,
            at_seq=at_seq,
            kinds=None if kinds is None else {_kind_number(kind, CONTENT_KINDS) for kind in kinds},
            tiers=None if tiers is None else {_tier_number(tier) for tier in tiers},
            hidden=hidden,
        )
        return Listing(source)

    def replay(self, *, up_to_seq: int | None = None, at: datetime | None = None) -> MemoryState:
        """The state after event `up_to_seq`, or of everything recorded at or before `at`; by default, now.

        Raises: UsageError for both at once, or a naive time; IntegrityError for content that is not what was written.
        Cost:   O(events up to there), about 5 µs each, and the memory of the state.
        """
        last = self._point(up_to_seq, at)
        fold = Fold()
        with self._engine.storage.snapshot(self._scope) as view:
            if view is not None:
                reader = Reader(view)
                for row in read_in_chunks(view, EventFilter(last=last)):
                    fold.add(reader.decode_one(row))
        return fold.state()

    def seq_at(self, at: datetime) -> int | None:
        """The seq of the last event recorded at or before that time, or None.

        Raises: UsageError for a naive time.
        """
        moment = parse_instant("at", at)
        with self._engine.storage.snapshot(self._scope) as view:
            seq = -1 if view is None else view.find_seq_at(to_us(moment))
        return None if seq < 0 else seq

    def head(self) -> LedgerHead | None:
        """Where the ledger stands, or None if there is none."""
        with self._engine.storage.snapshot(self._scope) as view:
            if view is None:
                return None
            head = view.head
        root = root_of(unpack_edge(head.edge, head.next_seq))
        return LedgerHead(head.ledger_id.hex(), head.next_seq, root.hex())

    def verify(self, *, progress: Progress | None = None) -> VerifyReport:
        """Whether the ledger is what was written; see `verify_ledger`."""
        with self._engine.storage.snapshot(self._scope) as view:
            if view is None:
                return VerifyReport(ok=True, head=None, num_events=0, num_erased=0)
            return verify_ledger(view, progress)

    def _pin(self) -> tuple[bytes, int]:
        """The ledger there is now and its newest seq."""
        with self._engine.storage.snapshot(self._scope) as view:
            return (b"", -1) if view is None else (view.head.ledger_id, view.head.next_seq - 1)

    def _point(self, up_to_seq: int | None, at: datetime | None) -> int | None:
        if up_to_seq is not None and at is not None:
            raise UsageError("give up_to_seq or at, not both")
        if at is None:
            return None if up_to_seq is None else _seq("up_to_seq", up_to_seq)
        seq = self.seq_at(at)
        return -1 if seq is None else seq


_KEPT: Final = ("tier", "labels", "summary", "metadata", "retain_until")


def _rebuilt(old: Draft, event: Event, engine: Engine) -> Draft:
    return old if event is old.event else draft(event, engine.tokenizer)


def _check_type(event: object, kinds: Sequence[str]) -> None:
    kind = event.kind if isinstance(event, Message | Document | Note | Recall | Deletion) else None
    if kind not in kinds:
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


def parse_ids(targets: Iterable[UUID | str]) -> tuple[UUID, ...]:
    """The ids of a collection of ids or their texts.

    Raises: TypeError for a bare id; UsageError for a text that is no id, and for no ids at all.
    """
    if isinstance(targets, UUID | str | bytes):
        raise TypeError("a collection of ids is needed, not a bare one: pass [id]")
    ids = tuple(_parse_id(target) for target in targets)
    if not ids:
        raise UsageError("at least one id is needed")
    return ids


def _parse_id(target: UUID | str) -> UUID:
    found = find_id(target)
    if found is None:
        raise UsageError(f"{target!r} is not an id; nothing was stored")
    return found


def find_id(event_id: UUID | str) -> UUID | None:
    """The id of a text in any spelling that `uuid.UUID` accepts, or None."""
    if isinstance(event_id, UUID):
        return event_id
    try:
        return UUID(event_id)
    except (ValueError, AttributeError, TypeError):
        return None


def parse_instant(name: str, value: datetime) -> datetime:
    """The instant in UTC.

    Raises: UsageError for a naive time.
    """
    try:
        return to_utc(value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def _seq(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    return value


def _kind_number(kind: str, kinds: Sequence[str]) -> int:
    if kind not in kinds:
        raise UsageError(f"kind {kind!r} is not one of {', '.join(kinds)}")
    return KIND_NUMBERS[kind]


def _tier_number(tier: str) -> int:
    if tier not in TIERS:
        raise UsageError(f"tier {tier!r} is not one of {', '.join(TIERS)}")
    return TIER_NUMBERS[tier]
