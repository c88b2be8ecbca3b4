"""Remembered texts as one block of a prompt, guarded: a text is shown as data and cannot pass for a part of the prompt.

Every line of the block that starts at the margin is written here: the heading, the `- ` before a text, the count of
what was cut. Whatever a text holds, its further lines stand two spaces in, so it cannot forge a heading, start a new
item or speak in the place of the prompt. One function serves the engine's block (engine.md E18) and the facts block
(facts.md F14 to F16). The portable contract's block is verbatim by law (P16) and is not made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from muniment.errors import UsageError

MEMORY_HEADING: Final = "## Memory"
FACTS_HEADING: Final = "## What you remember about this user\n"
"""Followed by an empty line: the heading ends in a line break of its own (F14)."""

BUDGET_CHARS_MIN: Final = 80
"""Characters that hold the longest heading and the line that says how many texts were cut (F16)."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a prompt, and how many of the texts, from the first on, are in it."""

    text: str
    shown: int


@dataclass(frozen=True, slots=True)
class TurnMessages:
    """The messages of a turn as the model sees them, and how many of the first ones its first call keeps stable."""

    messages: tuple[Mapping[str, str], ...]
    stable_prefix_messages: int


def build_memory_block(texts: Sequence[str], budget_chars: int | None = None) -> Block:
    """The engine's block of notes, in the order given: `## Memory`, then one `- text` per note (E18).

    A `</` inside a note is shown as `<\\/`, so that a note cannot close a tag that the host put around the block.
    """
    return build_block(MEMORY_HEADING, [text.replace("</", "<\\/") for text in texts], budget_chars)


def build_block(heading: str, texts: Sequence[str], budget_chars: int | None = None) -> Block:
    """The heading and one `- text` per text in the order given; `""` without a text. No line break at the end.

    Texts are shown whole. With a budget they are shown until the next one would not fit, and the last line then is
    `(N more not shown)`.

    Units:  `budget_chars` counts the characters of the whole block, the last line included; None is no bound.
    Raises: UsageError for a budget that is not an int of at least 80.
    Cost:   O(characters); pure.
    """
    _check_budget(budget_chars)
    if not texts:
        return Block("", 0)
    items = [f"- {show_text(text)}" for text in texts]
    shown = _count_fitting(heading, items, budget_chars)
    cut = len(items) - shown
    lines = [heading, *items[:shown], *([_cut_line(cut)] if cut else [])]
    return Block("\n".join(lines), shown)


def show_text(text: str) -> str:
    """The text as a block shows it: line breaks become a line break and two spaces, one at the end is dropped.

    A break is every boundary that `str.splitlines` knows, because a model may take any of them for one. A text of one
    line is shown as it is.
    """
    return "\n  ".join(text.splitlines())


def place_block(block: str, messages: Sequence[Mapping[str, str]]) -> TurnMessages:
    """The messages of a turn with the block as a system message of its own before all others; `""` changes nothing."""
    first = ({"role": "system", "content": block},) if block else ()
    placed = (*first, *messages)
    return TurnMessages(placed, len(placed))


def _check_budget(budget_chars: object) -> None:
    if budget_chars is None:
        return
    if not isinstance(budget_chars, int) or isinstance(budget_chars, bool):
        raise UsageError(f"budget_chars must be an int, not {type(budget_chars).__name__}")
    if budget_chars < BUDGET_CHARS_MIN:
        raise UsageError(f"budget_chars must be at least {BUDGET_CHARS_MIN}: {budget_chars}")


def _count_fitting(heading: str, items: Sequence[str], budget_chars: int | None) -> int:
    """How many items fit, from the first on; the block of all of them needs no last line."""
    lengths = list(accumulate((1 + len(item) for item in items), initial=len(heading)))
    if budget_chars is None or lengths[-1] <= budget_chars:
        return len(items)
    shown = 0
    while shown + 1 < len(items):
        cut = len(items) - (shown + 1)
        if lengths[shown + 1] + 1 + len(_cut_line(cut)) > budget_chars:
            break
        shown += 1
    return shown


def _cut_line(cut: int) -> str:
    return f"({cut} more not shown)"
