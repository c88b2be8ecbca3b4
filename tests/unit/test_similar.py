"""The pairs that are found are those that comparing everything finds."""

from __future__ import annotations

import random

import pytest

from muniment.core.similar import find_similar, shingles, similarity, telling_terms


@pytest.mark.parametrize("least", [0.3, 0.5, 0.75, 1.0])
def test_as_if_every_pair_were_compared(least: float) -> None:
    random_ = random.Random(7)
    words = [f"w{chr(97 + n)}" for n in range(12)]
    texts = [random_.choices(words, k=random_.randint(0, 9)) for _ in range(150)]
    found = {later: share for later, _, share in find_similar(texts, least)}
    for later, text in enumerate(texts):
        long_enough = [other for other in range(later) if len(texts[other]) >= 4 and len(text) >= 4]
        best = max((similarity(shingles(text), shingles(texts[other])) for other in long_enough), default=0.0)
        assert found.get(later, 0.0) == (best if best >= least else 0.0)


def test_the_nearest_and_then_the_earliest_is_named() -> None:
    texts = [list("abcdefgx"), list("abcdefgh"), list("abcdefgh"), list("abcdefgh")]
    assert list(find_similar(texts, 0.6)) == [(1, 0, pytest.approx(13 / 17)), (2, 1, 1.0), (3, 1, 1.0)]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("invoice 12 is paid", "invoice 13 is paid"),
        ("anna like coffe at work", "anna doe not like coffe at work"),
        ("too short", "too short"),
        ("", ""),
    ],
)
def test_what_tells_them_apart(left: str, right: str) -> None:
    assert list(find_similar([left.split(), right.split()], 0.1)) == []


def test_terms_that_tell() -> None:
    assert telling_terms(["pol358", "never", "berlin", "4"]) == {"pol358", "never", "4"}
    assert similarity(frozenset(), frozenset()) == 0.0
