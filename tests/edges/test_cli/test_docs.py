"""`docs/cli.md`: every command on it runs, in order, and prints what stands there; every option is on it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from muniment.cli import exits
from muniment.cli.app import build_command

PAGE: Final = Path(__file__).parents[3] / "docs" / "cli.md"
_BLOCK: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_COMMAND: Final = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    command: str
    output: str
    """`…` stands for anything; none at all is not compared."""

    @property
    def pattern(self) -> str:
        return ".*".join(map(re.escape, self.output.rstrip("\n").split("…")))


def _examples() -> Iterator[Example]:
    for block in _BLOCK.findall(PAGE.read_text()):
        for command, output in _COMMAND.findall(block):
            yield Example(command, output)


def test_the_page_runs(cli: Any) -> None:
    folder = cli.folder / "bin"
    folder.mkdir()
    script = folder / "muniment"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -W error -m muniment "$@"\n')
    script.chmod(0o755)
    environment = {**cli.environment, "PATH": f"{folder}:{cli.environment['PATH']}"}
    examples = list(_examples())
    assert len(examples) > 25
    for example in examples:
        if example.command.startswith("export "):
            name, _, value = example.command.removeprefix("export ").partition("=")
            environment[name] = value
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", example.command],
            cwd=cli.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (example.command, done.stderr)
        remarks = [line for line in done.stderr.splitlines() if not line.startswith("began a new archive")]
        shown = "\n".join([*done.stdout.splitlines(), *remarks])
        if example.output:
            assert re.fullmatch(example.pattern, shown, re.DOTALL), (example.command, shown)


def _parameters() -> Iterator[tuple[str, str]]:
    command = build_command()
    for name, sub in command.commands.items():
        for parameter in sub.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    yield name, option


@pytest.mark.parametrize("name", list(build_command().commands))
def test_every_command_is_on_the_page(name: str) -> None:
    assert re.search(rf"^## .*`muniment {name}`", PAGE.read_text(), re.MULTILINE) or name == "demo"


def test_every_option_is_on_the_page_or_explains_itself() -> None:
    page = PAGE.read_text()
    plain = {"--source", "--actor", "--summary", "--media-type"}  # fields of events, named as there
    missing = {option for _, option in _parameters() if f"{option}" not in page} - plain
    assert not missing


def test_every_exit_code_is_on_the_page() -> None:
    rows = set(map(int, re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)))
    named = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert rows == named
