"""The values of the contract: an entry, a store, and what the operations answer; loading and saving them.

Laws P1 (round trip), P2 (defaults) and P3 (wrong data is refused and its place is named) of the portable contract.
An entry is a frozen value, so what `recall` and `core_memories` handed out never changes under the caller.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, Self, cast

from muniment.errors import UnsupportedError, UsageError
from muniment.portable import json_text

ENTRY_KEYS: Final = frozenset({"content", "category", "createdAt", "tags"})
STORE_KEYS: Final = frozenset({"entries"})

_SHOWN_CHARS_MAX: Final = 40
"""Characters of a refused value that an error text repeats: enough to find it, too few to leak it."""


class MemoryCategory(StrEnum):
    """The three tiers."""

    CORE = "core"
    ARCHIVAL = "archival"
    INSIGHT = "insight"


_CATEGORIES: Final[dict[object, MemoryCategory]] = {category.value: category for category in MemoryCategory}


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One memory: a text, its tier, and optionally when it was made and its tags.

    Shapes: `created_at` is opaque text, never parsed. `tags=None` and `tags=()` are different values, and the same
            empty set where core entries are compared. A list given as tags is kept as a tuple.
    Raises: UsageError whose text starts with the field: `category: ...`.
    """

    content: str = ""
    category: MemoryCategory = MemoryCategory.CORE
    created_at: str | None = None
    tags: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        # The annotations are wishes until here: the values may come from JSON, from YAML or from untyped code.
        object.__setattr__(self, "content", check_text("content", self.content))
        object.__setattr__(self, "category", check_category("category", self.category))
        if self.created_at is not None:
            object.__setattr__(self, "created_at", check_text("createdAt", self.created_at))
        if self.tags is not None:
            object.__setattr__(self, "tags", _check_tags(self.tags))

    @classmethod
    def load(cls, data: Mapping[str, object]) -> Self:
        """The entry that the saved form stands for; unknown keys are ignored.

        Raises: UsageError naming the first wrong field, in the order content, category, createdAt, tags.
        """
        fields = check_mapping("entry", data)
        return cls(
            content=cast("str", fields.get("content", "")),
            category=cast("MemoryCategory", fields.get("category", MemoryCategory.CORE)),
            created_at=cast("str | None", fields.get("createdAt")),
            tags=cast("tuple[str, ...] | None", fields.get("tags")),
        )

    def save(self) -> dict[str, object]:
        """The saved form: camelCase keys, optional fields only if set."""
        saved: dict[str, object] = {"content": self.content, "category": self.category.value}
        if self.created_at is not None:
            saved["createdAt"] = self.created_at
        if self.tags is not None:
            saved["tags"] = list(self.tags)
        return saved


@dataclass(slots=True)
class MemoryStore:
    """The entries in store order; an entry's identity is its index.

    `bool(store)` is True also when it is empty, so that `store or default` cannot drop an empty store.
    """

    entries: list[MemoryEntry] = field(default_factory=list[MemoryEntry])

    @classmethod
    def load(cls, data: Mapping[str, object]) -> Self:
        """The store that the saved form stands for; unknown keys are ignored.

        Raises: UsageError whose text starts with the first wrong place and a colon: `entries[1].tags[0]: ...`.
        """
        entries = check_mapping("store", data).get("entries", [])
        if not isinstance(entries, list | tuple):
            raise UsageError(f"entries: must be a list, not {_kind(entries)}")
        return cls([_load_entry(index, entry) for index, entry in enumerate(cast("Sequence[object]", entries))])

    def save(self) -> dict[str, object]:
        """The saved form, of plain JSON values."""
        return {"entries": [check_entry(f"entries[{index}]", entry).save() for index, entry in enumerate(self.entries)]}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The store of a JSON text.

        Raises: UsageError as `load`; also for what is not JSON, and for a key given twice in one object.
        """
        return cls.load(cast("Mapping[str, object]", json_text.parse(text)))

    def to_json(self, *, indent: int | None = 2) -> str:
        """The saved form as JSON text; non-ASCII stands as it is."""
        return json_text.render(self.save(), indent)

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """The store of a YAML text; an unquoted time is text, any other unquoted non-text is refused where text stands.

        Raises: UsageError as `load`; also for what is not one YAML document, for a key given twice, and for aliases,
                merge keys and foreign tags. UnsupportedError without the extra `yaml`.
        """
        return cls.load(cast("Mapping[str, object]", yaml_form().parse(text)))

    def to_yaml(self) -> str:
        """The saved form as YAML text that any YAML reader takes for the same strings.

        Raises: UnsupportedError without the extra `yaml`.
        """
        return yaml_form().render(self.save())

    def __len__(self) -> int:
        return len(self.entries)

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """An entry that recall found, with its score and how many of the query's tokens it holds."""

    entry: MemoryEntry
    score: float
    keyword_matches: int


