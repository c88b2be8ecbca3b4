"""`muniment demo`: the first thing that a newcomer runs."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.cli import story
from muniment.cli.demo import verify_forged_copy


@pytest.fixture
def made(inside: Any) -> Any:
    return inside.ok("demo")


def test_the_demo_tells_a_story_in_plain_lines(cli: Any, made: Any) -> None:
    assert "\x1b" not in made.out
    assert max(len(line) for line in made.lines if str(cli.folder) not in line) <= 80
    assert len(made.lines) <= 45
    for heading in ("MONDAY", "WEDNESDAY", "FRIDAY", "REPLAY", "PROVE"):
        assert sum(line.startswith(heading) for line in made.lines) == 1
    assert f'   7  READ      "{story.QUESTION}" gave 2, 4' in made.lines
    assert f'  11  READ      "{story.QUESTION}" gave 4' in made.lines
    assert "deleted by 10" in made.out
    assert "  bad event 2: its content is not what was written: its digest differs" in made.lines
    assert str(cli.folder / "muniment-demo.db") in made.out


def test_what_the_demo_recorded_is_there(inside: Any, made: Any) -> None:
    with muniment.open(inside.folder / "muniment-demo.db", create=False) as archive:
        memory = archive.memory(story.SUBJECT, tenant=story.TENANT)
        events = list(memory.events())
        assert [event.kind for event in events].count("recall") == 2
        assert {event.kind for event in events} == {"message", "document", "note", "recall", "deletion"}
        assert len({getattr(event, "session_id", None) for event in events}) == 3
        before, after = memory.replay(up_to_seq=9), memory.replay()
        gone = {item.id for item in before.visible} - {item.id for item in after.visible}
        assert [event.seq for event in events if event.id in gone] == [2]
        assert memory.replay(at=story.TUESDAY).last_seq == 4
        assert archive.verify(deep=True).ok
        assert getattr(events[8], "recall_id", None) == events[7].id


def test_every_command_that_the_demo_proposes_works(inside: Any, made: Any) -> None:
    proposed = [shlex.split(line) for line in made.lines if line.startswith("  muniment ")]
    assert {words[1] for words in proposed} == {"log", "show", "replay", "add", "verify"}
    for words in proposed:
        assert inside.ok(*words[1:]).out


def test_a_second_demo_leaves_the_first_alone(inside: Any, made: Any) -> None:
    before = inside.ok("log", "-a", "muniment-demo.db", "-t", "demo", "-s", "mara").out
    again = inside.ok("demo")
    assert "-s mara-2" in again.out
    assert again.out.count("gave 2, 4") == 1
    assert inside.ok("log", "-a", "muniment-demo.db", "-t", "demo", "-s", "mara").out == before
    assert [record[1] for record in inside.ok("scopes", "-a", "muniment-demo.db").records] == ["mara", "mara-2"]


def test_a_place_of_ones_own(inside: Any) -> None:
    result = inside.ok("demo", "it's mine.db")
    assert (inside.folder / "it's mine.db").is_file()
    proposed = [shlex.split(line) for line in result.lines if line.startswith("  muniment ")]
    assert inside.ok(*proposed[0][1:]).out
    assert inside.ok("demo", f"sqlite:///{inside.folder}/b.db").code == 0
    assert (inside.folder / "b.db").is_file()
    assert inside.run("demo", ":memory:").code == 2
    assert inside.run("demo", "no/such/folder/x.db").code == 5


@pytest.mark.parametrize("whose", ["archive", "tenant called demo", "database", "text"])
def test_the_demo_never_touches_what_is_not_its_own(inside: Any, whose: str) -> None:
    path = inside.folder / "muniment-demo.db"
    if whose == "text":
        path.write_text("my diary, which is longer than the header of a database is; " * 3)
    elif whose == "database":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE diary (day TEXT)")
        connection.close()
    else:
        with muniment.open(path) as archive:
            archive.memory("anna", tenant="acme" if whose == "archive" else "demo").remember("mine")
    before = path.read_bytes()
    result = inside.run("demo")
    assert result.code in (2, 5)
    assert len(result.err.splitlines()) == 1
    assert path.read_bytes() == before


def test_the_forged_copy_is_not_the_archive(inside: Any, made: Any) -> None:
    path = inside.folder / "muniment-demo.db"
    before = path.read_bytes()
    report = verify_forged_copy(path, muniment.Scope(story.TENANT, story.SUBJECT))
    assert (report.ok, report.bad_seq) == (False, 2)
    assert path.read_bytes() == before


def test_a_demo_that_is_cut_short_can_be_run_again(cli: Any) -> None:
    script = f"{shlex.join([*_command()])} demo | head -n 3"
    subprocess.run(["bash", "-c", script], cwd=cli.folder, env=cli.environment, stdout=subprocess.DEVNULL, check=True)
    assert "gave 2, 4" in cli.ok("demo").out


def _command() -> list[str]:
    import sys

    return [sys.executable, "-m", "muniment"]


def test_the_demo_in_a_terminal(cli: Any, plain: Any) -> None:
    result = cli.watch("demo")
    assert result.code == 0
    assert "\x1b[31m" in result.out
    text = plain(result.out)
    assert max(len(line) for line in text.splitlines() if str(cli.folder) not in line) <= 80
    assert "gave 2, 4" in text


def test_the_story_is_one_that_can_be_told_again(inside: Any, tmp_path: Path) -> None:
    """Two runs print the same, but for hashes, sizes and the place."""
    first, second = (inside.ok("demo", tmp_path / f"{name}.db").out for name in "ab")
    lines = zip(first.splitlines(), second.splitlines(), strict=True)
    differing = [one for one, other in lines if one != other]
    assert all("/" in line or "hash tree" in line for line in differing)
