"""What a search costs: in many small scopes, in one big one, and beside what else one might use.

    python -m bench search --memories 1000000 --scopes 10000 --big 100000 --peers FOLDER

Every search is `archive.memory(…).search(query)` with the default settings and an embedder: words, vectors, the turns
beside a turn, and one Recall appended. The embedder knows no meaning, only words, and answers in microseconds; its time
is told apart, and the targets are for the rest. A query is three words of one memory of the scope between four stop
words, so it is known what should be found; each design also says how often it did.

*Cold* is a scope whose index is not in memory; its rows mostly are in the page cache of the system, as the archive was
just written. The archive of 10,000 memories holds the first scopes of the large one, and both are asked in turns. Both
stay open while they are asked, and other work on the machine disturbs the clock more than the processor time.

The naive design is one FTS5 table, joined, filtered by scope and ordered by rank: no vectors, no context, no record.
FOLDER holds an environment per peer (`bench.peers`), named like its script, with the Python in `bin`. A peer that is
not there is reported as absent.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, thread_time
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

import muniment
from bench.peers.exchange import Outcome, Task
from bench.report import Report, need_room, quantiles
from bench.synthetic import Texts, build_messages
from muniment import Archive, Message, Scope
from muniment.core.text import STOP_STEMS

TENANT: Final = "bench"
LIMIT: Final = 10
SMALL_MEMORIES: Final = 10_000
ROUNDS: Final = 5
"""Times that both archives are opened anew to look at cold scopes."""
COLD_SCOPES: Final = 100
"""Scopes looked at in each of them."""
WARM_SCOPES: Final = 100
WARM_QUERIES: Final = 2_000
MANY_SCOPES: Final = 3_000
"""Scopes whose indexes are in memory at once, about as many as fit."""
BIG_QUERIES: Final = 200
BIG_ADDS: Final = 50
NAIVE_QUERIES: Final = 20
"""Few, as one takes up to seconds."""
PEER_QUERIES: Final = 200
PEERS: Final = ("langgraph_sqlite", "chroma")
BYTES_PER_MEMORY: Final = 4_000
"""More than a memory takes on disk, in the archive and in the naive design, logs included."""


@dataclass
class WordEmbedder:
    """Each word has a direction, a text is the sum of its words'. Deterministic, and nothing to download."""

    name: str = "bench-words-256"
    dimension: int = 256
    seconds: float = 0.0
    """Spent in `embed` so far."""
    _places: dict[str, int] = field(default_factory=dict[str, int])
    _directions: NDArray[np.float32] = field(default_factory=lambda: np.zeros((1_024, 256), np.float32))

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        started = perf_counter()
        words = [text.split() for text in texts]
        vectors = np.stack([self._directions_of(one).sum(axis=0) for one in words])
        self.seconds += perf_counter() - started
        return vectors

    def _directions_of(self, words: Sequence[str]) -> NDArray[np.float32]:
        places = [self._place_of(word) for word in words]
        return self._directions[places]

    def _place_of(self, word: str) -> int:
        place = self._places.get(word)
        if place is None:
            place = self._places[word] = len(self._places)
            if place == len(self._directions):
                self._directions = np.concatenate([self._directions, np.zeros_like(self._directions)])
            chance = np.random.default_rng(zlib.crc32(word.encode()))
            self._directions[place] = chance.standard_normal(self.dimension, np.float32)
        return place


# --- What is stored and asked -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Query:
    """A question to one scope, made from one of its texts."""

    scope: int
    text: str
    source: str


def build_query(chance: random.Random, scope: int, texts: Sequence[str]) -> Query:
    """Three words of a text that are not stop words, between four that are."""
    while True:
        source = chance.choice(texts)
        content = sorted(set(source.split()) - STOP_STEMS)
        if len(content) >= 3:
            break
    one, two, three = chance.sample(content, 3)
    stops = chance.sample(_STOPS, 4)
    return Query(scope, f"{stops[0]} {stops[1]} {one} {stops[2]} {two} {stops[3]} {three}", source)


