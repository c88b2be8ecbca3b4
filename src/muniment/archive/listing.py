"""Long results as real sequences that are read a page at a time: nothing is cut off, and memory stays bounded."""

from __future__ import annotations

import base64
import binascii
import operator
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar, overload

from muniment.core.check import check_count
from muniment.errors import ConflictError, UsageError
from muniment.model.limits import PAGE_MAX

T = TypeVar("T")

_CURSOR: Final = struct.Struct(">16sI?Q")


@dataclass(frozen=True, slots=True)
class Page(Sequence[T]):
    """Some entries of a listing, and the cursor to the next ones."""

    items: tuple[T, ...]
    next_cursor: str | None
    """None at the end."""

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]


class Source(Protocol[T]):
    """Entries in seq order, read from a place on. It names the ledger it reads, so that a cursor cannot outlive it."""

    @property
    def ledger_id(self) -> bytes: ...

    @property
    def fingerprint(self) -> int:
        """A number of the filter, so that a cursor is not used with another one."""
        ...

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    def count(self) -> int: ...

    def read(self, first: int, last: int, limit: int, newest_first: bool) -> tuple[list[T], int | None]:
        """Up to `limit` entries with a seq in that range, and the seq to go on from (None at the end)."""
        ...


class Listing(Sequence[T], Generic[T]):
    """All entries of a query as they stood when it was asked: a sequence that reads itself in pages.

    Cost: one query per page of 1,000; `len` is one query, kept.
    Raises: ConflictError when the ledger was erased and replaced meanwhile.
    """

    def __init__(self, source: Source[T]) -> None:
        self._source = source
        self._length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            self._length = self._source.count()
        return self._length

    def __iter__(self) -> Iterator[T]:
        return self._walk(newest_first=False)

    def __reversed__(self) -> Iterator[T]:
        return self._walk(newest_first=True)

    def _walk(self, *, newest_first: bool, page_size: int = PAGE_MAX) -> Iterator[T]:
        first, last = self._source.first, self._source.last
        while True:
            entries, following = self._source.read(first, last, page_size, newest_first)
            yield from entries
            if following is None:
                return
            if newest_first:
                last = following
            else:
                first = following

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return self._slice(index)
        place = operator.index(index)
        newest_first = place < 0
        skip = min(-place - 1 if newest_first else place, sys.maxsize - 1)
        for entry in islice(self._walk(newest_first=newest_first, page_size=min(skip + 1, PAGE_MAX)), skip, None):
            return entry
        raise IndexError(f"no entry at index {index}: there are {len(self)}")

    def _slice(self, index: slice) -> list[T]:
        bounds = [operator.index(bound) for bound in (index.start, index.stop, index.step) if bound is not None]
        if any(bound < 0 or bound > sys.maxsize for bound in bounds):
            # Counted from the end, which an erasure may have moved since `len` was asked.
            return list(self)[index]
        return list(islice(self, index.start, index.stop, index.step))

    def page(self, *, limit: int = 100, cursor: str | None = None, newest_first: bool = False) -> Page[T]:
        """Up to `limit` entries from the start, or from where the page with that `next_cursor` ended.

        Raises: UsageError for a limit below 1 and a cursor of another query; LimitExceededError above 1,000;
                ConflictError for a cursor into a ledger that was erased and replaced.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"limit must be 1 or more, not {limit!r}")
        check_count("limit", limit, PAGE_MAX, "entries of one page")
        first, last = self._source.first, self._source.last
        if cursor is not None:
            following = self._read_cursor(cursor, newest_first)
            first, last = (first, min(last, following)) if newest_first else (max(first, following), last)
        entries, following = self._source.read(first, last, limit, newest_first)
        return Page(tuple(entries), None if following is None else self._write_cursor(following, newest_first))

    def _write_cursor(self, seq: int, newest_first: bool) -> str:
        packed = _CURSOR.pack(self._source.ledger_id, self._source.fingerprint, newest_first, seq)
        return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()

    def _read_cursor(self, cursor: str, newest_first: bool) -> int:
        if not isinstance(cursor, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"{cursor!r} is not a cursor")
        try:
            packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            ledger_id, fingerprint, backwards, seq = _CURSOR.unpack(packed)
        except (struct.error, binascii.Error, ValueError):
            raise UsageError(f"{cursor!r} is not a cursor") from None
        if ledger_id != self._source.ledger_id:
            raise ConflictError(
                "ledger replaced: the scope was erased since the cursor was given",
                expected=ledger_id.hex(),
                actual=self._source.ledger_id.hex(),
            )
        if fingerprint != self._source.fingerprint or backwards != newest_first:
            raise UsageError("the cursor belongs to a query with other filters or another direction")
        return seq

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"
