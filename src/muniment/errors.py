"""Every error of the package, split by who must act.

```
MunimentError
├── UsageError (ValueError)              the caller's mistake; never retry
│   ├── LimitExceededError               names the limit, its value and the value given
│   ├── UnsupportedError
│   ├── ClosedError
│   ├── EmbeddingDimensionError
│   └── EmbeddingUnavailableError
├── NotFoundError (LookupError)
│   └── MemoryIndexError (IndexError)
├── ConflictError                        read again and retry
│   └── DuplicateEventError (ValueError)
├── StorageError                         __cause__ is the driver's
│   ├── StorageBusyError                 retryable
│   │   └── CleanPendingError            the content is already unreachable
│   ├── StorageUnavailableError          retryable
│   ├── StorageFullError                 the operator makes room
│   ├── SchemaMismatchError              found, wanted, the command that fixes it
│   └── IntegrityError                   stop, never repair silently
├── ProviderError                        an embedder or a model
└── PermissionDeniedError                for the edges
```

A class's docstring is its default message. `code` is stable and travels over every edge; `retryable` says whether the
same call may succeed later without anybody acting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar


class MunimentError(Exception):
    """Something in the memory engine failed."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    num_stored: int = 0
    """Of a call that stores in several transactions: how many entries it had stored when it failed."""
    failed_scope: object = None
    """Of such a call: the scope whose transaction failed."""

    def __init__(self, message: str | None = None, **attributes: Any) -> None:
        self.message = message if message is not None else (type(self).__doc__ or "").split("\n", 1)[0]
        super().__init__(self.message)
        for name, value in attributes.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_error, (type(self), self.message, dict(self.__dict__)))


def _rebuild_error(kind: type[MunimentError], message: str, attributes: dict[str, Any]) -> MunimentError:
    error = kind.__new__(kind)
    MunimentError.__init__(error, message)
    error.__dict__.update(attributes)
    return error


class UsageError(MunimentError, ValueError):
    """The call is not one that can be answered: change it."""

    code = "usage"


class LimitExceededError(UsageError):
    """A value is above its limit."""

    code = "limit_exceeded"

    def __init__(self, name: str, *, limit: int, given: int, unit: str = "") -> None:
        super().__init__(f"{name} is over its limit: {given} given, at most {limit}{' ' + unit if unit else ''}")
        self.name = name
        self.limit = limit
        self.given = given
        self.unit = unit


class UnsupportedError(UsageError):
    """This backend or build cannot do that."""

    code = "unsupported"


class ClosedError(UsageError):
    """It is closed: open it again before use."""

    code = "closed"


class EmbeddingDimensionError(UsageError):
    """A vector has another length than the archive's vectors."""

    code = "embedding_dimension"

    def __init__(self, message: str | None = None, *, expected: int | None = None, given: int | None = None) -> None:
        if message is None and expected is not None:
            message = f"a vector of {given} numbers was given where vectors have {expected}"
        super().__init__(message)
        self.expected = expected
        self.given = given


class EmbeddingUnavailableError(UsageError):
    """Vectors were asked for and there is no embedder that can make them."""

    code = "embedding_unavailable"


class NotFoundError(MunimentError, LookupError):
    """There is nothing under that name in this scope."""

    code = "not_found"


class MemoryIndexError(NotFoundError, IndexError):
    """There is no entry at that index."""

    code = "memory_index"

    def __init__(self, message: str | None = None, *, index: int | None = None, length: int | None = None) -> None:
        if message is None and index is not None:
            message = f"no entry at index {index}: the store has {length}"
        super().__init__(message)
        self.index = index
        self.length = length


class ConflictError(MunimentError):
    """Somebody else changed it first: read again and retry."""

    code = "conflict"

    receipts: Sequence[object] = ()
    """Of a tenant that could not be dropped whole: the receipts of the scopes that are erased."""

    def __init__(self, message: str | None = None, *, expected: object = None, actual: object = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.actual = actual


class DuplicateEventError(ConflictError, ValueError):
    """The ledger already holds an event with that id."""

    code = "duplicate_event"

    def __init__(self, event_id: str) -> None:
        super().__init__(f"event {event_id} is already in this ledger; nothing was stored")
        self.event_id = event_id


class StorageError(MunimentError):
    """The storage failed."""

    code = "storage"


class StorageBusyError(StorageError):
    """Other writers held the storage for longer than the timeout: retry."""

    code = "storage_busy"
    retryable = True


class CleanPendingError(StorageBusyError):
    """The content is already unreachable, but the files still hold bytes of it: run the clean step again."""

    code = "clean_pending"

    receipt: object = None
    """The receipt of the destruction."""
    count: int = 0
    """How many facts it destroyed."""


class StorageUnavailableError(StorageError):
    """The storage cannot be reached or opened."""

    code = "storage_unavailable"
    retryable = True


class StorageFullError(StorageError):
    """There is no room left for the write; nothing of it was stored."""

    code = "storage_full"


class SchemaMismatchError(StorageError):
    """The archive's schema is not the one this version works with."""

    code = "schema_mismatch"

    def __init__(self, message: str | None = None, *, found: int | None = None, wanted: int | None = None) -> None:
        super().__init__(message)
        self.found = found
        self.wanted = wanted


class IntegrityError(StorageError):
    """What is stored is not what was written: stop, and verify the archive."""

    code = "integrity"

    def __init__(
        self,
        message: str | None = None,
        *,
        seq: int | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        super().__init__(message)
        self.seq = seq
        self.expected = expected
        self.found = found


class ProviderError(MunimentError):
    """An embedder or a model failed; its error is the cause."""

    code = "provider"
    retryable = True


class PermissionDeniedError(MunimentError):
    """This caller may not do that."""

    code = "permission_denied"
