"""Full text on SQLite: what is kept of it, and that nothing of what was erased stays in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import muniment
from muniment import Archive, Memory, Note
from muniment.adapters.sqlite.statements import STATEMENTS
from muniment.archive import fulltext
from muniment.testing.residue import find_in_files, forms_of

HIDDEN = "zyxwvutsrqponmlk"


def instances(path: Path) -> int:
    """How many rows hold the secret word in the index, whatever the items say."""
    connection: Any = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    ((count,),) = connection.execute("SELECT count(*) FROM fulltext_instances WHERE term = ?", (HIDDEN,))
    connection.close()
    return count


def fill(path: Path) -> tuple[Archive, Memory, Note]:
    archive = muniment.open(path, fulltext=True)
    memory = archive.memory("anna", tenant="acme")
    memory.add_many([Note(content=f"filler word{number} common") for number in range(300)])
    note = memory.add(Note(content=f"the word {HIDDEN} is known"))
    memory.add_many([Note(content=f"filler word{number} later") for number in range(300)])
    return archive, memory, note


ERASING: dict[str, Callable[[Memory, Note], object]] = {
    "forget": lambda memory, note: memory.forget([note.id], clean="later"),
    "erase": lambda memory, note: memory.erase(clean="later"),
}


@pytest.mark.parametrize("act", ERASING)
def test_nothing_of_what_was_erased_is_in_it(tmp_path: Path, act: str) -> None:
    path = tmp_path / "a.db"
    archive, memory, note = fill(path)
    with archive:
        assert instances(path) == 1
        ERASING[act](memory, note)
        assert instances(path) == 0
        assert archive.clean()
        assert find_in_files(path, forms_of(HIDDEN)) == []
        assert archive.verify(deep=True)


@pytest.mark.parametrize("act", ERASING)
def test_an_adapter_that_keeps_the_text_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    path = tmp_path / "a.db"
    archive, memory, note = fill(path)
    with archive:
        skipping = STATEMENTS["unindex_text"] + " AND 0"
        monkeypatch.setitem(STATEMENTS, "unindex_text", skipping)  # pyright: ignore[reportArgumentType]
        ERASING[act](memory, note)
        assert instances(path) == 1
        assert not archive.verify(deep=True)
        assert archive.clean().residue.orphan_rows > 0


def test_it_is_kept_as_it_is_by_default_and_built_anew_for_another_analyser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with muniment.open(path) as archive:
        assert not archive.has_fulltext
    archive, *_ = fill(path)
    archive.close()
    monkeypatch.setattr(fulltext, "VERSION", "other")
    with muniment.open(path) as archive:
        assert archive.has_fulltext
        assert archive.storage.find_settings()["fulltext"] == "on other"
        assert instances(path) == 1
        assert archive.verify(deep=True)
        archive.set_fulltext(False)
    with muniment.open(path) as archive:
        assert not archive.has_fulltext


def test_a_build_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    archive, memory, _ = fill(path)
    with archive:
        archive.set_fulltext(False)
        archive.storage.begin_text(fulltext.VERSION)
        memory.add(Note(content="written meanwhile"))
        assert archive.storage.find_text("acme", ["written"], version=fulltext.VERSION) is None
    with muniment.open(path) as archive:
        found = archive.storage.find_text("acme", ["written", HIDDEN], version=fulltext.VERSION)
        assert found is not None
        assert [len(places) for places in found.places] == [1, 1]
        assert archive.verify(deep=True)
