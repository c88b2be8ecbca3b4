"""Bad input of every sort: a typed error, nothing half-written, and the archive still opens and verifies."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import apsw
import pytest
from pydantic import ValidationError

import muniment
from muniment import Archive, Content, Deletion, Document, Memory, Message, Note, Recall, Scope
from muniment.adapters.sqlite import SqliteStorage
from muniment.adapters.tokenizer import tokenize
from muniment.errors import (
    ClosedError,
    DuplicateEventError,
    IntegrityError,
    LimitExceededError,
    MunimentError,
    SchemaMismatchError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    UnsupportedError,
    UsageError,
)
from muniment.model import limits
from muniment.ports.clock import system_clock, system_entropy

NAIVE: Final = datetime(2026, 6, 10, 12)  # noqa: DTZ001
AWARE: Final = datetime(2026, 6, 10, 12, tzinfo=UTC)
NOT_TEXT: Final = ("a\x00b", "\ud800", "a\udfff")
"""What is in no text: U+0000, and lone surrogates."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed archive with a message and a note in one scope."""
    path = tmp_path_factory.mktemp("template") / "archive.db"
    with muniment.open(path, durability="normal") as archive:
        memory = archive.memory("user-42", tenant="acme")
        memory.add(Message(speaker="anna", content="the pump failed", session_id="s1"))
        memory.put("plan", "call the contractor")
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where nothing is yet."""
    return tmp_path / "archive.db"


@pytest.fixture
def archive(path: Path, template: bytes) -> Iterator[Archive]:
    path.write_bytes(template)
    with muniment.open(path, create=False, durability="normal") as archive:
        yield archive


@pytest.fixture
def memory(archive: Archive) -> Memory:
    return archive.memory("user-42", tenant="acme")


@contextmanager
def nothing_stored(memory: Memory) -> Generator[None]:
    """After the block the ledger is what it was, verifies, and takes the next event without a gap."""
    head, events, items = memory.head(), list(memory.events()), list(memory.items(hidden=True))
    yield
    assert memory.head() == head
    assert list(memory.events()) == events
    assert list(memory.items(hidden=True)) == items
    assert memory.verify()
    assert memory.add(Message(speaker="anna", content="next")).seq == len(events)


@contextmanager
def refused(memory: Memory, kind: type[Exception], match: str | None = None) -> Generator[pytest.ExceptionInfo[Any]]:
    """The block raises that error, and nothing is stored."""
    with nothing_stored(memory), pytest.raises(kind, match=match) as caught:
        yield caught


# --- Values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda: Message(speaker="anna", content=""),
        lambda: Message(speaker="", content="hello"),
        lambda: Document(name="", text="text"),
        lambda: Document(name="a.txt", text=""),
        lambda: Note(content="note", key=""),
        lambda: Recall(query=""),
        lambda: Deletion(targets=(), reason="asked"),
        lambda: Deletion(targets=(uuid4(),), reason=""),
        lambda: Message(speaker="anna", content="hello", timestamp=NAIVE),
        lambda: Message(speaker="anna", content="hello", retain_until=NAIVE),
        lambda: Message.model_validate({"speaker": "anna", "content": 5}),
        lambda: Message.model_validate({"speaker": "anna", "content": "hello", "mood": "good"}),
        lambda: Message.model_validate({"speaker": "anna", "content": "hello", "kind": "note"}),
        lambda: Message.model_validate({"speaker": "anna", "content": "hello", "timestamp": 5}),
        lambda: Note.model_validate({"content": "note", "tier": "secret"}),
        lambda: Note(content="note", metadata={"weight": float("nan")}),
        lambda: Note.model_validate({"content": "note", "metadata": {"at": {1, 2}}}),
        lambda: Note.model_validate({"content": "note", "metadata": {5: "five"}}),
        lambda: Note.model_validate({"content": "note", "metadata": ["a"]}),
        lambda: Note(content="note", metadata={"huge": 10**5_000}),
    ],
)
def test_an_event_that_is_not_one_cannot_be_built(build: Callable[[], object]) -> None:
    with pytest.raises(ValidationError):
        build()


def test_an_instant_outside_the_calendar_is_refused() -> None:
    edge = datetime.max.replace(tzinfo=timezone(timedelta(hours=-3)))
    with pytest.raises(ValidationError, match="years 1 to 9999"):
        Message(speaker="anna", content="hello", timestamp=edge)


def test_any_offset_is_the_same_instant(memory: Memory) -> None:
    kolkata = AWARE.astimezone(timezone(timedelta(hours=5, minutes=30)))
    stored = memory.add(Message(speaker="anna", content="hello", timestamp=kolkata))
    assert stored.timestamp == AWARE
    assert stored.timestamp.utcoffset() == timedelta(0)
    assert memory.get(stored.id) == stored


@pytest.mark.parametrize("instant", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_ends_of_the_calendar_can_be_stored(memory: Memory, instant: datetime) -> None:
    stored = memory.add(Message(speaker="anna", content="hello", timestamp=instant, retain_until=instant))
    assert memory.get(stored.id) == stored
    assert memory.replay().messages[-1].timestamp == instant


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda memory: memory.delete([memory.events()[0].id], ""), "reason"),
        (lambda memory: memory.delete([], "asked"), "at least one"),
        (lambda memory: memory.delete(["no id"], "asked"), "no id"),
        (lambda memory: memory.put("", "text"), "key"),
        (lambda memory: memory.remember("text", key=""), "key"),
        (lambda memory: memory.remember("text", tier="secret"), "tier"),
        (lambda memory: memory.remember("text", labels=[5]), "label"),
        (lambda memory: memory.remember("text", retain_until=NAIVE), "offset"),
        (lambda memory: memory.remember("text", metadata={"a": float("inf")}), "metadata"),
        (lambda memory: memory.remember(5), "content"),
        (lambda memory: memory.replay(at=NAIVE), "offset"),
        (lambda memory: memory.replay(at=AWARE, up_to_seq=1), "not both"),
        (lambda memory: memory.items(at=NAIVE), "offset"),
        (lambda memory: memory.seq_at(NAIVE), "offset"),
        (lambda memory: memory.events(kind="recal"), "recal"),
        (lambda memory: memory.items(kinds=["recall"]), "recall"),
        (lambda memory: memory.items(tiers=["secret"]), "secret"),
        (lambda memory: memory.events(after_seq=True), "whole number"),
        (lambda memory: memory.replay(up_to_seq=1.5), "whole number"),
        (lambda memory: memory.events().page(limit=0), "limit"),
        (lambda memory: memory.events().page(limit=1.5), "limit"),
        (lambda memory: memory.events().page(cursor="no cursor"), "cursor"),
        (lambda memory: memory.add(Message(speaker="anna", content="b"), request_id=""), "request_id"),
    ],
)
def test_a_call_that_cannot_be_answered_is_a_usage_error(
    memory: Memory, call: Callable[[Any], object], match: str
) -> None:
    with refused(memory, UsageError, match):
        call(memory)


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.add("hello"),
        lambda memory: memory.add(None),
        lambda memory: memory.add({"kind": "message", "speaker": "anna", "content": "hello"}),
        lambda memory: memory.add(Deletion(targets=(uuid4(),), reason="asked")),
        lambda memory: memory.add(Recall(query="pump")),
        lambda memory: memory.add_many([Message(speaker="anna", content="b"), Recall(query="pump")]),
        lambda memory: memory.record(Message(speaker="anna", content="b")),
        lambda memory: memory.delete(uuid4(), "asked"),
        lambda memory: memory.delete(str(uuid4()), "asked"),
    ],
)
def test_the_wrong_kind_of_thing_is_a_type_error(memory: Memory, call: Callable[[Any], object]) -> None:
    with refused(memory, TypeError):
        call(memory)


def test_targets_must_be_content_of_this_scope(archive: Archive, memory: Memory) -> None:
    elsewhere = archive.memory("user-43", tenant="acme").add(Message(speaker="anna", content="elsewhere"))
    message = memory.events()[0]
    recall = memory.record(Recall(query="pump", recalled=(message.id,)))
    deletion = memory.delete([message.id], "asked")
    for unknown in (uuid4(), elsewhere.id, recall.id, deletion.id):
        with refused(memory, UsageError, str(unknown)):
            memory.delete([memory.events()[1].id, unknown], "asked")
        with refused(memory, UsageError, str(unknown)):
            memory.record(Recall(query="pump", recalled=(unknown,)))
    with refused(memory, UsageError, "deleted"):
        memory.record(Recall(query="pump", recalled=(message.id,)))


def test_an_event_that_has_a_place_is_refused(memory: Memory) -> None:
    stored = memory.events()[0]
    assert isinstance(stored, Message)
    with refused(memory, UsageError, f"{stored.id}.*seq 0"):
        memory.add(stored)
    for event in (
        Message(speaker="anna", content="b", seq=7),
        Message(speaker="anna", content="b", recorded_at=AWARE),
    ):
        with refused(memory, UsageError, str(event.id)):
            memory.add(event)
    with pytest.raises(ValidationError):
        Message(speaker="anna", content="b", seq=-1)


def test_only_the_store_says_what_a_note_supersedes(memory: Memory) -> None:
    with refused(memory, UsageError, "supersedes"):
        memory.add(Note(content="b", supersedes=uuid4()))


# --- An id twice ------------------------------------------------------------------------------------------------------


def test_an_id_is_in_a_ledger_once(path: Path, archive: Archive, memory: Memory) -> None:
    event = Message(speaker="anna", content="once")
    with refused(memory, DuplicateEventError, str(event.id)):
        memory.add_many([event, Message(speaker="anna", content="between"), event])
    memory.add(event)
    same_id = Note(id=event.id, content="another kind, the same id")
    for again in (event, same_id):
        with refused(memory, DuplicateEventError, str(event.id)) as caught:
            memory.add_many([again])
        assert caught.value.event_id == str(event.id)
    with refused(memory, DuplicateEventError):
        memory.add_many([Message(speaker="anna", content="first"), same_id, Message(speaker="anna", content="last")])
    with muniment.open(path) as other, refused(memory, DuplicateEventError):
        other.memory("user-42", tenant="acme").add(event)
    assert archive.memory("user-43", tenant="acme").add(event).seq == 0, "another ledger is another matter"


def test_an_id_is_in_a_ledger_once_across_processes(path: Path, memory: Memory) -> None:
    event = memory.add(Message(speaker="anna", content="once"))
    with nothing_stored(memory):
        answer = run_python(
            """
            import sys, uuid, muniment
            memory = muniment.open(sys.argv[1]).memory("user-42", tenant="acme")
            try:
                memory.add(muniment.Message(id=uuid.UUID(sys.argv[2]), speaker="anna", content="twice"))
            except muniment.MunimentError as error:
                print(error.code)
            """,
            path,
            str(event.id),
        )
        assert answer == "duplicate_event"


# --- U+0000 and lone surrogates ---------------------------------------------------------------------------------------

_MESSAGE: Final = {"speaker": "anna", "content": "hello"}
_DOCUMENT: Final = {"name": "a.txt", "text": "text"}
_NOTE: Final = {"content": "note"}

TEXT_FIELDS: Final[Mapping[str, Callable[[str], Content | Recall]]] = {
    **{
        f"Message.{name}": lambda text, name=name: Message.model_validate({**_MESSAGE, name: text})
        for name in ("speaker", "content", "session_id", "source", "actor")
    },
    **{
        f"Document.{name}": lambda text, name=name: Document.model_validate({**_DOCUMENT, name: text})
        for name in ("name", "text", "media_type", "sha256", "session_id", "source", "actor")
    },
    **{
        f"Note.{name}": lambda text, name=name: Note.model_validate({**_NOTE, name: text})
        for name in ("content", "key", "summary", "session_id", "source", "actor")
    },
    "Note.labels": lambda text: Note(content="note", labels=("fine", text)),
    "Note.metadata key": lambda text: Note(content="note", metadata={text: 1}),
    "Note.metadata value": lambda text: Note(content="note", metadata={"a": text}),
    "Note.metadata nested key": lambda text: Note(content="note", metadata={"a": [{"b": {text: 1}}]}),
    "Note.metadata nested value": lambda text: Note(content="note", metadata={"a": [{"b": [text]}]}),
    **{
        f"Recall.{name}": lambda text, name=name: Recall.model_validate({"query": "pump", name: text})
        for name in ("query", "session_id", "source", "actor")
    },
    "Recall.request": lambda text: Recall(query="pump", request={"filters": {text: text}}),
}


def store(memory: Memory, event: Content | Recall) -> object:
    return memory.record(event) if isinstance(event, Recall) else memory.add_many([event])


@pytest.mark.parametrize("field", TEXT_FIELDS)
def test_what_is_not_text_is_refused_in_every_field_of_an_event(memory: Memory, field: str) -> None:
    """By the model or by the store, and in no third way."""
    with nothing_stored(memory):
        for text in NOT_TEXT:
            with pytest.raises((ValidationError, UsageError)):
                store(memory, TEXT_FIELDS[field](text))


@pytest.mark.parametrize("text", NOT_TEXT)
def test_what_is_not_text_is_a_usage_error_in_every_argument(archive: Archive, memory: Memory, text: str) -> None:
    target = memory.events()[0].id
    calls: list[Callable[[], object]] = [
        lambda: memory.remember(text),
        lambda: memory.remember("note", key=text),
        lambda: memory.remember("note", labels=[text]),
        lambda: memory.remember("note", summary=text),
        lambda: memory.remember("note", metadata={text: 1}),
        lambda: memory.remember("note", metadata={"a": text}),
        lambda: memory.remember("note", session_id=text),
        lambda: memory.remember("note", source=text),
        lambda: memory.remember("note", actor=text),
        lambda: memory.remember("note", request_id=text),
        lambda: memory.remember(text, if_absent=True),
        lambda: memory.put(text, "note"),
        lambda: memory.put("key", text),
        lambda: memory.put("key", "note", summary=text),
        lambda: memory.delete([target], text),
        lambda: memory.delete([target], "asked", requested_by=text),
        lambda: memory.delete([target], "asked", actor=text),
        lambda: memory.delete([text], "asked"),
        lambda: archive.memory(text, tenant="acme"),
        lambda: archive.memory("user-42", tenant=text),
        lambda: archive.tenant(text),
        lambda: Scope("acme", text),
    ]
    with nothing_stored(memory):
        for call in calls:
            with pytest.raises(UsageError):
                call()


@pytest.mark.parametrize("text", NOT_TEXT)
def test_looking_for_what_is_not_text_finds_nothing_or_is_a_usage_error(
    archive: Archive, memory: Memory, text: str
) -> None:
    looks: list[Callable[[], object]] = [
        lambda: memory.get_live(text),
        lambda: memory.get(text),
        lambda: list(memory.events(session_id=text)),
        lambda: list(archive.verify(tenant=text).ledgers),
    ]
    for look in looks:
        with suppress(UsageError):
            assert not look()


@pytest.mark.parametrize("name", ["", 5, None, b"acme"])
def test_a_scope_needs_names(archive: Archive, name: Any) -> None:
    with pytest.raises(UsageError):
        archive.memory("user-42", tenant=name)
    with pytest.raises(UsageError):
        archive.tenant(name)
    if name is not None:
        with pytest.raises(UsageError):
            archive.memory(name, tenant="acme")


# --- Limits -----------------------------------------------------------------------------------------------------------

FIVE_MIB: Final = 5 * 1024 * 1024


@pytest.mark.parametrize("text", ["x" * FIVE_MIB, "é" * (FIVE_MIB // 2)], ids=["ascii", "two bytes a character"])
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("content", lambda memory, text: memory.add(Message(speaker="anna", content=text))),
        ("text", lambda memory, text: memory.add(Document(name="a.txt", text=text))),
        ("content", lambda memory, text: memory.remember(text)),
        ("content", lambda memory, text: memory.put("plan", text)),
        ("summary", lambda memory, text: memory.remember("note", summary=text)),
        ("reason", lambda memory, text: memory.delete([memory.events()[0].id], text)),
    ],
)
def test_five_megabytes_of_text_name_the_limit(
    memory: Memory, text: str, name: str, call: Callable[[Memory, str], object]
) -> None:
    with refused(memory, LimitExceededError, f"{name}.*{FIVE_MIB}.*{limits.TEXT_BYTES_MAX}") as caught:
        call(memory, text)
    error = caught.value
    assert (error.name, error.limit, error.given) == (name, limits.TEXT_BYTES_MAX, FIVE_MIB)


def test_a_text_of_exactly_the_limit_is_stored(memory: Memory) -> None:
    for text in ("x" * limits.TEXT_BYTES_MAX, "é" * (limits.TEXT_BYTES_MAX // 2)):
        stored = memory.add(Message(speaker="anna", content=text))
        found = memory.get(stored.id)
        assert isinstance(found, Message)
        assert found.content == text
    with refused(memory, LimitExceededError):
        memory.add(Message(speaker="anna", content="x" * (limits.TEXT_BYTES_MAX + 1)))


@pytest.mark.parametrize(
    ("limit", "build"),
    [
        (limits.SPEAKER_CHARS_MAX, lambda size: Message(speaker="é" * size, content="hello")),
        (limits.SESSION_CHARS_MAX, lambda size: Message(speaker="anna", content="hello", session_id="é" * size)),
        (limits.SOURCE_CHARS_MAX, lambda size: Message(speaker="anna", content="hello", source="é" * size)),
        (limits.ACTOR_CHARS_MAX, lambda size: Message(speaker="anna", content="hello", actor="é" * size)),
        (limits.NAME_CHARS_MAX, lambda size: Document(name="é" * size, text="text")),
        (limits.NAME_CHARS_MAX, lambda size: Document(name="a.txt", text="text", media_type="é" * size)),
        (limits.NAME_CHARS_MAX, lambda size: Document(name="a.txt", text="text", sha256="é" * size)),
        (limits.KEY_CHARS_MAX, lambda size: Note(content="note", key="é" * size)),
        (limits.LABEL_CHARS_MAX, lambda size: Note(content="note", labels=("é" * size,))),
        (limits.LABELS_MAX, lambda size: Note(content="note", labels=("label",) * size)),
        (limits.METADATA_BYTES_MAX, lambda size: Note(content="note", metadata={"a": "x" * (size - len('{"a":""}'))})),
        (limits.METADATA_DEPTH_MAX, lambda size: Note(content="note", metadata=nested(size))),
        (limits.TARGETS_MAX, lambda size: Note(content="note", derived_from=(uuid4(),) * size)),
    ],
)
def test_every_limit_holds_at_its_edge(memory: Memory, limit: int, build: Callable[[int], Content]) -> None:
    with refused(memory, LimitExceededError) as caught:
        memory.add_many([build(limit + 1)])
    assert (caught.value.limit, caught.value.given) == (limit, limit + 1)
    (stored,) = memory.add_many([build(limit)])
    assert memory.get(stored.id) == stored


def nested(depth: int) -> dict[str, Any]:
    """Metadata of that many levels, arrays and objects in turn."""
    value: Any = []
    for level in range(depth - 2):
        value = {"a": value} if level % 2 else [value]
    return {"a": value}


def test_json_of_any_depth_is_refused_and_does_not_end_the_process(memory: Memory) -> None:
    value: Any = "deep"
    for _ in range(100_000):
        value = [value]
    with nothing_stored(memory), pytest.raises((ValidationError, UsageError)):
        memory.add(Note(content="note", metadata={"a": value}))
    with refused(memory, UsageError):
        memory.remember("note", metadata={"a": value})


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 1e308, 5e-324, -0.0, 0.1 + 0.2, True, None, "", []])
def test_a_number_that_is_stored_is_read_back(memory: Memory, value: Any) -> None:
    note = memory.remember("note", metadata={"value": value})
    assert memory.get(note.id) == note
    assert memory.replay().notes[-1].metadata == {"value": value}


@pytest.mark.parametrize("digits", [21, 4_299, 4_301, 100_000])
def test_a_number_too_long_to_be_read_back_is_refused(memory: Memory, digits: int) -> None:
    """Once stored it would make the whole ledger unreadable."""
    with refused(memory, UsageError):
        memory.remember("note", metadata={"value": 10 ** (digits - 1)})
    assert memory.replay().last_seq == len(memory) - 1
    assert memory.verify()


def test_a_batch_holds_ten_thousand(memory: Memory) -> None:
    many = [Message(speaker="anna", content="hello") for _ in range(limits.ADD_MANY_MAX + 1)]
    with refused(memory, LimitExceededError) as caught:
        memory.add_many(many)
    assert (caught.value.name, caught.value.limit, caught.value.given) == ("add_many", 10_000, 10_001)
    with refused(memory, LimitExceededError, "targets"):
        memory.delete([event.id for event in many], "asked")
    with refused(memory, LimitExceededError, "recalled"):
        memory.record(Recall(query="pump", recalled=tuple(event.id for event in many)))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("request_id", lambda memory: memory.add(Message(speaker="anna", content="b"), request_id="r" * 129)),
        ("query", lambda memory: memory.record(Recall(query="q" * (limits.QUERY_CHARS_MAX + 1)))),
        ("requested_by", lambda memory: memory.delete([memory.events()[0].id], "asked", requested_by="r" * 257)),
        ("limit", lambda memory: memory.events().page(limit=limits.PAGE_MAX + 1)),
    ],
)
def test_limits_of_arguments_are_named(memory: Memory, name: str, call: Callable[[Memory], object]) -> None:
    with refused(memory, LimitExceededError, name) as caught:
        call(memory)
    assert caught.value.name == name


@pytest.mark.parametrize("part", ["tenant", "subject"])
def test_limits_of_scope_names_are_named(archive: Archive, part: str) -> None:
    names = {"tenant": "acme", "subject": "user-42", part: "n" * (limits.NAME_CHARS_MAX + 1)}
    with pytest.raises(LimitExceededError) as caught:
        archive.memory(names["subject"], tenant=names["tenant"])
    assert (caught.value.name, caught.value.limit, caught.value.given) == (part, 256, 257)


def test_one_bad_event_of_a_batch_stops_all_of_it(memory: Memory) -> None:
    good = [Message(speaker="anna", content=f"number {number}") for number in range(20)]
    bad = Message(speaker="anna", content="a\x00b")
    with refused(memory, UsageError, "content"):
        memory.add_many([*good, bad, *good])


def test_an_archive_wide_batch_says_how_far_it_came(archive: Archive) -> None:
    """One transaction per scope: what came before the failure stays, and the error counts it."""
    first, second, third = (Scope("acme", subject) for subject in ("a", "b", "c"))
    good = Message(speaker="anna", content="good")
    entries = [
        (first, good),
        (second, Message(speaker="anna", content="fine")),
        (second, Message(speaker="anna", content="a\x00b")),
        (third, Message(speaker="anna", content="never reached")),
    ]
    with pytest.raises(UsageError) as caught:
        archive.add_many(entries)
    assert caught.value.num_stored == 1
    assert caught.value.failed_scope == second
    assert [info.scope for info in archive.tenant("acme").scopes()] == [Scope("acme", "user-42"), first]
    assert archive.verify()


# --- After closing ----------------------------------------------------------------------------------------------------


def test_a_closed_archive_says_so(archive: Archive, memory: Memory) -> None:
    listing = memory.events()
    archive.close()
    archive.close()
    calls: list[Callable[[], object]] = [
        lambda: memory.add(Message(speaker="anna", content="late")),
        lambda: memory.get(uuid4()),
        lambda: memory.replay(),
        lambda: memory.verify(),
        lambda: list(listing),
        lambda: archive.stats(),
        lambda: archive.verify(),
    ]
    for call in calls:
        with pytest.raises(ClosedError):
            call()


# --- Files that are no archive ----------------------------------------------------------------------------------------


def files_of(folder: Path) -> dict[str, bytes | None]:
    """Every file of a folder with its bytes, so that a file that appears is seen."""
    return {entry.name: entry.read_bytes() if entry.is_file() else None for entry in sorted(folder.iterdir())}


@contextmanager
def untouched(folder: Path, kind: type[MunimentError], match: str | None = None) -> Generator[None]:
    """The block raises that error and leaves every file of the folder as it was."""
    before = files_of(folder)
    with pytest.raises(kind, match=match) as caught:
        yield
    assert caught.type is kind
    assert files_of(folder) == before


@pytest.mark.parametrize("create", [True, False])
def test_a_text_file_is_not_an_archive(path: Path, create: bool) -> None:
    for text in (b"x", b"Dear diary, " * 1_000, b"SQLite format 3\x00", b"SQLite format 3\x00" + b"\xff" * 200):
        path.write_bytes(text)
        with untouched(path.parent, StorageError, "not a Muniment archive"):
            muniment.open(path, create=create)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_another_database_is_not_an_archive(path: Path, mode: str) -> None:
    other = apsw.Connection(str(path))
    other.execute(f"PRAGMA journal_mode={mode}")
    other.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO events VALUES (1, 'kept')")
    other.close()
    with untouched(path.parent, StorageError, "another application"):
        muniment.open(path)


def test_what_is_not_a_file_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with untouched(tmp_path, StorageUnavailableError, "not a file"):
        muniment.open(tmp_path / "folder")
    with untouched(tmp_path, StorageUnavailableError, "does not exist"):
        muniment.open(tmp_path / "missing" / "archive.db")
    with untouched(tmp_path, StorageUnavailableError, "does not exist"):
        muniment.open(tmp_path / "archive.db", create=False)


@pytest.mark.parametrize("name", ["a" * 300, "a\x00b", "\ud800"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    for create in (True, False):
        with pytest.raises((StorageUnavailableError, UsageError)):
            muniment.open(tmp_path / name, create=create)
    assert not files_of(tmp_path)


@pytest.mark.parametrize("url", ["", "ftp://host/archive.db", "sqlite://archive.db", "sqlite:///"])
def test_a_url_of_another_kind(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        muniment.open(url)
    assert caught.type in (UsageError, UnsupportedError)


def test_reading_creates_no_archive_out_of_an_empty_file(path: Path) -> None:
    path.touch()
    with untouched(path.parent, StorageUnavailableError):
        muniment.open(path, create=False)
    with muniment.open(path) as archive:
        assert archive.memory("user-42", tenant="acme").add(Message(speaker="anna", content="hello")).seq == 0


def test_reading_an_archive_that_is_just_being_created(path: Path) -> None:
    """Until it is there as a whole there is none; then it is."""
    creator = apsw.Connection(str(path))
    creator.execute("BEGIN IMMEDIATE; CREATE TABLE half (x); PRAGMA user_version=1; PRAGMA application_id=1296977492")
    with pytest.raises(StorageUnavailableError):
        muniment.open(path, create=False, busy_timeout_s=0.05)
    creator.execute("ROLLBACK")
    creator.close()
    with muniment.open(path) as archive:
        archive.memory("user-42", tenant="acme").add(Message(speaker="anna", content="hello"))
        with muniment.open(path, create=False) as reader:
            assert len(reader.memory("user-42", tenant="acme")) == 1


def test_a_newer_schema_is_refused_and_stays_byte_identical(path: Path, archive: Archive, memory: Memory) -> None:
    assert len(memory)
    archive.close()
    newer = apsw.Connection(str(path))
    newer.execute("PRAGMA user_version=99")
    newer.close()
    for create in (True, False):
        with untouched(path.parent, SchemaMismatchError, "99.*pip install --upgrade") as _:
            muniment.open(path, create=create)
    with pytest.raises(SchemaMismatchError) as caught:
        muniment.open(path)
    assert (caught.value.found, caught.value.wanted) == (99, 1)


def test_a_newer_schema_that_stands_in_the_log_only(path: Path, archive: Archive, memory: Memory) -> None:
    """The upgrade of another process may not have reached the file itself yet."""
    assert len(memory)
    newer = apsw.Connection(str(path))
    newer.execute("PRAGMA user_version=99")
    before = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    with pytest.raises(SchemaMismatchError):
        muniment.open(path)
    assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == before
    newer.close()


# --- Damaged files ----------------------------------------------------------------------------------------------------

DAMAGED: Final = Scope("acme", "damaged")
SOUND: Final = Scope("acme", "sound")
DAMAGE_EVENTS: Final = 250


@pytest.fixture(scope="module")
def two_ledgers(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed archive with two ledgers, each on many pages."""
    path = tmp_path_factory.mktemp("sound") / "archive.db"
    with muniment.open(path, durability="normal") as archive:
        for scope in (DAMAGED, SOUND):
            archive.memory(scope.subject, tenant=scope.tenant).add_many(
                [Message(speaker="anna", content=f"number {number}: " + "x" * 200) for number in range(DAMAGE_EVENTS)]
            )
    return path.read_bytes()


