"""Events by what a person types: an id, or a seq of the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from muniment.archive import Archive, Memory
from muniment.archive.memory import find_id
from muniment.archive.reader import Reader
from muniment.cli.opening import memory_of
from muniment.cli.text import name_of
from muniment.errors import NotFoundError, UsageError
from muniment.model.event import ErasedEvent, Event
from muniment.model.item import Item
from muniment.model.scope import Scope

_SEQ: Final = re.compile("[0-9]{1,10}")


def get_event(memory: Memory, reference: str) -> Event | ErasedEvent:
    """The event of this ledger with that id or seq.

    Raises: NotFoundError; UsageError for a text that is neither.
    """
    seq, event_id = parse_reference(reference)
    found = memory.get(event_id) if event_id is not None else find_by_seq(memory, seq)
    if found is None:
        raise NotFoundError(f"there is no event {reference} in {name_of(memory.scope)}")
    return found


def parse_reference(reference: str) -> tuple[int, UUID | None]:
    """The seq, or the id, that a text means: a number of up to ten digits is a seq.

    Raises: UsageError for a text that is neither.
    """
    if _SEQ.fullmatch(reference):
        return int(reference), None
    event_id = find_id(reference)
    if event_id is None:
        raise UsageError(f"{reference!r} is neither an event's id nor a seq")
    return -1, event_id


def find_by_seq(memory: Memory, seq: int) -> Event | ErasedEvent | None:
    """The event of this ledger at that seq."""
    return next(iter(memory.events(after_seq=seq - 1, up_to_seq=seq)), None)


def find_everywhere(archive: Archive, event_id: UUID) -> Iterator[tuple[Scope, Event | ErasedEvent]]:
    """The events with that id in all ledgers: an id is unique in one. Cost: a look-up per scope."""
    for tenant in archive.tenants():
        for info in tenant.scopes():
            found = memory_of(archive, info.scope).get(event_id)
            if found is not None:
                yield info.scope, found


def find_item(archive: Archive, scope: Scope, seq: int) -> Item | None:
    """The message, document or note at that seq with what happened to it since; None for other or erased events."""
    with archive.storage.snapshot(scope) as view:
        row = None if view is None else view.find_items([seq]).get(seq)
        if view is None or row is None:
            return None
        return Reader(view).items([row], view.head.next_seq - 1)[0]
