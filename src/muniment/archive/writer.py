"""The writing use cases inside one transaction of one ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from muniment.archive.engine import Engine
from muniment.archive.reader import Reader
from muniment.core.canonical import KIND_NUMBERS, SALT_BYTES, encode_object, kind_name
from muniment.core.project import Draft, Known, LiveNote, place
from muniment.errors import ConflictError, UsageError
from muniment.model.event import CONTENT_KINDS, Deletion, ErasedEvent, Event, Note, Recall
from muniment.model.rows import EventFilter, ItemRow, KeepRequest, StoredRequest
from muniment.ports.storage import Transaction

_CONTENT_NUMBERS: Final = frozenset(KIND_NUMBERS[kind] for kind in CONTENT_KINDS)


class Writer:
    """A ledger whose head is locked: what is found here is what the append will follow."""

    def __init__(self, engine: Engine, tx: Transaction) -> None:
        self._engine = engine
        self._tx = tx
        self.reader = Reader(tx)
        self.hashes = engine.hashes_of(tx.head)

    # --- Appending ----------------------------------------------------------------------------------------------------

    def append(self, drafts: Sequence[Draft], *, known: Known | None = None, now_us: int | None = None) -> list[Event]:
        """Store the drafts at the end of the ledger and move the projections with them; the stored events.

        `known` is what the placement has to know, where the caller has read and checked it already; `now_us` the time
        it is done, where the caller has read the clock.

        Raises: DuplicateEventError; UsageError for targets that cannot be recalled or deleted.
        """
        placement = place(
            self._tx.head,
            drafts,
            now_us=self._engine.clock() if now_us is None else now_us,
            salts=self._engine.entropy(SALT_BYTES * len(drafts)),
            hashes=self.hashes,
            known=self._read_known(drafts) if known is None else known,
        )
        self._tx.append(placement.rows, placement.edge)
        self._tx.apply(placement.changes)
        return placement.events

    def _read_known(self, drafts: Sequence[Draft]) -> Known:
        known = Known()
        for item in drafts:
            event = item.event
            if isinstance(event, Note) and event.key is not None and event.key not in known.live_by_key:
                live = self.find_live(event.key)
                if live is not None:
                    note, row = live
                    known.live_by_key[event.key] = LiveNote(note.id, row.seq, row.root_seq, row.created_us)
            elif isinstance(event, Recall):
                for target, row in self._find_recallable(event.recalled).items():
                    known.roots_by_id[target] = row.root_seq
            elif isinstance(event, Deletion):
                for target, row in self._find_deletable(event.targets).items():
                    known.seqs_by_id[target] = row.seq
        return known

    def _find_recallable(self, targets: Iterable[UUID]) -> Mapping[UUID, ItemRow]:
        """The items of a Recall: content of this scope, neither deleted nor erased; superseded is fine (A6)."""
        rows = self._find_content("recalled", targets)
        for target, row in rows.items():
            if row.deleted_seq is not None:
                raise UsageError(f"recalled {target} was deleted at seq {row.deleted_seq}; nothing was stored")
        return rows

    def _find_deletable(self, targets: Iterable[UUID]) -> Mapping[UUID, ItemRow]:
        """The items of a Deletion: content of this scope that is not erased; deleted again is fine (A7, A8)."""
        return self._find_content("cannot delete", targets)

    def _find_content(self, action: str, targets: Iterable[UUID]) -> Mapping[UUID, ItemRow]:
        wanted = list(dict.fromkeys(targets))
        events = self._tx.find_events([target.bytes for target in wanted])
        seqs: dict[UUID, int] = {}
        for target in wanted:
            event = events.get(target.bytes)
            if event is None:
                raise UsageError(f"{action} {target}: there is no such event in this scope; nothing was stored")
            if event.kind not in _CONTENT_NUMBERS:
                raise UsageError(f"{action} {target}: it is a {kind_name(event.kind)}, not content; nothing was stored")
            if event.body is None:
                raise UsageError(f"{action} {target}: its content was erased; nothing was stored")
            seqs[target] = event.seq
        rows = self._tx.find_items(list(seqs.values()))
        return {target: rows[seq] for target, seq in seqs.items()}

    # --- Finding ------------------------------------------------------------------------------------------------------

    def find_live(self, key: str) -> tuple[Note, ItemRow] | None:
        """The live note of a key, with its row."""
        key_hash = self.hashes.key(key)
        if key_hash is None:
            return None
        for row in self._tx.find_live_by_key(key_hash):
            note = self.reader.find_content(row.seq)
            if isinstance(note, Note) and note.key == key:
                return note, row
        return None

    def find_same(self, tier: str, text: str) -> Note | None:
        """The oldest live note of equal tier and text."""
        for row in self._tx.find_live_by_text(self.hashes.text(tier, text)):
            note = self.reader.find_content(row.seq)
            if isinstance(note, Note) and note.tier == tier and note.content == text:
                return note
        return None

    # --- Requests -----------------------------------------------------------------------------------------------------

    def find_answer(self, request_id: str, call: Mapping[str, JsonValue]) -> list[Event | ErasedEvent] | None:
        """What the same call with that request id stored before, or None if it is new.

        Raises: ConflictError if another call used the id.
        """
        request = self._tx.find_request(self.hashes.request(request_id))
        if request is None:
            return None
        # What was stored may be erased by now, and the fingerprint with it: then the name of the call has to do.
        same = request.fingerprint == self._fingerprint(call) if request.fingerprint else request.call == call["call"]
        if not same:
            raise ConflictError(
                f"request id {request_id!r} was used for another call: use a new id for a new call",
                expected=request_id,
                actual=request_id,
            )
        where = EventFilter(first=request.first_seq, last=request.first_seq + request.num_events - 1)
        return self.reader.decode(self._tx.read_events(where, limit=request.num_events))

    def keep_answer(self, request_id: str, call: Mapping[str, JsonValue], stored: Sequence[Event]) -> None:
        """Remember that this call answered with these events: one at least, and each next to the one before."""
        first_seq = stored[0].seq
        if first_seq is None:
            raise UsageError(f"event {stored[0].id} is not stored")
        request = StoredRequest(
            request_hash=self.hashes.request(request_id),
            fingerprint=self._fingerprint(call),
            first_seq=first_seq,
            num_events=len(stored),
            call=str(call["call"]),
        )
        self._tx.apply([KeepRequest(request)])

    def _fingerprint(self, call: Mapping[str, JsonValue]) -> bytes:
        return self.hashes.fingerprint(encode_object(call))
