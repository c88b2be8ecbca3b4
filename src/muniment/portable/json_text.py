"""JSON text to plain values and back, without the two silences of the standard reader.

A key given twice in one object is refused instead of the first one being dropped, and `NaN` and the infinities, which
are not JSON, are refused too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NoReturn, cast

from muniment.errors import UsageError


def parse(text: str) -> object:
    """The value that a JSON text stands for.

    Raises: UsageError whose text starts with `store:`, or with the place of a key that is given twice.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise UsageError(f"store: the JSON must be text, not {type(text).__name__}")
    repeats: list[Repeat] = []
    try:
        value: object = json.loads(
            text, object_pairs_hook=lambda pairs: build_mapping(pairs, repeats), parse_constant=_refuse_constant
        )
    except RecursionError:
        raise UsageError("store: not JSON that can be read: nested too deep") from None
    except ValueError as error:
        raise UsageError(f"store: not JSON: {error}") from None
    refuse_repeats(value, repeats)
    return value


def render(saved: Mapping[str, object], indent: int | None = 2) -> str:
    """The JSON text of plain values; non-ASCII stands as it is."""
    return json.dumps(saved, ensure_ascii=False, indent=indent)


Repeat = tuple[dict[object, object], object]
"""An object that was read, and a key that its text gives twice."""


def build_mapping(pairs: list[tuple[object, object]], repeats: list[Repeat]) -> dict[object, object]:
    """The pairs as a mapping; a key that comes again is noted in `repeats`."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        seen: set[object] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))
        repeats.append((mapping, repeated))
    return mapping


def refuse_repeats(value: object, repeats: list[Repeat]) -> None:
    """Nothing, if no key came twice.

    The reader does not know where in the store it is; the place is looked up afterwards, when there is one to name.
    """
    if not repeats:
        return
    mapping, key = repeats[0]
    raise UsageError(f"{_find_place(value, mapping)}{key}: is given twice")


def _find_place(value: object, mapping: dict[object, object]) -> str:
    if value is mapping or not isinstance(value, dict):
        return ""
    entries = cast("dict[object, object]", value).get("entries")
    listed = cast("list[object]", entries) if isinstance(entries, list) else []
    places = (f"entries[{index}]." for index, entry in enumerate(listed) if entry is mapping)
    return next(places, "")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
