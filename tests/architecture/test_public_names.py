"""The public names: all of them are there, each at its first use, and nothing else is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import muniment


def test_every_name_is_there() -> None:
    for name in muniment.__all__:
        assert getattr(muniment, name) is not None
    assert dir(muniment) == sorted(muniment.__all__)
    assert not hasattr(muniment, "no_such_name")


def test_what_a_checker_sees_is_what_there_is() -> None:
    """The names imported for type checkers, those loaded at first use and `__all__` are the same."""
    tree = ast.parse(Path(muniment.__file__).read_text("utf-8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("muniment")
        for alias in node.names
    }
    assert imported | {"__version__"} == set(muniment.__all__)


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, muniment; print([name for name in ('numpy', 'pydantic', 'apsw') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
