"""Builders of rows that a storage takes, valid down to their digests and leaves.

They are the suite's own. Hashes here are unsalted, and `build_item` takes any value, so that a suite can store what
the engine never would.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from muniment.core.canonical import (
    KIND_NUMBERS,
    LEDGER_ID_BYTES,
    SALT_BYTES,
    Envelope,
    digest_of,
    encode_content,
    encode_links,
    leaf_of,
    to_us,
)
from muniment.core.merkle import extend_edge, pack_edge, unpack_edge
from muniment.model.event import TIERS, Content, Event, Note
from muniment.model.rows import Head, ItemRow, NewEvent, NewLedger, StoredEvent
from muniment.ports.clock import Entropy
from muniment.ports.storage import Transaction

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1


def hash_of(text: str) -> int:
    """A signed hash of 64 bits, as storages keep them."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)


def hash_of_session(session_id: str | None) -> int | None:
    """The hash that a row of that session carries."""
    return None if session_id is None else hash_of(f"session {session_id}")


def build_ledger(entropy: Entropy) -> NewLedger:
    """The random parts of a new ledger."""
    return NewLedger(entropy(LEDGER_ID_BYTES), entropy(SALT_BYTES))


def build_rows(
    head: Head, events: Sequence[Event], *, recorded_us: int, entropy: Entropy
) -> tuple[list[NewEvent], bytes]:
    """The rows that append these events to the ledger of that head, and its edge after them."""
    rows: list[NewEvent] = []
    for seq, event in enumerate(events, head.next_seq):
        salt, body = entropy(SALT_BYTES), encode_content(event)
        envelope = Envelope(
            seq, event.id.bytes, KIND_NUMBERS[event.kind], recorded_us, digest_of(salt, body), encode_links(event)
        )
        leaf = leaf_of(head.ledger_id, envelope)
        rows.append(NewEvent(*envelope, leaf, salt, body, hash_of_session(event.session_id)))
    edge = extend_edge(unpack_edge(head.edge, head.next_seq), head.next_seq, [row.leaf for row in rows])
    return rows, pack_edge(edge)


def append_events(
    tx: Transaction, events: Sequence[Event], *, entropy: Entropy, recorded_us: int = 0
) -> list[NewEvent]:
    """The rows that were appended for these events; times before the last recorded one are raised to it."""
    rows, edge = build_rows(tx.head, events, recorded_us=max(recorded_us, tx.head.recorded_us), entropy=entropy)
    tx.append(rows, edge)
    return rows


def build_item(
    seq: int,
    kind: str = "note",
    *,
    tier: int | None = None,
    timestamp_us: int = 0,
    created_us: int = 0,
    root_seq: int | None = None,
    session: str | None = None,
    speaker: str | None = None,
    key: str | None = None,
    text: str | None = None,
    terms: bytes = b"",
    retain_us: int | None = None,
) -> ItemRow:
    """An item that nothing has hidden yet; a note is archival unless a tier is given."""
    if tier is None:
        tier = 2 if kind == "note" else 0
    return ItemRow(
        seq=seq,
        kind=KIND_NUMBERS[kind],
        tier=tier,
        timestamp_us=timestamp_us,
        created_us=created_us,
        root_seq=seq if root_seq is None else root_seq,
        deleted_seq=None,
        superseded_seq=None,
        session_hash=hash_of_session(session),
        speaker_hash=None if speaker is None else hash_of(f"speaker {speaker}"),
        key_hash=None if key is None else hash_of(f"key {key}"),
        text_hash=None if text is None else hash_of(f"text {tier} {text}"),
        terms=terms,
        retain_us=retain_us,
    )


def build_item_of(event: Content, seq: int) -> ItemRow:
    """The item of a message, document or note that was stored at that seq."""
    note = event if isinstance(event, Note) else None
    retain_until = event.retain_until
    return build_item(
        seq,
        event.kind,
        tier=0 if note is None else TIERS.index(note.tier) + 1,
        timestamp_us=to_us(event.timestamp),
        created_us=to_us(event.timestamp),
        session=event.session_id,
        key=None if note is None else note.key,
        text=None if note is None else note.content,
        terms=sha256(event.id.bytes).digest(),
        retain_us=None if retain_until is None else to_us(retain_until),
    )


def stored(row: NewEvent) -> StoredEvent:
    """The row as it is read back."""
    return StoredEvent(*row[:-1])
