"""Whoever can write to the file can change it; whoever reads it afterwards is told.

Each case changes one stored thing by hand, with the triggers out of the way, as an operator with the file could.
`verify` must then fail at the first event that is not what was written, and no read may hand out changed content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import apsw
import pytest

import muniment
from muniment import Archive, Memory, Message, Recall, VerifyReport
from muniment.core.canonical import Envelope, digest_of, leaf_of
from muniment.core.merkle import extend_edge, pack_edge
from muniment.errors import IntegrityError

SHIFT: Final = 1 << 32
"""The place of seq 0 in the first scope."""

VICTIM: Final = 2
DOCUMENT, KEYED, NEWER, DELETION, RECALL = 5, 6, 7, 8, 9
LENGTH: Final = 10
SAID: Final = tuple(f"number {number}" for number in range(5))
WRITTEN: Final = {*SAID, "the pump failed", "call the contractor", "replace the pump"}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed archive with one ledger: five messages, a document, a key held twice, a deletion, a recall."""
    path = tmp_path_factory.mktemp("pristine") / "archive.db"
    with muniment.open(path, durability="normal") as archive:
        memory = memory_of(archive)
        said = [
            memory.add(Message(speaker="anna", content=content, session_id=f"s{number % 2}"))
            for number, content in enumerate(SAID)
        ]
        memory.add(muniment.Document(name="report.txt", text="the pump failed"))
        memory.put("plan", "call the contractor")
        memory.put("plan", "replace the pump")
        memory.delete([said[1].id], "asked")
        memory.record(Recall(query="pump", recalled=(said[3].id,)))
        assert len(memory) == LENGTH
    return path.read_bytes()


def memory_of(archive: Archive) -> Memory:
    return archive.memory("user-42", tenant="acme")


