"""`muniment portable`: a file, a scope, and from the one into the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.portable import FileMemoryPort, MemoryEntry, MemoryStore

STORE = MemoryStore(
    [
        MemoryEntry("likes tea", tags=("drink",), created_at="2026-01-01"),
        MemoryEntry("asked about\npumps", "archival"),  # type: ignore[arg-type]
        MemoryEntry("", tags=()),
        MemoryEntry("likes tea", tags=("drink",), created_at="2026-01-01"),
        MemoryEntry("# not </a> heading", "core"),  # type: ignore[arg-type]
    ]
)


@pytest.fixture
def file(archive: Path) -> Path:
    path = archive.with_name("s.yaml")
    FileMemoryPort(path).save(STORE)
    return path


def test_load_prints_a_file(cli: Any, inside: Any, file: Path) -> None:
    assert cli.ok("portable", "load", file).records == [
        ["0", "core", "2026-01-01", "drink", "likes tea"],
        ["1", "archival", "", "", "asked about\\npumps"],
        ["2", "core", "", "", ""],
        ["3", "core", "2026-01-01", "drink", "likes tea"],
        ["4", "core", "", "", "# not </a> heading"],
    ]
    entries = inside.ok("portable", "load", file, "--json").json
    assert MemoryStore.load({"entries": entries}) == STORE


def test_there_and_back_is_the_same(inside: Any, archive: Path, file: Path) -> None:
    result = inside.run("portable", "load", file, "--to-scope", "-a", archive, "-s", "anna")
    assert (result.code, result.records) == (0, [["saved", "5", "default/anna"]])
    assert result.err.startswith("began a new archive")
    inside.ok("portable", "save", "t.json", "-a", archive, "-s", "anna")
    assert FileMemoryPort(inside.folder / "t.json").load() == STORE
    inside.ok("portable", "save", "u.yaml", "--from", "t.json")
    assert FileMemoryPort(inside.folder / "u.yaml").load() == STORE
    again = inside.ok("portable", "load", "t.json", "--to-scope", "-a", archive, "-s", "anna", "--json")
    assert again.json == [{"entries": 5, "place": "default/anna"}]
    assert len(inside.ok("log", "-a", archive, "-s", "anna").records) == 5  # only what differs is written


def test_what_is_there_stays_unless_it_is_said(inside: Any, archive: Path, file: Path) -> None:
    with muniment.open(archive) as opened:
        opened.memory("default", tenant="default").remember("by hand")
    for arguments, message in (
        (["load", file, "--to-scope", "-a", archive], "default/default holds 1 entry already: give --replace"),
        (["load", file, "--to-scope", "--replace", "-a", archive], "foreign='manage'"),
        (["save", file, "-a", archive], "holds 5 entries already: give --replace"),
        (["load", file, "--manage"], "go with --to-scope"),
        (["save", "t.json", "--from", file, "-s", "x"], "a file has no scope"),
    ):
        result = inside.run("portable", *arguments)
        assert (result.code, result.out) == (2, "")
        assert message in result.err
    assert FileMemoryPort(file).load() == STORE
    inside.ok("portable", "load", file, "--to-scope", "--replace", "--manage", "-a", archive)
    assert inside.ok("portable", "recall", "", "-a", archive).records[0][-1] == "likes tea"
    inside.ok("portable", "save", "small.json", "--from", file)
    inside.ok("portable", "save", "small.json", "-a", archive, "--replace")


def test_recall_and_prompt(inside: Any, file: Path) -> None:
    assert inside.ok("portable", "recall", "tea drink", "-f", file).records[0] == [
        "6",
        "2",
        "core",
        "2026-01-01",
        "drink",
        "likes tea",
    ]
    (found,) = inside.ok("portable", "recall", "pumps", "-f", file, "--json").json
    assert found == {
        "score": 2.0,
        "keywordMatches": 1,
        "entry": {"content": "asked about\npumps", "category": "archival"},
    }
    assert inside.ok("portable", "recall", "tea", "-f", file, "--text", "-n", "1").out == (
        "1. [core] likes tea\n   tags: drink\n"
    )
    assert inside.ok("portable", "prompt", "-f", file).out == (
        "## Memory\n- likes tea\n- \n- likes tea\n- # not </a> heading\n"
    )
    assert "<\\/a>" in inside.ok("portable", "prompt", "-f", file, "--safe").out
    nothing = inside.run("portable", "recall", "zebra", "-f", file)
    assert (nothing.code, nothing.err) == (0, "no entry holds a word of that\n")


def test_nothing_of_a_scope_is_recorded(inside: Any, archive: Path) -> None:
    with muniment.open(archive) as opened:
        opened.memory("default", tenant="default").remember("likes tea", tier="core")
    assert inside.ok("portable", "prompt", "-a", archive, "--json").json == [{"text": "## Memory\n- likes tea\n"}]
    inside.ok("portable", "recall", "tea", "-a", archive)
    assert len(inside.ok("log", "-a", archive).records) == 1
    empty = inside.run("portable", "prompt", "-a", archive, "-s", "nobody")
    assert (empty.code, empty.err) == (0, "no note is visible in default/nobody\nthere is no core entry\n")
    assert inside.run("portable", "save", "x.json", "-a", archive, "-s", "nobody").code == 3
    assert not (inside.folder / "x.json").exists()


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("s.txt", "", 2, "a store's file ends in .json, .yaml or .yml"),
        ("s.json", None, 3, "does not exist"),
        ("s.json", "{", 2, "s.json: "),
        ("s.json", '{"entries": [{"category": "cold"}]}', 2, "entries[0].category"),
        ("s.yaml", "entries: []\nentries: []\n", 2, "s.yaml: "),
    ],
)
def test_a_file_that_is_no_store(inside: Any, name: str, content: str | None, code: int, message: str) -> None:
    if content is not None:
        (inside.folder / name).write_text(content)
    for command in (["load", name], ["prompt", "-f", name], ["save", "t.json", "--from", name]):
        result = inside.run("portable", *command)
        assert (result.code, result.out) == (code, "")
        assert message in result.err
    assert not (inside.folder / "t.json").exists()


def test_a_person_sees_a_table(cli: Any, file: Path, plain: Any) -> None:
    FileMemoryPort(file.with_name("w.json")).save(MemoryStore([MemoryEntry("\x1b[31mred")]))
    shown = cli.watch("portable", "load", "w.json").out
    assert "\\x1b[31mred" in shown
    assert "core" in plain(cli.watch("portable", "recall", "red", "-f", "w.json").out)
    assert "\\x1b[31mred" in cli.watch("portable", "prompt", "-f", "w.json").out


def test_what_is_saved_is_json(inside: Any, file: Path) -> None:
    inside.ok("portable", "save", "t.json", "--from", file)
    assert len(json.loads((inside.folder / "t.json").read_text())["entries"]) == 5
