"""Full text: built from the ledgers, dropped, and kept in step with the analyser.

It only makes a search over many scopes faster. What is found, and with which score, is the same without it.

Source: `engine.md` E5, E17.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from muniment.archive.engine import Engine, NoLedgerError
from muniment.archive.reader import READ_CHUNK, Reader
from muniment.core.project import analyse_event
from muniment.core.text import ANALYSER_VERSION
from muniment.model.event import ErasedEvent
from muniment.model.limits import PAGE_MAX
from muniment.model.rows import IndexText, ItemFilter, TextRow
from muniment.model.scope import Scope
from muniment.ports.storage import FULLTEXT

VERSION: Final = str(ANALYSER_VERSION)
"""Of the terms that are in it."""


def is_wanted(engine: Engine) -> bool:
    """Whether the archive's settings ask for full text, finished or not."""
    return engine.storage.find_settings().get(FULLTEXT, "off") != "off"


def keep(engine: Engine, wanted: bool) -> None:
    """Make full text what is wanted: built, finished, built anew for this analyser, or gone.

    Building may be cut short at any point: the next call goes on.
    """
    state = engine.storage.find_settings().get(FULLTEXT, "off")
    if not wanted:
        if state != "off":
            engine.storage.drop_text()
    elif state != f"on {VERSION}":
        engine.storage.begin_text(VERSION)
        _build(engine)
        engine.storage.finish_text(VERSION)


def _build(engine: Engine) -> None:
    """Index every item, a bounded number in one transaction; what is written meanwhile is indexed by its writer."""
    after = 0
    while rows := engine.storage.read_scopes(after=after, limit=PAGE_MAX):
        for row in rows:
            with suppress(NoLedgerError):  # erased meanwhile: nothing of it is left to be found
                _index_ledger(engine, Scope(row.tenant, row.subject), row.ledger_id)
        after = rows[-1].scope_no


def _index_ledger(engine: Engine, scope: Scope, ledger_id: bytes) -> None:
    first = 0
    while True:
        with engine.storage.transaction(scope, engine.new_ledger(), durable=False) as tx:
            if tx.head.ledger_id != ledger_id:
                raise NoLedgerError
            seqs = [item.seq for item in tx.read_items(ItemFilter(first=first, hidden=True), limit=READ_CHUNK)]
            events = tx.find_by_seqs(seqs)
            decode = Reader(tx).decode_one
            texts = [
                TextRow(seq, analyse_event(event, engine.tokenizer))
                for seq in seqs
                if not isinstance(event := decode(events[seq]), ErasedEvent)
            ]
            tx.apply([IndexText(texts)])
        if len(seqs) < READ_CHUNK:
            return
        first = seqs[-1] + 1
