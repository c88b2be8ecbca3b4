"""Whether what was acknowledged survives: writers on one file, one of them killed every moment and started again.

    python -m bench crash --processes 8 --appends 500 --kill-every-ms 100

A writer appends events one by one, each with its own request id, and writes down each answer in a file of its own. A
killed one is started again at once and goes on after its last acknowledged event; the request id makes the one that
was stored but not acknowledged count once. At the end every acknowledged event must be there under its seq, the seqs
must be 0, 1, 2 … without a gap, exactly as many as were wanted, and `verify` must pass. POSIX only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple
from uuid import UUID

import muniment
from bench.report import Report
from muniment import Message, Scope

SCOPE: Final = Scope("bench", "crash")
DEADLINE_S: Final = 300.0


class Acknowledged(NamedTuple):
    """An append that returned."""

    number: int
    seq: int
    event_id: UUID


@dataclass(frozen=True)
class Outcome:
    """What happened."""

    seconds: float
    num_kills: int
    num_starts: int


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench crash", description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=500, help="appends of each process")
    parser.add_argument("--kill-every-ms", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="where the archive is written; default: the temporary folder")
    parser.add_argument("--results", type=Path, help="where the JSON goes; default: bench/results")
    options = parser.parse_args(arguments)
    report = Report(
        "crash",
        f"python -m bench crash --processes {options.processes} --appends {options.appends}"
        f" --kill-every-ms {options.kill_every_ms}",
    )
    print(f"{options.processes} processes, {options.appends} appends each, a kill every {options.kill_every_ms} ms")
    with tempfile.TemporaryDirectory(prefix="muniment-bench-", dir=options.folder) as name:
        folder = Path(name)
        outcome = run_writers(folder, options.processes, options.appends, options.kill_every_ms / 1_000)
        report.add("kills", outcome.num_kills)
        report.add("starts of a writer", outcome.num_starts)
        report.add("seconds", outcome.seconds, "s")
        report.add("appends per second", options.processes * options.appends / outcome.seconds, "events/s")
        check(report, folder, options.processes * options.appends)
    if options.results is None:
        report.write()
    else:
        report.write(options.results)
    return 1 if any(row.met is False for row in report.rows) else 0


def run_writers(folder: Path, num_processes: int, num_appends: int, kill_every_s: float) -> Outcome:
    """Run the writers to their end, killing one of them every so often."""
    # A server that forks has the imports done: a writer that is killed is back in milliseconds, or nothing would
    # ever be written. No archive is open in it, and none may be: connections do not survive a fork.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["muniment.archive", "bench.crash"])

    def start(number: int, *, spared: bool) -> Writer:
        process = context.Process(target=write, args=(folder, number, num_appends))
        process.start()
        return Writer(process, _size_of(_acknowledgements(folder, number)), spared)

    chance = random.Random(5)
    started = monotonic()
    running = {number: start(number, spared=False) for number in range(num_processes)}
    num_kills, num_starts = 0, num_processes
    next_kill = started + kill_every_s
    while running:
        wait([writer.process.sentinel for writer in running.values()], timeout=max(0.0, next_kill - monotonic()))
        for number, writer in list(running.items()):
            if writer.process.exitcode == 0:
                writer.process.join()
                del running[number]
            elif writer.process.exitcode is not None:
                raise RuntimeError(f"writer {number} failed with exit code {writer.process.exitcode}")
        if monotonic() - started > DEADLINE_S:
            raise RuntimeError("the writers did not come to an end")
        if monotonic() < next_kill:
            continue
        next_kill = monotonic() + kill_every_s
        acknowledged = {number: _size_of(_acknowledgements(folder, number)) for number in running}
        victims = [number for number, writer in running.items() if writer.may_be_killed(acknowledged[number])]
        if not victims:
            continue
        number = chance.choice(victims)
        process = running[number].process
        process.kill()
        process.join()
        if process.exitcode != 0:  # it may have come to its end in that moment
            num_kills += 1
            num_starts += 1
            running[number] = start(number, spared=acknowledged[number] == running[number].acknowledged_bytes)
    return Outcome(monotonic() - started, num_kills, num_starts)


@dataclass(frozen=True)
class Writer:
    """A running writer, and how far the one before it had come."""

    process: BaseProcess
    acknowledged_bytes: int
    spared: bool
    """The one before it was killed before it had written anything: this one may write first. So a writer is killed
    while it opens the archive too, and on a machine that is slow at that it still comes to an end."""

    def may_be_killed(self, acknowledged_bytes: int) -> bool:
        return not self.spared or acknowledged_bytes > self.acknowledged_bytes


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def write(folder: Path, number: int, num_appends: int) -> None:
    """One writer: append what is not acknowledged yet, and write down what is."""
    path = _acknowledgements(folder, number)
    done = len(read_acknowledged(path))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with muniment.open(folder / "archive.db") as archive:
        memory = archive.memory(SCOPE.subject, tenant=SCOPE.tenant)
        for index in range(done, num_appends):
            message = Message(speaker=f"writer {number}", content=f"event {index} of writer {number}")
            stored = memory.add(message, request_id=f"{number}/{index}")
            os.write(file, f"{index} {stored.seq} {stored.id}\n".encode())
    os.close(file)


def read_acknowledged(path: Path) -> list[Acknowledged]:
    """What one writer wrote down; one line is one write, so a kill leaves whole lines."""
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text().splitlines()]
    return [Acknowledged(int(index), int(seq), UUID(event_id)) for index, seq, event_id in lines]


def _acknowledgements(folder: Path, number: int) -> Path:
    return folder / f"writer-{number}.txt"


def check(report: Report, folder: Path, wanted: int) -> None:
    """Compare the archive with what the writers wrote down."""
    acknowledged = [
        (number, entry)
        for number, path in enumerate(sorted(folder.glob("writer-*.txt"), key=_number_of))
        for entry in read_acknowledged(path)
    ]
    with muniment.open(folder / "archive.db", create=False) as archive:
        memory = archive.memory(SCOPE.subject, tenant=SCOPE.tenant)
        events = list(memory.events())
        by_seq = {event.seq: event for event in events}
        lost = 0
        for number, entry in acknowledged:
            match by_seq.get(entry.seq):
                case Message(id=entry.event_id, content=content):
                    lost += content != f"event {entry.number} of writer {number}"
                case _:
                    lost += 1
        verified = archive.verify(deep=True)
    seqs = [event.seq for event in events]
    report.add("events acknowledged", len(acknowledged))
    report.add("acknowledged events lost or changed", lost, below=1)
    report.add("events not stored exactly once", abs(len(events) - wanted), below=1)
    report.add("gaps in seq", sum(seq != place for place, seq in enumerate(seqs)), below=1)
    report.add("verify failed", 0 if verified else 1, below=1)


def _number_of(path: Path) -> int:
    return int(path.stem.removeprefix("writer-"))
