"""Recall: the tokens of a query, the score of an entry, and the order of what is found.

Laws P11 to P15 of the portable contract. Nothing here changes a store, and equal input gives equal output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from muniment.errors import UsageError
from muniment.portable.characters import is_token_character
from muniment.portable.operations import check_count
from muniment.portable.store import MemoryCategory, MemoryEntry, MemoryStore, ScoredMemory, check_store

_CONTENT_WEIGHT: Final = 2.0
_TAG_WEIGHT: Final = 3.0
_CORE_BOOST: Final = 1.0
"""The contract's numbers (P13)."""

_WHITE_SPACE: Final = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
"""The Unicode property White_Space. `str.split` would cut at U+001C to U+001F as well."""


def recall(store: MemoryStore, query: str, limit: int = 0) -> list[ScoredMemory]:
    """The entries that hold a token of the query, best first, equal scores in store order.

    A query without tokens finds every entry, in store order, with score 0. Containment is plain substring in lower
    case: `cat` finds "concatenate".

    Units:  `limit` 0 is no limit; otherwise the first `limit` of the whole order.
    Raises: UsageError for a negative or non-int `limit` or a query that is not text.
    Cost:   O(entries x tokens); 10,000 entries take a few milliseconds.
    """
    check_store(store)
    check_count("limit", limit)
    tokens = find_tokens(query)
    found = _rank(store.entries, tokens) if tokens else [ScoredMemory(entry, 0.0, 0) for entry in store.entries]
    return found[:limit] if limit else found


def find_tokens(query: str) -> list[str]:
    """The tokens of a query in order, without repeats.

    Cut at Unicode white space, trimmed at both ends of what is neither a letter nor a number, lower-cased.
    """
    if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise UsageError(f"query must be text, not {type(query).__name__}")
    trimmed = (_trim(piece).lower() for piece in _WHITE_SPACE.split(query))
    return list(dict.fromkeys(token for token in trimmed if token))


def _trim(piece: str) -> str:
    start, end = 0, len(piece)
    while start < end and not is_token_character(piece[start]):
        start += 1
    while end > start and not is_token_character(piece[end - 1]):
        end -= 1
    return piece[start:end]


def _rank(entries: Sequence[MemoryEntry], tokens: Sequence[str]) -> list[ScoredMemory]:
    scored = [_score(entry, tokens) for entry in entries]
    found = [memory for memory in scored if memory is not None]
    found.sort(key=attrgetter("score"), reverse=True)  # stable: equal scores stay in store order
    return found


def _score(entry: MemoryEntry, tokens: Sequence[str]) -> ScoredMemory | None:
    content = entry.content.lower()
    # A token holds no white space, so it is contained in the joined tags exactly if it is contained in one of them.
    tags = "\n".join(entry.tags).lower() if entry.tags else ""
    score, matches = 0.0, 0
    for token in tokens:
        weight = _CONTENT_WEIGHT if token in content else 0.0
        if token in tags:
            weight += _TAG_WEIGHT
        if weight:
            score += weight
            matches += 1
    if not matches:
        return None
    return ScoredMemory(entry, score + _CORE_BOOST if entry.category is MemoryCategory.CORE else score, matches)
