"""The embedder that asks a server, against a real server on a local socket: `muniment.adapters.embed.openai`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from muniment.adapters.embed.openai import RETRIES, OpenAIEmbedder
from muniment.errors import EmbeddingDimensionError, ProviderError, UsageError
from muniment.ports.embedder import Embedder

Answer = tuple[int, dict[str, str], bytes]


def vectors_for(request: dict[str, Any]) -> Answer:
    """A vector of the text's length, in an order that is not the texts'."""
    size = request.get("dimensions", 2)
    data = [{"index": i, "embedding": [float(len(text))] * size} for i, text in enumerate(request["input"])]
    return 200, {}, json.dumps({"data": data[::-1]}).encode()


@dataclass
class Server:
    """Answers with what is next in `answers`, then with vectors."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def embedder(self, **options: Any) -> OpenAIEmbedder:
        return OpenAIEmbedder("m", base_url=self.url, sleep=self.pauses.append, **options)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(request)
            state.keys.append(self.headers["Authorization"])
            state.paths.append(self.path)
            status, headers, body = state.answers.pop(0) if state.answers else vectors_for(request)
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            """Say nothing."""

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    state.url = f"http://127.0.0.1:{listener.server_port}/v1"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    listener.shutdown()
    listener.server_close()
    thread.join()


def test_texts_become_vectors_in_their_order(server: Server) -> None:
    with server.embedder(api_key="secret") as embedder:
        assert isinstance(embedder, Embedder)
        assert (embedder.name, embedder.dimension) == ("m", None)
        assert embedder.embed(["a", "bb", "ccc"]).tolist() == [[1, 1], [2, 2], [3, 3]]
        assert embedder.dimension == 2
    assert server.requests == [{"model": "m", "input": ["a", "bb", "ccc"], "encoding_format": "float"}]
    assert server.keys == ["Bearer secret"]
    assert server.paths == ["/v1/embeddings"]


def test_many_texts_go_in_batches_and_none_in_no_request(server: Server) -> None:
    with server.embedder(batch_texts=2, dimension=3) as embedder:
        assert embedder.embed([]).shape == (0, 3)
        assert embedder.embed(["a"] * 5).shape == (5, 3)
    assert [len(request["input"]) for request in server.requests] == [2, 2, 1]
    assert all(request["dimensions"] == 3 for request in server.requests)
    assert server.keys[0] is None


@pytest.mark.parametrize("failure", [(429, {}, b""), (500, {}, b""), (503, {}, b"busy"), (0, {}, b"")])
def test_what_may_pass_is_tried_again(server: Server, failure: Answer) -> None:
    server.answers = [failure, failure]
    with server.embedder() as embedder:
        assert embedder.embed(["a"]).tolist() == [[1, 1]]
    assert server.pauses == [1, 2]


def test_a_server_may_ask_for_a_longer_pause(server: Server) -> None:
    server.answers = [(429, {"Retry-After": "7"}, b""), (429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"")]
    with server.embedder() as embedder:
        embedder.embed(["a"])
    assert server.pauses == [7, 2]


def test_a_pause_that_is_too_long_is_a_failure(server: Server) -> None:
    server.answers = [(429, {"Retry-After": "3600"}, b"")]
    with server.embedder() as embedder, pytest.raises(ProviderError):
        embedder.embed(["a"])
    assert server.pauses == []


def test_tries_end(server: Server) -> None:
    server.answers = [(503, {}, b"busy")] * 9
    with server.embedder() as embedder, pytest.raises(ProviderError, match="503: busy") as raised:
        embedder.embed(["a"])
    assert raised.value.status == 503  # type: ignore[attr-defined]
    assert len(server.requests) == RETRIES + 1
    assert server.pauses == [1, 2, 4, 8]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(server: Server, status: int) -> None:
    server.answers = [(status, {}, b"no")]
    with server.embedder(api_key="secret") as embedder, pytest.raises(ProviderError, match=f"{status}: no") as raised:
        embedder.embed(["a"])
    assert "secret" not in str(raised.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"data": [{"index": 0}]}',
        b'{"data": [{"embedding": [1]}]}',
        b'{"data": []}',
        b'{"data": [{"index": 1, "embedding": [1]}]}',
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": ["x"]}]}',
        b'{"data": [{"index": 0, "embedding": [NaN]}]}',
    ],
)
def test_an_answer_without_vectors_is_a_failure(server: Server, body: bytes) -> None:
    server.answers = [(200, {}, body)]
    with server.embedder() as embedder, pytest.raises(ProviderError):
        embedder.embed(["a"])


def test_vectors_of_another_length_are_told(server: Server) -> None:
    with server.embedder() as embedder:
        embedder.embed(["a"])
        server.answers = [(200, {}, b'{"data": [{"index": 0, "embedding": [1, 2, 3]}]}')]
        with pytest.raises(EmbeddingDimensionError):
            embedder.embed(["a"])


def test_nobody_there_is_a_failure(server: Server) -> None:
    with OpenAIEmbedder("m", base_url="http://127.0.0.1:9", retries=1, sleep=server.pauses.append) as embedder:
        with pytest.raises(ProviderError, match="cannot be reached") as raised:
            embedder.embed(["a"])
        assert raised.value.__cause__ is not None
    assert server.pauses == [1]


def test_a_silent_server_is_left_after_the_timeout() -> None:
    # A socket that accepts connections, because it listens, and never answers.
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            OpenAIEmbedder("m", base_url=url, retries=0, timeout_s=0.05) as embedder,
            pytest.raises(ProviderError, match="Timeout"),
        ):
            embedder.embed(["a"])


@pytest.mark.parametrize("options", [{"batch_texts": 0}, {"retries": -1}, {"timeout_s": 0}, {"dimension": 0}])
def test_numbers_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        OpenAIEmbedder("m", **options)
