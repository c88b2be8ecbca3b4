"""The facts contract: plain facts about one end user, kept across runs and destroyed for real when asked.

Four methods, in every adapter: `remember` always adds, `recall` gives all of them, oldest first, `forget` destroys one,
`erase` destroys everything of one end user. Nothing ranks, merges or embeds; whatever selects or judges stands above.

`StoreBackedMemory` keeps facts as long as the process lives, `ArchiveMemory` in an archive. `muniment.testing.facts`
proves either, and any other class with these four methods.

Laws, by their numbers in the contract: F1 and F2 `memory_key`, F3 to F13 the adapters, F14 to F16 `memory_block`,
F17 `ArchiveMemory.prompt`, F18 and F19 `memory_tools`, F20 which notes of an archive are facts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol, TypeVar, cast, runtime_checkable
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    StrictStr,
    WithJsonSchema,
)

from muniment.archive import Archive
from muniment.archive import Memory as ScopeMemory
from muniment.archive.arguments import find_id
from muniment.archive.eraser import Destroyed, Eraser
from muniment.archive.reader import Reader
from muniment.core.canonical import KIND_NUMBERS, from_us
from muniment.core.check import check_count
from muniment.core.project import TIER_NUMBERS
from muniment.core.prompt import FACTS_HEADING, build_block, show_text
from muniment.errors import CleanPendingError, UsageError
from muniment.model.event import Instant, Note
from muniment.model.item import Item
from muniment.model.json import FrozenDict
from muniment.model.limits import FACT_CHARS_MAX, NAME_CHARS_MAX
from muniment.model.rows import ItemFilter
from muniment.model.scope import check_name
from muniment.model.tool import Tool
from muniment.ports.clock import Clock, Entropy, system_clock, system_entropy

__all__ = [
    "ArchiveMemory",
    "Caller",
    "HasTenant",
    "Memory",
    "MemoryKey",
    "MemoryStore",
    "PromptMemory",
    "StoreBackedMemory",
    "Tool",
    "memory_block",
    "memory_key",
    "memory_tools",
]

T = TypeVar("T")

FACT_ID_CHARS_MAX: Final = 64
CALLER_LABELS_MAX: Final = 32
_ID_BYTES: Final = 12
"""Random bytes of an id of `StoreBackedMemory` (F5)."""


# --- Whose facts ------------------------------------------------------------------------------------------------------


class HasTenant(Protocol):
    """What the four methods ask of a scope: whose application it is."""

    @property
    def tenant(self) -> str: ...


def _check_length(name: str, value: str, *, at_least: int, at_most: int) -> str:
    """The text, if it has that many characters and no lone surrogate.

    Raises: UsageError; LimitExceededError above `at_most`.
    """
    if len(value) < at_least:
        raise UsageError(f"{name} must have at least {at_least} character")
    check_count(name, len(value), at_most, "characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{name} must not contain a lone surrogate") from None
    return value


def _text(name: str, *, at_least: int, at_most: int) -> AfterValidator:
    return AfterValidator(partial(_check_length, name, at_least=at_least, at_most=at_most))


def _freeze_labels(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise UsageError(f"labels must be a mapping, not {type(value).__name__}")
    labels = cast("Mapping[object, object]", value)
    check_count("labels", len(labels), CALLER_LABELS_MAX, "entries")
    frozen = FrozenDict(
        {
            _check_label("the name of a label", name, at_least=1): _check_label("a label", text, at_least=0)
            for name, text in labels.items()
        }
    )
    return cast("Mapping[str, str]", frozen)


def _check_label(name: str, value: object, *, at_least: int) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, not {type(value).__name__}")
    return _check_length(name, value, at_least=at_least, at_most=NAME_CHARS_MAX)


Labels = Annotated[
    Mapping[str, str],
    PlainValidator(_freeze_labels),
    PlainSerializer(dict, return_type=dict[str, str]),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]


def _no_labels() -> Mapping[str, str]:
    return _freeze_labels({})


class Caller(BaseModel, frozen=True, extra="forbid"):
    """Who calls: a tenant, and what its application knows of the caller, which never decides whose facts are meant."""

    tenant: Annotated[StrictStr, AfterValidator(partial(check_name, "tenant"))]
    principal: Annotated[StrictStr, _text("principal", at_least=0, at_most=NAME_CHARS_MAX)] | None = None
    labels: Labels = Field(default_factory=_no_labels)

    if TYPE_CHECKING:

        def __init__(self, tenant: str, principal: str | None = None, labels: Mapping[str, str] = ...) -> None: ...

    else:

        def __init__(self, *values: object, **fields: object) -> None:
            names = ("tenant", "principal", "labels")
            if len(values) > len(names):
                raise TypeError(f"Caller takes {', '.join(names)}: {len(values)} values were given")
            super().__init__(**dict(zip(names, values, strict=False)), **fields)


class MemoryKey(BaseModel, frozen=True, extra="forbid"):
    """Where the facts of one end user are: both parts, compared by equality and nothing else. `memory_key` makes it."""

    tenant: Annotated[StrictStr, AfterValidator(partial(check_name, "tenant"))]
    end_user_id: Annotated[StrictStr, AfterValidator(partial(check_name, "end_user_id"))]


def memory_key(scope: HasTenant, end_user_id: str) -> MemoryKey:
    """The key of that end user of the scope's tenant; a principal or labels play no part (F1).

    Raises: UsageError for a scope without a tenant that is text, and for a part that is empty, no text, or has U+0000
            or a lone surrogate; LimitExceededError above 256 characters (F2).
    """
    tenant = getattr(scope, "tenant", None)
    if not isinstance(tenant, str):
        raise UsageError(f"a scope with a tenant is needed, such as Caller(tenant), not {type(scope).__name__}")
    return MemoryKey(tenant=check_name("tenant", tenant), end_user_id=check_name("end_user_id", end_user_id))


# --- The port ---------------------------------------------------------------------------------------------------------


class Memory(BaseModel, frozen=True, extra="forbid"):
    """One fact, as it was stored."""

    id: Annotated[StrictStr, _text("id", at_least=1, at_most=FACT_ID_CHARS_MAX)]
    key: MemoryKey
    content: Annotated[StrictStr, _text("content", at_least=1, at_most=FACT_CHARS_MAX)]
    created_at: Instant


@runtime_checkable
class MemoryStore(Protocol):
    """Facts per end user. Every method goes through `memory_key`, so a bad scope or id is a UsageError before anything.

    `muniment.testing.facts.FactsContract` proves a class that implements it.
    """

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        """The fact, stored; the same text again is another fact (F3 to F5).

        Raises: UsageError for content that is no text or empty; LimitExceededError above 4,096 characters.
        """
        ...

    async def forget(self, scope: HasTenant, end_user_id: str, memory_id: str) -> bool:
        """Whether a fact of that id was held for this end user, and is now destroyed; never an error (F6)."""
        ...

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        """The facts in the order in which they were written, or the first `limit` of them (F7).

        Raises: UsageError for a limit that is negative or no whole number.
        """
        ...

    async def erase(self, scope: HasTenant, end_user_id: str) -> int:
        """How many facts were destroyed, with everything else that is held for this end user (F8)."""
        ...


@runtime_checkable
class PromptMemory(Protocol):
    """What an adapter may offer beyond the port: the prompt's block with its record, and forgetting by text."""

    async def prompt(
        self,
        scope: HasTenant,
        end_user_id: str,
        *,
        memories: Sequence[str] = (),
        budget_chars: int | None = None,
        session_id: str | None = None,
    ) -> str:
        """The block of `memories` and then the facts, of which the record names exactly the ones shown (F17)."""
        ...

    async def forget_text(self, scope: HasTenant, end_user_id: str, content: str) -> bool:
        """Whether a fact of that text, or that is shown like it, was there and is now destroyed (F19)."""
        ...


