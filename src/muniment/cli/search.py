"""`muniment search`: what a memory holds about something, best first; the read itself is recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, cast
from uuid import UUID

import typer
from pydantic import JsonValue

from muniment.adapters.tokenizer import tokenize
from muniment.archive import Archive, Memory
from muniment.cli.embedding import EmbedderOption, open_with
from muniment.cli.opening import Place, memory_of, say_empty
from muniment.cli.options import (
    DEFAULT_NAME,
    ArchiveOption,
    JsonOption,
    SubjectOption,
    TenantOption,
    UnscopedOption,
    get_scope,
)
from muniment.cli.output import Output, Part
from muniment.cli.text import count_of, exact_time, name_of, one_line, short_time, title_of
from muniment.cli.times import parse_time
from muniment.core.text import analyse, query_terms
from muniment.errors import UsageError
from muniment.model.event import CONTENT_KINDS, TIERS, Recall, event_to_dict
from muniment.model.hit import Hit
from muniment.model.limits import SEARCH_LIMIT_MAX
from muniment.model.scope import Scope

SOURCE: Final = "cli"

SNIPPET_CHARS: Final = 240
"""Characters of a text that a person is shown: three lines of a window."""

_WORD: Final = re.compile(r"\w+(?:['’.\-]\w+)*")
_SEQ: Final = re.compile("[0-9]{1,10}")


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in plain words.")],
    archive: ArchiveOption = None,
    tenant: TenantOption = None,
    subject: SubjectOption = None,
    unscoped: UnscopedOption = False,
    everywhere: Annotated[bool, typer.Option("--all", help="All scopes of the tenant, for administration.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, max=SEARCH_LIMIT_MAX, metavar="N", help="At most so many.")
    ] = 10,
    mode: Annotated[
        str, typer.Option("--mode", metavar="MODE", help="auto, keyword, vector or hybrid; the last two embed.")
    ] = "auto",
    embedder: EmbedderOption = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", "-k", metavar="KIND", help=f"{', '.join(CONTENT_KINDS)}; repeatable.")
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option("--tier", metavar="TIER", help=f"Of notes: {', '.join(TIERS)}; repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="TEXT", help="Of notes; of several, all.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", metavar="JSON", help="A condition on the metadata of notes.")
    ] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Of this session only.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="That happened then or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="That happened before.")] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="SEQ|TIME", help="What it would have found then; not recorded.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="What each part of the ranking gave to a score.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find what a memory holds about something, best first.

    The read is recorded with exactly what it gave, and the event that records it is named. With --as-of nothing is:
    that is an auditor's look. Plain lines have the fields seq, score, timestamp, kind, id, session, title and text,
    ahead of them tenant and subject with --all, after them the parts of the score with --explain.
    """
    out = Output(as_json=as_json)
    filters: dict[str, Any] = {
        "limit": limit,
        "mode": mode,
        "kinds": kind or None,
        "tiers": tier or None,
        "labels": label or None,
        "where": _parse_condition(where),
        "since": parse_time("--since", since),
        "until": parse_time("--until", until),
        "explain": explain,
        "source": SOURCE,
    }
    if not query:
        raise UsageError("which words? the query is empty")
    printer = _Printer(out, query, explain)
    if everywhere:
        given = {"--subject": subject, "--unscoped": unscoped, "--session": session, "--as-of": as_of}
        _refuse_with_all(given)
        with open_with(archive, embedder) as opened:
            _search_tenant(opened, tenant or DEFAULT_NAME, query, filters, printer)
        return
    scope = get_scope(tenant, subject, unscoped)
    moment = _parse_moment(as_of)
    with open_with(archive, embedder) as opened:
        memory = memory_of(opened, scope)
        if memory.head() is None:
            say_empty(out, opened, Place(memory, scope), "")
            return
        _search_scope(memory, query, {**filters, "session_id": session, "as_of": moment}, printer)


def _search_scope(memory: Memory, query: str, arguments: dict[str, Any], printer: _Printer) -> None:
    before = len(memory)
    hits = memory.search(query, **arguments)
    printer.print(hits)
    if not hits:
        printer.out.note(f"nothing in {name_of(memory.scope)} answers that")
    if arguments["as_of"] is not None:
        printer.out.note("a look at the past: not recorded as a read")
        return
    recall = _find_recall(memory, before - 1, query, tuple(hit.id for hit in hits))
    if recall is None:
        printer.out.note("reads are not recorded in this archive")
    else:
        printer.out.note(f"recorded as event {recall.seq}")


def _find_recall(memory: Memory, after_seq: int, query: str, recalled: tuple[UUID, ...]) -> Recall | None:
    """The record of the read that was just made, among what others may have written meanwhile."""
    for event in memory.events(kind="recall", after_seq=after_seq):
        if isinstance(event, Recall) and (event.query, event.recalled, event.source) == (query, recalled, SOURCE):
            return event
    return None


