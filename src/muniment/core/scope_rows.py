"""The rows of a scope index: arrays and postings in memory, changed by making a new state from an old one.

A search reads one state from beginning to end, so a change made meanwhile by another thread does not disturb it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from muniment.core.postings import Posting, Postings, build_postings, keep_rows, merge_postings
from muniment.core.text import TERM_HASH_BYTES, terms_of
from muniment.core.turns import Turns, order_turns
from muniment.core.vectors import inverse_norms
from muniment.errors import EmbeddingDimensionError, UsageError
from muniment.model.rows import IndexRow

ALIVE: Final = -1
"""`died_seq` of a row that nothing has hidden."""

_MERGE_FACTOR: Final = 4
"""Two segments become one when the newer holds at least a quarter of the older's rows: so there are few of them,
logarithmically in the rows, and each row is copied only as often."""

_GROWTH: Final = 8
"""Room for an eighth more rows is made when the arrays are full: adding stays cheap, and little memory lies idle."""

_VIEWS_MAX: Final = 4
"""Views remembered: the present of each contract's kinds, and a past or two that an auditor looks at."""


Row: TypeAlias = IndexRow
"""An item, as the index reads it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """One array per field, with room behind the rows, which ascend by seq and never change."""

    seq: NDArray[np.int64]
    kind: NDArray[np.int16]
    tier: NDArray[np.int16]
    timestamp_us: NDArray[np.int64]
    session: NDArray[np.int64]
    speaker: NDArray[np.int32]
    """A number from 1 on for each speaker of this index, 0 for none."""
    died_seq: NDArray[np.int64]
    length: NDArray[np.int32]
    """Terms of the text."""
    inverse_norm: NDArray[np.float64]
    """0 for a row without a vector, or whose vector has no direction."""
    codes: NDArray[np.int8]
    """Vectors (rows, dimension); (rows, 0) as long as there is none."""


@dataclass(frozen=True)
class View:
    """The rows visible at one point, of the kinds that take part, and what all searches of them share."""

    sessions: NDArray[np.int64] = field(repr=False)
    """The session of each row, visible or not."""
    visible: NDArray[np.bool_] | None
    """None for all."""
    documents: int
    length: int
    """All their terms together."""
    turns_of: NDArray[np.int64]
    """How many rows each speaker number has; entry 0 is unused."""

    @cached_property
    def num_turns(self) -> int:
        """Rows that belong to a session."""
        is_turn = self.sessions != 0
        return int(np.count_nonzero(is_turn if self.visible is None else is_turn & self.visible))

    @cached_property
    def turns(self) -> Turns:
        """Their order, worked out when it is first needed. Two threads may both do so, and get the same."""
        return order_turns(self.sessions, self.visible)

    @property
    def bytes_used(self) -> int:
        """Bytes of the arrays, and of the order whether it is worked out or not."""
        return 20 * len(self.sessions)


_ViewKey: TypeAlias = tuple[int | None, frozenset[int] | None]


@dataclass(frozen=True, slots=True)
class State:
    """Everything a search reads. A change makes a new one, so that searches in other threads are not disturbed."""

    count: int
    columns: Columns
    segments: tuple[Postings, ...]
    speakers: Mapping[int, int]
    """The number of each speaker's hash."""
    views: dict[_ViewKey, View] = field(default_factory=dict[_ViewKey, View])

    def column(self, name: str) -> NDArray[Any]:
        """One column of the rows there are."""
        return getattr(self.columns, name)[: self.count]

    @property
    def bytes_used(self) -> int:
        """Bytes of the arrays, and about as many as the rest takes."""
        arrays = [getattr(self.columns, one.name) for one in fields(self.columns)]
        views = sum(view.bytes_used for view in list(self.views.values()))
        segments = sum(segment.bytes_used for segment in self.segments)
        return sum(array.nbytes for array in arrays) + views + segments + 100 * len(self.speakers)