def build_queries(chance: random.Random, corpus: Sequence[Sequence[str]], scopes: Sequence[int]) -> list[Query]:
    return [build_query(chance, scope, corpus[scope]) for scope in scopes]


_STOPS: Final = ("the", "and", "to", "of", "a", "in", "is", "it", "that", "was", "for", "on", "with", "as", "at", "be")


@dataclass
class Asked:
    """What one way to search did with its queries."""

    seconds: list[float] = field(default_factory=list[float])
    """Of each search, without the embedding of the query."""
    embedding: list[float] = field(default_factory=list[float])
    processor: list[float] = field(default_factory=list[float])
    """Processor time of each search, embedding included."""
    first: int = 0
    """Queries whose source was the first hit."""
    found: int = 0
    """Queries whose source was among the first ten."""

    @property
    def p50_ms(self) -> float:
        return statistics.median(self.seconds) * 1_000

    def take_in(
        self, query: Query, texts: Sequence[str], seconds: float, embedding: float = 0.0, processor: float | None = None
    ) -> None:
        self.seconds.append(seconds - embedding)
        self.embedding.append(embedding)
        if processor is not None:
            self.processor.append(processor)
        self.first += query.source in texts[:1]
        self.found += query.source in texts

    def describe(self) -> dict[str, object]:
        total = [sum(one) for one in zip(self.seconds, self.embedding, strict=True)]
        return {
            "searches": len(self.seconds),
            **quantiles(self.seconds),
            "with_embedding": quantiles(total),
            "embedding": quantiles(self.embedding),
            **({"processor_time": quantiles(self.processor)} if self.processor else {}),
            "source_first": round(self.first / len(self.seconds), 3),
            "source_among_10": round(self.found / len(self.seconds), 3),
        }


@dataclass
class Opened:
    """An opened archive and its embedder."""

    archive: Archive
    embedder: WordEmbedder

    def ask(self, query: Query, asked: Asked | None = None) -> None:
        before, processor = self.embedder.seconds, thread_time()
        started = perf_counter()
        hits = self.archive.memory(f"scope-{query.scope}", tenant=TENANT).search(query.text, limit=LIMIT)
        seconds = perf_counter() - started
        if asked is not None:
            processor = thread_time() - processor
            asked.take_in(query, [hit.text for hit in hits], seconds, self.embedder.seconds - before, processor)


def open_archive(path: Path) -> Opened:
    embedder = WordEmbedder()
    return Opened(muniment.open(path, embedder=embedder), embedder)


def load(path: Path, texts: Texts, scopes: Sequence[int], per_scope: int) -> list[list[str]]:
    """Store that many memories in each scope; their texts."""
    corpus: list[list[str]] = []

    def entries() -> Iterator[tuple[Scope, Message]]:
        for scope in scopes:
            messages = build_messages(texts, per_scope)
            corpus.append([message.content for message in messages])
            yield from ((Scope(TENANT, f"scope-{scope}"), message) for message in messages)

    with muniment.open(path, embedder=WordEmbedder(), durability="normal") as archive:
        remaining = entries()
        while chunk := [entry for _, entry in zip(range(_CHUNK), remaining, strict=False)]:
            archive.add_many(chunk)
    return corpus


_CHUNK: Final = 10_000


# --- Small scopes -----------------------------------------------------------------------------------------------------


