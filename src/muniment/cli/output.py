"""Where a command writes: records to standard output, everything said about them to standard error.

A person watches where standard output is a terminal, or where FORCE_COLOR is set; then tables and colours, sized to the
window. Otherwise plain lines, fields parted by tabs: one record a line, no colour, no boxes, the same on every machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TextIO

from pydantic import JsonValue

from muniment.cli.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

Part = str | tuple[str, str]
"""A piece of a line: text, or text with a style that a terminal shows."""

Progress = Callable[[int, int | None, str], None]
"""Told how much is done, how much there is, where that is known, and how to say it."""

TABLE_ROWS: Final = 200
"""Rows of a table that are held back to be printed at once."""

_CELL_CHARS_MAX: Final = 500
"""Characters of a cell that are laid out at all: more than a window is wide, less than a document is long."""

_UTF_8: Final = frozenset({"utf-8", "utf8", "utf-8-sig"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; a flexible one takes what is left and ends in an ellipsis where it is cut."""

    name: str
    width: int | None = None
    flexible: bool = False
    right: bool = False
    style: str = ""


class Output:
    """The output of one command."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.watched = not as_json and _is_watched(sys.stdout)

    # --- Records ------------------------------------------------------------------------------------------------------

    def json(self, value: JsonValue) -> None:
        """One line of JSON."""
        sys.stdout.write(json.dumps(value, ensure_ascii=not _is_utf_8(sys.stdout)) + "\n")

    def record(self, *fields: object) -> None:
        """One plain line, its fields parted by tabs; None is an empty field."""
        sys.stdout.write("\t".join("" if field is None else one_line(str(field)) for field in fields) + "\n")

    def line(self, *parts: Part) -> None:
        """One line for a person; styles show in a terminal only."""
        if self.watched:
            self._print_styled(self._console, parts)
        else:
            sys.stdout.write(_plain(parts) + "\n")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, header: bool = True) -> None:
        """A table for a person who watches."""
        from rich.table import Table
        from rich.text import Text

        table = Table(
            box=None,
            show_header=header,
            header_style="dim",
            pad_edge=False,
            padding=(0, 2, 0, 0),
            expand=any(column.flexible for column in columns),
        )
        for column in columns:
            table.add_column(
                column.name,
                justify="right" if column.right else "left",
                style=column.style or None,
                width=column.width,
                ratio=1 if column.flexible else None,
                no_wrap=True,
                overflow="ellipsis",
            )
        for row in rows:
            table.add_row(*(Text(_cell(cell)) for cell in row))
        self._console.print(table)

    def flush(self) -> None:
        """Hand over what was written: a reader of a pipe waits for it."""
        sys.stdout.flush()

    # --- Remarks ------------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """A remark about the output, which is no part of it."""
        sys.stderr.write(one_line(text) + "\n")
        sys.stderr.flush()

    @contextmanager
    def progress(self, *, typing: bool = False) -> Generator[Progress]:
        """A bar on standard error while a person watches that and is not `typing`; it is gone when the block ends."""
        if typing or not sys.stderr.isatty():
            yield _ignore
            return
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=None)

            def tell(done: int, total: int | None, text: str) -> None:
                bar.update(task, completed=done, total=total, description=text)

            yield tell

    # --- Inside -------------------------------------------------------------------------------------------------------

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        return Console(force_terminal=True, highlight=False, markup=False, emoji=False)

    def _print_styled(self, console: Console, parts: Sequence[Part]) -> None:
        from rich.text import Text

        console.print(Text.assemble(*parts), soft_wrap=True)


def _cell(text: str) -> str:
    return one_line(text if len(text) <= _CELL_CHARS_MAX else text[:_CELL_CHARS_MAX] + "…")


def _plain(parts: Sequence[Part]) -> str:
    return "".join(part if isinstance(part, str) else part[0] for part in parts)


def _is_watched(stream: TextIO) -> bool:
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def _is_utf_8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower() in _UTF_8


def _ignore(_done: int, _total: int | None, _text: str) -> None:
    """Nobody watches."""
