"""An item found by a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from muniment.model.event import Content, Kind
from muniment.model.item import text_of


@dataclass(frozen=True, slots=True)
class Hit:
    """An item with its score and what each step of the ranking gave to it."""

    event: Content
    score: float
    """Comparable within one search only."""
    parts: Mapping[str, float]
    """`keyword`, `vector`: its own words and meaning; `keyword_context`, `vector_context`: lent by neighbouring turns;
    `speaker`: the bonus of the one speaker whom the query names. They sum up to the score; empty unless explained."""

    @property
    def id(self) -> UUID:
        return self.event.id

    @property
    def kind(self) -> Kind:
        return self.event.kind

    @property
    def text(self) -> str:
        return text_of(self.event)

    @property
    def seq(self) -> int:
        return -1 if self.event.seq is None else self.event.seq

    @property
    def timestamp(self) -> datetime:
        return self.event.timestamp

    @property
    def session_id(self) -> str | None:
        return self.event.session_id
