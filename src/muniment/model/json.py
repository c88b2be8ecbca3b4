"""JSON values that cannot be changed: what metadata and a recall's request are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, cast

from pydantic import JsonValue

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**64 - 1
NESTING_MAX: Final = 64
"""Where freezing stops with an error, long before Python's recursion does; the limit of the engine is lower."""


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} cannot be changed: it is part of a record")


class FrozenDict(dict[str, JsonValue]):
    """A JSON object that compares and serialises like a dict and cannot be changed."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))

    def __deepcopy__(self, _memo: object) -> FrozenDict:
        return self


class FrozenList(list[JsonValue]):
    """A JSON array that compares and serialises like a list and cannot be changed."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse  # type: ignore[assignment]
    reverse = sort = _refuse  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenList, (list(self),))

    def __deepcopy__(self, _memo: object) -> FrozenList:
        return self


EMPTY: Final = FrozenDict()


def freeze_object(value: object) -> FrozenDict:
    """The JSON object as a value that cannot be changed.

    Raises: ValueError for what is not a JSON object: other types, keys that are not text, numbers that are not
            finite, lone surrogates, or more than 64 levels.
    """
    if isinstance(value, FrozenDict):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"a JSON object is needed, not {type(value).__name__}")
    return _freeze_mapping(cast("Mapping[object, object]", value), 1)


def _freeze_mapping(value: Mapping[object, object], depth: int) -> FrozenDict:
    return FrozenDict({_check_key(key): _freeze(inner, depth) for key, inner in value.items()})


def _freeze(value: object, depth: int) -> JsonValue:
    if depth > NESTING_MAX:
        raise ValueError(f"JSON is nested deeper than {NESTING_MAX} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            raise ValueError("a whole number of more than 64 bits is not read back alike everywhere: give it as text")
        return value
    if isinstance(value, str):
        return _check_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a JSON number")
        return value
    if isinstance(value, Mapping):
        return _freeze_mapping(cast("Mapping[object, object]", value), depth + 1)
    if isinstance(value, list | tuple):
        items = cast("Iterable[object]", value)
        return FrozenList([_freeze(inner, depth + 1) for inner in items])
    raise ValueError(f"{type(value).__name__} is not a JSON value")


def _check_key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueError(f"JSON keys are text, not {type(key).__name__}")
    return _check_text(key)


def _check_text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("text with a lone surrogate is not text") from None
    return text


def depth_of(value: JsonValue) -> int:
    """How many arrays and objects the deepest value stands in, itself included; 0 for a plain value."""
    if isinstance(value, dict):
        return 1 + max((depth_of(inner) for inner in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth_of(inner) for inner in value), default=0)
    return 0
