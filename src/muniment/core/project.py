"""From events to rows: what an append stores, and what follows from it for the projections.

Two steps. `draft` does everything that needs no place, so it runs before the lock is taken. `place` gives each draft
its seq, digest and leaf, and says as data what changes for items and usage; one `Projector` serves an append and a
rebuild, so that they cannot differ.

Source: `engine.md` E1, E6, E10, E16.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from typing import Final, NamedTuple
from uuid import UUID

from muniment.core.canonical import (
    KIND_NUMBERS,
    SALT_BYTES,
    Envelope,
    digest_of,
    encode_content,
    encode_links,
    from_us,
    leaf_of,
    to_us,
)
from muniment.core.check import check_event
from muniment.core.merkle import extend_edge, pack_edge, unpack_edge
from muniment.core.text import TermHasher, Tokenizer, analyse
from muniment.errors import DuplicateEventError, UsageError
from muniment.model.event import Deletion, Document, Erasure, Event, Message, Note, Recall, build_trusted, with_place
from muniment.model.item import text_of
from muniment.model.rows import (
    AddItems,
    Change,
    CountUses,
    Head,
    HideItems,
    IndexText,
    ItemRow,
    NewEvent,
    SupersedeItem,
    TextRow,
    Use,
)

TIER_NUMBERS: Final[Mapping[str, int]] = {"core": 1, "archival": 2, "insight": 3}
"""The number of a tier in an item; 0 stands for what has none."""

_HASH_CACHE_MAX: Final = 4_096


class Hashes:
    """The salted hashes of one ledger: of terms, and of the fields that rows are found by.

    Each field has its own key, so that a session called like a speaker hashes to another number.
    """

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._terms = TermHasher(salt)
        self._known: dict[tuple[bytes, str], int] = {}

    def terms(self, terms: Sequence[str]) -> bytes:
        """One 64-bit hash per term, in order."""
        return self._terms.hash_terms(terms)

    @property
    def term_hasher(self) -> TermHasher:
        return self._terms

    def session(self, session_id: str | None) -> int | None:
        return None if session_id is None else self._number(b"session", session_id)

    def speaker(self, speaker: str) -> int:
        return self._number(b"speaker", speaker)

    def key(self, key: str | None) -> int | None:
        return None if key is None else self._number(b"key", key)

    def text(self, tier: str, text: str) -> int:
        """Of a note's tier and text, to find the live note of equal text."""
        return self._hash(b"text/" + tier.encode(), text)

    def request(self, request_id: str) -> bytes:
        return sha256(self._salt + request_id.encode()).digest()

    def fingerprint(self, call: bytes) -> bytes:
        return sha256(self._salt + call).digest()

    def _number(self, field_name: bytes, text: str) -> int:
        known = self._known.get((field_name, text))
        if known is None:
            known = self._hash(field_name, text)
            if len(self._known) >= _HASH_CACHE_MAX:
                self._known = {}
            self._known[field_name, text] = known
        return known

    def _hash(self, field_name: bytes, text: str) -> int:
        digest = blake2b(text.encode(), digest_size=8, key=self._salt, person=field_name.ljust(16, b"\0")[:16]).digest()
        return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that may be stored, with everything that can be worked out before it has a place."""

    event: Event
    body: bytes
    terms: Sequence[str]


def draft(event: Event, tokenizer: Tokenizer) -> Draft:
    """Check an event and work out its content bytes and terms.

    Raises: LimitExceededError, UsageError
    """
    check_event(event)
    try:
        return Draft(event, encode_content(event), analyse_event(event, tokenizer))
    except (TypeError, AttributeError, ValueError) as error:
        # `model_copy(update=…)` and `model_construct` let through what the model refuses.
        raise UsageError(f"event {event.id} has a field that its model refuses: build it anew") from error


def analyse_event(event: Event, tokenizer: Tokenizer) -> Sequence[str]:
    """The terms an event is found by; none for what is not content."""
    text = searched_text(event)
    return () if text is None else analyse(text, tokenizer)


def searched_text(event: Event) -> str | None:
    """The text an event is searched by: audit.md A14."""
    match event:
        case Message():
            return f"{event.speaker}\n{event.content}"
        case Document():
            return f"{event.name}\n{event.text}"
        case Note():
            return event.content if event.summary is None else f"{event.content}\n{event.summary}"
        case _:
            return None


def embedded_text(event: Event) -> str | None:
    """The text whose vector an event is found by: what was said, brought or learned, without speaker or summary."""
    return text_of(event) if isinstance(event, Message | Document | Note) else None


# --- Placing ----------------------------------------------------------------------------------------------------------


class LiveNote(NamedTuple):
    """The live note of a key: what its successor needs to know of it."""

    note_id: UUID
    seq: int
    root_seq: int
    created_us: int


@dataclass(slots=True)
class Known:
    """What a placement has to know of the ledger, read in the same transaction."""

    live_by_key: dict[str, LiveNote] = field(default_factory=dict[str, LiveNote])
    """The live note of each key that an event takes over."""
    roots_by_id: dict[UUID, int] = field(default_factory=dict[UUID, int])
    """The chain of each item that an event recalls; what was erased is not there and counts no more."""
    seqs_by_id: dict[UUID, int] = field(default_factory=dict[UUID, int])
    """The seq of each item that an event deletes; what was erased is not there."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What an append writes: rows, the new edge, the changes of the projections, and the stored events."""

    rows: list[NewEvent]
    edge: bytes
    changes: list[Change]
    events: list[Event]


