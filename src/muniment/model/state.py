"""What a memory knew at one point of its ledger: the result of the fold, compared by value and read-only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, TypeVar
from uuid import UUID

from muniment.model.event import Content, Deletion, Document, ErasedEvent, Message, Note

C = TypeVar("C", Message, Document, Note)

_MAPPINGS: Final = frozenset({"deleted", "superseded", "erased", "recall_stats"})
_EMPTY: Final[Mapping[UUID, Any]] = MappingProxyType({})


def _no_entries() -> Mapping[UUID, Any]:
    return _EMPTY


@dataclass(frozen=True, slots=True)
class RecallStats:
    """How often an item was handed out, and the timestamp of the last Recall in ledger order that did so."""

    num_recalled: int = 0
    last_recalled_at: datetime | None = None


@dataclass(frozen=True)
class MemoryState:
    """The state after one event of a ledger. Items are in ledger order; hidden items stay in their tuples.

    Source: `audit.md` section 1, A17 to A19.
    """

    messages: tuple[Message, ...] = ()
    documents: tuple[Document, ...] = ()
    notes: tuple[Note, ...] = ()
    deleted: Mapping[UUID, Deletion | ErasedEvent] = field(default_factory=_no_entries)
    """A hidden item's id -> the Deletion that hid it first, or what is left of that Deletion."""
    superseded: Mapping[UUID, UUID] = field(default_factory=_no_entries)
    """A note's id -> the id of the note that took its key."""
    erased: Mapping[UUID, int] = field(default_factory=_no_entries)
    """A destroyed event's id -> the seq of the Erasure that destroyed it, which may be above `last_seq`."""
    recall_stats: Mapping[UUID, RecallStats] = field(default_factory=_no_entries)
    last_seq: int | None = None

    def is_deleted(self, event_id: UUID) -> bool:
        """Whether a Deletion hid it."""
        return event_id in self.deleted

    def is_visible(self, event_id: UUID) -> bool:
        """Whether no Deletion hid it and no other note took its key."""
        return event_id not in self.deleted and event_id not in self.superseded

    @property
    def visible_messages(self) -> tuple[Message, ...]:
        return self._visible(self.messages)

    @property
    def visible_documents(self) -> tuple[Document, ...]:
        return self._visible(self.documents)

    @property
    def visible_notes(self) -> tuple[Note, ...]:
        return self._visible(self.notes)

    @property
    def visible(self) -> tuple[Content, ...]:
        """Every visible item, in ledger order."""
        items: list[Content] = [*self.visible_messages, *self.visible_documents, *self.visible_notes]
        return tuple(sorted(items, key=lambda item: -1 if item.seq is None else item.seq))

    def _visible(self, items: tuple[C, ...]) -> tuple[C, ...]:
        if not self.deleted and not self.superseded:
            return items
        return tuple([item for item in items if self.is_visible(item.id)])

    def __getstate__(self) -> dict[str, Any]:
        """For pickling and copying: a read-only view cannot be, what it shows can."""
        return {name: dict(value) if name in _MAPPINGS else value for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(
            {name: MappingProxyType(value) if name in _MAPPINGS else value for name, value in state.items()}
        )

    def __hash__(self) -> int:
        return hash((self.last_seq, len(self.messages), len(self.documents), len(self.notes)))
