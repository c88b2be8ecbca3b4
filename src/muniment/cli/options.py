"""The options that commands share, each declared once."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from muniment.errors import UsageError
from muniment.model.scope import Scope

DEFAULT_NAME: Final = "default"
"""The tenant and the subject of a command that names none, as in `muniment.audit`."""

ARCHIVE_VARIABLE: Final = "MUNIMENT_ARCHIVE"

ArchiveOption = Annotated[
    str | None,
    typer.Option(
        "--archive",
        "-a",
        metavar="PATH",
        envvar=ARCHIVE_VARIABLE,
        show_envvar=False,
        help=f"The archive: a path or sqlite:///path.  [env: {ARCHIVE_VARIABLE}]",
    ),
]
TenantOption = Annotated[
    str | None,
    typer.Option(
        "--tenant", "-t", metavar="NAME", help=f"The isolation boundary: a customer.  [default: {DEFAULT_NAME}]"
    ),
]
SubjectOption = Annotated[
    str | None,
    typer.Option(
        "--subject", "-s", metavar="NAME", help=f"Whose memory: a user, a workspace.  [default: {DEFAULT_NAME}]"
    ),
]
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", metavar="ID", help="A ledger by its id, also one whose scope was erased."),
]
UnscopedOption = Annotated[bool, typer.Option("--unscoped", help="The tenant's shelf that belongs to no subject.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON lines instead of text.")]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=0,
        metavar="N",
        help="At most so many; 0 is no limit.  [default: 50 in a terminal, no limit when piped or with --json]",
    ),
]

WATCHED_LIMIT: Final = 50
"""What fits on a screen or two; what it cuts off is counted and said."""


def find_scope(tenant: str | None, subject: str | None, unscoped: bool) -> Scope | None:
    """The scope that the options name, or None if they name none; a part that is left out is `default`.

    Raises: UsageError for `--subject` with `--unscoped`, and for names that cannot be one.
    """
    if unscoped and subject is not None:
        raise UsageError("--unscoped and --subject exclude each other: the unscoped shelf has no subject")
    if tenant is None and subject is None and not unscoped:
        return None
    return Scope(_or_default(tenant), None if unscoped else _or_default(subject))


def get_scope(tenant: str | None, subject: str | None, unscoped: bool) -> Scope:
    """The scope that the options name; without any, the tenant `default` and the subject `default`.

    Raises: as `find_scope`.
    """
    return find_scope(tenant, subject, unscoped) or Scope(DEFAULT_NAME, DEFAULT_NAME)


def cut_at(limit: int | None, *, watched: bool) -> int | None:
    """How many entries to print; None is all."""
    if limit is None:
        return WATCHED_LIMIT if watched else None
    return limit or None


def _or_default(name: str | None) -> str:
    return DEFAULT_NAME if name is None else name