@dataclass(frozen=True, slots=True)
class RememberResult:
    """What one `remember` did, so that nothing leaves a store unseen.

    Shapes: `index` is where the new entry stands, None if it was evicted at once; `replaced` and `evicted` are in the
            order of removal.
    """

    index: int | None
    replaced: tuple[MemoryEntry, ...]
    evicted: tuple[MemoryEntry, ...]


class TextForm(Protocol):
    """A way to write a saved store as text: the modules `json_text` and `yaml_text`."""

    def parse(self, text: str) -> object: ...
    def render(self, saved: Mapping[str, object]) -> str: ...


def yaml_form() -> TextForm:
    """The module that reads and writes YAML, imported at its first use.

    Raises: UnsupportedError naming the extra when PyYAML is not installed.
    """
    try:
        return cast("TextForm", importlib.import_module("muniment.portable.yaml_text"))
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise UnsupportedError("YAML needs the extra `yaml`: pip install 'muniment[yaml]'") from error


def check_text(place: str, value: object) -> str:
    """The value, if it is text: a str without lone surrogates, which no JSON, YAML or file could carry."""
    if not isinstance(value, str):
        raise UsageError(f"{place}: must be text, not {_kind(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{place}: holds a lone surrogate, which is not text") from None
    # A subclass of str (an enum's member, say) is kept as the plain text it holds.
    return value if type(value) is str else str.__str__(value)


def check_category(place: str, value: object) -> MemoryCategory:
    """The tier of that exact name."""
    if not isinstance(value, str):
        raise UsageError(f"{place}: must be core, archival or insight, not {_kind(value)}")
    category = _CATEGORIES.get(value)
    if category is None:
        raise UsageError(f"{place}: must be core, archival or insight, not {value[:_SHOWN_CHARS_MAX]!r}")
    return category


def check_mapping(place: str, value: object) -> Mapping[str, object]:
    """The value, if it is a mapping."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{place}: must be a mapping, not {_kind(value)}")
    return cast("Mapping[str, object]", value)


def check_entry(place: str, value: object) -> MemoryEntry:
    """The value, if it is an entry."""
    if not isinstance(value, MemoryEntry):
        raise UsageError(f"{place}: must be a MemoryEntry, not {_kind(value)}")
    return value


def check_store(value: object) -> MemoryStore:
    """The value, if it is a store."""
    if not isinstance(value, MemoryStore):
        raise UsageError(f"store: must be a MemoryStore, not {_kind(value)}")
    return value


def check_known_keys(data: object) -> None:
    """Nothing, if the saved form of a store holds no key outside the contract.

    For a place that is overwritten as a whole: there a key that loading ignores would be lost by the next save.

    Raises: UsageError naming the place of the first unknown key: `version: ...`, `entries[0].source: ...`.
    """
    if not isinstance(data, Mapping):
        return
    store = cast("Mapping[object, object]", data)
    _refuse_unknown("", store, STORE_KEYS)
    entries = store.get("entries")
    for index, entry in enumerate(cast("list[object]", entries) if isinstance(entries, list) else []):
        if isinstance(entry, Mapping):
            _refuse_unknown(f"entries[{index}].", cast("Mapping[object, object]", entry), ENTRY_KEYS)


def _refuse_unknown(prefix: str, data: Mapping[object, object], known: frozenset[str]) -> None:
    if data.keys() <= known:
        return
    unknown = next(str(key) for key in data if key not in known)
    raise UsageError(f"{prefix}{unknown[:_SHOWN_CHARS_MAX]}: is not a key of the contract; a save would drop it")


def _load_entry(index: int, data: object) -> MemoryEntry:
    fields = check_mapping(f"entries[{index}]", data)
    try:
        return MemoryEntry.load(fields)
    except UsageError as error:
        raise UsageError(f"entries[{index}].{error.message}") from None


def _check_tags(tags: object) -> tuple[str, ...]:
    if not isinstance(tags, list | tuple):
        raise UsageError(f"tags: must be a list of texts, not {_kind(tags)}")
    listed = cast("Sequence[object]", tags)
    return tuple([check_text(f"tags[{index}]", tag) for index, tag in enumerate(listed)])


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
