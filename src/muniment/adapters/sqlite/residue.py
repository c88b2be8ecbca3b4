"""Looking for texts in the bytes of an archive's files, in every form that a database might keep them in.

What is searched for are markers: bytes that must not be there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muniment.adapters.tokenizer import tokenize
from muniment.core.text import analyse

MARKER_BYTES_MIN: Final = 8
"""Shorter ones stand in any file by chance."""

_SUFFIXES: Final = ("", "-wal", "-shm", "-journal", ".erasures")
_READ_BYTES: Final = 16 * 1024**2
"""Of a file at once, whatever its size."""


def forms_of(text: str, *, words: bool = True) -> set[bytes]:
    """The bytes of a text in the forms that a database might keep it in, and with `words` those of its words too.

    Plain and in UTF-16, upper, lower and case-folded, composed and decomposed, escaped as in JSON, and stemmed.
    """
    terms = analyse(text, tokenize)
    texts = {text, " ".join(terms)}
    if words:
        texts |= {*text.split(), *(term for term in terms if len(term) >= MARKER_BYTES_MIN)}
    texts |= {form for one in texts for form in (one.lower(), one.upper(), one.casefold())}
    texts |= {unicodedata.normalize(form, one) for one in texts for form in ("NFC", "NFD")}
    texts |= {one.encode("ascii", "backslashreplace").decode() for one in texts}
    found = {one.encode(code) for one in texts for code in ("utf-8", "utf-16-le", "utf-16-be")}
    return {marker for marker in found if len(marker) >= MARKER_BYTES_MIN}


def find_in_files(path: Path, markers: Iterable[bytes]) -> list[tuple[str, bytes]]:
    """The markers that stand in the archive's files, each with the name of the file.

    Cost: one pass over the files, 16 MiB at a time.
    """
    wanted = sorted(set(markers))
    files = [path.with_name(path.name + suffix) for suffix in _SUFFIXES]
    return [(file.name, found) for file in files if file.exists() for found in _find_in_file(file, wanted)]


def _find_in_file(file: Path, markers: Collection[bytes]) -> list[bytes]:
    overlap = max(map(len, markers), default=1) - 1
    found: set[bytes] = set()
    for window in _windows(file, overlap):
        found.update(find_in_bytes(window, markers))
    return sorted(found)


def _windows(file: Path, overlap: int) -> Iterator[bytes]:
    """The bytes of a file in pieces, each beginning with the end of the one before."""
    before = b""
    with file.open("rb") as opened:
        while piece := opened.read(_READ_BYTES):
            window = before + piece
            yield window
            before = window[-overlap:] if overlap else b""


def find_in_bytes(content: bytes, markers: Collection[bytes]) -> list[bytes]:
    """The markers that stand in these bytes.

    Cost: one pass over the bytes, whatever the number of markers: their first eight bytes are looked for together.
    """
    if not markers or len(content) < MARKER_BYTES_MIN:
        return []
    if any(len(marker) < MARKER_BYTES_MIN for marker in markers):
        raise ValueError(f"a marker of less than {MARKER_BYTES_MIN} bytes stands in any file by chance")
    by_prefix: dict[int, list[bytes]] = {}
    for marker in markers:
        by_prefix.setdefault(int.from_bytes(marker[:8], "little"), []).append(marker)
    prefixes: NDArray[np.uint64] = np.array(sorted(by_prefix), np.uint64)
    begins = np.zeros(2**16, np.bool_)  # by the first two bytes, which rules most places out quickly
    begins[prefixes & np.uint64(0xFFFF)] = True
    found: set[bytes] = set()
    for offset in range(8):
        words = np.frombuffer(content, "<u8", count=(len(content) - offset) // 8, offset=offset)
        likely = np.flatnonzero(begins[words & np.uint64(0xFFFF)])
        at = np.minimum(np.searchsorted(prefixes, words[likely]), len(prefixes) - 1)
        for index in likely[prefixes[at] == words[likely]].tolist():
            start = index * 8 + offset
            found.update(marker for marker in by_prefix[int(words[index])] if content.startswith(marker, start))
    return sorted(found)
