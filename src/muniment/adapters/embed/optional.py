"""Packages that only some embedders need, loaded when one of them is used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from muniment.errors import UnsupportedError


def import_optional(module: str, install: str) -> Any:
    """The module; its types are not checked, for it may not be there.

    Raises: UnsupportedError that names what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UnsupportedError(f"this embedder needs {module}: pip install {install}") from error


def find_file(package: str, file: str) -> Path | None:
    """A file inside an installed package, without importing the package; None if it is not there."""
    spec = find_spec(package)
    path = None if spec is None or spec.origin is None else Path(spec.origin).parent / file
    return path if path is not None and path.is_file() else None
