"""The audit contract: what a memory knew at any point, what a model was given, and who removed what and why.

One scope is one ledger, which only ever grows; every state is folded from it by `replay` and never stored. `Memory` is
the view of a scope in which a read is an event like a write: `recall` hands out exactly what it records. `get`,
`events`, `replay` and `search` are an auditor's look and leave no trace.

`muniment.testing.audit` proves it on any storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from uuid import UUID

from muniment.adapters.tokenizer import tokenize
from muniment.archive import Archive, open_archive
from muniment.archive import Memory as ScopeMemory
from muniment.core.bm25 import rank_documents
from muniment.core.check import check_chars, check_count
from muniment.core.fold import replay
from muniment.core.project import analyse_event
from muniment.core.text import query_terms
from muniment.errors import ClosedError, UsageError
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
from muniment.model.limits import QUERY_CHARS_MAX, QUERY_TERMS_MAX, SEARCH_LIMIT_MAX
from muniment.model.scope import Scope
from muniment.model.state import MemoryState, RecallStats

__all__ = [
    "Archive",
    "Content",
    "Deletion",
    "Document",
    "ErasedEvent",
    "Erasure",
    "Event",
    "Memory",
    "MemoryState",
    "Message",
    "Note",
    "Recall",
    "RecallStats",
    "Scope",
    "event_from_dict",
    "event_to_dict",
    "replay",
    "search",
]

E = TypeVar("E", Message, Document, Recall)

_DEFAULT: Final = "default"


class Memory:
    """The ledger of one scope. Safe from many threads; a context manager; `bool()` is True, also when it is empty.

    Laws: A1 to A19 of the contract, each proved by the tests of `AuditContract` that carry its number.
    """

    def __init__(self, path: str | Path, *, tenant: str = _DEFAULT, subject: str = _DEFAULT) -> None:
        """Open the archive at that path, creating it where there is none; `close` closes it.

        Raises: as `muniment.open`; UsageError for a scope that cannot be, before a file is made.
        """
        scope = Scope(tenant, subject)
        self._attach(open_archive(path), scope, owned=True)

    @classmethod
    def over(cls, archive: Archive, scope: Scope) -> Self:
        """The ledger of a scope of an archive that is already open, and stays open when this view is closed."""
        view = cls.__new__(cls)
        view._attach(archive, scope, owned=False)
        return view

    def _attach(self, archive: Archive, scope: Scope, *, owned: bool) -> None:
        self._archive = archive
        self._owned = owned
        self._memory = archive.memory(scope.subject, tenant=scope.tenant)
        self._closed = False

    @property
    def scope(self) -> Scope:
        return self._memory.scope

    def __repr__(self) -> str:
        return f"<audit.Memory {self.scope.subject!r} of {self.scope.tenant!r}>"

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        """How many events the ledger has, whatever became of them."""
        return len(self._opened())

    # --- Writing ------------------------------------------------------------------------------------------------------

    def add_message(self, message: Message) -> Message:
        """Store what was said; the stored copy, with its seq and the time of recording. The given one is unchanged.

        Raises: TypeError for anything but a Message; UsageError for an event that already has a place;
                DuplicateEventError for an id that the ledger holds; LimitExceededError.
        """
        return self._opened().add(_of_class(message, Message))

    def add_document(self, document: Document) -> Document:
        """Store what was brought; the stored copy.

        Raises: as `add_message`, for a Document.
        """
        return self._opened().add(_of_class(document, Document))

    def record_recall(self, recall: Recall) -> Recall:
        """Store a read that happened elsewhere: the ids that entered a context, in order; the stored copy.

        Raises: UsageError, with nothing stored, for an id that is not content of this scope, or that is deleted or
                erased; else as `add_message`, for a Recall.
        """
        return self._opened().record(_of_class(recall, Recall))

    def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        session_id: str | None = None,
        source: str = "unknown",
        actor: str | None = None,
    ) -> tuple[Recall, list[Content]]:
        """Search the present state and record it: the stored Recall and what it names, in its order.

        Nothing found is recorded too. `session_id` tags the Recall and filters nothing.

        Raises: UsageError, with nothing stored, for an empty query and for what `search` refuses; LimitExceededError.
        Cost:   that of a keyword search in the scope's index, and one append.
        """
        return self._opened().recall(query, limit=limit, session_id=session_id, source=source, actor=actor)

    def delete(
        self,
        targets: Iterable[UUID | str],
        reason: str,
        *,
        requested_by: str | None = None,
        session_id: str | None = None,
        source: str = "unknown",
        actor: str | None = None,
    ) -> Deletion:
        """Hide messages, documents and notes from every read that hands memory to a model; the stored Deletion.

        The ledger keeps them. Deleting again is accepted and recorded; the first Deletion stays the one that did it.

        Raises: UsageError, with nothing stored, for no targets, an empty reason, and an id that is unknown here, not
                content, or erased; TypeError for a bare id in place of a collection.
        """
        return self._opened().delete(
            targets, reason, requested_by=requested_by, session_id=session_id, source=source, actor=actor
        )

    # --- An auditor's look --------------------------------------------------------------------------------------------

    def get(self, event_id: UUID | str) -> Event | ErasedEvent | None:
        """The event with that id, what is left of it if it was erased, or None for an unknown or malformed id."""
        return self._opened().get(event_id)

    def events(
        self,
        *,
        kind: str | None = None,
        session_id: str | None = None,
        after_seq: int | None = None,
        up_to_seq: int | None = None,
    ) -> list[Event | ErasedEvent]:
        """The events in seq order; filters are AND-ed, `after_seq` is exclusive and `up_to_seq` inclusive.

        Erased events answer to their kind and to seq, and to no session.

        Raises: UsageError for a kind that there is not.
        """
        listing = self._opened().events(kind=kind, session_id=session_id, after_seq=after_seq, up_to_seq=up_to_seq)
        return list(iter(listing))  # an iterator has no length, which the list would ask the storage for

    def replay(self, *, up_to_seq: int | None = None, at: datetime | None = None) -> MemoryState:
        """The state after event `up_to_seq`, or of everything recorded at or before `at`; by default, now.

        Raises: UsageError for both at once, or a naive time.
        """
        return self._opened().replay(up_to_seq=up_to_seq, at=at)

    # --- Closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close it; twice is fine. Every later call is a ClosedError."""
        self._closed = True
        if self._owned:
            self._archive.close()

    def __enter__(self) -> Self:
        self._opened()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _opened(self) -> ScopeMemory:
        if self._closed:
            raise ClosedError(f"{self!r} is closed: open it again")
        return self._memory


