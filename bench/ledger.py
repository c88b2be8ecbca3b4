"""What the ledger costs: a durable add beside a bare transaction, bulk adds, and reading a long ledger.

    python -m bench ledger --events 1000000

Adds: the engine and two bare writers take turns on the same file system, each with the same bytes, one transaction an
event. `bare` has tables with nothing but a primary key; `schema` has the engine's own tables with their indexes and
triggers, so it tells how much of the difference is SQLite's work. Reading is measured in fresh processes, with their
peak memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, Literal

import muniment
from bench.bare import BARE, BareWriter, build_written
from bench.report import Report, need_room, quantiles
from bench.synthetic import Texts, build_messages, generate_mixed
from muniment import Content, Scope
from muniment.adapters.sqlite.statements import SCHEMA
from muniment.model.limits import ADD_MANY_MAX

ADDS: Final = 3_000
ADDS_WARM_UP: Final = 200
BULK: Final = 100_000
SCOPES: Final = 100
BYTES_PER_EVENT: Final = 2_000
"""More than an event takes on disk, write-ahead log included: to know beforehand that there is room."""

Durability = Literal["full", "normal"]
LONG: Final = Scope("bench", "long")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench ledger", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="length of the ledger that is read")
    parser.add_argument("--adds", type=int, default=ADDS, help="single adds of each writer")
    parser.add_argument("--bulk", type=int, default=BULK, help="events of a bulk add")
    parser.add_argument("--folder", type=Path, help="where the archives are written; default: the temporary folder")
    parser.add_argument("--results", type=Path, help="where the JSON goes; default: bench/results")
    options = parser.parse_args(arguments)
    report = Report(
        "ledger", f"python -m bench ledger --events {options.events} --adds {options.adds} --bulk {options.bulk}"
    )
    with tempfile.TemporaryDirectory(prefix="muniment-bench-", dir=options.folder) as name:
        folder = Path(name)
        need_room(folder, BYTES_PER_EVENT * (options.events + 2 * options.bulk))
        print("one add at a time")
        for durability in ("full", "normal"):
            measure_adds(report, folder, durability, options.adds)
        print("bulk")
        measure_bulk(report, folder, options.bulk)
        print(f"a ledger of {options.events:,} events")
        measure_long(report, folder, options.events)
    if options.results is None:
        report.write()
    else:
        report.write(options.results)
    return 0


# --- One add at a time ------------------------------------------------------------------------------------------------


def measure_adds(report: Report, folder: Path, durability: Durability, count: int) -> None:
    """The engine, the bare tables and the engine's schema, in turns."""
    messages = build_messages(Texts(2), ADDS_WARM_UP + count)
    written = build_written(messages)
    synchronous = "FULL" if durability == "full" else "NORMAL"
    archive = muniment.open(folder / f"engine-{durability}.db", durability=durability)
    memory = archive.memory("user-1", tenant="bench")
    bare = BareWriter(folder / f"bare-{durability}.db", BARE, synchronous, written[0])
    schema = BareWriter(folder / f"schema-{durability}.db", SCHEMA, synchronous, written[0])
    writers: list[tuple[str, Callable[[int], object]]] = [
        ("engine", lambda number: memory.add(messages[number])),
        ("bare", lambda number: bare.write(written[number])),
        ("schema", lambda number: schema.write(written[number])),
    ]
    seconds: dict[str, list[float]] = {name: [] for name, _ in writers}
    for number in range(len(messages)):
        for name, write in writers:
            started = perf_counter()
            write(number)
            seconds[name].append(perf_counter() - started)
        writers.append(writers.pop(0))  # so that none of them always follows the same one
    archive.close()
    sizes = {name: len_of_contents(folder / f"{name}-{durability}.db") for name, _ in writers}
    assert len(set(sizes.values())) == 1, f"the writers did not write the same bytes: {sizes}"
    bare.close()
    schema.close()
    medians = {name: statistics.median(times[ADDS_WARM_UP:]) for name, times in seconds.items()}
    report.details[f"one add, {durability}"] = {
        name: quantiles(times[ADDS_WARM_UP:]) for name, times in sorted(seconds.items())
    }
    limit = 3 if durability == "full" else None
    report.add(f"add, {durability}: engine, median", medians["engine"] * 1e6, "µs")
    report.add(f"add, {durability}: bare transaction, median", medians["bare"] * 1e6, "µs")
    report.add(f"add, {durability}: same bytes into the schema, median", medians["schema"] * 1e6, "µs")
    report.add(f"add, {durability}: engine / bare", medians["engine"] / medians["bare"], "×", below=limit)
    report.add(f"add, {durability}: engine / schema", medians["engine"] / medians["schema"], "×")


