"""`muniment delete`: hide items; the ledger keeps them and says who hid them and why."""

from __future__ import annotations

from typing import Annotated

import typer

from muniment.cli.finding import get_event
from muniment.cli.opening import Place, memory_of, open_existing
from muniment.cli.options import ArchiveOption, JsonOption, SubjectOption, TenantOption, UnscopedOption, get_scope
from muniment.cli.output import Output
from muniment.cli.text import count_of, name_of
from muniment.model.event import event_to_dict


def delete(
    events: Annotated[list[str], typer.Argument(metavar="EVENT...", help="Ids, or seqs.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.", show_default=False)],
    requested_by: Annotated[
        str | None, typer.Option("--requested-by", metavar="NAME", help="Who asked for it.")
    ] = None,
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    session: Annotated[str | None, typer.Option("--session", metavar="ID")] = None,
    source: Annotated[str, typer.Option("--source", metavar="TEXT")] = "cli",
    actor: Annotated[str | None, typer.Option("--actor", metavar="NAME")] = None,
    request_id: Annotated[
        str | None, typer.Option("--request-id", metavar="ID", help="The same call again with it changes nothing.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Hide messages, documents and notes, and record why.

    No read hands them to a model any more. This destroys nothing: `muniment log` still shows them to an auditor.
    All of them are hidden, or none.
    """
    out = Output(as_json=as_json)
    with open_existing(archive) as opened:
        scope = get_scope(tenant, subject, unscoped)
        memory = memory_of(opened, scope)
        deletion = memory.delete(
            [get_event(Place(memory, scope), event).id for event in events],
            reason,
            requested_by=requested_by,
            session_id=session,
            source=source,
            actor=actor,
            request_id=request_id,
        )
    if as_json:
        out.json(event_to_dict(deletion))
    elif out.watched:
        hidden = count_of(len(set(deletion.targets)), "item")
        out.line(f"hid {hidden} of {name_of(scope)} by deletion ", (str(deletion.seq), "cyan"))
    else:
        out.record(deletion.seq, deletion.kind, deletion.id)
