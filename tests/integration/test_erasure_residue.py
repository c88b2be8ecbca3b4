"""After a destruction nothing of it is in any table; after the clean step, no byte of it is in any file.

The archive of these tests is built in random order over many scopes, so that pages split in their middle, and holds
something of everything: long texts on overflow pages, keys with many versions, reads that quote secrets, vectors,
request ids, sessions, names and metadata. What must be gone is read from the rows themselves before they go.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

import muniment
from muniment import Archive, Document, Memory, Message, Note, Recall, Scope
from muniment.adapters.sqlite import cleaning
from muniment.adapters.sqlite.statements import STATEMENTS
from muniment.model.receipt import Receipt
from muniment.testing.doubles import START, FakeClock
from muniment.testing.residue import find_in_files, find_in_tables, find_orphans, forms_of, secrets_of

TENANTS: Final = ("tenant-aldebaran", "tenant-betelgeuse", "tenant-capella")
SCOPES: Final = tuple(Scope(tenant, f"subject-{tenant[7:]}-{number}") for tenant in TENANTS for number in range(4))
VICTIM: Final = SCOPES[5]
EVENTS: Final = 16
"""Of each scope."""
EXPIRED: Final = START + timedelta(days=1)
NOW: Final = START + timedelta(days=2)


def embed(texts: list[str]) -> list[list[float]]:
    """A vector of each text that no other text has."""
    digests = [hashlib.sha256(text.encode()).digest() for text in texts]
    return [[byte - 127.5 for byte in digest] for digest in digests]


@dataclass
class Story:
    """What was written into one scope, and the secret words in it."""

    scope: Scope
    words: set[str] = field(default_factory=set[str])
    ids: list[UUID] = field(default_factory=list[UUID])
    recalled: list[UUID] = field(default_factory=list[UUID])
    sessions: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        self.words = {self.scope.subject or ""}


class Author:
    """Writes a story into each scope, all of them at the same time."""

    def __init__(self, archive: Archive, seed: int) -> None:
        self._archive = archive
        self._random = random.Random(seed)
        self.stories = {scope: Story(scope) for scope in SCOPES}

    def write(self) -> None:
        for story in self.stories.values():
            story.sessions = (self._word(story), self._word(story))
        turns = [scope for scope in SCOPES for _ in range(EVENTS)]
        self._random.shuffle(turns)
        for scope in turns:
            story = self.stories[scope]
            write = self._random.choice([self._say, self._bring, self._note, self._put, self._read, self._delete])
            write(story, self._archive.memory(scope.subject, tenant=scope.tenant))
        for scope in SCOPES:  # each has something of everything
            memory = self._archive.memory(scope.subject, tenant=scope.tenant)
            for write in (self._say, self._bring, self._note, self._put, self._put, self._read, self._delete):
                write(self.stories[scope], memory)

    def _word(self, story: Story) -> str:
        word = f"{self._random.getrandbits(64):016x}secret"  # no two begin alike, which makes them quick to find
        story.words.add(word)
        return word

    def _text(self, story: Story, words: int = 4) -> str:
        return " ".join(self._word(story) for _ in range(words))

    def _common(self, story: Story) -> dict[str, Any]:
        return {
            "session_id": self._random.choice((*story.sessions, None)),
            "source": self._word(story),
            "actor": self._word(story),
        }

    def _say(self, story: Story, memory: Memory) -> None:
        message = Message(
            speaker=self._word(story),
            content=self._text(story, self._random.choice([2, 20])),
            retain_until=self._random.choice([EXPIRED, None]),
            **self._common(story),
        )
        story.ids.append(memory.add(message, request_id=self._word(story)).id)

    def _bring(self, story: Story, memory: Memory) -> None:
        length = self._random.choice([3, 100, 800])  # 800 words are 18 kB: four overflow pages and more
        document = Document(name=self._word(story), text=self._text(story, length), **self._common(story))
        story.ids.append(memory.add(document).id)

    def _note(self, story: Story, memory: Memory) -> None:
        note = memory.remember(
            self._text(story),
            tier=self._random.choice(["core", "archival", "insight"]),
            labels=[self._word(story)],
            summary=self._text(story),
            metadata={self._word(story): [self._word(story)]},
            derived_from=story.ids[-1:],
            request_id=self._word(story),
            **self._common(story),
        )
        story.ids.append(note.id)

    def _put(self, story: Story, memory: Memory) -> None:
        key = f"{story.scope.subject}:plan:{self._random.randrange(2)}"
        expiry = self._random.choice([EXPIRED, None])
        note = memory.put(key, self._text(story), retain_until=expiry, **self._common(story))
        story.ids.append(note.id)

    def _read(self, story: Story, memory: Memory) -> None:
        known = [word for word in sorted(story.words) if word.endswith("secret")]
        query = f"{self._random.choice(known)} {self._word(story)}"
        if self._random.random() < 0.5:
            memory.search(query, limit=3)
        else:
            recall, _ = memory.recall(query, session_id=self._random.choice(story.sessions), source=self._word(story))
            story.recalled.append(recall.id)

    def _delete(self, story: Story, memory: Memory) -> None:
        if story.ids:
            memory.delete([self._random.choice(story.ids)], self._text(story), requested_by=self._word(story))


@dataclass(frozen=True)
class Library:
    path: Path
    stories: Mapping[Scope, Story]


def build(path: Path, seed: int) -> Library:
    clock = FakeClock()
    with muniment.open(path, durability="normal", embedder=embed, clock=clock) as archive:
        author = Author(archive, seed)
        author.write()
    return Library(path, author.stories)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build(tmp_path_factory.mktemp("pristine") / "archive.db", seed=0)


@pytest.fixture
def library(pristine: Library, tmp_path: Path) -> Library:
    return Library(Path(shutil.copy(pristine.path, tmp_path / "archive.db")), pristine.stories)


@pytest.fixture
def archive(library: Library) -> Iterator[Archive]:
    clock = FakeClock(NOW)
    with muniment.open(library.path, durability="normal", embedder=embed, clock=clock) as archive:
        yield archive


def memory_of(archive: Archive, scope: Scope = VICTIM) -> Memory:
    return archive.memory(scope.subject, tenant=scope.tenant)


# --- What is destroyed, and what must be gone -------------------------------------------------------------------------


@dataclass(frozen=True)
class Act:
    """A way to destroy: which events of a scope go, or all of it, and how it is done."""

    name: str
    doom: Callable[[Archive, Story], set[UUID] | None]
    """The events that must be gone; None for the whole scope."""
    destroy: Callable[[Archive, Story], list[Receipt]]

    tenant_wide: bool = False

    def __str__(self) -> str:
        return self.name


def doom_session(archive: Archive, story: Story) -> set[UUID]:
    memory = memory_of(archive, story.scope)
    ids = {event.id for event in memory.events(session_id=story.sessions[0]) if event.kind != "deletion"}
    return with_versions(memory, ids)


def with_versions(memory: Memory, ids: set[UUID], *, later: bool = True) -> set[UUID]:
    """Those events, and of keyed notes the other versions: all, or those before."""
    notes = [event for event in memory.events(kind="note") if isinstance(event, Note) and event.key is not None]
    newest: dict[str | None, int] = {}
    for note in notes:
        if note.id in ids:
            newest[note.key] = max(newest.get(note.key, -1), note.seq or 0)
    return ids | {
        note.id for note in notes if note.key in newest and (later or (note.seq or 0) <= newest.get(note.key, -1))
    }


def doom_expired(archive: Archive, story: Story) -> set[UUID]:
    memory = memory_of(archive, story.scope)
    expired = {item.id for item in memory.items(hidden=True) if getattr(item.event, "retain_until", None) == EXPIRED}
    return with_versions(memory, expired, later=False)


def doom_derived(archive: Archive, story: Story) -> set[UUID]:
    memory = memory_of(archive, story.scope)
    doomed = with_versions(memory, {story.ids[0]})
    while True:
        notes = [event for event in memory.events(kind="note") if isinstance(event, Note)]
        more = with_versions(memory, doomed | {note.id for note in notes if doomed & set(note.derived_from)})
        if more == doomed:
            return doomed
        doomed = more


def forget(archive: Archive, story: Story, ids: set[UUID], **more: Any) -> list[Receipt]:
    return [memory_of(archive, story.scope).forget(ids, clean="later", **more)]


def sweep(archive: Archive, story: Story, **more: Any) -> list[Receipt]:
    report = archive.sweep(NOW, tenant=story.scope.tenant, clean="later", **more)
    return [scope.receipt for scope in report.scopes if scope.receipt is not None]


ACTS: Final = [
    Act("erase", lambda _, __: None, lambda a, s: [memory_of(a, s.scope).erase(clean="later")]),
    Act("drop the tenant", lambda _, __: None, lambda a, s: a.tenant(s.scope.tenant).drop(clean="later"), True),
    Act(
        "forget an event",
        lambda a, s: with_versions(memory_of(a, s.scope), {s.ids[3]}),
        lambda a, s: forget(a, s, {s.ids[3]}),
    ),
    Act(
        "forget every item",
        lambda a, s: set(s.ids),
        lambda a, s: forget(a, s, set(s.ids)),
    ),
    Act(
        "forget the reads",
        lambda a, s: {event.id for event in memory_of(a, s.scope).events(kind="recall")},
        lambda a, s: forget(a, s, {event.id for event in memory_of(a, s.scope).events(kind="recall")}),
    ),
    Act("forget what was derived", doom_derived, lambda a, s: forget(a, s, {s.ids[0]}, derived=True)),
    Act(
        "erase a session",
        doom_session,
        lambda a, s: [memory_of(a, s.scope).erase_session(s.sessions[0], clean="later")],
    ),
    Act("sweep", doom_expired, lambda a, s: sweep(a, s, action="erase"), True),
    Act(
        "sweep the reads",
        lambda a, s: {event.id for event in memory_of(a, s.scope).events(kind="recall")},
        lambda a, s: sweep(a, s, recalls_before=NOW),
        tenant_wide=True,
    ),
]


@dataclass(frozen=True)
class Case:
    """What an act has to destroy in the archive as it stands, and what it has to leave."""

    library: Library
    archive: Archive
    act: Act
    ledger_id: str
    num_doomed: int
    markers: set[bytes]
    staying: Mapping[Scope, list[object]]

    @classmethod
    def build(cls, library: Library, archive: Archive, act: Act, scope: Scope = VICTIM) -> Case:
        story, memory = library.stories[scope], memory_of(archive, scope)
        head = memory.head()
        assert head is not None
        doomed = act.doom(archive, story)
        events = list(memory.events())
        seqs = None if doomed is None else {event.seq or 0 for event in events if event.id in doomed}
        markers = secrets_of(library.path, head.ledger_id, seqs)
        if seqs is None:
            markers |= words_of(library.path, story)
        if act.name == "drop the tenant":
            markers.add(scope.tenant.encode())
        others = [other for other in SCOPES if other != scope and (other.tenant != scope.tenant or not act.tenant_wide)]
        staying: dict[Scope, list[object]] = {other: list(memory_of(archive, other).events()) for other in others}
        if doomed is not None:
            staying[scope] = [event for event in events if event.id not in doomed]
        return cls(library, archive, act, head.ledger_id, len(doomed or events), markers, staying)

    def check_before(self) -> None:
        """What must be gone afterwards is there and is found, but for pieces of which two pages hold a part each."""
        assert len(self.markers) > 5
        found = {marker for _, marker in find_in_files(self.library.path, self.markers)}
        assert len(found) > 0.9 * len(self.markers)

    def run(self) -> None:
        """Destroy, look into the tables, clean, look into the files; what was not meant is as it was."""
        path, archive = self.library.path, self.archive
        receipts = self.act.destroy(archive, self.library.stories[VICTIM])
        assert all(receipt.state == "unreachable" for receipt in receipts)
        assert find_in_tables(path, self.markers) == []
        assert find_orphans(path) == []
        in_order = sorted(receipts, key=lambda receipt: (receipt.at, receipt.id.bytes))
        assert archive.pending() == tuple(receipt.id for receipt in in_order)
        report = archive.clean()
        assert report.blocked is None
        assert set(report.completed) == {receipt.id for receipt in receipts}
        assert (report.residue.orphan_rows, report.residue.free_pages, archive.pending()) == (0, 0, ())
        assert find_in_files(path, self.markers) == []
        assert find_orphans(path) == []
        for scope, events in self.staying.items():
            left = {event.id: event for event in memory_of(archive, scope).events()}
            assert [left.get(getattr(event, "id", None)) for event in events] == events  # pyright: ignore[reportArgumentType]
        assert archive.verify(deep=True)
        assert archive.ledger(self.ledger_id).verify().num_erased >= self.num_doomed


def words_of(path: Path, story: Story) -> set[bytes]:
    """The story's words in every form that stands in the files now; a part of them is enough."""
    words = {marker for word in sorted(story.words)[:100] for marker in forms_of(word)}
    return {marker for _, marker in find_in_files(path, words)}


