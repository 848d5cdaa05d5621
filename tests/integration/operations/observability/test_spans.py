"""Spans of requests, searches, answers and jobs: whole traces, and no words in them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import create_app
from portal.errors import ServerSetup
from portal.observability import tracing
from portal.processes import worker
from portal.services import Services
from portal.services.documents.ingestion import indexing
from tests.conftest import PASSWORD, Portal
from tests.factories.servers.chat import fake_chat
from tests.factories.servers.endpoint import fake_endpoint
from tests.factories.uploads import run_apart

pytestmark = pytest.mark.tracing
memory = pytest.importorskip(
    "opentelemetry.sdk.trace.export.in_memory_span_exporter",
    reason="not installed: ./run setup --tracing",
)
spans = pytest.importorskip("portal.observability.spans")

CALLER, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
DOCUMENT = "The mauve elephant of the third archive keeps the lighthouse lamp."
QUESTION = "Who keeps the mauve lighthouse lamp?"
ALLOWED = {
    *("method", "endpoint", "status", "mode", "plan", "provider", "input", "texts", "outcome"),
    *("task", "media_type", "chunks", "error.type"),
}


class Collected:
    def __init__(self, exporter: memory.InMemorySpanExporter) -> None:
        self._exporter = exporter

    def __call__(self) -> list[dict[str, object]]:
        """Return the spans that have ended since the last call, as they are exported."""
        ended = [json.loads(span.to_json()) for span in self._exporter.get_finished_spans()]
        self._exporter.clear()
        return ended


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter = memory.InMemorySpanExporter()
    monkeypatch.setattr(tracing, "_recorder", spans.Recorder(SimpleSpanProcessor(exporter)))
    yield Collected(exporter)
    tracing.end()


def send(
    client: FlaskClient, path: str, *, method: str = "POST", **request: object
) -> TestResponse:
    """Send a request, and close its response as a server does, because the span ends then."""
    return client.open(path, method=method, buffered=True, **request)


def named(found: list[dict[str, object]], name: str) -> dict[str, object]:
    (one,) = [span for span in found if span["name"] == name]
    return one


def parent(found: list[dict[str, object]], name: str) -> object:
    """Return the name of the parent of the span `name`."""
    of = {span["context"]["span_id"]: span["name"] for span in found}
    return of.get(named(found, name)["parent_id"])


def test_search_is_one_trace_with_its_steps_and_legs(
    client: FlaskClient, portal: Portal, collected: Collected
) -> None:
    portal.add(DOCUMENT)
    headers = portal.headers() | {"traceparent": f"00-{CALLER}-{SPAN}-01"}
    collected()
    body = {"query": QUESTION}
    assert send(client, "/api/knowledge/search", json=body, headers=headers).status_code == 200
    found = collected()
    assert {span["context"]["trace_id"] for span in found} == {f"0x{CALLER}"}
    request = named(found, "request")
    assert request["parent_id"] == f"0x{SPAN}"
    assert request["attributes"] == {
        "method": "POST", "endpoint": "knowledge.search", "status": 200
    }  # fmt: skip
    assert request["kind"] == "SpanKind.SERVER"
    assert parent(found, "search") == "request"
    assert parent(found, "search.embedding") == "search"
    assert parent(found, "embedding") == "search.embedding"
    for leg in ("search.vector_leg", "search.keyword_leg"):
        assert parent(found, leg) == "search.statement"


def test_answer_has_the_call_of_its_model_which_continues_the_trace(
    portal: Portal, make_services: Callable[..., Services], collected: Collected
) -> None:
    portal.add(DOCUMENT)
    with fake_chat(["The elephant does [1]."]) as chat:
        services = make_services(chat={"provider": "openai", "api_base": chat.url, "model": "m"})
        client, headers = create_app(services).test_client(), portal.headers()
        talk = send(client, "/api/conversations", json={}, headers=headers).json["id"]
        collected()
        body = {"content": QUESTION, "stream": True}
        answer = send(client, f"/api/conversations/{talk}/messages", json=body, headers=headers)
        assert b"event: done" in answer.get_data()
        sent = chat.requests[0][0]["traceparent"]
    found = collected()
    assert len({span["context"]["trace_id"] for span in found}) == 1
    request = named(found, "request")
    assert sent.split("-")[1:3] == [request["context"][key][2:] for key in ("trace_id", "span_id")]
    for name in ("answer.retrieve", "chat", "answer.cite"):
        assert parent(found, name) == "request"
    call = named(found, "chat")
    assert call["attributes"] == {"provider": "openai", "outcome": "ok"}
    # A stream lasts until its end.
    assert request["start_time"] <= call["start_time"] <= call["end_time"] <= request["end_time"]


def test_job_of_a_worker_is_within_the_request_that_queued_it(
    client: FlaskClient, portal: Portal, collected: Collected
) -> None:
    files = {"file": (io.BytesIO(DOCUMENT.encode()), "mauve.txt")}
    send(client, "/api/knowledge/documents", data=files, headers=portal.headers())
    request = named(collected(), "request")
    run_apart(worker.work_until_empty, portal.services)
    found = collected()
    job = named(found, "job")
    assert job["parent_id"] == request["context"]["span_id"]
    assert {span["context"]["trace_id"] for span in found} == {request["context"]["trace_id"]}
    for stage in ("extract", "split", "store", "publish"):
        assert parent(found, f"ingest.{stage}") == "job"
    assert parent(found, "embedding") == "ingest.store"


def test_no_span_contains_words_names_passwords_or_tokens(
    client: FlaskClient, portal: Portal, collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = portal.token(portal.user("mauve-ada"))
    headers = {
        "Authorization": f"Bearer {token}",
        "traceparent": f"00-{CALLER}-{SPAN}-01",
        "tracestate": "mauve=elephant",
        "X-Request-ID": "mauve-elephant",
        "User-Agent": "mauve",
    }
    send(client, "/api/auth/token", json={"username": "mauve-ada", "password": PASSWORD})
    send(client, "/api/auth/token", json={"username": "mauve-ada", "password": "mauve elephant"})
    files = {"file": (io.BytesIO(DOCUMENT.encode()), "mauve.txt")}
    send(client, "/api/knowledge/documents", data=files | {"title": "Mauve"}, headers=headers)
    run_apart(worker.work_until_empty, portal.services)
    for path in ("/api/knowledge/search", "/v1/answer"):
        assert send(client, path, json={"query": QUESTION}, headers=headers).status_code == 200
    send(client, "/mauve-elephant?q=mauve", headers=headers, method="GET")
    send(client, "/search", method="MAUVE", headers=headers)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(DOCUMENT)

    monkeypatch.setattr(indexing, "extract", fail)
    send(client, "/api/knowledge/documents", headers=headers, data={
        "file": (io.BytesIO(b"another mauve one"), "mauve.txt")
    })  # fmt: skip
    run_apart(worker.work_until_empty, portal.services)
    found = collected()
    assert {"request", "job", "search", "embedding", "ingest.extract"} <= {s["name"] for s in found}
    failed = [span for span in found if span["attributes"].get("error.type") == "RuntimeError"]
    assert [span["name"] for span in failed] == ["ingest.extract"]
    for span in found:
        assert span["attributes"].keys() <= ALLOWED, span["name"]
        assert span["events"] == span["links"] == []
        assert span["status"].keys() == {"status_code"}
        assert span["context"]["trace_state"] == "[]"
    written = json.dumps(found).lower()
    for canary in ("mauve", "elephant", "lighthouse", PASSWORD, token):
        assert canary not in written


def test_unsampled_trace_of_a_caller_records_no_span(
    client: FlaskClient, portal: Portal, collected: Collected
) -> None:
    send(client, "/health/live", headers={"traceparent": f"00-{CALLER}-{SPAN}-00"}, method="GET")
    assert collected() == []
    send(client, "/health/live", method="GET")
    assert [span["name"] for span in collected()] == ["request"]


def test_an_embedding_endpoint_gets_the_span_of_its_call(
    portal: Portal, make_services: Callable[..., Services], collected: Collected
) -> None:
    with fake_endpoint(dimensions=384) as endpoint:
        services = make_services(
            embedding={"provider": "openai", "api_base": endpoint.url, "dimensions": 384}
        )
        tracing.begin("a-request-id")
        services.embedder.embed_query("one")
        sent = endpoint.requests[-1][1]["traceparent"]
    call = named(collected(), "embedding")
    assert sent.split("-")[2] == call["context"]["span_id"][2:]


def test_opentelemetry_is_not_imported_without_the_setting(portal: Portal) -> None:
    script = (
        "import sys, portal, portal.processes.worker, portal.processes.cli, portal.container\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
    assert tracing.span("search") is tracing.span("embedding")


def test_without_the_extra_the_setting_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "portal.observability.spans", None)
    monkeypatch.delattr("portal.observability.spans")
    with pytest.raises(ServerSetup, match=r"\./run setup --tracing"):
        tracing.export_to("http://127.0.0.1:4318/v1/traces")
