"""`forget`, `erase`, `sweep`, `clean` and `receipt verify` on a real archive."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment import Message

MARKER = "Xylophonist-Verdigris"


@pytest.fixture
def filled(archive: Path) -> Path:
    with muniment.open(archive) as opened:
        memory = opened.memory("anna", tenant="default")
        memory.add_many([Message(speaker="a", content=f"message {number}", session_id="s") for number in range(3)])
        base = memory.remember(f"the word is {MARKER}")
        memory.remember("it follows", derived_from=(base.id,))
        memory.remember("expired", retain_until=datetime(2020, 1, 1, tzinfo=UTC))
        memory.remember("stays")
        opened.memory(None, tenant="default").remember("unscoped")
    return archive


def _forget(inside: Any, archive: Path, *arguments: object) -> Any:
    return inside.run("forget", *arguments, "-a", archive, "-s", "anna")


def _erase(inside: Any, archive: Path, *arguments: object) -> Any:
    return inside.run("erase", *arguments, "-a", archive, "-s", "anna")


# --- forget -----------------------------------------------------------------------------------------------------------


def test_forget_destroys_and_proves_it(cli: Any, inside: Any, filled: Path) -> None:
    assert MARKER.encode() in filled.read_bytes()
    result = cli.ok("forget", "3", "-a", filled, "-s", "anna", "--verify", MARKER, "--receipt", "r.json")
    (action, state, number, receipt_id, _), (scan, markers, forms, hits) = result.records
    assert (action, state, number) == ("forget", "clean", "1")
    assert (scan, markers, int(forms) > 3, hits) == ("scan", "1", True, "0")
    assert MARKER.encode() not in filled.read_bytes()
    assert json.loads((cli.folder / "r.json").read_text())["id"] == receipt_id
    assert inside.ok("receipt", "verify", "r.json", "-a", filled).records == [
        ["ok", receipt_id, "forget", "settled", "1", ""]
    ]


def test_forget_what_was_derived(inside: Any, filled: Path) -> None:
    (receipt,) = _forget(inside, filled, "3", "--derived", "--json", "--requested-by", "anna").json
    assert (receipt["counts"], receipt["requested_by"]) == ({"note": 2}, "anna")


def test_a_marker_that_stays_is_a_problem(inside: Any, filled: Path) -> None:
    inside.ok("add", f"another note: {MARKER.upper()}!", "-a", filled)
    result = _forget(inside, filled, "3", "--verify", MARKER, "--verify", "nothing like it")
    assert result.code == 1
    assert result.records[1][:3] == ["hit", "1", "a.db"]
    assert result.records[-1][0] == "scan"
    assert MARKER not in result.out
    (_, scan) = _forget(inside, filled, "0", "--verify", MARKER, "--json").json
    assert scan["scan"]["hits"][0]["marker"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["99"], 3, "there is no event 99"),
        (["x"], 2, "'x' is neither"),
        (["0", "--verify", "short"], 2, "marker 1 has less than 8 bytes"),
        (["0", "--verify", MARKER, "--later"], 2, "give one"),
        (["0", "--receipt", "a.db"], 2, "a.db exists: a receipt is written into a new file"),
        (["0", "--receipt", "no/r.json"], 2, "no/r.json cannot be written: No such file or directory"),
    ],
)
def test_a_refused_forget_destroys_nothing(
    inside: Any, filled: Path, arguments: list[str], code: int, message: str
) -> None:
    result = _forget(inside, filled, *arguments)
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert len(inside.ok("log", "-a", filled, "-s", "anna").records) == 7


def test_a_receipt_file_is_left_only_when_it_is_written(inside: Any, filled: Path) -> None:
    assert _forget(inside, filled, "99", "--receipt", "r.json").code == 3
    assert not (inside.folder / "r.json").exists()


# --- erase ------------------------------------------------------------------------------------------------------------


def test_erase_a_scope(cli: Any, inside: Any, filled: Path) -> None:
    result = cli.ok(
        "erase", "--yes", "-a", filled, "-s", "anna", "--verify", MARKER, "--verify", "it follows", "--receipt", "r"
    )
    assert result.records[0][:3] == ["erase", "clean", "7"]
    assert result.records[1][:2] == ["scan", "2"]
    assert [record[1] for record in inside.ok("scopes", "-a", filled).records] == [""]
    assert inside.ok("receipt", "verify", "r", "-a", filled).code == 0
    assert inside.ok("verify", "-a", filled).code == 0


def test_erase_one_session(inside: Any, filled: Path) -> None:
    result = _erase(inside, filled, "--session", "s", "--yes")
    assert result.records[0][:3] == ["erase_session", "clean", "3"]
    assert _erase(inside, filled, "--session", "s", "--yes").records[0][2] == "0"


def test_the_unscoped_shelf(inside: Any, filled: Path) -> None:
    assert inside.ok("erase", "--unscoped", "--yes", "-a", filled).records[0][2] == "1"
    assert len(inside.ok("log", "-a", filled, "-s", "anna").records) == 7


def test_an_unknown_scope_is_no_event(inside: Any, filled: Path) -> None:
    result = inside.run("erase", "-a", filled, "-s", "nobody")
    assert (result.code, result.records[0][:3]) == (0, ["erase", "clean", "0"])
    assert result.err.startswith("nothing was ever stored in default/nobody")


def test_nobody_watches_who_could_confirm(inside: Any, filled: Path) -> None:
    result = _erase(inside, filled, "--receipt", "r")
    assert (result.code, result.out) == (2, "")
    assert "give --yes to erase; nothing was destroyed" in result.err
    assert not (inside.folder / "r").exists()


def test_a_person_types_the_name(cli: Any, filled: Path, plain: Any) -> None:
    refused = cli.watch("erase", "-a", filled, "-s", "anna", stdin=b"yes\n")
    assert refused.code == 2
    assert "Type anna to go on: " in refused.out
    assert "that is not the name; nothing was destroyed" in refused.out
    done = cli.watch("erase", "-a", filled, "-s", "anna", "--verify", MARKER, stdin=b"anna\n")
    text = plain(done.out)
    assert done.code == 0
    assert "destroyed 7 events of default/anna: 3 messages, 4 notes  clean\n" in text
    assert "none stands in the files" in text


# --- clean ------------------------------------------------------------------------------------------------------------


def test_later_is_for_the_next_clean(inside: Any, filled: Path) -> None:
    assert _forget(inside, filled, "3", "--later", "--receipt", "r.json").records[0][1] == "unreachable"
    (check,) = inside.ok("receipt", "verify", "r.json", "-a", filled).records
    assert (check[0], check[3]) == ("ok", "waiting")
    result = inside.ok("clean", "-a", filled, "--receipt", "r.json")
    assert result.records[0] == ["completed", check[1]]
    receipt = json.loads((inside.folder / "r.json").read_text())
    assert (receipt["state"], receipt["residue"]["hits"]) == ("clean", 0)
    assert inside.ok("receipt", "verify", "r.json", "-a", filled).records[0][3] == "settled"
    assert MARKER.encode() not in filled.read_bytes()


def test_another_clean_may_have_been_first(inside: Any, filled: Path) -> None:
    _forget(inside, filled, "3", "--later", "--receipt", "r.json")
    inside.ok("clean", "-a", filled)
    assert inside.ok("clean", "-a", filled, "--receipt", "r.json", "--json").json[0]["completed"] == []
    assert json.loads((inside.folder / "r.json").read_text())["state"] == "clean"


def test_a_receipt_of_another_archive_is_left_alone(inside: Any, filled: Path) -> None:
    _forget(inside, filled, "3", "--later", "--receipt", "r.json")
    with muniment.open(inside.folder / "b.db"):
        pass
    before = (inside.folder / "r.json").read_bytes()
    inside.ok("clean", "-a", "b.db", "--receipt", "r.json")
    assert (inside.folder / "r.json").read_bytes() == before
    assert inside.run("receipt", "verify", "r.json", "-a", "b.db").code == 1


def test_a_reader_holds_it_back(inside: Any, filled: Path, plain: Any) -> None:
    with muniment.open(filled) as reader, reader.storage.snapshot(reader.memory("anna", tenant="default").scope):
        held = inside.run("clean", "-a", filled, "--wait", "0")
        inside.ok("add", "one more", "-a", filled)
        held = inside.run("clean", "-a", filled, "--wait", "0")
    assert held.code == 75
    assert "not clean yet: " in held.err
    assert inside.ok("clean", "-a", filled).code == 0


# --- sweep ------------------------------------------------------------------------------------------------------------


def test_sweep_hides_or_destroys(inside: Any, filled: Path) -> None:
    tried = inside.run("sweep", "--action", "erase", "--dry-run", "-a", filled, "--receipt", "r")
    assert tried.records == [["default", "anna", "1", "0", "", ""]]
    assert tried.err.endswith("1 item of 1 scope would be destroyed\n")
    assert not (inside.folder / "r").exists()
    assert inside.run("sweep", "--action", "delete", "-a", filled).err == "1 item of 1 scope hidden\n"
    result = inside.run("sweep", "--action", "erase", "-a", filled, "--receipt", "r", "-t", "default")
    assert result.records[0][:5] == ["default", "anna", "1", "0", "clean"]
    assert inside.ok("receipt", "verify", "r", "-a", filled).code == 0
    again = inside.run("sweep", "--action", "erase", "-a", filled)
    assert (again.code, again.out, again.err) == (0, "", "0 items of 0 scopes destroyed\n")


def test_sweep_at_a_time_and_old_reads(inside: Any, filled: Path) -> None:
    assert inside.run("sweep", "--action", "delete", "--now", "2019-01-01", "-a", filled).out == ""
    inside.run("search", "message", "-a", filled, "-s", "anna")
    inside.run("search", "unscoped", "-a", filled, "--unscoped")
    result = inside.run(
        "sweep", "--action", "erase", "--recalls-before", "2999-01-01", "-a", filled, "--receipt", "r", "--json"
    )
    assert [len(scope["recalls"]) for scope in result.json] == [1, 1]
    assert len((inside.folder / "r").read_text().splitlines()) == 2
    assert len(inside.ok("receipt", "verify", "r", "-a", filled, "--json").json) == 2
    assert inside.run("sweep", "--action", "burn", "-a", filled).code == 2


# --- receipt verify ---------------------------------------------------------------------------------------------------


def test_a_forged_receipt(cli: Any, inside: Any, filled: Path, plain: Any) -> None:
    _forget(inside, filled, "3", "--receipt", "r.json")
    forged = (inside.folder / "r.json").read_text().replace('"note": 1', '"note": 2')
    (inside.folder / "f.json").write_text(forged)
    result = inside.run("receipt", "verify", "f.json", "-a", filled)
    assert result.code == 1
    assert (result.records[0][0], result.records[0][-1]) == ("bad", "its counts are not those of its targets")
    shown = cli.watch("receipt", "verify", "r.json", "-a", filled)
    assert "the archive bears it out" in plain(shown.out)


@pytest.mark.parametrize(
    ("content", "code"), [(b"", 2), (b"{}", 2), (b"\xff", 2), (b"null", 2), (None, 3)], ids=lambda value: str(value)
)
def test_a_file_that_is_no_receipt(inside: Any, filled: Path, content: bytes | None, code: int) -> None:
    if content is not None:
        (inside.folder / "r").write_bytes(content)
    result = inside.run("receipt", "verify", "r", "-a", filled)
    assert (result.code, result.out) == (code, "")
    assert len(result.err.splitlines()) == 1
