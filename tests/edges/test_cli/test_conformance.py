"""`conformance`: the functions of the package, and ports that are somebody else's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muniment.testing.portable import PORT_LAWS, SHIPPED_VECTORS, shipped_vectors

PORTS = """
from pathlib import Path
from muniment.portable import FileMemoryPort, MemoryStore

def good():
    return FileMemoryPort("store.json")

class Forgets:
    def load(self):
        return MemoryStore()
    def save(self, store):
        pass

class Shouts(Forgets):
    def save(self, store):
        raise RuntimeError("no\\tserver\\x1b[31m")

def refuses():
    raise RuntimeError("no server\\nhere")

def full():
    Path("full.json").write_text('{"entries": [{"content": "of a person"}]}')
    return FileMemoryPort("full.json")

def damaged():
    Path("damaged.json").write_text("{")
    return FileMemoryPort("damaged.json")
"""

ONE = {
    "id": "add/one",
    "group": "add",
    "store": {"entries": []},
    "steps": [{"op": "add", "entry": {"content": "a"}}, {"op": "len", "expect": {"returned": 1}}],
}


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A file of one vector, beside a module of ports."""
    (tmp_path / "ports.py").write_text(PORTS, encoding="utf-8")
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"vectors": [ONE]}), encoding="utf-8")
    return path


def test_the_package_keeps_its_contract(cli: Any) -> None:
    vectors = shipped_vectors()
    steps = sum(len(vector.steps) for vector in vectors)
    assert cli.ok("conformance").records == [["ok", "functions", f"{len(vectors)} vectors, {steps} steps: all kept"]]


def test_a_vector_file(cli: Any, one: Path) -> None:
    assert cli.ok("conformance", one).out == "ok\tfunctions\t1 vector, 2 steps: all kept\n"
    (summary,) = cli.ok("conformance", SHIPPED_VECTORS[0], "--json").json
    assert (summary["ok"], summary["num_vectors"], summary["groups"]["evict"] > 1) == (True, 107, True)


def test_a_good_port(cli: Any, one: Path) -> None:
    result = cli.ok("conformance", one, "--port", "ports:good", "--json")
    assert result.json == [
        {
            "ok": True,
            "target": "ports:good",
            "num_vectors": 1,
            "num_steps": 2,
            "groups": {"add": 1},
            "port_laws": list(PORT_LAWS),
            "num_failures": 0,
        }
    ]
    assert json.loads((cli.folder / "store.json").read_text()) == {"entries": []}


def test_a_bad_port(cli: Any, one: Path) -> None:
    result = cli.run("conformance", one, "--port", "ports:Forgets")
    assert (result.code, result.err) == (1, "")
    *failures, last = result.records
    assert {status for status, _, _ in failures} == {"bad"}
    assert ["bad", "add/one", "store.entries: expected 1 values, got 0"] in [
        [status, name, problem.partition(": ")[2]] if name == "add/one" else [] for status, name, problem in failures
    ]
    assert last == ["bad", "ports:Forgets", f"1 vector, 2 steps, 6 port laws: {len(failures)} failures"]
    *objects, summary = cli.run("conformance", one, "--port", "ports:Forgets", "--json").json
    assert [[each["name"], each["problem"]] for each in objects] == [[name, problem] for _, name, problem in failures]
    assert (summary["ok"], summary["num_failures"]) == (False, len(failures))


def test_what_a_port_raises_is_a_failure_on_one_line(cli: Any, one: Path) -> None:
    result = cli.run("conformance", one, "--port", "ports:Shouts")
    assert (result.code, result.err) == (1, "")
    assert all(len(record) == 3 for record in result.records)
    assert "RuntimeError: no\\tserver\\x1b[31m" in result.out


def test_failures_are_shown_to_a_person(cli: Any, one: Path, plain: Any) -> None:
    result = cli.watch("conformance", one, "--port", "ports:Shouts", columns=200)
    assert result.code == 1
    shown = plain(result.out).splitlines()
    assert shown[-1].startswith("bad  ports:Shouts: 1 vector, 2 steps, 6 port laws: ")
    assert any(line.startswith("bad  add/one  ") for line in shown)
    result = cli.watch("conformance", one)
    assert (result.code, plain(result.out)) == (0, "ok   functions: 1 vector, 2 steps: all kept\n")


@pytest.mark.parametrize(
    ("port", "message"),
    [
        ("ports", "the target 'ports' is not of the form package.module:name"),
        ("nowhere:good", "the target 'nowhere:good' cannot be imported: "),
        ("ports:Path", "the target opens no MemoryPort but "),
        ("ports:refuses", "the port ports:refuses cannot be opened: RuntimeError: no server\\nhere"),
        ("ports:full", "the target's place is not empty"),
        ("ports:damaged", "damaged.json: "),
        ("broken:x", "the port broken:x cannot be opened: SyntaxError: "),
    ],
)
def test_a_port_that_cannot_be_tested(cli: Any, one: Path, port: str, message: str) -> None:
    (cli.folder / "broken.py").write_text("def (", encoding="utf-8")
    result = cli.run("conformance", one, "--port", port)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith(f"error[usage]: {message}")
    full = cli.folder / "full.json"
    assert not full.exists() or "of a person" in full.read_text()


@pytest.mark.parametrize("content", [None, '{"vectors": []}'])
def test_a_file_that_holds_no_vectors(cli: Any, content: str | None) -> None:
    path = cli.folder / "vectors.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    result = cli.run("conformance", "vectors.json")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error[usage]: vectors.json: ")
    assert len(result.err.splitlines()) == 1


def test_the_installed_command_finds_a_port_in_the_current_folder(cli: Any, one: Path) -> None:
    """The script does not have that folder on its path, unlike `python -m`."""
    script = "import sys; from muniment.cli.edge import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, "conformance", str(one), "--port", "ports:good"],
        cwd=cli.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ok\tports:good\t")
