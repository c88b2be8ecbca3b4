"""A message, document or note as it stood at one point of its ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from muniment.model.event import Content, Document, Message


@dataclass(frozen=True, slots=True)
class Item:
    """An item with what happened to it up to the point that was asked for."""

    event: Content
    created_at: datetime
    """The timestamp of the first version along a chain of one key; else its own."""
    usage_count: int
    """How often the chain was handed out, by all Recalls that still have their content."""
    last_used_at: datetime | None
    deleted_seq: int | None
    """The seq of the Deletion that hid it, if that is not after the point."""
    superseded_seq: int | None
    """The seq of the note that took its key, if that is not after the point."""
    root_seq: int
    """The seq of the first version along a chain of one key; else its own."""

    @property
    def id(self) -> UUID:
        return self.event.id

    @property
    def seq(self) -> int:
        return -1 if self.event.seq is None else self.event.seq

    @property
    def visible(self) -> bool:
        return self.deleted_seq is None and self.superseded_seq is None

    @property
    def text(self) -> str:
        """What was said, brought or learned."""
        return text_of(self.event)


def text_of(event: Content) -> str:
    """The text of a message, document or note, without its speaker, name or summary."""
    if isinstance(event, Document):
        return event.text
    return event.content


def title_of(event: Content) -> str | None:
    """Who said it, what it is called, or the key it stands under."""
    if isinstance(event, Message):
        return event.speaker
    if isinstance(event, Document):
        return event.name
    return event.key
