"""`log`, `show`, `replay`, `scopes` and `stats` on a real archive."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

import muniment
from muniment import Archive, Document, Memory, Message, Note, Recall
from muniment.cli import log

DAY: Final = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
"""The night in which Europe's clocks go forward."""


class Clock:
    """An hour passes with every reading."""

    def __init__(self) -> None:
        self.now = DAY

    def __call__(self) -> int:
        self.now += timedelta(hours=1)
        return int(self.now.timestamp() * 1_000_000)


@pytest.fixture
def opened(archive: Path) -> Iterator[Archive]:
    with muniment.open(archive, clock=Clock()) as opened:
        yield opened


@pytest.fixture
def memory(opened: Archive) -> Memory:
    """Eight events: two sessions, a key that changed, a read, a deletion, and another scope's note."""
    memory = opened.memory("default", tenant="default")
    pump = memory.add(Message(speaker="anna", content="the pump\tfailed\non \x1b[31mTuesday", session_id="s1"))
    memory.add(Document(name="repairs.txt", text="pump replaced"))
    memory.put("plan", "call the contractor", tier="core", labels=["repair"])
    memory.put("plan", "wait for the contractor")
    memory.add(Message(speaker="bram", content="ok", session_id="s2"))
    memory.record(Recall(query="pump", recalled=(pump.id,)))
    memory.delete([pump.id], "asked", requested_by="anna")
    memory.add(Note(content="derived", derived_from=(pump.id,), metadata={"a": [1, {"b": None}]}))
    opened.memory("user-42", tenant="acme").remember("elsewhere")
    opened.memory(None, tenant="acme").remember("unscoped")
    return memory


# --- log --------------------------------------------------------------------------------------------------------------


def test_plain_log_is_one_stable_line_an_event(cli: Any, archive: Path, memory: Memory) -> None:
    records = cli.ok("log", "-a", archive).records
    events = list(memory.events())
    assert [record[0] for record in records] == [str(event.seq) for event in events]
    assert [record[3] for record in records] == [str(event.id) for event in events]
    assert {len(record) for record in records} == {7}
    assert records[0][1:3] == ["2026-03-29T01:30:00Z", "message"]
    assert records[0][4:] == ["s1", "anna", "the pump\\tfailed\\non \\x1b[31mTuesday"]
    assert [record[5] for record in records[1:]] == [
        "repairs.txt",
        "core plan",
        "core plan",
        "bram",
        "1 read",
        "1 hidden",
        "archival",
    ]


def test_json_log_gives_every_event_back(cli: Any, archive: Path, memory: Memory) -> None:
    events = [muniment.event_from_dict(event) for event in cli.ok("log", "-a", archive, "--json").json]
    assert events == list(memory.events())


@pytest.mark.parametrize(
    ("options", "seqs"),
    [
        (["--kind", "message"], [0, 4]),
        (["-k", "recall"], [5]),
        (["--session", "s2"], [4]),
        (["--after", "5"], [6, 7]),
        (["--up-to", "1"], [0, 1]),
        (["--after", "1", "--up-to", "3", "--kind", "note"], [2, 3]),
        (["--limit", "2"], [6, 7]),
        (["-n", "2", "--newest-first"], [7, 6]),
        (["-r", "--after", "5"], [7, 6]),
        (["--limit", "0"], list(range(8))),
        (["--limit", "100"], list(range(8))),
        (["--kind", "note", "--limit", "2"], [3, 7]),
    ],
)
@pytest.mark.usefixtures("memory")
def test_log_filters(inside: Any, archive: Path, options: list[str], seqs: list[int]) -> None:
    result = inside.run("log", "-a", archive, "--json", *options)
    assert result.code == 0
    assert [event["seq"] for event in result.json] == seqs


@pytest.mark.usefixtures("memory")
def test_what_a_limit_cuts_off_is_counted(inside: Any, archive: Path) -> None:
    for order in ([], ["-r"]):
        result = inside.run("log", "-a", archive, "-n", "3", *order)
        assert result.err == "… 5 earlier events not shown: --limit 0 shows all\n"
    assert inside.run("log", "-a", archive, "-n", "8", "-r").err == ""


@pytest.mark.usefixtures("memory")
def test_scopes_are_matched_by_equality(inside: Any, archive: Path) -> None:
    assert inside.ok("log", "-a", archive, "-t", "acme", "-s", "user-42").records[0][-1] == "elsewhere"
    assert inside.ok("log", "-a", archive, "-t", "acme", "--unscoped").records[0][-1] == "unscoped"
    for subject in ("user", "user-42 ", "user%", "USER-42", "user_42", "*"):
        result = inside.run("log", "-a", archive, "-t", "acme", "-s", subject)
        assert (result.code, result.out) == (0, "")
        assert result.err == (
            f"nothing was ever stored in acme/{subject}; "
            "the archive holds default/default, acme/user-42, acme (unscoped) (see `muniment scopes`)\n"
        )


