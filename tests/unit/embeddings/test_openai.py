"""The OpenAI-compatible provider against a server of our own that speaks the protocol."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from portal.embeddings.breaker import CircuitBreaker
from portal.embeddings.openai import OpenAIEmbedder
from portal.errors import EmbedderUnavailable, InvalidEmbedding


class Endpoint:
    """What the server does next: `answers` are taken one a request, then it answers well."""

    def __init__(self):
        self.requests = []
        self.answers = []
        self.dimensions = 4
        self.delay_s = 0.0
        self.trickle = False

    def vectors(self, texts):
        return [[float(len(text) + 1), *([1.0] * (self.dimensions - 1))] for text in texts]


@pytest.fixture
def endpoint():
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, dict(self.headers), body))
            time.sleep(state.delay_s)
            status, payload = state.answers.pop(0) if state.answers else (200, None)
            if payload is None:
                rows = enumerate(state.vectors(body["input"]))
                # Out of order on purpose: `index` says which is which.
                data = [{"index": i, "embedding": v} for i, v in rows][::-1]
                payload = {"data": data}
            text = json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Retry-After", "7")
            self.end_headers()
            for place in range(len(text)):
                if state.trickle:
                    self.wfile.write(text[place : place + 1])
                    self.wfile.flush()
                    time.sleep(0.05)
            if not state.trickle:
                self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # Clients that gave up are expected.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    yield state
    server.shutdown()
    server.server_close()


def embedder(endpoint, **changes):
    chosen = {"model": "some-model", "dimensions": 4, "api_base": endpoint.url, "timeout_s": 1.0}
    return OpenAIEmbedder(**(chosen | {"sleep": lambda _s: None} | changes))


def test_passages_are_sent_in_batches_and_come_back_in_order(endpoint):
    texts = ["x" * n for n in range(1, 131)]
    vectors = embedder(endpoint, api_key="secret").embed_passages(texts)
    assert [len(body["input"]) for _, _, body in endpoint.requests] == [64, 64, 2]
    assert (np.diff(vectors[:, 0]) > 0).all()
    path, headers, body = endpoint.requests[0]
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == "Bearer secret"
    assert body["model"] == "some-model"
    assert body["dimensions"] == 4


def test_passages_are_tried_again_while_the_endpoint_is_busy(endpoint):
    pauses = []
    endpoint.answers = [(429, {}), (503, {})]
    vectors = embedder(endpoint, sleep=pauses.append).embed_passages(["a"])
    assert vectors.shape == (1, 4)
    assert all(7 <= pause <= 9 for pause in pauses), "the endpoint asked for seven seconds"
    assert len(pauses) == 2


def test_passages_are_given_up_after_a_while(endpoint):
    endpoint.answers = [(500, {})] * 9
    with pytest.raises(EmbedderUnavailable, match="answered 500"):
        embedder(endpoint).embed_passages(["a"])
    assert len(endpoint.requests) == 5


def test_wrong_key_is_not_tried_again(endpoint):
    endpoint.answers = [(401, {"error": "bad key"})]
    with pytest.raises(EmbedderUnavailable, match="PORTAL_EMBEDDING__MODEL, __API_KEY"):
        embedder(endpoint).embed_passages(["a"])
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("fault", ["slow", "trickling"])
def test_question_waits_no_longer_than_the_timeout(endpoint, fault):
    endpoint.delay_s = 1.5 if fault == "slow" else 0.0
    endpoint.trickle = fault == "trickling"
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match=r"more than 0\.3 seconds"):
        embedder(endpoint, timeout_s=0.3).embed_query("a")
    assert time.monotonic() - started < 1.0


def test_endpoint_that_is_down_says_where_it_was_looked_for():
    nowhere = OpenAIEmbedder(model="m", dimensions=4, api_base="http://127.0.0.1:9/v1")
    with pytest.raises(EmbedderUnavailable, match="PORTAL_EMBEDDING__API_BASE"):
        nowhere.embed_query("a")


def test_open_breaker_answers_at_once_and_lets_one_probe_through_later(endpoint):
    now = [100.0]
    breaker = CircuitBreaker(failures=2, pause_s=10, clock=lambda: now[0])
    client = embedder(endpoint, breaker=breaker)
    endpoint.answers = [(500, {})] * 2
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable, match="500"):
            client.embed_query("a")
    with pytest.raises(EmbedderUnavailable, match="left alone for 10 more seconds"):
        client.embed_query("a")
    assert len(endpoint.requests) == 2, "the open breaker asked the endpoint"
    now[0] += 11
    assert client.embed_query("a").shape == (4,)
    assert breaker.remaining_s() == 0


def test_half_open_breaker_holds_everyone_back_but_the_probe():
    now = [0.0]
    breaker = CircuitBreaker(failures=1, pause_s=10, clock=lambda: now[0])
    breaker.failed()
    now[0] = 11
    assert breaker.remaining_s() == 0
    assert breaker.remaining_s() > 0


def test_wrong_dimension_is_refused(endpoint):
    endpoint.dimensions = 5
    with pytest.raises(InvalidEmbedding, match=r"some-model.*expected 1 × 4 numbers, got 1 × 5"):
        embedder(endpoint).embed_query("a")


@pytest.mark.parametrize(
    "payload", [{"data": []}, {"nothing": 1}, {"data": [{"embedding": None}]}, []]
)
def test_answers_outside_the_protocol_are_refused(endpoint, payload):
    endpoint.answers = [(200, payload)]
    with pytest.raises(InvalidEmbedding):
        embedder(endpoint).embed_query("a")


def test_unknown_dimensions_are_asked_of_the_endpoint_once(endpoint):
    client = embedder(endpoint, dimensions=None)
    assert (client.dimensions, client.dimensions) == (4, 4)
    assert len(endpoint.requests) == 1
    assert "dimensions" not in endpoint.requests[0][2]


def test_vectors_cut_to_fewer_dimensions_have_a_name_of_their_own(endpoint):
    assert embedder(endpoint, dimensions=4).name != embedder(endpoint, dimensions=None).name


def test_empty_text_is_never_sent_empty(endpoint):
    embedder(endpoint).embed_query("\0")
    assert endpoint.requests[0][2]["input"] == [" "]