@pytest.mark.parametrize("act", ACTS, ids=str)
def test_nothing_is_left(library: Library, archive: Archive, act: Act) -> None:
    case = Case.build(library, archive, act)
    case.check_before()
    case.run()


def test_nothing_is_left_of_many_scopes_in_another_order(tmp_path: Path) -> None:
    """The archive is not opened anew in between, so the log still holds what was written."""
    path = tmp_path / "archive.db"
    clock = FakeClock()
    with muniment.open(path, durability="normal", embedder=embed, clock=clock) as archive:
        author = Author(archive, seed=1)
        author.write()
        doomed = SCOPES[::2]
        markers: set[bytes] = set()
        for scope in doomed:
            head = memory_of(archive, scope).head()
            assert head is not None
            markers |= secrets_of(path, head.ledger_id)
        assert find_in_files(path, markers)
        for scope in doomed[:-1]:
            memory_of(archive, scope).erase(clean="later")
        receipt = memory_of(archive, doomed[-1]).erase()
        assert receipt.state == "clean"
        assert receipt.residue is not None
        assert (receipt.residue.hits, receipt.residue.orphan_rows, receipt.residue.free_pages) == (0, 0, 0)
        assert receipt.residue.markers_searched > 0
        assert archive.pending() == ()
        assert find_in_files(path, markers) == []
        assert find_orphans(path) == []
        assert archive.verify(deep=True)
    assert find_in_files(path, markers) == []


