"""`muniment receipt verify`: whether an archive bears out a receipt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muniment.archive.receipts import ReceiptCheck, check_receipt
from muniment.cli import exits
from muniment.cli.opening import open_existing
from muniment.cli.options import ArchiveOption, JsonOption
from muniment.cli.output import Output
from muniment.cli.receipts import read_receipts
from muniment.cli.text import count_of, short_time


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What --receipt wrote.", show_default=False)],
    archive: ArchiveOption = None,
    as_json: JsonOption = False,
) -> int:
    """Check that an archive bears out what a receipt says.

    The ledger is there; its tree had the heads before and after, recomputed from the envelopes; an erasure between
    the two names every target; and no target has content. Plain lines have the fields ok or bad, receipt id, action,
    whether it waits for a clean step, events and problem. The exit code is 1 if anything is not so.
    """
    out = Output(as_json=as_json)
    receipts = read_receipts(file)
    with open_existing(archive) as opened:
        checks = [check_receipt(opened, receipt) for receipt in receipts]
    for check in checks:
        _print(out, check)
    return exits.OK if all(checks) else exits.PROBLEM


def _print(out: Output, check: ReceiptCheck) -> None:
    receipt = check.receipt
    waits = "waiting" if check.waits else "settled"
    if out.as_json:
        out.json(
            {
                "ok": check.ok,
                "receipt": str(receipt.id),
                "action": receipt.action,
                "waits": check.waits,
                "count": receipt.count,
                "problems": list(check.problems),
            }
        )
    elif out.watched:
        _print_watched(out, check)
    else:
        for problem in check.problems or (None,):
            out.record("ok" if check.ok else "bad", receipt.id, receipt.action, waits, receipt.count, problem)


def _print_watched(out: Output, check: ReceiptCheck) -> None:
    receipt = check.receipt
    what = f"{receipt.action} of {count_of(receipt.count, 'event')}, {short_time(receipt.at)}"
    for problem in check.problems:
        out.line(("bad  ", "bold red"), f"{what}: {problem}")
    if check.ok:
        out.line(("ok   ", "bold green"), f"{what}: the archive bears it out")
    if check.waits:
        out.line(("     bytes of it may stand in the files: run `muniment clean`", "yellow"))
