"""What holds for every command: exit codes, one line for an error, nothing created by reading, pipes that break."""

from __future__ import annotations

import inspect
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment import errors
from muniment.cli import edge, exits
from muniment.model.event import Message

ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.MunimentError)]
COMMANDS = [
    "demo",
    "add",
    "log",
    "show",
    "search",
    "index",
    "replay",
    "delete",
    "forget",
    "erase",
    "sweep",
    "clean",
    "scopes",
    "stats",
    "verify",
    "rebuild",
    "reindex",
    "doctor",
    "audit-report",
    "receipt",
    "portable",
]
READING = [
    ["log"],
    ["log", "--follow"],
    ["show", "0"],
    ["show", "00000000-0000-4000-8000-000000000000"],
    ["replay"],
    ["search", "x"],
    ["search", "x", "--all"],
    ["delete", "0", "--reason", "x"],
    ["forget", "0"],
    ["erase", "--yes"],
    ["sweep", "--action", "erase"],
    ["clean"],
    ["index"],
    ["audit-report"],
    ["portable", "save", "x.json"],
    ["portable", "recall", "x"],
    ["portable", "prompt"],
    ["rebuild"],
    ["reindex", "--embedder", "local"],
    ["scopes"],
    ["stats"],
    ["verify"],
]

# --- The table --------------------------------------------------------------------------------------------------------


def test_every_error_has_an_exit_code() -> None:
    assert set(exits.EXIT_CODES) == set(ERRORS)


@pytest.mark.parametrize("kind", ERRORS)
def test_a_class_that_is_not_in_the_table_has_the_code_of_the_nearest_above(kind: type[errors.MunimentError]) -> None:
    assert exits.exit_code_of(type("Newer", (kind,), {})) == exits.EXIT_CODES[kind] == exits.exit_code_of(kind)