EMPTY: Final = State(
    count=0,
    columns=Columns(
        seq=np.zeros(0, np.int64),
        kind=np.zeros(0, np.int16),
        tier=np.zeros(0, np.int16),
        timestamp_us=np.zeros(0, np.int64),
        session=np.zeros(0, np.int64),
        speaker=np.zeros(0, np.int32),
        died_seq=np.zeros(0, np.int64),
        length=np.zeros(0, np.int32),
        inverse_norm=np.zeros(0, np.float64),
        codes=np.zeros((0, 0), np.int8),
    ),
    segments=(),
    speakers={},
)


# --- changes ------------------------------------------------------------------------------------------------------


def extend(state: State, rows: Iterable[Row]) -> State:
    """The state with more rows, whose seqs are above all that are there.

    Raises: UsageError if a seq is not; EmbeddingDimensionError if the vectors differ in length.
    """
    new = list(rows)
    if not new:
        return state
    added, speakers, postings = _columns_of(new, state)
    if (np.diff(added.seq, prepend=state.column("seq")[-1:]) <= 0).any():
        raise UsageError("rows must come with rising seqs, above those that are there")
    columns = _appended(state.columns, state.count, added)
    return State(state.count + len(new), columns, _with_segment(state.segments, postings), speakers)


def mark_died(state: State, seqs: Iterable[int], at_seq: int) -> State:
    """The state with these rows hidden from the event `at_seq` on; those hidden before stay as they were."""
    dying = np.isin(state.column("seq"), np.fromiter(seqs, dtype=np.int64))
    dying &= state.column("died_seq") == ALIVE
    if not dying.any():
        return state
    died_seq = state.column("died_seq").copy()
    died_seq[dying] = at_seq
    return State(state.count, replace(state.columns, died_seq=died_seq), state.segments, state.speakers)


def drop(state: State, seqs: Iterable[int]) -> State:
    """The state as if these rows had never been there, up to the numbers of speakers."""
    kept = ~np.isin(state.column("seq"), np.fromiter(seqs, dtype=np.int64))
    if kept.all():
        return state
    columns = Columns(**{one.name: state.column(one.name)[kept] for one in fields(Columns)})
    segment = keep_rows(merge_postings(state.segments), kept)
    return State(len(columns.seq), columns, (segment,), state.speakers)


def _columns_of(rows: Sequence[Row], state: State) -> tuple[Columns, Mapping[int, int], Postings]:
    """The new rows as arrays, all speakers numbered, and the new rows' postings."""
    seqs, kinds, tiers, timestamps, sessions, speaker_hashes, died, blobs, vectors = zip(*rows, strict=True)
    speakers = state.speakers
    unknown = set(speaker_hashes).difference(speakers, (0,))
    if unknown:
        speakers = {**speakers, **{one: number for number, one in enumerate(unknown, start=len(speakers) + 1)}}
    number_of = {0: 0, **speakers}
    lengths = np.fromiter(map(len, blobs), np.int32, len(rows)) // TERM_HASH_BYTES
    codes = _stack(vectors, state.columns.codes.shape[1])
    columns = Columns(
        seq=np.array(seqs, np.int64),
        kind=np.array(kinds, np.int16),
        tier=np.array(tiers, np.int16),
        timestamp_us=np.array(timestamps, np.int64),
        session=np.array(sessions, np.int64),
        speaker=np.array([number_of[one] for one in speaker_hashes], np.int32),
        died_seq=np.array(died, np.int64),
        length=lengths,
        inverse_norm=inverse_norms(codes),
        codes=codes,
    )
    return columns, speakers, build_postings(terms_of(b"".join(blobs)), lengths, state.count)


