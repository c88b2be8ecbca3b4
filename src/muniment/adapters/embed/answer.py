"""What a model answered, checked before anybody uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from muniment.errors import EmbeddingDimensionError, ProviderError


def check_answer(answer: object, name: str, count: int, dimension: int | None) -> NDArray[np.float32]:
    """The vectors as an array, if they are what an embedder owes.

    Shapes: `count` vectors of `dimension` numbers, of one length where that is None, become (count, dimension); no
            vectors (0, 0).
    Raises: ProviderError for too few or too many vectors, an empty one, or a number that is not finite or no number;
            EmbeddingDimensionError for a vector of another length.
    """
    if not isinstance(answer, np.ndarray | Sequence) or isinstance(answer, str | bytes):
        raise ProviderError(f"the embedder {name!r} gave {type(answer).__name__} instead of vectors")
    lengths = [_length_of(vector, name) for vector in cast("Sequence[object]", answer)]
    if len(lengths) != count:
        raise ProviderError(f"the embedder {name!r} gave {len(lengths)} vectors for {count} texts")
    if not lengths:
        return np.zeros((0, dimension or 0), dtype=np.float32)
    if not all(lengths):
        raise ProviderError(f"the embedder {name!r} gave an empty vector")
    expected = dimension if dimension is not None else lengths[0]
    for length in lengths:
        if length != expected:
            raise EmbeddingDimensionError(expected=expected, given=length)
    try:
        with np.errstate(over="ignore"):
            vectors = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ProviderError(f"the embedder {name!r} gave something that is no number") from error
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ProviderError(f"the embedder {name!r} gave a number that is not finite")
    return vectors


def _length_of(vector: object, name: str) -> int:
    if not isinstance(vector, np.ndarray | Sequence) or isinstance(vector, str | bytes):
        raise ProviderError(f"the embedder {name!r} gave {type(vector).__name__} instead of a vector")
    return len(cast("Sequence[object]", vector))
