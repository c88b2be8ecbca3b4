"""`--verify MARKER`: after something was destroyed, look for texts of it in the bytes of the archive's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from muniment.archive import Archive
from muniment.cli import exits
from muniment.cli.output import Output
from muniment.cli.text import count_of
from muniment.errors import UsageError

VerifyOption = Annotated[
    list[str] | None,
    typer.Option("--verify", metavar="MARKER", help="Then look for this text in the bytes of the files; repeatable."),
]


def check_markers(markers: Sequence[str] | None, later: bool) -> list[str]:
    """The texts to look for, which must be long enough to be told from chance.

    Raises: UsageError; nothing was destroyed by then.
    """
    from muniment.adapters.sqlite.residue import MARKER_BYTES_MIN

    if markers and later:
        raise UsageError("--verify looks at files that are clean, and --later leaves them: give one")
    for number, marker in enumerate(markers or (), start=1):
        if len(marker.encode("utf-8", "replace")) < MARKER_BYTES_MIN:
            raise UsageError(
                f"--verify: marker {number} has less than {MARKER_BYTES_MIN} bytes, which stand in any file by chance"
            )
    return list(markers or ())


def print_scan(out: Output, archive: Archive, markers: Sequence[str]) -> int:
    """Look for the texts in every form, and say in which file one was found; the markers themselves are not printed.

    The exit code is 1 if any was found.
    """
    if not markers:
        return exits.OK
    from muniment.adapters.sqlite.residue import find_in_files, forms_of

    forms_by_marker = [forms_of(marker, words=False) for marker in markers]
    found = find_in_files(Path(archive.location), set[bytes]().union(*forms_by_marker))
    num_forms = sum(map(len, forms_by_marker))
    hits = [
        (number, name, sum(1 for file, form in found if file == name and form in forms))
        for number, forms in enumerate(forms_by_marker, start=1)
        for name in sorted({file for file, form in found if form in forms})
    ]
    _print(out, len(markers), num_forms, hits)
    return exits.PROBLEM if hits else exits.OK


def _print(out: Output, num_markers: int, num_forms: int, hits: Sequence[tuple[int, str, int]]) -> None:
    if out.as_json:
        listed: list[JsonValue] = [{"marker": number, "file": name, "forms": forms} for number, name, forms in hits]
        out.json({"scan": {"markers": num_markers, "forms": num_forms, "hits": listed}})
        return
    for number, name, forms in hits:
        if out.watched:
            out.line(("bad  ", "bold red"), f"marker {number} stands in {name}, in {count_of(forms, 'form')}")
        else:
            out.record("hit", number, name, forms)
    if not out.watched:
        out.record("scan", num_markers, num_forms, len(hits))
    elif not hits:
        searched = f"{count_of(num_markers, 'marker')} in {count_of(num_forms, 'form')}"
        out.line(("ok   ", "bold green"), f"{searched}: none stands in the files")
