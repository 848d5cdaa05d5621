"""The OpenAI-compatible provider against a server of our own that speaks the protocol."""

from __future__ import annotations

import gc
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from portal.embeddings.providers.breaker import CircuitBreaker
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.embeddings.providers.openai import OpenAIEmbedder, _seconds
from portal.errors import EmbedderUnavailable, InvalidEmbedding, Message
from tests.factories.servers.endpoint import (
    FakeEndpoint,
    Reply,
    dead_port,
    fake_endpoint,
    wait_until,
)

# What a busy machine may add. All faults here would cost 2.5 seconds or more.
SLACK_S = 1.5


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with fake_endpoint() as running:
        yield running


def embedder(endpoint, **changes):
    chosen = {"model": "some-model", "dimensions": 4, "api_base": endpoint.url, "timeout_s": 5.0}
    return OpenAIEmbedder(**(chosen | {"sleep": lambda _s: None} | changes))


def rows(*vectors, indexes=None):
    indexes = range(len(vectors)) if indexes is None else indexes
    return {"data": [{"index": i, "embedding": v} for i, v in zip(indexes, vectors, strict=True)]}


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


def test_vectors_without_an_index_are_taken_in_their_order(endpoint):
    data = [{"embedding": [1, 0, 0, 0]}, {"embedding": [0, 1, 0, 0]}]
    endpoint.replies = [Reply(body={"data": data})]
    assert embedder(endpoint).embed_chunks(["a", "b"]).argmax(axis=1).tolist() == [0, 1]


def test_no_chunks_ask_nothing(endpoint):
    client = embedder(endpoint, dimensions=None)
    assert client.embed_chunks([]).shape == (0, 0)
    assert not endpoint.requests
    assert client.embed_query("a").shape == (4,)


def test_chunks_are_tried_again_while_the_endpoint_is_busy(endpoint):
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


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0.5", 0.5), ("-3", 0), ("", 0), ("soon", 0), ("nan", 0)],
)
def test_retry_after_in_seconds(header, seconds):
    assert _seconds(header) == seconds


def test_retry_after_as_a_date():
    then = datetime.now(UTC) + timedelta(seconds=20)
    assert _seconds(format_datetime(then, usegmt=True)) == pytest.approx(20, abs=2)
    assert _seconds(format_datetime(then - timedelta(hours=1), usegmt=True)) == 0


@pytest.mark.parametrize("max_retries", [0, 2])
def test_chunks_are_retried_as_often_as_the_setting_says(endpoint, max_retries):
    endpoint.always = Reply(500)
    client = embedder(endpoint, max_retries=max_retries)
    with pytest.raises(EmbedderUnavailable, match="answered 500"):
        client.embed_chunks(["a"])
    assert len(endpoint.requests) == 1 + max_retries


def test_question_is_never_tried_again(endpoint):
    endpoint.always = Reply(503, headers={"Retry-After": "1"})
    with pytest.raises(EmbedderUnavailable, match="answered 503"):
        embedder(endpoint, sleep=None).embed_query("a")
    assert len(endpoint.requests) == 1


def test_wrong_key_is_not_tried_again_and_not_repeated(endpoint):
    endpoint.always = Reply(401, {"error": "Incorrect API key provided: sk-secret-4711"})
    with pytest.raises(EmbedderUnavailable, match="PORTAL_EMBEDDING__MODEL, __API_KEY") as caught:
        embedder(endpoint, api_key="sk-secret-4711\n").embed_chunks(["a"])
    assert len(endpoint.requests) == 1
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["密钥", "two\nlines"])
def test_key_that_no_header_can_hold_is_neither_sent_nor_quoted(endpoint, key):
    endpoint.always = Reply(401, {"error": "no key"})
    with pytest.raises(EmbedderUnavailable, match="__API_KEY") as caught:
        embedder(endpoint, api_key=key).embed_query("a")
    assert key not in str(caught.value)


@pytest.mark.parametrize("fault", ["slow", "trickling headers", "trickling body"])
def test_question_waits_no_longer_than_the_timeout(endpoint, fault):
    endpoint.delay_s = 2.5 if fault == "slow" else 0.0
    endpoint.trickle = fault.removeprefix("trickling ") if fault != "slow" else ""
    client = embedder(endpoint, timeout_s=0.4)
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match=r"within 0\.4 seconds"):
        client.embed_query("a")
    assert time.monotonic() - started < 0.4 + SLACK_S


def test_server_that_takes_the_connection_and_says_nothing_is_left_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        client = OpenAIEmbedder(model="m", dimensions=4, api_base=url, timeout_s=0.3)
        started = time.monotonic()
        with pytest.raises(EmbedderUnavailable, match="within"):
            client.embed_query("a")
        assert time.monotonic() - started < 0.3 + SLACK_S


