"""Embedders on functions and models: `muniment.adapters.embed`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from muniment.adapters.embed import NAMED, CallableEmbedder, open_embedder
from muniment.adapters.embed.answer import check_answer
from muniment.adapters.embed.local import LocalEmbedder
from muniment.adapters.embed.onnx import OnnxEmbedder
from muniment.adapters.embed.optional import find_file, import_optional
from muniment.adapters.embed.sentence_transformers import SentenceTransformerEmbedder
from muniment.errors import EmbeddingDimensionError, ProviderError, UnsupportedError, UsageError
from muniment.ports.embedder import Embedder

# --- answers ------------------------------------------------------------------------------------------------------


def test_an_answer_becomes_an_array() -> None:
    vectors = check_answer([[1, 2], (3.5, 4)], "m", 2, None)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2], [3.5, 4]]
    assert check_answer(np.ones((2, 3)), "m", 2, 3).shape == (2, 3)
    assert check_answer([], "m", 0, 3).shape == (0, 3)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        {"a": 1},
        [],
        [[1.0]],
        [[1.0], [1.0], [1.0]],
        [[1.0], []],
        [[], []],
        [[1.0], None],
        [[1.0], "a"],
        [1.0, 2.0],
        [["a"], ["b"]],
        [[None], [1.0]],
        [[math.nan], [1.0]],
        [[1.0], [math.inf]],
        [[1e300], [1.0]],
        [[[1.0]], [[1.0]]],
        np.ones((2, 2, 2)),
        np.ones(2),
    ],
)
def test_answers_that_are_no_vectors_are_the_providers_failure(answer: object) -> None:
    with pytest.raises(ProviderError, match="'m'"):
        check_answer(answer, "m", 2, None)


@pytest.mark.parametrize(("answer", "dimension"), [([[1.0, 2.0]] * 2, 3), ([[1.0, 2.0], [1.0]], None)])
def test_vectors_of_another_length_are_told(answer: object, dimension: int | None) -> None:
    with pytest.raises(EmbeddingDimensionError) as raised:
        check_answer(answer, "m", 2, dimension)
    assert raised.value.expected == (dimension or 2)


# --- functions ----------------------------------------------------------------------------------------------------


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def test_a_function_is_an_embedder() -> None:
    embedder = open_embedder(lengths)
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimension) == ("callable", None)
    assert embedder.embed(["a", "bcd"]).tolist() == [[1, 1], [3, 1]]
    assert embedder.dimension == 2


def test_a_function_is_called_once_with_all_texts_and_not_for_none() -> None:
    calls: list[list[str]] = []

    def function(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        return lengths(texts)

    embedder = CallableEmbedder(function, dimension=2)
    assert embedder.embed([]).shape == (0, 2)
    embedder.embed(("a", "b"))
    assert calls == [["a", "b"]]


def test_a_functions_dimension_stays() -> None:
    embedder = CallableEmbedder(lambda texts: [[1.0] * len(text) for text in texts])
    embedder.embed(["abc"])
    with pytest.raises(EmbeddingDimensionError):
        embedder.embed(["abcd"])


def test_what_a_function_raises_is_the_cause() -> None:
    def broken(texts: list[str]) -> list[list[float]]:
        raise KeyError(texts[0])

    with pytest.raises(ProviderError, match="'callable' failed") as raised:
        CallableEmbedder(broken).embed(["a"])
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_error_of_ours_passes_through() -> None:
    def refused(texts: list[str]) -> list[list[float]]:
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        CallableEmbedder(refused).embed(["a"])


@pytest.mark.parametrize("dimension", [0, -1])
def test_a_dimension_is_one_or_more(dimension: int) -> None:
    with pytest.raises(UsageError):
        CallableEmbedder(lengths, dimension=dimension)


# --- names --------------------------------------------------------------------------------------------------------


def test_an_embedder_is_itself() -> None:
    embedder = CallableEmbedder(lengths)
    assert open_embedder(embedder) is embedder


@pytest.mark.parametrize("wrong", ["word2vec", 5, None])
def test_what_is_no_embedder_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        open_embedder(wrong)


def test_what_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(UnsupportedError, match=r"pip install 'muniment\[local\]'"):
        import_optional("muniment_of_nowhere", "'muniment[local]'")
    assert find_file("muniment_of_nowhere", "x") is None
    assert find_file("muniment", "x") is None
    assert find_file("muniment", "errors.py") is not None


# --- models -------------------------------------------------------------------------------------------------------

TEXTS = ["The cat sat on the mat.", "A kitten was sitting on a rug.", "Quarterly revenue rose by four percent."]


@pytest.mark.parametrize("name", list(NAMED))
def test_a_model_keeps_the_laws_of_the_port(name: str) -> None:
    embedder = NAMED[name]()
    assert NAMED[name]().name == embedder.name
    together = embedder.embed(TEXTS)
    assert together.dtype == np.float32
    assert together.shape == (3, embedder.dimension)
    assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    # A text's vector depends on nothing but the text.
    assert together.tolist() == [embedder.embed([text])[0].tolist() for text in TEXTS]
    similar, other = together[0] @ together[1], together[0] @ together[2]
    assert similar > other + 0.1


@pytest.mark.parametrize("name", list(NAMED))
def test_a_model_takes_any_text(name: str) -> None:
    embedder = NAMED[name]()
    assert embedder.embed([]).shape == (0, embedder.dimension)
    vectors = embedder.embed(["", "🚀", "日本語", "\x00", "word " * 20_000])
    assert np.isfinite(vectors).all()


def test_a_file_that_is_no_model_is_the_providers_failure(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no")
    (tmp_path / "tokenizer.json").write_text("no")
    with pytest.raises(ProviderError, match="cannot be loaded"):
        OnnxEmbedder(tmp_path / "model.onnx", tmp_path / "tokenizer.json", name="m")


def test_models_without_their_files_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("local", "onnx"):
        monkeypatch.setattr(f"muniment.adapters.embed.{module}.find_file", lambda package, file: None)
        monkeypatch.setattr(
            f"muniment.adapters.embed.{module}.import_optional", lambda module, install: ModuleType("x")
        )
    with pytest.raises(UnsupportedError, match=r"muniment\[local\]"):
        LocalEmbedder()
    with pytest.raises(UnsupportedError, match=r"muniment\[onnx\]"):
        OnnxEmbedder.minilm()


class FakeSentenceTransformer:
    """What the adapter uses of the real one."""

    def __init__(self, folder: str = "") -> None:
        if folder == "missing":
            raise OSError("no such folder")

    def get_sentence_embedding_dimension(self) -> int:
        return 2

    def encode(self, texts: Sequence[str], **options: object) -> Any:
        assert options == {"normalize_embeddings": True, "convert_to_numpy": True, "show_progress_bar": False}
        if "broken" in texts:
            raise RuntimeError("out of memory")
        return np.array([[0.6, 0.8]] * len(texts))


@pytest.fixture
def fake_package(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("sentence_transformers")
    package.SentenceTransformer = FakeSentenceTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)


@pytest.mark.usefixtures("fake_package")
def test_a_sentence_transformer_by_name() -> None:
    embedder = SentenceTransformerEmbedder("a/model")
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimension) == ("a/model", 2)
    assert embedder.embed(["x", "y"]).shape == (2, 2)
    assert embedder.embed([]).shape == (0, 2)
    with pytest.raises(ProviderError, match="out of memory"):
        embedder.embed(["broken"])
    with pytest.raises(ProviderError, match="no such folder"):
        SentenceTransformerEmbedder("missing")


def test_a_loaded_sentence_transformer_needs_a_name() -> None:
    assert SentenceTransformerEmbedder(FakeSentenceTransformer(), name="mine").name == "mine"
    with pytest.raises(UsageError):
        SentenceTransformerEmbedder(FakeSentenceTransformer())
