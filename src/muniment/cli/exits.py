"""Exit codes by class of error: the one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from muniment import errors

OK: Final = 0
PROBLEM: Final = 1
"""`verify` or `doctor` did its work and found something wrong."""
USAGE: Final = 2
NOT_FOUND: Final = 3
CONFLICT: Final = 4
STORAGE: Final = 5
INTEGRITY: Final = 6
PROVIDER: Final = 7
PERMISSION: Final = 8
BUG: Final = 70
"""EX_SOFTWARE of sysexits.h."""
IO: Final = 74
"""EX_IOERR: the output, or a file on the way, could not be written or read."""
BUSY: Final = 75
"""EX_TEMPFAIL: the same command may succeed later."""
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells have it."""
BROKEN_PIPE: Final = 141
"""128 + SIGPIPE."""

EXIT_CODES: Final[Mapping[type[errors.MunimentError], int]] = {
    errors.MunimentError: BUG,
    errors.UsageError: USAGE,
    errors.LimitExceededError: USAGE,
    errors.UnsupportedError: USAGE,
    errors.ClosedError: USAGE,
    errors.EmbeddingDimensionError: USAGE,
    errors.EmbeddingUnavailableError: USAGE,
    errors.NotFoundError: NOT_FOUND,
    errors.MemoryIndexError: NOT_FOUND,
    errors.ConflictError: CONFLICT,
    errors.DuplicateEventError: CONFLICT,
    errors.StorageError: STORAGE,
    errors.StorageBusyError: BUSY,
    errors.CleanPendingError: BUSY,
    errors.StorageUnavailableError: STORAGE,
    errors.StorageFullError: STORAGE,
    errors.SchemaMismatchError: STORAGE,
    errors.IntegrityError: INTEGRITY,
    errors.ProviderError: PROVIDER,
    errors.PermissionDeniedError: PERMISSION,
}


def exit_code_of(kind: type[errors.MunimentError]) -> int:
    """The exit code of a class of error, or of the nearest one above it that is in the table."""
    return next(EXIT_CODES[parent] for parent in kind.__mro__ if parent in EXIT_CODES)
