"""`muniment verify`: whether what is stored is what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from muniment.archive import Archive
from muniment.cli import exits
from muniment.cli.opening import memory_of, open_existing
from muniment.cli.options import ArchiveOption, JsonOption, SubjectOption, TenantOption, UnscopedOption, get_scope
from muniment.cli.output import Output, Progress
from muniment.cli.text import count_of, name_of
from muniment.errors import NotFoundError
from muniment.model.report import ArchiveReport, VerifyReport
from muniment.model.scope import Scope


def verify(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    deep: Annotated[bool, typer.Option("--deep", help="Also let the storage check its own files.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Check that what is stored is what was written.

    Every digest and the hash tree of each ledger are recomputed; the exit code is 1 if one is not right. Without
    --tenant, --subject and --unscoped the whole archive is verified, with --tenant alone that tenant. Plain lines
    have the fields ok or bad, tenant, subject, events, root of the tree, first bad seq and problem.
    """
    out = Output(as_json=as_json)
    with open_existing(archive) as opened, out.progress() as progress:
        told = _told(progress)
        if subject is not None or unscoped:
            outcome = _verify_one(opened, get_scope(tenant, subject, unscoped), told, deep)
        else:
            outcome = _verify_all(opened, tenant, told, deep)
    _print(out, outcome)
    return exits.OK if outcome.report.ok else exits.PROBLEM


@dataclass(frozen=True, slots=True)
class _Outcome:
    report: ArchiveReport
    scopes: dict[str, Scope]
    """Ledger id -> whose it is, of the ledgers in the report."""
    deep: bool


def _verify_one(archive: Archive, scope: Scope, progress: Callable[[int, int], None], deep: bool) -> _Outcome:
    memory = memory_of(archive, scope)
    head = memory.head()
    if head is None:
        raise NotFoundError(f"nothing was ever stored in {name_of(scope)}")
    report = memory.verify(progress=progress)
    problems = tuple(archive.storage.check()) if deep else ()
    whole = ArchiveReport(((head.ledger_id, report),), 1, report.num_events, problems)
    return _Outcome(whole, {head.ledger_id: scope}, deep)


def _verify_all(archive: Archive, tenant: str | None, progress: Callable[[int, int], None], deep: bool) -> _Outcome:
    report = archive.verify(tenant=tenant, deep=deep, progress=progress)
    if tenant is not None and not report.num_ledgers:
        raise NotFoundError(f"nothing was ever stored for tenant {tenant}")
    wanted = {ledger_id for ledger_id, _ in report.ledgers}
    tenants = archive.tenants() if tenant is None else iter([archive.tenant(tenant)])
    infos = (info for each in tenants for info in each.scopes())
    scopes = {info.ledger_id: info.scope for info in infos if info.ledger_id in wanted and info.scope is not None}
    return _Outcome(report, scopes, deep)


def _told(progress: Progress) -> Callable[[int, int], None]:
    return lambda done, total: progress(done, total, f"{done:,} of {count_of(total, 'event')}")


def _print(out: Output, outcome: _Outcome) -> None:
    if out.as_json:
        _print_json(out, outcome)
    elif out.watched:
        _print_watched(out, outcome)
    else:
        _print_plain(out, outcome)


def _print_plain(out: Output, outcome: _Outcome) -> None:
    for ledger_id, report in outcome.report.ledgers:
        scope = outcome.scopes.get(ledger_id)
        out.record(
            "ok" if report.ok else "bad",
            scope and scope.tenant,
            scope and scope.subject,
            report.num_events,
            report.head and report.head.root,
            report.bad_seq,
            report.problem,
        )
    for problem in outcome.report.storage_problems:
        out.record("bad", None, None, None, None, None, problem)
    unlisted = outcome.report.num_ledgers - len(outcome.report.ledgers)
    if unlisted:
        out.note(f"… {count_of(unlisted, 'more good ledger')} not listed")


def _print_watched(out: Output, outcome: _Outcome) -> None:
    report = outcome.report
    for ledger_id, each in report.ledgers:
        if not each.ok:
            out.line(("bad  ", "bold red"), f"{_name(outcome, ledger_id)}: {_problem(each)}")
    for problem in report.storage_problems:
        out.line(("bad  ", "bold red"), f"storage: {problem}")
    checked = f"{count_of(report.num_ledgers, 'ledger')}, {count_of(report.num_events, 'event')}"
    if not report.ok:
        out.line(f"{checked} read: not all is what was written")
        return
    deep = "; the storage finds its files in order" if outcome.deep else ""
    out.line(("ok  ", "bold green"), f"{checked}: all is what was written{deep}")
    if len(report.ledgers) == 1 and (head := report.ledgers[0][1].head):
        out.line(("    tree root ", "dim"), head.root)


def _problem(report: VerifyReport) -> str:
    place = "" if report.bad_seq is None else f"event {report.bad_seq}: "
    return f"{place}{report.problem}"


def _name(outcome: _Outcome, ledger_id: str) -> str:
    scope = outcome.scopes.get(ledger_id)
    return f"ledger {ledger_id}" if scope is None else name_of(scope)


def _print_json(out: Output, outcome: _Outcome) -> None:
    """One object for each ledger that is listed, and one for the whole at the end."""
    for ledger_id, report in outcome.report.ledgers:
        scope = outcome.scopes.get(ledger_id)
        out.json(
            {
                "ok": report.ok,
                "tenant": scope and scope.tenant,
                "subject": scope and scope.subject,
                "ledger_id": ledger_id,
                "num_events": report.num_events,
                "num_erased": report.num_erased,
                "root": report.head and report.head.root,
                "bad_seq": report.bad_seq,
                "problem": report.problem,
            }
        )
    out.json(
        {
            "ok": outcome.report.ok,
            "num_ledgers": outcome.report.num_ledgers,
            "num_events": outcome.report.num_events,
            "storage_problems": list(outcome.report.storage_problems),
        }
    )
