"""The tokenizer in many threads and after a fork: `muniment.adapters.tokenizer`."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from muniment.adapters.tokenizer import tokenize

TEXT = "The water pumps failed on Tuesday: Café, phở, v1.2.3"
WORDS = ["the", "water", "pump", "fail", "on", "tuesdai", "cafe", "pho", "v1", "2", "3"]


def test_words_are_stemmed_and_without_accents() -> None:
    assert tokenize(TEXT) == WORDS


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "🚀"])
def test_signs_are_no_words(text: str) -> None:
    assert tokenize(text) == []


def test_a_nul_or_a_surrogate_separates_words() -> None:
    assert tokenize("a\x00b\ud800c") == ["a", "b", "c"]


def test_threads_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert all(words == WORDS for words in pool.map(lambda _: tokenize(TEXT), range(2_000)))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_tokenizes_too() -> None:
    tokenize(TEXT)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(tokenize, [TEXT]) == [WORDS]
    assert tokenize(TEXT) == WORDS
