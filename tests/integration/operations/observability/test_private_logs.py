"""When a request fails, neither the log nor the response repeats private content."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator

import httpx
import psycopg
import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal import create_app
from portal.observability import tracing
from portal.observability.logs import configure_logs
from portal.processes import worker
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from portal.services.models import catalog
from portal.services.search import finding
from portal.services.search.corrections import respelling
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.factories.servers.chat import Status, fake_chat
from tests.factories.servers.endpoint import Reply, fake_endpoint
from tests.factories.uploads import failing, run_apart

QUESTION = "was the mauve elephant 退款单 refused by hunter2-hunter2"
DOCUMENT = "The mauve elephant of the third archive was never catalogued by anybody at all."
LEAKS = ("mauve", "elephant", "退款单", "hunter2", "catalogued", "Traceback (most recent")
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

Read = Callable[[], str]


@pytest.fixture(params=["console", "json"])
def log_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def written(portal: Portal, log_format: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    root, stream = logging.getLogger(), io.StringIO()
    handlers = root.handlers
    monkeypatch.setattr("sys.stderr", stream)
    settings = portal.services.settings
    changes = {"log_format": log_format, "log_level": "debug"}
    configure_logs(settings.model_copy(update=changes))
    yield stream.getvalue
    root.handlers = handlers


def assert_no_leak(*texts: str) -> None:
    for one in texts:
        for leak in LEAKS:
            assert leak not in one, leak
            assert json.dumps(leak)[1:-1] not in one, leak


@for_each(
    "error",
    [
        psycopg.errors.DataException(f"invalid input: {QUESTION}"),
        httpx.ConnectError(f"https://me:hunter2@host/?q={QUESTION}"),
        ValueError(QUESTION),
        KeyError(DOCUMENT),
    ],
)
def test_errors_during_a_search_leak_nothing(
    portal: Portal, written: Read, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(respelling, "parse_query", failing(error))
    client = portal.client()
    answers = [
        client.post("/api/knowledge/search", json={"query": QUESTION}),
        client.get("/search", query_string={"q": QUESTION}),
    ]
    for answer in answers:
        assert answer.status_code == 500
        assert answer.headers["X-Request-ID"] in written()
        if answer.is_json:
            assert_no_leak(answer.get_data(as_text=True))
    assert written().count(type(error).__name__) >= 2
    assert_no_leak(written())


def test_database_errors_do_not_leak_their_parameters(
    client: FlaskClient, portal: Portal, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_wrongly(services: Services, *_: object, **__: object) -> None:
        with services.database.begin() as session:
            session.execute(text("SELECT CAST(:question AS uuid)"), {"question": QUESTION})

    monkeypatch.setattr(library, "list_documents", ask_wrongly)
    answer = client.get("/api/knowledge/documents", headers=portal.headers())
    assert answer.status_code == 500
    assert "sqlstate 22P02" in written()
    assert_no_leak(written(), answer.get_data(as_text=True))


def test_values_refused_by_validation_are_not_repeated(
    client: FlaskClient, portal: Portal, written: Read
) -> None:
    body = {"query": QUESTION, "top_n": QUESTION, "mode": QUESTION, "weights": QUESTION}
    answer = client.post("/api/knowledge/search", json=body, headers=portal.headers())
    assert answer.status_code == 422
    assert_no_leak(written(), answer.get_data(as_text=True))


def test_embedding_endpoint_that_repeats_the_question_leaks_nothing(
    portal: Portal, make_services: Callable[..., Services], written: Read, log_format: str
) -> None:
    said = {"error": {"message": f"cannot embed: {QUESTION}", "input": [QUESTION]}}
    with fake_endpoint(dimensions=384) as endpoint:
        settings = {"provider": "openai", "api_base": endpoint.url, "dimensions": 384}
        services = make_services(embedding=settings, log_format=log_format)
        portal_of_endpoint = create_app(services).test_client()
        catalog.refresh_registration(services)
        endpoint.always = Reply(400, said)
        answer = portal_of_endpoint.post(
            "/api/knowledge/search",
            json={"query": QUESTION, "mode": "vector"},
            headers=portal.headers(),
        )
    assert answer.status_code == 503
    assert "endpoint answered 400" in answer.json["error"]["message"]
    assert_no_leak(written(), answer.get_data(as_text=True))


def test_chat_endpoint_that_repeats_its_prompt_leaks_nothing(
    portal: Portal, make_services: Callable[..., Services], written: Read
) -> None:
    portal.add(DOCUMENT)
    said = {"error": {"message": f"too long: {DOCUMENT} {QUESTION}"}}
    with fake_chat([Status(400, said)]) as chat:
        services = make_services(chat={"provider": "openai", "api_base": chat.url, "model": "m"})
        client, headers = create_app(services).test_client(), portal.headers()
        id_ = client.post("/api/conversations", json={}, headers=headers).json["id"]
        answer = client.post(
            f"/api/conversations/{id_}/messages",
            json={"content": "Was the third archive catalogued?"},
            headers=headers | {"traceparent": f"00-{TRACE}-{SPAN}-01"},
        )
        sent = chat.requests[0][0]
    assert answer.json["status"] == "unavailable"
    assert "elephant" not in json.dumps(answer.json.get("error", ""))
    assert_no_leak(written())
    # The request to the endpoint continues the caller's trace.
    found = re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", sent["traceparent"])
    assert found is not None
    assert found[1] != SPAN
    assert sent["X-Request-ID"] == answer.headers["X-Request-ID"]


def test_a_trace_reaches_the_embedding_endpoint(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    with fake_endpoint(dimensions=384) as endpoint:
        settings = {"provider": "openai", "api_base": endpoint.url, "dimensions": 384}
        services = make_services(embedding=settings)
        tracing.begin("a-request-id", f"00-{TRACE}-{SPAN}-01")
        services.embedder.embed_query("one")
        services.embedder.embed_query("two")
        spans = {headers["traceparent"] for _, headers, _ in endpoint.requests[-2:]}
    assert len(spans) == 2
    assert all(span.startswith(f"00-{TRACE}-") for span in spans)


def test_failed_job_logs_the_ids_of_its_upload(
    client: FlaskClient, portal: Portal, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"file": (io.BytesIO(DOCUMENT.encode()), "mauve.txt")}
    headers = portal.headers() | {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    answer = client.post("/api/knowledge/documents", data=files, headers=headers)
    assert answer.status_code == 202
    monkeypatch.setattr(indexing, "extract", failing(RuntimeError(DOCUMENT)))
    run_apart(worker.work_until_empty, portal.services)
    line = next(line for line in written().splitlines() if "job_failed" in line)
    assert answer.headers["X-Request-ID"] in line
    assert TRACE in line
    assert_no_leak(written())


def test_failing_leg_of_a_search_leaks_nothing(
    client: FlaskClient, portal: Portal, written: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal.add(DOCUMENT)

    error = psycopg.OperationalError(f"canceling statement: {QUESTION}")
    monkeypatch.setattr(finding, "find_offers", failing(error))
    answer = client.post(
        "/api/knowledge/search", json={"query": QUESTION}, headers=portal.headers()
    )
    assert answer.status_code >= 500
    assert_no_leak(written(), answer.get_data(as_text=True))
