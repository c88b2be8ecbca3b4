"""Every code block of the README and the docs runs: Python in one session per page, commands as a user types them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The blocks of one language, with the line each starts at."""
    text = page.read_text("utf-8")
    return [
        (text.count("\n", 0, found.start(2)) + 1, found.group(2))
        for found in BLOCK.finditer(text)
        if found.group(1) == language
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {"__name__": "__main__"}
    for line, source in blocks(page, "python"):
        exec(compile("\n" * (line - 1) + source, page.name, "exec"), session)  # noqa: S102


CONSOLE_PAGES = [page for page in PAGES if blocks(page, "console") and page.name != "cli.md"]
"""The page of the command line has a test of its own, which also wants every command and option on it."""


@pytest.mark.parametrize("page", CONSOLE_PAGES, ids=lambda page: page.name)
def test_console_blocks_run(page: Path, tmp_path: Path) -> None:
    """Commands run in order in one folder; what stands below one must be what it prints, `…` standing for anything."""
    exported: dict[str, str] = {}
    for _, block in blocks(page, "console"):
        for command, wanted in commands(block):
            if command.startswith("export "):
                name, _, value = command.removeprefix("export ").partition("=")
                exported[name] = value
                continue
            done = run(command, tmp_path, exported)
            assert done.returncode == 0, f"{command}\n{done.stdout}"
            if wanted.strip():
                pattern = ".*?".join(re.escape(part) for part in wanted.strip().split("…"))
                assert re.search(pattern, done.stdout, re.DOTALL), f"{command}\nwanted:\n{wanted}\ngot:\n{done.stdout}"


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command behind `$ `, continued lines joined, and the output that is shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        command = lines.pop(0)
        while command.endswith("\\"):
            command = command[:-1] + lines.pop(0)
        yield command, "\n".join(lines)


INSTALLING = ("pip ", "make ", "git ", "python -m venv", "cd ")


def run(command: str, folder: Path, exported: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command line; what installs was run before the tests began."""
    if command.startswith(INSTALLING):
        return subprocess.CompletedProcess(command, 0, "", "")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    environment.pop("MUNIMENT_ARCHIVE", None)
    environment.update(exported)
    shell = any(sign in command for sign in "|<>&;$")
    arguments = command if shell else shlex.split(command)
    return subprocess.run(  # the commands are our own documentation
        arguments,
        cwd=folder,
        env=environment,
        shell=shell,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def test_there_are_blocks() -> None:
    assert blocks(ROOT / "README.md", "python")
    assert blocks(ROOT / "README.md", "console")
