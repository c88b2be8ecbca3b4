"""What each destructive call does and leaves: isolation, receipts, sweeps, past states.

Numbers are those of the audit contract's required tests.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

import muniment
from muniment import Archive, Deletion, Document, ErasedEvent, Erasure, Memory, Message, Note, Recall, Scope
from muniment.archive import eraser
from muniment.errors import LimitExceededError, UsageError
from muniment.model.receipt import Receipt
from muniment.testing.doubles import START, FakeClock
from muniment.testing.facts import NAMES

DAY: Final = timedelta(days=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory://", ":memory:", "file"])
def archive(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Archive]:
    url = tmp_path / "archive.db" if request.param == "file" else request.param
    with muniment.open(url, durability="normal", clock=clock) as archive:
        yield archive


@pytest.fixture
def memory(archive: Archive) -> Memory:
    return archive.memory("user-42", tenant="acme")


def say(content: str = "hello", **more: Any) -> Message:
    return Message(speaker="anna", content=content, **more)


# --- Isolation: every destructive call is bound to one scope (pains 4, 5, 8) ------------------------------------------

Everything = dict[tuple[str, str | None], tuple[bytes, int]]


def everything(archive: Archive) -> Everything:
    """Each scope's ledger and how far it goes."""
    rows = archive.storage.read_scopes(limit=10_000)
    return {(row.tenant, row.subject): (row.ledger_id, row.next_seq) for row in rows}


def fill(memory: Memory, request_id: str = "r1") -> list[UUID]:
    """The same in every scope: session, key, request id, texts."""
    said = memory.add(say(session_id="s1", retain_until=START), request_id=request_id)
    note = memory.put("plan", "the same plan", tier="core")
    read = memory.record(Recall(query="plan", recalled=(note.id,), session_id="s1"))
    return [said.id, note.id, read.id]


CALLS: Final[dict[str, Callable[[Archive, Memory, list[UUID]], object]]] = {
    "delete": lambda _, memory, ids: memory.delete(ids[:1], "asked"),
    "forget": lambda _, memory, ids: memory.forget(ids[2:], derived=True, clean="later"),
    "erase_session": lambda _, memory, __: memory.erase_session("s1", clean="later"),
    "sweep delete": lambda archive, memory, __: archive.sweep(START + DAY, tenant=memory.scope.tenant),
    "sweep erase": lambda archive, memory, __: archive.sweep(
        START + DAY, "erase", tenant=memory.scope.tenant, recalls_before=START + DAY, clean="later"
    ),
    "erase": lambda _, memory, __: memory.erase(clean="later"),
    "drop": lambda archive, memory, __: archive.tenant(memory.scope.tenant).drop(clean="later"),
}
OF_TENANTS: Final = ("sweep delete", "sweep erase", "drop")


@pytest.mark.parametrize("role", ["subject", "tenant"])
def test_no_destructive_call_reaches_another_scope(archive: Archive, role: str) -> None:
    scopes = [Scope("acme", name) if role == "subject" else Scope(name, "user") for name in NAMES]
    memories = {scope: archive.memory(scope.subject, tenant=scope.tenant) for scope in scopes}
    for name, call in CALLS.items():
        if role == "subject" and name in OF_TENANTS:
            continue  # all of them are of one tenant
        ids = {scope: fill(memory, name) for scope, memory in memories.items()}
        for scope, memory in memories.items():
            before = everything(archive)
            call(archive, memory, ids[scope])
            after = everything(archive)
            changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
            assert changed == {(scope.tenant, scope.subject)}
    assert archive.verify(deep=True)
    if role == "tenant":
        assert [tenant.name for tenant in archive.tenants()] == []


BY_ID: Final[tuple[Callable[[Memory, list[UUID]], object], ...]] = (
    lambda memory, ids: memory.forget(ids, clean="later"),
    lambda memory, ids: memory.forget(ids, derived=True, clean="later"),
    lambda memory, ids: memory.delete(ids, "asked"),
    lambda memory, ids: memory.record(Recall(query="*", recalled=tuple(ids))),
)


