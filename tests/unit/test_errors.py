"""The errors of the package: one tree, stable codes, and all that they carry survives a process border."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from muniment import errors
from muniment.errors import (
    CleanPendingError,
    ClosedError,
    ConflictError,
    DuplicateEventError,
    EmbeddingDimensionError,
    IntegrityError,
    LimitExceededError,
    MemoryIndexError,
    MunimentError,
    NotFoundError,
    ProviderError,
    SchemaMismatchError,
    StorageBusyError,
    StorageError,
    StorageUnavailableError,
    UsageError,
)

CLASSES = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, MunimentError)]
BUILT_WITH_ARGUMENTS = (LimitExceededError, DuplicateEventError)

CODES = {
    "MunimentError": "error",
    "UsageError": "usage",
    "LimitExceededError": "limit_exceeded",
    "UnsupportedError": "unsupported",
    "ClosedError": "closed",
    "EmbeddingDimensionError": "embedding_dimension",
    "EmbeddingUnavailableError": "embedding_unavailable",
    "NotFoundError": "not_found",
    "MemoryIndexError": "memory_index",
    "ConflictError": "conflict",
    "DuplicateEventError": "duplicate_event",
    "StorageError": "storage",
    "StorageBusyError": "storage_busy",
    "CleanPendingError": "clean_pending",
    "StorageUnavailableError": "storage_unavailable",
    "StorageFullError": "storage_full",
    "SchemaMismatchError": "schema_mismatch",
    "IntegrityError": "integrity",
    "ProviderError": "provider",
    "PermissionDeniedError": "permission_denied",
}
"""They travel over every edge, so a client may compare them: a change here is a change of the API."""

SAMPLES: list[MunimentError] = [
    *[kind() for kind in CLASSES if kind not in BUILT_WITH_ARGUMENTS],
    MunimentError("text", anything=[1, 2]),
    LimitExceededError("text", limit=4, given=5, unit="bytes"),
    EmbeddingDimensionError(expected=384, given=3),
    MemoryIndexError(index=7, length=3),
    ConflictError("somebody was faster", expected=3, actual=4),
    DuplicateEventError("0d1f"),
    SchemaMismatchError("newer", found=9, wanted=1),
    IntegrityError("damaged", seq=3, expected="aa", found="bb"),
]


def drawn_tree() -> dict[str, tuple[str | None, list[str]]]:
    """The tree in the docstring: class -> its parent, and the other bases in brackets."""
    drawing = (errors.__doc__ or "").split("```")[1].strip().splitlines()
    tree: dict[str, tuple[str | None, list[str]]] = {}
    path: list[str] = []
    for line in drawing:
        found = re.match(r"([│├└─ ]*)(\w+)(?: \(([\w, ]+)\))?", line)
        assert found is not None, line
        depth = len(found[1]) // 4
        del path[depth:]
        tree[found[2]] = (path[-1] if path else None, (found[3] or "").split(", ") if found[3] else [])
        path.append(found[2])
    return tree


def test_the_tree_that_is_drawn_is_the_tree_that_is() -> None:
    built = {
        kind.__name__: (
            None if kind is MunimentError else kind.__bases__[0].__name__,
            [base.__name__ for base in kind.__bases__[1:]],
        )
        for kind in CLASSES
    }
    assert drawn_tree() == built


def test_codes_are_stable_and_unique() -> None:
    assert {kind.__name__: kind.code for kind in CLASSES} == CODES
    assert len(set(CODES.values())) == len(CODES)
    assert all("code" in vars(kind) for kind in CLASSES)


def test_what_may_be_retried() -> None:
    retryable = {kind for kind in CLASSES if kind.retryable}
    assert retryable == {StorageBusyError, CleanPendingError, StorageUnavailableError, ProviderError}


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind not in BUILT_WITH_ARGUMENTS])
def test_the_default_message_is_the_first_line_of_the_docstring(kind: type[MunimentError]) -> None:
    first_line = (kind.__doc__ or "").split("\n", 1)[0]
    assert first_line
    assert kind().message == str(kind()) == first_line
    assert str(kind("another message")) == "another message"


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_has_a_docstring_of_its_own(kind: type[MunimentError]) -> None:
    assert "__doc__" in vars(kind)
    assert (kind.__doc__ or "").split("\n", 1)[0].endswith(".")


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_cross_a_process_border_whole(error: MunimentError, protocol: int) -> None:
    for again in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert again.args == error.args


def test_the_builtin_errors_that_callers_know() -> None:
    assert issubclass(UsageError, ValueError)
    assert issubclass(ClosedError, ValueError)
    assert issubclass(NotFoundError, LookupError)
    assert issubclass(MemoryIndexError, IndexError)
    assert issubclass(DuplicateEventError, ConflictError)
    assert issubclass(DuplicateEventError, ValueError)
    assert not issubclass(StorageError, ValueError)


def test_messages_that_are_made_of_attributes() -> None:
    limit = LimitExceededError("label", limit=128, given=129, unit="characters")
    assert str(limit) == "label is over its limit: 129 given, at most 128 characters"
    assert (limit.name, limit.limit, limit.given, limit.unit) == ("label", 128, 129, "characters")
    assert str(LimitExceededError("labels", limit=64, given=65)) == "labels is over its limit: 65 given, at most 64"
    assert (
        str(EmbeddingDimensionError(expected=384, given=3)) == "a vector of 3 numbers was given where vectors have 384"
    )
    assert str(MemoryIndexError(index=-4, length=3)) == "no entry at index -4: the store has 3"
    assert str(DuplicateEventError("0d1f")) == "event 0d1f is already in this ledger; nothing was stored"


def test_attributes_of_an_error_that_was_given_none() -> None:
    error = IntegrityError()
    assert (error.seq, error.expected, error.found) == (None, None, None)
    assert MunimentError("text", scope="a").__dict__ == {"message": "text", "scope": "a"}
