"""Quantised vectors and their exact cosines: `muniment.core.vectors`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from muniment.core import vectors
from muniment.core.vectors import CODE_MAX, cosines, inverse_norms, quantise
from muniment.errors import EmbeddingDimensionError, UsageError


def test_the_largest_number_becomes_127() -> None:
    codes, scale = quantise([0.5, -2.0, 0.0])
    assert codes.tolist() == [32, -127, 0]
    assert scale == pytest.approx(2.0 / 127)


def test_a_zero_vector_has_no_direction() -> None:
    codes, scales = quantise([[0.0, 0.0], [1.0, 0.0]])
    assert codes.tolist() == [[0, 0], [127, 0]]
    assert scales.tolist() == [0.0, pytest.approx(1 / 127)]
    assert inverse_norms(codes).tolist() == [0.0, 1 / 127]


def test_no_vectors_are_no_codes() -> None:
    codes, scales = quantise(np.zeros((0, 3)))
    assert (codes.shape, scales.shape) == ((0, 3), (0,))
    assert cosines(codes, inverse_norms(codes), np.zeros(3, np.int8)).tolist() == []


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(number: float) -> None:
    with pytest.raises(UsageError):
        quantise([[1.0, 0.0], [number, 0.0]])


def test_a_query_of_another_length_is_refused() -> None:
    codes, _ = quantise([[1.0, 0.0]])
    with pytest.raises(EmbeddingDimensionError):
        cosines(codes, inverse_norms(codes), np.ones(3, np.int8))


@given(arrays.arrays(np.float32, (3, 5), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_codes_are_within_half_a_step(numbers: np.ndarray) -> None:
    codes, scales = quantise(numbers)
    assert np.abs(codes.astype(int)).max() <= CODE_MAX
    step = np.abs(numbers.astype(np.float64)).max(axis=1) / CODE_MAX
    error = np.abs(codes * step[:, np.newaxis] - numbers)
    assert (error <= step[:, np.newaxis] * 0.500001).all()
    assert np.allclose(scales, step, rtol=1e-6, atol=1e-44)


@pytest.mark.parametrize("dimension", [1, 3, 256, 1_040, 1_041, 3_072])
@pytest.mark.parametrize("extreme", [False, True])
def test_cosines_are_exact(dimension: int, extreme: bool) -> None:
    random = np.random.default_rng(dimension)
    codes = random.integers(-127, 128, (50, dimension), dtype=np.int8)
    query = random.integers(-127, 128, dimension, dtype=np.int8)
    if extreme:
        codes[:], query[:] = CODE_MAX, CODE_MAX
        codes[0, 0] = CODE_MAX - 1
    for row, cosine in zip(codes.tolist(), cosines(codes, inverse_norms(codes), query).tolist(), strict=True):
        product = sum(a * b for a, b in zip(row, query.tolist(), strict=True))
        lengths = [1 / math.sqrt(sum(code * code for code in vector)) for vector in (row, query.tolist())]
        assert cosine == product * lengths[0] * lengths[1]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    codes = random.integers(-127, 128, (100, 16), dtype=np.int8)
    query = random.integers(-127, 128, 16, dtype=np.int8)
    whole = cosines(codes, inverse_norms(codes), query)
    monkeypatch.setattr(vectors, "_BLOCK_CODES", 7 * 16)
    assert cosines(codes, inverse_norms(codes), query).tolist() == whole.tolist()
