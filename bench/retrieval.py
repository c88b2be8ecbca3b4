"""How much of the evidence a search finds, without any LLM, with the settings that everybody gets.

    python -m bench retrieval --data FOLDER [--embedders none local minilm] [--through archive]

FOLDER (or MUNIMENT_DATA) holds `locomo10.json`, ten long conversations between two people, and `beam100k/`, twenty long
chats with an assistant. Each turn is a message, each conversation a scope. A question is answered by the turns that its
author named as evidence; recall@k is the share of them among the first k hits.

The settings were chosen on LoCoMo 1-5 and BEAM 1-10 (`development`); the others (`held_out`) were only looked at to see
whether the choice holds. LoCoMo's fifth category asks what never happened, so it is told apart, and so are BEAM's three
that ask for a summary, an order or a habit rather than for a place.

`--through index` asks the scope index itself, which is faster and must give the same hits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, Final

import muniment
from bench.report import Report
from muniment import Message
from muniment.adapters.embed import NAMED
from muniment.adapters.tokenizer import tokenize
from muniment.core.ranking import build_query
from muniment.core.scope_index import ALIVE, Row, ScopeIndex
from muniment.core.text import TermHasher, analyse, query_terms, without_terms
from muniment.core.vectors import quantise
from muniment.errors import UnsupportedError
from muniment.ports.embedder import Embedder

CUTS: Final = (1, 5, 10, 20)
LIMIT: Final = max(CUTS)

LOCOMO, BEAM = "locomo", "beam100k"
TARGETS: Final[Mapping[tuple[str, str], float]] = {
    (LOCOMO, "none"): 0.70,
    (LOCOMO, "local"): 0.75,
    (LOCOMO, "minilm"): 0.78,
    (BEAM, "none"): 0.53,
    (BEAM, "local"): 0.53,
    (BEAM, "minilm"): 0.53,
}
"""Recall@10 of all conversations of a set, and the model."""

# --- data ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    speaker: str
    session: str
    text: str


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[int]
    """Places of turns in the conversation."""
    category: str
    counts: bool
    """Whether the set's own number is made of it."""


@dataclass(frozen=True)
class Conversation:
    name: str
    held_out: bool
    turns: Sequence[Turn]
    questions: Sequence[Question]


LOCOMO_CATEGORIES: Final = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
BEAM_NOT_A_PLACE: Final = frozenset({"event_ordering", "summarization", "instruction_following"})


def read_locomo(file: Path) -> list[Conversation]:
    """The ten conversations. Evidence that names several turns at once is taken apart; what names none is dropped."""
    return [
        _read_locomo_one(f"conversation {number}", number > 5, entry)
        for number, entry in enumerate(json.loads(file.read_text(encoding="utf-8")), start=1)
    ]


def _read_locomo_one(name: str, held_out: bool, entry: Mapping[str, Any]) -> Conversation:
    talk = entry["conversation"]
    sessions = [key for key in talk if re.fullmatch(r"session_\d+", key)]
    turns: list[Turn] = []
    places: dict[tuple[int, int], int] = {}
    for session in sorted(sessions, key=lambda key: int(key.removeprefix("session_"))):
        for turn in talk[session]:
            places[_turn_ids(turn["dia_id"])[0]] = len(turns)
            caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            turns.append(Turn(turn["speaker"], session, turn["text"] + caption))
    questions = [
        Question(asked["question"], evidence, LOCOMO_CATEGORIES[asked["category"]], asked["category"] != 5)
        for asked in entry["qa"]
        if (evidence := frozenset(places[i] for said in asked["evidence"] for i in _turn_ids(said) if i in places))
    ]
    return Conversation(name, held_out, turns, questions)


def _turn_ids(text: str) -> list[tuple[int, int]]:
    """`D8:6; D9:17`, `D:11:26` and `D30:05` as session and turn."""
    return [(int(session), int(turn)) for session, turn in re.findall(r"D:?(\d+):(\d+)", text)]