def test_retryable_errors_are_told_apart() -> None:
    assert exits.exit_code_of(errors.StorageBusyError) == 75
    assert not any(code in (exits.OK, exits.PROBLEM) for code in exits.EXIT_CODES.values())


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_is_one_line_and_its_code(
    kind: type[errors.MunimentError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = kind.__new__(kind)
    errors.MunimentError.__init__(error, "first\nsecond \x1b[31m")
    assert _run_raising(error, monkeypatch) == exits.exit_code_of(kind)
    captured = capsys.readouterr()
    assert captured.err == f"error[{kind.code}]: first\\nsecond \\x1b[31m\n"
    assert captured.out == ""


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_raising(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr().err == "error[interrupted]: interrupted\n"


def test_an_unforeseen_error_says_that_it_is_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_raising(RuntimeError("boom"), monkeypatch) == 70
    *trace, last = capsys.readouterr().err.splitlines()
    assert trace[0].startswith("Traceback")
    assert last.startswith("error[bug]: RuntimeError: boom (this is a bug of muniment: please report it")


def test_a_file_that_fails_is_no_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run_raising(OSError(28, "No space left on device", "x"), monkeypatch) == 74
    assert capsys.readouterr().err == "error[io]: [Errno 28] No space left on device: 'x'\n"


def _run_raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    def fail(_arguments: object) -> int:
        raise error

    monkeypatch.setattr(edge, "_invoke", fail)
    return edge.run([])


# --- Starting ---------------------------------------------------------------------------------------------------------


def test_version(cli: Any) -> None:
    assert cli.ok("--version").out == f"muniment {muniment.__version__}\n"
    assert cli.ok("--version", "log").out == f"muniment {muniment.__version__}\n"


def test_asking_for_the_version_loads_no_parser_and_no_tables() -> None:
    script = (
        "import sys; sys.argv = ['muniment', '--version']; from muniment.cli import main; main();"
        "print(sorted(name for name in ('typer', 'rich', 'muniment.cli.app') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_piped_command_loads_no_tables(archive: Path) -> None:
    with muniment.open(archive) as opened:
        opened.memory("default", tenant="default").remember("x")
    script = (
        f"import sys; sys.argv = ['muniment', 'log', '-a', {str(archive)!r}]; from muniment.cli import main; main();"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_the_command_adds_little_to_the_engine() -> None:
    """The time that `muniment --version` takes is that of `import muniment`; CPU time, the best of several."""
    engine = min(_cpu_s("-c", "import muniment") for _ in range(3))
    command = min(_cpu_s("-m", "muniment", "--version") for _ in range(3))
    assert command < engine + 0.1


def _cpu_s(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_no_command_is_help(cli: Any) -> None:
    result = cli.ok()
    assert result.lines[0].startswith("Usage: muniment")
    assert all(f"  {command} " in result.out for command in COMMANDS)
    assert "..." not in result.out.replace("[ARGS]...", "")  # no summary is cut


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(inside: Any, command: str) -> None:
    result = inside.ok(command, "--help")
    assert result.lines[0].startswith(f"Usage: muniment {command}")
    assert "\x1b" not in result.out
    assert max(map(len, result.lines)) <= 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["log"], "error[usage]: which archive? give --archive PATH or set MUNIMENT_ARCHIVE"),
        (["log", "-a", ":memory:"], "error[usage]: :memory:: an archive in memory ends with the command: give a path"),
        (
            ["log", "-a", "memory://"],
            "error[usage]: memory://: an archive in memory ends with the command: give a path",
        ),
        (["add", "x", "-a", "mysql://x"], "error[unsupported]: mysql:// is not a storage"),
        (["log", "-a", "a.db", "-s", "x", "--unscoped"], "error[usage]: --unscoped and --subject exclude each other"),
        (["log", "-a", "a.db", "-s", ""], "error[usage]: subject must not be empty"),
        (["log", "-a", "a.db", "-t", "x" * 257], "error[limit_exceeded]: tenant is over its limit: 257 given"),
    ],
)
def test_mistakes_are_named_on_one_line(inside: Any, arguments: list[str], message: str) -> None:
    with muniment.open(inside.folder / "a.db"):
        pass
    result = inside.run(*arguments)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith(message)


@pytest.mark.parametrize(
    ("arguments", "named", "where"),
    [
        (["xyzzy"], "xyzzy", "muniment"),
        (["log", "--xyzzy"], "--xyzzy", "muniment log"),
        (["log", "--limit", "x"], "--limit", "muniment log"),
        (["log", "--limit", "-1"], "--limit", "muniment log"),
        (["show"], "EVENT", "muniment show"),
        (["delete", "0"], "--reason", "muniment delete"),
    ],
)
def test_what_the_parser_refuses_is_one_line_too(inside: Any, arguments: list[str], named: str, where: str) -> None:
    result = inside.run(*arguments)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith("error[usage]: ")
    assert named in line
    assert line.endswith(f"(see {where} --help)")


def test_the_archive_can_come_from_the_environment(cli: Any, archive: Path) -> None:
    assert cli.run("add", "x", MUNIMENT_ARCHIVE="a.db").code == 0
    assert len(cli.ok("log", MUNIMENT_ARCHIVE=f"sqlite:///{archive}").records) == 1
    assert cli.run("log", "-a", "other.db", MUNIMENT_ARCHIVE="a.db").code == 5


# --- Files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_reading_creates_nothing(inside: Any, arguments: list[str]) -> None:
    result = inside.run(*arguments, "-a", "missing.db")
    assert result.code == 5
    assert result.err.startswith("error[storage_unavailable]: ")
    assert len(result.err.splitlines()) == 1
    assert list(inside.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "code", "error"),
    [("text", 5, "storage"), ("other", 5, "storage"), ("newer", 5, "schema_mismatch"), ("damaged", 6, "integrity")],
)
def test_a_file_that_is_refused_is_left_as_it_was(inside: Any, archive: Path, name: str, code: int, error: str) -> None:
    _spoil(archive, name)
    before = archive.read_bytes()
    for arguments in (["log"], ["add", "x"], ["stats"]):
        result = inside.run(*arguments, "-a", archive)
        assert result.code == code
        assert result.err.startswith(f"error[{error}]: {archive}")
        assert len(result.err.splitlines()) == 1
    assert archive.read_bytes() == before


def _spoil(path: Path, how: str) -> None:
    with muniment.open(path) as opened:
        opened.memory("default", tenant="default").add_many(
            [Message(speaker="a", content=f"message {number} " * 20) for number in range(200)]
        )
    content = bytearray(path.read_bytes())
    if how == "text":
        content = bytearray(b"no database, but long enough to have a header " * 10)
    elif how == "other":
        content[68:72] = b"ELSE"
    elif how == "newer":
        content[60:64] = (999).to_bytes(4)
    else:
        content[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(content)


# --- Pipes ------------------------------------------------------------------------------------------------------------


def test_a_reader_may_go_away(cli: Any, archive: Path) -> None:
    with muniment.open(archive) as opened:
        opened.memory("default", tenant="default").add_many(
            [Message(speaker="a", content=f"message {number} " * 20) for number in range(5_000)]
        )
    for extra in ([], ["--json"], ["--follow"]):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "muniment", "log", "-a", str(archive), *extra],
            env=cli.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(60) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_is_lost_is_an_error(cli: Any, archive: Path) -> None:
    with muniment.open(archive) as opened:
        opened.memory("default", tenant="default").remember("x")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "muniment", "log", "-a", str(archive)],
            env=cli.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 74
    assert done.stderr == b"error[io]: [Errno 28] No space left on device\n"


def test_closed_streams_are_no_crash(cli: Any, archive: Path) -> None:
    with muniment.open(archive) as opened:
        opened.memory("default", tenant="default").remember("x")
    command = f"{sys.executable} -m muniment"
    for script, code in ((f"{command} log -a a.db >&- 2>&-", 0), (f"{command} add - -a a.db <&- 2>/dev/null", 2)):
        done = subprocess.run(["bash", "-c", script], cwd=cli.folder, env=cli.environment, check=False)
        assert done.returncode == code


def test_an_ascii_terminal_gets_escapes(cli: Any, archive: Path) -> None:
    with muniment.open(archive) as opened:
        stored = opened.memory("default", tenant="default").remember("caf\u00e9 \u6771\u4eac \U0001f600")
    result = cli.ok("log", "-a", archive, PYTHONIOENCODING="ascii")
    assert result.records[0][-1] == "caf\\xe9 \\u6771\\u4eac \\U0001f600"
    (event,) = cli.ok("log", "-a", archive, "--json", PYTHONIOENCODING="ascii").json
    assert muniment.event_from_dict(event) == stored
