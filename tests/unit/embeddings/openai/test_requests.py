"""What is sent to an OpenAI-compatible endpoint, how often, and from how many threads."""

from __future__ import annotations

import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from portal.embeddings.providers.breaker import CircuitBreaker
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable
from tests.factories.servers.endpoint import Reply, wait_until
from tests.unit.embeddings.openai.conftest import SLACK_S, embedder


def test_chunks_are_sent_in_batches_and_come_back_in_order(endpoint):
    texts = [f"word{n}" for n in range(130)]
    vectors = embedder(endpoint, api_key="secret").embed_chunks(texts)
    assert [len(body["input"]) for _, _, body in endpoint.requests] == [64, 64, 2]
    expected = HashingEmbedder(dimensions=4).embed_chunks(texts)
    assert np.allclose(vectors, expected, atol=1e-5)
    path, headers, body = endpoint.requests[0]
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == "Bearer secret"
    assert body["model"] == "some-model"
    assert body["dimensions"] == 4


def test_vectors_without_an_index_are_used_in_their_order(endpoint):
    data = [{"embedding": [1, 0, 0, 0]}, {"embedding": [0, 1, 0, 0]}]
    endpoint.replies = [Reply(body={"data": data})]
    assert embedder(endpoint).embed_chunks(["a", "b"]).argmax(axis=1).tolist() == [0, 1]


def test_no_request_is_sent_without_chunks(endpoint):
    client = embedder(endpoint, dimensions=None)
    assert client.embed_chunks([]).shape == (0, 0)
    assert not endpoint.requests
    assert client.embed_query("a").shape == (4,)


def test_chunks_are_retried_while_the_endpoint_is_busy(endpoint):
    pauses = []
    endpoint.replies = [Reply(429, headers={"Retry-After": "7"}), Reply(503), Reply(502)]
    vectors = embedder(endpoint, sleep=pauses.append).embed_chunks(["a"])
    assert vectors.shape == (1, 4)
    asked_for, second, third = pauses
    assert 7 <= asked_for <= 9, "the endpoint asked for seven seconds"
    assert 2 <= second <= 2.5
    assert 4 <= third <= 5


def test_endpoint_cannot_make_us_wait_for_hours(endpoint):
    pauses = []
    endpoint.replies = [Reply(429, headers={"Retry-After": "86400"})]
    embedder(endpoint, sleep=pauses.append).embed_chunks(["a"])
    assert pauses == [pytest.approx(34, abs=4)]


@pytest.mark.parametrize("max_retries", [0, 2])
def test_chunks_are_retried_as_often_as_the_setting_says(endpoint, max_retries):
    endpoint.always = Reply(500)
    client = embedder(endpoint, max_retries=max_retries)
    with pytest.raises(EmbedderUnavailable, match="answered 500"):
        client.embed_chunks(["a"])
    assert len(endpoint.requests) == 1 + max_retries


def test_query_is_never_retried(endpoint):
    endpoint.always = Reply(503, headers={"Retry-After": "1"})
    with pytest.raises(EmbedderUnavailable, match="answered 503"):
        embedder(endpoint, sleep=None).embed_query("a")
    assert len(endpoint.requests) == 1


def test_unknown_dimensions_are_asked_of_the_endpoint_once(endpoint):
    client = embedder(endpoint, dimensions=None)
    assert (client.dimensions, client.dimensions) == (4, 4)
    assert len(endpoint.requests) == 1
    assert "dimensions" not in endpoint.requests[0][2]


def test_unknown_dimensions_of_a_hanging_endpoint_take_no_longer_than_a_query(endpoint):
    endpoint.delay_s = 5
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable):
        _ = embedder(endpoint, dimensions=None, timeout_s=0.3).dimensions
    assert time.monotonic() - started < 0.3 + SLACK_S


def test_model_with_fewer_dimensions_has_its_own_name(endpoint):
    assert embedder(endpoint, dimensions=4).name != embedder(endpoint, dimensions=None).name


def test_empty_text_is_never_sent_empty(endpoint):
    embedder(endpoint).embed_query("\0")
    assert endpoint.requests[0][2]["input"] == [" "]


@pytest.mark.parametrize(
    ("model", "prefix", "sent"),
    [
        ("bge-small-zh-v1.5", None, "为这个句子生成表示以用于检索相关文章：年假"),
        ("bge-small-zh-v1.5", "", "年假"),
        ("some-model", None, "年假"),
        ("some-model", "Q: ", "Q: 年假"),
    ],
)
def test_questions_are_sent_as_the_model_wants_them(endpoint, model, prefix, sent):
    client = embedder(endpoint, model=model, query_prefix=prefix)
    client.embed_query("年假")
    client.embed_chunks(["年假"])
    assert [body["input"] for _, _, body in endpoint.requests] == [[sent], ["年假"]]


def test_many_threads_ask_at_the_same_time(endpoint):
    endpoint.delay_s = 0.5
    client = embedder(endpoint)
    started = time.monotonic()
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(client.embed_query, "abcdefgh"))
    assert time.monotonic() - started < 3, "questions waited for each other"
    expected = HashingEmbedder(dimensions=4)
    assert all(
        np.allclose(v, expected.embed_query(t), atol=1e-5)
        for v, t in zip(vectors, "abcdefgh", strict=True)
    )


def test_abandoned_queries_leave_no_threads_behind(endpoint):
    endpoint.delay_s = 5
    client = embedder(endpoint, timeout_s=0.05, breaker=CircuitBreaker(failures=1000))
    for _ in range(10):
        with pytest.raises(EmbedderUnavailable):
            client.embed_query("a")
    assert len([t for t in threading.enumerate() if t.name == "endpoint"]) >= 1
    before = len([t for t in threading.enumerate() if t.name == "endpoint"])
    del client
    gc.collect()
    wait_until(
        lambda: len([t for t in threading.enumerate() if t.name == "endpoint"]) < before,
        within_s=20,
        complaint="the loop of a forgotten embedder goes on",
    )


def test_closed_embedder_connects_again(endpoint):
    client = embedder(endpoint)
    client.embed_query("a")
    client.close()
    assert client.embed_query("b").shape == (4,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_child_opens_its_own_connections(endpoint):
    client = embedder(endpoint)
    client.embed_query("a")
    child = os.fork()
    if child == 0:
        os._exit(0 if client.embed_query("b").shape == (4,) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert client.embed_query("c").shape == (4,)


def test_closing_ends_a_hanging_query(endpoint):
    endpoint.delay_s = 5
    client = embedder(endpoint, timeout_s=30)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.embed_query, "a")
        wait_until(lambda: endpoint.requests, within_s=20, complaint="nothing was asked")
        client.close()
        with pytest.raises(EmbedderUnavailable):
            asked.result(timeout=3)
