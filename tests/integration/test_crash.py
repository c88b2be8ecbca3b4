"""Processes that append to one file and are killed in the middle: `bench.crash`, with small numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PROCESSES: Final = 4
APPENDS: Final = 100


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "crash", "--processes", PROCESSES, "--appends", APPENDS]
    options = ["--kill-every-ms", 40, "--folder", tmp_path, "--results", tmp_path]
    done = subprocess.run(
        [str(part) for part in (*command, *options)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = json.loads((tmp_path / "crash.json").read_text())["numbers"]
    found = {name: number["value"] for name, number in numbers.items()}
    assert found["kills"] > 0
    assert found["starts of a writer"] == PROCESSES + found["kills"]
    assert found["events acknowledged"] <= PROCESSES * APPENDS
    for name in (
        "acknowledged events lost or changed",
        "events not stored exactly once",
        "gaps in seq",
        "verify failed",
    ):
        assert found[name] == 0, name
