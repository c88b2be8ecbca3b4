"""`rebuild`, `reindex` and `index` on a real archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

import muniment
from muniment import Message

MODEL = """
class Fruit:
    name = "fruit-1"
    dimension = 2
    def embed(self, texts):
        import numpy
        return numpy.array([[1.0, 0.1] if "pear" in text else [0.1, 1.0] for text in texts], numpy.float32)

def embed(texts): return [[1.0, float(len(text))] for text in texts]
def fails(texts): raise OSError("no model")
nothing = 3
"""


@pytest.fixture
def filled(archive: Path) -> Path:
    (archive.parent / "my_fruit.py").write_text(MODEL)
    with muniment.open(archive) as opened:
        memory = opened.memory("default", tenant="default")
        memory.add(Message(speaker="a", content="a pear"))
        memory.remember("an apple", key="fruit", labels=("x",), summary="about apples")
        opened.memory(None, tenant="default").remember("on the shelf")
        opened.memory("anna", tenant="acme").remember("elsewhere")
    return archive


# --- rebuild ----------------------------------------------------------------------------------------------------------


def test_rebuild_puts_right_what_was_meddled_with(cli: Any, inside: Any, filled: Path) -> None:
    connection = apsw.Connection(str(filled))
    connection.execute("DELETE FROM items")
    connection.close()
    assert inside.run("verify", "-a", filled, "--deep").code == 1
    assert cli.ok("rebuild", "-a", filled).records == [["rebuilt", "4"]]
    assert inside.ok("verify", "-a", filled, "--deep").code == 0


def test_rebuild_a_part(inside: Any, filled: Path) -> None:
    assert inside.ok("rebuild", "-a", filled, "-t", "default").records == [["rebuilt", "3"]]
    assert inside.ok("rebuild", "-a", filled, "-s", "default", "--json").json == [{"num_events": 2}]
    assert inside.ok("rebuild", "-a", filled, "--unscoped").records == [["rebuilt", "1"]]
    for nobody in (["-t", "nobody"], ["-s", "nobody"]):
        assert inside.run("rebuild", "-a", filled, *nobody).code == 3
    assert len(inside.ok("scopes", "-a", filled).records) == 3


# --- reindex ----------------------------------------------------------------------------------------------------------


def test_reindex_then_search_by_meaning(cli: Any, inside: Any, filled: Path) -> None:
    result = cli.ok("reindex", "-a", filled, "--embedder", "my_fruit:Fruit")
    assert result.records == [["embedded", "4", "fruit-1", "2"]]
    assert inside.ok("reindex", "-a", filled, "--embedder", "my_fruit:Fruit", "--json").json == [
        {"num_embedded": 0, "model": "fruit-1", "dimension": 2}
    ]
    found = inside.run("search", "pears", "-a", filled, "--mode", "vector", "--embedder", "my_fruit:Fruit", "-n", "1")
    assert found.records[0][-1] == "a pear"
    other = inside.run("search", "pears", "-a", filled, "--mode", "vector", "--embedder", "my_fruit:embed")
    assert (other.code, other.out) == (2, "")
    assert inside.ok("reindex", "-a", filled, "--embedder", "my_fruit:embed").records[0][1] == "4"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        (None, 2, "which embedder?"),
        ("nobody", 2, "embedder 'nobody' is not one of"),
        ("my_fruit:none", 2, "the embedder my_fruit:none cannot be had: AttributeError"),
        ("my_fruit:nothing", 2, "embedder"),
        ("my_fruit:fails", 7, "no model"),
    ],
)
def test_an_embedder_that_cannot_be_had(inside: Any, filled: Path, name: str | None, code: int, message: str) -> None:
    result = inside.run("reindex", "-a", filled, *([] if name is None else ["--embedder", name]))
    assert (result.code, result.out) == (code, "")
    assert message in result.err


def test_a_person_sees_what_was_made(cli: Any, filled: Path, plain: Any) -> None:
    shown = plain(cli.watch("reindex", "-a", filled, "--embedder", "my_fruit:Fruit").out)
    assert "made 4 vectors of fruit-1 (2 dimensions)\n" in shown


# --- index ------------------------------------------------------------------------------------------------------------


def test_the_index_of_a_scope_and_of_a_tenant(inside: Any, filled: Path) -> None:
    assert inside.ok("index", "-a", filled, "-s", "default").out == "- fruit [default] (x) — about apples\n"
    assert inside.ok("index", "-a", filled, "--unscoped").lines[0].endswith(" — on the shelf")
    assert len(inside.ok("index", "-a", filled).lines) == 2
    assert len(inside.ok("index", "-a", filled, "--limit", "1").lines) == 1
    (found,) = inside.ok("index", "-a", filled, "-t", "acme", "--json").json
    assert (found["tenant"], found["subject"]) == ("acme", None)
    assert found["index"].endswith("elsewhere\n")
    assert len(inside.ok("log", "-a", filled).records) == 2


def test_an_empty_index(inside: Any, filled: Path) -> None:
    result = inside.run("index", "-a", filled, "-t", "nobody")
    assert (result.code, result.out, result.err) == (0, "", "no note is visible for tenant nobody\n")


def test_an_index_cannot_move_the_cursor(cli: Any, filled: Path) -> None:
    with muniment.open(filled) as opened:
        opened.memory("default", tenant="default").remember("\x1b[31mred")
    shown = cli.watch("index", "-a", filled).out
    assert "\\x1b[31mred" in shown
