"""The scope index by example: `muniment.core.scope_index`. Its laws are in `tests/property/test_scope_index.py`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from muniment.adapters.tokenizer import tokenize
from muniment.core.bm25 import rank_documents
from muniment.core.ranking import (
    ADAPTIVE,
    LENDING_TURNS_MIN,
    PLAIN,
    SPEAKER_TURNS_MIN,
    Filter,
    Query,
    Ranking,
    build_query,
)
from muniment.core.scope_index import ALIVE, Row, ScopeIndex
from muniment.core.text import TermHasher, analyse, query_terms, without_terms
from muniment.core.vectors import quantise
from muniment.errors import EmbeddingDimensionError, UsageError
from muniment.model.limits import QUERY_TERMS_MAX

HASHER = TermHasher(bytes(16))


def packed(vector: Sequence[float] | None) -> bytes | None:
    return None if vector is None else quantise(vector)[0].tobytes()


def row(
    seq: int, text: str, *, vector: Sequence[float] | None = None, session: int = 0, speaker: str = "", kind: int = 1
) -> Row:
    terms = analyse(f"{speaker}\n{text}", tokenize)
    named = HASHER.numbers_of([speaker])[0] >> 1 if speaker else 0
    return Row(seq, kind, 0, seq, session, named, ALIVE, HASHER.hash_terms(terms), packed(vector))


def index_of(*texts: str) -> ScopeIndex:
    return ScopeIndex(row(seq, text) for seq, text in enumerate(texts))


def ask(text: str, vector: Sequence[float] | None = None) -> Query:
    return build_query(text, tokenize, HASHER, packed(vector))


def seqs(index: ScopeIndex, query: Query, limit: int = 10, ranking: Ranking = ADAPTIVE, **options: object) -> list[int]:
    return [one.seq for one in index.search(query, limit, ranking=ranking, **options)]  # type: ignore[arg-type]


# --- keywords -----------------------------------------------------------------------------------------------------


def test_nothing_is_found_in_an_empty_scope_or_by_an_empty_query() -> None:
    assert ScopeIndex().search(ask("pump", [1.0]), 10) == []
    assert index_of("pump").search(Query(), 10) == []
    assert index_of("", "").search(ask("pump"), 10) == []
    assert index_of("pump").search(ask("zebra"), 10) == []


@pytest.mark.parametrize("query", ["water pump", "the contractor", "i it the", "pump on wednesday", "anna"])
def test_keyword_scores_are_those_of_the_plain_ranking(query: str) -> None:
    texts = [
        "anna the water pump failed on tuesday",
        "bram i logged it with the contractor",
        "repairs.txt pump replaced on wednesday morning",
    ]
    found = index_of(*texts).search(ask(query), 10, ranking=PLAIN)
    documents = [analyse(text, tokenize) for text in texts]
    assert [(one.seq, one.score) for one in found] == rank_documents(documents, query_terms(query, tokenize), 10)


def test_ties_go_to_the_smaller_seq() -> None:
    assert seqs(index_of(*["pump"] * 2_000), ask("pump"), 3) == [0, 1, 2]


def test_a_limit_cuts_and_zero_gives_nothing() -> None:
    index = index_of("pump", "pump", "pump")
    assert seqs(index, ask("pump"), 2) == [0, 1]
    assert seqs(index, ask("pump"), 0) == []


def test_only_the_rarest_terms_of_a_long_query_count() -> None:
    rare = [f"word{number}" for number in range(QUERY_TERMS_MAX)]
    index = index_of("common", "common", *rare)
    query = ask(" ".join(["common", *rare]))
    assert len(query.terms) == QUERY_TERMS_MAX + 1
    assert seqs(index, query, 1_000) == list(range(2, 2 + QUERY_TERMS_MAX))


def test_a_tie_at_the_term_limit_goes_to_the_first_in_the_query() -> None:
    words = [f"word{number}" for number in range(QUERY_TERMS_MAX + 5)]
    assert seqs(index_of(*reversed(words)), ask(" ".join(words)), 1_000) == list(range(5, QUERY_TERMS_MAX + 5))


# --- vectors and fusion: the examples of contract law S9 ----------------------------------------------------------

EXAMPLE_1 = [
    row(1, "alpha beta gamma delta", vector=[1, 0, 0, 0]),
    row(2, "gamma delta", vector=[0.6, 0.8, 0, 0]),
    row(3, "alpha novector content"),
]
EXAMPLE_2 = [
    row(0, "alpha beta gamma", vector=[1 / 3, 1 / 3, 1 / 3, 0, 0]),
    row(1, "gamma delta epsilon", vector=[0, 0, 1 / 3, 1 / 3, 1 / 3]),
    row(2, "alpha delta", vector=[0.5, 0, 0, 0.5, 0]),
    row(3, "beta epsilon", vector=[0, 0.5, 0, 0, 0.5]),
]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((1.0, 1.0), {1: 0.0325225, 3: 0.0163934, 2: 0.0161290}),
        ((0.5, 0.5), {1: 0.0162612, 3: 0.0081967, 2: 0.0080645}),
    ],
)
def test_s9_example_1(weights: tuple[float, float], expected: dict[int, float]) -> None:
    ranking = Ranking(fusion="rrf", weights=weights, context=False, speakers=False)
    found = ScopeIndex(EXAMPLE_1).search(ask("alpha", [1, 0, 0, 0]), 5, ranking=ranking)
    assert [one.seq for one in found] == list(expected)
    assert [one.score for one in found] == pytest.approx(list(expected.values()), abs=1e-6)


@pytest.mark.parametrize(("weights", "expected"), [((1.0, 0.0), [3, 1]), ((0.0, 1.0), [1, 2])])
def test_s9_a_leg_of_weight_0_gives_nothing(weights: tuple[float, float], expected: list[int]) -> None:
    ranking = Ranking(fusion="rrf", weights=weights, context=False, speakers=False)
    assert seqs(ScopeIndex(EXAMPLE_1), ask("alpha", [1, 0, 0, 0]), 5, ranking) == expected


def test_s9_example_2() -> None:
    index, vector = ScopeIndex(EXAMPLE_2), [1, 0, 0, 0, 0]
    found = index.search(ask("alpha", vector), 5, ranking=PLAIN)
    assert [one.seq for one in found] == [2, 0, 1, 3]
    assert [one.score for one in found] == pytest.approx([0.0327869, 0.0322581, 0.0158730, 0.0156250], abs=1e-6)
    assert seqs(index, ask("alpha"), 5, PLAIN) == [2, 0]
    assert seqs(index, Query(vector=packed(vector)), 5, PLAIN)[0] == 2


def test_a_vector_without_direction_is_in_no_vector_leg() -> None:
    index = ScopeIndex([row(0, "pump", vector=[0, 0]), row(1, "pump", vector=[1, 0]), row(2, "pump")])
    assert seqs(index, Query(vector=packed([1, 1]))) == [1]
    assert seqs(index, Query(vector=packed([0, 0]))) == []
    assert seqs(index, ask("pump", [0, 0])) == [0, 1, 2]


def test_vectors_of_another_length_are_refused() -> None:
    index = ScopeIndex([row(0, "pump", vector=[1, 0])])
    with pytest.raises(EmbeddingDimensionError) as raised:
        index.search(Query(vector=packed([1, 0, 0])), 5)
    assert (raised.value.expected, raised.value.given) == (2, 3)
    with pytest.raises(EmbeddingDimensionError):
        index.extend([row(1, "pump", vector=[1, 0, 0])])
    with pytest.raises(EmbeddingDimensionError):
        ScopeIndex([row(0, "pump", vector=[1, 0]), row(1, "pump", vector=[1, 0, 0])])
    assert len(index) == 1


def test_the_first_vector_may_come_late() -> None:
    index = index_of("pump", "valve")
    index.extend([row(2, "tank", vector=[1, 0])])
    assert seqs(index, Query(vector=packed([1, 1]))) == [2]


@pytest.mark.parametrize("ranking", [ADAPTIVE, PLAIN])
def test_s6_filters_come_before_the_cut(ranking: Ranking) -> None:
    rows = [row(seq, "pump", vector=[1, 0], kind=1) for seq in range(2_000)]
    index = ScopeIndex([*rows, row(2_000, "pump among many other words", vector=[0, 1], kind=2)])
    for query in (ask("pump"), Query(vector=packed([1, 0])), ask("pump", [1, 0])):
        assert seqs(index, query, 1, ranking, where=Filter(kinds={2})) == [2_000]
        assert seqs(index, query, 1, ranking, where=Filter(seqs=[2_000])) == [2_000]
        assert seqs(index, query, 1, ranking, where=Filter(seqs=np.array([2_000]), kinds={1})) == []


def test_intervals_of_time_are_half_open() -> None:
    index = index_of("pump", "pump", "pump", "pump")
    assert seqs(index, ask("pump"), where=Filter(since_us=1, until_us=3)) == [1, 2]


# --- conversations ------------------------------------------------------------------------------------------------


def conversation(turns: int) -> ScopeIndex:
    """Turns of two speakers in sessions of 20; every sixth of a session says `pump`."""
    return ScopeIndex(
        row(
            seq,
            "the pump" if seq % 20 == 5 else "a valve",
            session=1 + seq // 20,
            speaker=("anna", "bram")[seq % 2],
        )
        for seq in range(turns)
    )


def test_turns_lend_to_their_neighbours_in_the_session() -> None:
    found = conversation(LENDING_TURNS_MIN).search(ask("pump"), 9)
    assert [one.seq for one in found] == [5, 25, 4, 6, 24, 26, 3, 7, 23]
    assert set(found[0].parts) == {"keyword"}
    assert set(found[2].parts) == {"keyword_context"}


def test_a_short_conversation_lends_only_when_asked_to() -> None:
    index = conversation(LENDING_TURNS_MIN - 1)
    assert seqs(index, ask("pump")) == [5, 25]
    assert seqs(index, ask("pump"), 4, Ranking(context=True)) == [5, 25, 4, 6]


def test_a_long_conversation_lends_unless_asked_not_to() -> None:
    assert seqs(conversation(LENDING_TURNS_MIN), ask("pump"), 10, Ranking(context=False)) == [5, 25]


def test_nothing_is_lent_across_sessions_nor_by_what_is_hidden() -> None:
    index = ScopeIndex(row(seq, "pump" if seq == 3 else "other", session=1 + seq // 4) for seq in range(8))
    assert seqs(index, ask("pump"), 10, Ranking(context=True)) == [3, 2, 1, 0]
    index.mark_died([2], 8)
    found = index.search(ask("pump"), 10, ranking=Ranking(context=True))
    assert [one.seq for one in found] == [3, 1, 0]
    index.mark_died([3], 9)
    assert seqs(index, ask("pump"), 10, Ranking(context=True)) == []


def test_long_texts_lend_to_the_next_turn_only() -> None:
    filler = " ".join(f"word{number}" for number in range(200))
    index = ScopeIndex(row(seq, f"{filler} {'pump' if seq == 20 else ''}", session=1) for seq in range(40))
    assert seqs(index, ask("pump"), 10) == [20, 19, 21]


def talk(speakers: Sequence[str], turns: int = 2 * SPEAKER_TURNS_MIN) -> ScopeIndex:
    """Turns without sessions; a third speaks of a pump, a third of a valve."""
    topics = ("pump", "valve", "tank")
    return ScopeIndex(
        row(seq, f"the {topics[seq % 3]} failed", speaker=speakers[seq % len(speakers)]) for seq in range(turns)
    )


def test_turns_of_the_speaker_named_come_first() -> None:
    index = talk(["anna", "bram"])
    assert seqs(index, ask("Which pump, Bram?"), 5) == [3, 9, 15, 0, 6]
    assert seqs(index, ask("Anna's pump"), 5) == [0, 6, 12, 18, 3]
    both = index.search(ask("the pump of Anna and Bram"), 20)
    assert all("speaker" not in one.parts for one in both)
    assert sorted(one.seq for one in both) == [0, 3, 6, 9, 12, 15, 18]


def test_the_speaker_counts_only_if_wanted() -> None:
    index = talk(["anna", "bram"])
    assert set(seqs(index, ask("pump Bram"), 3, Ranking(speakers=False))) == {3, 9, 15}
    assert index.search(ask("pump Bram"), 1, ranking=Ranking(speakers=False))[0].parts.keys() == {"keyword"}


def test_a_name_alone_finds_what_the_speaker_said() -> None:
    assert seqs(talk(["anna", "bram"]), ask("bram")) == list(range(1, 20, 2))


def test_a_word_in_a_few_turns_is_no_name_yet() -> None:
    index = talk(["bram"], SPEAKER_TURNS_MIN - 1)
    assert index.names_in(ask("bram pump")) == frozenset()
    index.extend([row(100, "the pump", speaker="bram")])
    assert index.names_in(ask("bram pump")) == set(HASHER.numbers_of(["bram"]))


def test_a_name_of_two_words_is_told_from_another_by_the_word_that_differs() -> None:
    index = talk(["anna schmidt", "anna meier"])
    assert seqs(index, ask("which pump, Anna Meier?"), 3) == [3, 9, 15]
    assert all("speaker" not in one.parts for one in index.search(ask("which pump, Anna?"), 4))


def test_a_question_in_the_first_person_means_the_user() -> None:
    index = talk(["assistant", "user"])
    assert seqs(index, ask("which pump did I mean?"), 3) == [3, 9, 15]
    assert seqs(index, ask("which pump?"), 3) == [0, 3, 6]
    whole, half = (index.search(ask(text), 1)[0].parts["speaker"] for text in ("my pump", "did you mean my pump?"))
    assert half == whole / 2
    assert index.names_in(ask("which user and which pump did i mean?")) == frozenset()


def test_names_are_cut_from_what_is_embedded() -> None:
    index, text = talk(["anna", "bram"]), "What did Bram's pump do to Anna?"
    names = index.names_in(ask(text))
    unwanted = {term for term in query_terms(text, tokenize) if HASHER.numbers_of([term])[0] in names}
    assert unwanted == {"bram", "anna"}
    assert without_terms(text, tokenize, unwanted) == "What did pump do to"
    assert without_terms("Anna?", tokenize, unwanted) == "Anna?"


# --- changes ------------------------------------------------------------------------------------------------------


def test_seqs_must_rise() -> None:
    index = index_of("pump", "valve")
    for wrong in ([row(1, "tank")], [row(0, "tank")], [row(3, "tank"), row(3, "tank")], [row(4, "x"), row(3, "y")]):
        with pytest.raises(UsageError):
            index.extend(wrong)
    assert len(index) == 2


def test_rows_are_hidden_from_an_event_on() -> None:
    index = index_of("pump one", "pump two", "valve")
    index.mark_died([0, 77], 5)
    assert seqs(index, ask("pump")) == [1]
    assert seqs(index, ask("pump"), as_of=4) == [0, 1]
    assert seqs(index, ask("pump"), as_of=5) == [1]
    assert seqs(index, ask("pump"), as_of=0) == [0]
    assert seqs(index, ask("pump"), as_of=-1) == []


def test_what_is_dropped_never_was() -> None:
    index = index_of("pump one", "pump two", "valve")
    index.drop([0])
    assert len(index) == 2
    assert seqs(index, ask("pump"), as_of=0) == []
    assert index.search(ask("pump two"), 5) == ScopeIndex([row(1, "pump two"), row(2, "valve")]).search(
        ask("pump two"), 5
    )
    index.extend([row(3, "pump three")])
    assert seqs(index, ask("pump")) == [1, 3]


def test_kinds_that_take_no_part_change_no_statistics() -> None:
    rows = [row(0, "pump", kind=1), row(1, "pump valve", kind=1), row(2, "pump pump pump", kind=2)]
    assert ScopeIndex(rows).search(ask("pump"), 5, kinds={1}) == ScopeIndex(rows[:2]).search(ask("pump"), 5)


def test_memory_is_told() -> None:
    index = ScopeIndex(row(seq, f"pump {seq}", vector=[1.0] * 256) for seq in range(100))
    assert 100 * 256 < index.bytes_used < 100_000


def test_threads_search_while_one_adds() -> None:
    index = conversation(40)

    def look(_: int) -> bool:
        found = index.search(ask("pump"), 50)
        return found[0].seq == 5 and len(found) >= 15

    with ThreadPoolExecutor(4) as pool:
        looks = pool.map(look, range(400))
        for seq in range(40, 300):
            index.extend([row(seq, "what failed", session=seq // 20)])
        assert all(looks)


def test_a_term_that_only_hidden_rows_hold_changes_nothing() -> None:
    """Found by the property test: a later row's term stood among those that tell something, and emptied the past."""
    turns = [Row(seq, 1, 0, 0, 0, 102, ALIVE, b"\x02" + bytes(7)) for seq in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)]
    later = Row(13, 1, 0, 0, 0, 101, ALIVE, b"\x01" + bytes(7))
    query = Query(terms=(2, 1), names=(2,))
    then = ScopeIndex(turns).search(query, 20)
    assert then
    assert ScopeIndex([*turns, later]).search(query, 20, as_of=12) == then
