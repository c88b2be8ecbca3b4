"""What a text is found by: `muniment.core.text` over the tokenizer that ships."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.adapters.tokenizer import tokenize
from muniment.core import text as analysis
from muniment.core.text import STOP_STEMS, TermHasher, analyse, fold, hash_terms, query_terms, terms_of

SALT = bytes(range(16))


def finds(query: str, text: str) -> bool:
    """Whether any term of the query is a term of the text."""
    return not set(query_terms(query, tokenize)).isdisjoint(analyse(text, tokenize))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        # English, by its stems
        ("prefer", "the user prefers tea"),
        ("preferring", "the user prefers tea"),
        ("user banana", "the user prefers tea"),
        ("user !!!", "the user prefers tea"),
        ("user 🚀", "the user prefers tea"),
        ("it's", "it’s raining"),
        # Case and accents
        ("CAFÉ", "Café au lait"),
        ("cafe", "Café au lait"),
        ("resume", "his résumé"),
        ("pho", "a bowl of phở"),
        ("istanbul", "İstanbul"),
        ("İSTANBUL", "istanbul"),
        ("ISPARTA", "ısparta"),
        ("ısparta", "Isparta"),
        ("strasse", "Hauptstraße".replace("Haupt", "")),
        ("STRASSE", "Straße"),
        ("Straße", "STRASSE"),
        ("lodz", "ŁÓDŹ"),
        ("malmo", "Malmø"),
        ("ελλαδα", "Ελλάδα"),
        ("ОДЕССА", "Одесса"),
        ("еще", "ещё"),
        # Compatibility forms
        ("fine", "ﬁne"),
        ("abc", "ＡＢＣ"),
        ("カタカナ", "ｶﾀｶﾅ"),
        ("Muniment", "Muniment™"),
        # Right to left, with and without vowel points
        ("שלום", "שָׁלוֹם עולם"),
        ("שלום", "שלום עולם"),
        ("محمد", "مُحَمَّد"),
        ("احمد", "أحمد"),
        ("مرحبا", "مرحـــبا بالعالم"),
        # Scripts without spaces
        ("设备", "设备已损坏"),
        ("止损", "请设置止损价"),
        ("東京", "来週東京へ行く"),
        ("日本", "日本語のテキスト"),
        ("한국", "한국어는 어렵다"),
        ("重跑gen-itgc后", "重跑gen-itgc后"),
        ("重跑", "重跑gen-itgc后"),
        ("gen-itgc", "重跑gen-itgc后"),
        ("后", "重跑gen-itgc后"),
        ("ประเทศ", "ฉันอยู่ในประเทศไทย"),
        ("ไทย", "ฉันอยู่ในประเทศไทย"),
        ("ລາວ", "ປະເທດລາວ"),
        ("ခရီး", "မြန်မာခရီးသွား"),
        ("កម្ពុជា", "ព្រះរាជាណាចក្រកម្ពុជា"),
        ("水", "水を飲む"),
        ("猫は", "黒い猫がいる"),
        ("물", "찬물을 마시다"),
        # Indic words, whole
        ("हिन्दी", "मेरी हिन्दी भाषा"),
        ("தமிழ்", "தமிழ் மொழி"),
        # Identifiers, by their parts
        ("POL-358", "see POL-358 for details"),
        ("358", "see POL-358 for details"),
        ("v1.2.3", "released v1.2.3 today"),
        ("foo_bar", "call foo_bar()"),
        ("bar", "call foo_bar()"),
        ("user-id", "the user id"),
        ("C++", "written in C++"),
        ("2026-05-08", "due 2026-05-08"),
        ("/path", "in /path/to/file"),
        # What would be syntax elsewhere
        ("content:user", "the user"),
        ("^user", "the user"),
        ("-user", "the user"),
        ("(user", "the user"),
        ('"hello world"', "hello, world"),
        ("conc*", "conc"),
        ("near", "NEAR the door"),
    ],
)
def test_is_found(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("conc*", "concatenation"),
        ("日曜", "日本語のテキスト"),
        ("日本", "日曜の本"),
        ("हम", "हिन्दी भाषा"),
        ("the pump", "the user"),
    ],
)
def test_is_not_found(query: str, text: str) -> None:
    assert not finds(query, text)


@pytest.mark.parametrize(
    "query", ["", "   ", "!!!", "🚀", "👩‍👩‍👧 ❤️", "?!", "\x00", "\ud800", "…—", "\u0301", "\u200d"]
)
def test_has_no_terms(query: str) -> None:
    assert query_terms(query, tokenize) == []
    assert analyse(query, tokenize) == []


def test_query_terms_are_distinct_in_first_seen_order() -> None:
    assert query_terms("PUMP pump broken pumps", tokenize) == ["pump", "broken"]


def test_stop_words_count_only_alone() -> None:
    assert query_terms("pump on wednesday", tokenize) == ["pump", "wednesdai"]
    assert query_terms("i it the", tokenize) == ["i", "it", "the"]
    assert query_terms("The", tokenize) == ["the"]


def test_stop_words_are_kept_in_texts() -> None:
    assert analyse("the pump", tokenize) == ["the", "pump"]


STOP_WORDS = """
    a an the i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers
    herself it its itself they them their theirs themselves who whom whose what which this that these those any some
    such each every all both of in on at by to from with about into over after before between through during under
    until again up down out off and or but if than then so as because while for not no nor too very just only also
    here there when where why how am is are was were be been being do does did doing done has have had having can
    could will would should shall it's don't i'll you've we're i'm they'd doesn't didn't isn't wasn't aren't weren't
    won't wouldn't couldn't shouldn't hasn't haven't hadn't
