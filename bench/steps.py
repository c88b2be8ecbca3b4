"""The steps of `bench.ledger` that run in an interpreter of their own: `python -m bench.steps STEP ARCHIVE`.

Each prints one JSON object: seconds, and the peak memory of the process beside what it had before the step.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from time import perf_counter, process_time
from typing import Final, TypeVar

import muniment
from bench.ledger import LONG
from bench.report import peak_rss_mib
from muniment import Memory
from muniment.model.limits import PAGE_MAX, TARGETS_MAX

T = TypeVar("T")

REPEATS: Final = 15
PAGE: Final = 50
DELETED_SHARE: Final = 0.9


def replay(memory: Memory) -> dict[str, object]:
    """Fold everything from the first event on."""
    state, times = _timed(memory.replay)
    assert state.last_seq == len(memory) - 1
    return {**times, "items": len(state.messages) + len(state.notes) + len(state.documents)}


def verify(memory: Memory) -> dict[str, object]:
    """Check everything from the first event on."""
    report, times = _timed(memory.verify)
    assert report.ok, report
    return {**times}


def pages(memory: Memory) -> dict[str, object]:
    """What was visible at a seq, a page of 50, by query: at the end, in the middle, backwards, by time."""
    newest = len(memory) - 1
    middle = newest // 2
    listing = memory.items(up_to_seq=newest)
    cursor = _cursor_to(memory, middle)
    recorded_at = memory.events(after_seq=middle - 1, up_to_seq=middle)[0].recorded_at
    assert recorded_at is not None
    return {
        "medians_ms": _medians(
            {
                "first page, newest seq": lambda: memory.items(up_to_seq=newest).page(limit=PAGE),
                "first page, seq in the middle": lambda: memory.items(up_to_seq=middle).page(limit=PAGE),
                "page in the middle, by cursor": lambda: listing.page(limit=PAGE, cursor=cursor),
                "newest first, newest seq": lambda: memory.items().page(limit=PAGE, newest_first=True),
                "newest first, seq in the middle": lambda: memory.items(up_to_seq=middle).page(
                    limit=PAGE, newest_first=True
                ),
                "newest first, by time": lambda: memory.items(at=recorded_at).page(limit=PAGE, newest_first=True),
                "notes of tier core, none there": lambda: memory.items(tiers=["core"]).page(limit=PAGE),
                "seq_at": lambda: memory.seq_at(recorded_at + timedelta(microseconds=1)),
            }
        ),
        "count of what was visible in the middle, ms": _medians({"count": lambda: len(memory.items(up_to_seq=middle))})[
            "count"
        ],
    }


def delete(memory: Memory) -> dict[str, object]:
    """Hide nine tenths of what is visible, but for the last tenth."""
    wanted = int(len(memory) * DELETED_SHARE)
    ids = [event.id for event in memory.events(up_to_seq=wanted - 1)]
    started = perf_counter()
    for first in range(0, len(ids), TARGETS_MAX):
        memory.delete(ids[first : first + TARGETS_MAX], "the bench asked")
    return {"seconds": perf_counter() - started, "deleted": len(ids)}


def _timed(call: Callable[[], T]) -> tuple[T, dict[str, float]]:
    """What the call returns, and its seconds: of the clock, and of the processor, which other work disturbs less."""
    started, cpu_started = perf_counter(), process_time()
    result = call()
    return result, {"seconds": perf_counter() - started, "cpu_seconds": process_time() - cpu_started}


def _cursor_to(memory: Memory, seq: int) -> str | None:
    """A cursor to the page that holds the item at that seq."""
    listing = memory.items(up_to_seq=len(memory) - 1)
    page = listing.page(limit=PAGE_MAX)
    while page.next_cursor is not None and page[-1].seq < seq:
        page = listing.page(limit=PAGE_MAX, cursor=page.next_cursor)
    return page.next_cursor


def _medians(looks: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for name, look in looks.items():
        seconds: list[float] = []
        for _ in range(REPEATS):
            started = perf_counter()
            look()
            seconds.append(perf_counter() - started)
        out[name] = statistics.median(seconds) * 1_000
    return out


STEPS: Final[Mapping[str, Callable[[Memory], dict[str, object]]]] = {
    "replay": replay,
    "verify": verify,
    "pages": pages,
    "delete": delete,
    "pages after deletions": pages,
}


def main(arguments: Sequence[str]) -> int:
    step, path = arguments
    before = peak_rss_mib()
    with muniment.open(path, create=False) as archive:
        memory = archive.memory(LONG.subject, tenant=LONG.tenant)
        answer = STEPS[step](memory)
        answer |= {"events": len(memory), "peak_rss_mib": peak_rss_mib(), "peak_rss_before_mib": before}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
