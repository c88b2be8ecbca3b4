"""`muniment portable`: the portable memory of a file or of a scope, and from the one into the other."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast

import typer
from pydantic import JsonValue

from muniment.cli.opening import memory_of, open_existing, open_or_create
from muniment.cli.options import (
    ArchiveOption,
    JsonOption,
    SubjectOption,
    TenantOption,
    UnscopedOption,
    get_scope,
)
from muniment.cli.output import Column, Output
from muniment.cli.text import block, count_of, name_of
from muniment.core.prompt import build_memory_block
from muniment.errors import NotFoundError, UsageError
from muniment.model.scope import Scope

if TYPE_CHECKING:
    from muniment.portable import MemoryEntry, MemoryStore, ScoredMemory

FileOption = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="A .json or .yaml file, in place of a scope.")
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Take the place of what is there.")]

COLUMNS: Final = (
    Column(name="", width=6, right=True, style="cyan"),
    Column(name="tier", width=8),
    Column(name="tags", width=20, style="dim"),
    Column(name="text", flexible=True),
)


def load(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .json or .yaml file.", show_default=False)],
    to_scope: Annotated[bool, typer.Option("--to-scope", help="Make the notes of a scope be this store.")] = False,
    replace: ReplaceOption = False,
    manage: Annotated[
        bool, typer.Option("--manage", help="With --replace: also notes that no portable memory wrote.")
    ] = False,
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Load the store of a file: print it, or put it into a scope.

    The file is checked whatever becomes of it. With --to-scope only what differs is written, order and repeats are
    kept, and the archive is begun if need be. Plain lines have the fields index, tier, createdAt, tags and text.
    """
    out = Output(as_json=as_json)
    store = _load_file(file)
    if not to_scope:
        if replace or manage:
            raise UsageError("--replace and --manage go with --to-scope")
        _print_entries(out, store)
        return
    scope = get_scope(tenant, subject, unscoped)
    with open_or_create(archive, out) as opened:
        from muniment.portable import ArchiveMemoryPort

        foreign: Literal["manage", "refuse"] = "manage" if manage else "refuse"
        port = ArchiveMemoryPort(memory_of(opened, scope), foreign=foreign)
        there = port.load()
        if there.entries and there != store and not replace:
            raise UsageError(f"{name_of(scope)} holds {_count(there)} already: give --replace to hide what differs")
        port.save(store)
    _say_written(out, store, name_of(scope))


def save(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .json or .yaml file.", show_default=False)],
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Another file, in place of a scope.")
    ] = None,
    replace: ReplaceOption = False,
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Save the store of a scope, or of another file, into a file.

    The visible notes of the scope become entries, in their order. The file is replaced in one step, or stays what it
    was. JSON becomes YAML, or YAML JSON, by the names of the files.
    """
    out = Output(as_json=as_json)
    store = _Source(source, archive, tenant, subject, unscoped).load(out, must_exist=True)
    port = _port(file)
    there = port.load()
    if file.exists() and there != store and not replace:
        raise UsageError(f"{file} holds {_count(there)} already: give --replace to write over it")
    port.save(store)
    _say_written(out, store, str(file))


def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words; none finds every entry.", show_default=False)],
    file: FileOption = None,
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, metavar="N", help="At most so many; 0 is no limit.")
    ] = 0,
    as_text: Annotated[bool, typer.Option("--text", help="The list as the contract gives it to a model.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find entries by the contract's own ranking, best first.

    It is not recorded as a read: `muniment search` is. Plain lines have the fields score, matches, tier, createdAt,
    tags and text.
    """
    from muniment.portable import format_recall_results
    from muniment.portable import recall as find

    out = Output(as_json=as_json)
    found = find(_Source(file, archive, tenant, subject, unscoped).load(out), query, limit)
    if as_text:
        _print_text(out, format_recall_results(found))
    elif out.watched:
        out.table(COLUMNS, (_row(f"{one.score:g}", one.entry) for one in found))
    else:
        _print_found(out, found)
    if not found:
        out.note("no entry holds a word of that")


