"""BM25 on plain lists: `muniment.core.bm25`, with the examples of contract law A14."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.adapters.tokenizer import tokenize
from muniment.core.bm25 import (
    B_LONG,
    B_SHORT,
    K1,
    LONG_TERMS,
    SHORT_TERMS,
    inverse_document_frequency,
    length_penalty,
    rank_documents,
    saturation,
    shortness,
)
from muniment.core.text import analyse, query_terms

LEDGER = [
    "anna the water pump failed on tuesday",
    "bram i logged it with the contractor",
    "repairs.txt pump replaced on wednesday morning",
]


def search(texts: list[str], query: str, limit: int = 10) -> list[int]:
    documents = [analyse(text, tokenize) for text in texts]
    return [index for index, _ in rank_documents(documents, query_terms(query, tokenize), limit)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("pump", [0, 2]),
        ("PUMP pump", [0, 2]),
        ("pumps", [0, 2]),
        ("pumping", [0, 2]),
        ("pump on wednesday", [2, 0]),
        ("txt", [2]),
        ("repairs.txt", [2]),
        ("zebra", []),
        ("   ", []),
        ("?!", []),
        ("", []),
        ("the", [0, 1]),
        ("anna", [0]),
        ("i it the", [1, 0]),
    ],
)
def test_a14(query: str, expected: list[int]) -> None:
    assert search(LEDGER, query) == expected


def test_a14_without_the_first() -> None:
    assert search(LEDGER[1:], "pump") == [1]


def test_rarer_words_and_shorter_texts_first() -> None:
    texts = ["anna budget", "anna budget meeting", "anna budget meeting notes"]
    assert search(texts, "budget meeting") == [1, 2, 0]


def test_limits() -> None:
    assert len(search(["pump"] * 10, "pump", 3)) == 3
    assert search(["pump"], "pump", 0) == []
    assert search([], "pump") == []
    assert search(["", ""], "pump") == []


def test_the_formula() -> None:
    [(index, score)] = rank_documents([["a", "b", "a"], ["c"]], ["a"], 5)
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    assert index == 0
    assert score == pytest.approx(idf * 2 * (K1 + 1) / (2 + K1 * (1 - B_SHORT + B_SHORT * 3 / 2)))


@pytest.mark.parametrize(("mean", "expected"), [(0, 1), (SHORT_TERMS, 1), (80, 0.5), (LONG_TERMS, 0), (10_000, 0)])
def test_shortness_changes_gradually(mean: float, expected: float) -> None:
    assert shortness(mean) == expected


def test_long_texts_are_held_against_more_where_texts_are_long() -> None:
    assert length_penalty(40, 20) == pytest.approx(K1 * (1 + B_SHORT))
    assert length_penalty(400, 200) == pytest.approx(K1 * (1 + B_LONG))
    assert length_penalty(20, 20) == length_penalty(200, 200) == pytest.approx(K1)


@given(st.integers(1, 10**6), st.data())
def test_no_word_weighs_less_than_nothing(documents: int, data: st.DataObject) -> None:
    holding = data.draw(st.integers(1, documents))
    assert inverse_document_frequency(documents, holding) > 0
    if holding > 1:
        assert inverse_document_frequency(documents, holding) < inverse_document_frequency(documents, holding - 1)


@given(st.integers(1, 1000), st.floats(0.01, 100))
def test_repeats_count_less_and_less(frequency: int, penalty: float) -> None:
    here, more = saturation(frequency, penalty), saturation(frequency + 1, penalty)
    assert 0 < here < more < K1 + 1


TERMS = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(st.lists(TERMS, max_size=8), TERMS, st.integers(0, 8))
def test_ranking_laws(documents: list[list[str]], query: list[str], limit: int) -> None:
    ranked = rank_documents(documents, query, limit)
    assert ranked == rank_documents(documents, query, 100)[:limit]
    assert ranked == sorted(ranked, key=lambda pair: (-pair[1], pair[0]))
    assert all(score > 0 for _, score in ranked)
    if limit >= len(documents):
        assert {index for index, _ in ranked} == {i for i, terms in enumerate(documents) if set(terms) & set(query)}