def test_name_server_that_is_gone_costs_no_more_than_the_timeout(monkeypatch):
    asked = threading.Event()

    def hang(*_arguments, **_named):
        asked.set()
        time.sleep(3)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    client = OpenAIEmbedder(
        model="m", dimensions=4, api_base="http://embedder.example/v1", timeout_s=0.3
    )
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match="within"):
        client.embed_query("a")
    assert time.monotonic() - started < 0.3 + SLACK_S
    assert asked.is_set()


def test_name_that_is_not_known_is_reported():
    client = OpenAIEmbedder(model="m", dimensions=4, api_base="http://embedder.invalid/v1")
    with pytest.raises(EmbedderUnavailable, match=r"embedder\.invalid.*cannot be reached"):
        client.embed_query("a")


def test_endpoint_whose_certificate_has_expired_is_not_trusted(tmp_path, monkeypatch):
    """Nor one that nobody has signed: nothing is sent to it, and the reason is said."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now - timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = tmp_path / "certificate.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(pem)
    )
    # It would be trusted, were it not too old.
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    received = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        arguments = (listener, context, received)
        thread = threading.Thread(target=_shake_hands, args=arguments, daemon=True)
        thread.start()
        address = f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
        client = OpenAIEmbedder(model="m", dimensions=4, api_base=address)
        with pytest.raises(EmbedderUnavailable, match="certificate"):
            client.embed_query("a")
        thread.join(5)
    assert received == []


def _shake_hands(listener, context, received):
    connection, _ = listener.accept()
    with connection, suppress(OSError), context.wrap_socket(connection, server_side=True) as secure:
        if content := secure.recv(1):
            received.append(content)


def test_endpoint_that_is_down_says_where_it_was_looked_for():
    address = f"http://127.0.0.1:{dead_port()}/v1"
    nowhere = OpenAIEmbedder(model="m", dimensions=4, api_base=address)
    with pytest.raises(EmbedderUnavailable, match=f"{address}.*PORTAL_EMBEDDING__API_BASE"):
        nowhere.embed_query("a")


@pytest.mark.parametrize("address", ["ftp://host/v1", "localhost", "http://[::1", "http://:x/"])
def test_address_that_is_none_is_reported_at_once(address):
    client = OpenAIEmbedder(model="m", dimensions=4, api_base=address, sleep=None)
    with pytest.raises(EmbedderUnavailable, match="begins with http"):
        client.embed_chunks(["a"])


def test_open_breaker_answers_at_once_and_lets_one_probe_through_later(endpoint):
    now = [100.0]
    breaker = CircuitBreaker(failures=2, pause_s=10, clock=lambda: now[0])
    client = embedder(endpoint, breaker=breaker)
    endpoint.replies = [Reply(500), Reply(500)]
    for _ in range(2):
        with pytest.raises(EmbedderUnavailable, match="500"):
            client.embed_query("a")
    with pytest.raises(EmbedderUnavailable, match="paused for 10 more seconds"):
        client.embed_query("a")
    assert len(endpoint.requests) == 2, "the open breaker asked the endpoint"
    now[0] += 11
    assert client.embed_query("a").shape == (4,)
    assert breaker.remaining_s() == 0


def test_probe_that_fails_opens_the_breaker_again(endpoint):
    now = [100.0]
    client = embedder(
        endpoint, breaker=CircuitBreaker(failures=1, pause_s=10, clock=lambda: now[0])
    )
    endpoint.always = Reply(body=b"<html>bad gateway</html>")
    with pytest.raises(InvalidEmbedding):
        client.embed_query("a")
    now[0] += 11
    with pytest.raises(InvalidEmbedding):
        client.embed_query("a")
    with pytest.raises(EmbedderUnavailable, match="paused"):
        client.embed_query("a")


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
    ("body", "said"),
    [
        ({"data": []}, "asked for 1 vectors, got 0"),
        (rows([1, 2, 3, 4], [1, 2, 3, 4]), "asked for 1 vectors, got 2"),
        (rows([1, 2, 3, 4], indexes=[3]), "which vector belongs to which text"),
        (rows([1, 2, 3, float("nan")]), "not finite"),
        (rows([1, 2, 3, 10**400]), "not a list of equally long lists of numbers"),
        (rows([0, 0, 0, 0]), "length is zero"),
        (rows(None), "expected 1 × 4"),
        (rows("QUJD"), "not a list"),
        ({"data": [{"embedding": {"0": 1}}]}, "not a list"),
        ({"error": {"message": "no such model"}}, "not what OpenAI's protocol says"),
        ({"data": ["a"]}, "not what OpenAI's protocol says"),
        ({"data": 7}, "not what OpenAI's protocol says"),
        ([], "not what OpenAI's protocol says"),
        (b"", "not what OpenAI's protocol says"),
        (b"\xff\xfe", "not what OpenAI's protocol says"),
        (b"[" * 200_000, "not what OpenAI's protocol says"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_answers_outside_the_protocol_are_refused(endpoint, body, said):
    endpoint.always = Reply(body=body)
    with pytest.raises(InvalidEmbedding, match=said):
        embedder(endpoint).embed_query("a")


def test_indexes_that_repeat_are_refused(endpoint):
    endpoint.always = Reply(body=rows([1, 0, 0, 0], [0, 1, 0, 0], indexes=[0, 0]))
    with pytest.raises(InvalidEmbedding, match="which vector belongs to which text"):
        embedder(endpoint).embed_chunks(["a", "b"])


def test_page_instead_of_an_api_is_recognised(endpoint):
    endpoint.always = Reply(body=b"<!doctype html><p>Hello", headers={"Content-Type": "text/html"})
    with pytest.raises(InvalidEmbedding, match=r"text/html.*PORTAL_EMBEDDING__API_BASE"):
        embedder(endpoint).embed_query("a")


def test_redirect_is_not_followed_with_the_key(endpoint):
    elsewhere = "http://elsewhere.example/v1"
    endpoint.always = Reply(307, headers={"Location": elsewhere})
    with pytest.raises(EmbedderUnavailable, match=f"redirects to {elsewhere}.*__API_BASE"):
        embedder(endpoint, api_key="secret").embed_chunks(["a"])
    assert len(endpoint.requests) == 1


def test_endless_body_is_left(endpoint):
    endpoint.always = Reply(body=b" " * 2_000_000)
    with pytest.raises(InvalidEmbedding, match="answered with more than 768 kB"):
        embedder(endpoint).embed_query("a")


def test_unknown_dimensions_are_asked_of_the_endpoint_once(endpoint):
    client = embedder(endpoint, dimensions=None)
    assert (client.dimensions, client.dimensions) == (4, 4)
    assert len(endpoint.requests) == 1
    assert "dimensions" not in endpoint.requests[0][2]


def test_unknown_dimensions_of_a_hanging_endpoint_cost_no_more_than_a_question(endpoint):
    endpoint.delay_s = 5
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable):
        _ = embedder(endpoint, dimensions=None, timeout_s=0.3).dimensions
    assert time.monotonic() - started < 0.3 + SLACK_S


def test_vectors_cut_to_fewer_dimensions_have_a_name_of_their_own(endpoint):
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


def test_questions_given_up_leave_no_threads_behind(endpoint):
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
        within_s=5,
        complaint="the loop of a forgotten embedder goes on",
    )


def test_closed_embedder_connects_again(endpoint):
    client = embedder(endpoint)
    client.embed_query("a")
    client.close()
    assert client.embed_query("b").shape == (4,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_child_asks_through_connections_of_its_own(endpoint):
    client = embedder(endpoint)
    client.embed_query("a")
    child = os.fork()
    if child == 0:
        os._exit(0 if client.embed_query("b").shape == (4,) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert client.embed_query("c").shape == (4,)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(401, {"error": "two\nlines"}),
        Reply(503),
        Reply(302, headers={"Location": "/elsewhere"}),
        Reply(body=b"<html>"),
        Reply(body=rows([1, 2, 3])),
        Reply(body=rows([1, 2, 3, float("nan")])),
        Reply(body=rows([1, 2, 3, 4], indexes=[2])),
        Reply(body={"data": []}),
        Reply(body=b" " * 1_000_000),
    ],
    ids=lambda reply: f"{reply.status} {str(reply.body)[:20]}",
)
def test_reasons_are_known_to_the_translators(endpoint, reply):
    endpoint.always = reply
    with pytest.raises((EmbedderUnavailable, InvalidEmbedding)) as caught:
        embedder(endpoint).embed_query("a")
    assert isinstance(caught.value.params["reason"], Message)


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/v1", "no address"])
def test_reasons_without_an_answer_are_known_to_the_translators(address):
    client = OpenAIEmbedder(
        model="m", dimensions=4, api_base=address.format(port=dead_port()), timeout_s=1
    )
    for _ in range(4):
        with pytest.raises(EmbedderUnavailable) as caught:
            client.embed_query("a")
        assert isinstance(caught.value.params["reason"], Message)
    assert "paused" in str(caught.value)


def test_closing_ends_a_question_that_hangs(endpoint):
    endpoint.delay_s = 5
    client = embedder(endpoint, timeout_s=30)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.embed_query, "a")
        wait_until(lambda: endpoint.requests, within_s=5, complaint="nothing was asked")
        client.close()
        with pytest.raises(EmbedderUnavailable):
            asked.result(timeout=3)
