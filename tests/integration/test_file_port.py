"""One file and several real processes: no save is lost, no half file is seen, a killed one does no harm (P20, P21)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.errors import StorageBusyError
from muniment.portable import FileMemoryPort, MemoryEntry, MemoryStore, add

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs below kill themselves by a POSIX signal")

SUFFIXES = [".json", ".yaml"]

APPEND = """
import sys
from muniment.errors import ConflictError
from muniment.portable import FileMemoryPort, MemoryEntry, add

path, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
port = FileMemoryPort(path, lock_timeout_s=60)
print("ready", flush=True)
sys.stdin.readline()
for n in range(number):
    while True:
        store = port.load()
        add(store, MemoryEntry(f"{name}-{n}"))
        try:
            port.save(store)
        except ConflictError:
            continue
        break
"""

REWRITE = """
import sys
from muniment.portable import FileMemoryPort, MemoryEntry, MemoryStore

port = FileMemoryPort(sys.argv[1])
port.load()
print("ready", flush=True)
for n in range(int(sys.argv[2])):
    port.save(MemoryStore([MemoryEntry(str(n)) for _ in range(n % 400)]))
"""

KILLED = """
import os, signal, sys
from muniment.portable import FileMemoryPort, MemoryEntry, MemoryStore

port = FileMemoryPort(sys.argv[1])
port.load()

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, sys.argv[2], die)
port.save(MemoryStore([MemoryEntry("never seen")] * 100))
"""

HOLD = """
import sys
from pathlib import Path
from muniment.portable import files

with files.locked(Path(sys.argv[1]), 0) as is_locked:
    print("held" if is_locked else "not held", flush=True)
    sys.stdin.readline()
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=120)
    return process.returncode


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"store{request.param}"


def test_no_save_of_several_processes_is_lost(path: Path):
    processes = [start(APPEND, path, f"p{number}", 10) for number in range(4)]
    assert [read_line(process) for process in processes] == ["ready"] * 4
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [finish(process) for process in processes] == [0] * 4
    contents = [entry.content for entry in FileMemoryPort(path).load().entries]
    assert sorted(contents) == sorted(f"p{number}-{n}" for number in range(4) for n in range(10))
    for number in range(4):  # and each process's entries are in the order in which it saved them
        own = [content for content in contents if content.startswith(f"p{number}-")]
        assert own == [f"p{number}-{n}" for n in range(10)]


def test_a_reader_sees_whole_files_only(path: Path):
    writer = start(REWRITE, path, 150)
    assert read_line(writer) == "ready"
    seen: set[int] = set()
    reader = FileMemoryPort(path)
    while writer.poll() is None:
        contents = [entry.content for entry in reader.load().entries]
        assert not contents or contents == [contents[0]] * (int(contents[0]) % 400)
        seen.add(len(contents))
    assert finish(writer) == 0
    assert seen
    assert len(reader.load()) == 149


@pytest.mark.parametrize("call", ["replace", "fsync", "open"])
def test_killed_in_the_middle_of_a_save(call: str, path: Path):
    kept = MemoryStore([MemoryEntry("kept", tags=("a",))])
    port = FileMemoryPort(path, lock_timeout_s=0)
    port.save(kept)
    before = path.read_bytes()
    killed = start(KILLED, path, call)
    assert finish(killed) == -signal.SIGKILL
    assert path.read_bytes() == before
    # The lock died with its holder, the old content is what this port saw, and the next save cleans up.
    assert port.load() == kept
    add(kept, MemoryEntry("next"))
    port.save(kept)
    assert FileMemoryPort(path).load() == kept
    assert sorted(file.name for file in path.parent.iterdir()) == sorted([path.name, f"{path.name}.lock"])


def test_killed_after_the_replace_has_saved(path: Path):
    port = FileMemoryPort(path)
    port.save(MemoryStore([MemoryEntry("old")]))
    program = KILLED.replace(
        "setattr(os, sys.argv[2], die)", "import muniment.portable.files as files\nfiles._sync_folder = die"
    )
    killed = start(program, path, "unused")
    assert finish(killed) == -signal.SIGKILL
    assert len(FileMemoryPort(path).load()) == 100


def test_lock_of_another_process(path: Path):
    holder = start(HOLD, f"{path}.lock")
    assert read_line(holder) == "held"
    port = FileMemoryPort(path, lock_timeout_s=0)
    with pytest.raises(StorageBusyError, match="another writer held its lock"):
        port.save(MemoryStore())
    assert not path.exists()
    second = start(HOLD, f"{path}.lock")
    assert read_line(second) == "not held"
    assert finish(second) == 0
    os.kill(holder.pid, signal.SIGKILL)
    assert finish(holder) == -signal.SIGKILL
    port.save(MemoryStore())
    assert path.exists()
