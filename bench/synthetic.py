"""Made-up memories with the sizes of real ones: 21 words, about 120 characters, of a vocabulary that Zipf would like.

The same number always gives the same text, on every machine and Python.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final
from uuid import UUID

from muniment import Content, Document, Message, Note

WORDS_PER_TEXT: Final = 21
VOCABULARY: Final = 20_000
TURNS_PER_SESSION: Final = 20
KEYS: Final = 200
START: Final = datetime(2025, 1, 1, tzinfo=UTC)

_COMMON: Final = (
    "the and to of a in is it you that he was for on are with as his they at be this have from or one had but by not"
)
_ONSETS: Final = "b br c ch d dr f fl g gr h j k l m n p pl qu r s sh st t tr v w"
_VOWELS: Final = "a e i o u ai ea oo"
_CODAS: Final = "n r s t l m ck"


class Texts:
    """Texts drawn from one seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        rare = random.Random(0)
        onsets, vowels, codas = _ONSETS.split(), _VOWELS.split(), ["", *_CODAS.split(), ""]
        words: dict[str, None] = dict.fromkeys(_COMMON.split())
        while len(words) < VOCABULARY:
            syllables = [
                rare.choice(onsets) + rare.choice(vowels) + rare.choice(codas) for _ in range(rare.choice((1, 1, 2)))
            ]
            words["".join(syllables)] = None
        self._words = list(words)
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))

    def next(self) -> str:
        """The next text."""
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=WORDS_PER_TEXT))

    def next_id(self) -> UUID:
        """A random id that is the same in every run."""
        return UUID(int=self._random.getrandbits(128), version=4)


def build_messages(texts: Texts, count: int) -> list[Message]:
    """Messages of two speakers, in sessions."""
    return [
        Message(
            id=texts.next_id(),
            timestamp=START + timedelta(seconds=30 * number),
            speaker=("anna", "bram")[number % 2],
            content=texts.next(),
            session_id=f"session-{number // TURNS_PER_SESSION}",
            source="bench",
        )
        for number in range(count)
    ]


def generate_mixed(texts: Texts, count: int) -> Iterator[Content]:
    """What a long ledger holds: of 100 events 85 messages, 12 notes, 1 note that takes over a key, 2 documents."""
    for number in range(count):
        sort = number % 100
        at = START + timedelta(seconds=30 * number)
        session = f"session-{number // TURNS_PER_SESSION}"
        if sort < 85:
            yield Message(
                id=texts.next_id(),
                timestamp=at,
                speaker=("anna", "bram")[number % 2],
                content=texts.next(),
                session_id=session,
                source="bench",
            )
        elif sort < 98:
            key = f"key-{number // 100 % KEYS}" if sort == 97 else None
            yield Note(id=texts.next_id(), timestamp=at, content=texts.next(), labels=("bench",), key=key)
        else:
            yield Document(id=texts.next_id(), timestamp=at, name=f"file-{number}.txt", text=texts.next())
