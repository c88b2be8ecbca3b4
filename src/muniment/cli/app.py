"""The commands, and the parser that is made of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from muniment.cli import (
    add,
    audit_report,
    clean,
    conformance,
    delete,
    demo,
    doctor,
    erase,
    forget,
    index,
    log,
    portable,
    rebuild,
    receipt,
    reindex,
    replay,
    scopes,
    search,
    show,
    stats,
    sweep,
    verify,
)


def build_command() -> Any:
    """The whole command: the parser of its arguments, ready to invoke."""
    # Plain help: the same in a terminal, in a pipe and in the documentation, and no second of imports for it.
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(_start)
    for command in (
        demo.demo,
        add.add,
        log.log,
        show.show,
        search.search,
        index.index,
        replay.replay,
        delete.delete,
        forget.forget,
        erase.erase,
        sweep.sweep,
        clean.clean,
        scopes.scopes,
        stats.stats,
        verify.verify,
        rebuild.rebuild,
        reindex.reindex,
        doctor.doctor,
        audit_report.audit_report,
        conformance.conformance,
    ):
        app.command()(command)
    app.add_typer(_group("receipt", "Check what a receipt says.", receipt.verify))
    app.add_typer(
        _group(
            "portable",
            "Load, save, recall and show a portable memory.",
            portable.load,
            portable.save,
            portable.recall,
            portable.prompt,
        )
    )
    return typer.main.get_command(app)


def _group(name: str, summary: str, *commands: Callable[..., int | None]) -> typer.Typer:
    """Commands under a common word."""
    group = typer.Typer(name=name, help=summary, rich_markup_mode=None)
    for command in commands:
        group.command()(command)
    group.callback()(_nothing)
    return group


def _nothing() -> None:
    """A group keeps its word also where it has but one command."""


def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Memory for LLM agents that can be searched, proved and erased.

    Begin with `muniment demo`. Every command has --help.
    """
    if version:
        from muniment import __version__

        sys.stdout.write(f"muniment {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")
