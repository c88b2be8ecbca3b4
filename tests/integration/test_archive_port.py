"""One archive file: no save of several processes is lost, and what was saved is there after reopening (P19, P20)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import audit
from muniment.portable import ArchiveMemoryPort, MemoryCategory, MemoryEntry, MemoryStore, add, remember
from muniment.portable.archive_port import build_store

BEGIN = """
import sys
import muniment
from muniment.errors import ConflictError
from muniment.portable import ArchiveMemoryPort, MemoryEntry, add

archive = muniment.open(sys.argv[1])
port = ArchiveMemoryPort(archive.memory("user-42", tenant="acme"))
store = port.load()
print("loaded", flush=True)
sys.stdin.readline()
"""

APPEND = """
name, number, conflicts = sys.argv[2], int(sys.argv[3]), 0
for n in range(number):
    while True:
        store = port.load()
        add(store, MemoryEntry(f"{name}-{n}"))
        try:
            port.save(store)
        except ConflictError:
            conflicts += 1
            continue
        break
print(conflicts)
"""

SAVE_ONCE = """
add(store, MemoryEntry("of the child"))
try:
    port.save(store)
except ConflictError as conflict:
    print("conflict", conflict.expected != conflict.actual)
else:
    print("saved")
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BEGIN + program, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "loaded\n"
    return process


def finish(process: subprocess.Popen[str]) -> str:
    """Give the word and wait; what the process printed last."""
    printed, _ = process.communicate("go\n", timeout=120)
    assert process.returncode == 0
    return printed.strip()


def test_no_save_of_several_processes_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    with muniment.open(path):
        pass
    processes = [start(APPEND, path, f"p{number}", 8) for number in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert all(finish(process).isdigit() for process in processes)
    with muniment.open(path) as archive:
        memory = archive.memory("user-42", tenant="acme")
        contents = [entry.content for entry in ArchiveMemoryPort(memory).load().entries]
        assert sorted(contents) == sorted(f"p{number}-{n}" for number in range(3) for n in range(8))
        for number in range(3):  # and each process's entries are in the order in which it saved them
            own = [content for content in contents if content.startswith(f"p{number}-")]
            assert own == [f"p{number}-{n}" for n in range(8)]
        # Every save appended its one note and nothing else, so each store on the way is there.
        assert [event.kind for event in memory.events()] == ["note"] * 24
        for seq in (0, 7, 23):
            store = build_store(memory.replay(up_to_seq=seq).visible_notes)
            assert [entry.content for entry in store.entries] == contents[: seq + 1]
        assert memory.verify()


def test_the_slower_process_conflicts_and_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    with muniment.open(path) as archive:
        memory = archive.memory("user-42", tenant="acme")
        port = ArchiveMemoryPort(memory)
        store = MemoryStore([MemoryEntry("first")])
        port.save(store)
        process = start(SAVE_ONCE, path)
        add(store, MemoryEntry("of the parent"))
        port.save(store)
        size = len(memory)
        assert finish(process) == "conflict True"
        assert len(memory) == size
        assert port.load() == store
        # A read in between is no change of the notes.
        process = start(SAVE_ONCE, path)
        memory.recall("first")
        assert finish(process) == "saved"
        assert [entry.content for entry in port.load().entries] == ["first", "of the parent", "of the child"]


TEXTS = st.sampled_from(["", "a", "same", "é\u2028", "x\r\ny"])
TAGS = st.none() | st.lists(TEXTS, max_size=2).map(tuple)
ENTRIES = st.builds(MemoryEntry, TEXTS, st.sampled_from(MemoryCategory), st.none() | TEXTS, TAGS)


def test_what_was_saved_is_loaded_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"

    @settings(max_examples=15)
    @given(st.builds(MemoryStore, st.lists(ENTRIES, max_size=6)))
    def check(store: MemoryStore) -> None:
        with muniment.open(path, durability="normal") as archive:
            port = ArchiveMemoryPort(archive.memory("user-42", tenant="acme"))
            port.load()
            port.save(store)
        with muniment.open(path) as archive:
            assert ArchiveMemoryPort(archive.memory("user-42", tenant="acme")).load() == store

    check()


def test_what_was_replaced_is_in_the_audit(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    with muniment.open(path) as archive:
        memory = archive.memory("user-42", tenant="acme")
        port = ArchiveMemoryPort(memory)
        store = MemoryStore([MemoryEntry("lives in Ghent", tags=("city",))])
        port.save(store)
        remember(store, MemoryEntry("lives in Antwerp", tags=("city",)))
        port.save(store)
    with audit.Memory(path, tenant="acme", subject="user-42") as ledger:
        replaced, replacing, deletion = ledger.events()
        assert isinstance(deletion, audit.Deletion)
        assert deletion.targets == (replaced.id,)
        assert ledger.get(replaced.id) == replaced
        assert [note.id for note in ledger.replay().visible_notes] == [replacing.id]
