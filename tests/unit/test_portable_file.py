"""One store in one file, seen from one process: formats, what is never overwritten, errors, the order of the writing
(P20, P21). Several processes are in `tests/integration/test_file_port.py`."""

from __future__ import annotations

import errno
import os
import pickle
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import muniment.portable.ports as ports
from muniment.errors import (
    ConflictError,
    LimitExceededError,
    StorageBusyError,
    StorageFullError,
    StorageUnavailableError,
    UsageError,
)
from muniment.portable import FileMemoryPort, MemoryEntry, MemoryPort, MemoryStore, files

STORE = MemoryStore([MemoryEntry("likes tea é🚀", created_at="2026-06-09T20:00:00Z", tags=("b", "a", "b"))])
OTHER = MemoryStore([MemoryEntry("likes coffee")])


def save(path: Path, store: MemoryStore) -> FileMemoryPort:
    port = FileMemoryPort(path)
    port.load()
    port.save(store)
    return port


def is_left_alone(path: Path, content: bytes) -> bool:
    return path.read_bytes() == content and sorted(path.parent.glob(".*")) == []


class TestFormat:
    def test_by_suffix(self, tmp_path: Path):
        for suffix, text in [(".json", STORE.to_json()), (".yaml", STORE.to_yaml()), (".yml", STORE.to_yaml())]:
            path = tmp_path / f"store{suffix}"
            save(path, STORE)
            assert path.read_bytes() == text.encode()
            assert FileMemoryPort(str(path)).load() == STORE

    @pytest.mark.parametrize("name", ["store.txt", "store", "store.json.bak", "store.JSON", ".json"])
    def test_other_suffix(self, name: str, tmp_path: Path):
        with pytest.raises(UsageError, match=r"\.json, \.yaml or \.yml"):
            FileMemoryPort(tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), True, "1", None])
    def test_bad_timeout(self, timeout: object, tmp_path: Path):
        with pytest.raises(UsageError, match="lock_timeout_s"):
            FileMemoryPort(tmp_path / "a.json", lock_timeout_s=timeout)  # pyright: ignore[reportArgumentType]

    def test_unquoted_time_in_yaml(self, tmp_path: Path):
        path = tmp_path / "store.yaml"
        path.write_text("entries:\n- {content: a, createdAt: 2026-06-09T20:00:00Z}\n", encoding="utf-8")
        assert FileMemoryPort(path).load().entries[0].created_at == "2026-06-09T20:00:00Z"

    def test_is_a_port(self, tmp_path: Path):
        assert isinstance(FileMemoryPort(tmp_path / "a.json"), MemoryPort)


