"""How events are printed: as a table to a person, as one line each to a pipe, as JSON lines to a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from muniment.cli.output import TABLE_ROWS, Column, Output
from muniment.cli.text import exact_time, short_time, text_of, title_of
from muniment.model.event import ErasedEvent, Event, event_to_dict

COLUMNS: Final = (
    Column(name="seq", width=6, right=True, style="cyan"),
    Column(name="recorded (UTC)", width=20, style="dim"),
    Column(name="kind", width=8),
    Column(name="what", flexible=True),
)


class EventPrinter:
    """Prints events in the order given, as they come."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._printed_any = False

    def print(self, events: Iterable[Event | ErasedEvent]) -> int:
        """Print them; how many there were."""
        number = 0
        for batch in _batches(events):
            number += len(batch)
            self._print_batch(batch)
        return number

    def _print_batch(self, batch: list[Event | ErasedEvent]) -> None:
        if self._out.watched:
            self._out.table(COLUMNS, map(_row, batch), header=not self._printed_any)
            self._printed_any = True
            return
        for event in batch:
            if self._out.as_json:
                self._out.json(event_to_dict(event))
            else:
                self._out.record(*record_of(event))


def record_of(event: Event | ErasedEvent) -> tuple[object, ...]:
    """seq, recorded_at, kind, id, session, title, text."""
    session = None if isinstance(event, ErasedEvent) else event.session_id
    recorded = exact_time(event.recorded_at)
    return event.seq, recorded, event.kind, event.id, session, title_of(event), text_of(event)


def what_of(event: Event | ErasedEvent) -> str:
    """Title and text, for reading."""
    text = text_of(event)
    return f"{title_of(event)}: {text}" if text else title_of(event)


def _row(event: Event | ErasedEvent) -> tuple[str, ...]:
    return str(event.seq), short_time(event.recorded_at), event.kind, what_of(event)


def _batches(events: Iterable[Event | ErasedEvent]) -> Iterator[list[Event | ErasedEvent]]:
    remaining = iter(events)
    while batch := list(islice(remaining, TABLE_ROWS)):
        yield batch
