"""What callers can do to the public calls that no call is meant for: each has an answer that says who must act."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import muniment
from muniment import Archive, Erasure, Memory, Message, Receipt
from muniment.errors import ConflictError, IntegrityError, StorageUnavailableError, UsageError


@pytest.fixture
def archive() -> Iterator[Archive]:
    with muniment.open(":memory:") as opened:
        yield opened


@pytest.fixture
def memory(archive: Archive) -> Memory:
    return archive.memory("s", tenant="t")


def test_change_stores_notes_and_deletions_only(memory: Memory) -> None:
    note = memory.remember("live")
    erasure: Any = Erasure(reason="q", targets=(note.id,), count=1)
    with pytest.raises(TypeError):
        memory.change(lambda _: [erasure])
    wrong: Any = [5]
    with pytest.raises(TypeError):
        memory.change(lambda _: wrong)
    assert len(memory) == 1
    assert memory.search("live")
    assert memory.verify(deep=True)


def test_hand_out_takes_only_what_it_offered(archive: Archive, memory: Memory) -> None:
    other = archive.memory("o", tenant="u")
    other.remember("secret of another")
    memory.remember("mine")
    foreign = list(other.items())
    with pytest.raises(UsageError):
        memory.hand_out(lambda _: foreign)
    stale = list(memory.items())
    memory.forget([stale[0].id])
    with pytest.raises(UsageError):
        memory.hand_out(lambda _: stale)
    assert list(memory.events(kind="recall")) == []
    assert archive.verify(deep=True)


def test_a_retry_of_if_absent_gets_the_note_it_got_before(memory: Memory) -> None:
    first = memory.remember("hello")
    found = memory.remember("hello", if_absent=True, request_id="r1")
    memory.delete([first.id], "x")
    again = memory.remember("hello", if_absent=True, request_id="r1")
    assert found.id == again.id == first.id
    with pytest.raises(ConflictError):
        memory.remember("other", request_id="r1")


def test_a_retry_after_the_note_was_forgotten_gets_what_is_left(memory: Memory) -> None:
    note = memory.remember("hello", request_id="r1")
    memory.forget([note.id])
    left = memory.remember("hello", request_id="r1")
    assert left.id == note.id
    assert type(left).__name__ == "ErasedEvent"


def test_a_request_id_answers_no_other_call_after_an_erasure(memory: Memory) -> None:
    note = memory.remember("fg", request_id="r1")
    memory.forget([note.id])
    with pytest.raises(ConflictError):
        memory.put("plan", "something new", request_id="r1")
    assert memory.put("plan", "something new", request_id="r2").key == "plan"


@pytest.mark.parametrize("seq", [True, 1.0, "1"])
def test_an_expected_seq_is_a_whole_number(memory: Memory, seq: Any) -> None:
    memory.put("k", "v")
    with pytest.raises(UsageError):
        memory.put("k", "w", expected_seq=seq)


def test_collections_may_be_read_once(memory: Memory) -> None:
    memory.remember("core fact", tier="core")
    assert memory.prompt(tiers=(tier for tier in ["core"])) == "## Memory\n- core fact"  # type: ignore[arg-type]
    once: Any = iter(["core"])
    assert len(memory.items(tiers=once)) == 1
    once = iter(["note"])
    assert len(memory.search("fact", kinds=once)) == 1


def test_a_listing_is_cut_from_its_end_as_it_is_now(memory: Memory) -> None:
    memory.add_many([Message(speaker="a", content=f"m{number}") for number in range(30)])
    items = memory.items()
    assert len(items) == 30
    memory.forget([items[number].id for number in range(10)])
    assert [item.text for item in items[-3:]] == ["m27", "m28", "m29"]
    assert items[0].text == "m10"
    with pytest.raises(IndexError):
        items[10**30]
    with pytest.raises(TypeError):
        items[1.0]  # type: ignore[call-overload]


def test_states_and_receipts_are_values(memory: Memory) -> None:
    note = memory.remember("x")
    memory.delete([note.id], "y")
    state = memory.replay()
    assert pickle.loads(pickle.dumps(state)) == copy.deepcopy(state) == state  # noqa: S301
    receipt = memory.forget([note.id])
    assert Receipt.from_json(receipt.to_json()) == receipt
    assert len({receipt, receipt}) == 1
    with pytest.raises(TypeError):
        receipt.counts["note"] = 99  # type: ignore[index]


BAD_CALLS: list[Callable[[Archive, Memory], object]] = [
    lambda archive, _: archive.ledger(5),  # type: ignore[arg-type]
    lambda archive, _: archive.ledger("00"),
    lambda archive, _: archive.ledger("00" * 15 + " 0"),
    lambda archive, _: archive.add_many([5]),  # type: ignore[list-item]
    lambda archive, _: archive.tenant("t").drop(clean="NOW"),  # type: ignore[arg-type]
    lambda archive, _: archive.tenant("t").drop(reason=5),  # type: ignore[arg-type]
    lambda _, memory: memory.erase(reason=5),  # type: ignore[arg-type]
    lambda _, memory: memory.erase(reason=""),
    lambda _, memory: memory.erase(requested_by=b"x"),  # type: ignore[arg-type]
    lambda _, memory: memory.search("x", labels=[["a"]]),  # type: ignore[list-item]
    lambda _, memory: memory.search("x", kinds=5),  # type: ignore[arg-type]
    lambda _, memory: memory.remember("x", derived_from=None),  # type: ignore[arg-type]
    lambda _, memory: memory.put("k", "x", labels=None),  # type: ignore[arg-type]
    lambda _, memory: memory.prompt(tiers=None),  # type: ignore[arg-type]
    lambda _, memory: memory.add(muniment.Note(content="b").model_copy(update={"tier": "nope"})),
    lambda _, memory: memory.add(muniment.Note(content="b").model_copy(update={"id": "x"})),
    lambda _, memory: memory.add(muniment.Note(content="b").model_copy(update={"metadata": {"a": object()}})),
]


@pytest.mark.parametrize("call", BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_what_cannot_be_answered_is_a_usage_error(
    archive: Archive, memory: Memory, call: Callable[[Archive, Memory], object]
) -> None:
    memory.remember("there")
    with pytest.raises(UsageError):
        call(archive, memory)
    assert len(memory) == 1


@pytest.mark.parametrize("url", [5, None, b"x.db", "", "a\x00b", "sqlite:///%00", "~no-such-user-here/x.db"])
def test_what_is_no_place_is_a_usage_error(url: Any) -> None:
    with pytest.raises(UsageError):
        muniment.open(url)


def test_an_archive_that_was_moved_takes_no_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with muniment.open(path) as archive:
        memory = archive.memory("s", tenant="t")
        note = memory.remember("x")
        path.rename(tmp_path / "b.db")
        for write in (lambda: memory.remember("y"), lambda: memory.forget([note.id]), archive.clean):
            with pytest.raises(StorageUnavailableError):
                write()
        (tmp_path / "b.db").rename(path)
        assert memory.remember("y").seq == 1


def test_a_second_name_is_refused_and_a_link_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "real.db"
    with muniment.open(path) as archive:
        archive.memory("s", tenant="t").remember("x")
    (tmp_path / "link.db").symlink_to(path)
    with muniment.open(tmp_path / "link.db") as archive:
        memory = archive.memory("s", tenant="t")
        memory.forget([memory.events()[0].id])
    assert (tmp_path / "real.db.erasures").exists()
    assert not (tmp_path / "link.db.erasures").exists()
    os.link(path, tmp_path / "hard.db")
    with pytest.raises(StorageUnavailableError):
        muniment.open(tmp_path / "hard.db")


def test_damaged_rows_are_integrity_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with muniment.open(path) as archive:
        memory = archive.memory("s", tenant="t")
        memory.remember("hello there")
        memory.remember("hello again")
    raw = apsw.Connection(str(path))
    for trigger in ("update", "delete", "replace"):
        raw.execute(f"DROP TRIGGER events_refuse_{trigger}")
    raw.execute("DELETE FROM events WHERE place = (SELECT max(place) FROM events)")
    raw.close()
    with muniment.open(path) as archive:
        with pytest.raises(IntegrityError):
            archive.memory("s", tenant="t").search("hello")
        assert not archive.verify(deep=True)
    raw = apsw.Connection(str(path))
    raw.execute("UPDATE tenants SET name = CAST(x'ff' AS TEXT)")
    raw.close()
    with muniment.open(path) as archive, pytest.raises(IntegrityError):
        list(archive.tenants())
