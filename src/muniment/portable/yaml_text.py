"""YAML text to plain values and back, read event by event; needs the extra `yaml`.

Built on the parser's events and not on PyYAML's loader, for three reasons. The loader turns an unquoted time into a
date, drops the first of two equal keys in silence, and lets a short file with aliases grow without bound. The events of
the C parser are also four times as fast to read: 10,000 entries in 0.15 s instead of 0.65 s.

What is accepted is the JSON-shaped part of YAML: mappings, lists and scalars; no aliases, merge keys or foreign tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, cast

import yaml
from yaml.constructor import SafeConstructor
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from muniment.errors import UsageError
from muniment.portable.json_text import Repeat, build_mapping, refuse_repeats

_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_DEPTH_MAX: Final = 64
"""Nested collections; a store needs four, unknown keys may need more, and Python's stack has an end."""

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value"})
"""A time and a lone `=` are text here; the contract's only other plain value is null."""

_RAW_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What a JSON string may hold as it is and a YAML double-quoted scalar may not, or would read as a line break."""


def parse(text: str) -> object:
    """The value of the one document of a YAML text.

    Raises: UsageError whose text starts with `store:`, or with the place of a key that is given twice.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise UsageError(f"store: the YAML must be text, not {type(text).__name__}")
    repeats: list[Repeat] = []
    try:
        value = _Reader(text, repeats).read_document()
    except yaml.YAMLError as error:
        raise UsageError(f"store: not YAML: {_first_line(error)}") from None
    except UnicodeEncodeError:
        raise UsageError("store: not YAML: holds a lone surrogate, which is not text") from None
    refuse_repeats(value, repeats)
    return value


def render(saved: Mapping[str, object]) -> str:
    """The YAML text of a saved store.

    Every text but the tier is double-quoted, so that no reader of any YAML version takes one for a date, a boolean or a
    number, and nothing is folded.
    """
    entries = cast("Sequence[Mapping[str, object]]", saved["entries"])
    if not entries:
        return "entries: []\n"
    return "entries:\n" + "".join([_render_entry(entry) for entry in entries])


def _render_entry(entry: Mapping[str, object]) -> str:
    lines = [f"- content: {_quote(cast('str', entry['content']))}", f"  category: {entry['category']}"]
    if "createdAt" in entry:
        lines.append(f"  createdAt: {_quote(cast('str', entry['createdAt']))}")
    if "tags" in entry:
        lines.append(f"  tags: [{', '.join(map(_quote, cast('Sequence[str]', entry['tags'])))}]")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    # A JSON string is a YAML double-quoted scalar, but for the characters escaped here.
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isascii() and "\x7f" not in quoted else _RAW_IN_JSON.sub(_escape, quoted)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


class _Events(Protocol):
    """What is used of PyYAML's loaders, the one on the C parser or the one in Python."""

    def get_event(self) -> Event: ...
    def resolve(self, kind: type[yaml.ScalarNode], value: str, implicit: tuple[bool, bool]) -> str: ...


class _Reader:
    """Builds plain values from the events of one YAML text."""

    def __init__(self, text: str, repeats: list[Repeat]) -> None:
        self._events = cast("_Events", _Loader(text))
        self._constructor = SafeConstructor()
        self._repeats = repeats

    def read_document(self) -> object:
        self._next()  # the start of the stream
        event = self._next()
        if isinstance(event, StreamEndEvent):
            return None
        if not isinstance(event, DocumentStartEvent):
            raise _refused(event, "a document is expected")
        value = self._read_value(self._next(), 0)
        if not isinstance(self._next(), DocumentEndEvent):
            raise _refused(event, "the document does not end")
        if not isinstance(after := self._next(), StreamEndEvent):
            raise _refused(after, "a second document")
        return value

    def _next(self) -> Event:
        return self._events.get_event()

    def _read_value(self, event: Event, depth: int) -> object:
        if isinstance(event, ScalarEvent):
            return self._read_scalar(event)
        if depth == _DEPTH_MAX:
            raise _refused(event, f"collections nested more than {_DEPTH_MAX} deep")
        if isinstance(event, MappingStartEvent):
            _refuse_tag(event, f"{_TAG}map")
            return self._read_mapping(depth + 1)
        if isinstance(event, SequenceStartEvent):
            _refuse_tag(event, f"{_TAG}seq")
            return self._read_sequence(depth + 1)
        if isinstance(event, AliasEvent):
            raise _refused(event, "an alias; write the value out")
        raise _refused(event, "a value is expected")

    def _read_mapping(self, depth: int) -> object:
        pairs: list[tuple[object, object]] = []
        while not isinstance(event := self._next(), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise _refused(event, "a key that is not a scalar")
            key = self._read_scalar(event)
            pairs.append((key, self._read_value(self._next(), depth)))
        return build_mapping(pairs, self._repeats)

    def _read_sequence(self, depth: int) -> object:
        values: list[object] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            values.append(self._read_value(event, depth))
        return values

    def _read_scalar(self, event: ScalarEvent) -> object:
        implicit = cast("tuple[bool, bool]", event.implicit)
        text = cast("str", event.value)
        if event.tag == "!" or (event.tag is None and not implicit[0]):
            return text
        tag = event.tag or self._events.resolve(yaml.ScalarNode, text, implicit)
        if tag in _TEXT_TAGS:
            return text
        if tag == f"{_TAG}merge":
            raise _refused(event, "a merge key; write the value out")
        read = SafeConstructor.yaml_constructors.get(tag)
        if tag not in (f"{_TAG}null", f"{_TAG}bool", f"{_TAG}int", f"{_TAG}float") or read is None:
            raise _refused(event, f"the tag {tag}")
        try:
            return read(self._constructor, yaml.ScalarNode(tag, text))
        except (ValueError, LookupError):
            raise _refused(event, f"a value that is not what its tag {tag} says") from None


def _refuse_tag(event: MappingStartEvent | SequenceStartEvent, usual: str) -> None:
    if event.tag is not None and event.tag not in (usual, "!"):
        raise _refused(event, f"the tag {event.tag}")


def _refused(event: Event, what: str) -> UsageError:
    mark = event.start_mark
    return UsageError(f"store: not accepted YAML at line {mark.line + 1}, column {mark.column + 1}: {what}")


def _first_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} at line {mark.line + 1}, column {mark.column + 1}"
    return str(error).split("\n", 1)[0]
