"""The conformance suites are honest: each law has a test, each adapter runs it, and each mutant is found."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import muniment.adapters
from muniment.adapters.memory import MemoryStorage
from muniment.errors import UsageError
from muniment.ports import clock, storage
from muniment.testing.guards import adapters_without_suite, find_storages, find_tests, laws_of, laws_without_test, run
from muniment.testing.mutants import MUTANTS, StorageOver
from muniment.testing.storage import Opener, PersistentStorageContract, StorageContract

SUITES = Path(__file__).parent.parent / "contract" / "test_storage.py"


class SuiteOnMutants(StorageContract):
    adapter = StorageOver


def opener_of(mutant: type[StorageOver]) -> Opener:
    def open_mutant(*, busy_timeout_s: float = 5.0) -> StorageOver:
        return mutant(MemoryStorage(busy_timeout_s=busy_timeout_s))

    return open_mutant


def collected_suites() -> list[type[StorageContract]]:
    """The suites that pytest collects from the contract tests."""
    spec = importlib.util.spec_from_file_location("collected_suites", SUITES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [kind for name, kind in vars(module).items() if name.startswith("Test")]


def test_every_law_of_the_port_has_a_test() -> None:
    assert list(laws_of(storage)) == list(range(1, 14))
    assert laws_without_test(StorageContract, storage) == []


def test_a_law_without_a_test_is_noticed() -> None:
    class Lax:
        def test_law_02_and_03_something(self) -> None: ...

    assert laws_without_test(Lax, storage)[:2] == ["1. Atomic", "4. Once"]


def test_every_storage_adapter_runs_the_suite() -> None:
    adapters = find_storages(muniment.adapters)
    assert {adapter.name for adapter in adapters} >= {"memory", "sqlite"}
    assert adapters_without_suite(adapters, collected_suites()) == set()


def test_every_adapter_but_the_oracle_is_proved_across_processes() -> None:
    persistent = [suite for suite in collected_suites() if issubclass(suite, PersistentStorageContract)]
    assert adapters_without_suite(find_storages(muniment.adapters), persistent) == {MemoryStorage}


def test_an_adapter_without_a_suite_is_noticed() -> None:
    assert adapters_without_suite([MemoryStorage, StorageOver], [SuiteOnMutants]) == {MemoryStorage}


def test_the_suites_replace_no_test() -> None:
    """A subclass that overrides a test would prove something else than the port's laws."""
    for suite in collected_suites():
        own = [name for name in find_tests(suite) if name in vars(suite)]
        assert own == []


def test_a_sound_storage_passes_whole() -> None:
    report = run(SuiteOnMutants, opener_of(StorageOver))
    assert report.failed == {}
    assert list(report.passed) == find_tests(StorageContract)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_each_mutant_fails_what_it_breaks(mutant: type[StorageOver]) -> None:
    assert mutant.__doc__
    report = run(SuiteOnMutants, opener_of(mutant), mutant.breaks)
    assert report.failed, f"{mutant.__name__} passes test_{mutant.breaks}*: {report.passed}"


def test_every_law_has_a_mutant() -> None:
    broken = {mutant.breaks for mutant in MUTANTS}
    assert {f"law_{number:02}" for number in laws_of(storage)} <= broken


def test_every_test_can_fail() -> None:
    """Each test is failed by some mutant, so none of them asserts nothing."""
    failed: set[str] = set()
    for mutant in MUTANTS:
        failed |= set(run(SuiteOnMutants, opener_of(mutant), mutant.breaks).failed)
    assert sorted(set(find_tests(StorageContract)) - failed) == []


def test_a_run_that_executes_no_law_is_an_error() -> None:
    with pytest.raises(UsageError, match="law_99"):
        run(SuiteOnMutants, opener_of(StorageOver), "law_99")


def test_a_run_that_skips_every_law_is_an_error() -> None:
    class Skipping(StorageContract):
        adapter = StorageOver

        def test_skipped_always(self, storage: object) -> None:
            pytest.skip("not today")

    with pytest.raises(UsageError):
        run(Skipping, opener_of(StorageOver), "skipped")


@pytest.mark.parametrize("port", [clock, ModuleType("no docstring")], ids=lambda port: port.__name__)
def test_a_port_without_laws_is_an_error(port: ModuleType) -> None:
    with pytest.raises(UsageError):
        laws_of(port)


def test_a_package_without_adapters_is_an_error() -> None:
    empty = ModuleType("empty")
    empty.__path__ = []
    with pytest.raises(UsageError):
        find_storages(empty)