def leaf_pages(path: Path, table: str) -> list[int]:
    """The pages that hold a table's rows, in the order of the rows."""
    connection = apsw.Connection(str(path))
    rows = list(
        connection.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' AND ncell > 1 ORDER BY path", (table,)
        )
    )
    connection.close()
    return [page for (page,) in rows]


PAGE_BYTES: Final = 4_096


def overwrite_page(path: Path, page: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(content)


@pytest.mark.parametrize("content", ["noise", "zeros", "text"])
@pytest.mark.parametrize("table", ["events", "contents"])
def test_a_corrupted_page_is_an_integrity_error(two_ledgers: bytes, path: Path, table: str, content: str) -> None:
    path.write_bytes(two_ledgers)
    noise = {"noise": random.Random(7).randbytes(PAGE_BYTES), "zeros": bytes(PAGE_BYTES), "text": b"oops" * 1_024}
    overwrite_page(path, leaf_pages(path, table)[1], noise[content])
    with muniment.open(path, durability="normal") as archive:
        damaged = archive.memory(DAMAGED.subject, tenant=DAMAGED.tenant)
        for read in (lambda: list(damaged.events()), damaged.replay, lambda: list(damaged.items())):
            with pytest.raises(IntegrityError) as caught:
                read()
            assert caught.value.__cause__ is not None
        assert_not_verified(damaged.verify)
        assert_not_verified(archive.verify)
        assert archive.storage.check()
        sound = archive.memory(SOUND.subject, tenant=SOUND.tenant)
        assert sound.verify(), "what lies on other pages is not affected"
        assert sound.add(Message(speaker="anna", content="still writable")).seq == DAMAGE_EVENTS
    with muniment.open(path, create=False) as archive:
        assert archive.memory(SOUND.subject, tenant=SOUND.tenant).replay().last_seq == DAMAGE_EVENTS


def assert_not_verified(verify: Callable[[], object]) -> None:
    """It reports a failure, or raises the typed error of the damage."""
    with suppress(IntegrityError):
        assert not verify()


def test_changed_bytes_inside_a_page_are_an_integrity_error(two_ledgers: bytes, path: Path) -> None:
    """SQLite cannot see those; the digest does."""
    path.write_bytes(two_ledgers.replace(b"number 17: x", b"number 71: x", 1))
    with muniment.open(path, create=False) as archive:
        damaged = archive.memory(DAMAGED.subject, tenant=DAMAGED.tenant)
        report = damaged.verify()
        assert (report.ok, report.bad_seq) == (False, 17)
        with pytest.raises(IntegrityError, match="digest"):
            damaged.replay()
        assert archive.memory(SOUND.subject, tenant=SOUND.tenant).verify()


@pytest.mark.parametrize("size", [1, 99, 100, 512, 4_096, 8_192, 100_000])
def test_a_truncated_file_is_refused_and_not_repaired(two_ledgers: bytes, path: Path, size: int) -> None:
    path.write_bytes(two_ledgers[:size])
    for create in (True, False):
        with pytest.raises(StorageError), muniment.open(path, create=create) as archive:
            archive.memory(DAMAGED.subject, tenant=DAMAGED.tenant).replay()
    assert path.read_bytes() == two_ledgers[:size]
    path.write_bytes(two_ledgers)
    with muniment.open(path) as archive:
        assert archive.verify(deep=True), "the whole file is a whole archive again"


def test_a_truncated_log_loses_no_more_than_its_end(two_ledgers: bytes, path: Path) -> None:
    """A write-ahead log that was cut off, as by a power cut: what was whole is there, the rest never was."""
    path.write_bytes(two_ledgers)
    log = Path(f"{path}-wal")
    with muniment.open(path, durability="normal") as archive:
        memory = archive.memory(SOUND.subject, tenant=SOUND.tenant)
        for number in range(20):
            memory.add(Message(speaker="anna", content=f"late {number}"))
        file, kept = path.read_bytes(), log.read_bytes()
    for size in (len(kept) - 1, len(kept) // 2, 33, 32, 10, 0):
        path.write_bytes(file)
        log.write_bytes(kept[:size])
        with muniment.open(path, durability="normal") as archive:
            memory = archive.memory(SOUND.subject, tenant=SOUND.tenant)
            assert DAMAGE_EVENTS <= len(memory) < DAMAGE_EVENTS + 20
            assert archive.verify(deep=True)
            assert memory.add(Message(speaker="anna", content="goes on")).seq == len(memory) - 1


# --- No room ----------------------------------------------------------------------------------------------------------


def small_archive(path: Path, pages: int) -> Archive:
    """An archive on a disk with room for that many pages."""
    storage = SqliteStorage(path, page_count_max=pages, durability="normal")
    return Archive(storage, clock=system_clock, entropy=system_entropy, tokenizer=tokenize)


def fill(memory: Memory, stored: list[Message]) -> None:
    """Add messages until there is no room, and note which were stored."""
    for number in range(1_000):
        stored.append(memory.add(Message(speaker="anna", content=f"{number} " + "x" * 500)))


def test_a_full_disk_takes_nothing_of_the_write_that_did_not_fit(path: Path) -> None:
    stored: list[Message] = []
    with small_archive(path, 60) as archive:
        memory = archive.memory("user-42", tenant="acme")
        with pytest.raises(StorageFullError, match="make room") as caught:
            fill(memory, stored)
        assert caught.value.__cause__ is not None
        assert list(memory.events()) == stored
        assert memory.verify()
        with pytest.raises(StorageFullError):
            memory.add_many([Message(speaker="anna", content="x" * 500) for _ in range(100)])
        with pytest.raises(StorageFullError):
            archive.memory("another", tenant="acme").add(Document(name="a.txt", text="x" * 100_000))
        assert list(memory.events()) == stored
        assert [info.scope for info in archive.tenant("acme").scopes()] == [Scope("acme", "user-42")]
    with muniment.open(path) as archive:
        memory = archive.memory("user-42", tenant="acme")
        assert list(memory.events()) == stored
        assert memory.add(Message(speaker="anna", content="there is room again")).seq == len(stored)
        assert archive.verify(deep=True)


def test_no_room_to_create_an_archive_leaves_none(path: Path) -> None:
    with pytest.raises(StorageFullError):
        small_archive(path, 3)
    with pytest.raises(StorageUnavailableError):
        muniment.open(path, create=False)
    with muniment.open(path) as archive:
        assert archive.memory("user-42", tenant="acme").add(Message(speaker="anna", content="hello")).seq == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of the operating system")
def test_a_write_that_the_system_cuts_off(path: Path, archive: Archive, memory: Memory) -> None:
    """The files may not grow past a size: the system refuses in the middle of a write."""
    with nothing_stored(memory):
        archive.stats()
        answer = run_python(
            """
            import resource, signal, sys, muniment
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            archive = muniment.open(sys.argv[1])
            memory = archive.memory("user-42", tenant="acme")
            before = len(memory)
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
            try:
                memory.add_many([muniment.Message(speaker="anna", content="x" * 500) for _ in range(2_000)])
            except muniment.MunimentError as error:
                print(isinstance(error, muniment.errors.StorageError), len(memory) - before, bool(memory.verify()))
            """,
            path,
        )
        assert answer == "True 0 True"


# --- No right ---------------------------------------------------------------------------------------------------------

NOBODY: Final = 65_534
AS_NOBODY: Final = """
import os, sys, muniment
# Load everything while the package may still be read.
muniment.open(":memory:").memory("user-42", tenant="acme").add(muniment.Message(speaker="anna", content="hello"))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
for path in sys.argv[2:]:
    for create in (True, False):
        try:
            memory = muniment.open(path, create=create).memory("user-42", tenant="acme")
            memory.add(muniment.Message(speaker="anna", content="hello"))
            print("stored")
        except muniment.MunimentError as error:
            print(error.code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")
def test_without_the_right_to_write_nothing_is_changed_or_made() -> None:
    """As an unprivileged user: files and folders that may not be read, written or entered.

    One process tries them all. The folder is not the test's own, which other users cannot enter.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        paths = [
            archive_in(root / "file not writable", 0o444, 0o755),
            archive_in(root / "nothing writable", 0o444, 0o555),
            archive_in(root / "file not readable", 0o000, 0o755),
            archive_in(root / "folder not writable", 0o666, 0o555),
            archive_in(root / "folder not to be entered", 0o666, 0o600),
        ]
        empty = root / "new archive in a folder that is not writable"
        empty.mkdir(mode=0o555)
        closed = root / "new archive in a folder that is not to be entered"
        closed.mkdir(mode=0o600)
        before = [path.read_bytes() if os.geteuid() == 0 else b"" for path in paths]
        answers = run_python(AS_NOBODY, NOBODY, *paths, empty / "new.db", closed / "new.db").split()
        for folder in root.iterdir():
            folder.chmod(0o755)
        assert answers == ["storage_unavailable"] * len(answers)
        assert not files_of(empty)
        assert not files_of(closed)
        for path, content in zip(paths, before, strict=True):
            path.chmod(0o644)
            assert path.read_bytes() == content or os.geteuid() != 0
            with muniment.open(path) as archive:
                assert archive.verify(deep=True)
                assert len(archive.memory("user-42", tenant="acme")) == 1


def archive_in(folder: Path, mode: int, folder_mode: int) -> Path:
    """An archive with these permissions, in a folder with those."""
    folder.mkdir()
    path = folder / "archive.db"
    with muniment.open(path) as archive:
        archive.memory("user-42", tenant="acme").add(Message(speaker="anna", content="hello"))
    path.chmod(mode)
    folder.chmod(folder_mode)
    return path


def run_python(code: str, *arguments: object) -> str:
    """What a new interpreter prints."""
    lines = code.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(line[indent:] for line in lines), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()
