"""What a person sees in a terminal of 80 columns, and what a pipe gets instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment import Document, Memory, Message, Recall
from muniment.cli.demo import forge

Plain = Callable[[str], str]


@pytest.fixture
def memory(archive: Path) -> Any:
    with muniment.open(archive) as opened:
        memory = opened.memory("default", tenant="default")
        memory.add(Message(speaker="eve", content="\x1b[2J\x1b]0;owned\x07\u202eevil " + "long " * 40))
        memory.add(Document(name="a.txt", text="first line\nsecond \x1b[31mline\n" + "x" * 5_000))
        yield memory


def _assert_fits(text: str, columns: int = 80) -> None:
    assert max(len(line.rstrip()) for line in text.splitlines()) <= columns


def test_log_is_a_table(cli: Any, archive: Path, memory: Memory, plain: Plain) -> None:
    shown = cli.watch("log", "-a", archive).out
    assert "\x1b[36m" in shown
    text = plain(shown)
    header, eve, document = text.splitlines()
    assert header.split() == ["seq", "recorded", "(UTC)", "kind", "what"]
    assert eve.split()[0] == "0"
    assert "\\x1b[2J\\x1b]0;owned\\x07\\u202eevil" in eve
    assert eve.endswith("…")
    assert document.split()[3:5] == ["document", "a.txt:"]
    _assert_fits(text)
    for dangerous in ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\x1b[31mline"):
        assert dangerous not in shown


@pytest.mark.usefixtures("memory")
def test_a_terminal_can_be_forced_and_json_is_never_coloured(cli: Any, archive: Path) -> None:
    assert "\x1b[" in cli.ok("log", "-a", archive, FORCE_COLOR="1").out
    assert "\x1b[" not in cli.ok("log", "-a", archive).out
    for line in cli.watch("log", "-a", archive, "--json").out.splitlines():
        json.loads(line)
    assert "\x1b[36m" not in cli.watch("log", "-a", archive, NO_COLOR="1").out


def test_fifty_are_shown_and_the_rest_is_counted(cli: Any, archive: Path, memory: Memory, plain: Plain) -> None:
    memory.add_many([Message(speaker="a", content=str(number)) for number in range(400)])
    text = plain(cli.watch("log", "-a", archive).out)
    assert "… 352 earlier events not shown: --limit 0 shows all\n" in text
    rows = [line for line in text.splitlines() if " message " in line]
    assert [row.split()[0] for row in rows] == [str(number) for number in range(352, 402)]
    everything = plain(cli.watch("log", "-a", archive, "--limit", "0").out).splitlines()
    assert len(everything) == 403  # one header, also over several pages
    state = plain(cli.watch("replay", "-a", archive).out)
    assert "… 352 items more: --limit 0 shows all" in state
    _assert_fits(state)


def test_show_a_text_with_its_lines(cli: Any, archive: Path, memory: Memory, plain: Plain) -> None:
    text = plain(cli.watch("show", "1", "-a", archive).out)
    assert text.startswith("document 1 in default/default\n")
    assert "\nfirst line\nsecond \\x1b[31mline\nxxx" in text
    assert "  visible       yes\n" in text


def test_show_what_a_read_gave(cli: Any, archive: Path, memory: Memory, plain: Plain) -> None:
    given = [memory.add(Message(speaker="a", content=f"item {number}")) for number in range(60)]
    recall = memory.record(Recall(query="items", recalled=tuple(item.id for item in given)))
    text = plain(cli.watch("show", str(recall.seq), "-a", archive).out)
    assert "message  a: item 0\n" in text
    assert "message  a: item 49\n" in text
    assert "a: item 50" not in text
    assert "  … 10 events more: --json lists all ids\n" in text


def test_verify_and_the_others(cli: Any, archive: Path, memory: Memory, plain: Plain) -> None:
    result = cli.watch("verify", "-a", archive, "--deep")
    assert (result.code, plain(result.out).splitlines()[-2:]) == (
        0,
        [
            "ok  1 ledger, 2 events: all is what was written; the storage finds its files in order",
            f"    tree root {memory.verify().head.root}",  # type: ignore[union-attr]
        ],
    )
    for arguments in (["stats"], ["scopes"], ["doctor"], ["replay"]):
        result = cli.watch(*arguments, "-a", archive)
        assert result.code == 0
        assert "\x1b[" in result.out
    forge(archive, b"second", b"SECOND")
    result = cli.watch("verify", "-a", archive)
    assert result.code == 1
    assert "bad  default/default: event 1: its content is not what was written" in plain(result.out)


def test_adding_and_deleting(cli: Any, archive: Path, plain: Plain) -> None:
    text = plain(cli.watch("add", "x", "-a", archive).out)
    assert text.startswith(f"began a new archive: {archive}")
    assert "note 0 is stored in default/default" in text
    assert "hid 1 item of default/default by deletion 1\n" in plain(
        cli.watch("delete", "0", "--reason", "r", "-a", archive).out
    )


def test_progress_is_shown_and_gone_again(cli: Any, archive: Path, plain: Plain) -> None:
    lines = b'{"kind": "note", "content": "x"}\n' * 3_000 + b"{\n"
    result = cli.watch("add", "-", "-a", archive, stdin=lines)
    assert result.code == 2
    assert "━" in result.out
    assert "3,000 lines" in plain(result.out)
    assert "line 3001: not JSON" in plain(result.out)
    assert plain(result.out).rstrip().endswith("stored 3,000 of 3,001 lines in 1 scope, 1 refused")


def test_a_narrow_and_a_wide_window(cli: Any, archive: Path, memory: Memory, plain: Plain) -> None:
    for columns in (40, 200):
        _assert_fits(plain(cli.watch("log", "-a", archive, columns=columns).out), columns)
