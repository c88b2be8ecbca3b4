"""Hypothesis strategies for scopes, events of each kind and whole histories."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st
from pydantic import JsonValue

from muniment.core.canonical import from_us
from muniment.model.event import (
    TIERS,
    Content,
    Deletion,
    Document,
    Erasure,
    Event,
    Message,
    Note,
    Recall,
    with_place,
)
from muniment.model.json import INTEGER_MAX, INTEGER_MIN
from muniment.model.limits import NAME_CHARS_MAX
from muniment.model.scope import Scope

NASTY_NAMES: Final = (
    *("a", "ab", "a_b", "a%b", "A", "a/b", "a:b", "a b", "a ", "a.", "a*", "_", "%", "None", "null", "0"),
    *(
        "é",
        "e\u0301",
        "ß",
        "ss",
        "Å",
        "\u212b",
        "a\n",
        "'",
        '"',
        "\\",
        "a'--",
        "日本",
        "\U0001f9e0",
        "x" * NAME_CHARS_MAX,
    ),
)
"""Names that something between the caller and the disk may take for each other."""

_TEXT = st.characters(codec="utf-8", exclude_characters="\x00")


def texts(*, min_size: int = 0, max_size: int = 40) -> st.SearchStrategy[str]:
    """Text that every part of the engine takes: no U+0000, no lone surrogates."""
    return st.text(_TEXT, min_size=min_size, max_size=max_size)


def names() -> st.SearchStrategy[str]:
    """Names of tenants and subjects, nasty ones more often than others."""
    return st.sampled_from(NASTY_NAMES) | texts(min_size=1, max_size=NAME_CHARS_MAX)


def scopes() -> st.SearchStrategy[Scope]:
    """Scopes, the unscoped shelf among them."""
    return st.builds(Scope, names(), st.none() | names())


def instants() -> st.SearchStrategy[datetime]:
    """Aware instants in UTC, of any year that there is."""
    return st.datetimes(timezones=st.just(UTC))


def json_values() -> st.SearchStrategy[JsonValue]:
    """JSON of every sort, a few levels deep."""
    plain: st.SearchStrategy[Any] = (
        st.none()
        | st.booleans()
        | st.integers(INTEGER_MIN, INTEGER_MAX)
        | st.floats(allow_nan=False, allow_infinity=False)
        | texts()
    )
    return st.recursive(
        plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts(), inner, max_size=4), max_leaves=8
    )


def json_objects() -> st.SearchStrategy[dict[str, JsonValue]]:
    """What metadata and requests are made of."""
    return st.dictionaries(texts(), json_values(), max_size=4)


def ids() -> st.SearchStrategy[UUID]:
    """Event ids, those with leading zeros among them."""
    return st.uuids() | st.integers(0, 3).map(lambda number: UUID(int=number))


def id_tuples(*, min_size: int = 0) -> st.SearchStrategy[tuple[UUID, ...]]:
    """A few ids, repeats included."""
    return st.lists(ids(), min_size=min_size, max_size=4).map(tuple)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _fields(**own: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The fields of an event; the ids are new, so that two events never share one by accident."""
    sessions = _maybe(st.sampled_from(["s1", "s2"]) | texts())
    common = {
        "id": st.uuids(version=4),
        "timestamp": instants(),
        "session_id": sessions,
        "source": st.just("unknown") | texts(),
        "actor": _maybe(texts()),
    }
    return st.fixed_dictionaries({**common, **own})


def messages() -> st.SearchStrategy[Message]:
    """Messages with any fields that a caller can set."""
    return _fields(
        speaker=texts(min_size=1),
        content=texts(min_size=1),
        retain_until=_maybe(instants()),
        recall_id=_maybe(ids()),
    ).map(lambda fields: Message(**fields))


