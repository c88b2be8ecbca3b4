"""What every use case of one opened archive shares: storage, time, randomness, words and vectors."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final
from uuid import UUID

from muniment.archive.indexes import IndexCache
from muniment.archive.vectors import OnEmbedError, VectorSpace
from muniment.core.canonical import LEDGER_ID_BYTES, SALT_BYTES
from muniment.core.project import Hashes
from muniment.core.text import Tokenizer
from muniment.model.rows import Head, NewLedger
from muniment.ports.clock import Clock, Entropy
from muniment.ports.embedder import Embedder
from muniment.ports.storage import Storage

_HASHES_KEPT: Final = 256
"""Ledgers whose hashed terms are remembered; each takes up to a few megabytes."""


class NoLedgerError(Exception):
    """Leaves a transaction of a scope without the ledger it was meant for, so that none is begun or written to."""


class Engine:
    """The parts of an archive, handed to its scopes; safe from many threads."""

    def __init__(
        self,
        storage: Storage,
        *,
        clock: Clock,
        entropy: Entropy,
        tokenizer: Tokenizer,
        embedder: Embedder | None = None,
        on_embed_error: OnEmbedError = "raise",
        records_reads: bool = True,
    ) -> None:
        self.storage = storage
        self.vectors = VectorSpace(storage, embedder, on_embed_error)
        self.indexes = IndexCache(storage, self.forget_ledger)
        self.records_reads = records_reads
        self.clock = clock
        self.entropy = entropy
        self.tokenizer = tokenizer
        self._hashes: OrderedDict[bytes, Hashes] = OrderedDict()
        self._hashes_lock = threading.Lock()

    def new_ledger(self) -> NewLedger:
        """The random parts of a ledger that may have to be begun."""
        random = self.entropy(LEDGER_ID_BYTES + SALT_BYTES)
        return NewLedger(random[:LEDGER_ID_BYTES], random[LEDGER_ID_BYTES:])

    def new_id(self) -> UUID:
        """A random id of version 4."""
        return UUID(bytes=self.entropy(16), version=4)

    def hashes_of(self, head: Head) -> Hashes:
        """The hashes of a ledger, kept for its next use."""
        with self._hashes_lock:
            hashes = self._hashes.get(head.ledger_id)
            if hashes is None:
                hashes = self._hashes[head.ledger_id] = Hashes(head.salt)
                if len(self._hashes) > _HASHES_KEPT:
                    self._hashes.popitem(last=False)
            else:
                self._hashes.move_to_end(head.ledger_id)
            return hashes

    def forget_ledger(self, ledger_id: bytes) -> None:
        """Drop what is kept of a ledger that was erased."""
        with self._hashes_lock:
            self._hashes.pop(ledger_id, None)
        self.indexes.forget(ledger_id)

    def close(self) -> None:
        """Drop everything that is kept, then close the storage."""
        self.indexes.close()
        self.storage.close()
