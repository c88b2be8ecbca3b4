"""What other processes do in the conformance suites. Imported by name in a new interpreter, so it needs no pytest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from muniment.model.event import Event
from muniment.model.scope import Scope
from muniment.ports.clock import system_entropy
from muniment.ports.storage import Storage
from muniment.testing.rows import append_events, build_ledger


def append_one_by_one(
    opener: Callable[[], Storage], scope: Scope, events: Sequence[Event], connection: Connection
) -> None:
    """Append each event in a transaction of its own, once the other side says go; then answer with their seqs."""
    storage = opener()
    connection.send("ready")
    connection.recv()
    seqs: list[int] = []
    for event in events:
        with storage.transaction(scope, build_ledger(system_entropy), durable=False) as tx:
            seqs += [row.seq for row in append_events(tx, [event], entropy=system_entropy)]
    storage.close()
    connection.send(seqs)


def append_and_hang(
    opener: Callable[[], Storage], scope: Scope, kept: Sequence[Event], lost: Event, connection: Connection
) -> None:
    """Commit some events, each in a transaction, begin another one, and wait in its middle to be killed."""
    storage = opener()
    for number, event in enumerate(kept):
        with storage.transaction(scope, build_ledger(system_entropy), durable=number % 2 == 0) as tx:
            append_events(tx, [event], entropy=system_entropy)
    with storage.transaction(scope, build_ledger(system_entropy)) as tx:
        append_events(tx, [lost], entropy=system_entropy)
        connection.send("in the middle")
        connection.recv()