def _search_tenant(archive: Archive, name: str, query: str, filters: dict[str, Any], printer: _Printer) -> None:
    tenant = archive.tenant(name)
    if next(tenant.scopes(), None) is None:
        printer.out.note(f"nothing was ever stored for tenant {name}")
        return
    found = tenant.search(query, **filters)
    for rank, one in enumerate(found, start=1):
        printer.print_one(rank, one.hit, one.scope)
    if not found:
        printer.out.note(f"nothing of tenant {name} answers that")
    else:
        scopes = count_of(len({one.scope for one in found}), "scope")
        printer.out.note(f"recorded in {scopes}, as one read of each that gave something")


# --- Arguments --------------------------------------------------------------------------------------------------------


def _parse_condition(text: str | None) -> object:
    if text is None:
        return None
    try:
        condition = cast("object", json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--where is not JSON: {error}") from None
    if not isinstance(condition, dict):
        raise UsageError('--where is a JSON object, as {"priority": {"ge": 2}}')
    return cast("object", condition)


def _parse_moment(text: str | None) -> int | datetime | None:
    if text is not None and _SEQ.fullmatch(text):
        return int(text)
    return parse_time("--as-of", text)


def _refuse_with_all(given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value:
            raise UsageError(f"--all searches every scope of the tenant: leave out {option}")


# --- Printing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Printer:
    """Prints hits, the words that the query looks for marked where a person watches."""

    out: Output
    query: str
    explain: bool

    def print(self, hits: Sequence[Hit]) -> None:
        for rank, hit in enumerate(hits, start=1):
            self.print_one(rank, hit, None)

    def print_one(self, rank: int, hit: Hit, scope: Scope | None) -> None:
        if self.out.as_json:
            self.out.json(_to_json(rank, hit, scope))
        elif self.out.watched:
            self._print_watched(rank, hit, scope)
        else:
            self.out.record(*_record(hit, scope), *([_parts(hit)] if self.explain else []))

    def _print_watched(self, rank: int, hit: Hit, scope: Scope | None) -> None:
        where = "" if scope is None else f"{one_line(name_of(scope))}  "
        title = one_line(title_of(hit.event))
        self.out.line(
            (f"{rank:>3}  ", "cyan"),
            where,
            (title, "bold"),
            (f"  {hit.kind} {hit.seq}  {short_time(hit.timestamp)}  {hit.score:.3f}", "dim"),
        )
        self.out.line("     ", *mark(snippet(hit.text, self.query), self.query))
        if self.explain:
            self.out.line(("     " + _parts(hit), "dim"))


def _record(hit: Hit, scope: Scope | None) -> tuple[object, ...]:
    place = () if scope is None else (scope.tenant, scope.subject)
    when = exact_time(hit.timestamp)
    title = title_of(hit.event)
    return (*place, hit.seq, f"{hit.score:.6f}", when, hit.kind, hit.id, hit.session_id, title, hit.text)


def _parts(hit: Hit) -> str:
    return " ".join(f"{name}={value:.6f}" for name, value in hit.parts.items())


def _to_json(rank: int, hit: Hit, scope: Scope | None) -> dict[str, JsonValue]:
    place: dict[str, JsonValue] = {} if scope is None else {"tenant": scope.tenant, "subject": scope.subject}
    return {
        **place,
        "rank": rank,
        "score": hit.score,
        "parts": dict(hit.parts),
        "event": event_to_dict(hit.event),
    }


# --- Marking ----------------------------------------------------------------------------------------------------------


def mark(text: str, query: str) -> list[Part]:
    """The text in pieces, with a style where a word says what the query looks for, inflected or not."""
    pieces: list[Part] = []
    end = 0
    for start, stop in _matches(text, query):
        pieces += [text[end:start], (text[start:stop], "bold yellow")]
        end = stop
    return [piece for piece in [*pieces, text[end:]] if piece]


def snippet(text: str, query: str) -> str:
    """One line of a text: all of it if it is short, else the part from a little before the first word that matches."""
    line = one_line(" ".join(text.split()))
    if len(line) <= SNIPPET_CHARS:
        return line
    first = next((start for start, _ in _matches(line, query)), 0)
    begin = max(0, min(first - SNIPPET_CHARS // 4, len(line) - SNIPPET_CHARS))
    end = begin + SNIPPET_CHARS
    return ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")


def _matches(text: str, query: str) -> Iterator[tuple[int, int]]:
    wanted = frozenset(query_terms(query, tokenize))
    for word in _WORD.finditer(text):
        if not wanted.isdisjoint(analyse(word.group(), tokenize)):
            yield word.span()
