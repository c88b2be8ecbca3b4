"""Replacing one file as a whole: durable, in one step, one writer at a time."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCK_POLL_S: Final = 0.01
"""How often a held lock is tried again; one save of 10,000 entries holds it for a few hundredths of a second."""

_OPEN_FLAGS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def locked(path: Path, timeout_s: float) -> Generator[bool]:
    """Hold the lock of that file inside the block; the value says whether it was obtained in time.

    The lock belongs to the open file and not to its name: it dies with the process that holds it, however that dies, so
    no lock is ever left behind. That is also why the file is never deleted: a writer that waits on a deleted file and
    one that makes a new file would both be let in.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, 0o666)
    try:
        yield _wait_for_lock(descriptor, timeout_s)
    finally:
        os.close(descriptor)


def replace_file(target: Path, content: bytes) -> None:
    """Make the file hold the content, durably, so that every reader sees the old content or the new one.

    To be called under a lock: the name of the temporary file is fixed, so that one left by a killed process is
    overwritten by the next writer and nothing piles up.
    """
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        _write_synced(temporary, content, _find_mode(target))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def make_folder(folder: Path) -> None:
    """Create the folder and those above it where they are missing, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _write_synced(path: Path, content: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS
    # A file that exists keeps its permissions, and its text is at no moment readable for more users than before.
    descriptor = os.open(path, flags, 0o666 if mode is None else mode & 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if mode is not None and sys.platform != "win32":
            os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _find_mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return  # a folder cannot be opened there, and NTFS keeps the order of its own journal
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not _try_lock(descriptor):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOCK_POLL_S)
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
