"""`add`: one event from options, and any number of JSON lines."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import muniment
from muniment import Document, Message, Note, Scope
from muniment.adapters.sqlite import SqliteStorage
from muniment.adapters.tokenizer import tokenize
from muniment.archive import Archive
from muniment.cli import feed
from muniment.cli.output import Output
from muniment.errors import StorageFullError
from muniment.ports.clock import system_clock, system_entropy

SCOPE = Scope("default", "default")


def lines(*objects: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def note(text: str, **fields: object) -> dict[str, object]:
    return {"kind": "note", "content": text, **fields}


def stored(archive: Path, subject: str | None = "default", tenant: str = "default") -> list[Any]:
    with muniment.open(archive, create=False) as opened:
        return list(opened.memory(subject, tenant=tenant).events())


# --- One event --------------------------------------------------------------------------------------------------------


def test_a_text_is_a_note(cli: Any, archive: Path) -> None:
    result = cli.run("add", "prefers mornings", "-a", archive)
    assert (result.code, result.err) == (0, f"began a new archive: {archive}\n")
    (event,) = stored(archive)
    assert result.records == [["0", "note", str(event.id)]]
    assert (event.content, event.tier, event.source) == ("prefers mornings", "archival", "cli")


def test_every_field_of_a_note(inside: Any, archive: Path) -> None:
    options = ["--tier", "core", "--label", "a", "--label", "b", "--summary", "s", "--metadata", '{"x": [1, null]}']
    common = ["--session", "s1", "--source", "test", "--actor", "me", "--timestamp", "2026-03-01T11:30+02:00"]
    keep = ["--retain-until", "2027-01-01", "--json"]
    (printed,) = inside.run("add", "text", "-a", archive, *options, *common, *keep).json
    (event,) = stored(archive)
    assert muniment.event_from_dict(printed) == event
    assert isinstance(event, Note)
    assert (event.tier, event.labels, event.summary, event.metadata) == ("core", ("a", "b"), "s", {"x": [1, None]})
    assert (event.session_id, event.source, event.actor) == ("s1", "test", "me")
    assert printed["timestamp"] == "2026-03-01T09:30:00Z"
    assert printed["retain_until"] == "2027-01-01T00:00:00Z"


def test_a_message_and_documents(inside: Any, archive: Path) -> None:
    file = archive.parent / "terms.md"
    file.write_bytes(b"# Terms\n\nten minutes \xe2\x82\xac")
    inside.run("add", "hello", "--speaker", "anna", "-a", archive)
    inside.ok("add", "text", "--name", "a.html", "--media-type", "text/html", "-a", archive)
    inside.ok("add", "--file", file, "-a", archive)
    inside.ok("add", "--file", file, "--name", "other name", "-a", archive)
    message, named, read, renamed = stored(archive)
    assert isinstance(message, Message)
    assert (message.speaker, message.content) == ("anna", "hello")
    assert isinstance(named, Document)
    assert (named.name, named.text, named.media_type, named.sha256) == ("a.html", "text", "text/html", None)
    assert isinstance(read, Document)
    assert (read.name, read.text, read.media_type) == ("terms.md", "# Terms\n\nten minutes €", "text/markdown")
    assert read.sha256 == sha256(file.read_bytes()).hexdigest()
    assert renamed.name == "other name"


def test_a_key_replaces_and_keeps_what_is_not_given(inside: Any, archive: Path) -> None:
    inside.run("add", "one", "--key", "plan", "--tier", "core", "--label", "x", "-a", archive)
    inside.ok("add", "two", "--key", "plan", "--expect", "0", "-a", archive)
    first, second = stored(archive)
    assert (second.supersedes, second.tier, second.labels) == (first.id, "core", ("x",))
    conflict = inside.run("add", "three", "--key", "plan", "--expect", "0", "-a", archive)
    assert (conflict.code, conflict.out) == (4, "")
    assert conflict.err.startswith("error[conflict]: key 'plan': expected the version at seq 0")
    assert inside.run("add", "three", "--key", "plan", "--expect", "none", "-a", archive).code == 4
    assert inside.ok("add", "x", "--key", "other", "--expect", "none", "-a", archive).records[0][0] == "2"


def test_adding_again(inside: Any, archive: Path) -> None:
    inside.run("add", "text", "-a", archive)
    assert inside.ok("add", "text", "--if-absent", "-a", archive).records[0][0] == "0"
    assert inside.ok("add", "text", "-a", archive).records[0][0] == "1"
    for _ in range(2):
        assert inside.ok("add", "hi", "--speaker", "a", "--request-id", "r1", "-a", archive).records[0][0] == "2"
    assert inside.run("add", "other", "--speaker", "a", "--request-id", "r1", "-a", archive).code == 4
    assert len(stored(archive)) == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "which text?"),
        ([""], "which text?"),
        (["", "--speaker", "a"], "which text?"),
        (["", "--name", "a"], "text: "),
        (["x", "--speaker", "a", "--tier", "core"], "--tier does not belong to a message"),
        (["x", "--name", "a", "--label", "b"], "--label does not belong to a document"),
        (["x", "--media-type", "text/html"], "--media-type does not belong to a note"),
        (["x", "--speaker", "a", "--name", "b"], "give one"),
        (["x", "--file", "a.txt"], "not both"),
        (["--name", "a"], "which text?"),
        (["--file", "binary"], "is not UTF-8 text"),
        (["--file", "."], "cannot be read"),
        (["x", "--tier", "gold"], "tier: "),
        (["x", "--metadata", "[1]"], "metadata: a JSON object is needed"),
        (["x", "--metadata", "{"], "--metadata is not JSON"),
        (["x", "--timestamp", "2026-03-01T09:30"], "has no offset"),
        (["x", "--retain-until", "soon"], "is not a time"),
        (["x", "--expect", "1"], "--expect goes with --key"),
        (["x", "--key", "k", "--expect", "x"], "neither a seq nor none"),
        (["x", "--key", "k", "--if-absent"], "exclude each other"),
        (["x", "--key", "k", "--timestamp", "2026-03-01"], "use JSON lines"),
        (["x", "--skip-known"], "go with JSON lines"),
        (["-", "--tier", "core"], "--tier belongs to one event"),
        (["x\udcff"], "unicode"),
        (["x", "--label", "y" * 129], "over its limit"),
    ],
)
def test_what_is_refused_stores_and_begins_nothing(inside: Any, arguments: list[str], reason: str) -> None:
    (inside.folder / "binary").write_bytes(b"\xff\xfe\x00")
    result = inside.run("add", *arguments, "-a", "a.db")
    assert (result.code, result.out) == (2, "")
    assert reason in result.err
    assert not (inside.folder / "a.db").exists()


def test_a_file_that_is_not_there_and_one_that_is_too_long(inside: Any) -> None:
    assert inside.run("add", "--file", "none.txt", "-a", "a.db").code == 3
    (inside.folder / "long.txt").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    result = inside.run("add", "--file", "long.txt", "-a", "a.db")
    assert result.code == 2
    assert result.err.startswith("error[limit_exceeded]: the text of long.txt is over its limit: 4194305 given")


# --- JSON lines -------------------------------------------------------------------------------------------------------


def test_ten_thousand_lines(cli: Any, archive: Path) -> None:
    text = lines(*({"kind": "message", "speaker": "a", "content": f"message {n}"} for n in range(10_000)))
    result = cli.run("add", "-", "-a", archive, stdin=text)
    assert result.code == 0
    assert result.counts() == {"stored": 10_000, "known": 0, "refused": 0}
    assert result.err == f"began a new archive: {archive}\n"
    events = stored(archive)
    assert [event.content for event in events] == [f"message {n}" for n in range(10_000)]
    assert cli.ok("verify", "-a", archive).records[0][:4] == ["ok", "default", "default", "10000"]


def test_lines_of_all_kinds_and_scopes(inside: Any, archive: Path) -> None:
    text = lines(
        {"kind": "message", "speaker": "a", "content": "1", "tenant": "acme", "subject": "anna"},
        {"kind": "document", "name": "n", "text": "2", "tenant": "acme", "subject": None},
        note("3", key="k", labels=["x"], metadata={"a": {}}),
        note("4", subject="s"),
        {"kind": "message", "speaker": "a", "content": "5", "tenant": "acme", "subject": "anna"},
        note("6", key="k"),
    )
    result = inside.run("add", "-", "-a", archive, "--tenant", "t", "--unscoped", "--json", stdin=text)
    assert result.code == 0
    assert result.err.splitlines()[1] == "stored 6 of 6 lines in 4 scopes"
    assert [event["seq"] for event in result.json] == [0, 0, 0, 0, 1, 1]
    assert [event.content for event in stored(archive, "anna", "acme")] == ["1", "5"]
    assert [event.text for event in stored(archive, None, "acme")] == ["2"]
    three, six = stored(archive, None, "t")
    assert (three.source, six.supersedes, six.labels) == ("unknown", three.id, ())
    assert [event.content for event in stored(archive, "s", "t")] == ["4"]


BAD_LINES: Sequence[tuple[bytes, str]] = [
    (b"{", "not JSON: Expecting property name enclosed in double quotes at column 2"),
    (b"[]", "not a JSON object"),
    (b"5", "not a JSON object"),
    (b'{"kind": "note", "content": "\xff"}', "not UTF-8: byte 0xff at column 30"),
    (b'{"kind": "note"}', "content: Field required"),
    (b'{"content": "x"}', "kind None is not one of message, document, note"),
    (b'{"kind": ["note"]}', "kind ['note'] is not one of message, document, note"),
    (b'{"kind": "recall", "query": "x"}', "kind 'recall' is not one of message, document, note"),
    (b'{"kind": "note", "content": 5}', "content: "),
    (b'{"kind": "note", "content": "x", "extra": 1}', "extra: "),
    (b'{"kind": "note", "content": "x", "timestamp": "2026-01-01T00:00:00"}', "timestamp: a time without an offset"),
    (b'{"kind": "note", "content": "x", "seq": 3}', "seq 3: the store gives an event its place"),
    (b'{"kind": "note", "content": "x", "tenant": ""}', "tenant must not be empty"),
    (b'{"kind": "note", "content": "x", "tenant": 5}', "tenant must be text"),
    (b'{"kind": "note", "content": "x", "content": "y"}', "the field 'content' stands there twice"),
    (b'{"kind": "note", "content": "x", "metadata": {"a": NaN}}', "NaN is not JSON"),
    (b'{"kind": "note", "content": "x\\u0000"}', "content must not contain U+0000"),
    (b'{"kind": "note", "content": "\\ud800"}', "content: "),
    (b'{"kind": "note", "content": "x", "key": "' + b"k" * 257 + b'"}', "key is over its limit: 257 given"),
    (b'{"id": "x", "kind": "note", "state": "erased"}', "an erased event has no content to add"),
    (b'{"kind": "note", "content": "x", "metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
    (b'{"kind": "note", "content": "x", "metadata": {"n": ' + b"9" * 5_000 + b"}}", ""),
    (b"\x00\x01\x02", "not JSON"),
]


def test_bad_lines_are_named_and_the_good_ones_stored(cli: Any, archive: Path) -> None:
    text = b""
    for raw, _ in BAD_LINES:
        text += raw + b"\n" + lines(note("good")).encode()
    result = cli.run("add", "-", "-a", archive, stdin=text)
    assert result.code == 2
    assert result.counts() == {"stored": len(BAD_LINES), "known": 0, "refused": len(BAD_LINES)}
    said = result.err.splitlines()[1:]
    assert len(said) == len(BAD_LINES)
    for number, ((_, reason), line) in enumerate(zip(BAD_LINES, said, strict=True)):
        assert line.startswith(f"line {2 * number + 1}: ")
        assert reason in line
    assert len(stored(archive)) == len(BAD_LINES)


def test_lines_may_end_and_begin_as_they_do_elsewhere(inside: Any, archive: Path) -> None:
    text = b"\xef\xbb\xbf" + lines(note("1")).encode().replace(b"\n", b"\r\n") + b"\n  \n" + lines(note("2")).encode()
    result = inside.run("add", "-", "-a", archive, stdin=text.rstrip(b"\n"))
    assert (result.code, result.counts()["stored"]) == (0, 2)
    assert inside.ok("add", "-", "-a", archive).counts() == {"stored": 0, "known": 0, "refused": 0}


def test_a_line_without_end_is_not_held_in_memory(cli: Any, archive: Path) -> None:
    text = b"x" * (feed.LINE_BYTES_MAX + 1_000) + b"\n" + lines(note("after")).encode()
    result = cli.run("add", "-", "-a", archive, stdin=text)
    assert result.code == 2
    assert result.counts() == {"stored": 1, "known": 0, "refused": 1}
    assert f"line 1: longer than {feed.LINE_BYTES_MAX} bytes" in result.err


def test_known_lines_are_refused_or_passed_over(inside: Any, archive: Path) -> None:
    inside.run("add", "-", "-a", archive, stdin=lines(note("one"), note("two")))
    exported = [
        {name: value for name, value in event.items() if name not in ("seq", "recorded_at")}
        for event in inside.ok("log", "-a", archive, "--json").json
    ]
    changed = {**exported[1], "content": "changed"}
    refused = inside.run("add", "-", "-a", archive, stdin=lines(*exported, note("new")))
    assert refused.code == 4
    assert refused.counts() == {"stored": 1, "known": 0, "refused": 2}
    assert refused.err.startswith(f"line 1: id {exported[0]['id']} is taken already (equal: --skip-known")
    passed = inside.run(
        "add", "-", "--skip-known", "-a", archive, stdin=lines(*exported, changed, exported[0], note("x"))
    )
    assert passed.code == 4
    assert passed.counts() == {"stored": 1, "known": 3, "refused": 1}
    assert passed.err == f"line 3: id {changed['id']} is taken already (by another event)\n"
    twice = note("twice", id=str(uuid4()))
    result = inside.run("add", "-", "-a", archive, stdin=lines(twice, twice))
    assert (result.code, result.counts()["stored"]) == (4, 1)
    assert "line 2: " in result.err
    assert len(stored(archive)) == 5


def test_an_archive_goes_into_another_one(inside: Any, archive: Path) -> None:
    inside.run(
        "add", "-", "-a", archive, stdin=lines(note("one"), {"kind": "message", "speaker": "a", "content": "two"})
    )
    exported = inside.ok("log", "-a", archive, "--json").json
    for event in exported:
        del event["seq"], event["recorded_at"]
    assert inside.run("add", "-", "-a", "b.db", stdin=lines(*exported)).code == 0
    again = inside.ok("log", "-a", "b.db", "--json").json
    assert [event["id"] for event in again] == [event["id"] for event in exported]
    assert [event["timestamp"] for event in again] == [event["timestamp"] for event in exported]


def test_check_stores_nothing(inside: Any, archive: Path) -> None:
    text = lines(note("one"), {"kind": "x"}, note("two"))
    result = inside.run("add", "-", "--check", "-a", archive, stdin=text)
    assert result.code == 2
    assert result.counts() == {"good": 2, "refused": 1}
    assert not archive.exists()
    assert inside.ok("add", "-", "--check", stdin=lines(note("one"))).counts() == {"good": 1, "refused": 0}


def test_a_slow_writer_sees_each_line_stored_with_a_small_chunk(cli: Any, archive: Path) -> None:
    reading, writing = os.pipe()
    running = cli.start("add", "-", "--chunk", "1", "--json", "-a", archive, stdin=reading)
    os.close(reading)
    for number in range(3):
        os.write(writing, lines(note(f"line {number}")).encode())
        assert json.loads(running.next_line())["seq"] == number
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(60) == 130
    os.close(writing)
    assert running.process.stderr.read().decode().splitlines()[1:] == [
        "stored 3 lines; not stored: all after line 3",
        "error[interrupted]: interrupted",
    ]


# --- What cannot be arranged from outside -----------------------------------------------------------------------------


def test_a_full_disk_in_the_middle_says_what_is_stored(
    archive: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text(lines(*(note(f"{n} " * 99, subject="abc"[n % 3]) for n in range(1, 401))))
    storage = SqliteStorage(archive, page_count_max=60)
    with Archive(storage, clock=system_clock, entropy=system_entropy, tokenizer=tokenize) as opened:
        given = feed.Feed(Output(), SCOPE)
        with (tmp_path / "lines").open("rb") as stream, pytest.raises(StorageFullError):
            given.store(opened, stream, 50, lambda *_: None)
        events = [event for subject in "abc" for event in opened.memory(subject, tenant="default").events()]
    kept = {int(event.content.split()[0]) for event in events if isinstance(event, Note)}
    assert len(kept) == given.num_stored > 0
    said = re.fullmatch(
        r"stored (\d+) lines; not stored: lines ([0-9, -]+) and all after line (\d+)\n", capsys.readouterr().err
    )
    assert said is not None
    assert int(said[1]) == len(kept)
    spans = [part.split("-") for part in said[2].split(", ")]
    named = {number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)}
    assert named | set(range(int(said[3]) + 1, 401)) == set(range(1, 401)) - kept


def test_an_id_that_another_writer_takes_meanwhile(archive: Path, tmp_path: Path) -> None:
    with muniment.open(archive) as opened:
        memory = opened.memory("default", tenant="default")
        taken = memory.remember("taken")
        new = feed.parse_line(2, lines(note("new")).encode(), SCOPE)
        late = feed.parse_line(1, lines(note("late", id=str(taken.id))).encode(), SCOPE)
        given = feed.Feed(Output(), SCOPE)
        events = given._store_lines(memory, [late, new])
        assert list(events) == [2]
        assert given.refused == [4]
        assert len(memory) == 2


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], "no line"),
        ([3], "line 3"),
        ([3, 4], "lines 3-4"),
        ([0, 1, 2, 5, 7, 8], "lines 0-2, 5, 7-8"),
        ([1, 3, 5], "lines 1, 3, 5"),
    ],
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert feed.ranges_of(numbers) == text


def test_lines_of_a_stream() -> None:
    stream = BytesIO(b"a\nb\n\nlast")
    assert [(number, raw) for number, raw, _ in feed.read_lines(stream)] == [
        (1, b"a\n"),
        (2, b"b\n"),
        (3, b"\n"),
        (4, b"last"),
    ]