def _stack(vectors: Sequence[bytes | None], dimension: int) -> NDArray[np.int8]:
    """The vectors as rows of a matrix, zeros for those that are missing; (n, 0) as long as there was none."""
    given = [vector for vector in vectors if vector is not None]
    lengths = {len(vector) for vector in given} | ({dimension} if dimension else set[int]())
    if len(lengths) > 1:
        raise EmbeddingDimensionError(expected=dimension or len(given[0]), given=max(lengths - {dimension}))
    dimension = max(lengths, default=0)
    if len(given) < len(vectors):
        missing = bytes(dimension)
        given = [missing if vector is None else vector for vector in vectors]
    return np.frombuffer(b"".join(given), np.int8).reshape(len(vectors), dimension)


def _appended(old: Columns, count: int, new: Columns) -> Columns:
    """The first `count` rows of the old columns and behind them the new ones, in place where there is room."""
    if not count:
        return new
    total = count + len(new.seq)
    arrays: dict[str, NDArray[Any]] = {}
    for one in fields(old):
        array, added = getattr(old, one.name), getattr(new, one.name)
        if len(array) < total or array.shape[1:] != added.shape[1:]:
            grown = np.zeros((total + total // _GROWTH, *added.shape[1:]), dtype=added.dtype)
            # The first vectors widen the matrix; the rows before them have none.
            if array.shape[1:] == added.shape[1:]:
                grown[:count] = array[:count]
            array = grown
        # Nobody reads behind the first `count` rows yet, so nobody sees this happen.
        array[count:total] = added
        arrays[one.name] = array
    return Columns(**arrays)


def _with_segment(segments: tuple[Postings, ...], new: Postings) -> tuple[Postings, ...]:
    """The segments and the new one, merged from the end while they are of like size."""
    merged = [*segments, new]
    while len(merged) > 1 and merged[-1].row_count * _MERGE_FACTOR >= merged[-2].row_count:
        merged[-2:] = [merge_postings(merged[-2:])]
    return tuple(merged)


# --- views --------------------------------------------------------------------------------------------------------


def view_of(state: State, as_of: int | None, kinds: Collection[int] | None) -> View:
    """The view at a point (None: now) of these kinds (None: all), built once per state.

    Cost: O(rows), 1 ms for 100,000, the first time.
    """
    key = (as_of, None if kinds is None else frozenset(kinds))
    view = state.views.get(key)
    if view is None:
        view = _build_view(state, *key)
        if len(state.views) >= _VIEWS_MAX:
            state.views.clear()
        state.views[key] = view
    return view


def _build_view(state: State, as_of: int | None, kinds: frozenset[int] | None) -> View:
    died_seq = state.column("died_seq")
    mask: NDArray[np.bool_] = died_seq == ALIVE
    if as_of is not None:
        mask |= died_seq > as_of
        mask &= state.column("seq") <= as_of
    if kinds is not None:
        mask &= np.isin(state.column("kind"), list(kinds))
    visible = None if mask.all() else mask
    lengths, speakers = state.column("length"), state.column("speaker")
    if visible is not None:
        lengths, speakers = lengths[visible], speakers[visible]
    return View(
        sessions=state.column("session"),
        visible=visible,
        documents=len(lengths),
        length=int(lengths.sum(dtype=np.int64)),
        turns_of=np.bincount(speakers, minlength=len(state.speakers) + 1),
    )


def visible_postings(state: State, view: View, terms: Sequence[int]) -> list[Posting]:
    """The visible rows that hold each term, in the order of the terms; a term may have a posting per segment.

    A term that only hidden rows hold has none, as if those had never been there.
    """
    wanted = np.array(terms, dtype=np.uint64)
    found = [posting for segment in state.segments for posting in segment.find(wanted)]
    if len(state.segments) > 1:
        found.sort(key=lambda posting: posting.term)
    if view.visible is None:
        return found
    visible = [(posting, view.visible[posting.rows]) for posting in found]
    return [Posting(one.term, one.rows[seen], one.frequencies[seen]) for one, seen in visible if seen.any()]
