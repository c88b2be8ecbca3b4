"""The reads of one ledger, on a connection that stands in a transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from muniment.adapters.sqlite.connection import Binding, Database
from muniment.adapters.sqlite.statements import STATEMENTS
from muniment.model.rows import EventFilter, Head, IndexRow, ItemFilter, ItemRow, StoredEvent, StoredRequest, Use

SEQ_BITS: Final = 32
SEQ_MASK: Final = 0xFFFF_FFFF
NOWHERE: Final = -1
"""A place where nothing ever is."""

_ALL: Final = -1
_NONE: Final = 1 << 62
"""A mask without a bit that a kind or tier has."""
_ERASURES_ONLY: Final = 1 << 6


class _Places(NamedTuple):
    first: int
    last: int


def mask_of(numbers: Collection[int] | None) -> int:
    """A number with bit k set where k is wanted."""
    if numbers is None:
        return _ALL
    mask = _NONE
    for number in numbers:
        mask |= 1 << number
    return mask


class SqliteSnapshot:
    """A view of one ledger that does not change while its transaction is open."""

    def __init__(self, database: Database, head: Head) -> None:
        self._database = database
        self._head = head

    @property
    def head(self) -> Head:
        return self._head

    def read_events(self, where: EventFilter, *, limit: int, newest_first: bool = False) -> list[StoredEvent]:
        mask = mask_of(where.kinds)
        if where.session_hash is not None:
            statement = "read_session_events"
        elif mask == _ERASURES_ONLY | _NONE and not newest_first:
            statement = "read_erasures"
        else:
            statement = "read_events"
        if newest_first:
            statement += "_newest_first"
        rows = self._rows(statement, **self._event_bindings(where, mask), limit=limit)
        return list(map(StoredEvent._make, rows))

    def count_events(self, where: EventFilter) -> int:
        statement = "count_events" if where.session_hash is None else "count_session_events"
        return self._integer(statement, **self._event_bindings(where, mask_of(where.kinds)))

    def find_events(self, event_ids: Sequence[bytes]) -> Mapping[bytes, StoredEvent]:
        found: dict[bytes, StoredEvent] = {}
        for event_id in event_ids:
            for row in self._rows("find_event", scope_no=self._head.scope_no, event_id=event_id):
                found[event_id] = StoredEvent._make(row)
        return found

    def count_beyond_head(self) -> int:
        return self._integer("count_beyond", first=self._place(self._head.next_seq), last=self._place(SEQ_MASK))

    def find_seq_at(self, recorded_us: int) -> int:
        # `recorded_at` never falls along a ledger, so its order is that of the places: halve the range.
        low, high = -1, self._head.next_seq - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._integer("find_recorded", place=self._place(middle)) <= recorded_us:
                low = middle
            else:
                high = middle - 1
        return low

    def read_items(self, where: ItemFilter, *, limit: int, newest_first: bool = False) -> list[ItemRow]:
        tiers = sorted(where.tiers) if where.tiers is not None else []
        if where.retained_until_us is not None:
            statement = "read_expired_items"
        elif len(tiers) == 1 and tiers[0] > 0:
            statement = "read_tier_items"
        elif not where.hidden and (where.at_seq is None or where.at_seq >= self._head.next_seq - 1):
            statement = "read_live_items"
        else:
            statement = "read_items"
        if newest_first:
            statement += "_newest_first"
        return list(map(ItemRow._make, self._rows(statement, **self._item_bindings(where), limit=limit)))

    def count_items(self, where: ItemFilter) -> int:
        statement = "count_items" if where.retained_until_us is None else "count_expired_items"
        return self._integer(statement, **self._item_bindings(where))

    def find_items(self, seqs: Sequence[int]) -> Mapping[int, ItemRow]:
        return {row[0]: ItemRow._make(row) for row in self._rows("find_items", places=self._places(seqs))}

    def find_by_seqs(self, seqs: Sequence[int]) -> Mapping[int, StoredEvent]:
        return {row[0]: StoredEvent._make(row) for row in self._rows("find_by_seqs", places=self._places(seqs))}

    def read_index_rows(self, first: int, *, model_no: int | None, limit: int) -> list[IndexRow]:
        places = self._range(first, None)
        rows = self._rows("read_index_rows", first=places.first, last=places.last, model_no=model_no, limit=limit)
        return list(map(IndexRow._make, rows))

    def read_deaths(self, first: int) -> list[tuple[int, int]]:
        rows = self._rows("read_deaths", scope_no=self._head.scope_no, first=first, place=self._place(first))
        return [(seq, died_seq) for seq, died_seq in rows]

    def read_unembedded(self, first: int, *, model_no: int, limit: int) -> list[int]:
        places = self._range(first, None)
        rows = self._rows("read_unembedded", first=places.first, last=places.last, model_no=model_no, limit=limit)
        return [seq for (seq,) in rows]

    def find_live_by_key(self, key_hash: int) -> list[ItemRow]:
        rows = self._rows("find_live_by_key", scope_no=self._head.scope_no, key_hash=key_hash)
        return list(map(ItemRow._make, rows))

    def find_by_key(self, key_hash: int) -> list[ItemRow]:
        rows = self._rows("find_by_key", scope_no=self._head.scope_no, key_hash=key_hash)
        return list(map(ItemRow._make, rows))

    def find_live_by_text(self, text_hash: int) -> list[ItemRow]:
        rows = self._rows("find_live_by_text", scope_no=self._head.scope_no, text_hash=text_hash)
        return list(map(ItemRow._make, rows))

    def find_uses(self, root_seqs: Sequence[int]) -> Mapping[int, Use]:
        return {row[0]: Use._make(row) for row in self._rows("find_uses", places=self._places(root_seqs))}

    def find_request(self, request_hash: bytes) -> StoredRequest | None:
        for row in self._rows("find_request", scope_no=self._head.scope_no, request_hash=request_hash):
            return StoredRequest._make(row)
        return None

    def _place(self, seq: int) -> int:
        """The place of a seq in this ledger; for what cannot be a seq, one where nothing ever is."""
        return self._head.scope_no << SEQ_BITS | seq if 0 <= seq <= SEQ_MASK else NOWHERE

    def _places(self, seqs: Sequence[int]) -> str:
        """The places of those seqs as a JSON list: one statement finds them all."""
        return str([self._place(seq) for seq in seqs])

    def _range(self, first: int, last: int | None) -> _Places:
        """The places of those seqs, cut to what this view holds."""
        newest = self._head.next_seq - 1
        last = newest if last is None else min(last, newest)
        if last < first:
            return _Places(1, 0)
        return _Places(self._place(max(first, 0)), self._place(last))

    def _event_bindings(self, where: EventFilter, mask: int) -> dict[str, Binding]:
        places = self._range(where.first, where.last)
        return {
            "first": places.first,
            "last": places.last,
            "kinds": mask,
            "scope_no": self._head.scope_no,
            "session_hash": where.session_hash,
        }

    def _item_bindings(self, where: ItemFilter) -> dict[str, Binding]:
        at_seq = self._head.next_seq - 1 if where.at_seq is None else where.at_seq
        last = at_seq if where.last is None else min(where.last, at_seq)
        places = self._range(where.first, last)
        return {
            "first": places.first,
            "last": places.last,
            "kinds": mask_of(where.kinds),
            "tiers": mask_of(where.tiers),
            "tier": min(where.tiers, default=0) if where.tiers is not None else 0,
            "hidden": where.hidden,
            "at_seq": at_seq,
            "scope_no": self._head.scope_no,
            "retained_until_us": where.retained_until_us,
        }

    def _rows(self, statement: str, /, **bindings: Binding) -> list[tuple[int, ...]]:
        return self._database.rows(STATEMENTS[statement], bindings)

    def _integer(self, statement: str, /, **bindings: Binding) -> int:
        return self._database.integer(STATEMENTS[statement], bindings)
