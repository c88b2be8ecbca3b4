"""Memory for LLM agents that can be searched, proved and erased.

`muniment.open` opens an archive; `archive.memory(subject, tenant=…)` is the memory of one scope. Names are loaded when
they are first asked for, so that a command that needs none of them starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from muniment.archive import UNSET, Archive, Ledger, Listing, Memory, Page, ScopeInfo, Tenant
    from muniment.archive import open_archive as open  # noqa: A004  # the name of the design: muniment.open
    from muniment.archive.tenant_search import ScopedHit
    from muniment.core.fold import replay
    from muniment.errors import MunimentError
    from muniment.model.event import (
        Content,
        Deletion,
        Document,
        ErasedEvent,
        Erasure,
        Event,
        Message,
        Note,
        Recall,
        event_from_dict,
        event_to_dict,
    )
    from muniment.model.hit import Hit
    from muniment.model.item import Item
    from muniment.model.receipt import CleanReport, Receipt, SweepReport
    from muniment.model.report import ArchiveReport, LedgerHead, VerifyReport
    from muniment.model.scope import Scope
    from muniment.model.state import MemoryState, RecallStats

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "Archive",
    "ArchiveReport",
    "CleanReport",
    "Content",
    "Deletion",
    "Document",
    "ErasedEvent",
    "Erasure",
    "Event",
    "Hit",
    "Item",
    "Ledger",
    "LedgerHead",
    "Listing",
    "Memory",
    "MemoryState",
    "Message",
    "MunimentError",
    "Note",
    "Page",
    "Recall",
    "RecallStats",
    "Receipt",
    "Scope",
    "ScopeInfo",
    "ScopedHit",
    "SweepReport",
    "Tenant",
    "VerifyReport",
    "__version__",
    "event_from_dict",
    "event_to_dict",
    "open",
    "replay",
]

_EVENTS: Final = "Content Deletion Document ErasedEvent Erasure Event Message Note Recall event_from_dict event_to_dict"
_HOMES: Final = {
    "muniment.archive": "UNSET Archive Ledger Listing Memory Page ScopeInfo Tenant",
    "muniment.archive.tenant_search": "ScopedHit",
    "muniment.core.fold": "replay",
    "muniment.errors": "MunimentError",
    "muniment.model.event": _EVENTS,
    "muniment.model.hit": "Hit",
    "muniment.model.item": "Item",
    "muniment.model.receipt": "CleanReport Receipt SweepReport",
    "muniment.model.report": "ArchiveReport LedgerHead VerifyReport",
    "muniment.model.scope": "Scope",
    "muniment.model.state": "MemoryState RecallStats",
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "open":
        value = import_module("muniment.archive").open_archive
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