def test_a_salt_is_a_marker_that_the_clean_step_looks_for(library: Library, archive: Archive) -> None:
    """With a marker that stands in a file the step is held back and says so."""
    memory = memory_of(archive)
    memory.forget([library.stories[VICTIM].ids[0]], clean="later")
    living = library.stories[SCOPES[0]].scope.subject or ""
    outcome = archive.storage.clean(markers=[living.encode(), b"n" * 16], wait_s=1)
    assert (outcome.markers_searched, outcome.residue_hits) == (2, 1)
    assert outcome.blocked is not None
    assert "1 markers" in outcome.blocked
    assert len(archive.pending()) == 1
    assert archive.clean()
    assert archive.pending() == ()


# --- Reads and caches -------------------------------------------------------------------------------------------------


def test_nothing_is_read_any_more(library: Library, archive: Archive) -> None:
    """On every path, in this archive and in another one whose caches were warm."""
    story = library.stories[VICTIM]
    kept, gone = SCOPES[6], VICTIM
    with muniment.open(library.path, durability="normal", embedder=embed) as other:
        note = memory_of(archive, gone).remember("a common word, zanzibar", tier="core")
        memory_of(archive, kept).remember("a common word, zanzibar", tier="core")
        for each in (archive, other):
            for mode in ("keyword", "vector", "hybrid"):
                assert memory_of(each, gone).search("zanzibar", mode=mode)
            assert each.tenant(gone.tenant).search("zanzibar")
        memory_of(archive, gone).erase(clean="later")
        for each in (other, archive):
            memory = memory_of(each, gone)
            for mode in ("keyword", "vector", "hybrid"):
                assert memory.search("zanzibar", mode=mode) == []
            assert [hit.scope for hit in each.tenant(gone.tenant).search("zanzibar", mode="keyword")] == [kept]
            assert gone not in {hit.scope for hit in each.tenant(gone.tenant).search("zanzibar", limit=1_000)}
            assert "zanzibar" not in memory.prompt()
            assert memory.get(note.id) is None
            assert list(memory.items(hidden=True)) == []
            assert memory.get_live(f"{gone.subject}:plan:0") is None
            assert {event.id for event in memory.events()}.isdisjoint(story.ids)
            assert memory.replay().notes == ()
        archive.rebuild()
        assert memory_of(archive, gone).search("zanzibar") == []


