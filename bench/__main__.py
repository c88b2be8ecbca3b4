"""`python -m bench` runs what is quick; `python -m bench NAME …` one bench, with its own options."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Final

QUICK: Final[Mapping[str, Sequence[str]]] = {
    "ledger": ("--events", "100000"),
    "crash": (),
    "locomo": (),
    "retrieval": (),
    "search": (),
    "erase": (),
    "portable": (),
}
"""Each bench and the options of its quick run. Those that need data say so where it is missing."""

DATA_MISSING: Final = 2
"""The exit code of a bench whose data is not here; `python -m bench` goes on."""


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        return run_quick()
    name, *options = arguments
    if name not in QUICK or find_spec(f"bench.{name}") is None:
        print(f"there is no bench {name!r}: {', '.join(QUICK)}", file=sys.stderr)
        return 1
    return run(name, options)


def run_quick() -> int:
    """All of them, the quick way; the first exit code that is a failure."""
    codes = [run(name, options) for name, options in QUICK.items() if find_spec(f"bench.{name}") is not None]
    return next((code for code in codes if code not in (0, DATA_MISSING)), 0)


def run(name: str, options: Sequence[str]) -> int:
    return import_module(f"bench.{name}").main(options)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