def _check_content(content: object) -> str:
    if not isinstance(content, str):
        raise UsageError(f"content must be text, not {type(content).__name__}")
    if "\x00" in content:
        raise UsageError("content must not contain U+0000")
    return _check_length("content", content, at_least=1, at_most=FACT_CHARS_MAX)


def _check_limit(limit: object) -> int | None:
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise UsageError(f"limit must be a whole number or None, not {limit!r}")
    if limit < 0:
        raise UsageError(f"limit must not be negative: {limit}")
    return min(limit, sys.maxsize)


# --- In the process ---------------------------------------------------------------------------------------------------


class StoreBackedMemory:
    """Facts that live as long as this object: for tests, and where one process serves everybody.

    They are not written through the given store, whose log cannot forget, so it is never read or called. One event loop
    at a time.
    """

    def __init__(
        self, store: object | None = None, *, clock: Clock = system_clock, entropy: Entropy = system_entropy
    ) -> None:
        del store
        self._clock = clock
        self._entropy = entropy
        self._facts: dict[MemoryKey, dict[str, Memory]] = {}
        """Of each key, the facts by id, in the order in which they were written."""
        self._lock = asyncio.Lock()

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        key = memory_key(scope, end_user_id)
        _check_content(content)
        async with self._lock:
            fact = Memory(
                id=f"mem_{self._entropy(_ID_BYTES).hex()}", key=key, content=content, created_at=from_us(self._clock())
            )
            self._facts.setdefault(key, {})[fact.id] = fact
        return fact

    async def forget(self, scope: HasTenant, end_user_id: str, memory_id: str) -> bool:
        key = memory_key(scope, end_user_id)
        async with self._lock:
            facts = self._facts.get(key, {})
            found = isinstance(memory_id, str) and facts.pop(memory_id, None) is not None  # pyright: ignore[reportUnnecessaryIsInstance]
            if not facts:
                self._facts.pop(key, None)
        return found

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        key = memory_key(scope, end_user_id)
        limit = _check_limit(limit)
        async with self._lock:
            return tuple(islice(self._facts.get(key, {}).values(), limit))

    async def erase(self, scope: HasTenant, end_user_id: str) -> int:
        key = memory_key(scope, end_user_id)
        async with self._lock:
            return len(self._facts.pop(key, {}))


