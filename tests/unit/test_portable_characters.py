"""The generated table of the characters that the ends of a token keep (P11), against the `regex` package.

`python tests/unit/test_portable_characters.py` prints the table's module anew.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
import regex

from muniment.portable import characters

MODULE = Path(characters.__file__)
KEPT = regex.compile(r"[\p{Alphabetic}\p{Nd}\p{Nl}\p{No}]")
LINE_CHARS_MAX = 118


def render_module(unicode_version: str) -> str:
    head, rest = MODULE.read_text(encoding="utf-8").split('UNICODE_VERSION: Final = "', 1)
    between, tail = rest.split('_RANGES: Final = """', 1)
    after = tail.split('"""', 1)[1]
    between = between.split('"', 1)[1]
    return (
        f'{head}UNICODE_VERSION: Final = "{unicode_version}"{between}_RANGES: Final = """\n{render_table()}\n"""{after}'
    )


def render_table() -> str:
    lines, line = [], ""
    for word in (f"{first:X}-{last:X}" if first < last else f"{first:X}" for first, last in kept_ranges()):
        if len(line) + 1 + len(word) > LINE_CHARS_MAX:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def kept_ranges() -> list[tuple[int, int]]:
    kept = [point for point in range(0x110000) if KEPT.match(chr(point))]
    starts = [kept[0], *(point for before, point in pairwise(kept) if point != before + 1)]
    ends = [*(before for before, point in pairwise(kept) if point != before + 1), kept[-1]]
    return list(zip(starts, ends, strict=True))


def test_table_agrees_with_regex_on_every_character_this_python_knows():
    # Characters that are newer than the table may be known to a newer `regex`; this Python's are older than both.
    known = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) != "Cn"]
    assert len(known) > 250_000
    wrong = [hex(ord(c)) for c in known if characters.is_token_character(c) != bool(KEPT.match(c))]
    assert wrong == []


def test_table_holds_every_number_and_letter_of_python():
    letters_and_numbers = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No")
    missing = [
        hex(point)
        for point in range(0x110000)
        if unicodedata.category(chr(point)) in letters_and_numbers and not characters.is_token_character(chr(point))
    ]
    assert missing == []


def test_ranges_rise_and_do_not_touch():
    flat = characters.token_ranges()
    assert all(first <= last for first, last in flat)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(flat))


def test_version_is_named():
    assert [int(part) for part in characters.UNICODE_VERSION.split(".")] >= [
        int(part) for part in unicodedata.unidata_version.split(".")
    ]


@pytest.mark.parametrize("character", ["a", "Z", "0", "é", "²", "½", "Ⅷ", "ी", "ี", "Ⓐ", "東", "ª"])
def test_kept(character: str):
    assert characters.is_token_character(character)


@pytest.mark.parametrize(
    "character", ["_", "'", "-", "🚀", "\u0301", "\u0e48", "\u200b", "\x1c", "+", "\x00", "\U0010ffff"]
)
def test_trimmed(character: str):
    assert not characters.is_token_character(character)


if __name__ == "__main__":
    print(render_module(characters.UNICODE_VERSION), end="")
