"""The filter language over metadata: closed, and with one meaning on every backend.

A condition is a JSON object of one of these forms:

| form | holds when |
| --- | --- |
| `{"path": value}` | the value at the path equals it |
| `{"path": {"eq": v}}`, `ne` | it equals `v`; it does not, or there is none |
| `{"path": {"in": [v, …]}}`, `not_in` | it equals one of them; it equals none, or there is none |
| `{"path": {"lt": v}}`, `le`, `gt`, `ge` | it is of the same sort (number or text) and stands so to `v` |
| `{"path": {"exists": true}}` | there is a value at the path, null included; with `false`, there is none |
| `{"path": {"contains": v}}` | it is a list that holds `v`, or a text that holds the text `v` |
| `{"and": [c, …]}`, `{"or": [c, …]}`, `{"not": c}` | all, one, not |

Several entries in one object are AND-ed, as are several operators of one path. A path is keys joined by dots
(`address.city`); a key that is an operator's name or holds a dot is written as `["a.b", "c"]` in JSON text. Numbers
compare by value, 1 equals 1.0; true is no number; text compares by code point; there is no pattern.

Source: `engine.md` E13, `pains.md` 21.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from pydantic import JsonValue

from muniment.errors import LimitExceededError, UsageError
from muniment.model.limits import WHERE_CONDITIONS_MAX, WHERE_DEPTH_MAX

Condition: TypeAlias = Callable[[Mapping[str, JsonValue]], bool]

_MISSING: Final = object()


def compile_where(where: object) -> Condition:
    """The condition as a function of one item's metadata.

    Raises: UsageError for what is not of the language, naming the place; LimitExceededError for more than 1,000
            conditions or 16 levels.
    """
    return _Compiler().compile(where, "where", 1)


class _Compiler:
    def __init__(self) -> None:
        self._conditions = 0

    def compile(self, where: object, place: str, depth: int) -> Condition:
        if depth > WHERE_DEPTH_MAX:
            raise LimitExceededError("where nesting", limit=WHERE_DEPTH_MAX, given=depth, unit="levels")
        if not isinstance(where, Mapping):
            raise UsageError(f"{place} must be an object of conditions, not {type(where).__name__}")
        parts = [
            self._entry(key, value, f"{place}.{key}", depth)
            for key, value in cast("Mapping[object, object]", where).items()
        ]
        return _all_of(parts)

    def _entry(self, key: object, value: object, place: str, depth: int) -> Condition:
        if not isinstance(key, str):
            raise UsageError(f"{place}: a key is text, not {type(key).__name__}")
        self._conditions += 1
        if self._conditions > WHERE_CONDITIONS_MAX:
            raise LimitExceededError("where", limit=WHERE_CONDITIONS_MAX, given=self._conditions, unit="conditions")
        if key in ("and", "or"):
            parts = self._list(value, place, depth)
            return _all_of(parts) if key == "and" else _any_of(parts)
        if key == "not":
            inner = self.compile(value, place, depth + 1)
            return lambda metadata: not inner(metadata)
        path = _parse_path(key, place)
        if not isinstance(value, Mapping):
            return _test(path, "eq", value, place)
        operators = cast("Mapping[object, object]", value)
        if not operators:
            raise UsageError(f"{place}: an object here names an operator ({', '.join(_OPERATORS)})")
        return _all_of([_test(path, str(name), operand, place) for name, operand in operators.items()])

    def _list(self, value: object, place: str, depth: int) -> list[Condition]:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise UsageError(f"{place} takes a list of conditions")
        return [
            self.compile(part, f"{place}[{number}]", depth + 1)
            for number, part in enumerate(cast("Sequence[object]", value))
        ]


def _all_of(parts: Sequence[Condition]) -> Condition:
    return lambda metadata: all(part(metadata) for part in parts)


def _any_of(parts: Sequence[Condition]) -> Condition:
    return lambda metadata: any(part(metadata) for part in parts)


def _parse_path(key: str, place: str) -> tuple[str, ...]:
    if key.startswith("["):
        try:
            parts = json.loads(key)
        except (ValueError, RecursionError):
            parts = None
        if isinstance(parts, list) and parts and all(isinstance(part, str) for part in cast("list[object]", parts)):
            return tuple(cast("list[str]", parts))
        raise UsageError(f"{place}: a path that starts with [ is a JSON list of keys")
    path = tuple(key.split("."))
    if not all(path):
        raise UsageError(f"{place}: a path is keys joined by single dots")
    return path


def _find(metadata: Mapping[str, JsonValue], path: Sequence[str]) -> object:
    value: object = metadata
    for key in path:
        if not isinstance(value, Mapping):
            return _MISSING
        value = cast("Mapping[str, object]", value).get(key, _MISSING)
    return value


def _test(path: tuple[str, ...], name: str, operand: object, place: str) -> Condition:
    operator = _OPERATORS.get(name)
    if operator is None:
        raise UsageError(f"{place}: {name!r} is not an operator: use {', '.join(_OPERATORS)}")
    check = operator(operand, f"{place}.{name}")
    return lambda metadata: check(_find(metadata, path))


# --- Operators: of an operand, a test of a value ----------------------------------------------------------------------

_Check: TypeAlias = Callable[[object], bool]


def _equal(left: object, right: object) -> bool:
    """JSON equality: by value, but true is no number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        mine, theirs = cast("Mapping[str, object]", left), cast("Mapping[str, object]", right)
        return mine.keys() == theirs.keys() and all(_equal(mine[key], theirs[key]) for key in mine)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        ours, others = cast("Sequence[object]", left), cast("Sequence[object]", right)
        return len(ours) == len(others) and all(map(_equal, ours, others))
    return left == right


