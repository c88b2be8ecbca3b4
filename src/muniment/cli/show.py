"""`muniment show`: one event, whole, with what became of it and what it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Final
from uuid import UUID

import typer

from muniment.archive import Archive
from muniment.cli.events import what_of
from muniment.cli.finding import find_everywhere, get_event, parse_reference
from muniment.cli.opening import Place, get_place, open_existing
from muniment.cli.options import (
    ArchiveOption,
    JsonOption,
    LedgerOption,
    SubjectOption,
    TenantOption,
    UnscopedOption,
    find_scope,
)
from muniment.cli.output import Output
from muniment.cli.text import block, cell_of, count_of, exact_time
from muniment.errors import NotFoundError
from muniment.model.event import Deletion, Document, ErasedEvent, Erasure, Event, Message, Note, Recall, event_to_dict
from muniment.model.item import Item

_LONG_FIELDS: Final = ("content", "text")
_NAMED_FIELDS: Final = ("targets", "recalled")
_NAMED_SHOWN: Final = 50
"""Named events that a terminal lists; the rest is counted."""


def show(
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help="Its id, or its seq in the ledger.", show_default=False)
    ],
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    ledger: LedgerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print one event, what became of it, and what it names.

    An id is looked for in every scope if none is given, a seq in the scope `default`. Of an erased event its
    envelope is printed, which is all that is left.
    """
    out = Output(as_json=as_json)
    with open_existing(archive) as opened:
        named = ledger is not None or find_scope(tenant, subject, unscoped) is not None
        if named or isinstance(parse_reference(event), int):
            place = get_place(opened, tenant, subject, unscoped, ledger)
            findings = [_Finding(place, get_event(place, event))]
        else:
            findings = _find_everywhere(opened, event)
        for number, finding in enumerate(findings):
            if number and not as_json:
                out.line()
            _print(out, finding)


@dataclass(frozen=True, slots=True)
class _Finding:
    place: Place
    event: Event | ErasedEvent


def _find_everywhere(archive: Archive, reference: str) -> list[_Finding]:
    """The events with that id in any scope, at least one.

    Raises: NotFoundError
    """
    found = [_Finding(place, event) for place, event in find_everywhere(archive, UUID(reference))]
    if not found:
        raise NotFoundError(f"there is no event {reference} in any scope of {archive.location}")
    return found


def _print(out: Output, finding: _Finding) -> None:
    if out.as_json:
        out.json(event_to_dict(finding.event))
    elif out.watched:
        _print_watched(out, finding)
    else:
        _print_plain(out, finding)


def _print_plain(out: Output, finding: _Finding) -> None:
    """One field a line, its name first; then one line for each event that this one names."""
    scope = finding.place.scope
    out.record("tenant", scope and scope.tenant)
    out.record("subject", scope and scope.subject)
    for name, text in _fields(finding):
        out.record(name, text)
    for named in _named(finding):
        out.record("names", *named)


def _print_watched(out: Output, finding: _Finding) -> None:
    event = finding.event
    out.line((f"{event.kind} {event.seq}", "bold"), f" in {finding.place.name}")
    texts: list[str] = []
    for name, text in _fields(finding):
        if name in _LONG_FIELDS:
            texts.append(str(getattr(event, name)))
        elif name not in ("kind", "seq", *_NAMED_FIELDS):
            out.line((f"  {name:<14}", "dim"), text)
    for text in texts:
        out.line()
        out.line(block(text))
    _print_named(out, finding)


def _print_named(out: Output, finding: _Finding) -> None:
    ids = _named_ids(finding.event)
    if not ids:
        return
    out.line()
    for seq, kind, event_id, what in islice(_named(finding), _NAMED_SHOWN):
        out.line((f"  {seq if seq is not None else '?':>6}", "cyan"), f"  {kind or event_id:<9}{what}")
    if len(ids) > _NAMED_SHOWN:
        out.line((f"  … {count_of(len(ids) - _NAMED_SHOWN, 'event')} more: --json lists all ids", "dim"))


def _fields(finding: _Finding) -> Iterator[tuple[str, str]]:
    """The fields of the event that are set, and what became of it."""
    for name, value in event_to_dict(finding.event).items():
        if value is not None and value != [] and value != {}:
            yield name, cell_of(value)
    item = finding.place.ledger.get_item(finding.event.id)
    if item is not None:
        yield from _state(item)


def _state(item: Item) -> Iterator[tuple[str, str]]:
    yield "visible", "yes" if item.visible else "no"
    if item.deleted_seq is not None:
        yield "deleted_by", str(item.deleted_seq)
    if item.superseded_seq is not None:
        yield "superseded_by", str(item.superseded_seq)
    yield "usage_count", str(item.usage_count)
    if item.last_used_at is not None:
        yield "last_used_at", exact_time(item.last_used_at)


def _named_ids(event: Event | ErasedEvent) -> Sequence[UUID]:
    """The other events that this one speaks of."""
    match event:
        case Recall():
            return event.recalled
        case Message():
            return () if event.recall_id is None else (event.recall_id,)
        case Note():
            return (*(() if event.supersedes is None else (event.supersedes,)), *event.derived_from)
        case Deletion() | Erasure() | ErasedEvent():
            return event.targets
        case Document():
            return ()


def _named(finding: _Finding) -> Iterator[tuple[int | None, str, UUID, str]]:
    """seq, kind, id and text of each of them; seq None and no kind where this ledger does not hold it."""
    for event_id in _named_ids(finding.event):
        named = finding.place.ledger.get(event_id)
        if named is None:
            yield None, "", event_id, "is not in this ledger"
        else:
            yield named.seq, named.kind, event_id, what_of(named)
