"""`muniment erase`: destroy everything of a scope, or of one of its sessions."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from muniment.cli.opening import Place, memory_of, open_existing, say_empty
from muniment.cli.options import ArchiveOption, JsonOption, SubjectOption, TenantOption, UnscopedOption, get_scope
from muniment.cli.output import Output
from muniment.cli.receipts import (
    LaterOption,
    ReasonOption,
    ReceiptOption,
    RequestedByOption,
    code_of,
    print_receipt,
    receipt_file,
    step_of,
)
from muniment.cli.scanning import VerifyOption, check_markers, print_scan
from muniment.cli.text import count_of, name_of, one_line
from muniment.errors import UsageError
from muniment.model.scope import Scope


def erase(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only what belongs to this session.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody watches.")] = False,
    reason: ReasonOption = None,
    requested_by: RequestedByOption = None,
    later: LaterOption = False,
    receipt: ReceiptOption = None,
    verify: VerifyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Destroy everything of a scope and its name, for good.

    The envelopes stay as a ledger without a name, so that what was there can still be proved to have been there.
    In a terminal the subject's name has to be typed. With --verify the bytes of the files are searched afterwards for
    texts that stood in the content, in every form; the exit code is 1 if one is found, and 75 if the files could not
    be cleaned yet. Plain lines have the fields action, state, events, receipt id and ledger id.
    """
    out = Output(as_json=as_json)
    scope = get_scope(tenant, subject, unscoped)
    markers = check_markers(verify, later)
    with open_existing(archive) as opened:
        memory = memory_of(opened, scope)
        head = memory.head()
        if head is None:
            say_empty(out, opened, Place(memory, scope), "")
        elif not yes:
            what = "everything" if session is None else f"session {session}"
            _confirm(out, scope, f"{what} of {name_of(scope)}, {count_of(head.size, 'event')} in all")
        how = {} if reason is None else {"reason": reason}
        with receipt_file(receipt) as write:
            if session is None:
                done = memory.erase(requested_by=requested_by, clean=step_of(later), **how)
            else:
                done = memory.erase_session(session, requested_by=requested_by, clean=step_of(later), **how)
            write([done])
        print_receipt(out, done, name_of(scope))
        return print_scan(out, opened, markers) or code_of([done])


def _confirm(out: Output, scope: Scope, what: str) -> None:
    """Have the name typed by whoever watches.

    Raises: UsageError where nobody watches, or for another name; nothing was destroyed by then.
    """
    if not out.watched:
        raise UsageError("nobody watches who could confirm it: give --yes to erase; nothing was destroyed")
    name = scope.tenant if scope.subject is None else scope.subject
    sys.stderr.write(one_line(f"This destroys {what}, for good. Type {name} to go on: "))
    sys.stderr.flush()
    if sys.stdin.readline().rstrip("\r\n") != name:
        raise UsageError("that is not the name; nothing was destroyed")