class TestPlace:
    def test_missing_file_is_an_empty_store_and_load_writes_nothing(self, tmp_path: Path):
        assert FileMemoryPort(tmp_path / "deep" / "store.json").load() == MemoryStore()
        assert list(tmp_path.iterdir()) == []

    def test_missing_folders_are_created_at_save(self, tmp_path: Path):
        path = tmp_path / "a" / "b" / "store.json"
        save(path, STORE)
        assert sorted(file.name for file in path.parent.iterdir()) == ["store.json", "store.json.lock"]

    def test_first_save_needs_no_load(self, tmp_path: Path):
        FileMemoryPort(tmp_path / "store.json").save(STORE)
        assert FileMemoryPort(tmp_path / "store.json").load() == STORE

    def test_path_is_fixed_at_construction(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path)
        port = FileMemoryPort("store.json")
        monkeypatch.chdir(tmp_path / "elsewhere")
        port.save(STORE)
        assert (tmp_path / "store.json").exists()

    def test_symbolic_link_stays_and_shares_the_lock(self, tmp_path: Path):
        (tmp_path / "real").mkdir()
        target, link = tmp_path / "real" / "store.json", tmp_path / "link.json"
        save(target, STORE)
        link.symlink_to(target)
        save(link, OTHER)
        assert link.is_symlink()
        assert FileMemoryPort(target).load() == OTHER
        assert not (tmp_path / "link.json.lock").exists()

    def test_permissions_are_kept(self, tmp_path: Path):
        path = tmp_path / "store.json"
        port = save(path, STORE)
        path.chmod(0o640)
        port.save(OTHER)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    @pytest.mark.parametrize("name", ["folder.json", "file.json/store.json"])
    def test_what_is_no_file(self, name: str, tmp_path: Path):
        (tmp_path / "folder.json").mkdir()
        (tmp_path / "file.json").write_text("{}", encoding="utf-8")
        port = FileMemoryPort(tmp_path / name)
        for use in (port.load, lambda: port.save(STORE)):
            with pytest.raises(UsageError, match=name):
                use()

    def test_only_a_store_is_saved(self, tmp_path: Path):
        for wrong in (STORE.save(), None, MemoryStore([STORE])):  # pyright: ignore[reportArgumentType]
            with pytest.raises(UsageError):
                FileMemoryPort(tmp_path / "a.json").save(wrong)  # pyright: ignore[reportArgumentType]
        assert list(tmp_path.iterdir()) == []


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty.json": (b"", "store: not JSON"),
    "cut.json": (STORE.to_json().encode()[:-4], "store: not JSON"),
    "latin.json": (b'{"entries": [{"content": "caf\xe9"}]}', "store: not UTF-8 at byte 29"),
    "list.json": (b"[]", "store: must be a mapping"),
    "category.json": (b'{"entries": [{"category": "semantic"}]}', "entries[0].category: "),
    "version.json": (b'{"version": 1, "entries": []}', "version: is not a key"),
    "source.json": (b'{"entries": [{}, {"source": "a"}]}', "entries[1].source: is not a key"),
    "snake.json": (b'{"entries": [{"created_at": "t"}]}', "entries[0].created_at: is not a key"),
    "twice.json": (b'{"entries": [{"content": "a", "content": "b"}]}', "entries[0].content: is given twice"),
    "open.yaml": (b"entries: [", "store: not YAML"),
    "empty.yaml": (b"", "store: must be a mapping"),
    "number.yaml": (b"entries:\n- content: 3\n", "entries[0].content: "),
    "key.yaml": (b"entries:\n- 3: a\n", "entries[0].3: is not a key"),
    "twice.yml": (b"entries:\n- tags: []\n  tags: []\n", "entries[0].tags: is given twice"),
}


class TestUnusableFile:
    @pytest.mark.parametrize("name", BROKEN)
    def test_every_call_raises_and_the_file_is_left_as_it_is(self, name: str, tmp_path: Path):
        content, place = BROKEN[name]
        path = tmp_path / name
        path.write_bytes(content)
        port = FileMemoryPort(path)
        for use in (port.load, port.load, lambda: port.save(STORE), lambda: port.save(STORE), port.load):
            with pytest.raises(UsageError) as raised:
                use()
            assert str(raised.value).startswith(f"{path}: {place}")
            assert is_left_alone(path, content)

    def test_broken_after_it_was_loaded(self, tmp_path: Path):
        path = tmp_path / "store.json"
        port = save(path, STORE)
        path.write_bytes(b"{")
        for use in (lambda: port.save(OTHER), port.load, lambda: port.save(OTHER)):
            with pytest.raises(UsageError, match="not JSON"):
                use()
        assert is_left_alone(path, b"{")

    def test_mended_file_can_be_used_again(self, tmp_path: Path):
        path = tmp_path / "store.json"
        path.write_bytes(b"{")
        port = FileMemoryPort(path)
        with pytest.raises(UsageError):
            port.load()
        path.write_text(STORE.to_json(), encoding="utf-8")
        assert port.load() == STORE
        port.save(OTHER)
        assert FileMemoryPort(path).load() == OTHER


