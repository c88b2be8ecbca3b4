"""The embedder that a command names: one of the package's by its word, or anybody's as MODULE:NAME."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated, Any, cast

import typer

from muniment.archive import Archive, open_archive
from muniment.cli.opening import check_url
from muniment.errors import MunimentError, UsageError

EmbedderOption = Annotated[
    str | None,
    typer.Option("--embedder", metavar="NAME|MODULE:NAME", help="What makes vectors: local, minilm, or your own."),
]


def open_with(archive: str | None, embedder: str | None) -> Archive:
    """The archive that the option names, with that embedder; it is never begun.

    Raises: UsageError for an embedder that cannot be had; else as `open_existing`.
    """
    return open_archive(check_url(archive), create=False, embedder=find_embedder(embedder))


def find_embedder(name: str | None) -> Any:
    """What `muniment.open` takes for that name: a word as it is, MODULE:NAME imported, None for None.

    MODULE:NAME is an embedder, a function of texts, or a class that is called without arguments; MODULE is also looked
    for in the current folder.

    Raises: UsageError for what cannot be imported.
    """
    return name if name is None or ":" not in name else _import(name)


def _import(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module)
        for part in attribute.split("."):
            found = cast("object", getattr(found, part))
        return found() if isinstance(found, type) else found
    except MunimentError:
        raise
    except Exception as error:
        raise UsageError(f"the embedder {name} cannot be had: {type(error).__name__}: {error}") from error
