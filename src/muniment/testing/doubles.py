"""Time and randomness that a test decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Final

from muniment.core.canonical import from_us, to_us

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until it is moved, in either direction."""

    def __init__(self, now: datetime = START) -> None:
        self.now_us = to_us(now)

    def __call__(self) -> int:
        return self.now_us

    @property
    def now(self) -> datetime:
        return from_us(self.now_us)

    def set(self, now: datetime) -> None:
        """Make it that time, be it earlier or later."""
        self.now_us = to_us(now)

    def advance(self, by: timedelta = timedelta(seconds=1)) -> datetime:
        """The time after moving on, or back where `by` is negative."""
        self.now_us = to_us(self.now + by)
        return self.now


class SeededEntropy:
    """Random bytes that are the same in every run with that seed, on every machine and version of Python."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._blocks = count()

    def __call__(self, count: int, /) -> bytes:
        out = b""
        while len(out) < count:
            out += sha256(f"{self._seed}:{next(self._blocks)}".encode()).digest()
        return out[:count]
