"""What a bench says: a table for people, JSON for machines, and how a number is read."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

RESULTS: Final = Path(__file__).parent / "results"

Number = int | float


@dataclass(frozen=True)
class Row:
    """One number, what it should be, and whether it is."""

    name: str
    value: Number
    unit: str
    below: Number | None = None
    """The target, where less is better."""
    above: Number | None = None
    """The target, where more is better."""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.below is not None:
            return self.value < self.below
        if self.above is not None:
            return self.value > self.above
        return None

    @property
    def target(self) -> str:
        if self.below is not None:
            return f"< {_show(self.below)}"
        if self.above is not None:
            return f"> {_show(self.above)}"
        return ""


@dataclass
class Report:
    """The results of one bench: rows for the table, details for whoever wants to look closer."""

    name: str
    command: str
    """How to run it again, without paths of this machine."""
    rows: list[Row] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)

    def add(
        self, name: str, value: Number, unit: str = "", *, below: Number | None = None, above: Number | None = None
    ) -> None:
        """Take in a number, and print it at once: a long bench should show where it is."""
        row = Row(name, value, unit, below, above)
        self.rows.append(row)
        mark = {None: "", True: "met", False: "MISSED"}[row.met]
        print(f"  {name:<58} {_show(value):>12} {unit:<10} {row.target:<12} {mark}", flush=True)

    def write(self, folder: Path = RESULTS) -> Path:
        """Write everything as JSON; the file."""
        result = {
            "name": self.name,
            "command": self.command,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": describe_machine(),
            "missed": [row.name for row in self.rows if row.met is False],
            "numbers": {
                row.name: {
                    "value": _rounded(row.value),
                    "unit": row.unit,
                    **({} if row.met is None else {"target": row.target, "met": row.met}),
                }
                for row in self.rows
            },
            "details": self.details,
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        print(f"  wrote {path.name}, missed: {len(result['missed'])}", flush=True)
        return path


def describe_machine() -> dict[str, object]:
    """What the numbers depend on, and nothing that names the machine."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 95th and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    return {
        "p50_ms": _rounded(statistics.median(ordered) * 1_000),
        "p95_ms": _rounded(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] * 1_000),
        "p99_ms": _rounded(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1_000),
        "max_ms": _rounded(ordered[-1] * 1_000),
    }


def peak_rss_mib() -> float | None:
    """The most memory that this process has had, or None where the system does not say.

    From `/proc`, because `getrusage` of a new process starts with what its parent had.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        if sys.platform == "win32":
            return None
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def need_room(folder: Path, needed: int) -> None:
    """Stop before a bench fills the disk."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SystemExit(f"this needs about {needed / 2**30:.1f} GiB of disk and {free / 2**30:.1f} are free")


def _rounded(value: Number) -> Number:
    return value if isinstance(value, int) else float(f"{value:.4g}")


def _show(value: Number) -> str:
    if isinstance(value, int) or value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
