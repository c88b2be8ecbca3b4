"""Memory for LLM agents that can be searched, proved and erased.

`muniment.open` opens an archive; `archive.memory(subject, tenant=…)` is the memory of one scope.
"""

from muniment.archive import UNSET, Archive, Listing, Memory, Page, ScopeInfo, Tenant
from muniment.archive import open_archive as open  # noqa: A004  # the name of the design: muniment.open
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
from muniment.model.item import Item
from muniment.model.report import ArchiveReport, LedgerHead, VerifyReport
from muniment.model.scope import Scope
from muniment.model.state import MemoryState, RecallStats

__version__ = "0.1.0"

__all__ = [
    "UNSET",
    "Archive",
    "ArchiveReport",
    "Content",
    "Deletion",
    "Document",
    "ErasedEvent",
    "Erasure",
    "Event",
    "Item",
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
    "Scope",
    "ScopeInfo",
    "Tenant",
    "VerifyReport",
    "__version__",
    "event_from_dict",
    "event_to_dict",
    "open",
    "replay",
]