def documents() -> st.SearchStrategy[Document]:
    """Documents with any fields that a caller can set."""
    return _fields(
        name=texts(min_size=1),
        text=texts(min_size=1),
        media_type=st.just("text/plain") | texts(),
        sha256=_maybe(texts()),
        retain_until=_maybe(instants()),
    ).map(lambda fields: Document(**fields))


def notes() -> st.SearchStrategy[Note]:
    """Notes with any fields, `supersedes` included."""
    return _fields(
        content=texts(),
        tier=st.sampled_from(TIERS),
        labels=st.lists(texts(), max_size=3).map(tuple),
        key=_maybe(st.sampled_from(["plan:current", "profile"]) | texts(min_size=1)),
        summary=_maybe(texts()),
        metadata=json_objects(),
        retain_until=_maybe(instants()),
        supersedes=_maybe(ids()),
        derived_from=id_tuples(),
    ).map(lambda fields: Note(**fields))


def recalls() -> st.SearchStrategy[Recall]:
    """Recalls of any ids."""
    return _fields(query=texts(min_size=1), recalled=id_tuples(), request=json_objects()).map(
        lambda fields: Recall(**fields)
    )


def deletions() -> st.SearchStrategy[Deletion]:
    """Deletions of any ids."""
    return _fields(
        targets=id_tuples(min_size=1),
        reason=texts(min_size=1),
        requested_by=_maybe(texts()),
    ).map(lambda fields: Deletion(**fields))


def erasures() -> st.SearchStrategy[Erasure]:
    """Erasures, of single events and of whole scopes."""
    return _fields(
        targets=id_tuples(),
        whole_scope=st.booleans(),
        count=st.integers(0, 2**32),
        reason=texts(min_size=1),
        requested_by=_maybe(texts()),
    ).map(lambda fields: Erasure(**fields))


EVENT_STRATEGIES: Final[dict[str, Callable[[], st.SearchStrategy[Any]]]] = {
    "message": messages,
    "document": documents,
    "note": notes,
    "recall": recalls,
    "deletion": deletions,
    "erasure": erasures,
}


def events() -> st.SearchStrategy[Event]:
    """Events of all six kinds."""
    return st.one_of([strategy() for strategy in EVENT_STRATEGIES.values()])


def contents() -> st.SearchStrategy[Content]:
    """Messages, documents and notes."""
    return st.one_of(messages(), documents(), notes())


@st.composite
def histories(draw: st.DrawFn, max_size: int = 12) -> list[Event]:
    """A ledger as it may have grown: events with seq and `recorded_at`, whose recalls and deletions name content before
    them and whose notes supersede the last note of their key.
    """
    history: list[Event] = []
    found: list[UUID] = []
    keyed: dict[str, UUID] = {}
    recorded_us = draw(_START_US)
    for event, picks, wait_us in draw(st.lists(_STEP, max_size=max_size)):
        recorded_us += wait_us
        linked = _link(event, [found[pick % len(found)] for pick in picks] if found else [], keyed)
        if linked is None:
            continue
        if isinstance(linked, Message | Document | Note):
            found.append(linked.id)
        history.append(with_place(linked, len(history), from_us(recorded_us)))
    return history


def _link(event: Event, targets: list[UUID], keyed: dict[str, UUID]) -> Event | None:
    """The event with links to what came before it; None where there is nothing that it could name."""
    match event:
        case Recall():
            return event.model_copy(update={"recalled": tuple(targets)})
        case Deletion():
            return event.model_copy(update={"targets": tuple(targets)}) if targets else None
        case Note():
            replaced = keyed.get(event.key) if event.key else None
            if event.key:
                keyed[event.key] = event.id
            return event.model_copy(update={"supersedes": replaced})
        case _:
            return event


_START_US = st.integers(0, 2**50)
_STEP = st.tuples(
    st.one_of(contents(), recalls(), deletions()),
    st.lists(st.integers(0, 100), min_size=1, max_size=3),
    st.integers(0, 10**9),
)
