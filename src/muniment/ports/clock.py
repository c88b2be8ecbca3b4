"""Time and randomness as ports, so that a ledger can be built the same way twice."""

from __future__ import annotations

import os
import time
from typing import Protocol


class Clock(Protocol):
    """Says what time it is.

    Laws: 1. A reading is microseconds since 1970 in UTC. 2. It may go back; whoever stores an order then keeps the last
    value.
    """

    def __call__(self) -> int: ...


class Entropy(Protocol):
    """Gives that many random bytes, unpredictable to anybody."""

    def __call__(self, count: int, /) -> bytes: ...


def system_clock() -> int:
    """The system's time."""
    return time.time_ns() // 1_000


def system_entropy(count: int, /) -> bytes:
    """The operating system's randomness."""
    return os.urandom(count)
