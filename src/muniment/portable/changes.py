"""What a save into a ledger has to append: the smallest change from the notes that stand to the entries wanted.

A ledger cannot move or edit a note. It can append one and hide one, so a changed store is saved as new notes and one
deletion. A note stands where its rank says, a decimal number, which is its own seq unless another was written with it;
that is how an entry can be put before one that was written earlier. Law P23 of the portable contract; pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Final
from uuid import UUID

from muniment.portable.store import MemoryEntry

_PAIRS_MAX: Final = 1_000_000
"""Pairs of equal entries that are looked at for the longest common row; 0.4 s. Above it, the n-th of some
equal entries is matched with the n-th, which is as correct and may move more."""

_RANK: Final = re.compile(r"-?[0-9]{1,10000}(\.[0-9]{1,10000})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Standing:
    """A visible note, as an entry in its place."""

    id: UUID
    seq: int
    rank: Decimal
    entry: MemoryEntry


@dataclass(frozen=True, slots=True)
class NewNote:
    """A note to append for the entry at `index`; without a rank it stands at its own seq."""

    index: int
    entry: MemoryEntry
    rank: Decimal | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What to append, the notes in this order and before the deletion of what is `gone`, and what stays as it is."""

    notes: tuple[NewNote, ...]
    gone: tuple[Standing, ...]
    kept: tuple[tuple[int, Standing], ...]
    """Index in the wanted entries -> the note that stands for it already."""


def plan_changes(before: Sequence[Standing], after: Sequence[MemoryEntry], *, next_seq: int) -> Changes:
    """The fewest notes that make the entries stand in the order of `after`, and what they leave to be hidden.

    As many notes as possible are kept, equal ones oldest first. A new entry between the same neighbours as a hidden one
    takes over its rank: an update in place stays in its place.

    Shapes: `before` is in the order of (rank, seq).
    Units:  `next_seq` is the least seq that the first appended note can get.
    Cost:   O(n log n) for distinct entries.
    """
    pairs = _match([standing.entry for standing in before], after)
    while (plan := _place_all(before, after, pairs, next_seq)) is None:
        # Two kept notes share a rank, and something belongs between them: the second is written anew.
        pairs = _without_tightest(before, after, pairs)
    return plan


def parse_rank(text: object, seq: int) -> Decimal:
    """The rank that a note carries, or its seq if it carries none that can be read."""
    return Decimal(text) if isinstance(text, str) and _RANK.fullmatch(text) else Decimal(seq)