def test_ids_of_another_scope_are_unknown_in_every_call(archive: Archive, memory: Memory) -> None:
    own = fill(memory)
    for other in (archive.memory("user-43", tenant="acme"), archive.memory("user-42", tenant="globex")):
        fill(other)
        before = everything(archive)
        unknown = uuid4()
        for call in BY_ID:
            errors: list[str] = []
            for target in (own[0], unknown):
                with pytest.raises(UsageError) as caught:
                    call(other, [target])
                errors.append(str(caught.value).replace(str(target), "ID"))
            assert errors[0] == errors[1]  # the same answer as for an id that nobody has
        assert other.get(own[0]) is None
        assert other.get_item(own[0]) is None
        assert everything(archive) == before


def test_the_unscoped_shelf_is_nobody(archive: Archive) -> None:
    shelf, named = archive.memory(None, tenant="acme"), archive.memory("None", tenant="acme")
    fill(shelf)
    fill(named)
    shelf.erase(clean="later")
    assert len(shelf) == 0
    assert len(named) == 3
    fill(shelf)
    named.erase(clean="later")
    assert len(shelf) == 3


# --- Past states and receipts -----------------------------------------------------------------------------------------


def test_69_the_past_after_an_erasure(memory: Memory) -> None:
    first, second = memory.add(say("first")), memory.add(say("second"))
    head = memory.head()
    receipt = memory.forget([first.id], requested_by="dpo@acme", reason="asked")
    erasure = memory.events()[-1]
    assert isinstance(erasure, Erasure)
    assert (erasure.targets, erasure.count, erasure.reason, erasure.requested_by) == (
        (first.id,),
        1,
        "asked",
        "dpo@acme",
    )
    past = memory.replay(up_to_seq=1)
    assert past.messages == (second,)
    assert past.erased == {first.id: erasure.seq}
    assert past.last_seq == 1
    left = memory.get(first.id)
    assert isinstance(left, ErasedEvent)
    assert (left.id, left.seq, left.kind, left.recorded_at) == (first.id, 0, "message", first.recorded_at)
    assert len(left.content_digest) == 64
    report = memory.verify()
    assert report
    assert report.num_erased == 1
    assert receipt.head_before == head
    assert receipt.head_after == memory.head()
    assert (receipt.targets, receipt.counts, receipt.count) == ((first.id,), {"message": 1}, 1)
    assert (receipt.requested_by, receipt.reason, receipt.whole_scope) == ("dpo@acme", "asked", False)
    assert Receipt.from_json(receipt.to_json()) == receipt


def test_a_whole_scope_keeps_no_reason(archive: Archive, memory: Memory) -> None:
    fill(memory)
    memory.delete([memory.events()[0].id], "a reason with a name in it", requested_by="anna")
    head = memory.head()
    assert head is not None
    receipt = memory.erase(requested_by="dpo@acme", reason="article 17")
    assert (receipt.requested_by, receipt.reason, receipt.whole_scope, receipt.targets) == (
        "dpo@acme",
        "article 17",
        True,
        (),
    )
    assert receipt.counts == {"message": 1, "note": 1, "recall": 1, "deletion": 1}
    assert receipt.num_facts == 1
    assert receipt.ledger_id == head.ledger_id
    ledger = archive.ledger(head.ledger_id)
    *erased, erasure = ledger.events()
    assert all(isinstance(event, ErasedEvent) and event.erased == erasure.seq for event in erased)
    assert isinstance(erasure, Erasure)
    assert (erasure.reason, erasure.requested_by, erasure.whole_scope, erasure.count) == ("erased", None, True, 4)
    assert ledger.head() == receipt.head_after
    assert ledger.verify().num_erased == 4


def test_nothing_to_destroy(archive: Archive, memory: Memory) -> None:
    for receipt in (memory.erase(), memory.erase_session("s1")):
        assert (receipt.count, receipt.state, receipt.ledger_id) == (0, "clean", None)
    with pytest.raises(UsageError, match="no such event"):
        memory.forget([uuid4()])
    assert everything(archive) == {}
    fill(memory)
    before = len(memory)
    assert memory.erase_session("another").count == 0
    for targets in ([], [uuid4()], ["no id"]):
        with pytest.raises(UsageError):
            memory.forget(targets)
    with pytest.raises(TypeError):
        memory.forget(str(uuid4()))
    assert len(memory) == before
    assert archive.pending() == ()