def place(head: Head, drafts: Sequence[Draft], *, now_us: int, salts: bytes, hashes: Hashes, known: Known) -> Placement:
    """Give each draft its place at the end of the ledger.

    Shapes: `salts` has 16 bytes per draft.
    Raises: DuplicateEventError if two drafts have one id.
    Cost:   O(drafts); pure.
    """
    recorded_us = max(now_us, head.recorded_us)
    recorded_at = from_us(recorded_us)
    _check_ids(drafts)
    rows: list[NewEvent] = []
    events: list[Event] = []
    projector = Projector(hashes, known)
    ledger_id = head.ledger_id
    for index, item in enumerate(drafts):
        seq = head.next_seq + index
        event = with_place(projector.link(item.event), seq, recorded_at)
        salt = salts[index * SALT_BYTES : (index + 1) * SALT_BYTES]
        envelope = Envelope(
            seq,
            event.id.bytes,
            KIND_NUMBERS[event.kind],
            recorded_us,
            digest_of(salt, item.body),
            encode_links(event),
        )
        leaf = leaf_of(ledger_id, envelope)
        rows.append(NewEvent(*envelope, leaf, salt, item.body, hashes.session(event.session_id)))
        events.append(event)
        projector.add(event, item.terms)
    edge = extend_edge(unpack_edge(head.edge, head.next_seq), head.next_seq, [row.leaf for row in rows])
    return Placement(rows, pack_edge(edge), projector.changes(), events)


def _check_ids(drafts: Sequence[Draft]) -> None:
    if len(drafts) > 1 and len({item.event.id for item in drafts}) != len(drafts):
        twice = next(key for key, times in Counter(item.event.id for item in drafts).items() if times > 1)
        raise DuplicateEventError(str(twice))


