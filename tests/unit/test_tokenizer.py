"""The tokenizer in many threads and after a fork: `muniment.adapters.tokenizer`."""

from __future__ import annotations

import os
import subprocess
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


FORKING = """
import os
from muniment.adapters.tokenizer import tokenize
words = tokenize("pumps")
child = os.fork()
if not child:
    os._exit(0 if tokenize("pumps") == words else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert tokenize("pumps") == words
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_tokenizes_too() -> None:
    # In a process of its own: this one may have threads, which do not survive a fork.
    subprocess.run([sys.executable, "-c", FORKING], check=True)
