"""The limits are those that the contract names."""

from __future__ import annotations

from muniment.model import limits

CONTRACT = {
    "TEXT_BYTES_MAX": 4 * 2**20,
    "NAME_CHARS_MAX": 256,
    "KEY_CHARS_MAX": 256,
    "SPEAKER_CHARS_MAX": 256,
    "LABEL_CHARS_MAX": 128,
    "SESSION_CHARS_MAX": 256,
    "ACTOR_CHARS_MAX": 256,
    "SOURCE_CHARS_MAX": 256,
    "REQUEST_ID_CHARS_MAX": 128,
    "LABELS_MAX": 64,
    "METADATA_BYTES_MAX": 64 * 2**10,
    "METADATA_DEPTH_MAX": 16,
    "TARGETS_MAX": 10_000,
    "ADD_MANY_MAX": 10_000,
    "ADD_MANY_CHUNK": 1_000,
    "QUERY_CHARS_MAX": 10_000,
    "QUERY_TERMS_MAX": 64,
    "SEARCH_LIMIT_MAX": 1_000,
    "PAGE_MAX": 1_000,
}
"""Source: `engine.md` section 7 and E13."""


def test_limits_of_the_contract() -> None:
    assert {name: getattr(limits, name) for name in CONTRACT} == CONTRACT


def test_a_place_fits_into_64_bits() -> None:
    assert limits.SCOPE_NO_MAX << 32 | limits.SEQ_MAX == 2**63 - 1


def test_a_chunk_fits_into_a_transaction() -> None:
    assert limits.ADD_MANY_CHUNK <= limits.ADD_MANY_MAX
