"""`muniment forget`: destroy the content of single events."""

from __future__ import annotations

from typing import Annotated

import typer

from muniment.cli.finding import get_event
from muniment.cli.opening import Place, memory_of, open_existing
from muniment.cli.options import ArchiveOption, JsonOption, SubjectOption, TenantOption, UnscopedOption, get_scope
from muniment.cli.output import Output
from muniment.cli.receipts import (
    LaterOption,
    ReceiptOption,
    RequestedByOption,
    code_of,
    print_receipt,
    receipt_file,
    step_of,
)
from muniment.cli.scanning import VerifyOption, check_markers, print_scan
from muniment.cli.text import name_of


def forget(
    events: Annotated[list[str], typer.Argument(metavar="EVENT...", help="Ids, or seqs.", show_default=False)],
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    derived: Annotated[
        bool, typer.Option("--derived", help="Also the notes that were derived from them, and so on.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")] = "forgotten",
    requested_by: RequestedByOption = None,
    later: LaterOption = False,
    receipt: ReceiptOption = None,
    verify: VerifyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Destroy the content of single events, for good.

    They may be messages, documents, notes and recalls. Of a note with a key every version goes. The envelopes stay in
    the ledger, so that it still verifies, and an erasure says what was destroyed. Either all of the events are known,
    or nothing is destroyed. Plain lines have the fields action, state, events, receipt id and ledger id; the exit
    code is 75 if the files could not be cleaned yet.
    """
    out = Output(as_json=as_json)
    markers = check_markers(verify, later)
    with open_existing(archive) as opened, receipt_file(receipt) as write:
        scope = get_scope(tenant, subject, unscoped)
        memory = memory_of(opened, scope)
        done = memory.forget(
            [get_event(Place(memory, scope), event).id for event in events],
            derived=derived,
            reason=reason,
            requested_by=requested_by,
            clean=step_of(later),
        )
        write([done])
        print_receipt(out, done, name_of(scope))
        return print_scan(out, opened, markers) or code_of([done])