@pytest.mark.usefixtures("memory")
def test_nothing_found_is_said(inside: Any, archive: Path) -> None:
    result = inside.run("log", "-a", archive, "--session", "s9")
    assert (result.code, result.out, result.err) == (0, "", "no event matches\n")


def test_an_empty_archive_is_said_to_be_empty(inside: Any, archive: Path) -> None:
    muniment.open(archive).close()
    assert inside.run("log", "-a", archive).err == "nothing was ever stored in default/default; the archive is empty\n"
    assert inside.run("scopes", "-a", archive).err == "nothing was ever stored in this archive\n"
    assert inside.run("scopes", "-a", archive, "-t", "x").err == "nothing was ever stored for tenant x\n"


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "options",
    [
        ["--kind", "recal"],
        ["--follow", "-r"],
        ["--follow", "--up-to", "3"],
        ["--ledger", "x"],
        ["--ledger", "0", "-s", "x"],
    ],
)
def test_log_refuses(inside: Any, archive: Path, options: list[str]) -> None:
    result = inside.run("log", "-a", archive, *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error[usage]: ")


def test_the_newest_of_many_are_found_in_pieces(inside: Any, archive: Path, opened: Archive) -> None:
    memory = opened.memory("default", tenant="default")
    memory.add_many([Message(speaker="ab"[number % 2], content=str(number)) for number in range(2_500)])
    result = inside.run("log", "-a", archive, "-n", "2400")
    assert [record[0] for record in result.records] == [str(number) for number in range(100, 2_500)]
    assert result.err == "… 100 earlier events not shown: --limit 0 shows all\n"


# --- log --follow -----------------------------------------------------------------------------------------------------


def test_follow_prints_what_another_process_adds(cli: Any, archive: Path, memory: Memory) -> None:
    running = cli.start("log", "-a", archive, "--follow", "--interval", "0.02", "-n", "1")
    assert running.next_line().startswith("7\t")
    added = cli.ok("add", "from another process", "-a", archive)
    line = running.next_line().rstrip("\n").split("\t")
    assert line[0] == added.records[0][0] == "8"
    assert line[3] == added.records[0][2]
    memory.add_many([Message(speaker="a", content=str(number)) for number in range(3)])
    assert [running.next_line().split("\t")[0] for _ in range(3)] == ["9", "10", "11"]
    result = running.interrupt()
    assert (result.code, result.out, result.err) == (0, "", "… 7 earlier events not shown: --limit 0 shows all\n")


def test_follow_filters_and_waits_for_a_scope_to_begin(cli: Any, archive: Path, opened: Archive) -> None:
    running = cli.start(
        "log",
        "-a",
        archive,
        "-t",
        "new",
        "-s",
        "x",
        "-f",
        "--interval",
        "0.02",
        "--json",
        "--kind",
        "note",
        "--after",
        "1",
    )
    memory = opened.memory("x", tenant="new")
    memory.add(Message(speaker="a", content="no note"))
    memory.remember("too early")
    memory.remember("this one")
    assert '"content": "this one"' in running.next_line()
    assert running.interrupt().code == 0


def test_follow_goes_on_in_the_ledger_that_replaces_an_erased_one(cli: Any, archive: Path, memory: Memory) -> None:
    running = cli.start("log", "-a", archive, "--follow", "--interval", "0.02", "-n", "1", "--json")
    running.next_line()
    memory.erase(clean="later")
    memory.remember("anew")
    assert '"content": "anew"' in running.next_line()
    result = running.interrupt()
    assert result.code == 0
    assert "the scope was erased meanwhile: its new ledger begins" in result.err


def test_a_follower_outlives_an_erasure_in_the_middle_of_a_look(
    memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    from muniment.cli.events import EventPrinter
    from muniment.cli.output import Output
    from muniment.errors import ConflictError

    class Wanted(log.Wanted):
        def within(self, *_arguments: object, **_options: object) -> Any:
            raise ConflictError("ledger replaced")

    out = Output()
    follower = log.Follower(out, memory, Wanted(None, None, None, None), EventPrinter(out), "another", 3)
    follower._look()
    assert follower.next_seq == 0
    assert "its new ledger begins" in capsys.readouterr().err


# --- show -------------------------------------------------------------------------------------------------------------


def test_show_by_seq_and_by_any_spelling_of_the_id(inside: Any, archive: Path, memory: Memory) -> None:
    event = list(memory.events())[3]
    for reference in ("3", str(event.id), str(event.id).upper(), event.id.hex):
        (shown,) = inside.ok("show", reference, "-a", archive, "--json").json
        assert muniment.event_from_dict(shown) == event


def test_show_looks_in_every_scope(inside: Any, archive: Path, opened: Archive, memory: Memory) -> None:
    elsewhere = next(iter(opened.memory("user-42", tenant="acme").events()))
    records = inside.ok("show", elsewhere.id, "-a", archive).records
    assert records[:2] == [["tenant", "acme"], ["subject", "user-42"]]
    assert ["content", "elsewhere"] in records
    assert inside.run("show", elsewhere.id, "-a", archive, "-s", "default").code == 3
    for unknown in (str(uuid4()), "99"):
        result = inside.run("show", unknown, "-a", archive)
        assert (result.code, result.out) == (3, "")
        assert result.err.startswith(f"error[not_found]: there is no event {unknown} in ")
    assert inside.run("show", "x", "-a", archive).code == 2


@pytest.mark.usefixtures("memory")
def test_show_says_what_became_of_an_item(inside: Any, archive: Path) -> None:
    message = dict(record[:2] for record in inside.ok("show", "0", "-a", archive).records)
    assert (message["visible"], message["deleted_by"], message["usage_count"]) == ("no", "6", "1")
    assert message["last_used_at"].endswith("Z")
    note = dict(record[:2] for record in inside.ok("show", "2", "-a", archive).records)
    assert (note["visible"], note["superseded_by"], note["usage_count"]) == ("no", "3", "0")
    assert note["labels"] == '["repair"]'
    newest = dict(record[:2] for record in inside.ok("show", "7", "-a", archive).records)
    assert (newest["visible"], newest["metadata"]) == ("yes", '{"a": [1, {"b": null}]}')


def test_show_lists_what_an_event_names(inside: Any, archive: Path, memory: Memory) -> None:
    pump = next(iter(memory.events()))
    for seq in ("5", "6", "7"):
        named = [record for record in inside.ok("show", seq, "-a", archive).records if record[0] == "names"]
        assert [record[1:4] for record in named] == [["0", "message", str(pump.id)]]
    replaced = [record for record in inside.ok("show", "3", "-a", archive).records if record[0] == "names"]
    assert [record[1] for record in replaced] == ["2"]


def test_of_an_erased_event_the_envelope_is_shown(inside: Any, archive: Path, memory: Memory) -> None:
    pump = next(iter(memory.events()))
    memory.forget([pump.id], clean="later")
    result = inside.ok("show", pump.id, "-a", archive)
    assert "pump" not in result.out
    shown = dict(record[:2] for record in result.records)
    assert shown["state"] == "erased"
    assert shown["seq"] == "0"
    assert inside.ok("show", "0", "-a", archive, "--json").json[0]["content_digest"] == shown["content_digest"]
    assert inside.ok("log", "-a", archive).records[0][5:] == ["erased by 8", ""]


def test_the_ledger_of_an_erased_scope_is_found_by_its_id(inside: Any, archive: Path, memory: Memory) -> None:
    pump = next(iter(memory.events()))
    head = memory.head()
    assert head is not None
    memory.erase(clean="later")
    (erased,) = inside.ok("scopes", "-a", archive, "--erased", "--json").json
    assert (erased["tenant"], erased["subject"], erased["ledger_id"]) == (None, None, head.ledger_id)
    assert inside.ok("log", "-a", archive, "--ledger", head.ledger_id, "-k", "erasure").records[0][5] == "8 destroyed"
    assert ["state", "erased"] in inside.ok("show", pump.id, "-a", archive).records
    assert inside.ok("replay", "-a", archive, "--ledger", head.ledger_id, "--json").json[0]["counts"]["erased"] == 8
    assert inside.ok("scopes", "-a", archive, "-t", "acme").code == 0
    assert inside.run("scopes", "-a", archive, "-t", "acme", "--erased").err == "no scope was erased for tenant acme\n"
    assert inside.run("log", "-a", archive, "--ledger", "0" * 32).code == 3


# --- replay -----------------------------------------------------------------------------------------------------------


def test_replay_now(cli: Any, archive: Path, memory: Memory) -> None:
    records = cli.ok("replay", "-a", archive).records
    assert records[0] == ["point", "7", "default", "default"]
    counts = {name: int(number) for kind, name, number in (r for r in records if r[0] == "count") if kind}
    assert counts == {
        "messages": 2,
        "documents": 1,
        "notes": 3,
        "visible": 4,
        "deleted": 1,
        "superseded": 1,
        "erased": 0,
        "read": 1,
    }
    assert [int(record[1]) for record in records if record[0] == "item"] == [i.seq for i in memory.replay().visible]


@pytest.mark.parametrize(
    ("options", "last_seq", "visible"),
    [
        (["--seq", "5"], 5, [0, 1, 3, 4]),
        (["--seq", "-1"], None, []),
        (["--seq", "999"], 7, [1, 3, 4, 7]),
        (["--at", "2026-03-28"], None, []),
        (["--at", "2026-03-30"], 7, [1, 3, 4, 7]),
        (["--at", "2026-03-29T02:30:00Z"], 1, [0, 1]),
        (["--at", "2026-03-29T02:29:59.999999Z"], 0, [0]),
    ],
)
@pytest.mark.usefixtures("memory")
def test_replay_at_a_point(
    inside: Any, archive: Path, options: list[str], last_seq: int | None, visible: list[int]
) -> None:
    (state,) = inside.run("replay", "-a", archive, "--json", *options).json
    assert state["last_seq"] == last_seq
    assert [item["seq"] for item in state["visible"]] == visible


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Europe/Berlin"])
@pytest.mark.usefixtures("memory")
def test_the_zone_of_the_machine_changes_nothing(cli: Any, inside: Any, archive: Path, zone: str) -> None:
    """Both spellings are the same instant; one stands in the hour that a change of clocks leaves out."""
    for moment in ("2026-03-29 04:30+02:00", "2026-03-29T08:00:00+05:30"):
        (state,) = cli.ok("replay", "-a", archive, "--json", "--at", moment, TZ=zone).json
        assert state["last_seq"] == 1
    assert cli.ok("log", "-a", archive, TZ=zone).records == inside.ok("log", "-a", archive).records


def test_replay_as_json_is_the_whole_state(inside: Any, archive: Path, memory: Memory) -> None:
    (found,) = inside.ok("replay", "-a", archive, "--json").json
    state = memory.replay()
    assert [muniment.event_from_dict(item) for item in found["visible"]] == list(state.visible)
    assert found["deleted"] == {str(target): by.seq for target, by in state.deleted.items()}
    assert found["superseded"] == {str(old): str(new) for old, new in state.superseded.items()}
    assert {item: stats["num_recalled"] for item, stats in found["recall_stats"].items()} == {
        str(item): stats.num_recalled for item, stats in state.recall_stats.items()
    }


@pytest.mark.usefixtures("memory")
def test_a_cut_replay_says_so(inside: Any, archive: Path) -> None:
    result = inside.run("replay", "-a", archive, "-n", "1")
    assert len([record for record in result.records if record[0] == "item"]) == 1
    assert result.err == "… 3 items more: --limit 0 shows all\n"


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--at", "2026-03-29T01:00"], "has no offset"),
        (["--at", "2026-03-29 01:00:00"], "has no offset"),
        (["--at", "yesterday"], "is not a time"),
        (["--at", "0001-01-01T00:00:00+05:00"], "outside the years 1 to 9999"),
        (["--at", "2026-03-29", "--seq", "1"], "not both"),
    ],
)
def test_replay_refuses(inside: Any, archive: Path, options: list[str], reason: str) -> None:
    result = inside.run("replay", "-a", archive, *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error[usage]: ")
    assert reason in result.err


# --- scopes, stats ----------------------------------------------------------------------------------------------------


def test_scopes(inside: Any, archive: Path, opened: Archive, memory: Memory) -> None:
    records = inside.ok("scopes", "-a", archive).records
    assert [record[:3] for record in records] == [
        ["acme", "user-42", "1"],
        ["acme", "", "1"],
        ["default", "default", "8"],
    ]
    head = memory.head()
    assert head is not None
    assert records[2][4] == head.ledger_id
    (only,) = inside.ok("scopes", "-a", archive, "-t", "default", "--json").json
    assert (only["subject"], only["num_events"], only["erased_at"]) == ("default", 8, None)
    assert [scope["subject"] for scope in inside.ok("scopes", "-a", archive, "-t", "acme", "--json").json] == [
        "user-42",
        None,
    ]
    cut = inside.run("scopes", "-a", archive, "-n", "1")
    assert (len(cut.records), cut.err) == (1, "… 2 scopes more: --limit 0 shows all\n")


def test_stats(inside: Any, archive: Path, opened: Archive, memory: Memory) -> None:
    counts = dict(inside.ok("stats", "-a", archive).records)
    assert counts["archive"] == str(archive)
    assert (counts["tenants"], counts["scopes"], counts["events"], counts["items"]) == ("2", "3", "10", "8")
    (found,) = inside.ok("stats", "-a", archive, "--json").json
    assert found["events"] == opened.stats().events
    assert found["size_bytes"] > 0
