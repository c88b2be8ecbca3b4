"""What it takes to destroy a scope for real, and how fast the facts contract answers.

    python -m bench erase --memories 1000000

The archive holds scopes of 1,000 events each, stored in random order, because that is where copies survive: pages split
and the old halves stay. Every event has a word of its own. Before a scope is erased, these words in several encodings
and the scope's salts, hashed terms and vectors are taken from its rows as *markers*; afterwards every byte of the files
is searched for them.

An erasure is timed to the moment when no read finds the content (`clean="later"`), and then the step that leaves no
byte, once on a quiet archive and once while two processes write and one searches. Their scopes are others; what they
cannot do meanwhile is reported as their longest wait.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

import muniment
from bench.report import Report, need_room, quantiles
from bench.search import WordEmbedder
from bench.synthetic import Texts, build_messages
from muniment import Archive, Message, Note, Scope
from muniment.facts import ArchiveMemory, Caller
from muniment.model.limits import SEQ_MAX

T = TypeVar("T")

TENANT: Final = "bench"
PER_SCOPE: Final = 1_000
EVENTS_AT_ONCE: Final = 50
"""About as many events of a scope are stored in one transaction, in an order of scopes that is random."""
QUIET_VICTIMS: Final = 4
"""Scopes erased before the first clean step; as many while others work."""
FORGOTTEN: Final = 200
FACTS: Final = 1_000
RECALLS: Final = 50
BYTES_PER_MEMORY: Final = 6_000
"""More than a memory takes on disk, rewritten once, logs included."""
WINDOW_BYTES: Final = 24
"""Stored bytes are searched for in pieces of this length, as a page may hold but a part."""
READ_BYTES: Final = 64 * 2**20
LONG_WAIT_S: Final = 120.0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench erase", description=__doc__)
    parser.add_argument("--memories", type=int, default=50_000, help="events of the archive")
    parser.add_argument("--folder", type=Path, help="where the archive is written; default: the temporary folder")
    parser.add_argument("--results", type=Path, help="where the JSON goes; default: bench/results")
    options = parser.parse_args(arguments)
    report = Report("erase", f"python -m bench erase --memories {options.memories}")
    num_scopes = max(2 * QUIET_VICTIMS + 3, options.memories // PER_SCOPE)
    with tempfile.TemporaryDirectory(prefix="muniment-bench-", dir=options.folder) as name:
        folder = Path(name)
        need_room(folder, BYTES_PER_MEMORY * num_scopes * PER_SCOPE)
        path = folder / "archive.db"
        print(f"{num_scopes * PER_SCOPE:,} events in {num_scopes:,} scopes, in random order")
        started = perf_counter()
        load(path, num_scopes)
        report.details["events/s stored, about 50 in a transaction"] = round(
            num_scopes * PER_SCOPE / (perf_counter() - started)
        )
        measure_facts(report, path)
        measure_forget(report, path, folder, num_scopes)
        print("a scope erased, nobody else there")
        measure_erase(report, path, "quiet", range(QUIET_VICTIMS))
        print("a scope erased, two writers and a reader at work")
        with at_work(path, num_scopes) as others:
            measure_erase(report, path, "at work", range(QUIET_VICTIMS, 2 * QUIET_VICTIMS))
        for number, answer in enumerate(others):
            report.details[f"at work: {answer['role']} {number}"] = answer
            report.add(f"at work: longest wait of {answer['role']} {number}", answer["longest_s"], "s")
            assert not answer["failed"], answer
        with open_archive(path) as archive:
            verified = archive.verify()
        report.add("ledgers that no longer verify", 0 if verified else 1, below=1)
    if options.results is None:
        report.write()
    else:
        report.write(options.results)
    return 1 if any(row.met is False and row.unit in ("markers", "") for row in report.rows) else 0


def open_archive(path: Path) -> Archive:
    return muniment.open(path, embedder=WordEmbedder())


def token_of(scope: int, number: int) -> str:
    """The word that only this event has."""
    return f"q{sha256(f'{scope} {number}'.encode()).hexdigest()[:16]}z"


def load(path: Path, num_scopes: int) -> None:
    """Scopes of 1,000 messages and notes, with vectors, stored in random order."""
    chance, texts = random.Random(3), Texts(11)
    order = [scope for scope in range(num_scopes) for _ in range(PER_SCOPE)]
    chance.shuffle(order)
    numbers = [0] * num_scopes

    def entries() -> Iterator[tuple[Scope, Message | Note]]:
        for scope in order:
            number = numbers[scope]
            numbers[scope] += 1
            text = f"{texts.next()} {token_of(scope, number)}"
            where = Scope(TENANT, f"scope-{scope}")
            if number % 8 == 7:
                yield where, Note(content=text, labels=("bench",))
            else:
                yield where, Message(speaker=("anna", "bram")[number % 2], content=text, session_id=f"s{number // 20}")

    with muniment.open(path, embedder=WordEmbedder(), durability="normal") as archive:
        remaining = entries()
        while chunk := [entry for _, entry in zip(range(EVENTS_AT_ONCE * num_scopes), remaining, strict=False)]:
            by_scope: dict[Scope, list[Message | Note]] = {}
            for where, event in chunk:
                by_scope.setdefault(where, []).append(event)
            for where, events in by_scope.items():
                archive.memory(where.subject, tenant=where.tenant).add_many(events)


# --- Facts ------------------------------------------------------------------------------------------------------------


def measure_facts(report: Report, path: Path) -> None:
    """`recall` of 1,000 facts, recorded, out of the whole archive."""
    texts, caller = Texts(12), Caller(TENANT)
    with open_archive(path) as archive:
        archive.memory("facts", tenant=TENANT).add_many(
            [Note(content=texts.next(), tier="core", source="facts") for _ in range(FACTS)]
        )
        facts = ArchiveMemory(archive)

        async def recall() -> list[float]:
            seconds: list[float] = []
            for _ in range(RECALLS):
                started = perf_counter()
                found = await facts.recall(caller, "facts")
                seconds.append(perf_counter() - started)
                assert len(found) == FACTS
            return seconds

        seconds = asyncio.run(recall())
    report.details[f"recall of {FACTS:,} facts"] = quantiles(seconds)
    report.add(f"recall of {FACTS:,} facts, p50", statistics.median(seconds) * 1_000, "ms", below=5)


def measure_forget(report: Report, path: Path, folder: Path, num_scopes: int) -> None:
    """`forget` of one fact beside `delete` of one, and beside a DELETE in a table of the bare driver, in turns."""
    texts = Texts(13)
    bare = apsw.Connection(str(folder / "bare.db"))
    bare.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON")
    bare.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, content TEXT)")
    with open_archive(path) as archive:
        memory = archive.memory(f"scope-{num_scopes - 1}", tenant=TENANT)
        notes = [memory.remember(texts.next(), tier="core") for _ in range(2 * FORGOTTEN)]
        for number in range(FORGOTTEN):
            bare.execute("INSERT INTO facts VALUES (?, ?)", (number, texts.next()))
        seconds: dict[str, list[float]] = {"forget": [], "delete": [], "bare DELETE": []}
        for number in range(FORGOTTEN):
            forgotten, deleted = notes[2 * number].id, notes[2 * number + 1].id
            acts: list[tuple[str, Callable[[], object]]] = [
                ("forget", lambda id_=forgotten: memory.forget([id_], clean="later")),
                ("delete", lambda id_=deleted: memory.delete([id_], reason="the bench asked")),
                ("bare DELETE", lambda row=number: bare.execute("DELETE FROM facts WHERE id = ?", (row,))),
            ]
            for name, act in acts[number % 3 :] + acts[: number % 3]:
                seconds[name].append(_time(act)[0])
    bare.close()
    report.details["one fact destroyed"] = {name: quantiles(times) for name, times in seconds.items()}
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    report.add("forget of one fact, unreachable, p50", medians["forget"] * 1_000, "ms")
    report.add("delete of one fact (hidden), p50", medians["delete"] * 1_000, "ms")
    report.add("bare DELETE of one row, p50", medians["bare DELETE"] * 1_000, "ms")
    report.add("forget / delete", medians["forget"] / medians["delete"], "×")
    report.add("forget / bare DELETE", medians["forget"] / medians["bare DELETE"], "×")


def _time(act: Callable[[], T]) -> tuple[float, T]:
    started = perf_counter()
    result = act()
    return perf_counter() - started, result


# --- A scope ----------------------------------------------------------------------------------------------------------


def measure_erase(report: Report, path: Path, state: str, victims: Sequence[int]) -> None:
    """Erase these scopes, run the clean step, and search every byte for what was there."""
    markers: set[bytes] = set()
    for scope in victims:
        markers |= read_markers(path, scope)
    # The files do not stand still while others work, so it is looked for them before that only.
    before = find_markers(path, markers) if state == "quiet" else len(markers)
    with open_archive(path) as archive:
        seconds: list[float] = []
        for scope in victims:
            memory = archive.memory(f"scope-{scope}", tenant=TENANT)
            words = token_of(scope, 1), token_of(scope, PER_SCOPE - 1)
            assert all(memory.search(word)[0].text.endswith(word) for word in words)
            took, receipt = _time(lambda memory=memory: memory.erase(requested_by="bench", clean="later"))
            seconds.append(took)
            assert receipt.count >= PER_SCOPE
            # A look at the past records nothing: the Recall of a search would hold the word again.
            assert not any(memory.search(word, as_of=SEQ_MAX) for word in words), "an erased word was found"
        took, cleaned = _time(lambda: archive.clean(wait_s=LONG_WAIT_S))
    size = path.stat().st_size
    after = find_markers(path, markers)
    report.details[f"erase, {state}"] = {
        "unreachable": quantiles(seconds),
        "clean_s": round(took, 2),
        "bytes": size,
        "blocked": cleaned.blocked,
        "markers": len(markers),
        "markers_found_before": before,
        "residue_by_the_clean_step": cleaned.residue.hits,
        "free_pages": cleaned.residue.free_pages,
    }
    report.add(f"{state}: scope of {PER_SCOPE:,} unreachable, p50", statistics.median(seconds) * 1_000, "ms", below=100)
    report.add(f"{state}: scope of {PER_SCOPE:,} unreachable, longest", max(seconds) * 1_000, "ms")
    report.add(f"{state}: clean step", took, "s")
    report.add(f"{state}: clean step per GB", took / (size / 1e9), "s/GB", below=8)
    report.add(f"{state}: clean step held back", 0 if cleaned else 1, below=1)
    report.add(f"{state}: markers searched for", len(markers), "markers")
    if state == "quiet":
        report.add(f"{state}: markers in the files before", before, "markers", above=len(markers) // 2)
    report.add(f"{state}: markers in the files after", after, "markers", below=1)


def read_markers(path: Path, scope: int) -> set[bytes]:
    """What must not be in the files once the scope is erased."""
    words = [token_of(scope, number) for number in range(PER_SCOPE)]
    markers = {form.encode(code) for word in words for form in (word, word.upper()) for code in _ENCODINGS}
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    (scope_no, salt), *_ = connection.execute(
        "SELECT scope_no, salt FROM names JOIN scopes USING (scope_no) WHERE subject = ?", (f"scope-{scope}",)
    )
    markers.add(salt)
    for column, table in (("salt", "contents"), ("terms", "items"), ("codes", "vectors")):
        rows = connection.execute(
            f"SELECT {column} FROM {table} WHERE place BETWEEN ? AND ?",  # noqa: S608
            (scope_no << 32, (scope_no + 1 << 32) - 1),
        )
        markers.update(piece for (value,) in rows for piece in _pieces_of(value))
    connection.close()
    return markers


_ENCODINGS: Final = ("utf-8", "utf-16-le", "utf-16-be")


def _pieces_of(value: bytes) -> Iterator[bytes]:
    """Every fourth piece of a long value: enough that no page with a part of it goes unnoticed."""
    for start in range(0, max(1, len(value) - WINDOW_BYTES + 1), 4 * WINDOW_BYTES):
        yield value[start : start + WINDOW_BYTES]


def find_markers(path: Path, markers: set[bytes]) -> int:
    """How many of the markers stand in the database, its log or its index."""
    by_start: dict[bytes, list[bytes]] = {}
    for marker in markers:
        by_start.setdefault(marker[:8], []).append(marker)
    starts: NDArray[np.uint64] = np.sort(np.frombuffer(b"".join(by_start), "<u8"))
    likely = np.zeros(2**24, np.bool_)  # by the first three bytes, which rules out nearly every place
    likely[starts & _THREE_BYTES] = True
    overlap = max(map(len, markers)) - 1
    found: set[bytes] = set()
    for suffix in ("", "-wal", "-shm", ".erasures"):
        file = path.with_name(path.name + suffix)
        if not file.exists():
            continue
        before = b""
        with file.open("rb") as opened:
            while chunk := opened.read(READ_BYTES):
                window = before + chunk
                for offset in range(8):
                    words = np.frombuffer(window, "<u8", max(0, len(window) - offset) // 8, offset)
                    places = np.flatnonzero(likely[words & _THREE_BYTES])
                    at = np.searchsorted(starts, words[places])
                    at[at == len(starts)] = 0
                    for place in places[starts[at] == words[places]].tolist():
                        start = place * 8 + offset
                        candidates = by_start[window[start : start + 8]]
                        found.update(marker for marker in candidates if window.startswith(marker, start))
                before = window[-overlap:]
    return len(found)


_THREE_BYTES: Final = np.uint64(0xFFFFFF)


# --- Others at work ---------------------------------------------------------------------------------------------------


@contextmanager
def at_work(path: Path, num_scopes: int) -> Generator[list[dict[str, Any]]]:
    """Two processes that write to scopes of their own and one that searches; afterwards, what they went through."""
    context = multiprocessing.get_context("spawn")
    answers: list[dict[str, Any]] = []
    pairs = [context.Pipe() for _ in range(3)]
    targets = [(write, num_scopes - 2), (write, num_scopes - 3), (search, num_scopes - 2)]
    processes = [
        context.Process(target=target, args=(path, scope, theirs))
        for (target, scope), (_, theirs) in zip(targets, pairs, strict=True)
    ]
    for process in processes:
        process.start()
    for mine, _ in pairs:
        mine.recv()  # it has begun
    try:
        yield answers
    finally:
        for mine, _ in pairs:
            mine.send("stop")
        answers += [mine.recv() for mine, _ in pairs]
        for process in processes:
            process.join()


def write(path: Path, scope: int, line: Connection) -> None:
    """Add one message after another until told to stop."""
    texts = Texts(scope)
    messages = build_messages(texts, 100)

    def act(memory: muniment.Memory, number: int) -> object:
        like = messages[number % len(messages)]
        return memory.add(Message(speaker=like.speaker, content=f"{like.content} {number}", session_id="live"))

    _keep_on("writer", path, scope, line, act)


def search(path: Path, scope: int, line: Connection) -> None:
    """Search a scope in which another process writes, until told to stop."""
    texts = Texts(scope)
    queries = [" ".join(texts.next().split()[:5]) for _ in range(100)]
    _keep_on("reader", path, scope, line, lambda memory, number: memory.search(queries[number % len(queries)]))


def _keep_on(
    role: str, path: Path, scope: int, line: Connection, act: Callable[[muniment.Memory, int], object]
) -> None:
    seconds: list[float] = []
    failed = ""
    with muniment.open(path, embedder=WordEmbedder(), busy_timeout_s=LONG_WAIT_S) as archive:
        memory = archive.memory(f"scope-{scope}", tenant=TENANT)
        act(memory, 0)
        line.send("begun")
        while not line.poll():
            started = perf_counter()
            try:
                act(memory, len(seconds) + 1)
            except muniment.MunimentError as error:
                failed = repr(error)
                break
            seconds.append(perf_counter() - started)
    line.recv()
    answer: dict[str, Any] = {"role": role, "acts": len(seconds), "longest_s": max(seconds, default=0.0)}
    line.send({**answer, "failed": failed, **(quantiles(seconds) if seconds else {})})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
