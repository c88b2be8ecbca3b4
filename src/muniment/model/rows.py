"""The rows that cross the border between the engine and a storage: plain values, and changes as data.

Ids and hashes are bytes and integers, instants microseconds since 1970; a seq is a place in one ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class NewLedger(NamedTuple):
    """The random parts of a ledger that a transaction may have to begin."""

    ledger_id: bytes
    salt: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The head row of a ledger: locked by every write, read by every search."""

    scope_no: int
    ledger_id: bytes
    next_seq: int
    edge: bytes
    """The right edge of the hash tree over `next_seq` leaves."""
    epoch: int
    """Rises when rows disappear or are rebuilt; equal epoch and equal `next_seq` mean equal rows."""
    salt: bytes
    """What terms, sessions, keys and request ids of this scope are hashed with."""
    recorded_us: int
    """`recorded_at` of the last event; the smallest integer of 64 bits before the first."""
    erased_us: int | None


class NewEvent(NamedTuple):
    """An event to append: envelope, leaf and content."""

    seq: int
    event_id: bytes
    kind: int
    recorded_us: int
    digest: bytes
    links: bytes
    leaf: bytes
    salt: bytes
    body: bytes
    session_hash: int | None


class StoredEvent(NamedTuple):
    """A stored event: its envelope and leaf, and its content unless that was erased."""

    seq: int
    event_id: bytes
    kind: int
    recorded_us: int
    digest: bytes
    links: bytes
    leaf: bytes
    salt: bytes | None
    body: bytes | None


class ItemRow(NamedTuple):
    """A message, document or note as search finds it: the projection of its event and of what happened to it since."""

    seq: int
    kind: int
    tier: int
    """0 for what is not a note, else 1 core, 2 archival, 3 insight."""
    timestamp_us: int
    created_us: int
    """The timestamp of the first version along a chain of one key."""
    root_seq: int
    """The seq of the first version along a chain of one key; its own seq otherwise."""
    deleted_seq: int | None
    superseded_seq: int | None
    session_hash: int | None
    speaker_hash: int | None
    key_hash: int | None
    text_hash: int | None
    """Of a note's tier and text."""
    terms: bytes
    """One little-endian 64-bit hash per analysed token, in order."""
    retain_us: int | None = None
    """The instant after which it need not be kept."""


class IndexRow(NamedTuple):
    """An item as the scope index reads it."""

    seq: int
    kind: int
    tier: int
    timestamp_us: int
    session: int
    """A 64-bit hash of the session, 0 for none. The rows of a session are its turns."""
    speaker: int
    """A 64-bit hash of the speaker, 0 for none."""
    died_seq: int
    """The seq of the event that hid the item first, or -1."""
    terms: bytes
    codes: bytes | None = None
    """The vector under the current model, a signed byte per dimension."""


class ModelRow(NamedTuple):
    """An embedding model: vectors of two models say nothing about each other."""

    model_no: int
    name: str
    dimension: int
    probe: bytes
    """What it makes of a fixed text, as codes: a model that changed under its name shows."""


class VectorRow(NamedTuple):
    """The vector of an item."""

    seq: int
    model_no: int
    codes: bytes


class Use(NamedTuple):
    """How often a chain of versions was handed out, and when last."""

    root_seq: int
    times: int
    last_used_us: int


class StoredRequest(NamedTuple):
    """What an append with a request id did."""

    request_hash: bytes
    fingerprint: bytes
    """Of the whole call; empty once something of what it stored is erased, for it was made from that."""
    first_seq: int
    num_events: int
    call: str
    """The name of the call, which says nothing of its content."""


class ScopeRow(NamedTuple):
    """One ledger of an archive with the scope it belongs to, or the tenant it belonged to."""

    scope_no: int
    tenant: str
    """Empty where the tenant was dropped."""
    subject: str | None
    """None for the unscoped shelf, and for a ledger whose scope was erased."""
    ledger_id: bytes
    next_seq: int
    recorded_us: int
    erased_us: int | None = None


class TextRow(NamedTuple):
    """An item as full text finds it."""

    seq: int
    terms: Sequence[str]
    """The analysed terms, repeats included."""


class TextMatches(NamedTuple):
    """What full text knows of a query in the visible items of a tenant, all from one moment."""

    documents: int
    length: int
    """All their terms together."""
    places: Sequence[Sequence[int]]
    """Of each term, where the items are that hold it, ascending: `scope_no << 32 | seq`."""


class PendingClean(NamedTuple):
    """An erasure whose bytes the files may still hold."""

    receipt_id: bytes
    ledger_id: bytes
    at_us: int


