"""Events by what a person types: an id, or a seq of the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from muniment.archive import Archive
from muniment.archive.ledger import Ledger
from muniment.cli.opening import Place
from muniment.errors import NotFoundError, UsageError
from muniment.model.event import ErasedEvent, Event

_SEQ: Final = re.compile("[0-9]{1,10}")


def get_event(place: Place, reference: str) -> Event | ErasedEvent:
    """The event of this ledger with that id or seq.

    Raises: NotFoundError; UsageError for a text that is neither.
    """
    meant = parse_reference(reference)
    found = _find_by_seq(place.ledger, meant) if isinstance(meant, int) else place.ledger.get(meant)
    if found is None:
        raise NotFoundError(f"there is no event {reference} in {place.name}")
    return found


def parse_reference(reference: str) -> int | UUID:
    """The seq, or the id, that a text means: a number of up to ten digits is a seq.

    Raises: UsageError for a text that is neither.
    """
    if _SEQ.fullmatch(reference):
        return int(reference)
    try:
        return UUID(reference)
    except ValueError:
        raise UsageError(f"{reference!r} is neither an event's id nor a seq") from None


def _find_by_seq(ledger: Ledger, seq: int) -> Event | ErasedEvent | None:
    return next(iter(ledger.events(after_seq=seq - 1, up_to_seq=seq)), None)


def find_everywhere(archive: Archive, event_id: UUID) -> Iterator[tuple[Place, Event | ErasedEvent]]:
    """The events with that id in all ledgers, those of erased scopes too: an id is unique in one ledger only.

    Cost: a look-up per ledger.
    """
    for tenant in archive.tenants():
        for erased in (False, True):
            for info in tenant.scopes(erased=erased):
                found = info.ledger.get(event_id)
                if found is not None:
                    yield Place(info.ledger, info.scope), found
