"""Deriving what is derived: projections from the ledger, vectors from the texts.

Source: `engine.md` E6, E12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from muniment.archive.engine import Engine
from muniment.archive.reader import READ_CHUNK, Reader, read_in_chunks
from muniment.core.project import Known, Projector, analyse_event, embedded_text
from muniment.core.projection import Projection
from muniment.model.event import ErasedEvent, Event
from muniment.model.rows import (
    Change,
    DropOtherVectors,
    DropProjections,
    EventFilter,
    ItemFilter,
    KeepVectors,
    ModelRow,
    RaiseEpoch,
    VectorRow,
)
from muniment.model.scope import Scope
from muniment.ports.storage import Snapshot, Transaction

REINDEX_BATCH = 256
"""Texts embedded at once: enough for a model to be quick, few enough for a progress bar to move."""


def rebuild_projections(engine: Engine, tx: Transaction) -> int:
    """Drop the items and uses of a ledger and derive them again; how many events there are."""
    tx.apply([DropProjections()])
    for changes in derive_changes(engine, tx):
        tx.apply(changes)
    return tx.head.next_seq


def derive_changes(
    engine: Engine, view: Snapshot, see: Callable[[Event], None] | None = None
) -> Iterator[list[Change]]:
    """What the whole ledger comes to for items and uses, a bounded number of events at a time.

    `see` is shown every event that still has its content.
    """
    projector = Projector(engine.hashes_of(view.head), Known())
    reader = Reader(view)
    rows = iter(read_in_chunks(view, EventFilter()))
    while chunk := list(islice(rows, READ_CHUNK)):
        for event in reader.decode(chunk):
            if isinstance(event, ErasedEvent):
                projector.hide(event.targets if event.kind == "deletion" else (), event.seq)
                continue
            if see is not None:
                see(event)
            projector.add(event, analyse_event(event, engine.tokenizer))
        yield projector.changes()


def find_stray_item(engine: Engine, view: Snapshot) -> int | None:
    """The seq of the first item, use or session that is not what the ledger comes to; None when all are.

    Cost: O(ledger) time, and the memory of its items.
    """
    wanted = Projection()
    sessions: dict[str, list[int]] = {}

    def see(event: Event) -> None:
        if event.session_id is not None and event.seq is not None:
            sessions.setdefault(event.session_id, []).append(event.seq)

    for changes in derive_changes(engine, view, see):
        wanted.apply(changes)
    session_of = engine.hashes_of(view.head).session
    for session_id, seqs in sessions.items():
        if view.count_events(EventFilter(session_hash=session_of(session_id))) != len(seqs):
            return seqs[0]
    first = 0
    while rows := view.read_items(ItemFilter(first=first, hidden=True), limit=READ_CHUNK):
        uses = view.find_uses([row.seq for row in rows])
        for row in rows:
            if wanted.items.pop(row.seq, None) != row or wanted.uses.pop(row.seq, None) != uses.get(row.seq):
                return row.seq
        first = rows[-1].seq + 1
    return min([*wanted.items, *wanted.uses], default=None)


def embed_missing(engine: Engine, scope: Scope, model: ModelRow, progress: Callable[[int], None]) -> int:
    """Give every item of a scope that has none a vector under that model; how many that were.

    Resumable: what an earlier run embedded is not embedded again. Texts are embedded with no transaction open.
    """
    first = done = 0
    while True:
        with engine.storage.snapshot(scope) as view:
            if view is None:
                return done
            seqs = view.read_unembedded(first, model_no=model.model_no, limit=REINDEX_BATCH)
            reader = Reader(view)
            texts = {seq: text for seq in seqs if (text := embedded_text(reader.find_content(seq)))}
        if not seqs:
            return done
        codes = engine.vectors.embed_for(model, list(texts.values())) if texts else []
        with engine.storage.transaction(scope, engine.new_ledger()) as tx:
            alive = tx.find_items(list(texts))
            rows = [
                VectorRow(seq, model.model_no, code) for seq, code in zip(texts, codes, strict=True) if seq in alive
            ]
            tx.apply([KeepVectors(rows), RaiseEpoch()])
        done += len(rows)
        first = seqs[-1] + 1
        progress(len(seqs))


def drop_other_vectors(engine: Engine, scope: Scope, model: ModelRow) -> None:
    """Forget what other models made of a scope."""
    with engine.storage.transaction(scope, engine.new_ledger()) as tx:
        tx.apply([DropOtherVectors(model.model_no)])
