"""`muniment replay`: what a memory held at any point of its past."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Final

import typer
from pydantic import JsonValue

from muniment.cli.events import record_of, what_of
from muniment.cli.opening import Place, get_place, open_existing, say_empty
from muniment.cli.options import (
    ArchiveOption,
    JsonOption,
    LedgerOption,
    LimitOption,
    SubjectOption,
    TenantOption,
    UnscopedOption,
    cut_at,
)
from muniment.cli.output import Column, Output
from muniment.cli.text import count_of, exact_time
from muniment.cli.times import parse_time
from muniment.errors import UsageError
from muniment.model.event import CONTENT_KINDS, Content, Deletion, ErasedEvent, event_to_dict
from muniment.model.scope import Scope
from muniment.model.state import MemoryState

COLUMNS: Final = (
    Column(name="seq", width=6, right=True, style="cyan"),
    Column(name="kind", width=8),
    Column(name="read", width=5, right=True),
    Column(name="visible item", flexible=True),
)


def replay(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    ledger: LedgerOption = None,
    seq: Annotated[int | None, typer.Option("--seq", metavar="SEQ", help="The state after that event.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The state of all that was recorded by then.")
    ] = None,
    limit: LimitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild the state of a memory at any point of its past.

    It says how much it held, and what of it was visible; by default now. TIME is ISO 8601 with an offset, or a
    date, which means its first moment in UTC. Plain lines begin with `point`, `count` or `item`; an item has the
    fields of `muniment log`. With --json one object is printed.
    """
    if seq is not None and at is not None:
        raise UsageError("give --seq or --at, not both")
    moment = parse_time("--at", at)
    out = Output(as_json=as_json)
    with open_existing(archive) as opened:
        place = get_place(opened, tenant, subject, unscoped, ledger)
        state = place.ledger.replay(up_to_seq=seq, at=moment)
        if as_json:
            out.json(_to_json(place.scope, state))
        elif out.watched:
            _print_watched(out, place, state, cut_at(limit, watched=True))
        else:
            _print_plain(out, place.scope, state, cut_at(limit, watched=False))
        if state.last_seq is None:
            say_empty(out, opened, place, "nothing was recorded by then")


def _print_watched(out: Output, place: Place, state: MemoryState, limit: int | None) -> None:
    out.line((place.name, "bold"), f" {_point(state)}")
    out.line(("  held   ", "dim"), _held(state))
    out.line(("  of it  ", "dim"), _fates(state))
    visible = state.visible
    if visible:
        out.line()
        out.table(COLUMNS, (_row(state, item) for item in islice(visible, limit)))
    _say_cut(out, len(visible), limit)


def _print_plain(out: Output, scope: Scope | None, state: MemoryState, limit: int | None) -> None:
    out.record("point", state.last_seq, scope and scope.tenant, scope and scope.subject)
    for name, number in _numbers(state).items():
        out.record("count", name, number)
    visible = state.visible
    for item in islice(visible, limit):
        out.record("item", *record_of(item))
    _say_cut(out, len(visible), limit)


def _say_cut(out: Output, number: int, limit: int | None) -> None:
    if limit is not None and number > limit:
        out.note(f"… {count_of(number - limit, 'item')} more: --limit 0 shows all")


def _point(state: MemoryState) -> str:
    return "before its first event" if state.last_seq is None else f"after event {state.last_seq}"


def _numbers(state: MemoryState) -> dict[str, int]:
    return {
        "messages": len(state.messages),
        "documents": len(state.documents),
        "notes": len(state.notes),
        "visible": len(state.visible),
        "deleted": len(state.deleted),
        "superseded": len(state.superseded),
        "erased": len(state.erased),
        "read": len(state.recall_stats),
    }


def _held(state: MemoryState) -> str:
    numbers = _numbers(state)
    kinds = [count_of(numbers[f"{kind}s"], kind) for kind in CONTENT_KINDS if numbers[f"{kind}s"]]
    return ", ".join(kinds) or "nothing"


def _fates(state: MemoryState) -> str:
    numbers = _numbers(state)
    fates = [name for name in ("deleted", "superseded", "erased", "read") if numbers[name]]
    return ", ".join(f"{numbers[name]:,} {name}" for name in ("visible", *fates))


def _row(state: MemoryState, item: Content) -> tuple[str, ...]:
    stats = state.recall_stats.get(item.id)
    return str(item.seq), item.kind, str(stats.num_recalled) if stats else "", what_of(item)


def _to_json(scope: Scope | None, state: MemoryState) -> JsonValue:
    return {
        "tenant": scope and scope.tenant,
        "subject": scope and scope.subject,
        "last_seq": state.last_seq,
        "counts": dict(_numbers(state)),
        "visible": [event_to_dict(item) for item in state.visible],
        "deleted": {str(target): _seq_of(by) for target, by in state.deleted.items()},
        "superseded": {str(old): str(new) for old, new in state.superseded.items()},
        "erased": {str(target): by for target, by in state.erased.items()},
        "recall_stats": {
            str(item): {"num_recalled": stats.num_recalled, "last_recalled_at": exact_time(stats.last_recalled_at)}
            for item, stats in state.recall_stats.items()
        },
    }


def _seq_of(deletion: Deletion | ErasedEvent) -> int | None:
    return deletion.seq