def render_rank(rank: Decimal) -> str:
    """The rank as plain decimal text, without an exponent or needless zeros."""
    text = format(rank, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


# ---- which notes stay ----------------------------------------------------------------------------------------------

Pair = tuple[int, int]
"""Index before, index after: a note that stays, and the entry it stands for."""


def _match(before: Sequence[MemoryEntry], after: Sequence[MemoryEntry]) -> list[Pair]:
    """A longest row of equal entries in the order of both; among equal ones the oldest."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    return [(index, index) for index in range(start)] + _longest_rising(_find_candidates(before, after, start))


def _find_candidates(
    before: Sequence[MemoryEntry], after: Sequence[MemoryEntry], start: int
) -> list[tuple[int, Sequence[int]]]:
    """Per index after, from `start` on, the indexes before of its equals, falling."""
    places: defaultdict[MemoryEntry, list[int]] = defaultdict(list)
    for index in reversed(range(start, len(before))):
        places[before[index]].append(index)
    wanted = range(start, len(after))
    if sum(len(places.get(after[index], ())) for index in wanted) <= _PAIRS_MAX:
        return [(index, places.get(after[index], ())) for index in wanted]
    return [(index, [places[after[index]].pop()] if places.get(after[index]) else ()) for index in wanted]


def _longest_rising(candidates: Sequence[tuple[int, Sequence[int]]]) -> list[Pair]:
    """The longest row of pairs that rises on both sides.

    Shapes: `candidates` is per index after, rising, its possible indexes before, falling, so that at most one is taken.
    Source: Hunt and Szymanski 1977.
    """
    ends: list[int] = []
    """Per length - 1: the least index before that a row of that length can end in."""
    rows: list[_Row] = []
    """Per length - 1: the row that ends there."""
    for after_index, before_indexes in candidates:
        for before_index in before_indexes:
            at = bisect_left(ends, before_index)
            row = _Row((before_index, after_index), rows[at - 1] if at else None)
            if at == len(ends):
                ends.append(before_index)
                rows.append(row)
            elif before_index < ends[at]:
                ends[at], rows[at] = before_index, row
    return _unroll(rows[-1]) if rows else []


@dataclass(frozen=True, slots=True)
class _Row:
    last: Pair
    rest: _Row | None


def _unroll(row: _Row | None) -> list[Pair]:
    pairs: list[Pair] = []
    while row is not None:
        pairs.append(row.last)
        row = row.rest
    return pairs[::-1]


# ---- where the new ones stand --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Gap:
    """What lies between two notes that stay: the notes that go, the entries that come, and the ranks at both ends."""

    gone: Sequence[Standing]
    coming: range
    low: Decimal | None
    high: Decimal | None


def _place_all(
    before: Sequence[Standing], after: Sequence[MemoryEntry], pairs: Sequence[Pair], next_seq: int
) -> Changes | None:
    notes: list[NewNote] = []
    gone: list[Standing] = []
    for gap in _gaps(before, after, pairs):
        ranks = _place(gap, next_seq)
        if ranks is None:
            return None
        notes += [NewNote(index, after[index], rank) for index, rank in zip(gap.coming, ranks, strict=True)]
        gone += gap.gone
    return Changes(tuple(notes), tuple(gone), tuple((index, before[at]) for at, index in pairs))


def _gaps(before: Sequence[Standing], after: Sequence[MemoryEntry], pairs: Sequence[Pair]) -> list[_Gap]:
    gaps: list[_Gap] = []
    at_before, at_after, low = 0, 0, None
    for next_before, next_after in [*pairs, (len(before), len(after))]:
        high = before[next_before].rank if next_before < len(before) and next_after < len(after) else None
        gaps.append(_Gap(before[at_before:next_before], range(at_after, next_after), low, high))
        at_before, at_after, low = next_before + 1, next_after + 1, high
    return gaps


def _without_tightest(before: Sequence[Standing], after: Sequence[MemoryEntry], pairs: Sequence[Pair]) -> list[Pair]:
    for at, gap in enumerate(_gaps(before, after, pairs)):
        if _has_no_room(gap):
            return [*pairs[:at], *pairs[at + 1 :]]
    raise AssertionError("every gap has room")


def _has_no_room(gap: _Gap) -> bool:
    return bool(gap.coming) and gap.low is not None and gap.high is not None and gap.low >= gap.high


def _place(gap: _Gap, next_seq: int) -> list[Decimal | None] | None:
    """A rank per coming entry, rising, strictly inside the gap; None for all if there is no room."""
    if _has_no_room(gap):
        return None
    ranks: list[Decimal | None] = []
    low = gap.low
    for standing in gap.gone[: len(gap.coming)]:
        if (low is None or standing.rank > low) and (gap.high is None or standing.rank < gap.high):
            ranks.append(low := standing.rank)
    return ranks + _spread(low, gap.high, len(gap.coming) - len(ranks), next_seq)


def _spread(low: Decimal | None, high: Decimal | None, count: int, next_seq: int) -> list[Decimal | None]:
    if high is None:
        if low is None or low < next_seq:
            return [None] * count  # their own seqs are above every rank there is
        first = int(low.to_integral_value(ROUND_FLOOR)) + 1
        return [Decimal(first + n) for n in range(count)]
    if low is None:
        last = -int((-high).to_integral_value(ROUND_FLOOR)) - 1
        return [Decimal(last - n) for n in reversed(range(count))]
    return [*_between(low, high, count)]


def _between(low: Decimal, high: Decimal, count: int) -> list[Decimal]:
    """That many evenly spread numbers strictly between two, with as few digits as keep them apart."""
    if not count:
        return []
    digits = max(_num_digits(low), _num_digits(high)) + len(str(count)) + 3
    exact = Context(prec=2 * digits)
    step = exact.divide(exact.subtract(high, low), Decimal(count + 1))
    quantum = Decimal(1).scaleb(step.adjusted() - 1)
    return [exact.quantize(exact.add(low, exact.multiply(step, Decimal(n))), quantum) for n in range(1, count + 1)]


def _num_digits(number: Decimal) -> int:
    whole, exponent = number.adjusted(), number.as_tuple().exponent
    return max(whole, 0) + (-exponent if isinstance(exponent, int) and exponent < 0 else 0) + 2
