"""The embedder port on functions and on models. Each module says what it needs; nothing is loaded before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from muniment.adapters.embed.function import CallableEmbedder, EmbeddingFunction
from muniment.errors import UsageError
from muniment.ports.embedder import Embedder

if TYPE_CHECKING:
    from muniment.adapters.embed.local import LocalEmbedder
    from muniment.adapters.embed.onnx import OnnxEmbedder

__all__ = ["NAMED", "CallableEmbedder", "open_embedder"]


def _open_local() -> LocalEmbedder:
    from muniment.adapters.embed.local import LocalEmbedder

    return LocalEmbedder()


def _open_minilm() -> OnnxEmbedder:
    from muniment.adapters.embed.onnx import OnnxEmbedder

    return OnnxEmbedder.minilm()


NAMED: Final[dict[str, Callable[[], Embedder]]] = {"local": _open_local, "minilm": _open_minilm}
"""The embedders that a word opens."""


def open_embedder(embedder: Embedder | EmbeddingFunction | str) -> Embedder:
    """The embedder meant: itself, a function made one, or one of `NAMED`.

    Raises: UsageError for anything else; UnsupportedError when its extra is not installed.
    """
    if isinstance(embedder, str):
        if embedder not in NAMED:
            raise UsageError(f"embedder {embedder!r} is not one of {', '.join(NAMED)}")
        return NAMED[embedder]()
    if isinstance(embedder, Embedder):
        return embedder
    if callable(embedder):
        return CallableEmbedder(embedder)
    raise UsageError(f"embedder is an Embedder, a function of texts or a name, not {cast('object', embedder)!r}")