def len_of_contents(path: Path) -> int:
    """Bytes of all values that were written, salts and ids included."""
    with BareWriter.opened(path) as connection:
        columns = {
            "events": "event_id, digest, links, leaf",
            "contents": "salt, body",
            "items": "terms",
        }
        return sum(
            connection.execute(
                f"SELECT sum({' + '.join(f'length({column})' for column in names.split(', '))}) FROM {table}"  # noqa: S608
            ).get
            for table, names in columns.items()
        )


# --- Bulk -------------------------------------------------------------------------------------------------------------


def measure_bulk(report: Report, folder: Path, count: int) -> None:
    """`archive.add_many` of messages that are already built, into one scope and into a hundred."""
    started = perf_counter()
    messages = build_messages(Texts(3), count)
    report.details["texts and events built, µs each"] = round((perf_counter() - started) / count * 1e6, 2)
    report.add("building a Message", time_construction(messages[: min(count, 20_000)]) * 1e6, "µs")
    per_scope = max(1, count // SCOPES)
    for name, scopes in (
        ("one scope", [Scope("bench", "user-1")] * count),
        ("100 scopes, sorted", [Scope("bench", f"user-{number // per_scope}") for number in range(count)]),
    ):
        with muniment.open(folder / f"bulk-{name}.db") as archive:
            entries = list(zip(scopes, messages, strict=True))
            started, cpu_started = perf_counter(), process_time()
            stored = archive.add_many(entries)
            seconds, cpu_seconds = perf_counter() - started, process_time() - cpu_started
            assert len(stored) == count
            assert archive.stats().events == count
        report.add(f"bulk add, {name}", count / seconds, "events/s", above=20_000)
        report.add(f"bulk add, {name}, processor time", cpu_seconds / count * 1e6, "µs")


def time_construction(messages: Sequence[muniment.Message]) -> float:
    """Seconds that building one such message takes, its id and time made on the way."""
    values = [(message.speaker, message.content, message.session_id) for message in messages]
    started = perf_counter()
    for speaker, content, session_id in values:
        muniment.Message(speaker=speaker, content=content, session_id=session_id)
    return (perf_counter() - started) / len(messages)


# --- A long ledger ----------------------------------------------------------------------------------------------------


def measure_long(report: Report, folder: Path, count: int) -> None:
    """Replay, verify and pages of a ledger of that length, before and after much of it was deleted."""
    path = folder / "long.db"
    started = perf_counter()
    with muniment.open(path) as archive:
        for batch in _batches(generate_mixed(Texts(4), count), ADD_MANY_MAX):
            archive.add_many([(LONG, event) for event in batch])
    report.details["long ledger: texts, events and adds, events/s"] = round(count / (perf_counter() - started))
    report.add("long ledger: file per event", path.stat().st_size / count, "bytes")
    in_fresh_process(report, "replay", path)
    in_fresh_process(report, "verify", path)
    in_fresh_process(report, "pages", path)
    in_fresh_process(report, "delete", path)
    in_fresh_process(report, "pages after deletions", path)


STEP_TARGETS: Final[dict[str, float]] = {"replay": 10.0, "verify": 15.0}
"""Seconds for 1,000,000 events; shorter ledgers in proportion."""
PAGE_MS: Final = 100.0


def in_fresh_process(report: Report, step: str, path: Path) -> None:
    """Run a step of `bench.steps` in a new interpreter and take in what it measured."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.steps", step, str(path)],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    report.details[f"long ledger: {step}"] = answer
    if step in STEP_TARGETS:
        limit = STEP_TARGETS[step] * answer["events"] / 1_000_000
        report.add(f"long ledger: {step}", answer["seconds"], "s", below=limit)
        report.add(f"long ledger: {step}, processor time", answer["cpu_seconds"], "s")
        report.add(f"long ledger: {step}, peak memory", answer["peak_rss_mib"] or 0.0, "MiB")
    for name, milliseconds in answer.get("medians_ms", {}).items():
        report.add(f"{step}: {name}", milliseconds, "ms", below=PAGE_MS)


def _batches(events: Iterable[Content], size: int) -> Iterator[list[Content]]:
    remaining = iter(events)
    while batch := list(islice(remaining, size)):
        yield batch


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
