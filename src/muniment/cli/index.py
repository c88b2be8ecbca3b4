"""`muniment index`: one line for each memory, as a model is shown what there is."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from muniment.cli.opening import open_existing
from muniment.cli.options import (
    DEFAULT_NAME,
    ArchiveOption,
    JsonOption,
    SubjectOption,
    TenantOption,
    UnscopedOption,
    get_scope,
)
from muniment.cli.output import Output
from muniment.cli.text import block


def index(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, metavar="N", help="At most so many; 0 is no limit.")
    ] = 50,
    as_json: JsonOption = False,
) -> None:
    """Print the index of notes that a model is shown.

    A line has key or id, subject, labels and summary; those used last come first. It is of the whole tenant without
    --subject and --unscoped. Nothing is recorded, for it hands out no memory.
    """
    # Here, because no other command needs the service.
    from muniment.service import UNSCOPED, ServiceMemory

    out = Output(as_json=as_json)
    only = get_scope(tenant, subject, unscoped) if subject is not None or unscoped else None
    with open_existing(archive) as opened:
        service = ServiceMemory(opened, DEFAULT_NAME if tenant is None else tenant)
        scope = None if only is None else UNSCOPED if only.subject is None else only.subject
        text = service.render_index(max_entries=limit or None, scope=scope)
    if as_json:
        out.json({"tenant": service.tenant, "subject": subject, "index": text})
    else:
        sys.stdout.write(block(text) if out.watched else text)
        if not text:
            out.note(f"no note is visible for tenant {service.tenant}")
