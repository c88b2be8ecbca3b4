"""`muniment demo`: a small memory recorded, searched, deleted from, replayed and verified, on a real file."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final

import typer

from muniment.archive import Archive, Memory, open_archive
from muniment.cli import story
from muniment.cli.opening import check_url, memory_of
from muniment.cli.output import Output, Part
from muniment.cli.text import count_of, one_line, size_of, text_of
from muniment.cli.week import Clock, Week, cut
from muniment.errors import UsageError
from muniment.model.event import Content, ErasedEvent, Event, Note
from muniment.model.report import VerifyReport
from muniment.model.scope import Scope
from muniment.model.state import MemoryState

DEFAULT_PATH: Final = "muniment-demo.db"
_ITEM_WIDTH: Final = 36
_FATE_STYLES: Final = {"visible": "green", "replaced": "dim", "-": "dim"}


def demo(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Where the archive goes.")] = DEFAULT_PATH,
) -> None:
    """See what this is: a week of an agent's memory.

    It is recorded, read, deleted from, replayed and verified, in a small archive. That stays, to look around in.
    Nothing is ever overwritten: an archive of an earlier demo gets one more scope, any other file is refused.
    """
    out = Output()
    clock = Clock()
    with open_archive(check_url(path), clock=clock) as archive:
        memory = archive.memory(_find_subject(archive, path), tenant=story.TENANT)
        out.line("One week of a delivery agent's memory, recorded in ", (one_line(path), "bold"))
        Week(out, memory, clock).play()
        _show_past(out, memory)
        report = memory.verify()
        location = Path(archive.location)
    _show_proof(out, memory.scope, report, location)
    _show_next(out, path, memory.scope, location)


# --- The archive ------------------------------------------------------------------------------------------------------


def _find_subject(archive: Archive, path: str) -> str:
    """A subject that is free in this archive, which is new or holds nothing but demos.

    Raises: UsageError for somebody's real archive.
    """
    taken: set[str | None] = set()
    for tenant in archive.tenants():
        for info in tenant.scopes():
            first = next(iter(info.ledger.events()), None)
            if tenant.name != story.TENANT or not _is_demo(first):
                raise UsageError(f"{path} is not an archive of the demo; nothing was written: give another path")
            taken.add(None if info.scope is None else info.scope.subject)
    names = (story.SUBJECT, *(f"{story.SUBJECT}-{number}" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


def _is_demo(first: Event | ErasedEvent | None) -> bool:
    return first is not None and not isinstance(first, ErasedEvent) and first.source == story.SOURCE


# --- The past ---------------------------------------------------------------------------------------------------------


def _show_past(out: Output, memory: Memory) -> None:
    """What became of the notes and of what was deleted, in three states, each replayed from the events."""
    now = memory.replay()
    states = (memory.replay(at=story.TUESDAY), memory.replay(at=story.THURSDAY), now)
    out.line()
    out.line((f"{'REPLAY':<11}", "bold"), ("every past state can be rebuilt from the events", "italic"))
    out.line((f"{'':6}{'':{_ITEM_WIDTH}}{'Tuesday':<11}{'Thursday':<11}now", "dim"))
    for item in sorted((*now.messages, *now.notes), key=_seq_of):
        if isinstance(item, Note) or now.is_deleted(item.id):
            fates = [_fate_of(item, state) for state in states]
            text = f"  {cut(text_of(item), _ITEM_WIDTH - 2):<{_ITEM_WIDTH}}"
            out.line((f"{item.seq:>4}", "cyan"), text, *_columns(fates))


def _columns(fates: Sequence[str]) -> list[Part]:
    *before, last = ((fate, _FATE_STYLES.get(fate, "red")) for fate in fates)
    return [*((f"{fate:<11}", style) for fate, style in before), last]


def _fate_of(item: Content, state: MemoryState) -> str:
    if state.last_seq is None or _seq_of(item) > state.last_seq:
        return "-"
    if state.is_deleted(item.id):
        return f"deleted by {state.deleted[item.id].seq}"
    return "visible" if state.is_visible(item.id) else "replaced"


def _seq_of(item: Content) -> int:
    return -1 if item.seq is None else item.seq


# --- The proof --------------------------------------------------------------------------------------------------------


def _show_proof(out: Output, memory_scope: Scope, report: VerifyReport, location: Path) -> None:
    """The ledger verified, and a copy of it verified after somebody went around the engine."""
    root = "" if report.head is None else report.head.root[:16]
    out.line()
    out.line((f"{'PROVE':<11}", "bold"), ("what is stored is what was written, or it shows", "italic"))
    out.line(("  ok  ", "green"), f"{count_of(report.num_events, 'event')}, root of their hash tree {root}…")
    forged = verify_forged_copy(location, memory_scope)
    was, now = story.SECRET.decode(), story.FORGED.decode()
    out.line(f"      In a copy {was} was changed to {now} behind the engine's back. Verified:")
    out.line(("  bad ", "red"), f"event {forged.bad_seq}: {forged.problem}")


def verify_forged_copy(location: Path, scope: Scope) -> VerifyReport:
    """The report on a copy of the archive in which the secret was changed by plain SQL; the copy is gone afterwards."""
    with TemporaryDirectory(prefix="muniment-demo-") as folder:
        copy = Path(folder) / "forged.db"
        for suffix in ("", "-wal"):
            source = Path(f"{location}{suffix}")
            if source.exists():
                shutil.copyfile(source, f"{copy}{suffix}")
        forge(copy, story.SECRET, story.FORGED)
        with open_archive(copy, create=False) as archive:
            return memory_of(archive, scope).verify()


def forge(path: Path, old: bytes, new: bytes) -> None:
    """Write into the contents of an archive, as anybody can who has the file."""
    # The one command that goes below the engine, because its subject is somebody who does.
    from muniment.adapters.sqlite.connection import connect

    connection = connect(str(path), create=False, busy_timeout_s=1)
    try:
        rows = connection.rows("SELECT place, body FROM contents")
        changed = [(body.replace(old, new), place) for place, body in rows if old in body]
        connection.run_many("UPDATE contents SET body = ? WHERE place = ?", changed)
    finally:
        connection.close()


# --- What next --------------------------------------------------------------------------------------------------------


def _show_next(out: Output, path: str, scope: Scope, location: Path) -> None:
    where = f"-a {shlex.quote(path)}"
    whose = f"{where} -t {scope.tenant} -s {scope.subject}"
    out.line()
    out.line("It is all in ", (one_line(str(location)), "bold"), f" ({size_of(location.stat().st_size)}). Try next:")
    out.line()
    for command in (
        f"muniment log {whose}",
        f"muniment show 7 {whose}",
        f"muniment replay --at {story.THURSDAY:%Y-%m-%d} {whose}",
        f"muniment add 'She is in before nine.' {whose}",
        f"muniment verify {where}",
    ):
        out.line(f"  {command}")
