"""`muniment clean`: leave no byte in the files of what was erased before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muniment.archive.cleaning import CLEAN_WAIT_S
from muniment.cli import exits
from muniment.cli.opening import open_existing
from muniment.cli.options import ArchiveOption, JsonOption
from muniment.cli.output import Output
from muniment.cli.receipts import complete_file, read_receipts
from muniment.cli.text import count_of, size_of
from muniment.model.receipt import CleanReport


def clean(
    archive: ArchiveOption = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="For readers to let go of what they look at.")
    ] = CLEAN_WAIT_S,
    receipt: Annotated[
        list[Path] | None, typer.Option("--receipt", metavar="FILE", help="A receipt to complete; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Rewrite the files without a byte of what was erased.

    Writers wait meanwhile, about 5 s per GB. Plain lines: completed and pending with receipt ids, then size with the
    bytes before and after. The exit code is 75 if something held it back; what was erased stays unreachable.
    """
    out = Output(as_json=as_json)
    files = [(path, read_receipts(path)) for path in receipt or ()]
    with open_existing(archive) as opened:
        report = opened.clean(wait_s=wait)
        for path, receipts in files:
            complete_file(path, receipts, opened, report)
    _print(out, report)
    if report.blocked is not None:
        out.note(f"not clean yet: {report.blocked}")
    for copy in report.copies:
        out.note(f"this copy may still hold what was erased, delete it yourself: {copy}")
    return exits.OK if report else exits.BUSY


def _print(out: Output, report: CleanReport) -> None:
    if out.as_json:
        out.json(
            {
                "completed": [str(one) for one in report.completed],
                "pending": [str(one) for one in report.pending],
                "blocked": report.blocked,
                "size_before": report.size_before,
                "size_after": report.size_after,
                "copies": list(report.copies),
            }
        )
    elif out.watched:
        done = f"{count_of(len(report.completed), 'erasure')} completed, {len(report.pending)} pending"
        out.line(f"{done}; the files have {size_of(report.size_after)}, before {size_of(report.size_before)}")
    else:
        for name, ids in (("completed", report.completed), ("pending", report.pending)):
            for one in ids:
                out.record(name, one)
        out.record("size", report.size_before, report.size_after)