class Hand:
    """The file, changed by hand."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self.run("PRAGMA synchronous=OFF")
        self.run("PRAGMA ignore_check_constraints=ON")
        for (name,) in list(self.rows("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
            self.run(f"DROP TRIGGER {name}")

    def rows(self, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(sql, bindings))

    def run(self, sql: str, *bindings: Any) -> None:
        self._connection.execute(sql, bindings)

    def event(self, change: str, *bindings: Any, seq: int = VICTIM) -> None:
        """Change columns of an event."""
        self.run(f"UPDATE events SET {change} WHERE place = ?", *bindings, SHIFT | seq)  # noqa: S608

    def content(self, change: str, *bindings: Any, seq: int = VICTIM) -> None:
        """Change columns of a content."""
        self.run(f"UPDATE contents SET {change} WHERE place = ?", *bindings, SHIFT | seq)  # noqa: S608

    def head(self, change: str, *bindings: Any) -> None:
        """Change columns of the head."""
        self.run(f"UPDATE scopes SET {change}", *bindings)  # noqa: S608

    def remove(self, table: str, seq: int) -> None:
        self.run(f"DELETE FROM {table} WHERE place = ?", SHIFT | seq)  # noqa: S608

    def swap(self, table: str, first: int, second: int) -> None:
        """Let two rows change places."""
        aside = SHIFT - 1
        for before, after in ((SHIFT | first, aside), (SHIFT | second, SHIFT | first), (aside, SHIFT | second)):
            self.run(f"UPDATE {table} SET place = ? WHERE place = ?", after, before)  # noqa: S608

    def rewrite(self, *, digest: bool = False, leaf: bool = False, tree: bool = False) -> None:
        """Change what was said, and as much of the proof as is asked for."""
        ((salt, body),) = self.rows("SELECT salt, body FROM contents WHERE place = ?", SHIFT | VICTIM)
        forged = body.replace(b"number 2", b"number 9")
        assert forged != body
        self.content("body = ?", forged)
        if digest:
            self.event("digest = ?", digest_of(salt, forged))
        if leaf:
            self.reseal(VICTIM)
        if tree:
            self.rebuild_tree(LENGTH)

    def reseal(self, seq: int) -> None:
        """Give an event the leaf of its envelope as it stands."""
        ((ledger_id,),) = self.rows("SELECT ledger_id FROM scopes")
        ((event_id, kind, recorded_us, digest, links),) = self.rows(
            "SELECT event_id, kind, recorded_us, digest, links FROM events WHERE place = ?", SHIFT | seq
        )
        leaf = leaf_of(ledger_id, Envelope(seq, event_id, kind, recorded_us, digest, links))
        self.event("leaf = ?", leaf, seq=seq)

    def rebuild_tree(self, size: int) -> None:
        """Give the head the edge of the first leaves as they stand."""
        leaves = [leaf for (leaf,) in self.rows("SELECT leaf FROM events ORDER BY place LIMIT ?", size)]
        self.head("next_seq = ?, edge = ?", size, pack_edge(extend_edge([], 0, leaves)))

    def close(self) -> None:
        self._connection.close()


class Fails(Enum):
    """Which reads of the whole ledger must refuse."""

    EVERY_READ = auto()
    REPLAY = auto()
    """An event is not there: a list of events may go on, a state without it would be a wrong one."""
    VERIFY_ONLY = auto()
    """Every event is what its leaf says: only the tree can tell."""


@dataclass(frozen=True)
class Case:
    """One thing changed by hand, and what must be said of it."""

    name: str
    change: Callable[[Hand], object]
    bad_seq: int | None
    """The first event that is not what was written; None where only the tree as a whole can tell."""
    fails: Fails = Fails.EVERY_READ


def links_of(tag: int, *ids: UUID) -> bytes:
    value = b"".join(item.bytes for item in ids)
    return bytes([tag]) + len(value).to_bytes(4, "big") + value


OTHER_ID: Final = UUID(int=7)

CASES: Final = [
    # What was said, and the proof of it.
    Case("body", lambda hand: hand.rewrite(), VICTIM),
    Case("body emptied", lambda hand: hand.content("body = x''"), VICTIM),
    Case("salt", lambda hand: hand.content("salt = randomblob(16)"), VICTIM),
    Case(
        "border between salt and body",
        lambda hand: hand.content(
            "salt = cast(salt || substr(body, 1, 1) AS BLOB), body = cast(substr(body, 2) AS BLOB)"
        ),
        VICTIM,
    ),
    Case("digest", lambda hand: hand.event("digest = randomblob(32)"), VICTIM),
    Case("digest made longer", lambda hand: hand.event("digest = cast(digest || x'00' AS BLOB)"), VICTIM),
    Case("body and digest", lambda hand: hand.rewrite(digest=True), VICTIM),
    Case("body, digest and leaf", lambda hand: hand.rewrite(digest=True, leaf=True), None, fails=Fails.VERIFY_ONLY),
    Case("contents swapped", lambda hand: hand.swap("contents", VICTIM, VICTIM + 1), VICTIM),
    # The envelope.
    Case("leaf", lambda hand: hand.event("leaf = randomblob(32)"), VICTIM),
    Case("kind, another content kind", lambda hand: hand.event("kind = 3"), VICTIM),
    Case("kind, an erasure", lambda hand: hand.event("kind = 6"), VICTIM),
    Case("kind that there is not", lambda hand: hand.event("kind = 7"), VICTIM),
    Case("kind that no byte holds", lambda hand: hand.event("kind = 300"), VICTIM),
    Case("kind, negative", lambda hand: hand.event("kind = -1"), VICTIM, fails=Fails.REPLAY),
    Case("kind, a huge number", lambda hand: hand.event("kind = 9223372036854775807"), VICTIM),
    Case("recorded later", lambda hand: hand.event("recorded_us = recorded_us + 1"), VICTIM),
    Case("recorded before the one ahead", lambda hand: hand.event("recorded_us = 0"), VICTIM),
    Case("recorded after the end of time", lambda hand: hand.event("recorded_us = 1 << 62"), VICTIM),
    Case("event id", lambda hand: hand.event("event_id = ?", OTHER_ID.bytes), VICTIM),
    Case("links given to a message", lambda hand: hand.event("links = ?", links_of(0x10, OTHER_ID)), VICTIM),
    Case("links of a deletion, another target", lambda hand: hand.event(
        "links = ?", links_of(0x10, OTHER_ID), seq=DELETION), DELETION),
    Case("links of a deletion, none", lambda hand: hand.event("links = x''", seq=DELETION), DELETION),
    Case("links of a deletion, torn", lambda hand: hand.event("links = x'10ff'", seq=DELETION), DELETION),
    Case("links of a note, what it superseded", lambda hand: hand.event("links = x''", seq=NEWER), NEWER),
    Case("events swapped", lambda hand: (hand.swap("events", 2, 3), hand.swap("contents", 2, 3)), VICTIM),
    # What is there at all.
    Case("content deleted", lambda hand: hand.remove("contents", VICTIM), VICTIM),
    Case("event deleted", lambda hand: hand.remove("events", VICTIM), VICTIM, fails=Fails.REPLAY),
    Case("everything of an event deleted", lambda hand: [hand.remove(table, VICTIM) for table in (
        "events", "contents", "items")], VICTIM, fails=Fails.REPLAY),
    Case("first event deleted", lambda hand: hand.remove("events", 0), 0, fails=Fails.REPLAY),
    Case("last event deleted", lambda hand: hand.remove("events", LENGTH - 1), LENGTH - 1, fails=Fails.REPLAY),
    Case("a deletion's content deleted", lambda hand: hand.remove("contents", DELETION), DELETION),
    # The head.
    Case("tree edge", lambda hand: hand.head("edge = randomblob(length(edge))"), None, fails=Fails.VERIFY_ONLY),
    Case("tree edge cut short", lambda hand: hand.head("edge = x''"), None, fails=Fails.VERIFY_ONLY),
    Case("head cut back", lambda hand: hand.head("next_seq = 7"), 7, fails=Fails.VERIFY_ONLY),
    Case("head cut back with its edge", lambda hand: hand.rebuild_tree(6), 6, fails=Fails.VERIFY_ONLY),
    Case("head moved on", lambda hand: hand.head("next_seq = 12"), LENGTH, fails=Fails.REPLAY),
    Case("ledger id", lambda hand: hand.head("ledger_id = randomblob(16)"), 0),
    Case("an event added beyond the head", lambda hand: hand.run(
        "INSERT INTO events SELECT place + 1, randomblob(16), kind, recorded_us, digest, links, leaf "
        "FROM events WHERE place = ?", SHIFT | (LENGTH - 1)), LENGTH, fails=Fails.VERIFY_ONLY),
]  # fmt: skip


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def archive(case: Case, pristine: bytes, tmp_path: Path) -> Iterator[Archive]:
    """An archive in which that thing was changed."""
    path = tmp_path / "archive.db"
    path.write_bytes(pristine)
    hand = Hand(path)
    case.change(hand)
    hand.close()
    with muniment.open(path, durability="normal") as archive:
        yield archive


def test_verify_fails_at_the_first_event_that_was_changed(archive: Archive, case: Case) -> None:
    """Before and after one more add, which may be refused and must not hide anything."""
    memory = memory_of(archive)
    report = memory.verify()
    assert isinstance(report, VerifyReport)
    assert not report
    assert report.problem
    assert report.bad_seq == case.bad_seq
    assert not archive.verify()
    with suppress(IntegrityError):
        memory.add(Message(speaker="anna", content="one more"))
    assert not memory.verify()


def test_reads_hand_out_nothing_that_was_changed(archive: Archive, case: Case) -> None:
    memory = memory_of(archive)
    match case.fails:
        case Fails.EVERY_READ:
            with pytest.raises(IntegrityError):
                list(memory.events())
            with pytest.raises(IntegrityError):
                memory.replay()
        case Fails.REPLAY:
            with pytest.raises(IntegrityError):
                memory.replay()
        case Fails.VERIFY_ONLY:
            assert list(memory.events())
            assert memory.replay()
            return
    try:
        items = memory.items(hidden=True).page()
    except IntegrityError:
        return
    assert {item.text for item in items} <= WRITTEN
    assert all(item.event.id != OTHER_ID for item in items)


PROJECTIONS: Final = {
    "item deleted": "DELETE FROM items WHERE place = {victim}",
    "hidden item shown": "UPDATE items SET deleted_seq = NULL",
    "item hidden": "UPDATE items SET deleted_seq = 8 WHERE place = {victim}",
    "superseded note shown": "UPDATE items SET superseded_seq = NULL",
    "tier": "UPDATE items SET tier = 1 WHERE tier = 2",
    "kind of an item": "UPDATE items SET kind = 2 WHERE place = {victim}",
    "time of an item": "UPDATE items SET timestamp_us = timestamp_us + 1 WHERE place = {victim}",
    "terms": "UPDATE items SET terms = randomblob(length(terms)) WHERE place = {victim}",
    "key": "UPDATE items SET key_hash = key_hash + 1",
    "session": "UPDATE contents SET session_hash = session_hash + 1 WHERE place = {victim}",
    "uses": "UPDATE usage SET times = times + 1",
    "uses deleted": "DELETE FROM usage",
    "salt of the terms": "UPDATE scopes SET salt = randomblob(16)",
}
"""What search works on, changed by hand."""


@pytest.mark.parametrize("change", PROJECTIONS)
def test_a_deep_verification_sees_changed_projections(pristine: bytes, tmp_path: Path, change: str) -> None:
    """The ledger itself is what was written, so its own verification passes."""
    path = tmp_path / "archive.db"
    path.write_bytes(pristine)
    hand = Hand(path)
    hand.run(PROJECTIONS[change].format(victim=SHIFT | VICTIM))
    hand.close()
    with muniment.open(path, durability="normal") as archive:
        assert memory_of(archive).verify()
        assert archive.verify()
        assert not archive.verify(deep=True)


def test_erased_content_that_is_put_back_is_not_handed_out(pristine: bytes, tmp_path: Path) -> None:
    """As from a copy that somebody kept: it matches its digest, and must stay gone all the same."""
    path = tmp_path / "archive.db"
    path.write_bytes(pristine)
    hand = Hand(path)
    ((salt, session_hash, body),) = hand.rows(
        "SELECT salt, session_hash, body FROM contents WHERE place = ?", SHIFT | VICTIM
    )
    with muniment.open(path, durability="normal") as archive:
        memory = memory_of(archive)
        victim = memory.events()[VICTIM].id
        memory.forget([victim])
        assert memory.verify()
        hand.run("INSERT INTO contents VALUES (?, ?, ?, ?)", SHIFT | VICTIM, salt, session_hash, body)
        report = memory.verify()
        assert (report.ok, report.bad_seq) == (False, VICTIM)
        reads: list[Callable[[], object]] = [
            lambda: memory.get(victim),
            lambda: memory.events()[VICTIM],
            lambda: memory.replay().messages,
        ]
        for read in reads:
            with suppress(IntegrityError):
                assert SAID[VICTIM] not in repr(read())
    hand.close()


def test_an_operator_who_rewrites_the_whole_proof_changes_the_root(pristine: bytes, tmp_path: Path) -> None:
    """What a ledger alone cannot show, a head that was noted before shows."""
    path = tmp_path / "archive.db"
    path.write_bytes(pristine)
    with muniment.open(path) as archive:
        noted = memory_of(archive).head()
    hand = Hand(path)
    hand.rewrite(digest=True, leaf=True, tree=True)
    hand.close()
    with muniment.open(path) as archive:
        report = memory_of(archive).verify()
        assert report.ok
        assert report.head != noted


def test_the_untouched_archive_verifies(pristine: bytes, tmp_path: Path) -> None:
    """So that a case above fails for what it changed."""
    path = tmp_path / "archive.db"
    path.write_bytes(pristine)
    hand = Hand(path)
    hand.close()
    with muniment.open(path) as archive:
        assert memory_of(archive).verify()
        assert archive.verify(deep=True)
        assert len(list(memory_of(archive).events())) == LENGTH


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET kind = 3",
        "DELETE FROM events",
        "REPLACE INTO events SELECT * FROM events LIMIT 1",
        "INSERT OR REPLACE INTO events SELECT place + 9, event_id, kind, recorded_us, digest, links, leaf FROM events",
        "INSERT INTO events SELECT * FROM events LIMIT 1 ON CONFLICT (place) DO UPDATE SET kind = 3",
        "UPDATE OR REPLACE events SET place = place + 1",
    ],
)
def test_with_the_triggers_in_place_no_statement_changes_an_event(
    pristine: bytes, tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "archive.db"
    path.write_bytes(pristine)
    connection = apsw.Connection(str(path))
    before = list(connection.execute("SELECT * FROM events"))
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        connection.execute(statement)
    assert list(connection.execute("SELECT * FROM events")) == before
    connection.close()
