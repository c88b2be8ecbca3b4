"""The adapter of `MemoryPort` for one scope of an archive: its visible notes, read and changed as a whole store.

Laws P22 and P23 of the portable contract. What a save changes is worked out by `changes`, on plain values; what it adds
to the ledger is compared and stored by `Memory.change`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from pydantic import JsonValue

from muniment.archive import Changed, Memory, Standing
from muniment.core.check import check_chars, check_count, check_text
from muniment.errors import ConflictError, UsageError
from muniment.model.event import Deletion, Note
from muniment.model.limits import LABEL_CHARS_MAX, LABELS_MAX
from muniment.portable.changes import Changes, NewNote, parse_rank, plan_changes, render_rank
from muniment.portable.changes import Standing as Placed
from muniment.portable.store import MemoryCategory, MemoryEntry, MemoryStore, check_entry, check_store

SOURCE: Final = "portable"
"""The source of every event that a port writes, and the key of its part of a note's metadata."""

REASON: Final = "no longer in the saved store"

Foreign = Literal["refuse", "manage"]

_RANK_CHARS_MAX: Final = 1_000
"""Characters of a rank that is written. Entries put in the same place one after the other take a digit more about every
third time, so that a host gets there with 3,300 of them; a rank that is read may be ten times as long."""

_RANK_CHARS_SHORT: Final = 100
"""Where that happens, the notes whose rank is longer than this are written anew."""


class ArchiveMemoryPort:
    """The visible notes of one scope as a store, whoever wrote them.

    A save appends the difference only: a note for each entry that is new or stands elsewhere, and one deletion of the
    notes that the store holds no longer. It does so in one transaction, and only if no note came, went or was
    replaced since this port last loaded or saved; messages and reads in between do not matter. So `replay` shows every
    store that was ever saved. What was deleted is hidden, and stays in the ledger until `forget` or `erase`.

    `foreign="refuse"` refuses a save that would hide a note which no port wrote (a fact, a memory of the service): one
    that is left out, changed, or moved before others. `foreign="manage"` lets it.

    Not for several threads at once: a port stands for one host that loads, changes and saves. Make another.

    Raises: UsageError for what is not a `muniment.Memory`, and for another value of `foreign`.
    """

    def __init__(self, memory: Memory, *, foreign: Foreign = "refuse") -> None:
        if not isinstance(memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"memory must be a muniment.Memory, not {type(memory).__name__}")
        if foreign not in ("refuse", "manage"):
            raise UsageError(f"foreign is 'refuse' or 'manage', not {foreign!r}")
        self._memory = memory
        self._foreign = foreign
        self._seen: _Version | None = None
        """What this port last loaded or saved; None before that."""

    def __repr__(self) -> str:
        return f"<ArchiveMemoryPort {self._memory!r}>"

    def load(self) -> MemoryStore:
        """The store of the scope; an empty one if there is none. Nothing is recorded: the entries go to the host."""
        standing = self._memory.standing()
        self._seen = _Version.of(standing)
        return build_store(standing.notes)

    def save(self, store: MemoryStore) -> None:
        """Make the visible notes be this store, if they still are what this port last loaded or saved.

        A port that has done neither saves only where no note is visible.

        Raises: ConflictError with the expected and the actual version; UsageError naming a note that would be hidden
                under `foreign="refuse"`, or the place of a text that a ledger refuses; LimitExceededError above the
                engine's limits, 10,000 events of one save among them. In each case nothing is stored.
        """
        entries = [check_entry(f"entries[{index}]", entry) for index, entry in enumerate(check_store(store).entries)]

        def decide(standing: Standing) -> Sequence[Note | Deletion]:
            self._check_unchanged(standing)
            return self._find_changes(standing, entries)

        self._seen = _Version.of(self._memory.change(decide))

    def _check_unchanged(self, standing: Standing) -> None:
        is_unchanged = not standing.notes if self._seen is None else self._seen.is_still(standing)
        if not is_unchanged:
            raise ConflictError(
                "the notes of this scope are not what this port last loaded or saved: load again and repeat the change",
                expected=None if self._seen is None else str(self._seen),
                actual=str(_Version.of(standing)),
            )

    def _find_changes(self, standing: Standing, entries: Sequence[MemoryEntry]) -> list[Note | Deletion]:
        changes = _plan(_order(standing.notes), entries, next_seq=standing.change_seq + 1)
        if self._foreign == "refuse":
            _refuse_hiding(standing.notes, changes)
        events: list[Note | Deletion] = [
            self._memory.build(Note, source=SOURCE, **_fields_of(new)) for new in changes.notes
        ]
        if changes.gone:
            targets = tuple([placed.id for placed in changes.gone])
            events.append(self._memory.build(Deletion, targets=targets, reason=REASON, source=SOURCE))
        return events


