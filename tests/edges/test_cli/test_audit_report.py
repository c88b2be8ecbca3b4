"""`muniment audit-report`: what it finds, and that it never prints a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import muniment

CARD = "4111 1111 " + "1111 1111"


@pytest.fixture
def filled(archive: Path) -> Path:
    with muniment.open(archive) as opened:
        memory = opened.memory("anna", tenant="default")
        memory.remember("the same text again")
        memory.remember("The same text again")
        memory.remember(f"the card is {CARD}")
        opened.memory("ben", tenant="default").remember("nothing to see here")
    return archive


def test_it_reports_and_fails(cli: Any, inside: Any, filled: Path) -> None:
    result = cli.run("audit-report", "-a", filled)
    assert (result.code, result.err) == (1, "4 items of 2 scopes: 2 findings\n")
    (secret, duplicate) = result.records
    assert (*secret[:4], secret[5]) == (
        "secret",
        "default",
        "anna",
        "2",
        "card number in content, characters 12 to 31",
    )
    assert (duplicate[0], duplicate[3], duplicate[5]) == ("duplicate", "1", "says the same as 0")
    assert "4111" not in result.out
    assert len(inside.ok("log", "-a", filled, "-s", "anna").records) == 3  # nothing is recorded


def test_json(inside: Any, filled: Path) -> None:
    result = inside.run("audit-report", "-a", filled, "--json")
    (report,) = result.json
    assert (result.code, report["ok"], report["counts"]["secret"], report["num_items"]) == (1, False, 1, 4)
    assert report["findings"][1]["other_seq"] == 0


def test_one_scope_later(inside: Any, filled: Path) -> None:
    healthy = inside.run("audit-report", "-a", filled, "-s", "ben")
    assert (healthy.code, healthy.out, healthy.err) == (0, "", "1 item of 1 scope: nothing to tidy up\n")
    later = inside.run("audit-report", "-a", filled, "-s", "ben", "--now", "2999-01-01")
    assert (later.code, later.records[0][0]) == (0, "never_recalled")
    small = inside.run("audit-report", "-a", filled, "-s", "ben", "--max-chars", "5")
    assert small.records[0][5] == "19 characters, more than 5"


def test_a_limit_is_said(inside: Any, filled: Path) -> None:
    result = inside.run("audit-report", "-a", filled, "--unused-after", "0", "--limit", "1")
    assert "… 3 never_recalled findings more\n" in result.err


def test_a_person_sees_what_to_do(cli: Any, filled: Path, plain: Any) -> None:
    shown = plain(cli.watch("audit-report", "-a", filled).out)
    assert "     1  likely secrets: `muniment forget` destroys them\n" in shown
    assert "        default/anna  2  card number in content" in shown
    assert "4111" not in shown