# --- In an archive ----------------------------------------------------------------------------------------------------


class ArchiveMemory:
    """Facts in an archive: the core notes of `Scope(tenant, subject=end_user_id)`, whoever wrote them (F20).

    What is read is recorded with exactly what was handed out. Calls run in threads, so they do not hold up the event
    loop; one that was begun goes on to its end, even if nobody waits for it any more (F12).
    """

    def __init__(self, archive: Archive, *, clean: Literal["now", "later"] = "now") -> None:
        """Facts in that archive, which stays the caller's to close.

        `clean="later"` lets `erase` return when the content is unreachable and leaves the files to `archive.clean()`.
        """
        if not isinstance(archive, Archive):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"an opened archive is needed, not {type(archive).__name__}")
        if clean not in ("now", "later"):
            raise UsageError(f"clean is 'now' or 'later', not {clean!r}")
        self._archive = archive
        self._clean: Literal["now", "later"] = clean

    @property
    def archive(self) -> Archive:
        return self._archive

    def __repr__(self) -> str:
        return f"<ArchiveMemory {self._archive.location}>"

    async def remember(self, scope: HasTenant, end_user_id: str, content: str) -> Memory:
        """As the port; where the embedder fails, stored without a vector, which `archive.reindex` makes.

        Raises: also the archive's own errors, such as StorageBusyError, with nothing stored.
        """
        key = memory_key(scope, end_user_id)
        _check_content(content)
        store = partial(self._memory(key).remember, tier="core", source="facts", on_embed_error="keyword")
        return _as_memory(key, await _in_thread(partial(store, content)))

    async def forget(self, scope: HasTenant, end_user_id: str, memory_id: str) -> bool:
        """As the port: unreachable when it returns; the files follow with the archive's next clean step (F10)."""
        key = memory_key(scope, end_user_id)
        wanted = find_id(memory_id)
        if wanted is None or str(wanted) != memory_id:
            return False
        return await _in_thread(partial(_forget_one, self._memory(key), partial(_find_fact, wanted)))

    async def recall(self, scope: HasTenant, end_user_id: str, *, limit: int | None = None) -> tuple[Memory, ...]:
        """As the port, with one Recall of exactly these facts (F13).

        Raises: LimitExceededError, recording nothing, for more than 10,000 facts at once: no record holds more.
        Cost:   O(facts), one transaction.
        """
        key = memory_key(scope, end_user_id)
        limit = _check_limit(limit)

        def first(items: Iterable[Item]) -> list[Item]:
            return list(islice(filter(_is_fact, items), limit))

        hand_out = partial(self._memory(key).hand_out, first, kinds=_KINDS, tiers=_TIERS, source="facts.recall")
        return tuple(_as_memory(key, _note_of(item)) for item in await _in_thread(hand_out))

    async def erase(self, scope: HasTenant, end_user_id: str) -> int:
        """As the port: facts, notes of every tier, messages, documents, reads, tombstones, and the name of the scope.

        Raises: CleanPendingError when everything is unreachable but the files could not be cleaned, a reader holding an
                older view for instance; its `receipt` and `count` say what was done, and `archive.clean()` finishes it.
        """
        key = memory_key(scope, end_user_id)
        receipt = await _in_thread(partial(self._memory(key).erase, clean=self._clean))
        if receipt.state == "pending":
            raise CleanPendingError(
                f"everything of this end user is unreachable ({receipt.num_facts} facts), but the files may still hold "
                f"bytes of it: {receipt.blocked}; run archive.clean() or `muniment clean`",
                receipt=receipt,
                count=receipt.num_facts,
            )
        return receipt.num_facts

    async def prompt(
        self,
        scope: HasTenant,
        end_user_id: str,
        *,
        memories: Sequence[str] = (),
        budget_chars: int | None = None,
        session_id: str | None = None,
    ) -> str:
        """The block of `memories`, then the facts, oldest first, with one Recall of the facts that stand in it (F17).

        Raises: UsageError for a budget below 80 and for memories that are no texts.
        """
        key = memory_key(scope, end_user_id)
        fixed = _check_texts(memories)
        build_block(FACTS_HEADING, (), budget_chars)
        blocks: list[str] = []

        def shown(items: Iterable[Item]) -> list[Item]:
            facts = list(filter(_is_fact, items))
            block = build_block(FACTS_HEADING, [*fixed, *(fact.text for fact in facts)], budget_chars)
            blocks.append(block.text)
            return facts[: max(0, block.shown - len(fixed))]

        hand_out = partial(self._memory(key).hand_out, shown, kinds=_KINDS, tiers=_TIERS, source="facts.prompt")
        await _in_thread(partial(hand_out, session_id=session_id))
        return blocks[-1] if blocks else build_block(FACTS_HEADING, fixed, budget_chars).text

    async def forget_text(self, scope: HasTenant, end_user_id: str, content: str) -> bool:
        """Whether the oldest fact of that text was destroyed, or else the oldest that a prompt shows as that text.

        Case and white space count; one call destroys one fact, in one transaction, and hands nothing to anyone.
        """
        key = memory_key(scope, end_user_id)
        _check_content(content)

        def find(reader: Reader) -> Item | None:
            return _find_text(_read_facts(reader), content, lambda fact: fact.text)

        return await _in_thread(partial(_forget_one, self._memory(key), find))

    def _memory(self, key: MemoryKey) -> ScopeMemory:
        return self._archive.memory(key.end_user_id, tenant=key.tenant)


