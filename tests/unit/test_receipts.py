"""A receipt is borne out by its archive, and by no other; whatever is changed in it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

import muniment
from muniment import Archive, Memory, Recall
from muniment.archive.receipts import check_receipt
from muniment.model.receipt import Receipt
from muniment.model.report import LedgerHead
from muniment.service import ServiceMemory


@pytest.fixture(params=[":memory:", "memory://"])
def archive(request: pytest.FixtureRequest) -> Iterator[Archive]:
    with muniment.open(request.param) as opened:
        yield opened


@pytest.fixture
def memory(archive: Archive) -> Memory:
    memory = archive.memory("anna", tenant="acme")
    for number in range(10):
        memory.remember(f"note {number}", key=None if number % 3 else f"key {number}")
    return memory


def _ids(memory: Memory, *seqs: int) -> list[Any]:
    return [event.id for event in memory.events() if event.seq in seqs]


def test_every_destruction_is_borne_out(archive: Archive, memory: Memory) -> None:
    other = archive.memory("ben", tenant="acme")
    other.remember("x", session_id="s")
    other.record(Recall(query="x", recalled=()))
    receipts = [
        memory.forget(_ids(memory, 1, 2)),
        memory.forget(_ids(memory, 1, 3), clean="later"),
        other.erase_session("s"),
        other.erase_session("unknown"),
        archive.memory("nobody", tenant="acme").erase(),
        memory.erase(reason="asked"),
        *archive.tenant("acme").drop(),
    ]
    memory.remember("a new ledger begins")
    for receipt in receipts:
        assert check_receipt(archive, receipt).problems == ()
        assert check_receipt(archive, Receipt.from_json(receipt.to_json()))


def test_a_hidden_memory_too(archive: Archive) -> None:
    service = ServiceMemory(archive, "acme")
    receipt = service.delete(service.add("the old plan").id)
    assert receipt.state == "hidden"
    assert check_receipt(archive, receipt).problems == ()
    (problem, *_) = check_receipt(archive, receipt.model_copy(update={"state": "clean"})).problems
    assert problem.startswith("no Erasure of that time names target")


def test_it_says_what_waits(archive: Archive, memory: Memory) -> None:
    later = memory.forget(_ids(memory, 1), clean="later")
    check = check_receipt(archive, later)
    assert (check.ok, check.waits) == (True, True)
    claimed = check_receipt(archive, later.model_copy(update={"state": "clean"}))
    assert claimed.problems == ("it says clean, and the archive still waits to be cleaned of it",)
    archive.clean()
    assert not check_receipt(archive, later).waits


def test_another_archive_does_not_bear_it_out(archive: Archive, memory: Memory) -> None:
    receipt = memory.erase()
    with muniment.open(":memory:") as other:
        (problem,) = check_receipt(other, receipt).problems
    assert problem == f"there is no ledger {receipt.ledger_id} in this archive"


FORGED: list[tuple[str, dict[str, Any], str]] = [
    ("ledger", {"ledger_id": "no id"}, "'no id' is not the id of a ledger"),
    ("none", {"ledger_id": None}, "it names no ledger, and yet what was destroyed in it"),
    ("no head", {"head_before": None}, "it has no head of the ledger before"),
    ("target", {"targets": (uuid4(),)}, "is no event of the ledger"),
    ("counts", {"counts": {"note": 5}}, "its counts are not those of its targets"),
    ("kinds", {"counts": {"message": 2}}, "its counts are not those of its targets"),
    ("fewer", {"targets": (), "counts": {}}, "names 2 targets that the receipt leaves out"),
    ("whole", {"whole_scope": True, "targets": ()}, "the scope of the ledger is not erased"),
    ("hidden", {"state": "hidden"}, "no Deletion of that time names target"),
]


@pytest.mark.parametrize(("_name", "changes", "problem"), FORGED, ids=[name for name, _, _ in FORGED])
def test_what_is_changed_shows(
    archive: Archive, memory: Memory, _name: str, changes: dict[str, Any], problem: str
) -> None:
    receipt = memory.forget(_ids(memory, 1, 2)).model_copy(update=changes)
    check = check_receipt(archive, receipt)
    assert not check
    assert any(problem in found for found in check.problems), check.problems


def test_a_target_that_was_not_erased(archive: Archive, memory: Memory) -> None:
    receipt = memory.forget(_ids(memory, 1, 2))
    (live,) = _ids(memory, 4)
    forged = receipt.model_copy(update={"targets": (receipt.targets[0], live)})
    assert f"no Erasure of that time names target {live}" in check_receipt(archive, forged).problems


def test_a_head_that_the_ledger_never_had(archive: Archive, memory: Memory) -> None:
    receipt = memory.forget(_ids(memory, 1))
    before, after = receipt.head_before, receipt.head_after
    assert before is not None
    assert after is not None
    for name, head, problem in (
        ("head_before", LedgerHead(before.ledger_id, before.size, "0" * 64), "its root at 10 events is another"),
        ("head_after", LedgerHead(after.ledger_id, after.size, before.root), "its root at 11 events is another"),
        ("head_after", LedgerHead(after.ledger_id, 99, after.root), "has 99 events, and the ledger 11"),
        ("head_before", LedgerHead(before.ledger_id, before.size - 1, before.root), "the head before is not one"),
        ("head_after", LedgerHead("00" * 16, after.size, after.root), "is one of another ledger"),
        ("head_after", before, "no Erasure of that time names target"),
    ):
        check = check_receipt(archive, receipt.model_copy(update={name: head}))
        assert any(problem in found for found in check.problems), (name, check.problems)


def test_a_whole_scope_that_counts_otherwise(archive: Archive, memory: Memory) -> None:
    receipt = memory.erase()
    forged = receipt.model_copy(update={"counts": {"note": 1}})
    assert check_receipt(archive, forged).problems == ("it counts 1 events, and the Erasure 10",)
    assert receipt.head_after is not None
    without = receipt.model_copy(update={"head_before": receipt.head_after})
    assert "no Erasure of the whole scope stands behind the head before" in check_receipt(archive, without).problems
