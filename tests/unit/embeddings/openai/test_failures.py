"""Endpoints that fail, hang or return nonsense."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from portal.embeddings.providers.breaker import CircuitBreaker
from portal.embeddings.providers.openai import OpenAIEmbedder
from portal.errors import EmbedderUnavailable, InvalidEmbedding, Message
from tests.factories.servers.endpoint import Reply, dead_port
from tests.unit.embeddings.openai.conftest import SLACK_S, embedder


def rows(*vectors, indexes=None):
    indexes = range(len(vectors)) if indexes is None else indexes
    return {"data": [{"index": i, "embedding": v} for i, v in zip(indexes, vectors, strict=True)]}


def test_wrong_key_is_not_retried_and_not_echoed(endpoint):
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


def test_silent_server_is_abandoned_in_time():
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


def test_unknown_host_name_is_reported():
    client = OpenAIEmbedder(model="m", dimensions=4, api_base="http://embedder.invalid/v1")
    with pytest.raises(EmbedderUnavailable, match=r"embedder\.invalid.*cannot be reached"):
        client.embed_query("a")


def test_endpoint_whose_certificate_has_expired_is_not_trusted(tmp_path, monkeypatch):
    """Nothing is sent to it, and the error names the certificate as the reason."""
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
    # Trust the certificate, so that its age is the only fault.
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


def test_unreachable_endpoint_is_named_with_its_address():
    address = f"http://127.0.0.1:{dead_port()}/v1"
    nowhere = OpenAIEmbedder(model="m", dimensions=4, api_base=address)
    with pytest.raises(EmbedderUnavailable, match=f"{address}.*PORTAL_EMBEDDING__API_BASE"):
        nowhere.embed_query("a")


@pytest.mark.parametrize("address", ["ftp://host/v1", "localhost", "http://[::1", "http://:x/"])
def test_invalid_address_is_reported_at_once(address):
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


def test_half_open_breaker_lets_only_the_probe_through():
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
def test_responses_outside_the_protocol_are_refused(endpoint, body, said):
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
def test_failure_reasons_can_be_translated(endpoint, reply):
    endpoint.always = reply
    with pytest.raises((EmbedderUnavailable, InvalidEmbedding)) as caught:
        embedder(endpoint).embed_query("a")
    assert isinstance(caught.value.params["reason"], Message)


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/v1", "no address"])
def test_failure_reasons_without_a_response_can_be_translated(address):
    client = OpenAIEmbedder(
        model="m", dimensions=4, api_base=address.format(port=dead_port()), timeout_s=1
    )
    for _ in range(4):
        with pytest.raises(EmbedderUnavailable) as caught:
            client.embed_query("a")
        assert isinstance(caught.value.params["reason"], Message)
    assert "paused" in str(caught.value)