def _as_memory(key: MemoryKey, note: Note) -> Memory:
    # Built without another check: the note was checked when it was stored, and `_is_fact` has seen its length.
    return Memory.model_construct(id=str(note.id), key=key, content=note.content, created_at=note.timestamp)


async def _in_thread(work: Callable[[], T]) -> T:
    """What the work answered in a thread. Once it is handed over it is done, whoever stops waiting for it.

    The future of an executor would take work that has not begun back when its waiter is cancelled, and a task would be
    cancelled with its loop; a shielded future is neither.
    """
    running = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
    return await asyncio.shield(running)


# --- Facts in a ledger ------------------------------------------------------------------------------------------------

_KINDS: Final = ("note",)
_TIERS: Final = ("core",)


def _is_fact(item: Item) -> bool:
    """Whether it is a core note of 1 to 4,096 characters (F20)."""
    note = item.event
    return isinstance(note, Note) and note.tier == "core" and 1 <= len(note.content) <= FACT_CHARS_MAX


def _note_of(item: Item) -> Note:
    return cast("Note", item.event)


def _read_facts(reader: Reader) -> Iterator[Item]:
    """The visible facts of a ledger in seq order, read as they are asked for."""
    where = ItemFilter(kinds={KIND_NUMBERS["note"]}, tiers={TIER_NUMBERS["core"]})
    return filter(_is_fact, reader.visible_items(where))


