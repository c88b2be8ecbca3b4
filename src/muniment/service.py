"""The service contract: memories that agents add, find by word, by vector or both, list by use, replace and delete.

A memory is a live note of one tenant, whichever contract wrote it; its scope is the note's subject, its `ext_id` the
note's key. What a read returns is recorded with it, and those records are what its use is counted from.

`SqliteMemory` keeps memories in a file of its own, `ServiceMemory` shows a tenant of an archive that is already open.
`muniment.testing.service` proves either.

Laws, by their numbers in the contract: S1 to S5 `add`, `update`, `upsert` and `delete`; S6 to S9 `search` and
`hybrid_search`; S10 `list_all`; S11 `get`; S12 `_hand_out`; S13 `render_index`; S14 to S16 the embedder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import Enum, StrEnum
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, cast, runtime_checkable
from uuid import UUID

import numpy as np
from pydantic import JsonValue

from muniment.adapters.embed import CallableEmbedder
from muniment.archive import Archive, open_archive
from muniment.archive.arguments import build_event, find_id, parse_text, parse_texts
from muniment.archive.engine import NoLedgerError
from muniment.archive.eraser import Destroyed, Eraser, head_of
from muniment.archive.reader import Reader
from muniment.archive.search import Answer, Searcher, SearchRequest, parse_request
from muniment.archive.tenant import read_scope_rows
from muniment.archive.tenant_search import TenantSearcher
from muniment.archive.writer import Writer
from muniment.core.canonical import KIND_NUMBERS, encode_content, from_us, to_us
from muniment.core.check import check_count
from muniment.core.project import Hashes, Known, draft
from muniment.core.ranking import PLAIN, Found, Ranking
from muniment.errors import (
    ClosedError,
    EmbeddingDimensionError,
    NotFoundError,
    StorageUnavailableError,
    UsageError,
)
from muniment.model.event import Deletion, Note, Recall
from muniment.model.limits import PAGE_MAX, TARGETS_MAX
from muniment.model.receipt import Receipt
from muniment.model.rows import Head, ItemFilter, ItemRow, KeepVectors, StoredEvent, Use, VectorRow
from muniment.model.scope import Scope, check_name
from muniment.ports.embedder import Embedder
from muniment.ports.storage import Snapshot, Transaction

__all__ = [
    "ANY",
    "UNSCOPED",
    "AnyScope",
    "EmbeddingFn",
    "MemoryObject",
    "MemoryService",
    "SearchMode",
    "ServiceMemory",
    "SqliteMemory",
    "UnscopedType",
]

EmbeddingFn: TypeAlias = Callable[[list[str]], list[list[float]]]
"""One vector per text, all of one length."""

LIST_LIMIT_MAX: Final = 10_000
"""Memories of one list or index that is not asked for whole."""

RRF_K_MAX: Final = 2**31 - 1

_DEFAULT_TENANT: Final = "default"
_NOTE: Final = KIND_NUMBERS["note"]
_INDEX_TEXT_CHARS: Final = 80
_FLOAT_MIN, _FLOAT_MAX = 1e-30, 1e30
"""Well inside what 32 bits hold."""
_SECONDS_MAX: Final = 253_402_300_799
"""The last second of the year 9999."""


class SearchMode(StrEnum):
    """How a search finds: by words, by vectors, by both, or by whatever the service has."""

    KEYWORD_ONLY = "keyword_only"
    VECTOR_ONLY = "vector_only"
    HYBRID = "hybrid"
    AUTO = "auto"


class AnyScope(Enum):
    """Whatever the scope."""

    ANY = "any"


class UnscopedType(Enum):
    """Exactly the memories without a scope."""

    UNSCOPED = "unscoped"


ANY: Final = AnyScope.ANY
UNSCOPED: Final = UnscopedType.UNSCOPED


# --- Memories ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryObject:
    """One memory. What a service returns is a copy: changing it changes nothing that is stored."""

    id: str = ""
    """`""` until the service assigns it, then another one for every row."""
    ext_id: str | None = None
    """The caller's stable id, at most one row per scope."""
    content: str
    summary: str | None = None
    scope: str | None = None
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    categories: list[str] = field(default_factory=list[str])
    created_at: float = 0.0
    """Unix seconds, as all times here: when it was first made."""
    updated_at: float = 0.0
    """When this row was written."""
    last_used_at: float | None = None
    usage_count: int = 0
    source: str = "manual"

    def to_dict(self) -> dict[str, JsonValue]:
        """All 12 fields as JSON-ready values."""
        return {one.name: deepcopy(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """The memory that `to_dict` wrote; what is missing has its default.

        Raises: UsageError for a missing content, an unknown field, and a value of another type.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"a memory is a JSON object, not {type(data).__name__}")
        unknown = [name for name in data if name not in _FIELD_READERS]
        if unknown:
            raise UsageError(f"{unknown[0]!r} is not a field of a memory: {', '.join(_FIELD_READERS)}")
        if "content" not in data:
            raise UsageError("a memory without content is none")
        values: dict[str, Any] = {name: _FIELD_READERS[name](name, value) for name, value in data.items()}
        return cls(**values)


def _read_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, not {type(value).__name__}")
    return value


def _read_optional_text(name: str, value: object) -> str | None:
    return None if value is None else _read_text(name, value)


def _read_texts(name: str, value: object) -> list[str]:
    if not isinstance(value, list | tuple):
        raise UsageError(f"{name} must be a list of texts, not {type(value).__name__}")
    return [_read_text(name, one) for one in cast("Sequence[object]", value)]


def _read_object(name: str, value: object) -> dict[str, JsonValue]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} must be a JSON object, not {type(value).__name__}")
    return deepcopy(dict(cast("Mapping[str, JsonValue]", value)))


def _read_number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{name} must be a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise UsageError(f"{name} is too large a number") from None


def _read_optional_number(name: str, value: object) -> float | None:
    return None if value is None else _read_number(name, value)


def _read_count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"{name} must be a whole number, 0 or more, not {value!r}")
    return value


_FIELD_READERS: Final[Mapping[str, Callable[[str, object], object]]] = {
    "id": _read_text,
    "ext_id": _read_optional_text,
    "content": _read_text,
    "summary": _read_optional_text,
    "scope": _read_optional_text,
    "metadata": _read_object,
    "categories": _read_texts,
    "created_at": _read_number,
    "updated_at": _read_number,
    "last_used_at": _read_optional_number,
    "usage_count": _read_count,
    "source": _read_text,
}


# --- The contract -----------------------------------------------------------------------------------------------------


@runtime_checkable
class MemoryService(Protocol):
    """Memories of one tenant, in scopes that are told apart by equality and by nothing else.

    To `search`, `hybrid_search`, `list_all` and `render_index`, `scope=None` means all of them and `UNSCOPED` the
    memories without one; to `get` and `delete`, None means the memories without one and `ANY` all of them.

    Every method raises UsageError for an argument that cannot be (LimitExceededError for one that is too large),
    ClosedError after `close`, and the errors of the storage as they are.
    """

    def add(
        self,
        content: str,
        *,
        summary: str | None = None,
        scope: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        categories: Sequence[str] = (),
        source: str = "manual",
    ) -> MemoryObject:
        """A new memory, stored; the same text again is another one (S1).

        Raises: ProviderError, with nothing stored, when the embedder fails; EmbeddingDimensionError.
        """
        ...

    def search(
        self,
        query: str,
        *,
        mode: SearchMode | str = "auto",
        scope: str | UnscopedType | None = None,
        limit: int = 5,
    ) -> list[MemoryObject]:
        """The memories that answer the query best, best first, counted as used (S6 to S9, S12).

        Raises: EmbeddingUnavailableError when the mode asks for vectors and there are none; ProviderError when the
                embedder fails; EmbeddingDimensionError.
        """
        ...

    def hybrid_search(
        self,
        query: str,
        query_vec: Sequence[float],
        *,
        scope: str | UnscopedType | None = None,
        limit: int = 5,
        weight_fts: float = 1.0,
        weight_vec: float = 1.0,
        rrf_k: int = 60,
    ) -> list[MemoryObject]:
        """As `search`, by the words of the query and a vector that the caller made, merged by rank (S9).

        Raises: EmbeddingDimensionError for a vector of another length than the memories'.
        """
        ...

    def get(self, ext_id: str, *, scope: str | AnyScope | None = ANY) -> MemoryObject | None:
        """The memory with that stable id, or else with that id; nothing is counted (S11).

        Raises: UsageError when several scopes have that stable id.
        """
        ...

    def update(self, obj: MemoryObject) -> MemoryObject:
        """The object as a new memory that names the old one in `metadata["revises"]`; no stored one changes (S2).

        Raises: as `add`.
        """
        ...

    def upsert(self, obj: MemoryObject) -> MemoryObject:
        """The object in place of the memory with its scope and `ext_id`, whose counters and age it keeps (S3).

        Raises: UsageError without an `ext_id`; else as `add`.
        """
        ...

    def delete(
        self,
        id: str,  # noqa: A002  # the contract's name
        *,
        scope: str | AnyScope | None = ANY,
        reason: str = "deleted",
        erase: bool = False,
    ) -> Receipt:
        """What was done to the one memory that is addressed as by `get`: hidden, or with `erase` destroyed (S4).

        Raises: NotFoundError where there is none; UsageError as `get`.
        """
        ...

    def list_all(self, *, scope: str | UnscopedType | None = None, limit: int | None = 50) -> list[MemoryObject]:
        """The memories used last, then most, then made first, counted as used (S10, S12)."""
        ...

    def render_index(self, *, max_entries: int | None = 50, scope: str | UnscopedType | None = None) -> str:
        """One line per memory in the order of `list_all`; nothing is counted (S13)."""
        ...

    def close(self) -> None:
        """Close it; twice is fine. Every later call is a ClosedError."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


# --- On the engine ----------------------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """What a read found, before it is handed out."""

    order: Sequence[tuple[Scope, int]]
    """The scope and seq of each note, in the order in which they are returned."""
    answers: Mapping[Scope, Answer]
    """What each scope contributes, in rising number of the scopes."""


class _Listed(NamedTuple):
    """A live note in the order of S10."""

    use: tuple[float, int]
    recorded_us: int
    """Between scopes, what was recorded first stands first, as it does inside one."""
    number: int
    """Of the scope, in the order in which they began."""
    seq: int
    scope: Scope
    ledger_id: bytes


class ServiceMemory(MemoryService):
    """The memories of one tenant of an opened archive, with that archive's embedder. Safe from many threads."""

    def __init__(self, archive: Archive, tenant: str) -> None:
        if not isinstance(archive, Archive):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"an opened archive is needed, not {type(archive).__name__}")
        self._tenant = check_name("tenant", tenant)
        self._archive = archive
        self._engine = archive._engine  # pyright: ignore[reportPrivateUsage]
        self._closed = False

    @property
    def archive(self) -> Archive:
        """The archive that the memories are in."""
        return self._archive

    @property
    def tenant(self) -> str:
        return self._tenant

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._tenant!r} of {self._archive.location}>"

    # --- Writing ------------------------------------------------------------------------------------------------------

    def add(
        self,
        content: str,
        *,
        summary: str | None = None,
        scope: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        categories: Sequence[str] = (),
        source: str = "manual",
    ) -> MemoryObject:
        self._check_open()
        values = _note_values(content, summary, {} if metadata is None else metadata, categories, source)
        return self._store(self._scope_of(scope), values)

    def update(self, obj: MemoryObject) -> MemoryObject:
        self._check_open()
        values, created_us = _values_of(obj)
        if obj.id:
            values["metadata"] = {**values["metadata"], "revises": obj.id}
        return self._store(self._scope_of(obj.scope), values, created_us=created_us)

    def upsert(self, obj: MemoryObject) -> MemoryObject:
        self._check_open()
        values, created_us = _values_of(obj)
        if obj.ext_id is None:
            raise UsageError("upsert needs an ext_id, the stable id that the memory is replaced under")
        return self._store(self._scope_of(obj.scope), {**values, "key": obj.ext_id}, created_us=created_us)

    def _store(self, scope: Scope, values: Mapping[str, Any], *, created_us: int | None = None) -> MemoryObject:
        """The memory of a note that is stored with these values, in place of the live note of its key.

        `created_us` is when it was first made, for a note that takes nobody's place.
        """
        engine = self._engine
        note = build_event(Note, id=engine.new_id(), timestamp=from_us(engine.clock()), **values)
        drafted = draft(note, engine.tokenizer)  # and refused, if it is over a limit, before the embedder is asked
        embedded = engine.vectors.embed_items([note.content])
        with engine.storage.transaction(scope, engine.new_ledger()) as tx:
            writer = Writer(engine, tx)
            # The time of the recording, so that a new memory is made when it is written.
            now_us = max(engine.clock(), tx.head.recorded_us)
            live = None if note.key is None else writer.find_live(note.key)
            first_us = now_us if created_us is None or live is not None else created_us
            kept = None if live is None else live[0].retain_until
            note = note.model_copy(update={"timestamp": from_us(first_us), "retain_until": kept})
            drafted = replace(drafted, event=note, body=encode_content(note))
            (stored,) = writer.append([drafted], now_us=now_us)
            seq = tx.head.next_seq - 1
            if embedded is not None:
                model, (codes,) = embedded
                tx.apply([KeepVectors([VectorRow(seq, model.model_no, codes)])])
            return _objects_of(tx, scope, {seq: cast("Note", stored)})[seq]

    def delete(
        self,
        id: str,  # noqa: A002  # the contract's name
        *,
        scope: str | AnyScope | None = ANY,
        reason: str = "deleted",
        erase: bool = False,
    ) -> Receipt:
        self._check_open()
        if not parse_text("reason", reason):
            raise UsageError("a deletion needs a reason of at least 1 character")
        found = self._find(id, scope)
        if found is None:
            raise NotFoundError(f"there is no memory {id!r}")
        return self._destroy(found[0], id, reason) if erase else self._hide(found[0], id, reason)

    def _hide(self, scope: Scope, address: str, reason: str) -> Receipt:
        """Put a tombstone on the memory that the address means now."""
        engine = self._engine
        with engine.storage.transaction(scope, engine.new_ledger()) as tx:
            before = tx.head
            note = _get_live(tx, engine.hashes_of(before), address)
            now = from_us(engine.clock())
            deletion = build_event(
                Deletion, id=engine.new_id(), timestamp=now, targets=(note.id,), reason=reason, source="service.delete"
            )
            Writer(engine, tx).append([draft(deletion, engine.tokenizer)])
            return _receipt_of(engine.new_id(), note, before, tx.head, reason, now)

    def _destroy(self, scope: Scope, address: str, reason: str) -> Receipt:
        """Destroy the memory that the address means now, with every version that ever held its `ext_id`."""

        def destroy(eraser: Eraser) -> Destroyed:
            view = eraser.reader.view
            note = _get_live(view, self._engine.hashes_of(view.head), address)
            rows = eraser.choose_targets([note.id], derived=False)
            return eraser.erase_events(rows, action="forget", reason=reason, requested_by=None)

        memory = self._archive.memory(scope.subject, tenant=scope.tenant)
        receipt = memory._destroy(destroy, "now")  # pyright: ignore[reportPrivateUsage]
        if receipt is None:
            raise NotFoundError(f"there is no memory {address!r}")
        return receipt

    # --- Reading ------------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        mode: SearchMode | str = "auto",
        scope: str | UnscopedType | None = None,
        limit: int = 5,
    ) -> list[MemoryObject]:
        self._check_open()
        request = _build_request(query, mode=_ENGINE_MODES[_parse_mode(mode)], limit=limit)
        return self._answer(request, self._find_scope(scope), "search", {})

    def hybrid_search(
        self,
        query: str,
        query_vec: Sequence[float],
        *,
        scope: str | UnscopedType | None = None,
        limit: int = 5,
        weight_fts: float = 1.0,
        weight_vec: float = 1.0,
        rrf_k: int = 60,
    ) -> list[MemoryObject]:
        self._check_open()
        weights = (_read_number("weight_fts", weight_fts), _read_number("weight_vec", weight_vec))
        ranking = replace(PLAIN, weights=weights, damping=_read_count("rrf_k", rrf_k))
        if rrf_k > RRF_K_MAX:
            raise UsageError(f"rrf_k must be at most {RRF_K_MAX}: beyond it all ranks count alike")
        vector = self._parse_vector(query_vec)
        request = _build_request(query, mode="hybrid", limit=limit, ranking=ranking, vector=vector)
        extra: dict[str, JsonValue] = {"weight_fts": weights[0], "weight_vec": weights[1], "rrf_k": rrf_k}
        return self._answer(request, self._find_scope(scope), "hybrid_search", extra)

    def _parse_vector(self, values: Sequence[float]) -> list[float]:
        try:
            vector = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise UsageError("query_vec must be a sequence of numbers") from None
        if vector.ndim != 1 or not len(vector) or not np.isfinite(vector).all():
            raise UsageError("query_vec must be a sequence of finite numbers, at least one")
        expected = self._vector_length()
        if expected is not None and len(vector) != expected:
            raise EmbeddingDimensionError(expected=expected, given=len(vector))
        largest = float(np.abs(vector).max())
        if not _FLOAT_MIN < largest < _FLOAT_MAX and largest:
            vector = vector / largest  # only the direction counts, and this one would leave the range of stored numbers
        return cast("list[float]", vector.tolist())

    def _vector_length(self) -> int | None:
        """Numbers of a vector here, as far as nothing stored says so."""
        vectors = self._engine.vectors
        return None if vectors.embedder is None or vectors.find_current() is not None else vectors.embedder.dimension

    def _answer(
        self, request: SearchRequest, scope: Scope | None, call: str, extra: Mapping[str, JsonValue]
    ) -> list[MemoryObject]:
        """What the request finds in one scope or in all, handed out."""
        if scope is None:
            hits, answers = TenantSearcher(self._engine, self._tenant).search(request)
            reading = _Reading([(one.scope, one.hit.seq) for one in hits], answers)
        else:
            answer = Searcher(self._engine).search(scope, request)
            reading = _Reading([(scope, hit.seq) for hit in answer.hits], {scope: answer})
        if not request.query and not reading.order:
            return []  # a Recall has a query
        how = {**request.to_record(-1), "call": call, **extra}
        return self._hand_out(reading, scope, query=request.query or "*", request=how, source=f"service.{call}")

    def get(self, ext_id: str, *, scope: str | AnyScope | None = ANY) -> MemoryObject | None:
        self._check_open()
        found = self._find(ext_id, scope)
        return None if found is None else found[1]

    def _find(self, address: str, scope: str | AnyScope | None) -> tuple[Scope, MemoryObject] | None:
        """The one live note that the address means, with its scope."""
        parse_text("id", address)
        only = self._find_scope(UNSCOPED if scope is None else scope)
        by_key: list[tuple[Scope, MemoryObject]] = []
        by_id: list[tuple[Scope, MemoryObject]] = []
        for one in self._scopes(only):
            with self._engine.storage.snapshot(one) as view:
                note = None if view is None else _find_live(view, self._engine.hashes_of(view.head), address)
                if view is None or note is None:
                    continue
                seq = _seq_of(note)
                (by_key if note.key == address else by_id).append((one, _objects_of(view, one, {seq: note})[seq]))
        found = by_key or by_id
        if len(found) > 1:
            names = ", ".join("None" if one.subject is None else repr(one.subject) for one, _ in found[:5])
            raise UsageError(f"{len(found)} scopes have a memory {address!r} ({names} …): say which with scope=")
        return found[0] if found else None

    def list_all(self, *, scope: str | UnscopedType | None = None, limit: int | None = 50) -> list[MemoryObject]:
        self._check_open()
        _check_list_limit("limit", limit)
        only = self._find_scope(scope)
        reading = self._read(self._list(only, limit))
        how: dict[str, JsonValue] = {"call": "list_all", "limit": limit}
        return self._hand_out(reading, only, query="*", request=how, source="service.list_all")

    def render_index(self, *, max_entries: int | None = 50, scope: str | UnscopedType | None = None) -> str:
        self._check_open()
        _check_list_limit("max_entries", max_entries)
        only = self._find_scope(scope)
        reading = self._read(self._list(only, max_entries))
        notes = {
            (where, hit.seq): cast("Note", hit.event)
            for where, answer in reading.answers.items()
            for hit in answer.hits
        }
        return "".join(_index_line(place[0], notes[place]) for place in reading.order if place in notes)

    def _list(self, only: Scope | None, limit: int | None) -> list[_Listed]:
        """The live notes in the order of S10, up to `limit` of them."""
        listed: list[_Listed] = []
        for number, scope in enumerate(self._scopes(only)):
            with self._engine.storage.snapshot(scope) as view:
                if view is not None:
                    listed += _list_scope(view, scope, number, limit, alone=only is not None)
            if limit is not None and len(listed) > 2 * limit:
                listed = sorted(listed)[:limit]
        return sorted(listed)[:limit]

    def _read(self, listed: Sequence[_Listed]) -> _Reading:
        """The notes of a list; what was erased meanwhile is left out."""
        searcher = Searcher(self._engine)
        answers: dict[Scope, Answer] = {}
        by_scope = sorted(listed, key=lambda one: one.number)
        for (scope, ledger_id), places in groupby(by_scope, key=lambda one: (one.scope, one.ledger_id)):
            # By the ledger's id: the seqs mean nothing in a ledger that took its place.
            with self._engine.storage.snapshot(ledger_id) as view:
                if view is not None:
                    seqs = [one.seq for one in places]
                    alive = view.find_items(seqs)
                    answers[scope] = searcher.answer_of(view, [Found(seq, 0.0, {}) for seq in seqs if seq in alive])
        return _Reading([(one.scope, one.seq) for one in listed], answers)

    # --- Handing out --------------------------------------------------------------------------------------------------

    def _hand_out(
        self, reading: _Reading, only: Scope | None, *, query: str, request: Mapping[str, JsonValue], source: str
    ) -> list[MemoryObject]:
        """The memories of a reading as they are after it was recorded: one Recall per scope, all of one time (S12).

        Of several scopes, only the unscoped ledger keeps what was asked: a query about one person has no place in the
        memory of another, and would outlive an erasure of the first.
        """
        named = Scope(self._tenant, None) if only is None else only
        answers = {scope: answer for scope, answer in reading.answers.items() if answer.hits}
        if not answers:
            answers = {named: reading.answers.get(named) or self._look(named)}
        now_us = self._engine.clock()
        found: dict[tuple[Scope, int], MemoryObject] = {}
        for scope, answer in answers.items():
            told = query if scope == named else "*"
            recall = {"query": told, "request": {**request, "seq": answer.seq}, "source": source}
            for seq, memory in self._record(scope, answer, recall, now_us, begins=scope == named).items():
                found[scope, seq] = memory
        return [found[place] for place in reading.order if place in found]

    def _look(self, scope: Scope) -> Answer:
        """Nothing, seen at the end of the scope's ledger."""
        with self._engine.storage.snapshot(scope) as view:
            return Searcher(self._engine).answer_of(view)

    def _record(
        self, scope: Scope, answer: Answer, recall: Mapping[str, Any], now_us: int, *, begins: bool
    ) -> Mapping[int, MemoryObject]:
        """The memories of an answer, with the Recall that says so in the same transaction.

        What was erased since it was read is in neither (E14). With `begins`, a scope without a ledger gets one.
        """
        engine = self._engine
        notes = {hit.seq: cast("Note", hit.event) for hit in answer.hits}
        if not engine.records_reads:
            with engine.storage.snapshot(answer.ledger_id) as view:
                return {} if view is None else _objects_of(view, scope, notes)
        try:
            with engine.storage.transaction(scope, engine.new_ledger(), durable=False) as tx:
                if tx.head.ledger_id != answer.ledger_id:
                    if not begins:
                        raise NoLedgerError
                    notes = {}
                rows = tx.find_items(list(notes))
                notes = {seq: note for seq, note in notes.items() if seq in rows}
                recalls = [
                    build_event(Recall, id=engine.new_id(), timestamp=from_us(now_us), recalled=ids, **recall)
                    for ids in _in_parts([note.id for note in notes.values()])
                ]
                known = Known(roots_by_id={note.id: rows[seq].root_seq for seq, note in notes.items()})
                drafts = [draft(one, engine.tokenizer) for one in recalls]
                Writer(engine, tx).append(drafts, known=known, now_us=now_us)
                head = tx.head
                memories = _objects_of(tx, scope, notes)
        except NoLedgerError:
            return {}
        engine.indexes.pass_over(head.ledger_id, head.next_seq - len(recalls), head.next_seq)
        return memories

    # --- Scopes -------------------------------------------------------------------------------------------------------

    def _scope_of(self, scope: object) -> Scope:
        """The scope of a memory that is written; None is the shelf of those without one."""
        return Scope(self._tenant, None if scope is None else check_name("scope", scope))

    def _find_scope(self, scope: object) -> Scope | None:
        """The one scope that a read means; None for all."""
        if scope is None or scope is ANY:
            return None
        return self._scope_of(None if scope is UNSCOPED else scope)

    def _scopes(self, only: Scope | None) -> Iterator[Scope]:
        """That scope, or all that the tenant has, in rising number."""
        if only is not None:
            yield only
            return
        for row in read_scope_rows(self._engine, self._tenant):
            yield Scope(row.tenant, row.subject)

    # --- Closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{self!r} is closed: open it again")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SqliteMemory(ServiceMemory):
    """The memories of tenant `default` in the archive at a path, which is created with its folders if need be."""

    def __init__(
        self,
        path: str | Path,
        *,
        dimension: int | None = None,
        embedding_fn: EmbeddingFn | Embedder | None = None,
        on_embed_error: Literal["raise", "keyword"] = "raise",
    ) -> None:
        """Open it; `~` is the home directory, and `":memory:"` a private database.

        `dimension` is how many numbers every vector has; None for what the embedder says, or the first vector shows.
        With `on_embed_error="keyword"`, a memory that cannot be embedded is stored without a vector until
        `archive.reindex()` makes one, and a search in mode AUTO goes on with words.

        Raises: as `muniment.open`; EmbeddingDimensionError for a dimension that the embedder contradicts.
        """
        if on_embed_error not in ("raise", "keyword"):
            raise UsageError(f"on_embed_error is 'raise' or 'keyword', not {on_embed_error!r}")
        embedder = _build_embedder(embedding_fn, dimension)
        archive = open_archive(_prepare_path(path), embedder=embedder, on_embed_error=on_embed_error, fulltext=True)
        super().__init__(archive, _DEFAULT_TENANT)
        self._dimension = dimension

    def _vector_length(self) -> int | None:
        return super()._vector_length() if self._dimension is None else self._dimension

    def close(self) -> None:
        super().close()
        self._archive.close()


