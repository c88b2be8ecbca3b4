"""The outermost edge: arguments in, an exit code out, every error as one line on standard error."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, cast

import typer
from pydantic import ValidationError

from muniment.cli import exits
from muniment.cli.app import build_command
from muniment.cli.text import one_line, reasons_of
from muniment.errors import MunimentError

# The class of what the argument parser raises. Typer exports only this leaf of it, and where the rest lives differs
# between its versions (its own copy of click, or click).
_ParserError: Final = cast("type[Exception]", typer.BadParameter.__mro__[1])


def run(arguments: Sequence[str]) -> int:
    """Run a command; its exit code. Nothing is raised."""
    _prepare_streams()
    code = _run_guarded(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _lost_io(error)
    return code


def _run_guarded(arguments: Sequence[str]) -> int:
    try:
        return _invoke(arguments)
    except typer.Exit as exit_:
        return exit_.exit_code
    except _ParserError as error:
        return _fail("usage", f"{_parser_message(error)} (see {_command_path(error)} --help)", exits.USAGE)
    except MunimentError as error:
        return _fail(error.code, str(error), exits.exit_code_of(type(error)))
    except ValidationError as error:
        return _fail("usage", reasons_of(error), exits.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", "interrupted", exits.INTERRUPTED)
    except OSError as error:
        return _lost_io(error)
    except Exception as error:  # noqa: BLE001  # the outermost edge: what nobody foresaw is a bug, and said to be one
        return _bug(error)


def _invoke(arguments: Sequence[str]) -> int:
    command = build_command()
    with command.make_context("muniment", list(arguments)) as context:
        code = command.invoke(context)
    return code if isinstance(code, int) else exits.OK


def _prepare_streams() -> None:
    """Show what the terminal's encoding cannot say as an escape, instead of failing in the middle of a list."""
    # A stream that was closed before this process began is None: write nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # open as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _fail(code: str, message: str, exit_code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout)
    with suppress(OSError):
        sys.stderr.write(f"error[{code}]: {one_line(message)}\n")
    return exit_code


def _parser_message(error: Exception) -> str:
    format_message = getattr(error, "format_message", None)
    return str(error) if format_message is None else str(format_message()).rstrip(".")


def _command_path(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return "muniment" if context is None else str(context.command_path)


def _lost_io(error: OSError) -> int:
    """The reader of the output went away, which is its right; or the disk under it, or under a file, gave up."""
    if error.errno in (errno.EPIPE, errno.EINVAL) and error.filename is None:
        _silence(sys.stdout)
        return exits.BROKEN_PIPE
    return _fail("io", str(error), exits.IO)


def _silence(stream: object) -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush does not fail too."""
    fileno = getattr(stream, "fileno", None)
    if fileno is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, fileno())
        os.close(nowhere)


def _bug(error: Exception) -> int:
    traceback.print_exception(error, file=sys.stderr)
    message = f"{type(error).__name__}: {error} (this is a bug of muniment: please report it with the lines above)"
    return _fail("bug", message, exits.BUG)
