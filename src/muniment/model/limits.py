"""Every limit of the engine, named with its unit.

They are checked when something is stored, so that `LimitExceededError` reaches the caller as itself.
Source: `engine.md` section 7.
"""

from __future__ import annotations

from typing import Final

TEXT_BYTES_MAX: Final = 4 * 1024 * 1024
"""UTF-8 bytes of one text: a message, document, note, summary or reason."""

NAME_CHARS_MAX: Final = 256
"""Characters of a tenant, a subject, a document's name or its media type and digest."""
KEY_CHARS_MAX: Final = 256
SPEAKER_CHARS_MAX: Final = 256
LABEL_CHARS_MAX: Final = 128
SESSION_CHARS_MAX: Final = 256
ACTOR_CHARS_MAX: Final = 256
SOURCE_CHARS_MAX: Final = 256
REQUEST_ID_CHARS_MAX: Final = 128

FACT_CHARS_MAX: Final = 4_096
"""Characters of a fact, in the facts contract."""

LABELS_MAX: Final = 64
"""Labels of one note."""
METADATA_BYTES_MAX: Final = 64 * 1024
"""Canonical JSON bytes of one note's metadata, or of one recall's request."""
METADATA_DEPTH_MAX: Final = 16
TARGETS_MAX: Final = 10_000
"""Ids in one deletion, erasure, recall or `derived_from`."""

ADD_MANY_MAX: Final = 10_000
"""Events of one transaction."""
ADD_MANY_CHUNK: Final = 1_000
"""Where importers and servers cut, so that nobody waits long for the writer."""

QUERY_CHARS_MAX: Final = 10_000
QUERY_TERMS_MAX: Final = 64
"""Distinct terms of a query that are kept, rarest first."""
SEARCH_LIMIT_MAX: Final = 1_000
WHERE_CONDITIONS_MAX: Final = 1_000
WHERE_DEPTH_MAX: Final = 16
PAGE_MAX: Final = 1_000
"""Events, scopes or items of one page."""

SEQ_MAX: Final = 2**32 - 1
SCOPE_NO_MAX: Final = 2**31 - 1
"""A place is `scope_no << 32 | seq` in a signed 64-bit integer."""
