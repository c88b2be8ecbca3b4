"""A model of the package sentence-transformers, where that is installed. It brings PyTorch, so it is no extra here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from muniment.adapters.embed.answer import check_answer
from muniment.adapters.embed.optional import import_optional
from muniment.errors import ProviderError, UsageError


class SentenceTransformerEmbedder:
    """Vectors of length 1 by `SentenceTransformer.encode`.

    `model` is a loaded model, or what loads one: a folder, or a name; a name may download the model, which is then the
    caller's wish. `name` is what vectors are kept under; by default the folder's or model's name as given.

    Raises: UnsupportedError without the package; UsageError for a loaded model without a name; ProviderError if it
            cannot be loaded.
    """

    def __init__(self, model: object, *, name: str | None = None) -> None:
        if isinstance(model, str | Path):
            self._model, self._name = _load(str(model)), name or str(model)
        elif name is not None:
            self._model, self._name = cast("Any", model), name
        else:
            raise UsageError("a loaded model does not tell its name: give name=")

    @property
    def name(self) -> str:
        """What the vectors are kept under."""
        return self._name

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shapes: n texts become (n, dimension).

        Raises: ProviderError if the model fails or gives something else.
        """
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        try:
            answer = self._model.encode(
                list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
            )
        except Exception as error:  # PyTorch raises whatever it likes
            raise ProviderError(f"the model {self._name!r} failed: {error}") from error
        return check_answer(answer, self._name, len(texts), self.dimension)


def _load(model: str) -> Any:
    package = import_optional("sentence_transformers", "sentence-transformers")
    try:
        return package.SentenceTransformer(model)
    except Exception as error:  # a missing folder, a bad file, no network: each its own error
        raise ProviderError(f"the model {model!r} cannot be loaded: {error}") from error
