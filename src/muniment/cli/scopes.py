"""`muniment scopes`: whose memory an archive holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final

import typer

from muniment.archive import Archive, ScopeInfo
from muniment.cli.opening import open_existing
from muniment.cli.options import ArchiveOption, JsonOption, LimitOption, TenantOption, cut_at
from muniment.cli.output import Column, Output
from muniment.cli.text import count_of, exact_time, short_time

COLUMNS: Final = (
    Column(name="tenant"),
    Column(name="subject"),
    Column(name="events", width=9, right=True),
    Column(name="last recorded (UTC)", width=20, style="dim"),
)


def scopes(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    erased: Annotated[
        bool, typer.Option("--erased", help="The ledgers of erased scopes, which have no name any more.")
    ] = False,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """List whose memory the archive holds.

    Plain lines have the fields tenant, subject, events, last recorded and ledger id, parted by tabs; the subject is
    empty for the unscoped shelf, and tenant and subject are for an erased scope.
    """
    out = Output(as_json=as_json)
    with open_existing(archive) as opened:
        number = cut_at(limit, watched=out.watched)
        remaining = _read(opened, tenant, erased)
        first = list(islice(remaining, number)) if out.watched else None
        if first:
            out.table(COLUMNS, map(_row, first))
        printed = len(first) if first is not None else _print_all(out, islice(remaining, number))
        more = 0 if number is None else sum(1 for _ in remaining)
    if more:
        out.note(f"… {count_of(more, 'scope')} more: --limit 0 shows all")
    elif not printed:
        where = "in this archive" if tenant is None else f"for tenant {tenant}"
        out.note(f"no scope was erased {where}" if erased else f"nothing was ever stored {where}")


def _read(archive: Archive, tenant: str | None, erased: bool) -> Iterator[ScopeInfo]:
    for each in archive.tenants() if tenant is None else (archive.tenant(tenant),):
        yield from each.scopes(erased=erased)


def _print_all(out: Output, infos: Iterator[ScopeInfo]) -> int:
    """Print them as they come; how many there were."""
    number = 0
    for info in infos:
        _print(out, info)
        number += 1
    return number


def _print(out: Output, info: ScopeInfo) -> None:
    recorded = exact_time(info.last_recorded_at)
    scope = info.scope
    if not out.as_json:
        out.record(scope and scope.tenant, scope and scope.subject, info.num_events, recorded, info.ledger_id)
        return
    out.json(
        {
            "tenant": scope and scope.tenant,
            "subject": scope and scope.subject,
            "num_events": info.num_events,
            "last_recorded_at": recorded or None,
            "erased_at": exact_time(info.erased_at) or None,
            "ledger_id": info.ledger_id,
        }
    )


def _row(info: ScopeInfo) -> tuple[str, ...]:
    scope = info.scope
    tenant, subject = ("(erased)", info.ledger_id) if scope is None else (scope.tenant, scope.subject or "(unscoped)")
    return tenant, subject, f"{info.num_events:,}", short_time(info.last_recorded_at)
