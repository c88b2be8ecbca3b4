"""`muniment conformance`: whether the portable contract is kept, by this package or by somebody else's port."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import exits
from muniment.cli.options import JsonOption
from muniment.cli.output import Output
from muniment.cli.text import count_of, one_line
from muniment.errors import MunimentError, UsageError

if TYPE_CHECKING:
    from muniment.testing.portable import ConformanceReport


def conformance(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file of vectors.  [default: those of the package]")
    ] = None,
    port: Annotated[
        str | None,
        typer.Option("--port", metavar="MODULE:NAME", help="What opens a port: a callable without arguments."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Check the portable contract, on this package or on a port.

    The vectors run on plain stores. With --port they run on stores that are saved through the port, opened anew,
    loaded and compared after every step, and the laws for ports are checked too. Each call of NAME must open the same
    place, which has to be empty and is empty again afterwards; MODULE is also looked for in the current folder.

    Plain lines have the fields ok or bad, name and detail: one for each failure and a last one for the whole. The
    exit code is 1 if anything failed.
    """
    out = Output(as_json=as_json)
    report = _run(file, port)
    _print(out, report)
    return exits.OK if report.ok else exits.PROBLEM


def _run(file: Path | None, port: str | None) -> ConformanceReport:
    # Here, because no other command needs the suite.
    from muniment.testing.portable import run_conformance

    if port is not None and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return run_conformance(file, port)
    except MunimentError:
        raise
    except Exception as error:
        # What a port raises under test is a failure in the report; this was raised while it was imported or opened.
        if port is None:
            raise
        raise UsageError(f"the port {port} cannot be opened: {type(error).__name__}: {error}") from error


def _print(out: Output, report: ConformanceReport) -> None:
    for failure in report.failures:
        if out.as_json:
            out.json({"ok": False, "name": failure.name, "problem": failure.message})
        elif out.watched:
            out.line(("bad  ", "bold red"), (one_line(failure.name), "bold"), f"  {one_line(failure.message)}")
        else:
            out.record("bad", failure.name, failure.message)
    if out.as_json:
        out.json(
            {
                "ok": report.ok,
                "target": report.target,
                "num_vectors": report.vectors,
                "num_steps": report.steps,
                "groups": dict(report.groups),
                "port_laws": list(report.port_laws),
                "num_failures": len(report.failures),
            }
        )
    elif out.watched:
        out.line(
            ("ok   ", "bold green") if report.ok else ("bad  ", "bold red"),
            f"{one_line(report.target)}: {_sum_up(report)}",
        )
    else:
        out.record("ok" if report.ok else "bad", report.target, _sum_up(report))


def _sum_up(report: ConformanceReport) -> str:
    checked = f"{count_of(report.vectors, 'vector')}, {count_of(report.steps, 'step')}"
    laws = f", {count_of(len(report.port_laws), 'port law')}" if report.port_laws else ""
    return f"{checked}{laws}: {count_of(len(report.failures), 'failure') if report.failures else 'all kept'}"
