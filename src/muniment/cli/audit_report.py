"""`muniment audit-report`: what is wrong with the memories of a tenant, short of being damaged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import typer

from muniment.cli import exits
from muniment.cli.opening import open_existing
from muniment.cli.options import (
    DEFAULT_NAME,
    ArchiveOption,
    JsonOption,
    LimitOption,
    SubjectOption,
    TenantOption,
    UnscopedOption,
    cut_at,
    get_scope,
)
from muniment.cli.output import Output
from muniment.cli.text import count_of, name_of, one_line
from muniment.cli.times import parse_time
from muniment.health import KINDS, URGENT, Finding, FindingKind, HealthReport, Thresholds, examine

TITLES: Final[dict[FindingKind, str]] = {
    "secret": "likely secrets: `muniment forget` destroys them",
    "expired": "expired but kept: `muniment sweep` enforces it",
    "duplicate": "duplicates",
    "near_duplicate": "near duplicates",
    "never_recalled": "never recalled",
    "stale": "not recalled for long",
    "oversize": "oversize",
}
_DEFAULTS: Final = Thresholds()


def audit_report(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    now: Annotated[str | None, typer.Option("--now", metavar="TIME", help="Of the report.  [default: now]")] = None,
    stale_after: Annotated[
        int, typer.Option("--stale-after", min=0, metavar="DAYS", help="Not handed out for so long.")
    ] = _DEFAULTS.stale_after.days,
    unused_after: Annotated[
        int, typer.Option("--unused-after", min=0, metavar="DAYS", help="Never handed out in so long.")
    ] = _DEFAULTS.unused_after.days,
    similarity: Annotated[
        float, typer.Option("--similarity", min=0.1, max=1.0, metavar="SHARE", help="What near duplicates share.")
    ] = _DEFAULTS.similarity_min,
    max_chars: Annotated[
        int, typer.Option("--max-chars", min=1, metavar="N", help="Of a note or message.")
    ] = _DEFAULTS.note_chars_max,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> int:
    """Look for secrets, repetition and what nobody needs.

    Of a whole tenant, or with --subject or --unscoped of one scope. A secret itself is never printed, only its kind
    and place. Plain lines have the fields kind, tenant, subject, seq, id and detail. The exit code is 1 if there are
    likely secrets or expired content.
    """
    out = Output(as_json=as_json)
    only = get_scope(tenant, subject, unscoped) if subject is not None or unscoped else None
    thresholds = Thresholds(
        unused_after=timedelta(days=unused_after),
        stale_after=timedelta(days=stale_after),
        note_chars_max=max_chars,
        similarity_min=similarity,
    )
    moment = parse_time("--now", now) or datetime.now(UTC)
    with open_existing(archive) as opened:
        name = DEFAULT_NAME if tenant is None else tenant
        report = examine(opened, name, now=moment, only=only, thresholds=thresholds)
    if as_json:
        out.json(report.to_json())
    else:
        _print(out, report, cut_at(limit, watched=out.watched))
    return exits.OK if report else exits.PROBLEM


def _print(out: Output, report: HealthReport, limit: int | None) -> None:
    for kind in KINDS:
        findings = [finding for finding in report.findings if finding.kind == kind]
        if findings and out.watched:
            style = "bold red" if kind in URGENT else "bold yellow"
            out.line((f"{report.counts[kind]:>6,}  ", style), (TITLES[kind], "bold"))
        for finding in findings[:limit]:
            _print_one(out, finding)
        more = report.counts[kind] - len(findings[:limit])
        if more:
            out.note(f"… {count_of(more, f'{kind} finding')} more")
    found = sum(report.counts[kind] for kind in KINDS)
    read = f"{count_of(report.num_items, 'item')} of {count_of(report.num_scopes, 'scope')}"
    out.note(f"{read}: {count_of(found, 'finding') if found else 'nothing to tidy up'}")


def _print_one(out: Output, finding: Finding) -> None:
    scope = finding.scope
    if out.watched:
        out.line(("        " + one_line(name_of(scope)), "dim"), (f"  {finding.seq}", "cyan"), f"  {finding.detail}")
    else:
        out.record(finding.kind, scope.tenant, scope.subject, finding.seq, finding.event_id, finding.detail)