@dataclass(frozen=True, slots=True)
class _Version:
    """Names a state of the notes of a scope."""

    ledger_id: str | None
    change_seq: int

    @classmethod
    def of(cls, point: Standing | Changed) -> _Version:
        return cls(point.ledger_id, point.change_seq)

    def is_still(self, standing: Standing) -> bool:
        """Whether no note came, went or was replaced; a ledger begun since by a message or a read does not matter."""
        begun_since = self.ledger_id is None and standing.change_seq == self.change_seq == -1
        return begun_since or self == _Version.of(standing)

    def __str__(self) -> str:
        return "absent" if self.ledger_id is None else f"{self.ledger_id}:{self.change_seq}"


def build_store(notes: Sequence[Note]) -> MemoryStore:
    """The store that these notes stand for, which are visible together; also those of a replayed state."""
    return MemoryStore([placed.entry for placed in _order(notes)])


# ---- notes and entries ---------------------------------------------------------------------------------------------


def _order(notes: Sequence[Note]) -> list[Placed]:
    """The notes as entries in store order: by rank, then by seq (P22)."""
    return sorted([_read_note(note) for note in notes], key=lambda placed: (placed.rank, placed.seq))


def _read_note(note: Note) -> Placed:
    # Anybody may write under this key, so what cannot be from a port counts as not there.
    part = note.metadata.get(SOURCE)
    own = part if isinstance(part, dict) else {}
    created_at = own.get("createdAt")
    seq = cast("int", note.seq)
    return Placed(
        note.id,
        seq,
        parse_rank(own.get("rank"), seq),
        MemoryEntry(
            note.content,
            MemoryCategory(note.tier),
            created_at if isinstance(created_at, str) else None,
            note.labels or (() if own.get("tags") == [] else None),
        ),
    )


def _fields_of(new: NewNote) -> dict[str, Any]:
    """The fields of the note for an entry; what a note cannot say otherwise stands in its metadata.

    Raises: UsageError and LimitExceededError naming the place in the store.
    """
    entry = new.entry
    _check_limits(f"entries[{new.index}]", entry)
    own: dict[str, JsonValue] = {}
    if entry.created_at is not None:
        own["createdAt"] = entry.created_at
    if entry.tags == ():
        own["tags"] = []
    if new.rank is not None:
        own["rank"] = render_rank(new.rank)
    return {
        "content": entry.content,
        "tier": entry.category.value,
        "labels": entry.tags or (),
        "metadata": {SOURCE: own} if own else {},
    }


def _check_limits(place: str, entry: MemoryEntry) -> None:
    """Nothing, if a note can hold the entry: the engine checks the same, and cannot name the entry."""
    check_text(f"{place}.content", entry.content)
    if entry.created_at is not None:
        check_text(f"{place}.createdAt", entry.created_at)
    if entry.tags:
        check_count(f"{place}.tags", len(entry.tags), LABELS_MAX, "tags")
        for index, tag in enumerate(entry.tags):
            check_chars(f"{place}.tags[{index}]", tag, LABEL_CHARS_MAX)


# ---- what to change ------------------------------------------------------------------------------------------------


def _plan(before: Sequence[Placed], after: Sequence[MemoryEntry], *, next_seq: int) -> Changes:
    """The smallest change; the next larger one where that would write a rank that is too long."""
    changes = plan_changes(before, after, next_seq=next_seq)
    if all(note.rank is None or len(render_rank(note.rank)) <= _RANK_CHARS_MAX for note in changes.notes):
        return changes
    short = [placed for placed in before if _is_short(placed)]
    changes = plan_changes(short, after, next_seq=next_seq)
    return replace(changes, gone=(*changes.gone, *[placed for placed in before if not _is_short(placed)]))


def _is_short(placed: Placed) -> bool:
    return len(render_rank(placed.rank)) <= _RANK_CHARS_SHORT


def _refuse_hiding(notes: Sequence[Note], changes: Changes) -> None:
    gone = {placed.id for placed in changes.gone}
    for note in notes:
        if note.id in gone and note.source != SOURCE:
            raise UsageError(
                f"the save would hide note {note.id} (seq {note.seq}), which was not written through a port but by "
                f"{note.source!r}: keep its entry as and where it is, or open the port with foreign='manage'"
            )