def measure_small(report: Report, large: Path, small: Path, corpus: Sequence[Sequence[str]], num_small: int) -> float:
    """Cold and warm scopes of both archives, in turns; the median of the large one's warm scopes, in ms."""
    chance = random.Random(7)
    asked = {name: Asked() for name in ("large, cold", "small, cold", "large, warm", "small, warm", "large, many warm")}
    for _ in range(ROUNDS):
        num_cold = min(COLD_SCOPES, num_small)
        in_large = build_queries(chance, corpus, chance.sample(range(len(corpus)), num_cold))
        in_small = build_queries(chance, corpus, chance.sample(range(num_small), num_cold))
        ask_in_turns((large, small), (in_large, in_small), (asked["large, cold"], asked["small, cold"]), [])
    scopes = chance.sample(range(len(corpus)), min(WARM_SCOPES, num_small)), range(min(WARM_SCOPES, num_small))
    first = [build_queries(chance, corpus, ones) for ones in scopes]
    queries = [build_queries(chance, corpus, chance.choices(ones, k=WARM_QUERIES)) for ones in scopes]
    ask_in_turns((large, small), queries, (asked["large, warm"], asked["small, warm"]), first)
    many = chance.sample(range(len(corpus)), min(MANY_SCOPES, len(corpus)))
    queries = [build_queries(chance, corpus, chance.choices(many, k=WARM_QUERIES))]
    ask_in_turns((large,), queries, (asked["large, many warm"],), [build_queries(chance, corpus, many)])
    for name, one in asked.items():
        report.details[f"small scopes: {name}"] = one.describe()
    for state, limit in (("warm", 0.4), ("cold", 1.0)):
        in_large, in_small = asked[f"large, {state}"], asked[f"small, {state}"]
        report.add(f"{state} scope, p50", in_large.p50_ms, "ms", below=limit)
        report.add(f"{state} scope, p95", quantiles(in_large.seconds)["p95_ms"], "ms")
        report.add(f"{state} scope, processor time, p50", statistics.median(in_large.processor) * 1_000, "ms")
        report.add(f"{state} scope, p50 in the small archive", in_small.p50_ms, "ms")
        report.add(f"{state} scope, large / small", in_large.p50_ms / in_small.p50_ms, "×", below=1.3)
    report.add(f"warm scope, p50, {len(many):,} scopes in memory", asked["large, many warm"].p50_ms, "ms", below=0.4)
    report.add("embedding of the query, p50", quantiles(asked["large, warm"].embedding)["p50_ms"], "ms")
    return asked["large, warm"].p50_ms


def ask_in_turns(
    paths: Sequence[Path], queries: Sequence[Sequence[Query]], asked: Sequence[Asked], first: Sequence[Sequence[Query]]
) -> None:
    """Open the archives, ask each its `first` without a clock, then the queries, one archive after the other."""
    opened = [open_archive(path) for path in paths]
    for one in opened:
        one.archive.memory("nobody", tenant=TENANT).search("the first search agrees on the model")
    for one, ones in zip(opened, first, strict=False):
        for query in ones:
            one.ask(query)
    for turn in zip(*queries, strict=True):
        for one, query, result in zip(opened, turn, asked, strict=True):
            one.ask(query, result)
    for one in opened:
        one.archive.close()


# --- One big scope ----------------------------------------------------------------------------------------------------


def measure_big(
    report: Report, path: Path, scope: int, texts: Sequence[str], added: Texts
) -> tuple[float, list[Query]]:
    """The first search, warm ones, and the first after an add; the warm median in ms, and what was asked."""
    chance = random.Random(8)
    share = len(texts) / 100_000
    first, warm, after = Asked(), Asked(), Asked()
    for _ in range(3):
        opened = open_archive(path)
        opened.archive.memory("nobody", tenant=TENANT).search("the first search agrees on the model")
        opened.ask(build_query(chance, scope, texts), first)
        opened.archive.close()
    opened = open_archive(path)
    opened.ask(build_query(chance, scope, texts))
    queries = [build_query(chance, scope, texts) for _ in range(BIG_QUERIES)]
    for query in queries:
        opened.ask(query, warm)
    memory = opened.archive.memory(f"scope-{scope}", tenant=TENANT)
    for message in build_messages(added, BIG_ADDS):
        memory.add(message)
        opened.ask(build_query(chance, scope, texts), after)
    cache_bytes = opened.archive._engine.indexes.bytes_used
    opened.archive.close()
    for name, one in (("first", first), ("warm", warm), ("after an add", after)):
        report.details[f"big scope: {name}"] = one.describe()
    report.add("big scope, first search", first.p50_ms / 1_000, "s", below=share)
    report.add("big scope, warm, p50", warm.p50_ms, "ms", below=3)
    report.add("big scope, warm, p95", quantiles(warm.seconds)["p95_ms"], "ms")
    report.add("big scope, right after an add, p50", after.p50_ms, "ms", below=5)
    report.add("big scope, index in memory", cache_bytes / 1e6, "MB", below=60 * share)
    return warm.p50_ms, queries


