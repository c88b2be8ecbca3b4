"""Opening the archive of a command: one that reads never creates a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from muniment.archive import Archive, Memory, open_archive
from muniment.archive.ledger import Ledger
from muniment.cli.options import ARCHIVE_VARIABLE, get_scope
from muniment.cli.output import Output
from muniment.cli.text import name_of
from muniment.errors import StorageUnavailableError, UsageError
from muniment.model.scope import Scope

_NAMES_SHOWN: Final = 3


def open_existing(archive: str | None) -> Archive:
    """The archive that the option names.

    Raises: UsageError for none, and for one in memory; else as `muniment.open`.
    """
    return open_archive(check_url(archive), create=False)


def open_or_create(archive: str | None, out: Output) -> Archive:
    """The archive that the option names, begun if there is none; a new file is announced.

    Raises: as `open_existing`.
    """
    url = check_url(archive)
    try:
        return open_archive(url, create=False)
    except StorageUnavailableError:
        opened = open_archive(url)
    out.note(f"began a new archive: {opened.location}")
    return opened


@dataclass(frozen=True, slots=True)
class Place:
    """A ledger to look at, and whose it is."""

    ledger: Ledger
    scope: Scope | None
    """None for a ledger that was asked for by its id."""

    @property
    def name(self) -> str:
        return repr(self.ledger) if self.scope is None else name_of(self.scope)


def get_place(
    archive: Archive, tenant: str | None, subject: str | None, unscoped: bool, ledger_id: str | None
) -> Place:
    """The ledger that the options name.

    Raises: UsageError for a scope and a ledger at once; NotFoundError for an id of no ledger.
    """
    if ledger_id is None:
        scope = get_scope(tenant, subject, unscoped)
        return Place(memory_of(archive, scope), scope)
    if tenant is not None or subject is not None or unscoped:
        raise UsageError("--ledger names a ledger by itself: leave out --tenant, --subject and --unscoped")
    return Place(archive.ledger(ledger_id), None)


def memory_of(archive: Archive, scope: Scope) -> Memory:
    """The memory of a scope."""
    return archive.memory(scope.subject, tenant=scope.tenant)


def check_url(archive: str | None) -> str:
    if not archive:
        raise UsageError(f"which archive? give --archive PATH or set {ARCHIVE_VARIABLE}")
    if archive.endswith(":memory:") or archive.startswith("memory:"):
        raise UsageError(f"{archive}: an archive in memory ends with the command: give a path")
    return archive


def say_empty(out: Output, archive: Archive, place: Place, what: str) -> None:
    """Say that nothing was found; where the whole scope is unknown, say which ones there are."""
    if place.ledger.head() is not None:
        out.note(what)
        return
    rows = archive.storage.read_scopes(limit=_NAMES_SHOWN + 1)
    names = ", ".join(name_of(Scope(row.tenant, row.subject)) for row in rows[:_NAMES_SHOWN])
    more = " and more" if len(rows) > _NAMES_SHOWN else ""
    others = f"the archive holds {names}{more} (see `muniment scopes`)" if names else "the archive is empty"
    out.note(f"nothing was ever stored in {place.name}; {others}")
