"""The vectors of an archive: its current model, and the embedder that was opened with it.

One model at a time is current. Vectors that another model made are never compared with its own: until `reindex` has
switched, additions store no vector, and a search that needs one says what is in the way.

Source: `engine.md` E12, `service.md` S14 to S16.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from muniment.core.vectors import cosines, inverse_norms, quantise
from muniment.errors import (
    EmbeddingDimensionError,
    EmbeddingUnavailableError,
    MunimentError,
    ProviderError,
    UsageError,
)
from muniment.model.rows import ModelRow
from muniment.ports.embedder import Embedder
from muniment.ports.storage import Storage

OnEmbedError = Literal["raise", "keyword"]

CURRENT_MODEL: Final = "embedding_model"
"""The setting that holds the number of the current model."""

UNNAMED: Final = "callable"
"""The name of a plain function, which has no identity to probe."""

_PROBE_TEXT: Final = "The quick brown fox jumps over the lazy dog; 42 pumps failed on Tuesday."
_PROBE_COSINE_MIN: Final = 0.995
"""Two machines give vectors of one model that differ in their last bits; another model's differ by far more."""


class VectorSpace:
    """The embedder of an opened archive against the model that its vectors were made with. Safe from many threads."""

    def __init__(self, storage: Storage, embedder: Embedder | None, on_embed_error: OnEmbedError) -> None:
        self._storage = storage
        self.embedder = embedder
        self.on_embed_error: OnEmbedError = on_embed_error
        self._lock = threading.Lock()
        self._model: ModelRow | None = None
        """The current model, once it is known that the embedder is it."""

    @property
    def has_embedder(self) -> bool:
        return self.embedder is not None

    def find_current(self) -> ModelRow | None:
        """The model that the archive's vectors are searched with, whatever the embedder is."""
        if self._model is not None:
            return self._model
        number = self._storage.find_settings().get(CURRENT_MODEL)
        if number is None:
            return None
        return next((model for model in self._storage.find_models() if model.model_no == int(number)), None)

    def embed_query(self, text: str) -> tuple[ModelRow, bytes]:
        """The query's vector as codes, and the model it belongs to.

        Raises: EmbeddingUnavailableError without an embedder, or with one of another model; ProviderError;
                EmbeddingDimensionError.
        """
        codes = self._embed([text])
        model = self._model_for(codes)
        return model, codes[0].tobytes()

    def embed_items(
        self, texts: Sequence[str], *, on_error: OnEmbedError | None = None
    ) -> tuple[ModelRow, list[bytes]] | None:
        """The items' vectors as codes, or None where they are stored without: no embedder, or one of another model.

        `on_error` stands in for what the archive was opened with.

        Raises: ProviderError unless it is "keyword"; EmbeddingDimensionError.
        """
        if self.embedder is None or not texts:
            return None
        try:
            codes = self._embed(texts)
            return self._model_for(codes), [row.tobytes() for row in codes]
        except EmbeddingUnavailableError:
            return None
        except ProviderError:
            if (on_error or self.on_embed_error) == "raise":
                raise
            return None

    def quantise_query(self, vector: Sequence[float]) -> tuple[ModelRow | None, bytes]:
        """A vector that the caller made, as codes, and the current model.

        Raises: EmbeddingDimensionError for another length than the archive's vectors; UsageError for numbers that are
                not finite.
        """
        model = self.find_current()
        codes, _ = quantise(np.asarray(vector, dtype=np.float32))
        if model is not None and len(codes) != model.dimension:
            raise EmbeddingDimensionError(expected=model.dimension, given=len(codes))
        return model, codes.tobytes()

    def begin_reindex(self) -> ModelRow:
        """The row of the embedder's model, which may not be current yet.

        Raises: EmbeddingUnavailableError without an embedder.
        """
        codes = self._embed([_PROBE_TEXT])
        return self._row_of(codes.shape[1])

    def embed_for(self, model: ModelRow, texts: Sequence[str]) -> list[bytes]:
        """The items' vectors under a model that `begin_reindex` gave."""
        codes = self._embed(texts)
        if codes.shape[1] != model.dimension:
            raise EmbeddingDimensionError(expected=model.dimension, given=codes.shape[1])
        return [row.tobytes() for row in codes]

    def make_current(self, model: ModelRow) -> None:
        """From now on, search and add with that model."""
        with self._lock:
            self._storage.keep_setting(CURRENT_MODEL, str(model.model_no))
            self._model = model

    # --- Embedding ----------------------------------------------------------------------------------------------------

    def _embed(self, texts: Sequence[str]) -> NDArray[np.int8]:
        """Shapes: n texts become codes (n, dimension)."""
        embedder = self.embedder
        if embedder is None:
            raise EmbeddingUnavailableError("vectors were asked for, but the archive was opened without an embedder")
        try:
            vectors = np.asarray(embedder.embed(list(texts)), dtype=np.float32)
        except MunimentError:
            raise
        except Exception as error:  # an embedder is foreign code, whatever it raises is its failure
            raise ProviderError(f"the embedder {embedder.name!r} failed: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise ProviderError(
                f"the embedder {embedder.name!r} gave an array of shape {vectors.shape} for {len(texts)} texts"
            )
        try:
            codes, _ = quantise(vectors)
        except UsageError as error:
            raise ProviderError(f"the embedder {embedder.name!r} gave a number that is not finite") from error
        return codes

    def _model_for(self, codes: NDArray[np.int8]) -> ModelRow:
        """The current model, which the embedder of these codes must be; the first embedder of an archive becomes it."""
        dimension = codes.shape[1]
        with self._lock:
            if self._model is None:
                self._model = self._agree(dimension)
            model = self._model
        if dimension != model.dimension:
            raise EmbeddingDimensionError(expected=model.dimension, given=dimension)
        return model

    def _agree(self, dimension: int) -> ModelRow:
        current = self.find_current()
        if current is None:
            row = self._row_of(dimension)
            self._storage.keep_setting(CURRENT_MODEL, str(row.model_no))
            return row
        name = self._name
        if current.name == UNNAMED == name:
            return current
        if current.name != name or current.dimension != dimension or not self._is_probed_as(current):
            raise EmbeddingUnavailableError(
                f"the archive's vectors are of model {current.name!r} ({current.dimension} numbers), and it was opened "
                f"with {name!r} ({dimension} numbers): open it with the former, or run `muniment reindex` to switch"
            )
        return current

    def _row_of(self, dimension: int) -> ModelRow:
        """The stored row of the embedder's model, new if it is not there."""
        name = self._name
        for row in self._storage.find_models():
            if row.name == name and row.dimension == dimension and self._is_probed_as(row):
                return row
        return self._storage.keep_model(name, dimension, self._probe())

    def _is_probed_as(self, model: ModelRow) -> bool:
        probe = self._probe()
        if probe == model.probe:
            return True
        if len(probe) != len(model.probe):
            return False
        mine = np.frombuffer(probe, np.int8)[np.newaxis]
        return bool(cosines(mine, inverse_norms(mine), np.frombuffer(model.probe, np.int8))[0] >= _PROBE_COSINE_MIN)

    def _probe(self) -> bytes:
        return b"" if self._name == UNNAMED else self._embed([_PROBE_TEXT])[0].tobytes()

    @property
    def _name(self) -> str:
        if self.embedder is None:
            raise EmbeddingUnavailableError
        return self.embedder.name
