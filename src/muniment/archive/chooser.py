"""Which events a destruction takes, found in one view of a ledger.

Source: `engine.md` E20, E24.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from muniment.archive.reader import Reader, read_in_chunks
from muniment.core.canonical import KIND_NUMBERS, kind_name
from muniment.core.project import Hashes
from muniment.errors import UsageError
from muniment.model.event import Note
from muniment.model.rows import EventFilter, ItemFilter, StoredEvent
from muniment.ports.storage import Snapshot

_ERASABLE: Final = frozenset(KIND_NUMBERS[kind] for kind in ("message", "document", "note", "recall"))
_NOTE: Final = KIND_NUMBERS["note"]
_RECALL: Final = KIND_NUMBERS["recall"]


class Chooser:
    """Finds the events to destroy; inside the transaction that destroys them, or in a snapshot for a dry run."""

    def __init__(self, view: Snapshot, hashes: Hashes) -> None:
        self._view = view
        self._hashes = hashes
        self.reader = Reader(view)

    def choose_targets(self, targets: Sequence[UUID], *, derived: bool) -> list[StoredEvent]:
        """The targets that still have content, of a keyed note with every version that ever held the key.

        Raises: UsageError for an id that is unknown here, or that is a Deletion or an Erasure.
        """
        found = self._view.find_events([target.bytes for target in targets])
        chosen: dict[int, StoredEvent] = {}
        for target in targets:
            row = found.get(target.bytes)
            if row is None:
                raise UsageError(f"cannot forget {target}: there is no such event in this scope; nothing was destroyed")
            if row.kind not in _ERASABLE:
                raise UsageError(f"cannot forget {target}: it is a {kind_name(row.kind)}; nothing was destroyed")
            self._take(row, chosen)
        if derived:
            self._take_derived(chosen)
        return [chosen[seq] for seq in sorted(chosen)]

    def _take(self, row: StoredEvent, chosen: dict[int, StoredEvent], *, later: bool = True) -> None:
        """Choose an event; of a note with a key also the other versions, so that no older one comes back.

        Without `later`, only those before it.
        """
        if row.body is None or row.seq in chosen:
            return
        chosen[row.seq] = row
        if row.kind != _NOTE:
            return
        note = self.reader.decode_one(row)
        key_hash = self._hashes.key(note.key) if isinstance(note, Note) else None
        if key_hash is not None:
            for item in self._view.find_by_key(key_hash):
                if item.seq > row.seq and not later:
                    break
                for version in self._view.read_events(EventFilter(first=item.seq, last=item.seq), limit=1):
                    chosen.setdefault(version.seq, version)

    def _take_derived(self, chosen: dict[int, StoredEvent]) -> None:
        """What was derived from what goes, and from that, to the end."""
        notes = [
            (row, note)
            for row in read_in_chunks(self._view, EventFilter(kinds={_NOTE}))
            if row.body is not None and isinstance(note := self.reader.decode_one(row), Note) and note.derived_from
        ]
        growing = True
        while growing:
            gone = {UUID(bytes=row.event_id) for row in chosen.values()}
            before = len(chosen)
            for row, note in notes:
                if not gone.isdisjoint(note.derived_from):
                    self._take(row, chosen)
            growing = len(chosen) > before

    def find_expired(self, now_us: int, *, hidden: bool) -> list[StoredEvent]:
        """The items that need not be kept after that instant.

        With `hidden`, deleted and superseded ones too, and the versions before an expired one.
        """
        where = ItemFilter(retained_until_us=now_us, hidden=hidden)
        chosen: dict[int, StoredEvent] = {}
        for item in self._view.read_items(where, limit=self._view.count_items(where)):
            for row in self._view.read_events(EventFilter(first=item.seq, last=item.seq), limit=1):
                if hidden:
                    self._take(row, chosen, later=False)
                else:
                    chosen[row.seq] = row
        return [chosen[seq] for seq in sorted(chosen)]

    def find_recalls_before(self, recorded_us: int | None) -> list[StoredEvent]:
        """The reads recorded before that instant that still have their content."""
        if recorded_us is None:
            return []
        where = EventFilter(last=self._view.find_seq_at(recorded_us - 1), kinds={_RECALL})
        return [row for row in read_in_chunks(self._view, where) if row.body is not None]

    def choose_session(self, session_id: str) -> list[StoredEvent]:
        """Everything of one session that can be destroyed, with all versions of its keyed notes."""
        where = EventFilter(kinds=_ERASABLE, session_hash=self._hashes.session(session_id))
        chosen: dict[int, StoredEvent] = {}
        for row in list(read_in_chunks(self._view, where)):
            event = self.reader.decode_one(row)
            if getattr(event, "session_id", None) == session_id:
                self._take(row, chosen)
        return [chosen[seq] for seq in sorted(chosen)]
