"""Claims about every registered route. Access rights are in `test_route_access.py`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import event
from werkzeug.routing import Rule

from portal.web import BLUEPRINTS
from tests.conftest import Portal
from tests.factories.cases import for_each


def address(rule: Rule) -> str:
    """Return a path for a rule, with objects that do not exist."""
    values = {
        name: {"UUIDConverter": uuid4(), "IntegerConverter": 1}.get(type(converter).__name__, "x")
        for name, converter in rule._converters.items()
    }
    built = rule.build(values, append_unknown=False)
    assert built
    return built[1]


def calls(app: Flask) -> list[tuple[str, str, str]]:
    """Return (endpoint, method, path) of every route and method."""
    return [
        (rule.endpoint, method, address(rule))
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


@pytest.fixture
def app(portal: Portal) -> Flask:
    return portal.app()


def test_no_get_writes(app: Flask, portal: Portal) -> None:
    document = portal.add("some text")
    client, headers = app.test_client(), portal.headers()
    client.get("/documents", headers=headers)  # The first use of a token is a write.
    written: list[str] = []

    def watch(_connection, _cursor, statement: str, *_rest: object) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            written.append(statement)

    event.listen(portal.services.database.engine, "before_cursor_execute", watch)
    for rule in app.url_map.iter_rules():
        if "GET" in (rule.methods or set()):
            path = address(rule)
            for name in ("document_id",):
                if name in rule.arguments:
                    values = dict.fromkeys(rule.arguments, document.id) | {"number": 1}
                    path = rule.build(values, append_unknown=False)[1]
            answer = client.get(path, headers=headers)
            assert answer.status_code < 500, (rule.endpoint, answer.get_data(as_text=True)[:300])
            assert written == [], rule.endpoint
    event.remove(portal.services.database.engine, "before_cursor_execute", watch)


def test_unsafe_page_routes_need_a_csrf_token_with_the_cookie(app: Flask, portal: Portal) -> None:
    client = app.test_client()
    client.set_cookie("portal_session", portal.token(portal.admin))
    for endpoint, method, path in calls(app):
        if method == "GET" or endpoint.startswith("auth_api.create"):
            continue
        answer = client.open(path, method=method)
        assert answer.status_code == 403, endpoint


def test_opening_the_address_of_a_form_leads_to_a_page(app: Flask, portal: Portal) -> None:
    client = app.test_client()
    client.set_cookie("portal_session", portal.token(portal.admin))
    pages = {blueprint.name for blueprint in BLUEPRINTS}
    rules = list(app.url_map.iter_rules())
    answered = {rule.rule for rule in rules if "GET" in (rule.methods or set())}
    forms = {
        address(rule)
        for rule in rules
        if rule.endpoint.split(".")[0] in pages and rule.rule not in answered
    }
    leads = {path: client.get(path).headers.get("Location") for path in forms}
    assert [path for path, page in leads.items() if not page] == []
    # The page of a missing object is a 404, which is still a page.
    reached = {client.get(page or "", follow_redirects=True) for page in set(leads.values())}
    assert {answer.status_code for answer in reached} <= {200, 404}
    assert leads["/account/tokens"] == "/account"
    assert leads["/documents/bulk/ask"] == "/documents"
    fragment = client.get("/account/tokens", headers={"HX-Request": "true"})
    assert fragment.status_code == 405


def test_every_response_carries_the_security_headers(app: Flask) -> None:
    client: FlaskClient = app.test_client()
    for endpoint, method, path in calls(app):
        answer = client.open(path, method=method)
        policy = answer.headers.get("Content-Security-Policy", "")
        assert "default-src 'self'" in policy, endpoint
        assert "unsafe" not in policy, endpoint
        assert answer.headers["X-Content-Type-Options"] == "nosniff", endpoint
        assert answer.headers["X-Request-ID"], endpoint


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_log_of_an_unforeseen_error_holds_no_values(
    app: Flask, portal: Portal, monkeypatch: pytest.MonkeyPatch, capsys, log_format: str
) -> None:
    from portal.observability.logs import configure_logs
    from portal.services.people import sessions

    def fail(_services: object, **_given: object) -> None:
        raise RuntimeError

    settings = portal.services.settings.model_copy(update={"log_format": log_format})
    monkeypatch.setattr(sessions, "sign_in", fail)
    configure_logs(settings)
    body = {"username": "ada", "password": "a very secret password"}
    answer = app.test_client().post("/api/auth/token", json=body)
    assert answer.status_code == 500
    logged = capsys.readouterr().err
    assert "RuntimeError" in logged
    assert answer.headers["X-Request-ID"] in logged
    assert "very secret" not in logged
    assert portal.services.secret_key[:20] not in logged
    assert portal.services.secret_key not in repr(portal.services)


@for_each(
    "path", ["/documents?q=%00", "/search?q=x&domain=%00", "/login?next=%00", "/documents?%00=1"]
)
def test_nul_in_an_address_is_refused_with_a_message(app: Flask, portal: Portal, path: str) -> None:
    assert app.test_client().get(path, headers=portal.headers()).status_code == 400


def test_malformed_referrers_cause_no_errors(app: Flask) -> None:
    for headers in (
        {"Referer": "http://["},
        {"HX-Request": "true", "HX-Current-URL": "http://["},
    ):
        assert app.test_client().get("/documents", headers=headers).status_code in {303, 401}


def test_unforeseen_error_shows_its_id_and_nothing_else(
    app: Flask, portal: Portal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from portal.services.documents import library

    def fail(*_args: object, **_named: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(library, "list_documents", fail)
    client, headers = app.test_client(), portal.headers()
    for path in ("/documents", "/api/knowledge/documents"):
        answer = client.get(path, headers=headers)
        body = answer.get_data(as_text=True)
        assert answer.status_code == 500
        assert answer.headers["X-Request-ID"] in body
        for leak in ("secret", "RuntimeError", "Traceback", "library.py"):
            assert leak not in body


def test_openapi_describes_every_api_route(app: Flask) -> None:
    spec = app.test_client().get("/openapi").json
    assert spec["openapi"].startswith("3.1")
    described = {
        (path, method.upper()) for path, entry in spec["paths"].items() for method in entry
    }
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(spec)))
    for reference in references:
        kind, name = reference.removeprefix("#/components/").split("/")
        assert name in spec["components"][kind], reference
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(("/api/", "/v1/", "/health")):
            path = re.sub(r"<(?:uuid:|int:)?(\w+)>", r"{\1}", rule.rule)
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
                assert (path, method) in described, (path, method)


def test_unavailable_database_is_a_503_on_every_route(
    app: Flask, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = portal.headers()
    client = app.test_client()
    portal.services.database.dispose()

    def refuse(*_arguments: object, **_named: object) -> None:
        raise psycopg.OperationalError("the server is gone")

    monkeypatch.setattr(psycopg.Connection, "connect", refuse)
    monkeypatch.setattr(psycopg, "connect", refuse)
    for path in ("/api/knowledge/documents", "/documents", "/health", "/health/vector_store"):
        assert client.get(path, headers=headers).status_code == 503, path


def test_every_api_address_in_the_docs_exists(app: Flask) -> None:
    families = {"/".join(rule.rule.split("/")[:3]) for rule in app.url_map.iter_rules()}
    docs = Path(__file__).resolve().parents[2] / "docs"
    named = {
        (page.name, found)
        for page in docs.glob("*.md")
        for found in re.findall(r"(?<![\w.])/api/[a-z][\w-]*", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert {one for one in named if one[1] not in families} == set()