# --- The naive design -------------------------------------------------------------------------------------------------

NAIVE: Final = """
CREATE TABLE memories (id INTEGER PRIMARY KEY, scope TEXT NOT NULL, content TEXT NOT NULL);
CREATE INDEX memories_by_scope ON memories (scope);
CREATE VIRTUAL TABLE search USING fts5 (content, content='memories', content_rowid='id', tokenize='porter unicode61');
"""
NAIVE_SEARCH: Final = """
SELECT memories.content FROM search JOIN memories ON memories.id = search.rowid
WHERE search MATCH ? AND memories.scope = ? ORDER BY search.rank LIMIT ?
"""


def load_naive(path: Path, corpus: Sequence[Sequence[str]]) -> apsw.Connection:
    """The texts of the scopes, in the order in which the archive has them."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536")
    connection.execute(NAIVE)
    rows = ((f"scope-{scope}", text) for scope, texts in enumerate(corpus) for text in texts)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO memories (scope, content) VALUES (?, ?)", rows)
    connection.execute("INSERT INTO search (rowid, content) SELECT id, content FROM memories")
    connection.execute("COMMIT")
    return connection


def ask_naive(connection: apsw.Connection, queries: Sequence[Query], without: Collection[str] = ()) -> Asked:
    """All words of each query, but those `without`, joined by OR."""
    asked = Asked()
    for query in queries:
        match = " OR ".join(f'"{word}"' for word in query.text.split() if word not in without)
        started = perf_counter()
        rows = list(connection.execute(NAIVE_SEARCH, (match, f"scope-{query.scope}", LIMIT)))
        asked.take_in(query, [text for (text,) in rows], perf_counter() - started)
    return asked


# --- Peers ------------------------------------------------------------------------------------------------------------


def measure_peers(
    report: Report, environments: Path | None, folder: Path, corpus: Sequence[Sequence[str]], muniment_ms: float
) -> None:
    """Each peer that is there, with the texts of these scopes, beside the median of the large archive."""
    scopes = [scope for scope, texts in enumerate(corpus) for _ in texts]
    texts = [text for ones in corpus for text in ones]
    chance = random.Random(9)
    queries = build_queries(chance, corpus, chance.choices(range(len(corpus)), k=PEER_QUERIES))
    embedder = WordEmbedder()
    for name in PEERS:
        python = None if environments is None else environments / name / "bin" / "python"
        if python is None or not python.exists():
            report.details[f"peer: {name}"] = "absent"
            print(f"  {name}: absent")
            continue
        with tempfile.TemporaryDirectory(prefix="muniment-bench-", dir=folder) as exchange:
            Task(
                scopes=[f"scope-{scope}" for scope in scopes],
                texts=texts,
                vectors=np.concatenate([embedder.embed(ones) for ones in corpus]),
                query_scopes=[f"scope-{query.scope}" for query in queries],
                queries=[query.text for query in queries],
                query_vectors=embedder.embed([query.text for query in queries]),
            ).write(Path(exchange))
            script = Path(__file__).parent / "peers" / f"{name}.py"
            done = subprocess.run([python, script, exchange], stdout=subprocess.PIPE, check=False)
        if done.returncode:
            report.details[f"peer: {name}"] = "failed"
            print(f"  {name}: failed")
            continue
        outcome = Outcome(**json.loads(done.stdout.splitlines()[-1]))
        asked = Asked()
        for query, seconds, found in zip(queries, outcome.seconds, outcome.found, strict=True):
            assert all(scopes[number] == query.scope for number in found), "a peer answered from another scope"
            asked.take_in(query, [texts[number] for number in found], seconds)
        report.details[f"peer: {name}"] = {
            "package": f"{outcome.package} {outcome.version}",
            "memories": len(texts),
            "load_s": round(outcome.load_s, 1),
            "hits_per_query": round(statistics.fmean(map(len, outcome.found)), 2),
            **asked.describe(),
        }
        report.add(f"{outcome.package}, {len(texts):,} memories, p50", asked.p50_ms, "ms")
        report.add(f"{outcome.package} / muniment", asked.p50_ms / muniment_ms, "×")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench search", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000, help="memories of the large archive")
    parser.add_argument("--scopes", type=int, default=1_000, help="scopes that they are spread over")
    parser.add_argument("--big", type=int, default=20_000, help="memories of the one big scope")
    parser.add_argument("--peers", type=Path, help="a folder with an environment per peer")
    parser.add_argument("--peer-memories", type=int, default=20_000, help="memories that the peers are given")
    parser.add_argument("--folder", type=Path, help="where the archives are written; default: the temporary folder")
    parser.add_argument("--results", type=Path, help="where the JSON goes; default: bench/results")
    options = parser.parse_args(arguments)
    peers = f" --peers FOLDER --peer-memories {options.peer_memories}" if options.peers else ""
    report = Report(
        "search",
        f"python -m bench search --memories {options.memories} --scopes {options.scopes} --big {options.big}{peers}",
    )
    per_scope = max(1, options.memories // options.scopes)
    num_small = min(options.scopes, max(1, SMALL_MEMORIES // per_scope))
    with tempfile.TemporaryDirectory(prefix="muniment-bench-", dir=options.folder) as name:
        folder = Path(name)
        need_room(folder, BYTES_PER_MEMORY * (options.memories + options.big))
        print(f"{options.memories:,} memories in {options.scopes:,} scopes, and {num_small * per_scope:,} of them")
        large, small = folder / "large.db", folder / "small.db"
        corpus = load(large, Texts(5), range(options.scopes), per_scope)
        load(small, Texts(5), range(num_small), per_scope)
        report.details["large archive: file, bytes"] = large.stat().st_size
        report.details["hits wanted"] = LIMIT
        small_ms = measure_small(report, large, small, corpus, num_small)
        print(f"one scope of {options.big:,} beside them")
        (big,) = load(large, Texts(6), [options.scopes], options.big)
        big_ms, big_queries = measure_big(report, large, options.scopes, big, Texts(7))
        print("the naive design on the same texts")
        chance = random.Random(10)
        naive = load_naive(folder / "naive.db", [*corpus, big])
        scopes = chance.choices(range(options.scopes), k=NAIVE_QUERIES)
        in_small, in_big = (
            ask_naive(naive, build_queries(chance, corpus, scopes)),
            ask_naive(naive, big_queries[:NAIVE_QUERIES]),
        )
        telling = ask_naive(naive, build_queries(chance, corpus, scopes), without=_STOPS)
        naive.close()
        report.details["naive, small scopes"] = in_small.describe()
        report.details["naive, small scopes, without stop words"] = telling.describe()
        report.details["naive, big scope"] = in_big.describe()
        report.add("naive, small scope, p50", in_small.p50_ms, "ms")
        report.add("naive / muniment, small scope", in_small.p50_ms / small_ms, "×")
        report.add("naive, small scope, without stop words, p50", telling.p50_ms, "ms")
        report.add("naive without stop words / muniment, small scope", telling.p50_ms / small_ms, "×")
        report.add("naive, big scope, p50", in_big.p50_ms, "ms")
        report.add("naive / muniment, big scope", in_big.p50_ms / big_ms, "×")
        print("peers")
        measure_peers(report, options.peers, folder, corpus[: options.peer_memories // per_scope], small_ms)
    if options.results is None:
        report.write()
    else:
        report.write(options.results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
