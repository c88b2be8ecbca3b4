"""Receipts as commands print, keep and read them, and the options of every command that destroys."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from pydantic import JsonValue

from muniment.archive import Archive
from muniment.archive.receipts import check_receipt
from muniment.cli import exits
from muniment.cli.output import Output
from muniment.cli.text import count_of, one_line
from muniment.errors import LimitExceededError, NotFoundError, UsageError
from muniment.model.event import KINDS
from muniment.model.receipt import CleanReport, Receipt

LaterOption = Annotated[
    bool, typer.Option("--later", help="Leave the files to `muniment clean`: once for many erasures.")
]
ReceiptOption = Annotated[
    Path | None, typer.Option("--receipt", metavar="FILE", help="Write the receipt as JSON into a new file.")
]
ReasonOption = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; the receipt says it.")]
RequestedByOption = Annotated[str | None, typer.Option("--requested-by", metavar="NAME", help="Who asked for it.")]

FILE_BYTES_MAX: Final = 64 * 1024**2
"""Of a file of receipts: a receipt of 10,000 targets has half a megabyte."""

_STYLES: Final = {"clean": "bold green", "unreachable": "yellow", "pending": "bold yellow", "hidden": "yellow"}


def step_of(later: bool) -> Literal["now", "later"]:
    return "later" if later else "now"


# --- Printing ---------------------------------------------------------------------------------------------------------


def print_receipt(out: Output, receipt: Receipt, place: str) -> None:
    """Action, state, events, receipt id and ledger id; for a person, what was destroyed and how far that got."""
    if out.as_json:
        out.json(json_of(receipt))
    elif not out.watched:
        out.record(receipt.action, receipt.state, receipt.count, receipt.id, receipt.ledger_id)
    else:
        kinds = [count_of(receipt.counts[kind], kind) for kind in KINDS if receipt.counts.get(kind)]
        what = f": {', '.join(kinds)}" if kinds else ""
        state = (receipt.state, _STYLES[receipt.state])
        out.line(f"destroyed {count_of(receipt.count, 'event')} of {one_line(place)}{what}  ", state)
        out.line((f"  receipt {receipt.id}", "dim"))
    if receipt.blocked is not None:
        out.note(f"the content is unreachable, but not cleaned from the files yet: {receipt.blocked}")
        out.note("run `muniment clean` when that is over")
    for copy in receipt.copies:
        out.note(f"this copy may still hold the content, delete it yourself: {copy}")


def code_of(receipts: Iterable[Receipt]) -> int:
    """75 while a clean step that was tried has to be tried again."""
    return exits.BUSY if any(receipt.state == "pending" for receipt in receipts) else exits.OK


def json_of(receipt: Receipt) -> JsonValue:
    value: JsonValue = json.loads(receipt.to_json())
    return value


# --- Files ------------------------------------------------------------------------------------------------------------


@contextmanager
def receipt_file(path: Path | None) -> Generator[Callable[[Sequence[Receipt]], None]]:
    """What writes receipts into a new file, which is taken before anything is destroyed and left only when written.

    One receipt is a JSON object over several lines, of several each is a line.

    Raises: UsageError for a file that exists, or that cannot be made.
    """
    if path is None:
        yield _write_nothing
        return
    try:
        path.open("x").close()
    except FileExistsError:
        raise UsageError(f"{path} exists: a receipt is written into a new file; nothing was destroyed") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; nothing was destroyed") from None
    try:
        yield lambda receipts: write_receipts(path, receipts)
    except BaseException:
        if not path.stat().st_size:
            path.unlink()
        raise


def write_receipts(path: Path, receipts: Sequence[Receipt]) -> None:
    """Put the receipts into the file, in the place of what it held, durably and in one step."""
    texts = [receipts[0].to_json()] if len(receipts) == 1 else [receipt.model_dump_json() for receipt in receipts]
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as file:
            file.writelines(text + "\n" for text in texts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_receipts(path: Path) -> list[Receipt]:
    """The receipts of a file: one as a JSON object, or several as JSON lines.

    Raises: NotFoundError; UsageError for a file that holds anything else; LimitExceededError above 64 MiB.
    """
    text = _read(path)
    lines = text.splitlines()
    texts = lines if lines and all(line.startswith("{") and line.endswith("}") for line in lines) else [text]
    try:
        return [Receipt.from_json(text) for text in texts]
    except UsageError:
        raise UsageError(f"{path} holds no receipt, as --receipt writes them") from None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise LimitExceededError(str(path), limit=FILE_BYTES_MAX, given=path.stat().st_size, unit="bytes")
        return content.decode()
    except FileNotFoundError:
        raise NotFoundError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} holds no receipt: it is not UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def complete_file(path: Path, receipts: Sequence[Receipt], archive: Archive, report: CleanReport) -> None:
    """Bring a file of receipts up to what a clean step left: nothing of what is not pending any more.

    That step may not have been the first since: another may have completed the receipt unseen.
    """
    ours = [receipt.id for receipt in receipts if _is_settled(receipt, archive, report)]
    known = replace(report, completed=(*report.completed, *ours))
    completed = [receipt.completed(known) if receipt.state in _OPEN else receipt for receipt in receipts]
    if completed != list(receipts):
        write_receipts(path, completed)


_OPEN: Final = ("unreachable", "pending")


def _is_settled(receipt: Receipt, archive: Archive, report: CleanReport) -> bool:
    return bool(report) and receipt.id not in report.pending and check_receipt(archive, receipt).ok


def _write_nothing(_receipts: Sequence[Receipt]) -> None:
    """Nobody asked for a file."""
