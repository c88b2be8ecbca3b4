"""`delete`, `verify` and `doctor` on a real archive."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw
import pytest

import muniment
from muniment import Message
from muniment.cli.demo import forge


@pytest.fixture
def filled(archive: Path) -> Path:
    """An archive of three scopes with twenty messages each."""
    with muniment.open(archive) as opened:
        for tenant, subject in (("default", "default"), ("acme", "anna"), ("acme", None)):
            opened.memory(subject, tenant=tenant).add_many(
                [Message(speaker="a", content=f"message {number} of {tenant}") for number in range(20)]
            )
    return archive


# --- delete -----------------------------------------------------------------------------------------------------------


def test_delete_hides_and_records(cli: Any, inside: Any, filled: Path) -> None:
    first = inside.ok("log", "-a", filled).records[0][3]
    result = cli.ok("delete", first, "3", "-a", filled, "--reason", "asked", "--requested-by", "anna", "--actor", "x")
    assert result.records[0][:2] == ["20", "deletion"]
    (deletion,) = inside.ok("show", "20", "-a", filled, "--json").json
    assert (deletion["reason"], deletion["requested_by"], deletion["actor"], deletion["source"]) == (
        "asked",
        "anna",
        "x",
        "cli",
    )
    assert len(deletion["targets"]) == 2
    (state,) = inside.ok("replay", "-a", filled, "--json").json
    assert [item["seq"] for item in state["visible"]] == [1, 2, *range(4, 20)]
    assert len(inside.ok("log", "-a", filled).records) == 21
    (again,) = inside.ok("delete", first, "-a", filled, "--reason", "again", "--json").json
    assert (again["seq"], again["kind"]) == (21, "deletion")


def test_a_retried_deletion_is_the_first_one(inside: Any, filled: Path) -> None:
    results = [
        inside.ok("delete", "0", "-a", filled, "--reason", "r", "--request-id", "one", "--json").json for _ in range(2)
    ]
    assert results[0] == results[1]
    assert inside.run("delete", "1", "-a", filled, "--reason", "r", "--request-id", "one").code == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["99", "--reason", "x"], 3),
        ([str(uuid4()), "--reason", "x"], 3),
        (["0", "99", "--reason", "x"], 3),
        (["0", "--reason", "x", "-s", "other"], 3),
        (["0", "--reason", ""], 2),
        (["zero", "--reason", "x"], 2),
        (["20", "0", "--reason", "a deletion is no content"], 2),
    ],
)
def test_a_refused_deletion_stores_nothing(inside: Any, filled: Path, arguments: list[str], code: int) -> None:
    inside.ok("delete", "5", "-a", filled, "--reason", "the event at 20")
    result = inside.run("delete", *arguments, "-a", filled)
    assert (result.code, result.out) == (code, "")
    assert len(result.err.splitlines()) == 1
    assert len(inside.ok("log", "-a", filled).records) == 21


def test_deleting_reaches_one_scope_only(inside: Any, filled: Path) -> None:
    elsewhere = inside.ok("log", "-a", filled, "-t", "acme", "-s", "anna").records[0][3]
    assert inside.run("delete", elsewhere, "-a", filled, "--reason", "x").code == 3
    assert inside.ok("delete", elsewhere, "-a", filled, "--reason", "x", "-t", "acme", "-s", "anna").code == 0
    assert [s["num_events"] for s in inside.ok("scopes", "-a", filled, "--json").json] == [21, 20, 20]


# --- verify -----------------------------------------------------------------------------------------------------------


def test_verify_of_what_was_written(inside: Any, filled: Path) -> None:
    result = inside.ok("verify", "-a", filled)
    assert [record[0] for record in result.records] == ["ok", "ok", "ok"]
    assert {tuple(record[1:4]) for record in result.records} == {
        ("default", "default", "20"),
        ("acme", "anna", "20"),
        ("acme", "", "20"),
    }
    assert len(inside.ok("verify", "-a", filled, "-t", "acme").records) == 2
    (one,) = inside.ok("verify", "-a", filled, "-t", "acme", "-s", "anna").records
    with muniment.open(filled) as opened:
        head = opened.memory("anna", tenant="acme").head()
    assert head is not None
    assert one[4] == head.root
    *ledgers, whole = inside.ok("verify", "-a", filled, "--deep", "--json").json
    assert whole == {"ok": True, "num_ledgers": 3, "num_events": 60, "storage_problems": []}
    assert all(ledger["ok"] and ledger["bad_seq"] is None for ledger in ledgers)


def test_verify_finds_the_first_event_that_was_changed(cli: Any, inside: Any, filled: Path) -> None:
    forge(filled, b"message 7 of acme", b"message 8 of acme")
    result = cli.run("verify", "-a", filled)
    assert result.code == 1
    bad = [record for record in result.records if record[0] == "bad"]
    assert [record[5] for record in bad] == ["7", "7"]
    assert all("its digest differs" in record[6] for record in bad)
    assert inside.ok("verify", "-a", filled, "-s", "default").code == 0
    (one, whole) = inside.run("verify", "-a", filled, "-t", "acme", "-s", "anna", "--json").json
    assert (one["ok"], one["bad_seq"], one["subject"], whole["ok"]) == (False, 7, "anna", False)
    # Reading the changed event is an error of its own kind.
    shown = cli.run("show", "7", "-a", filled, "-t", "acme", "-s", "anna")
    assert (shown.code, shown.out) == (6, "")
    assert shown.err.startswith("error[integrity]: ")


def test_a_deep_verify_asks_the_storage(inside: Any, filled: Path) -> None:
    with apsw.Connection(str(filled)) as connection:
        connection.execute("DROP INDEX items_by_key")
        connection.execute("PRAGMA writable_schema=ON")
    connection.close()
    content = bytearray(filled.read_bytes())
    content[36:40] = (7).to_bytes(4)  # the header's count of free pages, which there are none of
    filled.write_bytes(content)
    result = inside.run("verify", "-a", filled, "--deep", "--json")
    assert result.code == 1
    assert result.json[-1]["storage_problems"]


@pytest.mark.parametrize("options", [["-t", "nobody"], ["-s", "nobody"], ["--unscoped"]])
def test_verifying_what_was_never_stored_is_no_success(inside: Any, filled: Path, options: list[str]) -> None:
    result = inside.run("verify", "-a", filled, *options)
    assert (result.code, result.out) == (3, "")


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_without_an_archive(cli: Any) -> None:
    findings = {name: (status, detail) for name, status, detail in cli.ok("doctor").records}
    assert findings["muniment"] == ("ok", muniment.__version__)
    assert findings["sqlite"][1].startswith(apsw.sqlite_lib_version())
    assert findings["python"][0] == findings["apsw"][0] == "ok"
    assert findings["archive"][0] == "note"
    assert list(cli.folder.iterdir()) == []


def test_doctor_of_an_archive(inside: Any, filled: Path) -> None:
    findings = {finding["name"]: finding for finding in inside.ok("doctor", "-a", filled, "--json").json}
    assert {finding["status"] for finding in findings.values()} == {"ok"}
    assert str(filled) in findings["archive"]["detail"]
    assert findings["contents"]["detail"] == "60 events in 3 scopes"
    for name in ("wal", "folder", "disk", "schema", "settings", "erasures", "integrity"):
        assert findings[name]["detail"]


def test_doctor_sees_the_log_that_is_not_folded_in(inside: Any, filled: Path) -> None:
    with muniment.open(filled) as opened:
        opened.memory("default", tenant="default").remember("x")
        findings = {record[0]: record[2] for record in inside.ok("doctor", "-a", f"sqlite:///{filled}").records}
    assert findings["wal"].endswith("not folded in yet")


def test_doctor_sees_erasures_that_are_not_clean(inside: Any, filled: Path) -> None:
    with muniment.open(filled) as opened:
        opened.memory("anna", tenant="acme").erase(clean="later")
    result = inside.run("doctor", "-a", filled)
    assert result.code == 0
    assert ["erasures", "note", "1 erasure unreachable, but not cleaned from the file yet"] in result.records


@pytest.mark.parametrize("how", ["missing", "folder", "text", "short", "other", "newer", "damaged", "no folder"])
def test_doctor_names_what_is_bad_and_changes_nothing(inside: Any, filled: Path, how: str) -> None:
    path = _spoil(filled, how)
    before = {file.name: file.read_bytes() for file in inside.folder.iterdir() if file.is_file()}
    result = inside.run("doctor", "-a", path)
    assert (result.code, result.err) == (1, "")
    assert any(record[1] == "bad" for record in result.records)
    after = {file.name: file.read_bytes() for file in inside.folder.iterdir() if file.is_file()}
    assert after == before


def _spoil(path: Path, how: str) -> Path:
    content = bytearray(path.read_bytes())
    if how in ("missing", "folder"):
        path.unlink()
        if how == "folder":
            path.mkdir()
    elif how == "no folder":
        return path.parent / "none" / "a.db"
    elif how == "text":
        path.write_bytes(b"a text that is longer than a header is, " * 4)
    elif how == "short":
        path.write_bytes(b"short")
    elif how == "other":
        content[68:72] = b"ELSE"
        path.write_bytes(content)
    elif how == "newer":
        content[60:64] = (999).to_bytes(4)
        path.write_bytes(content)
    else:
        content[100:4096] = b"\xff" * (4096 - 100)
        path.write_bytes(content)
    return path


def test_doctor_leaves_an_older_schema_to_be_upgraded(inside: Any, filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    content[60:64] = (0).to_bytes(4)
    filled.write_bytes(content)
    copy = shutil.copyfile(filled, inside.folder / "copy.db")
    result = inside.run("doctor", "-a", filled)
    assert result.code == 0
    assert next(record for record in result.records if record[0] == "schema")[1] == "note"
    assert filled.read_bytes() == copy.read_bytes()