def _find_fact(fact_id: UUID, reader: Reader) -> Item | None:
    """The fact of that id, also one under a tombstone; not a version that another one took the key of."""
    row = reader.find_row(fact_id)
    rows = [] if row is None else list(reader.view.find_items([row.seq]).values())
    items = reader.items(rows, reader.view.head.next_seq)
    return next((item for item in items if _is_fact(item) and item.superseded_seq is None), None)


def _forget_one(memory: ScopeMemory, find: Callable[[Reader], Item | None]) -> bool:
    """Whether `find` found a fact, which is destroyed in the transaction that found it; else nothing is written."""

    def destroy(eraser: Eraser) -> Destroyed:
        fact = find(eraser.reader)
        rows = [] if fact is None else eraser.choose_targets([fact.id], derived=False)
        return eraser.erase_events(rows, action="forget", reason="forgotten", requested_by=None)

    receipt = memory._destroy(destroy, "later")  # pyright: ignore[reportPrivateUsage]
    return receipt is not None and receipt.count > 0


# --- For a model ------------------------------------------------------------------------------------------------------


def memory_block(facts: Sequence[str], *, budget_chars: int | None = None) -> str:
    """The facts for a system prompt, in the order given; `""` for none (F14).

    A fact is data: its further lines are indented, so that it cannot forge a section (F15). With a budget, facts are
    shown whole until the next would not fit, and the last line says how many are not shown (F16).

    Raises: UsageError for a budget below 80 characters, and for facts that are no texts.
    """
    return build_block(FACTS_HEADING, _check_texts(facts), budget_chars).text


def _check_texts(texts: object) -> tuple[str, ...]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise UsageError(f"a sequence of texts is needed, not {type(texts).__name__}")
    checked: list[str] = []
    for text in cast("Iterable[object]", texts):
        if not isinstance(text, str):
            raise UsageError(f"a sequence of texts is needed: {type(text).__name__} is none")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError("text with a lone surrogate is not text") from None
        checked.append(text)
    return tuple(checked)


_CONTENT_SCHEMA: Final[Mapping[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["content"],
    "properties": {"content": {"type": "string", "minLength": 1, "maxLength": FACT_CHARS_MAX}},
}
_REMEMBER: Final = (
    "Remember a fact about this user for all later conversations. Use it only for what should last: a preference, a "
    "circumstance, a decision. State one fact, complete in itself."
)
_FORGET: Final = (
    "Forget a remembered fact for good, when the user asks for that or the fact is no longer true. Pass its exact text "
    "as listed under 'What you remember about this user'."
)


def memory_tools(memory: MemoryStore, scope: HasTenant, end_user_id: str) -> tuple[Tool, ...]:
    """The tools `remember` and `forget` for this end user's facts (F18).

    The key is taken once, here: no argument can name another user, and a scope that changes later changes nothing.

    Raises: as `memory_key`.
    """
    key = memory_key(scope, end_user_id)

    async def remember(content: str) -> dict[str, JsonValue]:
        fact = await memory.remember(key, key.end_user_id, _check_content(content))
        return {"remembered": True, "content": fact.content}

    async def forget(content: str) -> dict[str, JsonValue]:
        if await _forget_text(memory, key, _check_content(content)):
            return {"forgotten": True, "content": content}
        return {
            "forgotten": False,
            "error": f"no remembered fact is exactly {content!r}; pass its exact text as listed under 'What you "
            "remember about this user'",
        }

    return (
        Tool("remember", _REMEMBER, _CONTENT_SCHEMA, remember),
        Tool("forget", _FORGET, _CONTENT_SCHEMA, forget),
    )


async def _forget_text(memory: MemoryStore, key: MemoryKey, content: str) -> bool:
    """Whether a fact of that text was destroyed: in one step where the adapter can, else by `recall` and `forget`."""
    if isinstance(memory, PromptMemory):
        return await memory.forget_text(key, key.end_user_id, content)
    facts = await memory.recall(key, key.end_user_id)
    found = _find_text(facts, content, lambda fact: fact.content)
    return found is not None and await memory.forget(key, key.end_user_id, found.id)


def _find_text(facts: Iterable[T], content: str, text_of: Callable[[T], str]) -> T | None:
    """The oldest fact of exactly that text, or else the oldest that is shown as that text (F19)."""
    shown: T | None = None
    for fact in facts:
        text = text_of(fact)
        if text == content:
            return fact
        if shown is None and show_text(text) == content:
            shown = fact
    return shown
