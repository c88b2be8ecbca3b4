"""The `muniment` command: a thin edge over the engine, and the one place of the package that reads the environment.

Commands write records to standard output and everything said about them to standard error. They print for a person
where one watches, plain tab-separated lines where the output goes on, and JSON lines with `--json`.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command that the arguments of this process name; its exit code, by the table in `exits`."""
    if sys.argv[1:] == ["--version"]:
        return _say_version()
    # Here, because asking for the version needs none of it.
    from muniment.cli.edge import run

    return run(sys.argv[1:])


def _say_version() -> int:
    from muniment import __version__

    sys.stdout.write(f"muniment {__version__}\n")
    return 0
