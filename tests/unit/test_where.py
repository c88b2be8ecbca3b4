"""The filter language: what each form means, by an evaluator written from its table, and what is refused."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from muniment.core.where import compile_where
from muniment.errors import LimitExceededError, UsageError
from muniment.model.json import freeze_object
from muniment.model.limits import WHERE_CONDITIONS_MAX, WHERE_DEPTH_MAX

# --- The evaluator ----------------------------------------------------------------------------------------------------

MISSING = object()
ORDER = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


def sort_of(value: Any) -> str:
    """The sorts that JSON tells apart; 1 and 1.0 are one number, true is none."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "object"


def equal(left: Any, right: Any) -> bool:
    if sort_of(left) != sort_of(right):
        return False
    if sort_of(left) == "list":
        return len(left) == len(right) and all(equal(*pair) for pair in zip(left, right, strict=True))
    if sort_of(left) == "object":
        return set(left) == set(right) and all(equal(left[key], right[key]) for key in left)
    return left == right


def value_at(metadata: Any, path: str) -> Any:
    value = metadata
    for key in json.loads(path) if path.startswith("[") else path.split("."):
        if sort_of(value) != "object" or key not in value:
            return MISSING
        value = value[key]
    return value


def holds_for(name: str, value: Any, operand: Any) -> bool:
    there = value is not MISSING
    match name:
        case "eq":
            return there and equal(value, operand)
        case "ne":
            return not (there and equal(value, operand))
        case "in":
            return there and any(equal(value, one) for one in operand)
        case "not_in":
            return not (there and any(equal(value, one) for one in operand))
        case "exists":
            return there is operand
        case "contains":
            if not there:
                return False
            if sort_of(value) == "text":
                return sort_of(operand) == "text" and operand in value
            return sort_of(value) == "list" and any(equal(one, operand) for one in value)
        case _:
            return there and sort_of(value) == sort_of(operand) and ORDER[name](value, operand)


def holds(where: Any, metadata: Any) -> bool:
    for key, value in where.items():
        if key == "and":
            held = all(holds(part, metadata) for part in value)
        elif key == "or":
            held = any(holds(part, metadata) for part in value)
        elif key == "not":
            held = not holds(value, metadata)
        else:
            tests = value if isinstance(value, dict) else {"eq": value}
            held = all(holds_for(name, value_at(metadata, key), operand) for name, operand in tests.items())
        if not held:
            return False
    return True


# --- Values -----------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", "eq", "and", "a.b", "é"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2, 1.0, 0.5, -0.0, 2**53 + 1, 2.0**53, 10**18])
    | st.sampled_from(["", "a", "b", "ab", "A", "1", "true", "é", "e\u0301", "%", "a_b", "\U0001f600"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
METADATA = st.dictionaries(KEYS, VALUES, max_size=4)
PATHS = st.sampled_from(
    ["a", "b", "c", "a.b", "a.b.c", "b.a", '["a.b"]', '["and"]', '["a", "a.b"]', '["eq", "é"]', "é"]
)
TESTS = st.one_of(
    st.tuples(st.sampled_from(["eq", "ne", "contains"]), VALUES),
    st.tuples(st.sampled_from(["in", "not_in"]), st.lists(VALUES, max_size=3)),
    st.tuples(
        st.sampled_from(sorted(ORDER)), SCALARS.filter(lambda one: one is not None and not isinstance(one, bool))
    ),
    st.tuples(st.just("exists"), st.booleans()),
)
LEAVES = st.dictionaries(
    PATHS,
    st.lists(TESTS, min_size=1, max_size=2).map(dict) | VALUES.filter(lambda one: not isinstance(one, dict)),
    max_size=2,
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: {"and": parts}),
        st.lists(inner, max_size=3).map(lambda parts: {"or": parts}),
        inner.map(lambda part: {"not": part}),
        st.tuples(LEAVES, inner).map(lambda both: {**both[0], "or": [both[1]]}),
    ),
    max_leaves=5,
)


@settings(max_examples=150)
@given(where=CONDITIONS, metadata=METADATA)
def test_a_condition_means_what_its_table_says(where: dict[str, Any], metadata: dict[str, Any]) -> None:
    expected = holds(where, metadata)
    event(f"holds: {expected}")
    assert compile_where(where)(metadata) is expected
    # As the engine keeps it: frozen, and through JSON text.
    assert compile_where(where)(freeze_object(json.loads(json.dumps(metadata)))) is expected
    assert compile_where(json.loads(json.dumps(where)))(metadata) is expected


@given(where=CONDITIONS, metadata=METADATA)
def test_laws_of_logic(where: dict[str, Any], metadata: dict[str, Any]) -> None:
    held = compile_where(where)(metadata)
    assert compile_where({"not": where})(metadata) is not held
    assert compile_where({"and": [where, {}]})(metadata) is held
    assert compile_where({"or": [where, {"or": []}]})(metadata) is held
    parts = [{key: value} for key, value in where.items()]
    assert compile_where({"and": parts})(metadata) is held


JSON = st.recursive(
    SCALARS | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["and", "or", "not", "eq", "in", "lt", "exists", "contains", "a", "a.b", "", ".", "[", "[]"]
            )
            | st.text(max_size=4),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(where=JSON, metadata=METADATA)
