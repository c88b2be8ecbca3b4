"""Everything that the reads of a storage answer, as plain values: two storages agree if their pictures are equal."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from reprlib import Repr
from typing import Final, cast

from muniment.model.rows import EventFilter, ItemFilter
from muniment.model.scope import Scope
from muniment.ports.storage import Snapshot, Storage

Picture = dict[str, object]

ALL: Final = 1_000_000
"""A limit above anything a test stores."""

_SHORT: Final = Repr()
_SHORT.maxother = 200

_STRIDE: Final = 3
"""Limits and directions are tried on one filter in three: a picture is taken after every step of a long history."""

_KINDS: Final[tuple[tuple[int, ...] | None, ...]] = (None, (), (1,), (3,), (1, 3, 5))
_TIERS: Final[tuple[tuple[int, ...] | None, ...]] = (None, (), (0,), (2,), (1, 3))


def picture_of_scope(
    storage: Storage, of: Scope | bytes, *, request_hashes: Iterable[bytes] = (), session_hashes: Iterable[int] = ()
) -> Picture | None:
    """What a snapshot of that scope, or of the ledger with that id, answers, or None where there is no ledger."""
    with storage.snapshot(of) as snapshot:
        if snapshot is None:
            return None
        return picture_of(snapshot, request_hashes=request_hashes, session_hashes=session_hashes)


def picture_of_archive(storage: Storage) -> Picture:
    """What the reads over all scopes answer; sizes apart, which no two adapters have in common."""
    tenants = storage.find_tenants(limit=ALL)
    scopes = storage.read_scopes(limit=ALL)
    return {
        "tenants": tenants,
        "tenants after": {name: storage.find_tenants(after=name, limit=2) for name in (*tenants, "", "a", "zz")},
        "scopes": scopes,
        "scopes of tenants": {name: storage.read_scopes(tenant=name, limit=ALL) for name in (*tenants, "no such")},
        "scopes after": {row.scope_no: storage.read_scopes(after=row.scope_no, limit=2) for row in scopes},
        "erased scopes": storage.read_scopes(erased=True, limit=ALL),
        "erased scopes of tenants": {
            name: storage.read_scopes(tenant=name, erased=True, limit=ALL) for name in (*tenants, "no such")
        },
        "pending": storage.find_pending(),
        "models": storage.find_models(),
        "settings": dict(storage.find_settings()),
        "stats": storage.stats()._replace(size_bytes=0),
        "check": storage.check(),
    }


def picture_of(
    snapshot: Snapshot, *, request_hashes: Iterable[bytes] = (), session_hashes: Iterable[int] = ()
) -> Picture:
    """What every read of the port answers on that view, for filters of every sort."""
    return {
        "head": snapshot.head,
        **_events(snapshot, session_hashes),
        **_items(snapshot),
        "requests": {request: snapshot.find_request(request) for request in request_hashes},
    }


def find_differences(one: Picture | None, other: Picture | None) -> list[str]:
    """Where two pictures differ, in short; empty for equal ones.

    Compare pictures by this and not by `==`: the diff that pytest makes of two whole pictures takes minutes to print.
    """
    left, right = one or {}, other or {}
    names = sorted(left.keys() | right.keys(), key=str)
    return [
        f"{name}{_describe_difference(left.get(name), right.get(name))}"
        for name in names
        if left.get(name) != right.get(name)
    ]


def _describe_difference(one: object, other: object) -> str:
    if isinstance(one, list) and isinstance(other, list):
        left, right = cast("list[object]", one), cast("list[object]", other)
        for at, (first, second) in enumerate(zip(left, right, strict=False)):
            if first != second:
                return f"[{at}]{_describe_difference(first, second)}"
        return f": {len(left)} and {len(right)} entries"
    if isinstance(one, dict) and isinstance(other, dict):
        parts = find_differences(cast("Picture", one), cast("Picture", other))
        return f".{parts[0]}"
    return f": {_SHORT.repr(one)} and {_SHORT.repr(other)}"


def _events(snapshot: Snapshot, session_hashes: Iterable[int]) -> Picture:
    events = snapshot.read_events(EventFilter(), limit=ALL)
    sessions = (None, *session_hashes)
    middle = len(events) // 2
    filters = [
        EventFilter(first=first, last=last, kinds=kinds, session_hash=session)
        for (first, last), kinds, session in product(
            [(0, None), (middle, None), (1, middle), (middle, 1)], _KINDS, sessions
        )
    ]
    instants = _around(event.recorded_us for event in events)
    return {
        "events": [snapshot.read_events(where, limit=ALL) for where in filters],
        "first events": [snapshot.read_events(where, limit=2) for where in filters[::_STRIDE]],
        "last events": [snapshot.read_events(where, limit=2, newest_first=True) for where in filters[1::_STRIDE]],
        "no events": snapshot.read_events(EventFilter(), limit=0),
        "counts of events": [snapshot.count_events(where) for where in filters],
        "beyond the head": snapshot.count_beyond_head(),
        "events by seq": dict(snapshot.find_by_seqs([-1, *range(len(events) + 1), 2**32])),
        "events by id": dict(snapshot.find_events([event.event_id for event in events])),
        "seqs at": {instant: snapshot.find_seq_at(instant) for instant in instants},
    }


def _items(snapshot: Snapshot) -> Picture:
    rows = snapshot.read_items(ItemFilter(hidden=True), limit=ALL)
    last = max((row.seq for row in rows), default=0)
    filters = [
        ItemFilter(first=first, last=last, at_seq=at_seq, hidden=hidden)
        for (first, last), at_seq, hidden in product(
            [(0, None), (last // 2, None), (1, last // 2)], [None, -1, *range(last + 3)], [False, True]
        )
    ] + [
        ItemFilter(kinds=kinds, tiers=tiers, at_seq=at_seq)
        for kinds, tiers, at_seq in product(_KINDS, _TIERS, [None, last // 2])
    ]
    filters += [
        ItemFilter(retained_until_us=instant, at_seq=at_seq, hidden=hidden, kinds=kinds)
        for instant, at_seq, hidden, kinds in product(
            _around(row.retain_us for row in rows if row.retain_us is not None),
            [None, last // 2],
            [False, True],
            [None, (1,)],
        )
    ]
    return {
        "items": [snapshot.read_items(where, limit=ALL) for where in filters],
        "first items": [snapshot.read_items(where, limit=2) for where in filters[::_STRIDE]],
        "last items": [snapshot.read_items(where, limit=2, newest_first=True) for where in filters[1::_STRIDE]],
        "counts of items": [snapshot.count_items(where) for where in filters],
        "index rows": [
            snapshot.read_index_rows(first, model_no=model_no, limit=limit)
            for first, model_no, limit in product([0, 1, last], [None, 1, 2], [1, ALL])
        ],
        "deaths": [snapshot.read_deaths(first) for first in range(last + 3)],
        "unembedded": [
            snapshot.read_unembedded(first, model_no=model_no, limit=limit)
            for first, model_no, limit in product([0, 1, last], [1, 2], [1, ALL])
        ],
        "items by seq": dict(snapshot.find_items(range(last + 2))),
        "items by key": {key: snapshot.find_by_key(key) for key in _hashes(row.key_hash for row in rows)},
        "live items by key": {key: snapshot.find_live_by_key(key) for key in _hashes(row.key_hash for row in rows)},
        "items by text": {text: snapshot.find_live_by_text(text) for text in _hashes(row.text_hash for row in rows)},
        "uses": dict(snapshot.find_uses(range(snapshot.head.next_seq + 2))),
    }


def _around(instants: Iterable[int]) -> list[int]:
    """These instants and their neighbours, within 64 bits."""
    near = {instant + step for instant in instants for step in (-1, 0, 1)}
    return sorted(instant for instant in near if -(2**63) <= instant < 2**63)


def _hashes(values: Iterable[int | None]) -> list[int]:
    return sorted({value for value in values if value is not None} | {0})
