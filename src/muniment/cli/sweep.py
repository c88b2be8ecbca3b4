"""`muniment sweep`: enforce how long things may be kept; made for cron."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from muniment.cli.opening import open_existing
from muniment.cli.options import ArchiveOption, JsonOption, TenantOption
from muniment.cli.output import Output
from muniment.cli.receipts import LaterOption, ReceiptOption, code_of, json_of, receipt_file, step_of
from muniment.cli.text import count_of, name_of
from muniment.cli.times import parse_time
from muniment.errors import UsageError
from muniment.model.receipt import Receipt, ScopeSweep, SweepReport
from muniment.model.scope import Scope


def sweep(
    action: Annotated[
        str, typer.Option("--action", metavar="delete|erase", help="Hide what has expired, or destroy it.")
    ],
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="What has expired by then.  [default: now]")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do, and do nothing.")] = False,
    recalls_before: Annotated[
        str | None,
        typer.Option("--recalls-before", metavar="TIME", help="Also destroy what reads recorded before then held."),
    ] = None,
    later: LaterOption = False,
    receipt: ReceiptOption = None,
    as_json: JsonOption = False,
) -> int:
    """Hide or destroy what may be kept no longer, in all scopes.

    `delete` takes what is visible and past its --retain-until, `erase` also what was deleted or superseded. Plain
    lines, one for each scope in which something had expired, have the fields tenant, subject, expired, reads, state
    and receipt id. Run it again as often as you like: what is done is done once.
    """
    out = Output(as_json=as_json)
    if action not in ("delete", "erase"):
        raise UsageError(f"--action is delete or erase, not {action!r}")
    moment = parse_time("--now", now) or datetime.now(UTC)
    before = parse_time("--recalls-before", recalls_before)
    with open_existing(archive) as opened, receipt_file(receipt) as write:
        report = opened.sweep(
            moment,
            action,
            dry_run,
            tenant=tenant,
            recalls_before=before,
            clean=step_of(later),
        )
        receipts = _receipts(report)
        if receipts:
            write(receipts)
    if receipt is not None and not receipts:
        receipt.unlink()
        out.note(f"nothing was destroyed: {receipt} is not written")
    _print(out, report)
    return code_of(receipts)


def _receipts(report: SweepReport) -> list[Receipt]:
    return [scope.receipt for scope in report.scopes if scope.receipt is not None]


def _print(out: Output, report: SweepReport) -> None:
    for scope in report.scopes:
        _print_scope(out, scope)
    done = ("would be " if report.dry_run else "") + {"delete": "hidden", "erase": "destroyed"}[report.action]
    reads = sum(len(scope.recalls) for scope in report.scopes)
    also = f", and the content of {count_of(reads, 'read')} destroyed" if reads else ""
    out.note(f"{count_of(report.num_items, 'item')} of {count_of(len(report.scopes), 'scope')} {done}{also}")


def _print_scope(out: Output, scope: ScopeSweep) -> None:
    receipt = scope.receipt
    if out.as_json:
        out.json(
            {
                "tenant": scope.tenant,
                "subject": scope.subject,
                "expired": [str(one) for one in scope.expired],
                "recalls": [str(one) for one in scope.recalls],
                "receipt": None if receipt is None else json_of(receipt),
            }
        )
    elif out.watched:
        counts = f"{count_of(len(scope.expired), 'item')} expired, {count_of(len(scope.recalls), 'old read')}"
        state = f"  {receipt.state}" if receipt else ""
        out.line((name_of(Scope(scope.tenant, scope.subject)), "bold"), f"  {counts}{state}")
    else:
        state, receipt_id = (receipt.state, receipt.id) if receipt else (None, None)
        out.record(scope.tenant, scope.subject, len(scope.expired), len(scope.recalls), state, receipt_id)
