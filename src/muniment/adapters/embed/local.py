"""A small static model on this machine: a table of word vectors, averaged. No network, no GPU, 20,000 texts a second.

The table is the one that the package `wordllama` brings along (256 dimensions, 16 MB, extra `[local]`). Measured on
LoCoMo, recall@10: 0.74 by keywords alone, 0.76 with it, 0.78 with a MiniLM that takes 100 times as long.

Where it comes from: wordllama is published under the MIT licence. Its authors trained the table from the token
embeddings of Llama 2 70B and Phi 3, so whoever redistributes it may want to read those models' licences too. It knows
English best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from muniment.adapters.embed.optional import find_file, import_optional
from muniment.errors import UnsupportedError

_INSTALL: Final = "'muniment[local]'"
_TABLE: Final = "weights/l2_supercat_256.safetensors"
_TABLE_KEY: Final = "embedding.weight"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"


class LocalEmbedder:
    """The mean of a text's token vectors, of length 1; a text without tokens has the zero vector.

    Raises: UnsupportedError when the extra is not installed.
    Cost:   0.2 s to load, 16 MB; 0.05 ms a text of 100 characters. Safe from many threads.
    """

    def __init__(self) -> None:
        tokenizers = import_optional("tokenizers", _INSTALL)
        safetensors = import_optional("safetensors.numpy", _INSTALL)
        # The files are read without importing wordllama, which would set up logging for the whole process.
        table, tokenizer = find_file("wordllama", _TABLE), find_file("wordllama", _TOKENIZER)
        if table is None or tokenizer is None:
            raise UnsupportedError(f"the local embedder is not installed: pip install {_INSTALL}")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._table: NDArray[Any] = safetensors.load_file(table)[_TABLE_KEY]

    @property
    def name(self) -> str:
        """The model, not the package's version: the table is the same in all of them."""
        return "wordllama-l2-supercat-256"

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return self._table.shape[1]

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shapes: n texts become (n, 256)."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if texts:
            encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
            for vector, tokens in zip(vectors, encoded, strict=True):
                vector[:] = self._mean(tokens.ids)
        return vectors

    def _mean(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """The direction of the mean. Equal tokens are taken once and weighted: a text of 4 MiB needs no gigabyte."""
        if not tokens:
            return np.zeros(self.dimension, dtype=np.float32)
        distinct, counts = np.unique(np.minimum(tokens, len(self._table) - 1), return_counts=True)
        total = counts.astype(np.float32) @ self._table[distinct].astype(np.float32)
        length = np.sqrt(total @ total)
        return total / length if length > 0.0 else total