class Projector:
    """Collects what a run of stored events changes in the projections, in order."""

    def __init__(self, hashes: Hashes, known: Known) -> None:
        self._hashes = hashes
        self._known = known
        self._changes: list[Change] = []
        self._items: list[ItemRow] = []
        self._texts: list[TextRow] = []

    def link(self, event: Event) -> Event:
        """The event with the links that only the store sets: a keyed note supersedes the live note of its key."""
        if not isinstance(event, Note):
            return event
        if event.supersedes is not None:
            raise UsageError(f"note {event.id} names what it supersedes: only the store sets that, by its key")
        live = None if event.key is None else self._known.live_by_key.get(event.key)
        if live is None:
            return event
        return build_trusted(Note, {**event.__dict__, "supersedes": live.note_id})

    def add(self, event: Event, terms: Sequence[str]) -> None:
        """Take in the next stored event."""
        match event:
            case Message() | Document() | Note():
                self._add_item(event, terms)
            case Deletion():
                self.hide(event.targets, _seq_of(event))
            case Recall():
                self._count(event)
            case Erasure():
                pass

    def _add_item(self, event: Message | Document | Note, terms: Sequence[str]) -> None:
        hashes = self._hashes
        seq = _seq_of(event)
        timestamp_us = to_us(event.timestamp)
        tier, root_seq, created_us = 0, seq, timestamp_us
        speaker_hash = key_hash = text_hash = None
        if isinstance(event, Message):
            speaker_hash = hashes.speaker(event.speaker)
        elif isinstance(event, Note):
            tier = TIER_NUMBERS[event.tier]
            key_hash = hashes.key(event.key)
            text_hash = hashes.text(event.tier, event.content)
            if event.key is not None:
                root_seq, created_us = self._take_key(event, event.key, seq, timestamp_us)
        self._known.seqs_by_id[event.id] = seq
        self._known.roots_by_id[event.id] = root_seq
        self._texts.append(TextRow(seq, terms))
        self._items.append(
            ItemRow(
                seq=seq,
                kind=KIND_NUMBERS[event.kind],
                tier=tier,
                timestamp_us=timestamp_us,
                created_us=created_us,
                root_seq=root_seq,
                deleted_seq=None,
                superseded_seq=None,
                session_hash=hashes.session(event.session_id),
                speaker_hash=speaker_hash,
                key_hash=key_hash,
                text_hash=text_hash,
                terms=hashes.terms(terms),
                retain_us=None if event.retain_until is None else to_us(event.retain_until),
            )
        )

    def _take_key(self, note: Note, key: str, seq: int, timestamp_us: int) -> tuple[int, int]:
        """Make the note the live one of its key; the root of its chain and when that was first written."""
        live = self._known.live_by_key.get(key)
        root_seq, created_us = (seq, timestamp_us) if live is None else (live.root_seq, live.created_us)
        if live is not None:
            self._flush()
            self._changes.append(SupersedeItem(live.seq, seq))
        self._known.live_by_key[key] = LiveNote(note.id, seq, root_seq, created_us)
        return root_seq, created_us

    def _forget_live(self, targets: Sequence[UUID]) -> None:
        gone = set(targets)
        live_by_key = self._known.live_by_key
        for key in [key for key, live in live_by_key.items() if live.note_id in gone]:
            del live_by_key[key]

    def _count(self, recall: Recall) -> None:
        roots = map(self._known.roots_by_id.get, recall.recalled)
        times = Counter(root for root in roots if root is not None)
        if times:
            last_us = to_us(recall.timestamp)
            self._changes.append(CountUses([Use(root, number, last_us) for root, number in times.items()]))

    def _flush(self) -> None:
        if self._items:
            self._changes.append(AddItems(self._items))
            self._items = []

    def hide(self, targets: Sequence[UUID], at_seq: int) -> None:
        """Take in that the event at `at_seq` hid these items."""
        self._flush()
        places = map(self._known.seqs_by_id.get, dict.fromkeys(targets))
        self._changes.append(HideItems([seq for seq in places if seq is not None], at_seq))
        self._forget_live(targets)

    def changes(self) -> list[Change]:
        """What follows from the events taken in since the last call."""
        self._flush()
        if self._texts:
            self._changes.append(IndexText(self._texts))
            self._texts = []
        changes, self._changes = self._changes, []
        return changes


def _seq_of(event: Event) -> int:
    if event.seq is None:
        raise UsageError(f"event {event.id} has no place")
    return event.seq
