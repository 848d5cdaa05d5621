"""Prometheus metrics of one process: names, labels and values."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import TestResponse

from portal import create_app
from portal.observability import metrics
from portal.services import Services
from portal.services.operations.reports import scraping
from portal.services.people import accounts
from tests.conftest import PASSWORD, Portal


@pytest.fixture
def client(make_services: Callable[..., Services], portal: Portal) -> FlaskClient:
    """Return a client of a portal with public metrics."""
    return create_app(make_services(metrics_public=True)).test_client()


Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

# Base units, or a noun for what is counted.
UNITS = (
    "seconds",
    "total",
    "info",
    "up",
    "ready",
    "success",
    "requests",
    "hits",
    "connections",
    "jobs",
)
UNITS += ("documents", "workers", "chunks", "embeddings")


def families(client: FlaskClient, **named: object) -> list[Metric]:
    answer = client.get("/metrics", **named)
    assert answer.status_code == 200
    assert answer.mimetype == "text/plain"
    return list(text_string_to_metric_families(answer.get_data(as_text=True)))


def series(client: FlaskClient) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(client)
        for sample in family.samples
    }


def grown(before: Series, after: Series, name: str, **labels: str) -> float:
    """Return the growth of a metric, summed over the labels that are not given."""

    def total(of: Series) -> float:
        return sum(
            value
            for (found, pairs), value in of.items()
            if found == name and labels.items() <= dict(pairs).items()
        )

    return total(after) - total(before)


def test_every_metric_has_help_a_prefix_and_a_unit(client: FlaskClient, portal: Portal) -> None:
    portal.add("one")
    found = families(client)
    assert len(found) > 20
    for family in found:
        name = family.samples[0].name if family.type == "counter" and family.samples else ""
        assert re.fullmatch(r"portal_[a-z_]+", family.name)
        assert family.documentation, family.name
        full = name or family.name + ("_total" if family.type == "counter" else "")
        assert full.rsplit("_", 1)[1] in UNITS, full


def test_open_metrics_are_served_on_request(client: FlaskClient) -> None:
    client.get("/health")
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.mimetype == "application/openmetrics-text"
    names = {family.name for family in open_metrics_families(answer.get_data(as_text=True))}
    assert "portal_http_request_duration_seconds" in names


def test_requests_are_counted_by_endpoint_method_and_status(
    client: FlaskClient, portal: Portal
) -> None:
    document = portal.add("one")
    before = series(client)
    for _ in range(3):
        client.get(f"/api/knowledge/documents/{document.id}", headers=portal.headers())
    client.get(f"/api/knowledge/documents/{uuid4()}", headers=portal.headers())
    client.get(f"/api/knowledge/documents/{document.id}")
    after = series(client)
    name = "portal_http_request_duration_seconds_count"
    for status, count in (("200", 3), ("404", 1), ("401", 1)):
        labels = {"endpoint": "knowledge.get_document", "method": "GET", "status": status}
        assert grown(before, after, name, **labels) == count, status
    assert grown(before, after, "portal_errors_total", code="not_found", surface="api") == 1
    assert grown(before, after, "portal_errors_total", code="not_signed_in", surface="api") == 1


def test_searches_tell_their_method_hits_and_what_they_went_without(
    client: FlaskClient, portal: Portal, make_services: Callable[..., Services]
) -> None:
    portal.add("the lighthouse of Alexandria")
    before = series(client)
    for mode in ("hybrid", "vector", "keyword", "keyword"):
        body = {"query": f"lighthouse {mode}", "mode": mode}
        answer = client.post("/api/knowledge/search", json=body, headers=portal.headers())
        assert answer.json["total_count"] == 1
    lame = create_app(make_services(search={"keyword_backend": "off"})).test_client()
    lame.post("/api/knowledge/search", json={"query": "lighthouse"}, headers=portal.headers())
    after = series(client)
    for method, count in (("hybrid", 2), ("vector", 1), ("keyword", 2)):
        seconds = "portal_search_duration_seconds_count"
        assert grown(before, after, seconds, method=method, outcome="ok") == count
    assert grown(before, after, "portal_search_result_hits_sum", method="keyword") == 2
    missed = "portal_search_degraded_total"
    assert grown(before, after, missed, reason="keyword_unavailable") == 1


def test_embedding_calls_are_counted_by_provider(client: FlaskClient, portal: Portal) -> None:
    before = series(client)
    portal.add("one passage")
    portal.services.embedder.embed_query(f"a new question {uuid4()}")
    after = series(client)
    calls, texts = "portal_embedding_duration_seconds_count", "portal_embedded_texts_total"
    assert grown(before, after, calls, provider="hashing", input="query", outcome="ok") == 1
    assert grown(before, after, texts, provider="hashing", input="passages") >= 1


def test_answer_is_timed_to_its_first_word_and_its_end(client: FlaskClient, portal: Portal) -> None:
    portal.add("The lighthouse was built by Sostratus of Cnidus.")
    headers = portal.headers()
    conversation = client.post("/api/conversations", json={}, headers=headers).json["id"]
    before = series(client)
    asked = {"content": "Who built the lighthouse?"}
    client.post(f"/api/conversations/{conversation}/messages", json=asked, headers=headers)
    after = series(client)
    first = "portal_chat_first_token_duration_seconds_count"
    assert grown(before, after, first, provider="extractive") == 1
    whole = "portal_chat_duration_seconds_count"
    assert grown(before, after, whole, provider="extractive", outcome="ok") == 1


def test_the_queue_and_the_documents_are_counted(client: FlaskClient, portal: Portal) -> None:
    portal.add("one")
    found = series(client)
    assert found["portal_database_up", ()] == 1
    assert found["portal_stored_documents", (("status", "ready"),)] == 1
    # The test itself indexed the document, so its job is still in the queue.
    assert found["portal_queue_jobs", (("queue", "ingest_small"), ("status", "todo"))] == 1
    assert found["portal_index_chunks", ()] == 1
    assert found["portal_index_missing_embeddings", ()] == 0
    assert found["portal_vector_index_ready", ()] == 1


def test_unknown_addresses_and_methods_add_no_series(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers()

    # Get each kind of response once, so that its series exist.
    def ask(name: str) -> None:
        client.get(f"/{name}")
        client.get(f"/api/{name}?{name}={name}")
        client.get(f"/api/knowledge/documents/{name}", headers=headers)
        client.open("/health", method=f"X{name}"[:20])

    for _ in range(2):
        ask(uuid4().hex)
        before = series(client)
    for _ in range(250):  # A thousand paths in all.
        ask(uuid4().hex)
    after = series(client)
    assert after.keys() == before.keys()
    name = "portal_http_request_duration_seconds_count"
    assert grown(before, after, name, endpoint=metrics.UNMATCHED) == 1000


def test_metrics_token_opens_the_metrics_and_nothing_else(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    token = "a-token-for-prometheus"
    client = create_app(make_services(metrics={"token": token})).test_client()
    bearer = {"Authorization": f"Bearer {token}"}
    assert client.get("/metrics", headers=bearer).status_code == 200
    assert client.get("/api/knowledge/documents", headers=bearer).status_code == 401
    assert client.get("/api/admin/audit", headers=bearer).status_code == 401
    for wrong in (token[:-1], token + "x", "", "é", "Bearer"):
        sent = {"Authorization": f"Bearer {wrong}"}
        assert client.get("/metrics", headers=sent).status_code == 401, wrong
    assert client.get("/metrics", headers={"Authorization": f"Basic {token}"}).status_code == 401
    assert client.get("/metrics", headers=portal.headers()).status_code == 200


def test_programs_on_this_machine_need_no_token_where_a_setting_allows_it(
    make_services: Callable[..., Services], portal: Portal
) -> None:
    client = create_app(make_services(metrics={"from_this_machine": True})).test_client()
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", environ_base={"REMOTE_ADDR": "::1"}).status_code == 200
    for address in ("192.0.2.7", "", "::ffff:192.0.2.7"):
        answer = client.get("/metrics", environ_base={"REMOTE_ADDR": address})
        assert answer.status_code == 401, address
    # A proxy on this machine forwards requests from anywhere.
    for name in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Proto"):
        assert client.get("/metrics", headers={name: "127.0.0.1"}).status_code == 401, name
    trusting = {"metrics": {"from_this_machine": True}, "trusted_proxies": 1}
    client = create_app(make_services(**trusting)).test_client()
    sent = {"X-Forwarded-For": "192.0.2.7"}
    assert client.get("/metrics", headers=sent).status_code == 401


def test_concurrent_scrapes_are_computed_once(
    make_services: Callable[..., Services], portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(make_services(metrics_public=True, metrics={"cached_s": 60}))
    computed: list[float] = []
    read = scraping.of_database

    def note(services: Services) -> Iterator[Metric]:
        computed.append(time.monotonic())
        return read(services)

    monkeypatch.setattr(scraping, "of_database", note)
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: app.test_client().get("/metrics"), range(40)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.get_data() for answer in answers}) == len(computed) == 1


def test_scrapes_have_limits_of_their_own(
    make_services: Callable[..., Services], portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(make_services(metrics_public=True, web={"requests_at_once": 1}))
    held, gate = threading.Event(), threading.Event()

    def hang(services: Services) -> Iterator[Metric]:
        held.set()
        assert gate.wait(30)
        return iter(())

    def scrape() -> TestResponse:
        return app.test_client().get("/metrics")

    monkeypatch.setattr(scraping, "of_database", hang)
    body = {"username": "admin", "password": PASSWORD}
    with ThreadPoolExecutor(16) as pool:
        try:
            first = pool.submit(scrape)
            assert held.wait(30)
            # One is being computed and four wait; the others are refused at once.
            scrapes = as_completed([pool.submit(scrape) for _ in range(10)], timeout=30)
            refused = [next(scrapes).result() for _ in range(6)]
            assert {answer.status_code for answer in refused} == {503}
            assert all(answer.headers["Retry-After"] for answer in refused)
            signed_in = app.test_client().post("/api/auth/token", json=body)
            assert signed_in.status_code == 200
        finally:
            gate.set()
        assert first.result(30).status_code == 200


def test_dead_database_only_omits_its_own_metrics(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    services = make_services(database_url=nowhere, metrics_public=True)
    client = create_app(services).test_client()
    found = series(client)
    assert found["portal_database_up", ()] == 0
    names = {name for name, _ in found}
    assert not {name for name in names if name.startswith(("portal_queue", "portal_index"))}
    assert "portal_http_request_duration_seconds_count" in {name for name, _ in series(client)}


def test_metrics_contain_no_users_and_no_text(client: FlaskClient, portal: Portal) -> None:
    ada = accounts.create_user(portal.services, name="ada-lovelace", password="a long password")
    portal.add("mauve elephants", name="zebra.txt", title="Quokka")
    body = {"query": "mauve elephants"}
    client.post("/api/knowledge/search", json=body, headers=portal.headers(ada))
    text = client.get("/metrics").get_data(as_text=True)
    for word in ("mauve", "zebra", "Quokka", "ada-lovelace", str(ada.id)):
        assert word not in text


@pytest.mark.parametrize("address", ["/health", "/health/live", "/health/ready"])
def test_health_is_ok(client: FlaskClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer.json["status"] == "ok"
    assert answer.json["live"] is True