def _prepare_path(path: object) -> str | Path:
    """Where the archive is, its folders made."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"a path is needed, not {type(path).__name__}")
    text = os.fspath(cast("str | os.PathLike[str]", path))
    if text == ":memory:":
        return text
    if not isinstance(text, str) or not text or "\x00" in text or "://" in text:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"{text!r} is not a path: for a URL, use ServiceMemory(muniment.open(url), tenant)")
    try:
        full = Path(text).expanduser()
        full.parent.mkdir(parents=True, exist_ok=True)
    except (RuntimeError, UnicodeError) as error:
        raise UsageError(f"{text!r} is not a path: {error}") from error
    except OSError as error:
        raise StorageUnavailableError(f"{text}: the folder cannot be made: {error.strerror}") from error
    return full


def _build_embedder(embedding_fn: object, dimension: object) -> Embedder | None:
    """The embedder meant, held to the dimension."""
    if dimension is not None and (isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1):
        raise UsageError(f"dimension must be a whole number, 1 or more, not {dimension!r}")
    if embedding_fn is None:
        return None
    if not isinstance(embedding_fn, Embedder):
        if not callable(embedding_fn):
            raise UsageError(f"embedding_fn is a function of texts or an Embedder, not {embedding_fn!r}")
        return CallableEmbedder(cast("EmbeddingFn", embedding_fn), dimension=dimension)
    own = embedding_fn.dimension
    if dimension is None or own == dimension:
        return embedding_fn
    if own is not None:
        raise EmbeddingDimensionError(
            f"dimension={dimension} was given, but the embedder {embedding_fn.name!r} makes vectors of {own} numbers",
            expected=dimension,
            given=own,
        )
    embed = cast("EmbeddingFn", embedding_fn.embed)
    return CallableEmbedder(embed, dimension=dimension, name=embedding_fn.name)


# --- Arguments --------------------------------------------------------------------------------------------------------


_ENGINE_MODES: Final[Mapping[SearchMode, str]] = {
    SearchMode.KEYWORD_ONLY: "keyword",
    SearchMode.VECTOR_ONLY: "vector",
    SearchMode.HYBRID: "hybrid",
    SearchMode.AUTO: "auto",
}


def _parse_mode(mode: object) -> SearchMode:
    if isinstance(mode, str):
        for one in SearchMode:
            if mode.lower() == one.value:
                return one
    raise UsageError(f"mode {mode!r} is not one of {', '.join(SearchMode)}")


def _build_request(
    query: str, *, mode: str, limit: int, ranking: Ranking = PLAIN, vector: Sequence[float] | None = None
) -> SearchRequest:
    return parse_request(
        query,
        limit=limit,
        mode=mode,
        kinds=None,
        tiers=None,
        labels=None,
        where=None,
        session_id=None,
        since=None,
        until=None,
        fusion="rrf",
        context=False,
        explain=False,
        ranking=ranking,
        vector=vector,
        population=frozenset({_NOTE}),
    )


def _check_list_limit(name: str, value: object) -> None:
    if value is not None:
        check_count(name, _read_count(name, value), LIST_LIMIT_MAX, "memories")


def _note_values(
    content: object, summary: object, metadata: object, categories: Iterable[str], source: object
) -> dict[str, Any]:
    """The fields of a note, checked as far as the note itself does not."""
    if not parse_text("content", content):
        raise UsageError("content must have at least 1 character")
    if not isinstance(metadata, Mapping):
        raise UsageError(f"metadata must be a JSON object, not {type(metadata).__name__}")
    return {
        "content": content,
        "tier": "archival",
        "labels": parse_texts("categories", categories),
        "summary": summary,
        "metadata": dict(cast("Mapping[str, JsonValue]", metadata)),
        "source": source,
    }


def _values_of(obj: object) -> tuple[dict[str, Any], int | None]:
    """The fields of the note that an object is stored as, and when it was first made, if it says so."""
    if not isinstance(obj, MemoryObject):
        raise UsageError(f"a MemoryObject is needed, not {type(obj).__name__}")
    parse_text("id", obj.id)
    created_at = _read_number("created_at", obj.created_at)
    if not created_at <= _SECONDS_MAX:
        raise UsageError(f"created_at must be seconds since 1970 up to the year 9999, not {created_at}")
    values = _note_values(obj.content, obj.summary, obj.metadata, obj.categories, obj.source)
    return values, round(created_at * 1_000_000) if created_at > 0.0 else None


# --- Notes as memories ------------------------------------------------------------------------------------------------


def _find_live(view: Snapshot, hashes: Hashes, address: str) -> Note | None:
    """The live note of that key, or else of that id (S11)."""
    reader = Reader(view)
    for row in view.find_live_by_key(cast("int", hashes.key(address))):
        note = reader.find_content(row.seq)
        if isinstance(note, Note) and note.key == address:
            return note
    note_id = find_id(address)
    if note_id is None or str(note_id) != address:
        return None
    row = reader.find_row(note_id)
    item = None if row is None else view.find_items([row.seq]).get(row.seq)
    if row is None or item is None or item.kind != _NOTE:
        return None
    hidden = item.deleted_seq is not None or item.superseded_seq is not None
    return None if hidden else cast("Note", reader.decode_one(row))


def _get_live(view: Snapshot | Transaction, hashes: Hashes, address: str) -> Note:
    """As `_find_live`.

    Raises: NotFoundError where there is none any more.
    """
    note = _find_live(view, hashes, address)
    if note is None:
        raise NotFoundError(f"there is no memory {address!r}")
    return note


def _list_scope(view: Snapshot, scope: Scope, number: int, limit: int | None, *, alone: bool) -> list[_Listed]:
    """The live notes of a view in the order of S10, up to `limit` of them; `alone` if no other scope is listed."""
    roots: dict[int, int] = {}
    first = 0
    while rows := view.read_items(ItemFilter(first=first, kinds={_NOTE}), limit=PAGE_MAX):
        roots.update((row.seq, row.root_seq) for row in rows)
        first = rows[-1].seq + 1
    uses = view.find_uses(list(roots.values()))
    order = {seq: _use_order(uses.get(root)) for seq, root in roots.items()}
    seqs = sorted(roots, key=lambda seq: (order[seq], seq))[:limit]
    events: Mapping[int, StoredEvent] = {} if alone else view.find_by_seqs(seqs)
    ledger_id = view.head.ledger_id
    return [
        _Listed(order[seq], events[seq].recorded_us if seq in events else 0, number, seq, scope, ledger_id)
        for seq in seqs
    ]


def _use_order(use: Use | None) -> tuple[float, int]:
    """Used last before, then used most; never used at the end."""
    return (float("inf"), 0) if use is None or not use.times else (-use.last_used_us, -use.times)


def _objects_of(view: Snapshot, scope: Scope, notes: Mapping[int, Note]) -> dict[int, MemoryObject]:
    """The notes of those seqs as memories, with their use as it stands in the view; without what was erased."""
    rows = view.find_items(list(notes))
    uses = view.find_uses([row.root_seq for row in rows.values()])
    return {
        seq: _object_of(scope, note, rows[seq], uses.get(rows[seq].root_seq))
        for seq, note in notes.items()
        if seq in rows
    }


def _object_of(scope: Scope, note: Note, row: ItemRow, use: Use | None) -> MemoryObject:
    used = use is not None and use.times > 0
    return MemoryObject(
        id=str(note.id),
        ext_id=note.key,
        content=note.content,
        summary=note.summary,
        scope=scope.subject,
        metadata={name: _thaw(value) for name, value in note.metadata.items()},
        categories=list(note.labels),
        created_at=row.created_us / 1_000_000,
        updated_at=to_us(cast("datetime", note.recorded_at)) / 1_000_000,
        last_used_at=use.last_used_us / 1_000_000 if use is not None and used else None,
        usage_count=use.times if use is not None and used else 0,
        source=note.source,
    )


def _thaw(value: JsonValue) -> JsonValue:
    """The value in plain dicts and lists, which belong to whoever gets them."""
    if isinstance(value, dict):
        return {name: _thaw(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_thaw(inner) for inner in value]
    return value


def _seq_of(note: Note) -> int:
    return cast("int", note.seq)


def _in_parts(ids: Sequence[UUID]) -> list[tuple[UUID, ...]]:
    """The ids in parts that one Recall holds; one empty part if there are none."""
    return [tuple(ids[start : start + TARGETS_MAX]) for start in range(0, len(ids), TARGETS_MAX)] or [()]


def _receipt_of(receipt_id: UUID, note: Note, before: Head, after: Head, reason: str, at: datetime) -> Receipt:
    """What a tombstone did."""
    return Receipt(
        id=receipt_id,
        action="delete",
        ledger_id=before.ledger_id.hex(),
        whole_scope=False,
        targets=(note.id,),
        counts={note.kind: 1},
        head_before=head_of(before),
        head_after=head_of(after),
        state="hidden",
        at=at,
        reason=reason,
    )


# --- The index --------------------------------------------------------------------------------------------------------

_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
"""Every boundary that `str.splitlines` knows, for a model may take any of them for the end of a line."""


def _index_line(scope: Scope, note: Note) -> str:
    parts = ["-", str(note.id) if note.key is None else _one_line(note.key)]
    if scope.subject is not None:
        parts.append(f"[{_one_line(scope.subject)}]")
    if note.labels:
        parts.append(f"({_one_line(', '.join(note.labels))})")
    if note.summary is None or not note.summary.strip():
        text = _one_line(note.content)[:_INDEX_TEXT_CHARS]
    else:
        text = _one_line(note.summary)
    return f"{' '.join(parts)} — {text}\n"


def _one_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text)
