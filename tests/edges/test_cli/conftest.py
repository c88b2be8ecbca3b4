"""The command as a real process, with pipes and in a real terminal of 80 columns.

Starting a process takes half a second of CPU, so what is decided inside the command, and not by its process, its
streams or its signals, is tested with `inside`: the same calls, in this process.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import queue
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from muniment.cli.edge import run

DEADLINE_S: Final = 60
COMMAND: Final = [sys.executable, "-W", "error", "-m", "muniment"]
_OURS: Final = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "MUNIMENT_ARCHIVE", "PYTHONIOENCODING")
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def records(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.split("\n")[:-1]]

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.out.split("\n")[:-1]]

    def counts(self) -> dict[str, int]:
        """The records of `add -`."""
        return {name: int(number) for name, number in self.records}


@dataclass
class Running:
    """A command that goes on; its lines as they come."""

    process: subprocess.Popen[bytes]
    _lines: queue.Queue[str | None] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.decode())
        self._lines.put(None)

    def next_line(self) -> str:
        """The next line, once it is there."""
        line = self._lines.get(timeout=DEADLINE_S)
        assert line is not None, "the command ended"
        return line

    def interrupt(self) -> Result:
        """Ctrl-C, and what is left to come."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        code = self.process.wait(DEADLINE_S)
        err = self.process.stderr.read().decode()
        rest: list[str] = []
        while (line := self._lines.get(timeout=DEADLINE_S)) is not None:
            rest.append(line)
        return Result(code, "".join(rest), err)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_reach_commands() -> Iterator[None]:
    """A shell starts what runs in the background deaf to Ctrl-C, and its children inherit that: hear it again here."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Cli:
    """Runs `muniment` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if name not in _OURS}
        self._running: list[Running] = []

    def run(self, *arguments: object, stdin: bytes | str | None = None, **environment: str) -> Result:
        """Run it with pipes, warnings as errors; stdin None is an empty one."""
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **environment},
            input=stdin.encode() if isinstance(stdin, str) else stdin or b"",
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *arguments: object, stdin: bytes | str | None = None, **environment: str) -> Result:
        """Run it; it succeeds and has nothing to say."""
        result = self.run(*arguments, stdin=stdin, **environment)
        assert (result.code, result.err) == (0, "")
        return result

    def start(self, *arguments: object, stdin: int = subprocess.DEVNULL) -> Running:
        """Start it and let it go on."""
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._running.append(running := Running(process))
        return running

    def watch(self, *arguments: object, stdin: bytes = b"", columns: int = 80, **environment: str) -> Result:
        """Run it in a terminal; what a person sees of both streams, escape sequences included, is `out`."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, "TERM": "xterm-256color", **environment},
            stdin=subprocess.PIPE,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        shown = b"".join(_read_terminal(master))
        os.close(master)
        return Result(process.wait(DEADLINE_S), shown.decode().replace("\r\n", "\n"), "")

    def close(self) -> None:
        for running in self._running:
            if running.process.poll() is None:
                running.process.kill()
            running.process.wait(DEADLINE_S)
            for stream in (running.process.stdin, running.process.stdout, running.process.stderr):
                if stream is not None:
                    stream.close()


class Inside(Cli):
    """The same, run in this process: for tables of cases."""

    def run(self, *arguments: object, stdin: bytes | str | None = None, **environment: str) -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as given:
            given.write(stdin.encode() if isinstance(stdin, str) else stdin or b"")
            given.seek(0)
            patch.chdir(self.folder)
            for name in _OURS:
                patch.delenv(name, raising=False)
            for name, value in environment.items():
                patch.setenv(name, value)
            for name, stream in (("stdin", io.TextIOWrapper(given)), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, stream)
            code = run([str(argument) for argument in arguments])
            out.flush()
            err.flush()
        return Result(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())  # type: ignore[attr-defined]


def _read_terminal(master: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(master, 65_536)
        except OSError:  # Linux says so when the last process at the other end is gone
            return
        if not piece:
            return
        yield piece


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    command = Cli(tmp_path)
    yield command
    command.close()


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


@pytest.fixture
def plain() -> Any:
    """A function that takes the escape sequences out of what a terminal was sent."""
    return lambda text: _ANSI.sub("", text)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Where the archive of a test lies."""
    return tmp_path / "a.db"