def read_beam(folder: Path) -> list[Conversation]:
    """The twenty chats; a message's index at its end, which no user wrote, is cut off."""
    chats = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: int(path.name))
    return [_read_beam_one(chat) for chat in chats]


def _read_beam_one(folder: Path) -> Conversation:
    turns: list[Turn] = []
    places: dict[int, int] = {}
    for batch in json.loads((folder / "chat.json").read_text(encoding="utf-8")):
        for message in (message for turn in batch["turns"] for message in turn):
            places[message["id"]] = len(turns)
            text = re.sub(r"\s*->->\s*[\d,]+\s*$", "", message["content"])
            turns.append(Turn(message["role"], str(batch["batch_number"]), text))
    asked = json.loads((folder / "probing_questions.json").read_text(encoding="utf-8"))
    questions = [
        Question(one["question"], evidence, category, True)
        for category, ones in asked.items()
        for one in ones
        if (evidence := frozenset(places[i] for i in _numbers_in(one.get("source_chat_ids")) if i in places))
    ]
    return Conversation(f"chat {folder.name}", int(folder.name) > 10, turns, questions)


def _numbers_in(value: object) -> Iterator[int]:
    """The ids, however they are nested."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict):
        yield from _numbers_in(list(value.values()))
    elif isinstance(value, list):
        for one in value:
            yield from _numbers_in(one)


# --- searching ----------------------------------------------------------------------------------------------------

Retriever = Callable[[str], Sequence[int]]
"""From a question to the places of the turns found, best first."""


@contextmanager
def open_archive_retriever(conversation: Conversation, embedder: Embedder | None) -> Iterator[Retriever]:
    """Through `memory.search`, as an application would."""
    with (
        tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder,
        muniment.open(Path(folder) / "memory.db", durability="normal", embedder=embedder) as archive,
    ):
        memory = archive.memory("reader", tenant="bench")
        messages = [
            Message(speaker=one.speaker, content=one.text, session_id=one.session) for one in conversation.turns
        ]
        places: dict[object, int] = {}
        for start in range(0, len(messages), 1_000):
            for event in memory.add_many(messages[start : start + 1_000]):
                places[event.id] = len(places)
        yield lambda question: [places[hit.id] for hit in memory.search(question, limit=LIMIT)]


@contextmanager
def open_index_retriever(conversation: Conversation, embedder: Embedder | None) -> Iterator[Retriever]:
    """Through the pure parts alone."""
    hasher = TermHasher(bytes(16))
    codes = None if embedder is None else quantise(embedder.embed([turn.text for turn in conversation.turns]))[0]
    index = ScopeIndex(
        Row(
            seq=place,
            kind=1,
            tier=0,
            timestamp_us=place,
            session=hasher.numbers_of([turn.session])[0] >> 1,
            speaker=hasher.numbers_of([turn.speaker])[0] >> 1,
            died_seq=ALIVE,
            terms=hasher.hash_terms(analyse(f"{turn.speaker}\n{turn.text}", tokenize)),
            codes=None if codes is None else codes[place].tobytes(),
        )
        for place, turn in enumerate(conversation.turns)
    )

    def retrieve(question: str) -> Sequence[int]:
        query = build_query(question, tokenize, hasher)
        if embedder is not None:
            names = index.names_in(query)
            unwanted = {term for term in query_terms(question, tokenize) if hasher.numbers_of([term])[0] in names}
            vector = quantise(embedder.embed([without_terms(question, tokenize, unwanted)]))[0][0]
            query = build_query(question, tokenize, hasher, vector.tobytes())
        return [found.seq for found in index.search(query, LIMIT)]

    yield retrieve


THROUGH: Final = {"archive": open_archive_retriever, "index": open_index_retriever}


# --- measuring ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What one question found, and how long the search took."""

    question: Question
    held_out: bool
    recall: Mapping[int, float]
    reciprocal_rank: float
    ndcg: float
    seconds: float