class TestLimit:
    def test_large_file_is_refused_before_it_is_read(self, tmp_path: Path):
        path = tmp_path / "store.json"
        with open(path, "wb") as file:
            file.truncate(200 * 1024 * 1024)  # a hole: no disk is used
        port = FileMemoryPort(path)
        for use in (port.load, lambda: port.save(STORE)):
            with pytest.raises(LimitExceededError) as raised:
                use()
            assert (raised.value.limit, raised.value.given) == (64 * 1024 * 1024, 200 * 1024 * 1024)
        assert path.stat().st_size == 200 * 1024 * 1024

    def test_limit_is_the_same_both_ways(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        path = tmp_path / "store.json"
        monkeypatch.setattr(ports, "STORE_BYTES_MAX", len(STORE.to_json().encode()))
        port = save(path, STORE)
        before = path.read_bytes()
        with pytest.raises(LimitExceededError):
            port.save(MemoryStore([*STORE.entries, *OTHER.entries]))
        assert is_left_alone(path, before)
        assert port.load() == STORE

    def test_file_that_grows_while_it_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        path = tmp_path / "store.json"
        save(path, STORE)
        size = path.stat().st_size
        monkeypatch.setattr(ports, "STORE_BYTES_MAX", size - 1)
        monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0,) * 10))
        with pytest.raises(LimitExceededError):
            FileMemoryPort(path).load()


class TestConflict:
    def test_second_save_raises_and_the_first_stays(self, tmp_path: Path):
        path = tmp_path / "store.json"
        save(path, MemoryStore())
        first, second = FileMemoryPort(path), FileMemoryPort(path)
        first.load()
        second.load()
        first.save(STORE)
        with pytest.raises(ConflictError) as raised:
            second.save(OTHER)
        assert FileMemoryPort(path).load() == STORE
        expected, actual = raised.value.expected, raised.value.actual
        assert isinstance(expected, str)
        assert isinstance(actual, str)
        assert expected != actual
        assert str(path) in str(raised.value)
        assert pickle.loads(pickle.dumps(raised.value)).actual == actual  # noqa: S301 (our own bytes)

    def test_both_saw_no_file(self, tmp_path: Path):
        path = tmp_path / "store.json"
        first, second = FileMemoryPort(path), FileMemoryPort(path)
        first.load()
        second.load()
        first.save(STORE)
        with pytest.raises(ConflictError) as raised:
            second.save(OTHER)
        assert raised.value.expected == "absent"

    def test_never_loaded(self, tmp_path: Path):
        path = tmp_path / "store.json"
        save(path, STORE)
        with pytest.raises(ConflictError) as raised:
            FileMemoryPort(path).save(OTHER)
        assert raised.value.expected is None

    def test_removed_in_between(self, tmp_path: Path):
        path = tmp_path / "store.json"
        port = save(path, STORE)
        path.unlink()
        with pytest.raises(ConflictError) as raised:
            port.save(OTHER)
        assert raised.value.actual == "absent"
        assert not path.exists()

    def test_any_other_bytes_are_a_change(self, tmp_path: Path):
        path = tmp_path / "store.yaml"
        port = save(path, STORE)
        path.write_bytes(b"# a comment that a save would drop\n" + path.read_bytes())
        with pytest.raises(ConflictError):
            port.save(STORE)

    def test_equal_bytes_are_no_change(self, tmp_path: Path):
        path = tmp_path / "store.json"
        port = save(path, STORE)
        path.write_bytes(path.read_bytes())
        port.save(OTHER)
        assert port.load() == OTHER

    def test_a_failed_load_is_not_a_load(self, tmp_path: Path):
        path = tmp_path / "store.json"
        port = save(path, STORE)
        path.write_bytes(b"{")
        with pytest.raises(UsageError):
            port.load()
        path.write_text(OTHER.to_json(), encoding="utf-8")
        with pytest.raises(ConflictError):
            port.save(STORE)


