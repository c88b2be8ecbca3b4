"""`muniment log`: the events of one ledger, in order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import typer

from muniment.archive import Listing
from muniment.archive.ledger import Ledger
from muniment.cli.events import EventPrinter
from muniment.cli.opening import get_place, open_existing, say_empty
from muniment.cli.options import (
    ArchiveOption,
    JsonOption,
    LedgerOption,
    LimitOption,
    SubjectOption,
    TenantOption,
    UnscopedOption,
    cut_at,
)
from muniment.cli.output import Output
from muniment.cli.text import count_of
from muniment.errors import ConflictError, UsageError
from muniment.model.event import KINDS, ErasedEvent, Event


def log(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    ledger: LedgerOption = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", metavar="KIND", help=f"One of {', '.join(KINDS)}.")
    ] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Events of one session.")] = None,
    after: Annotated[int | None, typer.Option("--after", metavar="SEQ", help="Events after that seq.")] = None,
    up_to: Annotated[int | None, typer.Option("--up-to", metavar="SEQ", help="Events up to that seq.")] = None,
    limit: LimitOption = None,
    newest_first: Annotated[bool, typer.Option("--newest-first", "-r", help="From the newest back.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.01, max=3600, metavar="SECONDS", help="How often --follow looks.")
    ] = 0.5,
    as_json: JsonOption = False,
) -> None:
    """Print the events of a ledger, in order.

    They are what was said, brought, learned, read, hidden and destroyed.

    With --limit the newest events are printed, in their order. Plain lines have the fields seq, recorded_at, kind, id,
    session, title and text, parted by tabs.
    """
    if follow and (newest_first or up_to is not None):
        raise UsageError("--follow goes on for ever: it excludes --newest-first and --up-to")
    out = Output(as_json=as_json)
    with open_existing(archive) as opened:
        place = get_place(opened, tenant, subject, unscoped, ledger)
        wanted = Wanted(kind, session, after, up_to)
        printer = EventPrinter(out)
        if follow:
            Follower(out, place.ledger, wanted, printer).run(cut_at(limit, watched=out.watched), interval)
        elif not _print(out, printer, place.ledger, wanted, cut_at(limit, watched=out.watched), newest_first):
            say_empty(out, opened, place, "no event matches")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events: the filters of the command."""

    kind: str | None
    session: str | None
    after: int | None
    up_to: int | None

    def within(self, ledger: Ledger, *, after: int | None, up_to: int | None) -> Listing[Event | ErasedEvent]:
        """Those of them with a seq in that range."""
        return ledger.events(kind=self.kind, session_id=self.session, after_seq=after, up_to_seq=up_to)


def _print(
    out: Output, printer: EventPrinter, ledger: Ledger, wanted: Wanted, limit: int | None, newest_first: bool
) -> int:
    """Print the events there are; how many were printed."""
    listing = wanted.within(ledger, after=wanted.after, up_to=wanted.up_to)
    if limit is not None and not newest_first:
        num_all = len(listing)
        _say_cut(out, num_all - limit, "earlier")
        listing = _newest(ledger, wanted, listing, limit) if num_all > limit else listing
        return printer.print(listing)
    events = reversed(listing) if newest_first else iter(listing)
    num_printed = printer.print(islice(events, limit))
    if limit is not None and num_printed == limit:
        _say_cut(out, len(listing) - limit, "earlier")
    return num_printed


def _newest(
    ledger: Ledger, wanted: Wanted, listing: Listing[Event | ErasedEvent], limit: int
) -> Listing[Event | ErasedEvent]:
    """The newest events of a listing, in their order and without holding them all."""
    seqs = [event.seq for event in islice(reversed(listing), limit) if event.seq is not None]
    return wanted.within(ledger, after=seqs[-1] - 1, up_to=seqs[0])


def _say_cut(out: Output, number: int, which: str) -> None:
    if number > 0:
        out.note(f"… {count_of(number, f'{which} event')} not shown: --limit 0 shows all")


@dataclass(slots=True)
class Follower:
    """Prints what a ledger holds and then what is added to it."""

    out: Output
    ledger: Ledger
    wanted: Wanted
    printer: EventPrinter
    ledger_id: str | None = None
    next_seq: int = 0

    def run(self, limit: int | None, interval_s: float) -> None:
        """Go on until the person stops it, which is how this ends and no failure."""
        try:
            self._start(limit)
            while True:
                self.out.flush()
                time.sleep(interval_s)
                self._look()
        except KeyboardInterrupt:
            return

    def _start(self, limit: int | None) -> None:
        head = self.ledger.head()
        if head is None:
            return
        self.ledger_id, self.next_seq = head.ledger_id, head.size
        now = Wanted(self.wanted.kind, self.wanted.session, self.wanted.after, head.size - 1)
        _print(self.out, self.printer, self.ledger, now, limit, newest_first=False)

    def _look(self) -> None:
        """Print what was added since."""
        head = self.ledger.head()
        if head is None:
            return
        if head.ledger_id != self.ledger_id:
            if self.ledger_id is not None:
                self.out.note("the scope was erased meanwhile: its new ledger begins")
            self.ledger_id, self.next_seq = head.ledger_id, 0
        if head.size > self.next_seq:
            self._print_added(head.size)

    def _print_added(self, size: int) -> None:
        after = max(self.next_seq - 1, -1 if self.wanted.after is None else self.wanted.after)
        try:
            self.printer.print(self.wanted.within(self.ledger, after=after, up_to=size - 1))
        except ConflictError:
            return  # erased in this very moment: the next look finds the new ledger
        self.next_seq = size