def prompt(
    file: FileOption = None,
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    safe: Annotated[
        bool, typer.Option("--safe", help="Guarded: no entry can forge a heading, an item or a closing tag.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the block of core entries that stands in a prompt.

    By default to the byte as the contract has it, where a text stands as it is. It is not recorded as a read.
    """
    from muniment.portable import core_memories, format_for_system_prompt

    out = Output(as_json=as_json)
    store = _Source(file, archive, tenant, subject, unscoped).load(out)
    if safe:
        shown = build_memory_block([entry.content for entry in core_memories(store)]).text
        text = shown + "\n" if shown else ""
    else:
        text = format_for_system_prompt(store)
    _print_text(out, text)
    if not text:
        out.note("there is no core entry")


# --- Where a store is -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """A file if one is named, else the scope that the options name."""

    file: Path | None
    archive: str | None
    tenant: str | None
    subject: str | None
    unscoped: bool

    def load(self, out: Output, *, must_exist: bool = False) -> MemoryStore:
        """Its store; an empty scope is said, or with `must_exist` a NotFoundError where nothing was ever stored."""
        if self.file is not None:
            if self.tenant is not None or self.subject is not None or self.unscoped:
                raise UsageError("a file has no scope: leave out --tenant, --subject and --unscoped")
            return _load_file(self.file)
        scope = get_scope(self.tenant, self.subject, self.unscoped)
        return self._load_scope(out, scope, must_exist)

    def _load_scope(self, out: Output, scope: Scope, must_exist: bool) -> MemoryStore:
        from muniment.portable import ArchiveMemoryPort

        with open_existing(self.archive) as opened:
            memory = memory_of(opened, scope)
            if must_exist and memory.head() is None:
                raise NotFoundError(f"nothing was ever stored in {name_of(scope)}")
            store = ArchiveMemoryPort(memory).load()
        if not store.entries:
            out.note(f"no note is visible in {name_of(scope)}")
        return store


def _load_file(file: Path) -> MemoryStore:
    """The store of a file that is there: a port takes one that is not for an empty one.

    Raises: NotFoundError; else as `FileMemoryPort.load`.
    """
    port = _port(file)
    if not file.exists():
        raise NotFoundError(f"{file} does not exist")
    return port.load()


def _port(file: Path) -> _Port:
    from muniment.portable import FileMemoryPort

    return FileMemoryPort(file)


if TYPE_CHECKING:
    from muniment.portable import FileMemoryPort as _Port


# --- Printing ---------------------------------------------------------------------------------------------------------


def _print_entries(out: Output, store: MemoryStore) -> None:
    if out.watched:
        out.table(COLUMNS, (_row(str(index), entry) for index, entry in enumerate(store.entries)))
        return
    for index, entry in enumerate(store.entries):
        if out.as_json:
            out.json(cast("JsonValue", entry.save()))
        else:
            out.record(index, *_record(entry))


def _print_found(out: Output, found: Iterable[ScoredMemory]) -> None:
    for one in found:
        if out.as_json:
            entry = cast("JsonValue", one.entry.save())
            out.json({"score": one.score, "keywordMatches": one.keyword_matches, "entry": entry})
        else:
            out.record(f"{one.score:g}", one.keyword_matches, *_record(one.entry))


def _print_text(out: Output, text: str) -> None:
    """A text for a model: exact in a pipe, with no control character in a terminal."""
    if out.as_json:
        out.json({"text": text})
    else:
        sys.stdout.write(block(text) if out.watched else text)


def _say_written(out: Output, store: MemoryStore, place: str) -> None:
    if out.as_json:
        out.json({"entries": len(store), "place": place})
    elif out.watched:
        out.line(f"saved {_count(store)} in {place}")
    else:
        out.record("saved", len(store), place)


def _record(entry: MemoryEntry) -> tuple[object, ...]:
    return entry.category.value, entry.created_at, ", ".join(entry.tags or ()), entry.content


def _row(first: str, entry: MemoryEntry) -> tuple[str, ...]:
    return first, entry.category.value, ", ".join(entry.tags or ()), entry.content


def _count(store: MemoryStore) -> str:
    return count_of(len(store), "entry", "entries")
