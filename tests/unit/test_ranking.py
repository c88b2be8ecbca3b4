"""The values of a search: `muniment.core.ranking`."""

from __future__ import annotations

import math
from typing import Any

import pytest

from muniment.adapters.tokenizer import tokenize
from muniment.core.ranking import (
    WEIGHTS_CONVEX,
    WEIGHTS_RECIPROCAL,
    Query,
    Ranking,
    Statistics,
    build_query,
)
from muniment.core.text import TermHasher
from muniment.errors import UsageError

HASHER = TermHasher(bytes(16))


def test_a_query_says_what_may_be_a_name_and_who_asks() -> None:
    query = build_query("What did Anna tell the user about my pump?", tokenize, HASHER, b"\x01")
    assert query == Query(
        terms=HASHER.numbers_of(["anna", "tell", "user", "pump"]),
        vector=b"\x01",
        names=HASHER.numbers_of(["anna", "tell", "pump"]),
        asker=HASHER.numbers_of(["user", "human"]),
    )


def test_a_query_in_the_third_person_has_no_asker() -> None:
    assert build_query("What did Anna say?", tokenize, HASHER).asker == ()


@pytest.mark.parametrize(("text", "expected"), [("Did you call me?", True), ("Your pump", True), ("my pump", False)])
def test_a_query_says_whether_it_speaks_to_another(text: str, expected: bool) -> None:
    assert build_query(text, tokenize, HASHER).speaks_to_another is expected


def test_a_query_without_terms_is_empty() -> None:
    assert build_query("🚀 ?!", tokenize, HASHER) == Query()


@pytest.mark.parametrize(
    "options", [{"weights": (0.0, 0.0)}, {"weights": (-1.0, 1.0)}, {"weights": (math.nan, 1.0)}, {"damping": 0}]
)
def test_rankings_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Ranking(**options)


def test_weights_follow_the_fusion_unless_given() -> None:
    assert Ranking().leg_weights == WEIGHTS_CONVEX
    assert Ranking(fusion="rrf").leg_weights == WEIGHTS_RECIPROCAL
    assert Ranking(weights=(1.0, 0.0)).leg_weights == (1.0, 0.0)


def test_statistics_of_different_queries_do_not_add_up() -> None:
    assert Statistics(1, 5, (1, 0)).plus(Statistics(2, 7, (2, 1))) == Statistics(3, 12, (3, 1))
    with pytest.raises(ValueError, match="zip"):
        Statistics(1, 5, (1,)).plus(Statistics(2, 7, (2, 1)))