def ask(question: Question, held_out: bool, retrieve: Retriever) -> Answer:
    """Ask, and compare what was found with the evidence."""
    start = perf_counter()
    found = retrieve(question.text)
    seconds = perf_counter() - start
    right = [place in question.evidence for place in found]
    gain = sum(1 / math.log2(rank + 2) for rank, is_right in enumerate(right[:10]) if is_right)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(question.evidence))))
    return Answer(
        question,
        held_out,
        {cut: sum(right[:cut]) / len(question.evidence) for cut in CUTS},
        next((1 / (rank + 1) for rank, is_right in enumerate(right) if is_right), 0.0),
        gain / ideal,
        seconds,
    )


def summarise(answers: Sequence[Answer]) -> dict[str, float]:
    """The means over questions."""
    return {
        "questions": len(answers),
        **{f"recall@{cut}": round(fmean(one.recall[cut] for one in answers), 4) for cut in CUTS},
        "mrr": round(fmean(one.reciprocal_rank for one in answers), 4),
        "ndcg@10": round(fmean(one.ndcg for one in answers), 4),
    }


def summarise_all(answers: Sequence[Answer]) -> dict[str, object]:
    """All that count, each part of the data by itself, and each category."""
    counted = [one for one in answers if one.question.counts]
    by_category: dict[str, list[Answer]] = {}
    for one in answers:
        by_category.setdefault(one.question.category, []).append(one)
    return {
        "all": summarise(counted),
        "development": summarise([one for one in counted if not one.held_out]),
        "held_out": summarise([one for one in counted if one.held_out]),
        "places_only": summarise([one for one in counted if one.question.category not in BEAM_NOT_A_PLACE]),
        "by_category": {category: summarise(ones) for category, ones in sorted(by_category.items())},
        "milliseconds_per_search": round(fmean(one.seconds for one in answers) * 1_000, 3),
    }


def measure(conversations: Sequence[Conversation], embedder: Embedder | None, through: str) -> dict[str, object]:
    """Every question of every conversation, each in a scope of its own."""
    answers: list[Answer] = []
    for conversation in conversations:
        with THROUGH[through](conversation, embedder) as retrieve:
            answers += [ask(question, conversation.held_out, retrieve) for question in conversation.questions]
    return summarise_all(answers)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench retrieval", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MUNIMENT_DATA"), help="the folder of the data")
    parser.add_argument("--embedders", nargs="+", choices=["none", *NAMED], default=["none", "local"])
    parser.add_argument("--sets", nargs="+", choices=[LOCOMO, BEAM], default=[LOCOMO, BEAM])
    parser.add_argument("--through", choices=list(THROUGH), default="archive")
    parser.add_argument("--results", type=Path, help="where the JSON goes; default: bench/results")
    options = parser.parse_args(arguments)
    folder = Path(options.data or "")
    files = {LOCOMO: folder / "locomo10.json", BEAM: folder / "beam100k"}
    missing = [files[name].name for name in options.sets if not files[name].exists()]
    if options.data is None or missing:
        print(f"{', '.join(missing) or 'the data'} is not here: give its folder with --data or MUNIMENT_DATA")
        return 2
    read = {LOCOMO: read_locomo, BEAM: read_beam}
    report = Report("retrieval", f"python -m bench retrieval --embedders {' '.join(options.embedders)}")
    print("Retrieval of evidence")
    for model in options.embedders:
        try:
            embedder = None if model == "none" else NAMED[model]()
        except UnsupportedError as error:
            print(f"  {model}: {error}")
            continue
        for name in options.sets:
            details = measure(read[name](files[name]), embedder, options.through)
            report.details[f"{name}, {model}"] = details
            for part in ("all", "development", "held_out"):
                target = TARGETS[name, model] if part == "all" else None
                report.add(f"{name}, {model}, {part}: recall@10", _recall_at_10(details, part), above=target)
    if options.results is None:
        report.write()
    else:
        report.write(options.results)
    return 0


def _recall_at_10(details: Mapping[str, Any], part: str) -> float:
    return details[part]["recall@10"]


if __name__ == "__main__":
    raise SystemExit(main([]))
