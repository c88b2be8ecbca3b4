"""One ledger to look at: its events, its items, its states, its proof. Nothing here writes, and nothing is recorded.

Source: `audit.md` A11, A12, A16, A18; `engine.md` E25.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import cast
from uuid import UUID

from muniment.archive.arguments import find_id, parse_instant, parse_seq, parse_text, parse_texts
from muniment.archive.collector import collector_paused
from muniment.archive.engine import Engine
from muniment.archive.eraser import head_of
from muniment.archive.listing import Listing
from muniment.archive.reader import Reader, read_in_chunks
from muniment.archive.rebuilder import find_stray_item
from muniment.archive.sources import EventSource, ItemSource
from muniment.archive.verify import Progress, verify_ledger
from muniment.core.canonical import KIND_NUMBERS, to_us
from muniment.core.fold import Fold
from muniment.core.project import TIER_NUMBERS
from muniment.errors import IntegrityError, UsageError
from muniment.model.event import CONTENT_KINDS, KINDS, TIERS, ErasedEvent, Event, Note
from muniment.model.item import Item
from muniment.model.report import LedgerHead, VerifyReport
from muniment.model.rows import EventFilter
from muniment.model.scope import Scope
from muniment.model.state import MemoryState
from muniment.ports.storage import Snapshot


class Ledger:
    """The ledger of a scope, or one that lost its name, for an auditor's look.

    A handle without state of its own: make as many as you like, share them between threads. `bool()` is True, also when
    it is empty.
    """

    def __init__(self, engine: Engine, address: Scope | bytes) -> None:
        self._engine = engine
        self._address = address

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._address!r}>"

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        """How many events the ledger has, whatever became of them."""
        head = self.head()
        return 0 if head is None else head.size

    def get(self, event_id: UUID | str) -> Event | ErasedEvent | None:
        """The event of this scope with that id, what is left of it if it was erased, or None."""
        wanted = find_id(event_id)
        if wanted is None:
            return None
        with self._engine.storage.snapshot(self._address) as view:
            return None if view is None else Reader(view).find(wanted)

    def get_item(self, event_id: UUID | str) -> Item | None:
        """The item of that id as it stands now: hidden or not, how often it was used; None if it is no content here."""
        wanted = find_id(event_id)
        with self._engine.storage.snapshot(self._address) as view:
            row = None if view is None or wanted is None else view.find_events([wanted.bytes]).get(wanted.bytes)
            if view is None or row is None:
                return None
            rows = view.find_items([row.seq])
            return next(iter(Reader(view).items(list(rows.values()), view.head.next_seq)), None)

    def get_live(self, key: str) -> Note | None:
        """The live note of a key: neither deleted nor superseded."""
        parse_text("key", key)
        with self._engine.storage.snapshot(self._address) as view:
            if view is None:
                return None
            hashes = self._engine.hashes_of(view.head)
            reader = Reader(view)
            notes = [reader.find_content(row.seq) for row in view.find_live_by_key(cast("int", hashes.key(key)))]
        return next((note for note in notes if isinstance(note, Note) and note.key == key), None)

    def events(
        self,
        *,
        kind: str | None = None,
        session_id: str | None = None,
        after_seq: int | None = None,
        up_to_seq: int | None = None,
    ) -> Listing[Event | ErasedEvent]:
        """The events in seq order, as far as the ledger goes now; filters are AND-ed, `up_to_seq` is inclusive.

        Erased events answer to their kind and to seq, and to no session.

        Raises: UsageError for a kind that there is not.
        """
        kinds = None if kind is None else {_kind_number(kind, KINDS)}
        if session_id is not None:
            parse_text("session_id", session_id)
        ledger_id, newest = self._pin()
        source = EventSource(
            self._engine,
            self._address,
            ledger_id,
            first=0 if after_seq is None else max(0, parse_seq("after_seq", after_seq) + 1),
            last=newest if up_to_seq is None else min(newest, parse_seq("up_to_seq", up_to_seq)),
            kinds=kinds,
            session_id=session_id,
        )
        return Listing(source)

    def items(
        self,
        *,
        kinds: Collection[str] | None = None,
        tiers: Collection[str] | None = None,
        up_to_seq: int | None = None,
        at: datetime | None = None,
        hidden: bool = False,
    ) -> Listing[Item]:
        """The messages, documents and notes as they stood after an event or at a time, by query and without a fold.

        An auditor's look, recorded nowhere. `hidden` adds what was deleted or superseded by then.

        Raises: UsageError for both points at once, a naive time, or a kind or tier that there is not.
        Cost:   one page is one range read, whatever the length of the ledger.
        """
        check = _check_point(up_to_seq, at)
        with self._engine.storage.snapshot(self._address) as view:
            ledger_id = b"" if view is None else view.head.ledger_id
            at_seq = -1 if view is None else _find_point(view, *check)
        source = ItemSource(
            self._engine,
            self._address,
            ledger_id,
            first=0,
            last=at_seq,
            at_seq=at_seq,
            kinds=kind_numbers(kinds),
            tiers=tier_numbers(tiers),
            hidden=hidden,
        )
        return Listing(source)

    def replay(self, *, up_to_seq: int | None = None, at: datetime | None = None) -> MemoryState:
        """The state after event `up_to_seq`, or of everything recorded at or before `at`; by default, now.

        Raises: UsageError for both at once, or a naive time; IntegrityError for content that is not what was written.
        Cost:   O(events up to there), about 5 µs each, and the memory of the state.
        """
        check = _check_point(up_to_seq, at)
        fold = Fold()
        with collector_paused(), self._engine.storage.snapshot(self._address) as view:
            if view is not None:
                reader = Reader(view)
                last = _find_point(view, *check)
                following = 0
                for row in read_in_chunks(view, EventFilter(last=last)):
                    if row.seq != following:
                        break
                    fold.add(reader.decode_one(row))
                    following += 1
                if following <= last:
                    raise IntegrityError(f"event {following} is missing from the ledger", seq=following)
        return fold.state()

    def seq_at(self, at: datetime) -> int | None:
        """The seq of the last event recorded at or before that time, or None.

        Raises: UsageError for a naive time.
        """
        moment = parse_instant("at", at)
        with self._engine.storage.snapshot(self._address) as view:
            seq = -1 if view is None else view.find_seq_at(to_us(moment))
        return None if seq < 0 else seq

    def head(self) -> LedgerHead | None:
        """Where the ledger stands, or None if there is none."""
        with self._engine.storage.snapshot(self._address) as view:
            if view is None:
                return None
            return head_of(view.head)

    def verify(self, *, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
        """Whether the ledger is what was written; see `verify_ledger`.

        `deep` also compares the items and uses that search works on with what the ledger comes to; vectors are not
        checked. It takes about eight times as long, and the memory of the items.
        """
        with self._engine.storage.snapshot(self._address) as view:
            if view is None:
                return VerifyReport(ok=True, head=None, num_events=0, num_erased=0)
            try:
                report = verify_ledger(view, progress)
                if not report or not deep or view.head.erased_us is not None:
                    return report
                stray = find_stray_item(self._engine, view)
            except IntegrityError as error:
                # A damaged page: the storage cannot even read what it should compare.
                return VerifyReport(ok=False, head=None, num_events=0, num_erased=0, problem=str(error))
            if stray is None:
                return report
            problem = "what search works on is not what the ledger comes to: run `muniment rebuild`"
            return replace(report, ok=False, bad_seq=stray, problem=problem)

    def _pin(self) -> tuple[bytes, int]:
        """The ledger there is now and its newest seq."""
        with self._engine.storage.snapshot(self._address) as view:
            return (b"", -1) if view is None else (view.head.ledger_id, view.head.next_seq - 1)


def _check_point(up_to_seq: int | None, at: datetime | None) -> tuple[int | None, int | None]:
    """The point asked for, as a seq or as microseconds."""
    if up_to_seq is not None and at is not None:
        raise UsageError("give up_to_seq or at, not both")
    seq = None if up_to_seq is None else parse_seq("up_to_seq", up_to_seq)
    return seq, None if at is None else to_us(parse_instant("at", at))


def _find_point(view: Snapshot, up_to_seq: int | None, at_us: int | None) -> int:
    """The seq of the last event up to that point."""
    newest = view.head.next_seq - 1
    if at_us is not None:
        return view.find_seq_at(at_us)
    return newest if up_to_seq is None else min(newest, up_to_seq)


def _kind_number(kind: str, kinds: Sequence[str]) -> int:
    if kind not in kinds:
        raise UsageError(f"kind {kind!r} is not one of {', '.join(kinds)}")
    return KIND_NUMBERS[kind]


def kind_numbers(kinds: Collection[str] | None) -> frozenset[int] | None:
    """The numbers of kinds of content; None for all.

    Raises: UsageError for a kind that there is not.
    """
    return (
        None if kinds is None else frozenset(_kind_number(kind, CONTENT_KINDS) for kind in parse_texts("kinds", kinds))
    )


def tier_numbers(tiers: Collection[str] | None) -> frozenset[int] | None:
    """The numbers of tiers; None for all.

    Raises: UsageError for a tier that there is not.
    """
    if tiers is None:
        return None
    names = parse_texts("tiers", tiers)
    for tier in names:
        if tier not in TIERS:
            raise UsageError(f"tier {tier!r} is not one of {', '.join(TIERS)}")
    return frozenset(TIER_NUMBERS[tier] for tier in names)