def search(state: MemoryState, query: str, *, limit: int = 5) -> list[Content]:
    """The visible items of a state that share a term with the query, best first, ties by seq; pure.

    Messages are searched as speaker and content, documents as name and text, notes as content and summary.

    Raises: UsageError for a limit that is not a whole number from 0 to 1,000, and for a query that is not text, above
            10,000 characters or with U+0000.
    Cost:   O(the text of the visible items), about 1 µs for 100 characters.
    Source: `audit.md` A14.
    """
    _check_limit(limit)
    if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a query is text, not {type(query).__name__}")
    check_chars("query", query, QUERY_CHARS_MAX)
    terms = query_terms(query, tokenize)
    if not terms or limit == 0:
        return []
    items = state.visible
    documents = [analyse_event(item, tokenize) for item in items]
    ranked = rank_documents(documents, _rarest(terms, documents), limit)
    return [items[index] for index, _ in ranked]


def _check_limit(limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise UsageError(f"limit must be a whole number, 0 or more, not {limit!r}")
    check_count("limit", limit, SEARCH_LIMIT_MAX, "items of one search")


def _rarest(terms: Sequence[str], documents: Sequence[Sequence[str]]) -> Sequence[str]:
    """At most 64 of the terms, in their order: the rarest of those that any document holds."""
    if len(terms) <= QUERY_TERMS_MAX:
        return terms
    holding = dict.fromkeys(terms, 0)
    for document in documents:
        for term in holding.keys() & set(document):
            holding[term] += 1
    held = [term for term in terms if holding[term]]
    kept = set(sorted(held, key=holding.__getitem__)[:QUERY_TERMS_MAX])
    return [term for term in terms if term in kept]


def _of_class(event: E, wanted: type[E]) -> E:
    """The event, if it is exactly of that class: a field that a subclass adds would not be stored."""
    if type(event) is not wanted:
        raise TypeError(f"a {wanted.__name__} is needed, not {type(event).__name__}; nothing was stored")
    return event