# --- At work meanwhile ------------------------------------------------------------------------------------------------


def test_nothing_is_left_with_writers_and_a_reader_at_work(library: Library, archive: Archive) -> None:
    """A receipt that says `clean` is true at that moment; what was held back is completed in the end."""
    doomed, busy = SCOPES[:3], SCOPES[3:]
    markers: dict[Scope, set[bytes]] = {}
    for scope in doomed:
        head = memory_of(archive, scope).head()
        assert head is not None
        markers[scope] = secrets_of(library.path, head.ledger_id)
    stop = threading.Event()
    failures: list[BaseException] = []

    def at_work(act: Callable[[Archive, int], object]) -> None:
        try:
            with muniment.open(library.path, durability="normal", embedder=embed) as mine:
                number = 0
                while not stop.is_set():
                    act(mine, number)
                    number += 1
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    def add(mine: Archive, number: int) -> object:
        return memory_of(mine, busy[number % len(busy)]).remember(f"number {number}")

    def forget_again(mine: Archive, number: int) -> object:
        memory = memory_of(mine, busy[number % len(busy)])
        return memory.forget([memory.remember(f"soon gone {number}").id], clean="later")

    def read(mine: Archive, number: int) -> object:
        memory = memory_of(mine, busy[number % len(busy)])
        return memory.search(f"number {number}"), memory.replay()

    workers = [threading.Thread(target=at_work, args=(act,), daemon=True) for act in (add, forget_again, read)]
    for worker in workers:
        worker.start()
    states: list[str] = []
    try:
        for scope in doomed:
            receipt = memory_of(archive, scope).erase()
            states.append(receipt.state)
            if receipt.state == "clean":
                assert find_in_files(library.path, markers[scope]) == []
            else:
                assert receipt.blocked
    finally:
        stop.set()
        for worker in workers:
            worker.join(60)
    assert failures == []
    assert "clean" in states
    assert archive.clean()
    assert archive.pending() == ()
    assert find_in_files(library.path, set().union(*markers.values())) == []
    assert find_orphans(library.path) == []
    assert archive.verify(deep=True)


