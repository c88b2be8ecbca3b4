"""Vectors from a server that speaks OpenAI's protocol: `POST {base_url}/embeddings`. Extra `[openai]`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from muniment.adapters.embed.answer import check_answer
from muniment.adapters.embed.optional import import_optional
from muniment.errors import ProviderError, UsageError

BATCH_TEXTS: Final = 128
"""Texts of one request. OpenAI takes 2,048 or 300,000 tokens, whichever is less: that is 128 texts of 2,300 tokens."""

TIMEOUT_S: Final = 30.0
RETRIES: Final = 4
"""With the pauses below, 15 s in all: longer than a rate limit by the second, shorter than a person waits."""
_FIRST_PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0
"""A server that asks for a longer pause is as good as gone."""

_RETRIED: Final = frozenset({408, 409, 429, 500, 502, 503, 504})
"""Answers after which the same request may succeed. Source: RFC 9110, and OpenAI's own client."""


class OpenAIEmbedder:
    """Vectors of a served model, in batches, with retries.

    Raises: UnsupportedError when the extra is not installed; UsageError for numbers that mean nothing.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str = "https://api.openai.com/v1",
        dimension: int | None = None,
        batch_texts: int = BATCH_TEXTS,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`dimension` is asked of the server, where the model can be shortened; None takes what comes."""
        httpx = import_optional("httpx", "'muniment[openai]'")
        if batch_texts < 1 or retries < 0 or timeout_s <= 0 or (dimension is not None and dimension < 1):
            raise UsageError("batch_texts and dimension are 1 or more, retries 0 or more, timeout_s above 0")
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._httpx = httpx
        self._client = httpx.Client(base_url=base_url, headers=headers, timeout=timeout_s)
        self._model, self._dimension, self._asked_dimension = model, dimension, dimension
        self._batch_texts, self._retries, self._sleep = batch_texts, retries, sleep

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def dimension(self) -> int | None:
        """Numbers of a vector; None before the first, unless it was given."""
        return self._dimension

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """One vector per text, in requests of `batch_texts`.

        Raises: ProviderError with `status` where the server refused, cannot be reached, still failed after the retries,
                or answered something else; EmbeddingDimensionError for a vector of another length than before.
        """
        batches = [
            self._embed_batch(list(texts[start : start + self._batch_texts]))
            for start in range(0, len(texts), self._batch_texts)
        ]
        return np.concatenate(batches) if batches else np.zeros((0, self._dimension or 0), dtype=np.float32)

    def close(self) -> None:
        """Close the connections; twice is fine."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _embed_batch(self, texts: list[str]) -> NDArray[np.float32]:
        request: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked_dimension is not None:
            request["dimensions"] = self._asked_dimension
        answer = self._post(request)
        vectors = check_answer(_vectors_in(answer, len(texts)), self._model, len(texts), self._dimension)
        self._dimension = vectors.shape[1]
        return vectors

    def _post(self, request: Mapping[str, Any]) -> object:
        """The server's answer, after as many tries as it takes or are allowed."""
        pause_s = _FIRST_PAUSE_S
        for retries_left in range(self._retries, -1, -1):
            try:
                response = self._client.post("embeddings", json=request)
            except self._httpx.TransportError as error:
                failure = ProviderError(f"the embedding server cannot be reached: {error!r}", status=None)
                failure.__cause__ = error
                asked_s = None
            else:
                if response.is_success:
                    return _parsed(response)
                failure = ProviderError(
                    f"the embedding server answered {response.status_code}: {response.text[:200]}",
                    status=response.status_code,
                )
                if response.status_code not in _RETRIED:
                    raise failure
                asked_s = _seconds(response.headers.get("retry-after"))
            if not retries_left or (asked_s or 0.0) > _PAUSE_MAX_S:
                raise failure
            self._sleep(max(pause_s, asked_s or 0.0))
            pause_s *= 2
        raise AssertionError("the last try returns or raises")


def _parsed(response: Any) -> object:
    try:
        return response.json()
    except ValueError as error:
        raise ProviderError("the embedding server answered something that is not JSON", status=200) from error


def _seconds(retry_after: str | None) -> float | None:
    """The pause a server asks for, if it says so in seconds; a date is left to the usual pauses."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else None


def _vectors_in(answer: object, count: int) -> list[object]:
    """The vectors of an answer by their index, which need not be their order."""
    try:
        entries = cast("Mapping[str, Any]", answer)["data"]
        by_index = {int(entry["index"]): entry["embedding"] for entry in entries}
    except (KeyError, TypeError, ValueError) as error:
        raise ProviderError("the embedding server's answer holds no vectors") from error
    if sorted(by_index) != list(range(count)):
        raise ProviderError(f"the embedding server gave {len(by_index)} vectors for {count} texts")
    return [by_index[index] for index in range(count)]
