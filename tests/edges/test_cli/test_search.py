"""`muniment search`: what it finds, what it records, what a person sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment import Document, Memory, Message, Recall
from muniment.cli.search import SNIPPET_CHARS, mark, snippet


@pytest.fixture
def memory(archive: Path) -> Iterator[Memory]:
    with muniment.open(archive) as opened:
        memory = opened.memory("default", tenant="default")
        memory.add(Message(speaker="anna", content="The parcels go to Berlin.", session_id="s1"))
        memory.add(Document(name="terms", text="A driver waits.\nThen the parcel goes back."))
        memory.remember("prefers Berlin", tier="core", labels=("place",), metadata={"priority": 1})
        memory.remember("parcels are fragile", metadata={"priority": 2})
        opened.memory("other", tenant="default").remember("another parcel")
        yield memory


def _last(memory: Memory) -> Recall:
    (event,) = memory.events(kind="recall", after_seq=len(memory) - 2)
    assert isinstance(event, Recall)
    return event


def test_it_finds_and_records(cli: Any, archive: Path, memory: Memory) -> None:
    result = cli.run("search", "parcel", "-a", archive)
    assert result.code == 0
    assert {record[0] for record in result.records} == {"0", "1", "3"}
    assert result.err == "recorded as event 4\n"
    recall = _last(memory)
    assert [str(target) for target in recall.recalled] == [record[4] for record in result.records]
    assert (recall.query, recall.source) == ("parcel", "cli")
    seq, score, timestamp, kind, _, session, title, text = next(one for one in result.records if one[0] == "1")
    assert (seq, kind, session, title, text) == (
        "1",
        "document",
        "",
        "terms",
        "A driver waits.\\nThen the parcel goes back.",
    )
    assert float(score) > 0
    assert timestamp.endswith("Z")


@pytest.mark.parametrize(
    ("options", "seqs"),
    [
        (["--kind", "note"], ["3"]),
        (["--kind", "note", "--kind", "message"], ["0", "3"]),
        (["--tier", "core"], []),
        (["--label", "place"], []),
        (["--where", '{"priority": 2}'], ["3"]),
        (["--session", "s1"], ["0"]),
        (["--until", "2000-01-01"], []),
        (["--since", "2000-01-01", "--limit", "0"], []),
    ],
)
def test_filters(inside: Any, archive: Path, memory: Memory, options: list[str], seqs: list[str]) -> None:
    result = inside.run("search", "parcel", "-a", archive, *options)
    assert (result.code, sorted(record[0] for record in result.records)) == (0, seqs)
    assert result.err.endswith("recorded as event 4\n")
    assert len(memory) == 5


def test_the_past_is_looked_at_and_not_read(inside: Any, archive: Path, memory: Memory) -> None:
    memory.delete([event.id for event in memory.events(up_to_seq=0)], reason="x")
    now = inside.run("search", "parcel", "-a", archive)
    assert sorted(record[0] for record in now.records) == ["1", "3"]
    size = len(memory)
    for then in ("2", "3", "2999-01-01"):
        past = inside.run("search", "parcel", "-a", archive, "--as-of", then)
        assert past.err == "a look at the past: not recorded as a read\n"
        assert ("0" in [record[0] for record in past.records]) is (then != "2999-01-01")
    assert len(memory) == size


def test_json_and_explained(inside: Any, archive: Path, memory: Memory) -> None:
    hits = inside.run("search", "parcel", "-a", archive, "--json", "--explain").json
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert all(sum(hit["parts"].values()) == pytest.approx(hit["score"]) for hit in hits)
    assert muniment.event_from_dict(hits[0]["event"]).seq is not None
    plain = inside.run("search", "parcel", "-a", archive, "--explain")
    assert all(record[-1].startswith("keyword=") for record in plain.records)


def test_all_scopes_of_a_tenant(inside: Any, archive: Path, memory: Memory) -> None:
    result = inside.run("search", "parcel", "-a", archive, "--all")
    assert {(record[0], record[1]) for record in result.records} == {("default", "default"), ("default", "other")}
    assert result.err == "recorded in 2 scopes, as one read of each that gave something\n"
    assert _last(memory).query == "*"
    (first, *_) = inside.run("search", "parcel", "-a", archive, "--all", "--json").json
    assert (first["tenant"], first["subject"] in ("default", "other")) == ("default", True)
    nobody = inside.run("search", "parcel", "-a", archive, "--all", "-t", "nobody")
    assert (nobody.code, nobody.out, nobody.err) == (0, "", "nothing was ever stored for tenant nobody\n")


def test_a_scope_that_nobody_wrote_is_not_begun(inside: Any, archive: Path, memory: Memory) -> None:
    result = inside.run("search", "x", "-a", archive, "-s", "typo")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("nothing was ever stored in default/typo; the archive holds default/default")
    assert len(inside.ok("scopes", "-a", archive).records) == 2


def test_nothing_found_is_recorded_too(inside: Any, archive: Path, memory: Memory) -> None:
    result = inside.run("search", "zebra", "-a", archive)
    assert result.err == "nothing in default/default answers that\nrecorded as event 4\n"
    assert _last(memory).recalled == ()


def test_an_archive_that_records_no_reads_says_so(inside: Any, archive: Path) -> None:
    with muniment.open(archive, read_audit="off") as opened:
        opened.memory("default", tenant="default").remember("x")
    assert inside.run("search", "x", "-a", archive).err == "reads are not recorded in this archive\n"


def test_vectors_of_an_embedder_of_ones_own(inside: Any, archive: Path, memory: Memory) -> None:
    (inside.folder / "my_vectors.py").write_text("def embed(texts): return [[1.0, float(len(t))] for t in texts]\n")
    assert inside.run("search", "x", "-a", archive, "--mode", "vector").code == 2
    result = inside.run("search", "x", "-a", archive, "--mode", "vector", "--embedder", "no_such_module:x")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error[usage]: the embedder no_such_module:x cannot be had: ModuleNotFoundError")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "which words? the query is empty"),
        (["x", "--where", "{"], "--where is not JSON: "),
        (["x", "--where", "[]"], "--where is a JSON object"),
        (["x", "--as-of", "tomorrow"], "--as-of 'tomorrow' is not a time"),
        (["x", "--mode", "magic"], "mode 'magic' is not one of"),
        (["x", "--kind", "recall"], "kind 'recall' is not one of"),
        (["x", "--all", "-s", "anna"], "--all searches every scope of the tenant: leave out --subject"),
        (["x", "--all", "--as-of", "3"], "--all searches every scope of the tenant: leave out --as-of"),
    ],
)
def test_mistakes(inside: Any, archive: Path, memory: Memory, arguments: list[str], message: str) -> None:
    result = inside.run("search", *arguments, "-a", archive)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(memory) == 4


def test_a_person_sees_the_words_marked(cli: Any, archive: Path, memory: Memory, plain: Any) -> None:
    shown = cli.watch("search", "parcel", "-a", archive, "--explain").out
    assert "\x1b[1;33mparcels\x1b[0m" in shown
    assert "  1  " in plain(shown)
    assert "keyword=" in plain(shown)
    assert plain(shown).endswith("recorded as event 4\n")


def test_words_are_marked_in_every_form() -> None:
    text = "Deliveries: brought by the driver's van. Café!"
    assert [part[0] for part in mark(text, "delivery cafe driver") if isinstance(part, tuple)] == [
        "Deliveries",
        "driver's",
        "Café",
    ]
    assert "".join(part if isinstance(part, str) else part[0] for part in mark(text, "van")) == text
    assert mark("", "x") == []
    assert mark("nothing here", "zebra") == ["nothing here"]


def test_a_snippet_begins_near_the_match() -> None:
    assert snippet("short\n text", "text") == "short text"
    text = "filler " * 200 + "parcel " + "filler " * 200
    assert "parcel" in snippet(text, "parcels")
    assert len(snippet(text, "parcels")) == SNIPPET_CHARS + 2
    assert snippet(text, "zebra").startswith("filler")
    assert snippet(text + "end", "end").endswith("end")
    assert "\x1b" not in snippet("\x1b[31m red", "red")