def test_a_reader_that_holds_a_view_holds_the_clean_step_back(library: Library, archive: Archive) -> None:
    head = memory_of(archive).head()
    assert head is not None
    markers = secrets_of(library.path, head.ledger_id)
    with muniment.open(library.path) as reader, reader.storage.snapshot(SCOPES[0]) as view:
        assert view is not None
        receipt = memory_of(archive).erase(clean="later")
        report = archive.clean(wait_s=0.05)
        assert not report
        assert report.blocked is not None
        assert "reader" in report.blocked
        assert (report.completed, report.pending) == ((), (receipt.id,))
        assert receipt.completed(report) == receipt
        assert find_in_tables(library.path, markers) == []
        assert archive.pending() == (receipt.id,)
    report = archive.clean()
    assert report
    assert (report.completed, report.pending) == ((receipt.id,), ())
    done = receipt.completed(report)
    assert (done.state, done.cleaned_at) == ("clean", NOW)
    assert Receipt.from_json(done.to_json()) == done
    assert find_in_files(library.path, markers) == []


# --- Mutants: each is an adapter that skips something -----------------------------------------------------------------

NEVER: Final = " AND 0"
READS_STAY: Final = " AND place NOT IN (SELECT place FROM events WHERE kind = 4)"
STATEMENT_MUTANTS: Final = {
    "erase": {
        "drop_contents": NEVER,
        "drop_contents: reads stay": READS_STAY,
        "drop_contents: documents stay": " AND place NOT IN (SELECT place FROM events WHERE kind = 2)",
        "drop_items": NEVER,
        "drop_usage": NEVER,
        "drop_vectors": NEVER,
        "drop_requests": NEVER,
        "drop_name": NEVER,
        "mark_erased": NEVER,
    },
    "forget every item": {"erase_content": NEVER, "erase_item": NEVER, "erase_use": NEVER, "erase_vector": NEVER},
    "forget the reads": {"erase_content": NEVER, "erase_content: reads stay": READS_STAY},
    "drop the tenant": {"drop_tenant": NEVER},
}


@pytest.mark.parametrize(
    ("act", "mutant"), [(act, mutant) for act, mutants in STATEMENT_MUTANTS.items() for mutant in mutants]
)
def test_an_adapter_that_skips_a_table_is_caught(
    library: Library, archive: Archive, monkeypatch: pytest.MonkeyPatch, act: str, mutant: str
) -> None:
    statement = mutant.split(":")[0]
    case = Case.build(library, archive, next(one for one in ACTS if one.name == act))
    monkeypatch.setitem(STATEMENTS, statement, STATEMENTS[statement] + STATEMENT_MUTANTS[act][mutant])  # pyright: ignore[reportArgumentType]
    with pytest.raises(AssertionError):
        case.run()


@pytest.mark.parametrize("step", ["_rewrite", "_empty_log"])
def test_a_clean_step_that_skips_a_part_is_caught(
    library: Library, archive: Archive, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    case = Case.build(library, archive, ACTS[0])
    monkeypatch.setattr(cleaning, step, lambda *_: None)
    with pytest.raises(AssertionError):
        case.run()


def test_fingerprints_of_forgotten_content_are_blanked(library: Library, archive: Archive) -> None:
    """A request's fingerprint is made from the content; its id is the client's and stays for retries."""
    memory = memory_of(archive)
    event = Message(speaker="anna", content="hello")
    stored = memory.add(event, request_id="r-1")
    head = memory.head()
    assert head is not None
    before = secrets_of(library.path, head.ledger_id) - secrets_of(library.path, head.ledger_id, {stored.seq or 0})
    memory.forget([stored.id])
    again: Any = memory.add(event, request_id="r-1")
    assert (again.id, again.seq) == (stored.id, stored.seq)
    assert isinstance(again, muniment.ErasedEvent)
    left = before - {marker for _, marker in find_in_tables(library.path, before)}
    assert left  # the fingerprint
    assert find_in_files(library.path, left) == []
    assert isinstance(memory.record(Recall(query="*")), Recall)