def _eq(operand: object, _place: str) -> _Check:
    return lambda value: value is not _MISSING and _equal(value, operand)


def _ne(operand: object, place: str) -> _Check:
    equal = _eq(operand, place)
    return lambda value: not equal(value)


def _in(operand: object, place: str) -> _Check:
    if not isinstance(operand, Sequence) or isinstance(operand, str | bytes):
        raise UsageError(f"{place} takes a list of values")
    values = list(cast("Sequence[object]", operand))
    return lambda value: value is not _MISSING and any(_equal(value, one) for one in values)


def _not_in(operand: object, place: str) -> _Check:
    inside = _in(operand, place)
    return lambda value: not inside(value)


def _exists(operand: object, place: str) -> _Check:
    if not isinstance(operand, bool):
        raise UsageError(f"{place} takes true or false")
    return lambda value: (value is not _MISSING) is operand


def _contains(operand: object, _place: str) -> _Check:
    def check(value: object) -> bool:
        if isinstance(value, str):
            return isinstance(operand, str) and operand in value
        return isinstance(value, list | tuple) and any(_equal(one, operand) for one in cast("Sequence[object]", value))

    return check


def _ordered(
    compare: Callable[[float, float], bool], by_text: Callable[[str, str], bool]
) -> Callable[[object, str], _Check]:
    def operator(operand: object, place: str) -> _Check:
        if isinstance(operand, str):
            text = operand
            return lambda value: isinstance(value, str) and by_text(value, text)
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            raise UsageError(f"{place} takes a number or a text")
        number = operand
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and compare(value, number)

    return operator


_OPERATORS: Final[Mapping[str, Callable[[object, str], _Check]]] = {
    "eq": _eq,
    "ne": _ne,
    "in": _in,
    "not_in": _not_in,
    "lt": _ordered(lambda a, b: a < b, lambda a, b: a < b),
    "le": _ordered(lambda a, b: a <= b, lambda a, b: a <= b),
    "gt": _ordered(lambda a, b: a > b, lambda a, b: a > b),
    "ge": _ordered(lambda a, b: a >= b, lambda a, b: a >= b),
    "exists": _exists,
    "contains": _contains,
}
