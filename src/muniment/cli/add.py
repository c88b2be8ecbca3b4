"""`muniment add`: one note, message or document from options, or any number of events as JSON lines."""

from __future__ import annotations

import hashlib
import json
import mimetypes
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, cast

import typer

from muniment.archive import Memory
from muniment.cli import exits
from muniment.cli.feed import Feed
from muniment.cli.opening import memory_of, open_or_create
from muniment.cli.options import ArchiveOption, JsonOption, SubjectOption, TenantOption, UnscopedOption, get_scope
from muniment.cli.output import Output
from muniment.cli.text import count_of, name_of
from muniment.cli.times import parse_time
from muniment.core.check import check_event
from muniment.errors import LimitExceededError, NotFoundError, UsageError
from muniment.model.event import TIERS, Content, Document, Message, Note, event_to_dict
from muniment.model.json import EMPTY
from muniment.model.limits import ADD_MANY_CHUNK, TEXT_BYTES_MAX
from muniment.model.scope import Scope

_FROM_STDIN: Final = "-"


def add(
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT", help="The text; or - to read JSON lines from standard input.", show_default=False
        ),
    ] = None,
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    speaker: Annotated[
        str | None, typer.Option("--speaker", metavar="NAME", help="Makes it a message: who said it.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Makes it a document: what it is called.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="PATH", help="Makes it a document: a UTF-8 text file.")
    ] = None,
    media_type: Annotated[
        str | None, typer.Option("--media-type", metavar="TYPE", help="Of a document.  [default: text/plain]")
    ] = None,
    tier: Annotated[
        str | None,
        typer.Option("--tier", metavar="TIER", help=f"Of a note: {', '.join(TIERS)}.  [default: archival]"),
    ] = None,
    label: Annotated[list[str] | None, typer.Option("--label", metavar="TEXT", help="Of a note; repeatable.")] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", help="Of a note: it takes the place of the note under that key."),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option("--expect", metavar="SEQ|none", help="With --key: only if that version stands there."),
    ] = None,
    summary: Annotated[str | None, typer.Option("--summary", metavar="TEXT", help="Of a note.")] = None,
    metadata: Annotated[str | None, typer.Option("--metadata", metavar="JSON", help="Of a note: an object.")] = None,
    if_absent: Annotated[
        bool, typer.Option("--if-absent", help="Of a note: not if one of equal text and tier is there.")
    ] = False,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="TIME", help="When it happened.  [default: now]")
    ] = None,
    retain_until: Annotated[
        str | None, typer.Option("--retain-until", metavar="TIME", help="Until when it may be kept.")
    ] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="The conversation or run.")] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="TEXT", help="[default: cli]")] = None,
    actor: Annotated[str | None, typer.Option("--actor", metavar="NAME", help="Which agent or component.")] = None,
    request_id: Annotated[
        str | None, typer.Option("--request-id", metavar="ID", help="The same call again with it changes nothing.")
    ] = None,
    chunk: Annotated[
        int,
        typer.Option("--chunk", min=1, max=ADD_MANY_CHUNK, metavar="N", help="With -: lines stored at a time."),
    ] = ADD_MANY_CHUNK,
    skip_known: Annotated[
        bool, typer.Option("--skip-known", help="With -: pass over lines whose event is stored already.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="With -: check every line and store nothing.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Store a note, message or document, or many of them.

    A text is a note, with --speaker a message, with --name or --file a document. The archive is begun if need be.

    With - each line of standard input is a JSON object: an event as --json prints it, or its kind and the fields that
    are known, and optionally its tenant and subject. Good lines are stored; each bad line is reported with its number,
    and then the exit code is not 0.
    """
    out = Output(as_json=as_json)
    scope = get_scope(tenant, subject, unscoped)
    given = _given(
        speaker=speaker,
        name=name,
        file=file,
        media_type=media_type,
        tier=tier,
        label=label or None,
        key=key,
        expect=expect,
        summary=summary,
        metadata=metadata,
        if_absent=if_absent or None,
        timestamp=timestamp,
        retain_until=retain_until,
        session=session,
        source=source,
        actor=actor,
        request_id=request_id,
    )
    if text == _FROM_STDIN:
        _refuse_options(given, "belongs to one event and not to JSON lines")
        feed = Feed(out, scope, skip_known=skip_known)
        return _check_lines(out, feed) if check else _store_lines(out, feed, archive, chunk)
    if skip_known or check:
        raise UsageError("--skip-known and --check go with JSON lines: muniment add -")
    addition = _build(text, given)
    with open_or_create(archive, out) as opened:
        stored = addition.store(memory_of(opened, scope), request_id)
    _print_stored(out, scope, stored)
    return exits.OK


# --- One event --------------------------------------------------------------------------------------------------------

_COMMON: Final = ("timestamp", "retain_until", "session", "source", "actor", "request_id")
_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "message": ("speaker",),
    "document": ("name", "file", "media_type"),
    "note": ("tier", "label", "key", "expect", "summary", "metadata", "if_absent"),
}
_FIELDS: Final[Mapping[str, str]] = {"label": "labels", "session": "session_id"}
"""Options that are called otherwise than the field they fill."""
_NO_FIELDS: Final = ("file", "expect", "if_absent", "request_id")
"""Options that fill none."""


@dataclass(frozen=True, slots=True)
class _Addition:
    """An event to store, and how."""

    event: Content
    given: Mapping[str, Any]
    """The fields of it that the caller gave."""
    expected: Mapping[str, Any]
    if_absent: bool

    def store(self, memory: Memory, request_id: str | None) -> Content:
        """The stored copy, or of a note what stood there already."""
        given = {name: value for name, value in self.given.items() if name not in ("key", "content")}
        if isinstance(self.event, Note) and self.event.key is not None:
            return memory.put(self.event.key, self.event.content, request_id=request_id, **given, **self.expected)
        if isinstance(self.event, Note) and self.if_absent:
            return memory.remember(self.event.content, if_absent=True, request_id=request_id, **given)
        (stored,) = memory.add_many([self.event], request_id=request_id)
        return stored


def _given(**options: object) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


def _build(text: str | None, given: Mapping[str, object]) -> _Addition:
    """The event that the options describe.

    Raises: UsageError for options that do not go together; NotFoundError for a file that is not there.
    """
    kind = _kind_of(given)
    foreign = {name: value for name, value in given.items() if name not in (*_COMMON, *_OF_KIND[kind])}
    _refuse_options(foreign, f"does not belong to a {kind}")
    if kind == "note":
        _check_note_options(given)
    fields: dict[str, Any] = {_FIELDS.get(name, name): value for name, value in given.items() if name not in _NO_FIELDS}
    fields.setdefault("source", "cli")
    for name in ("timestamp", "retain_until"):
        if name in fields:
            fields[name] = parse_time(_option(name), fields[name])
    if "metadata" in fields:
        fields["metadata"] = _parse_metadata(fields["metadata"])
    if kind == "document":
        fields = {**_document_fields(text, given), **fields}
        return _addition(Document.model_validate(fields), fields)
    if not text:
        raise UsageError("which text? give one as an argument, or - to read JSON lines")
    fields["content"] = text
    if kind == "message":
        return _addition(Message.model_validate(fields), fields)
    return _addition(Note.model_validate(fields), fields, _expected(given), if_absent="if_absent" in given)


def _addition(
    event: Content, fields: Mapping[str, Any], expected: Mapping[str, Any] = EMPTY, *, if_absent: bool = False
) -> _Addition:
    """The addition, its limits checked before an archive is begun for it."""
    check_event(event)
    return _Addition(event, fields, expected, if_absent)


def _kind_of(given: Mapping[str, object]) -> str:
    if "speaker" in given and ("name" in given or "file" in given):
        raise UsageError("--speaker makes it a message, --name and --file a document: give one")
    if "speaker" in given:
        return "message"
    return "document" if "name" in given or "file" in given else "note"


def _refuse_options(given: Mapping[str, object], why: str) -> None:
    for name in given:
        raise UsageError(f"{_option(name)} {why}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _check_note_options(given: Mapping[str, object]) -> None:
    if "expect" in given and "key" not in given:
        raise UsageError("--expect goes with --key")
    if "if_absent" in given and "key" in given:
        raise UsageError("--if-absent and --key exclude each other: --expect none stores only where no note stands")
    if "timestamp" in given and ("key" in given or "if_absent" in given):
        raise UsageError("--timestamp excludes --key and --if-absent: use JSON lines to backdate a note under a key")


def _expected(given: Mapping[str, object]) -> Mapping[str, Any]:
    expect = given.get("expect")
    if expect is None:
        return {}
    if expect == "none":
        return {"expected_seq": None}
    try:
        return {"expected_seq": int(str(expect))}
    except ValueError:
        raise UsageError(f"--expect {expect!r} is neither a seq nor none") from None


def _parse_metadata(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--metadata is not JSON: {error}") from None


def _document_fields(text: str | None, given: Mapping[str, object]) -> dict[str, object]:
    """The fields that a document has from its text or from its file."""
    file = cast("Path | None", given.get("file"))
    if file is None:
        if text is None:
            raise UsageError("which text? give it as an argument, or --file PATH")
        return {"text": text}
    if text is not None:
        raise UsageError("give a text or --file PATH, not both")
    content = _read_file(file)
    try:
        decoded = content.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text: extract its text first") from None
    guessed = mimetypes.guess_type(file.name)[0] or ""
    return {
        "name": file.name,
        "text": decoded,
        "media_type": guessed if guessed.startswith("text/") else "text/plain",
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _read_file(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(TEXT_BYTES_MAX + 1)
            size = max(len(content), file.stat().st_size)
    except FileNotFoundError:
        raise NotFoundError(f"{file} does not exist") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    if len(content) > TEXT_BYTES_MAX:
        raise LimitExceededError(f"the text of {file}", limit=TEXT_BYTES_MAX, given=size, unit="bytes of UTF-8")
    return content


def _print_stored(out: Output, scope: Scope, stored: Content) -> None:
    if out.as_json:
        out.json(event_to_dict(stored))
    elif out.watched:
        out.line(
            f"{stored.kind} ", (str(stored.seq), "cyan"), f" is stored in {name_of(scope)}  ", (str(stored.id), "dim")
        )
    else:
        out.record(stored.seq, stored.kind, stored.id)


# --- JSON lines -------------------------------------------------------------------------------------------------------


def _store_lines(out: Output, feed: Feed, archive: str | None, chunk: int) -> int:
    stream = _stdin(out)
    with open_or_create(archive, out) as opened, out.progress(typing=stream.isatty()) as progress:
        feed.store(opened, stream, chunk, progress)
    _print_summary(out, feed)
    return feed.exit_code


def _check_lines(out: Output, feed: Feed) -> int:
    """Read every line as if it were to be stored."""
    stream = _stdin(out)
    with out.progress(typing=stream.isatty()) as progress:
        good = sum(1 for _ in feed.read(stream, progress))
    bad = len(feed.refused)
    _say(out, [("good", good), ("refused", bad)], f"{good:,} of {count_of(good + bad, 'line')} can be stored")
    return feed.exit_code


def _print_summary(out: Output, feed: Feed) -> None:
    text = f"stored {feed.num_stored:,} of {count_of(feed.num_lines, 'line')} in {count_of(len(feed.scopes), 'scope')}"
    text += f", {feed.num_known:,} there already" if feed.num_known else ""
    text += f", {len(feed.refused):,} refused" if feed.refused else ""
    _say(out, [("stored", feed.num_stored), ("known", feed.num_known), ("refused", len(feed.refused))], text)


def _say(out: Output, counts: Sequence[tuple[str, int]], text: str) -> None:
    """The result as records, or as a sentence: for a person, or beside the JSON lines."""
    if out.as_json:
        out.note(text)
    elif out.watched:
        out.line(text)
    else:
        for name, number in counts:
            out.record(name, number)


def _stdin(out: Output) -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # closed before this process began
        raise UsageError("standard input is closed: there are no JSON lines to read")
    if sys.stdin.isatty():
        out.note("reading JSON lines; end with Ctrl-D")
    return sys.stdin.buffer
