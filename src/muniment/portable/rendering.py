"""The contract's two texts, verbatim: nothing is escaped, cut or guarded (P16, P17).

Text from people who are not trusted goes through `muniment.core.prompt` instead, which guards line breaks.
"""

from __future__ import annotations

from collections.abc import Sequence

from muniment.portable.operations import core_memories
from muniment.portable.store import MemoryStore, ScoredMemory


def format_for_system_prompt(store: MemoryStore) -> str:
    """The heading `## Memory` and a line `- content` per core entry in store order; `""` without a core entry."""
    lines = [f"- {entry.content}\n" for entry in core_memories(store)]
    return "## Memory\n" + "".join(lines) if lines else ""


def format_recall_results(results: Sequence[ScoredMemory]) -> str:
    """A numbered line per result with its tier, and a line of its tags where it has any; `""` without a result."""
    return "".join([_format_result(number, result) for number, result in enumerate(results, start=1)])


def _format_result(number: int, result: ScoredMemory) -> str:
    entry = result.entry
    tags = f"   tags: {', '.join(entry.tags)}\n" if entry.tags else ""
    return f"{number}. [{entry.category.value}] {entry.content}\n{tags}"
