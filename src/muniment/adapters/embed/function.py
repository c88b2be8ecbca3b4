"""A plain function as an embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from muniment.adapters.embed.answer import check_answer
from muniment.errors import MunimentError, ProviderError, UsageError

EmbeddingFunction = Callable[[list[str]], Sequence[Sequence[float]]]


class CallableEmbedder:
    """Texts to vectors by a function that the caller gives; its dimension shows with the first vector.

    Raises: UsageError for a dimension below 1.
    """

    def __init__(self, function: EmbeddingFunction, *, dimension: int | None = None, name: str = "callable") -> None:
        if dimension is not None and dimension < 1:
            raise UsageError(f"a dimension is 1 or more, not {dimension}")
        self._function = function
        self._dimension = dimension
        self._name = name

    @property
    def name(self) -> str:
        """Plain functions have no identity: one is taken for another unless it is given a name."""
        return self._name

    @property
    def dimension(self) -> int | None:
        """Numbers of a vector; None before the first."""
        return self._dimension

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """One vector per text, by one call of the function; no call for no texts.

        Raises: ProviderError if the function raises or gives something else; EmbeddingDimensionError for a vector of
                another length than before.
        """
        if not texts:
            return np.zeros((0, self._dimension or 0), dtype=np.float32)
        try:
            answer = self._function(list(texts))
        except MunimentError:
            raise
        except Exception as error:  # foreign code: whatever it raises is the provider's failure
            raise ProviderError(f"the embedder {self._name!r} failed: {error}") from error
        vectors = check_answer(answer, self._name, len(texts), self._dimension)
        self._dimension = vectors.shape[1]
        return vectors
