"""Three tiers of memory with one deterministic meaning: written, replaced, evicted, recalled, shown, saved and loaded.

A store is a whole value in memory; where it lives, whose it is and when it changes is the host's business. A port of
two methods connects the two: `FileMemoryPort` for one file, `ArchiveMemoryPort` for one scope of an archive.

```python
from muniment.portable import MemoryEntry, MemoryStore, format_for_system_prompt, recall, remember

store = MemoryStore()
remember(store, MemoryEntry("prefers concise answers", tags=("preference", "tone")))
assert format_for_system_prompt(store) == "## Memory\\n- prefers concise answers\\n"
assert recall(store, "tone", limit=3)[0].score == 4.0
```

The laws are data too: `muniment.testing.portable` runs them on these functions, on every port, and on other
implementations.
"""

from muniment.errors import MemoryIndexError
from muniment.portable.archive_port import ArchiveMemoryPort
from muniment.portable.operations import (
    add,
    clear,
    core_memories,
    evict_to_cap,
    remember,
    remove,
    update,
    update_content,
)
from muniment.portable.ports import FileMemoryPort, MemoryPort
from muniment.portable.ranking import recall
from muniment.portable.rendering import format_for_system_prompt, format_recall_results
from muniment.portable.store import MemoryCategory, MemoryEntry, MemoryStore, RememberResult, ScoredMemory

__all__ = [
    "ArchiveMemoryPort",
    "FileMemoryPort",
    "MemoryCategory",
    "MemoryEntry",
    "MemoryIndexError",
    "MemoryPort",
    "MemoryStore",
    "RememberResult",
    "ScoredMemory",
    "add",
    "clear",
    "core_memories",
    "evict_to_cap",
    "format_for_system_prompt",
    "format_recall_results",
    "recall",
    "remember",
    "remove",
    "update",
    "update_content",
]
