"""JSON lines from standard input into an archive: good lines are stored, bad ones are named, nothing is dropped.

A line is an event as `event_to_dict` writes it, or its kind and the fields that are known, and may say whose it is with
`tenant` and `subject` (null: the unscoped shelf). Lines are stored a chunk at a time, one transaction for each scope in
the chunk, in the order of the lines.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO, Final, NoReturn, cast
from uuid import UUID

from pydantic import JsonValue, ValidationError

from muniment.archive import Archive, Memory
from muniment.cli.exits import CONFLICT, OK, USAGE
from muniment.cli.opening import memory_of
from muniment.cli.output import Output, Progress
from muniment.cli.text import count_of, reasons_of
from muniment.core.check import check_event
from muniment.errors import ConflictError, DuplicateEventError, MunimentError, UsageError
from muniment.model.event import (
    CONTENT_KINDS,
    EVENT_TYPES,
    Content,
    ErasedEvent,
    Event,
    event_to_dict,
)
from muniment.model.limits import TEXT_BYTES_MAX
from muniment.model.scope import Scope

LINE_BYTES_MAX: Final = 8 * TEXT_BYTES_MAX
"""The longest text with every byte written as an escape of six, and room for the other fields."""

_PLACE_FIELDS: Final = ("seq", "recorded_at")


@dataclass(frozen=True, slots=True)
class Line:
    """A line that can be stored."""

    number: int
    scope: Scope
    event: Content

    @property
    def names_its_id(self) -> bool:
        return "id" in self.event.model_fields_set


@dataclass(slots=True)
class Feed:
    """What became of the lines so far, and how to treat them."""

    out: Output
    default: Scope
    skip_known: bool = False
    num_stored: int = 0
    num_known: int = 0
    """Lines whose event was there already, equal in every field given."""
    refused: list[int] = field(default_factory=list[int])
    """Exit codes of the lines that were refused."""
    scopes: set[Scope] = field(default_factory=set[Scope])
    _unstored: list[int] = field(default_factory=list[int])
    """Lines that were read and accepted and are not stored yet."""
    _num_read: int = 0

    @property
    def num_lines(self) -> int:
        return self.num_stored + self.num_known + len(self.refused)

    @property
    def exit_code(self) -> int:
        return min(self.refused, default=OK)

    # --- Storing ------------------------------------------------------------------------------------------------------

    def store(self, archive: Archive, stream: BinaryIO, chunk: int, progress: Progress) -> None:
        """Store every line of the stream that can be, `chunk` lines at a time.

        Raises: what the storage raises; which lines are stored by then is said before.
        """
        lines = self.read(stream, progress)
        try:
            while batch := list(islice(lines, chunk)):
                self._print(self._store_chunk(archive, batch))
        except (MunimentError, OSError, KeyboardInterrupt):
            unstored = f"{ranges_of(self._unstored)} and " if self._unstored else ""
            self.out.note(
                f"stored {count_of(self.num_stored, 'line')}; not stored: {unstored}all after line {self._num_read}"
            )
            raise

    def _print(self, stored: Mapping[int, Content]) -> None:
        if self.out.as_json:
            for number in sorted(stored):
                self.out.json(event_to_dict(stored[number]))
            self.out.flush()

    def _store_chunk(self, archive: Archive, batch: Sequence[Line]) -> dict[int, Content]:
        by_scope: dict[Scope, list[Line]] = {}
        for line in batch:
            by_scope.setdefault(line.scope, []).append(line)
        stored: dict[int, Content] = {}
        for scope, lines in by_scope.items():
            memory = memory_of(archive, scope)
            events = self._store_lines(memory, self._find_new(memory, lines))
            stored.update(events)
            self.num_stored += len(events)
            if events:
                self.scopes.add(scope)
            self._settle(line.number for line in lines)
        return stored

    def _store_lines(self, memory: Memory, lines: list[Line]) -> dict[int, Content]:
        """Store the lines in one transaction, without those whose id another writer has just taken."""
        while lines:
            try:
                stored = memory.add_many([line.event for line in lines])
            except DuplicateEventError as error:
                taken = next(line for line in lines if str(line.event.id) == error.event_id)
                self._meet(taken, memory.get(taken.event.id))
                lines = [line for line in lines if line is not taken]
            else:
                return {line.number: event for line, event in zip(lines, stored, strict=True)}
        return {}

    def _find_new(self, memory: Memory, lines: Sequence[Line]) -> list[Line]:
        """The lines whose ids are free, in the ledger and among themselves."""
        new: dict[UUID, Line] = {}
        for line in lines:
            earlier = new.get(line.event.id)
            there = earlier.event if earlier is not None else memory.get(line.event.id) if line.names_its_id else None
            if there is None:
                new[line.event.id] = line
            else:
                self._meet(line, there)
        return list(new.values())

    def _meet(self, line: Line, there: Event | ErasedEvent | None) -> None:
        """Pass over, or refuse, a line whose id is taken."""
        same = _is_same(line.event, there)
        if same and self.skip_known:
            self.num_known += 1
            return
        hint = "equal: --skip-known passes over it" if same else "by another event"
        self._refuse(line.number, f"id {line.event.id} is taken already ({hint})", CONFLICT)

    def _settle(self, numbers: Iterable[int]) -> None:
        settled = set(numbers)
        self._unstored = [number for number in self._unstored if number not in settled]

    # --- Reading ------------------------------------------------------------------------------------------------------

    def read(self, stream: BinaryIO, progress: Progress) -> Iterator[Line]:
        """The lines that can be stored; the others are refused as they are met. Blank lines hold nothing."""
        total = _size_of(stream)
        done = 0
        for number, raw, length in read_lines(stream):
            self._num_read = number
            done += length
            if number % _PROGRESS_LINES == 0:
                progress(done, total, f"{number:,} lines")
            if raw is None:
                self._refuse(number, f"longer than {LINE_BYTES_MAX} bytes", USAGE)
            elif raw.strip():
                line = self._parse(number, raw)
                if line is not None:
                    self._unstored.append(number)
                    yield line

    def _parse(self, number: int, raw: bytes) -> Line | None:
        try:
            return parse_line(number, raw, self.default)
        except ValidationError as error:
            self._refuse(number, reasons_of(error), USAGE)
        except ConflictError as error:
            self._refuse(number, str(error), CONFLICT)
        except ValueError as error:
            self._refuse(number, str(error), USAGE)
        return None

    def _refuse(self, number: int, reason: str, code: int) -> None:
        self.refused.append(code)
        self.out.note(f"line {number}: {reason}")


_PROGRESS_LINES: Final = 500


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None, int]]:
    """Number, bytes and length of each line; None in place of the bytes of one that is too long to hold."""
    number = 0
    while raw := stream.readline(LINE_BYTES_MAX + 1):
        number += 1
        length = len(raw)
        if length <= LINE_BYTES_MAX:
            yield number, raw, length
            continue
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(LINE_BYTES_MAX)
            length += len(raw)
        yield number, None, length


def parse_line(number: int, raw: bytes, default: Scope) -> Line:
    """The event of a line and whose it is.

    Raises: ValueError that says what is wrong with it.
    """
    fields = _parse_object(raw, first=number == 1)
    scope = Scope(
        cast("str", fields.pop("tenant", default.tenant)), cast("str | None", fields.pop("subject", default.subject))
    )
    event = _build_event(fields)
    _check_place(event)
    check_event(event)
    return Line(number, scope, event)


def _build_event(fields: dict[str, object]) -> Content:
    """The message, document or note of those fields; id and timestamp are made where they are not given."""
    if "state" in fields:
        raise UsageError("an erased event has no content to add")
    kind = fields.get("kind")
    if kind not in CONTENT_KINDS:
        raise UsageError(f"kind {kind!r} is not one of {', '.join(CONTENT_KINDS)}, which are what can be added")
    return cast("Content", EVENT_TYPES[str(kind)].model_validate(fields))


def _check_place(event: Content) -> None:
    given = [f"{name} {value}" for name in _PLACE_FIELDS if (value := getattr(event, name)) is not None]
    if given:
        raise UsageError(f"{' and '.join(given)}: the store gives an event its place; leave seq and recorded_at out")


def _parse_object(raw: bytes, *, first: bool) -> dict[str, object]:
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"not UTF-8: byte 0x{raw[error.start]:02x} at column {error.start + 1}") from None
    try:
        parsed: object = json.loads(text, object_pairs_hook=_build_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise UsageError("not JSON that can be stored: it is nested too deep") from None
    if not isinstance(parsed, dict):
        raise UsageError("not a JSON object")
    return cast("dict[str, object]", parsed)


def _build_object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """The object of those pairs; the last of two equal names would win silently."""
    built = dict(pairs)
    if len(built) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise UsageError(f"the field {twice!r} stands there twice")
    return built


def _refuse_constant(text: str) -> NoReturn:
    raise UsageError(f"{text} is not JSON")


def _is_same(event: Content, known: object) -> bool:
    """Whether a stored event has every field that the line gives."""
    given = event.model_fields_set - set(_PLACE_FIELDS)
    return type(known) is type(event) and all(getattr(known, name) == getattr(event, name) for name in given)


def _size_of(stream: BinaryIO) -> int | None:
    """How many bytes a redirected file has; None for a pipe."""
    found = os.fstat(stream.fileno())
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def ranges_of(numbers: Sequence[int]) -> str:
    """`lines 3-5, 8`, of rising numbers."""
    ranges: list[str] = []
    start = end = -1
    for number in [*numbers, None]:
        if number is not None and number == end + 1 and start >= 0:
            end = number
            continue
        if start >= 0:
            ranges.append(str(start) if start == end else f"{start}-{end}")
        if number is not None:
            start = end = number
    return f"{'line' if ranges == [str(start)] else 'lines'} {', '.join(ranges)}" if ranges else "no line"