class CleanOutcome(NamedTuple):
    """What a clean step did."""

    completed: Sequence[PendingClean]
    """The erasures of which no byte is left."""
    blocked: str | None
    """Why it could not be finished, if it could not."""
    markers_searched: int
    residue_hits: int
    """How often a marker was found in the files."""
    orphan_rows: int
    """Rows without the event or content that they belong to."""
    free_pages: int
    size_before: int
    size_after: int
    copies: Sequence[str] = ()
    """Copies of the archive that this version made and that the clean step leaves alone: the operator deletes them."""


class StorageStats(NamedTuple):
    """Counts over the whole archive; `size_bytes` is what its files take."""

    tenants: int
    scopes: int
    events: int
    contents: int
    items: int
    size_bytes: int


# --- Changes of projections, as data ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddItems:
    rows: Sequence[ItemRow]


@dataclass(frozen=True, slots=True)
class IndexText:
    """Let full text find these items; an item that it finds already stays as it is.

    Nothing happens where the archive keeps no full text.
    """

    rows: Sequence[TextRow]


@dataclass(frozen=True, slots=True)
class UnindexText:
    """Let full text forget these items. The terms must be those that were indexed: an index is undone by its terms."""

    rows: Sequence[TextRow]


@dataclass(frozen=True, slots=True)
class HideItems:
    """A Deletion at `at_seq` hid these items; an item already hidden keeps the Deletion that did it."""

    seqs: Sequence[int]
    at_seq: int


@dataclass(frozen=True, slots=True)
class SupersedeItem:
    """The note at `by_seq` took the key of the note at `seq`."""

    seq: int
    by_seq: int


@dataclass(frozen=True, slots=True)
class CountUses:
    """Add to the counts; the last use is the one given, whatever its time."""

    uses: Sequence[Use]


@dataclass(frozen=True, slots=True)
class KeepRequest:
    request: StoredRequest


@dataclass(frozen=True, slots=True)
class KeepVectors:
    """Store vectors, in place of those that the items have under the same model."""

    rows: Sequence[VectorRow]


@dataclass(frozen=True, slots=True)
class DropOtherVectors:
    """Forget the vectors of every model but this one; the epoch rises."""

    model_no: int


@dataclass(frozen=True, slots=True)
class RaiseEpoch:
    """Rows that stood there have changed: indexes of them are built anew."""


@dataclass(frozen=True, slots=True)
class DropProjections:
    """Forget every item and use of the ledger, before a rebuild; the epoch rises."""


@dataclass(frozen=True, slots=True)
class EraseEvents:
    """Destroy the content of these events and every row made from it; the epoch rises.

    A kept request that stored one of them loses its fingerprint, which was made from the content.
    """

    events: Sequence[tuple[int, bytes]]
    """Seq and event id of each."""


@dataclass(frozen=True, slots=True)
class EraseLedger:
    """Destroy every content of the ledger, every row made from it, its requests, its salt and the name of its scope."""

    at_us: int


@dataclass(frozen=True, slots=True)
class MoveRoots:
    """The first version of a chain is gone: its other versions count from their oldest one."""

    rows: Sequence[tuple[int, int, int]]
    """Of each item: seq, new `root_seq`, new `created_us`."""


@dataclass(frozen=True, slots=True)
class SetUses:
    """Set the counts of these chains; a chain of 0 uses has no row."""

    uses: Sequence[Use]


@dataclass(frozen=True, slots=True)
class AwaitClean:
    """The files hold bytes of what this transaction destroys, until a clean step has run."""

    pending: PendingClean


Change = (
    AddItems
    | IndexText
    | UnindexText
    | HideItems
    | SupersedeItem
    | CountUses
    | KeepRequest
    | KeepVectors
    | DropOtherVectors
    | RaiseEpoch
    | DropProjections
    | EraseEvents
    | EraseLedger
    | MoveRoots
    | SetUses
    | AwaitClean
)


# --- Filters ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events of a ledger: `first` and `last` are inclusive seqs; None is no filter."""

    first: int = 0
    last: int | None = None
    kinds: Collection[int] | None = None
    session_hash: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Which items of a ledger, as they stood after the event `at_seq` (None: now)."""

    first: int = 0
    last: int | None = None
    at_seq: int | None = None
    kinds: Collection[int] | None = None
    tiers: Collection[int] | None = None
    hidden: bool = False
    """Whether deleted and superseded items are wanted too."""
    retained_until_us: int | None = None
    """Only items that need not be kept after an instant up to this one."""