class TestLock:
    def test_held_lock_is_busy(self, tmp_path: Path):
        path = tmp_path / "store.json"
        save(path, STORE)
        before = path.read_bytes()
        port = FileMemoryPort(path, lock_timeout_s=0)
        port.load()
        with files.locked(tmp_path / "store.json.lock", 0) as is_locked:
            assert is_locked
            with pytest.raises(StorageBusyError) as raised:
                port.save(OTHER)
            assert raised.value.retryable
            assert port.load() == STORE  # reading needs no lock
        assert is_left_alone(path, before)
        port.save(OTHER)

    def test_lock_is_released_after_an_error(self, tmp_path: Path):
        path = tmp_path / "store.json"
        save(path, STORE)
        late = FileMemoryPort(path, lock_timeout_s=0)
        with pytest.raises(ConflictError):
            late.save(OTHER)
        with pytest.raises(ConflictError):
            late.save(OTHER)
        late.load()
        late.save(OTHER)

    def test_waits_until_the_lock_is_free(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        path = tmp_path / "store.json"
        held = files.locked(tmp_path / "store.json.lock", 0)
        assert held.__enter__()
        naps: list[float] = []

        def free_at_the_third(nap_s: float) -> None:
            naps.append(nap_s)
            if len(naps) == 3:
                held.__exit__(None, None, None)

        monkeypatch.setattr(files.time, "sleep", free_at_the_third)
        FileMemoryPort(path).save(STORE)
        assert len(naps) == 3
        assert FileMemoryPort(path).load() == STORE


class TestWriting:
    def test_order(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """File synced, then replaced, then the folder synced; all of it while the lock is held."""
        path = tmp_path / "store.json"
        save(path, STORE)
        done: list[str] = []

        def noting(name: str, real: Callable[..., object]) -> Callable[..., object]:
            def run(*arguments: object) -> object:
                what = name
                if name == "fsync":
                    folder = stat.S_ISDIR(os.fstat(arguments[0]).st_mode)  # pyright: ignore[reportArgumentType]
                    what = "fsync folder" if folder else "fsync file"
                with files.locked(tmp_path / "store.json.lock", 0) as is_free:
                    done.append(f"{what}{' without lock' if is_free else ''}")
                return real(*arguments)

            return run

        port = FileMemoryPort(path)
        port.load()
        monkeypatch.setattr(os, "fsync", noting("fsync", os.fsync))
        monkeypatch.setattr(os, "replace", noting("replace", os.replace))
        port.save(OTHER)
        assert done == ["fsync file", "replace", "fsync folder"]

    def test_new_folders_are_synced_into_their_parents(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        synced: list[Path] = []
        real = files._sync_folder  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(files, "_sync_folder", lambda folder: (synced.append(folder), real(folder)))
        save(tmp_path / "a" / "b" / "store.json", STORE)
        assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]

    @pytest.mark.parametrize(
        ("number", "kind"),
        [
            (errno.ENOSPC, StorageFullError),
            (errno.EDQUOT, StorageFullError),
            (errno.EIO, StorageUnavailableError),
            (errno.EACCES, StorageUnavailableError),
            (errno.EROFS, StorageUnavailableError),
        ],
    )
    @pytest.mark.parametrize("call", ["fsync", "replace", "open"])
    def test_failing_system_call_leaves_the_old_file(
        self, call: str, number: int, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        path = tmp_path / "store.json"
        port = save(path, STORE)
        before = path.read_bytes()

        def fail(*arguments: object) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(os, call, fail)
            with pytest.raises(kind, match="cannot be written") as raised:
                port.save(OTHER)
        assert isinstance(raised.value.__cause__, OSError)
        assert is_left_alone(path, before)
        port.save(OTHER)  # nothing was lost in between, so it is no conflict
        assert port.load() == OTHER

    def test_unreadable_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        path = tmp_path / "store.json"
        save(path, STORE)

        def refuse(*arguments: object) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)
        with pytest.raises(StorageUnavailableError, match="cannot be read: Permission denied"):
            FileMemoryPort(path).load()

    def test_file_left_by_a_killed_writer_is_not_followed_and_not_kept(self, tmp_path: Path):
        path, precious = tmp_path / "store.json", tmp_path / "precious"
        precious.write_text("keep", encoding="utf-8")
        (tmp_path / ".store.json.tmp").symlink_to(precious)
        save(path, STORE)
        assert precious.read_text(encoding="utf-8") == "keep"
        assert is_left_alone(path, STORE.to_json().encode())