"""


def test_stop_stems_are_what_the_tokenizer_makes_of_stop_words() -> None:
    assert set(tokenize(STOP_WORDS)) == STOP_STEMS


def test_text_side_holds_characters_and_query_side_bigrams() -> None:
    assert sorted(analyse("東京都", tokenize)) == sorted(["東京", "京都", "東", "京", "都"])
    assert query_terms("東京都", tokenize) == ["東京", "京都"]
    assert analyse("ไทย", tokenize) == ["ไท", "ทย"]


def test_a_long_text_is_analysed() -> None:
    assert len(analyse("word " * 200_000, tokenize)) == 200_000
    assert len(analyse("é" * 1_000_000, tokenize)) == 1


TEXTS = st.text(max_size=40)


@given(TEXTS)
def test_canonically_equal_texts_have_equal_terms(text: str) -> None:
    forms = {tuple(analyse(unicodedata.normalize(form, text), tokenize)) for form in ("NFC", "NFD")}
    assert len(forms) == 1


@given(TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.from_regex(analysis._PLAIN, fullmatch=True))  # pyright: ignore[reportPrivateUsage]
def test_the_fast_path_gives_the_terms_of_the_slow_one(text: str) -> None:
    assert sorted(analyse(text, tokenize)) == sorted(analyse(text + "é", lambda folded: tokenize(folded[:-1])))


@given(TEXTS)
def test_every_text_finds_itself(text: str) -> None:
    assert set(query_terms(text, tokenize)) <= set(analyse(text, tokenize))


@given(st.text(st.characters(codec=None), max_size=30))
def test_no_text_is_an_error(text: str) -> None:
    assert all(analyse(text, tokenize))


# --- hashes -------------------------------------------------------------------------------------------------------


def test_hashes_are_keyed_blake2b_in_order() -> None:
    expected = b"".join(blake2b(term, digest_size=8, key=SALT).digest() for term in (b"pump", b"on", b"pump"))
    assert hash_terms(["pump", "on", "pump"], SALT) == expected
    assert hash_terms([], SALT) == b""


def test_hashes_depend_on_the_salt() -> None:
    assert hash_terms(["pump"], SALT) != hash_terms(["pump"], bytes(16))


def test_hashes_are_little_endian_numbers() -> None:
    blob = hash_terms(["a", "b"], SALT)
    numbers = terms_of(blob)
    assert numbers.dtype == np.uint64
    assert numbers.tolist() == [int.from_bytes(blob[:8], "little"), int.from_bytes(blob[8:], "little")]
    assert TermHasher(SALT).numbers_of(["a", "b"]) == tuple(numbers.tolist())


def test_a_full_memory_of_terms_changes_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "TERM_CACHE_MAX", 3)
    hasher = TermHasher(SALT)
    terms = list("abcdefgabc")
    assert hasher.hash_terms(terms) == hash_terms(terms, SALT)
    assert hasher.hash_terms(terms) == hash_terms(terms, SALT)
