"""`muniment rebuild`: derive from the ledgers anew what search works on."""

from __future__ import annotations

from muniment.archive import Archive
from muniment.cli.opening import memory_of, open_existing
from muniment.cli.options import ArchiveOption, JsonOption, SubjectOption, TenantOption, UnscopedOption, get_scope
from muniment.cli.output import Output, Progress
from muniment.cli.text import count_of, name_of
from muniment.errors import NotFoundError
from muniment.model.scope import Scope


def rebuild(
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Derive items and uses anew from the ledgers.

    What `muniment verify --deep` finds to be other than the ledger comes to is put right; nothing else changes.
    Without --tenant, --subject and --unscoped all scopes are rebuilt, with --tenant alone those of that tenant. The
    plain line has the word rebuilt and the number of events.
    """
    out = Output(as_json=as_json)
    with open_existing(archive) as opened, out.progress() as progress:
        if subject is not None or unscoped:
            number = _rebuild_one(opened, get_scope(tenant, subject, unscoped))
        else:
            number = _rebuild_all(opened, tenant, progress)
    if as_json:
        out.json({"num_events": number})
    elif out.watched:
        out.line(f"rebuilt what {count_of(number, 'event')} come to")
    else:
        out.record("rebuilt", number)


def _rebuild_one(archive: Archive, scope: Scope) -> int:
    memory = memory_of(archive, scope)
    if memory.head() is None:
        raise NotFoundError(f"nothing was ever stored in {name_of(scope)}")
    return memory.rebuild()


def _rebuild_all(archive: Archive, tenant: str | None, progress: Progress) -> int:
    if tenant is not None and next(archive.tenant(tenant).scopes(), None) is None:
        raise NotFoundError(f"nothing was ever stored for tenant {tenant}")
    return archive.rebuild(
        tenant=tenant, progress=lambda done, total: progress(done, total, f"{done:,} of {count_of(total, 'event')}")
    )