@example(where={"[[[": 1}, metadata={})
@example(where={'["a", 5]': 1}, metadata={})
@example(where={"a": {"in": "abc"}}, metadata={})
def test_whatever_comes_is_a_condition_or_a_usage_error(where: Any, metadata: dict[str, Any]) -> None:
    try:
        condition = compile_where(where)
    except UsageError:
        event("refused")
        return
    event("a condition")
    assert condition(metadata) in (True, False)


# --- Examples ---------------------------------------------------------------------------------------------------------

ANNA: Mapping[str, Any] = {
    "name": "Anna",
    "age": 41,
    "address": {"city": "Berlin", "zip": None},
    "tags": ["vip", 7, [1]],
    "a.b": "dotted",
    "eq": "an operator's name",
    "active": True,
}


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"name": "Anna", "age": 41.0},
        {"address.city": "Berlin"},
        {"address": {"eq": {"city": "Berlin", "zip": None}}},
        {"address.zip": None},
        {"address.zip": {"exists": True}},
        {"address.street": {"exists": False}},
        {"age": {"ge": 41, "lt": 41.5}},
        {"name": {"gt": "Ann", "lt": "Annb"}},
        {"tags": {"contains": 7.0}},
        {"tags": {"contains": [1]}},
        {"tags": ["vip", 7, [1]]},
        {"name": {"contains": "nn"}},
        {"name": {"in": ["Bert", "Anna"]}},
        {"phone": {"not_in": ["x"], "ne": 5}},
        {'["a.b"]': "dotted"},
        {'["eq"]': {"exists": True}},
        {"eq": "an operator's name"},
        {"or": [{"name": "Bert"}, {"age": {"gt": 40}}]},
        {"not": {"or": []}},
        {"and": []},
        {"active": True},
    ],
)
def test_what_holds(where: dict[str, Any]) -> None:
    assert compile_where(where)(ANNA) is True
    assert compile_where({"not": where})(ANNA) is False


@pytest.mark.parametrize(
    "where",
    [
        {"or": []},
        {"active": 1},
        {"age": True},
        {"age": "41"},
        {"age": {"gt": "4"}},
        {"name": {"lt": 5}},
        {"address.zip": {"exists": False}},
        {"address.city.name": {"exists": True}},
        {"tags.0": "vip"},
        {"tags": {"contains": "vi"}},
        {"tags": {"contains": True}},
        {"name": {"contains": "%"}},
        {"name": "anna"},
        {"NAME": "Anna"},
        {"address": {"in": ["Berlin"]}},
        {"address.zip": {"le": 5}},
        {"a.b": "dotted"},
    ],
)
def test_what_does_not_hold(where: dict[str, Any]) -> None:
    assert compile_where(where)(ANNA) is False
    assert compile_where({"not": where})(ANNA) is True


@pytest.mark.parametrize(
    ("where", "place"),
    [
        (None, "where"),
        ([], "where"),
        ("name = 5", "where"),
        ({5: 1}, "where"),
        ({"a": {}}, "where.a"),
        ({"a": {"like": "x%"}}, "where.a"),
        ({"a": {"city": "Berlin"}}, "where.a"),
        ({"a": {"in": "abc"}}, "where.a.in"),
        ({"a": {"in": 5}}, "where.a.in"),
        ({"a": {"not_in": {"b": 1}}}, "where.a.not_in"),
        ({"a": {"exists": 1}}, "where.a.exists"),
        ({"a": {"lt": None}}, "where.a.lt"),
        ({"a": {"ge": True}}, "where.a.ge"),
        ({"a": {"gt": [1]}}, "where.a.gt"),
        ({"and": {"a": 1}}, "where.and"),
        ({"or": "ab"}, "where.or"),
        ({"or": [{"a": 1}, {"b": {"no": 1}}]}, "where.or[1].b"),
        ({"not": [{"a": 1}]}, "where.not"),
        ({"": 1}, "where."),
        ({".a": 1}, "where..a"),
        ({"a..b": 1}, "where.a..b"),
        ({"[1]": 1}, "where.[1]"),
        ({"[]": 1}, "where.[]"),
        ({"[": 1}, "where.["),
    ],
)
def test_what_is_refused_and_where(where: Any, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_where(where)
    assert str(caught.value).startswith(place)


def nested(levels: int) -> dict[str, Any]:
    where: dict[str, Any] = {"a": 1}
    for _ in range(levels - 1):
        where = {"not": where}
    return where


def test_limits() -> None:
    assert compile_where(nested(WHERE_DEPTH_MAX))({}) in (True, False)
    for levels in (WHERE_DEPTH_MAX + 1, 5_000):
        with pytest.raises(LimitExceededError, match="levels"):
            compile_where(nested(levels))
    many = {"or": [{"a": number} for number in range(WHERE_CONDITIONS_MAX - 1)]}
    assert compile_where(many)({"a": 5}) is True
    with pytest.raises(LimitExceededError, match="conditions"):
        compile_where({"or": [*many["or"], {"a": 1}]})
    with pytest.raises(UsageError):
        compile_where({"[" * 100_000: 1})
