"""The state of a memory as a pure fold over its events; nothing of it is stored anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from uuid import UUID

from muniment.errors import UsageError
from muniment.model.event import Deletion, Document, ErasedEvent, Erasure, Event, Message, Note, Recall
from muniment.model.state import MemoryState, RecallStats


def replay(events: Iterable[Event | ErasedEvent]) -> MemoryState:
    """The state after the last of the events: equal events give an equal state.

    Gaps are fine and the first seq may be anything. Nothing is cross-checked: a Deletion or a Recall of ids outside the
    sequence counts.

    Raises: UsageError for an event without seq or with one that is not above the one before; TypeError for anything
            that is not an event.
    Cost:   O(events); pure.
    Source: `audit.md` A17.
    """
    fold = Fold()
    for event in events:
        fold.add(event)
    return fold.state()


class Fold:
    """A replay in progress: add events in order, take the state at any moment."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._documents: list[Document] = []
        self._notes: list[Note] = []
        self._deleted: dict[UUID, Deletion | ErasedEvent] = {}
        self._superseded: dict[UUID, UUID] = {}
        self._erased: dict[UUID, int] = {}
        self._recalls: dict[UUID, RecallStats] = {}
        self._last_seq: int | None = None

    def add(self, event: Event | ErasedEvent) -> None:
        """Fold in the next event."""
        self._advance(event)
        match event:
            case Message():
                self._messages.append(event)
            case Note():
                self._notes.append(event)
                if event.supersedes is not None:
                    self._superseded[event.supersedes] = event.id
            case Document():
                self._documents.append(event)
            case Recall():
                self._count(event)
            case Deletion():
                self._hide(event.targets, event)
            case ErasedEvent():
                self._erased[event.id] = event.erased
                if event.kind == "deletion":
                    self._hide(event.targets, event)
            case _:
                pass

    def _advance(self, event: Event | ErasedEvent) -> None:
        if not isinstance(event, Message | Note | Document | Recall | Deletion | Erasure | ErasedEvent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"replay takes events, not {type(event).__name__}")
        seq = event.seq
        if seq is None:
            raise UsageError(f"event {event.id} has no seq: only stored events can be replayed")
        if self._last_seq is not None and seq <= self._last_seq:
            raise UsageError(f"event {event.id} has seq {seq}, which is not above {self._last_seq} before it")
        self._last_seq = seq

    def _count(self, recall: Recall) -> None:
        for item_id in recall.recalled:
            before = self._recalls.get(item_id)
            count = 1 if before is None else before.num_recalled + 1
            self._recalls[item_id] = RecallStats(count, recall.timestamp)

    def _hide(self, targets: tuple[UUID, ...], deletion: Deletion | ErasedEvent) -> None:
        for target in targets:
            self._deleted.setdefault(target, deletion)

    def state(self) -> MemoryState:
        """The state after the events added so far; later additions do not change it."""
        return MemoryState(
            messages=tuple(self._messages),
            documents=tuple(self._documents),
            notes=tuple(self._notes),
            deleted=MappingProxyType(dict(self._deleted)),
            superseded=MappingProxyType(dict(self._superseded)),
            erased=MappingProxyType(dict(self._erased)),
            recall_stats=MappingProxyType(
                {item_id: stats for item_id, stats in self._recalls.items() if item_id not in self._erased}
            ),
            last_seq=self._last_seq,
        )
