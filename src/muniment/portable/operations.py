"""Writing: every function that changes a store, and the one that lists its core entries.

Laws P4 to P10 of the portable contract. Each function checks all it was given before it changes anything, and changes
`store.entries` in place, so that a caller who holds the list goes on seeing the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muniment.errors import MemoryIndexError, UsageError
from muniment.portable.store import (
    MemoryCategory,
    MemoryEntry,
    MemoryStore,
    RememberResult,
    check_category,
    check_entry,
    check_store,
)


def add(store: MemoryStore, entry: MemoryEntry) -> None:
    """Append the entry; no rule of any tier applies."""
    check_store(store).entries.append(check_entry("entry", entry))


def remember(store: MemoryStore, entry: MemoryEntry, max_entries: int = 0) -> RememberResult:
    """Add the entry by the rules of its tier, and tell what that took out of the store.

    In this order: a core entry removes every core entry with an equal tag set; the entry is appended; the store is
    evicted to `max_entries`, which can take the new entry itself.

    Units:  `max_entries` 0 is no cap.
    Raises: UsageError for a negative or non-int `max_entries`.
    Cost:   O(entries).
    """
    check_store(store)
    check_entry("entry", entry)
    check_count("max_entries", max_entries)
    before = list(store.entries)
    replaced = _find_replaced(before, entry)
    grown = [*_without(before, replaced), entry]
    victims = _choose_victims(grown, max_entries)
    store.entries[:] = _without(grown, victims)
    return RememberResult(
        index=None if len(grown) - 1 in victims else len(store.entries) - 1,
        replaced=tuple([before[index] for index in replaced]),
        evicted=tuple([grown[index] for index in victims]),
    )


def evict_to_cap(store: MemoryStore, max_entries: int) -> int:
    """Take entries out until at most `max_entries` are left, and return how many went.

    The oldest archival entry goes first; when there is none, the oldest of all. `max_entries` 0 is no cap.
    """
    check_store(store)
    check_count("max_entries", max_entries)
    victims = _choose_victims(store.entries, max_entries)
    store.entries[:] = _without(store.entries, victims)
    return len(victims)


def update(store: MemoryStore, index: int, entry: MemoryEntry) -> None:
    """Put the entry in the place of the one at the index; nothing is replaced or evicted elsewhere."""
    check_entry("entry", entry)
    store.entries[_check_index(store, index)] = entry


def update_content(store: MemoryStore, index: int, content: str) -> None:
    """Change the text of the entry at the index and nothing else of it."""
    at = _check_index(store, index)
    store.entries[at] = replace(store.entries[at], content=content)


def remove(store: MemoryStore, index: int) -> MemoryEntry:
    """Take out the entry at the index and return it; later ones move down."""
    return store.entries.pop(_check_index(store, index))


def clear(store: MemoryStore, category: MemoryCategory | str | None = None) -> int:
    """Take out every entry of one tier, or all with None, and return how many went; the rest keeps its order."""
    check_store(store)
    tier = None if category is None else check_category("category", category)
    kept = [] if tier is None else [entry for entry in store.entries if entry.category is not tier]
    removed = len(store.entries) - len(kept)
    store.entries[:] = kept
    return removed


def core_memories(store: MemoryStore) -> list[MemoryEntry]:
    """The core entries in store order."""
    return [entry for entry in check_store(store).entries if entry.category is MemoryCategory.CORE]


def check_count(name: str, value: object) -> int:
    """The value, if it is a number of entries: an int, not a bool, not negative."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{name} must be an int, not {type(value).__name__}")
    if value < 0:
        raise UsageError(f"{name} must not be negative: {value}")
    return value


def _check_index(store: MemoryStore, index: object) -> int:
    length = len(check_store(store).entries)
    if not isinstance(index, int) or isinstance(index, bool):
        raise UsageError(f"index must be an int, not {type(index).__name__}")
    if not 0 <= index < length:
        raise MemoryIndexError(f"memory index {index} out of bounds (len {length})", index=index, length=length)
    return index


def _find_replaced(entries: Sequence[MemoryEntry], new: MemoryEntry) -> list[int]:
    """Indexes of the core entries with the tag set of a new core entry; none for another tier."""
    if new.category is not MemoryCategory.CORE:
        return []
    tag_set = set(new.tags or ())
    return [
        index
        for index, old in enumerate(entries)
        if old.category is MemoryCategory.CORE and set(old.tags or ()) == tag_set
    ]


def _choose_victims(entries: Sequence[MemoryEntry], max_entries: int) -> list[int]:
    """Indexes of the entries above the cap, in the order in which they go.

    Taking the oldest archival entry, or the first of all when none is left, again and again, is the same as taking the
    first of this row: all archival entries by age, then all others by age.
    """
    surplus = len(entries) - max_entries
    if max_entries == 0 or surplus <= 0:
        return []
    by_age = range(len(entries))
    archival = [index for index in by_age if entries[index].category is MemoryCategory.ARCHIVAL]
    others = [index for index in by_age if entries[index].category is not MemoryCategory.ARCHIVAL]
    return [*archival, *others][:surplus]


def _without(entries: Sequence[MemoryEntry], indexes: Sequence[int]) -> list[MemoryEntry]:
    gone = set(indexes)
    return [entry for index, entry in enumerate(entries) if index not in gone]
