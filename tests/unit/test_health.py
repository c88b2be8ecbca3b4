"""Planted problems are found, each once and where it is; clean memories raise no alarm."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import muniment
from muniment import Archive, Document, Memory, Message, Recall, Scope
from muniment.errors import LimitExceededError, UsageError
from muniment.health import KINDS, HealthReport, Thresholds, examine
from muniment.testing.doubles import FakeClock

CARD = "4111 1111 " + "1111 1111"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory://", ":memory:"])
def archive(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[Archive]:
    with muniment.open(request.param, clock=clock) as opened:
        yield opened


@pytest.fixture
def memory(archive: Archive) -> Memory:
    return archive.memory("anna", tenant="acme")


def _examine(archive: Archive, *, days: int = 0, only: Scope | None = None) -> HealthReport:
    newest = max(
        (info.last_recorded_at for info in archive.tenant("acme").scopes() if info.last_recorded_at),
        default=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return examine(archive, "acme", now=newest + timedelta(days=days), only=only)


def _found(report: HealthReport) -> list[tuple[str, int, int | None]]:
    return [(finding.kind, finding.seq, finding.other_seq) for finding in report.findings]


def test_clean_memories_raise_no_alarm(archive: Archive, memory: Memory) -> None:
    memory.add(Message(speaker="anna", content="yes"))
    memory.add(Message(speaker="ben", content="yes"))
    memory.add(Message(speaker="ben", content="yes"))
    for text in (
        "prefers the Berlin warehouse",
        "prefers the Hamburg warehouse",
        "invoice 12 was paid on 2026-01-03",
        "invoice 13 was paid on 2026-01-03",
        "likes coffee in the morning at work",
        "does not like coffee in the morning at work",
        "her phone is +49 30 1234 5678",
    ):
        memory.remember(text)
    memory.add(Document(name="terms.txt", text="A driver waits ten minutes. " * 300))
    archive.memory("ben", tenant="acme").remember("prefers the Berlin warehouse")
    memory.put("plan", "1. call the contractor")
    memory.put("plan", "1. call the contractor")
    report = _examine(archive, days=1)
    assert _found(report) == []
    assert report
    assert (report.num_scopes, report.num_items) == (2, 14)
    assert report.counts == dict.fromkeys(KINDS, 0)


def test_secrets_wherever_they_stand(archive: Archive, memory: Memory) -> None:
    memory.add(Message(speaker="anna", content=f"my card is {CARD}"))
    memory.remember("x", summary=f"card {CARD}", metadata={"login": {"password": "hunter2hunter2"}})
    memory.add(Document(name="key.pem", text="-----BEGIN " + "PRIVATE KEY-----\nMIIE"))
    gone = memory.remember(f"deleted: {CARD}")
    memory.delete([gone.id], reason="x")
    memory.record(Recall(query=f"whose card is {CARD}"))
    forgotten = memory.remember(f"forgotten: {CARD}")
    memory.forget([forgotten.id])
    report = _examine(archive)
    assert not report
    assert [(finding.seq, finding.detail) for finding in report.findings] == [
        (0, "card number in content, characters 11 to 30"),
        (1, "card number in summary, characters 5 to 24"),
        (1, "password or key in metadata"),
        (2, "private key in text, characters 0 to 27"),
        (3, "card number in content, characters 9 to 28 (hidden)"),
        (5, "card number in query, characters 14 to 33"),
    ]
    assert "4111" not in str(report)
    assert "hunter2" not in str(report.to_json())


def test_duplicates_and_near_duplicates(archive: Archive, memory: Memory) -> None:
    text = "The gate of the north yard is locked from nine in the evening until six in the morning."
    memory.remember(text)
    memory.remember(text.upper().replace(" ", "  "))
    memory.remember(text.replace("north yard", "north yard too"))
    memory.add(Document(name="a", text=text))
    archive.memory("ben", tenant="acme").remember(text)
    report = _examine(archive)
    assert _found(report) == [("duplicate", 1, 0), ("near_duplicate", 2, 0), ("near_duplicate", 3, 0)]
    assert report  # nothing urgent


def test_what_is_hidden_repeats_nothing(archive: Archive, memory: Memory) -> None:
    first = memory.remember("the very same text")
    memory.remember("the very same text")
    memory.delete([first.id], reason="x")
    assert _found(_examine(archive)) == []


def test_never_recalled_and_stale(archive: Archive, memory: Memory) -> None:
    unused, used = memory.remember("pears"), memory.remember("apples")
    memory.add(Message(speaker="a", content="said once"))
    assert memory.recall("apples")[0].recalled == (used.id,)
    assert _found(_examine(archive, days=29)) == []
    assert _found(_examine(archive, days=31)) == [("never_recalled", 0, None)]
    late = _examine(archive, days=200)
    assert _found(late) == [("never_recalled", 0, None), ("stale", 1, None)]
    assert late.findings[0].event_id == unused.id
    assert late.findings[1].detail == "handed out 1 times, last 200 days ago"


def test_expired_and_oversize(archive: Archive, memory: Memory) -> None:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    memory.remember("kept", retain_until=until)
    old = memory.remember("hidden", retain_until=until)
    memory.delete([old.id], reason="x")
    memory.remember("long " * 1_000)
    report = examine(archive, "acme", now=until)
    expired = [(finding.seq, finding.detail) for finding in report.findings if finding.kind == "expired"]
    assert expired == [
        (0, "was to be kept until 2030-01-01T00:00:00Z"),
        (1, "was to be kept until 2030-01-01T00:00:00Z (hidden)"),
    ]
    assert report.counts["oversize"] == 1
    assert not report
    archive.sweep(until, "erase")
    assert examine(archive, "acme", now=until).counts["expired"] == 0


def test_one_scope_of_a_tenant(archive: Archive, memory: Memory) -> None:
    memory.remember(CARD)
    archive.memory(None, tenant="acme").remember(CARD)
    archive.memory("anna", tenant="other").remember(CARD)
    assert _examine(archive).counts["secret"] == 2
    report = _examine(archive, only=Scope("acme", None))
    assert (report.num_scopes, report.findings[0].scope) == (1, Scope("acme", None))
    assert _examine(archive, only=Scope("acme", "nobody")).num_scopes == 0


def test_nothing_is_recorded(archive: Archive, memory: Memory) -> None:
    memory.remember("x")
    _examine(archive)
    assert len(memory) == 1


def test_bad_arguments(archive: Archive) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(UsageError, match="not a naive one"):
        examine(archive, "acme", now=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(UsageError, match="not one of tenant"):
        examine(archive, "acme", now=now, only=Scope("other", "x"))
    with pytest.raises(UsageError, match="similarity_min"):
        Thresholds(similarity_min=0.0)
    with pytest.raises(LimitExceededError):
        examine(archive, "x" * 300, now=now)
