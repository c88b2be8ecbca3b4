"""The pure parts: text made safe for a terminal, times, names and sizes."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.cli.options import cut_at, find_scope, get_scope
from muniment.cli.text import block, count_of, name_of, one_line, size_of
from muniment.cli.times import parse_time
from muniment.errors import UsageError
from muniment.model.scope import Scope

_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def _is_dangerous(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or (
        unicodedata.bidirectional(character) in _REORDERING
    )


@given(st.text(st.characters()))
@example("\x1b]0;title\x07\u202egnp.exe\r\n\t\x00\x9b31m\ud800\u2028")
def test_no_text_reaches_a_terminal_with_controls(text: str) -> None:
    assert not any(map(_is_dangerous, one_line(text)))
    assert not any(map(_is_dangerous, block(text).replace("\n", "").replace("\t", "")))
    assert "\t" not in one_line(text)


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cf"))))
@example("東京 café 👩‍👩‍👧 שלום ไทย")
def test_what_is_harmless_is_left_alone(text: str) -> None:
    assert one_line(text) == block(text) == text


def test_escapes_are_readable() -> None:
    assert one_line("a\nb\tc\rd\x1be\u202ef") == "a\\nb\\tc\\rd\\x1be\\u202ef"
    assert block("a\n\tb\x1b\r") == "a\n\tb\\x1b\\r"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T09:30Z", datetime(2026, 3, 1, 9, 30, tzinfo=UTC)),
        ("2026-03-01 09:30:00+00:00", datetime(2026, 3, 1, 9, 30, tzinfo=UTC)),
        ("2026-03-01T00:30:00.000001+05:30", datetime(2026, 2, 28, 19, 0, 0, 1, tzinfo=UTC)),
        ("20260301T093000-0100", datetime(2026, 3, 1, 10, 30, tzinfo=UTC)),
    ],
)
def test_times(text: str, moment: datetime) -> None:
    parsed = parse_time("--at", text)
    assert parsed == moment
    assert parsed is not None
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize("text", ["", "now", "09:30", "2026-03-01T09:30", "2026-02-30", "9999-12-31T23:59-05:00", "1"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--at"):
        parse_time("--at", text)


def test_no_time_is_no_time() -> None:
    assert parse_time("--at", None) is None


def test_scopes_of_options() -> None:
    assert find_scope(None, None, False) is None
    assert get_scope(None, None, False) == Scope("default", "default")
    assert get_scope("a", None, False) == Scope("a", "default")
    assert get_scope(None, "b", False) == Scope("default", "b")
    assert get_scope("a", None, True) == Scope("a", None)
    with pytest.raises(UsageError):
        find_scope(None, "b", True)


def test_limits_of_options() -> None:
    assert cut_at(None, watched=True) == 50
    assert cut_at(None, watched=False) is None
    assert cut_at(0, watched=True) is None
    assert cut_at(7, watched=True) == cut_at(7, watched=False) == 7


def test_words_for_numbers() -> None:
    assert [count_of(number, "entry", "entries") for number in (0, 1, 2_000)] == [
        "0 entries",
        "1 entry",
        "2,000 entries",
    ]
    assert [size_of(number) for number in (0, 999, 1_000, 1_234_567, 10**9, 5 * 10**13)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "1.0 GB",
        "50.0 TB",
    ]
    assert name_of(Scope("a", None)) == "a (unscoped)"
