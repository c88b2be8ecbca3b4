"""The notes of a scope as they stand, with what tells that they do no longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from muniment.archive.reader import Reader
from muniment.core.canonical import KIND_NUMBERS
from muniment.model.event import Event, Note
from muniment.model.rows import EventFilter, ItemFilter
from muniment.ports.storage import Snapshot

_CHANGING: Final = frozenset(KIND_NUMBERS[kind] for kind in ("note", "deletion", "erasure"))


@dataclass(frozen=True, slots=True)
class Standing:
    """The visible notes at one point."""

    ledger_id: str | None
    """32 hex digits; None for a scope without a ledger."""
    change_seq: int
    """The seq of the last event that added, hid or destroyed a note; -1 for none. Messages and reads do not count."""
    notes: tuple[Note, ...]
    """In ledger order."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change left: the point that the next one is compared with, and the stored events."""

    ledger_id: str | None
    change_seq: int
    events: tuple[Event, ...]


def standing_of(view: Snapshot | None) -> Standing:
    """The notes as they stand in a view. Cost: O(notes)."""
    if view is None:
        return Standing(None, -1, ())
    items = Reader(view).visible_items(ItemFilter(kinds={KIND_NUMBERS["note"]}))
    return Standing(view.head.ledger_id.hex(), _change_seq(view), tuple(cast("Note", item.event) for item in items))


def is_standing(standing: Standing, view: Snapshot) -> bool:
    """Whether nothing has changed since, as far as notes go."""
    if standing.ledger_id is None:
        return view.head.next_seq == 0
    return view.head.ledger_id.hex() == standing.ledger_id and _change_seq(view) == standing.change_seq


def _change_seq(view: Snapshot) -> int:
    rows = view.read_events(EventFilter(kinds=_CHANGING), limit=1, newest_first=True)
    return rows[0].seq if rows else -1