def test_only_content_and_reads_are_forgotten(memory: Memory) -> None:
    said, note, _ = fill(memory)
    deletion = memory.delete([said], "asked")
    memory.forget([note], clean="later")
    erasure = memory.events()[-1]
    length = len(memory)
    for event in (deletion, erasure):
        with pytest.raises(UsageError, match=event.kind):
            memory.forget([said, event.id], clean="later")
    assert not isinstance(memory.get(said), ErasedEvent)
    assert len(memory) == length
    again = memory.forget([note, said], clean="later")
    assert (again.targets, again.counts) == ((said,), {"message": 1})


def test_e20_what_was_derived_goes_along(memory: Memory) -> None:
    source = memory.add(say())
    first = memory.remember("derived", derived_from=[source.id])
    second = memory.remember("derived from that", derived_from=[uuid4(), first.id], key="k")
    newer = memory.put("k", "a newer version of it")
    beside = memory.remember("beside")
    plain = memory.forget([beside.id], clean="later")
    assert plain.targets == (beside.id,)
    receipt = memory.forget([source.id], derived=True, clean="later")
    assert set(receipt.targets) == {source.id, first.id, second.id, newer.id}


def test_more_than_one_erasure_can_name(archive: Archive, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Erasure names 10,000 events; a smaller limit makes the same point in less time."""
    monkeypatch.setattr(eraser, "TARGETS_MAX", 10)
    memory.add_many([say(f"{number}", session_id="s1") for number in range(25)])
    receipt = memory.erase_session("s1", clean="later")
    assert receipt.counts == {"message": 25}
    assert len(receipt.targets) == 25
    erasures = [event for event in memory.events(kind="erasure") if isinstance(event, Erasure)]
    assert [(len(erasure.targets), erasure.count) for erasure in erasures] == [(10, 10), (10, 10), (5, 5)]
    assert memory.replay().messages == ()
    assert archive.pending() == (receipt.id,)
    assert memory.verify().num_erased == 25


def test_arguments_of_destructive_calls(memory: Memory) -> None:
    ids = fill(memory)
    wrong: Any = "soon"
    for call in (
        lambda: memory.forget(ids, clean=wrong),
        lambda: memory.erase(clean=wrong),
        lambda: memory.erase_session("s1", clean=wrong),
        lambda: memory.forget(ids, reason=""),
        lambda: memory.forget(ids, requested_by="\ud800"),
        lambda: memory.erase_session("\ud800"),
        lambda: memory.erase_session(wrong and 5),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(UsageError):
            call()
    with pytest.raises(LimitExceededError):
        memory.forget(ids, requested_by="x" * 257)
    assert [event.id for event in memory.events()] == ids


def test_a_receipt_is_json() -> None:
    for text in ("", "{}", "null", base64.b64encode(b"x").decode(), '{"id": "5"}'):
        with pytest.raises(UsageError, match="not a receipt"):
            Receipt.from_json(text)


# --- Sweep ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["delete", "erase"])
def test_81_sweep(archive: Archive, memory: Memory, action: Any) -> None:
    expired = memory.add(say("expired", retain_until=START))
    never = memory.add(Document(name="a.txt", text="never"))
    later = memory.remember("later", retain_until=START + 2 * DAY)
    other = archive.memory("user-43", tenant="globex")
    of_other = other.add(say(retain_until=START))

    dry = archive.sweep(START, action, True)
    assert [(scope.tenant, scope.subject, scope.expired, scope.receipt) for scope in dry.scopes] == [
        ("acme", "user-42", (expired.id,), None),
        ("globex", "user-43", (of_other.id,), None),
    ]
    assert (len(memory), len(other), dry.dry_run, dry.num_items) == (3, 1, True, 2)

    report = archive.sweep(START, action, tenant="acme")
    assert [(scope.tenant, scope.expired) for scope in report.scopes] == [("acme", (expired.id,))]
    assert (len(memory), len(other)) == (4, 1)
    act = memory.events()[-1]
    assert isinstance(act, Deletion if action == "delete" else Erasure)
    assert (act.targets, act.reason) == ((expired.id,), "retain_until passed")
    assert [item.id for item in memory.items()] == [never.id, later.id]
    if action == "delete":
        assert memory.get(expired.id) == expired
    else:
        assert isinstance(memory.get(expired.id), ErasedEvent)
        receipt = report.scopes[0].receipt
        assert receipt is not None
        assert (receipt.state, receipt.action, receipt.counts) == ("clean", "sweep", {"message": 1})

    assert archive.sweep(START, action, tenant="acme").scopes == ()
    assert len(memory) == 4
    assert archive.sweep(START, "erase", tenant="acme").num_items == (1 if action == "delete" else 0)
    assert archive.verify(deep=True)


def test_82_nothing_is_lost_by_merely_passing(memory: Memory, clock: FakeClock) -> None:
    said = memory.add(say("the pump failed", retain_until=START - DAY))
    note = memory.put("plan", "call", tier="core", retain_until=START + DAY)
    clock.advance(10 * DAY)
    assert [hit.id for hit in memory.search("pump")] == [said.id]
    assert memory.get_live("plan") == note
    assert "call" in memory.prompt()
    assert [item.id for item in memory.items()] == [said.id, note.id]
    assert memory.replay().visible == (said, note)


def test_sweep_erases_old_reads(archive: Archive, memory: Memory, clock: FakeClock) -> None:
    note = memory.remember("a note")
    old = memory.record(Recall(query="an old question", recalled=(note.id,), timestamp=START))
    clock.advance(2 * DAY)
    new = memory.record(Recall(query="a new question", recalled=(note.id,), timestamp=START + DAY))
    report = archive.sweep(START - DAY, recalls_before=START + DAY)
    assert [(scope.expired, scope.recalls) for scope in report.scopes] == [((), (old.id,))]
    assert isinstance(memory.get(old.id), ErasedEvent)
    assert memory.get(new.id) == new
    (item,) = memory.items()
    assert (item.usage_count, item.last_used_at) == (1, START + DAY)
    assert isinstance(memory.get(note.id), Note)


def test_sweep_wants_a_time_and_an_action(archive: Archive) -> None:
    naive: Any = START.replace(tzinfo=None)
    action: Any = "hide"
    for call in (
        lambda: archive.sweep(naive),
        lambda: archive.sweep(START, recalls_before=naive),
        lambda: archive.sweep(START, action),
    ):
        with pytest.raises(UsageError):
            call()


# --- Tenants ----------------------------------------------------------------------------------------------------------


def test_drop_destroys_every_scope_and_the_name(archive: Archive) -> None:
    for subject in ("user-42", "user-43", None):
        fill(archive.memory(subject, tenant="acme"))
    fill(archive.memory("user-42", tenant="acme2"))
    receipts = archive.tenant("acme").drop(requested_by="dpo@acme")
    assert [receipt.action for receipt in receipts] == ["erase"] * 3 + ["drop"]
    assert {receipt.state for receipt in receipts} == {"clean"}
    assert [tenant.name for tenant in archive.tenants()] == ["acme2"]
    assert archive.pending() == ()
    assert archive.tenant("acme").drop() == []
    assert len(archive.memory("user-42", tenant="acme2")) == 3
    fill(archive.memory("user-42", tenant="acme"))
    assert len(list(archive.tenant("acme").scopes(erased=True))) == 0
    assert archive.verify(deep=True).num_ledgers == 5


def test_a_tenant_whose_scopes_are_gone_already_still_has_a_name_to_drop(archive: Archive) -> None:
    memory = archive.memory("user-42", tenant="acme")
    fill(memory)
    memory.erase()
    (receipt,) = archive.tenant("acme").drop(clean="later")
    assert (receipt.action, receipt.state) == ("drop", "unreachable")
    assert archive.pending() == (receipt.id,)
    assert receipt.completed(archive.clean()).state == "clean"
