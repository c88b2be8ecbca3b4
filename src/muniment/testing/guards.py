"""What keeps a conformance suite honest: each law has a test, each adapter runs it, and it finds what is broken.

A guard that finds nothing to guard is an error itself.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import pytest

from muniment.errors import UsageError
from muniment.ports.storage import Storage
from muniment.testing.storage import Opener, StorageContract

_LAW: Final = re.compile(r"^(\d+)\. \*\*(.+?)\.?\*\*", re.MULTILINE)
_STORAGE_MEMBERS: Final = frozenset(name for name in vars(Storage) if not name.startswith("_")) | {"name"}


@dataclass(frozen=True)
class Report:
    """What a run of a suite found."""

    passed: tuple[str, ...]
    failed: Mapping[str, BaseException] = field(default_factory=dict[str, BaseException])


def laws_of(port: ModuleType) -> dict[int, str]:
    """The numbered laws in the docstring of a port, by number.

    Raises: UsageError if there is none.
    """
    laws = {int(number): title for number, title in _LAW.findall(port.__doc__ or "")}
    if not laws:
        raise UsageError(f"{port.__name__} states no numbered law")
    return laws


def find_tests(contract: type[object], prefix: str = "") -> list[str]:
    """The names of the suite's test methods that begin with `test_` and the prefix."""
    return sorted(name for name in dir(contract) if name.startswith(f"test_{prefix}"))


def laws_without_test(contract: type[object], port: ModuleType) -> list[str]:
    """The laws of the port that no test of the suite is named after."""
    proved = {int(number) for name in find_tests(contract, "law_") for number in re.findall(r"(?<=_)\d\d(?=_)", name)}
    return [f"{number}. {title}" for number, title in laws_of(port).items() if number not in proved]


def find_storages(package: ModuleType) -> set[type[Storage]]:
    """The classes of that package, at any depth, that have every member of the storage port.

    Raises: UsageError if there is none.
    """
    found: set[type[Storage]] = set()
    for module_info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = import_module(module_info.name)
        found |= {kind for kind in vars(module).values() if _is_storage(kind, package.__name__)}
    if not found:
        raise UsageError(f"{package.__name__} holds no class with the members of the storage port")
    return found


def _is_storage(kind: Any, package: str) -> bool:
    return (
        inspect.isclass(kind)
        and kind.__module__.startswith(f"{package}.")
        and all(hasattr(kind, name) for name in _STORAGE_MEMBERS)
    )


def adapters_without_suite(
    adapters: Iterable[type[Storage]], contracts: Iterable[type[StorageContract]]
) -> set[type[Storage]]:
    """The adapters that none of these suites is run on."""
    return set(adapters) - {contract.adapter for contract in contracts}


def run(contract: type[StorageContract], opener: Opener, prefix: str = "") -> Report:
    """Run the tests of that prefix without pytest, each on a storage of its own.

    Raises: UsageError if no test was run: that would prove nothing.
    """
    passed: list[str] = []
    failed: dict[str, BaseException] = {}
    for name in find_tests(contract, prefix):
        test = getattr(contract(), name)
        try:
            _call(test, opener)
        except pytest.skip.Exception:
            continue
        except (Exception, KeyboardInterrupt, SystemExit, pytest.fail.Exception) as error:  # noqa: BLE001
            # Whatever a broken adapter makes of a test; interrupts too, for the suite raises them in transactions.
            failed[name] = error
        else:
            passed.append(name)
    if not passed and not failed:
        raise UsageError(f"{contract.__name__} has no test that begins with test_{prefix} and was run")
    return Report(tuple(passed), failed)


def _call(test: Callable[..., None], opener: Opener) -> None:
    wanted = inspect.signature(test).parameters
    arguments: dict[str, object] = {"opener": opener} if "opener" in wanted else {}
    if "storage" not in wanted:
        test(**arguments)
        return
    storage = opener()
    try:
        test(storage=storage, **arguments)
    finally:
        storage.close()
