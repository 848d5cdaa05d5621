"""Schemathesis tests every operation of /openapi with valid and invalid requests.

Every phase runs (examples, coverage, fuzzing, links between operations) with every check: no 5xx,
responses as described, valid requests accepted and invalid ones refused, undocumented methods and
missing tokens rejected. Two environment variables run more examples, including all operations as an
administrator, or only some paths:

    PORTAL_SCHEMATHESIS_EXAMPLES=200 PORTAL_SCHEMATHESIS_ONLY=^/api/knowledge \\
        ./run test tests/contracts/test_schemathesis.py
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
from flask import Flask
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import Status, events, from_schema
from schemathesis.specs.openapi.schemas import OpenApiSchema
from werkzeug.serving import WSGIRequestHandler, make_server

from portal.database.server import cluster_files
from portal.domain.people import User
from portal.services.answers import answering, conversations
from tests.conftest import Portal
from tests.factories.servers import running

ASKED_FOR = os.environ.get("PORTAL_SCHEMATHESIS_EXAMPLES")
EXAMPLES = int(ASKED_FOR or "2")
ONLY = os.environ.get("PORTAL_SCHEMATHESIS_ONLY", "")
SEED = 20260504
# Without its session or account, a run would get nothing but 401.
ENDS_SESSIONS = re.compile(r"/api/(auth/revoke|account/sessions|users/)")
DELETES_ITS_ACCOUNT = "/api/account/delete"
AUTHORIZATION = "HTTP_AUTHORIZATION"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


# Rules that a schema cannot express: whether these bytes are a document, or whether a name has any
# visible character (a tab and a private-use character have none).
ACCEPTED = [*range(200, 400), 401, 403, 404, 409, 429]
OF_FILES = (400, 415, 422)  # 400: the name of a further field has a NUL.
OF_WORDS = {
    "POST /api/auth/tokens": 422,
    # The account is the user's own, or the one that is to receive its documents.
    "DELETE /api/users/{user_id}": 422,
    # A name or a tag has a slash or a comma, or no visible character.
    "POST /api/folders": 422,
    "PATCH /api/folders/{folder_id}": 422,
    "PUT /api/knowledge/documents/{document_id}/tags": 422,
    # The operator allows directories; a schema cannot know which.
    "PUT /api/folders/{folder_id}/source": 422,
    # Either ids or filters, and the value that the action needs.
    "POST /api/knowledge/bulk": 422,
    # A cursor belongs to one order of documents.
    "GET /api/knowledge/documents": 400,
    "GET /v1/documents": 400,
    # Only negative feedback has a reason.
    "PUT /api/messages/{message_id}/feedback": 422,
    # The name is no encoding, or these bytes are not valid in it.
    "POST /api/knowledge/documents/{document_id}/reindex": 422,
}
# Its 404 is about the user that the body names.
NAMES_PER_USER = "POST /api/conversations/{conversation_id}/readers"
# A schema cannot know the dimensions of the active model or which values an operator accepts.
OF_VECTORS_AND_FILTERS = {
    f"POST /api/v1/search/{name}": 422 for name in ("semantic", "text", "hybrid", "batch")
}


@pytest.fixture
def app(portal: Portal) -> Flask:
    return portal.app()


def furnish(portal: Portal, user: User) -> None:
    """Add documents and a conversation with an answer that cites them."""
    portal.add("年假为每年十五天，入职满一年后可用。", name="leave.txt", owner=user)
    portal.add("# Travel\n\nTrips are paid within two weeks.", name="travel.md", owner=portal.admin)
    made = conversations.create(portal.services, user, "年假")
    for _ in answering.ask(portal.services, user, made.id, "年假有多少天？"):
        pass


def settings_of(token: str, spec: dict[str, Any], user: User, *, has_bm25: bool) -> dict[str, Any]:
    operations = list(_refusals_of_good_values(spec))
    if ASKED_FOR is None:
        operations += _covered_elsewhere(spec, user, has_bm25=has_bm25)
    return {
        "seed": SEED,
        "headers": {"Authorization": f"Bearer {token}"},
        "generation": {
            "max-examples": EXAMPLES,
            "deterministic": True,
            "database": "none",
            "no-shrink": True,
        },
        "phases": {"stateful": {"max-steps": 4}},
        "suppress-health-check": ["all"],
        "continue-on-failure": True,
        "cache": {"enabled": False},
        "operations": operations,
    }


def _covered_elsewhere(
    spec: dict[str, Any], user: User, *, has_bm25: bool
) -> Iterator[dict[str, Any]]:
    """Switch off the coverage phase, which makes most calls, for operations that another run
    covers: administrators' operations run as an administrator, since others get nothing but 403,
    and the rest as an ordinary user, on a server with pg_textsearch."""
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            is_for_user = ({"bearer": ["admin"]} in operation["security"]) == user.is_admin
            if not (is_for_user and has_bm25):
                yield {
                    "include-name": f"{method.upper()} {path}",
                    "phases": {"coverage": {"enabled": False}},
                }


def _refusals_of_good_values(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {
        "include-name": NAMES_PER_USER,
        "checks": {"ensure_resource_availability": {"enabled": False}},
    }
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            refused: list[int] = []
            if "multipart/form-data" in operation.get("requestBody", {}).get("content", {}):
                refused += OF_FILES
            named = OF_WORDS | OF_VECTORS_AND_FILTERS
            if f"{method.upper()} {path}" in named:
                refused.append(named[f"{method.upper()} {path}"])
            if path.startswith("/health"):
                # On a machine busy with these tests, the health check may time out.
                check = {"expected-statuses": ["2xx", "4xx", 503]}
                yield {
                    "include-name": f"{method.upper()} {path}",
                    "checks": {"not_a_server_error": check},
                }
            if refused:
                check = {"expected-statuses": [*ACCEPTED, *refused]}
                yield {
                    "include-name": f"{method.upper()} {path}",
                    "checks": {"positive_data_acceptance": check},
                }


def keep_signed_in(app: Flask, portal: Portal, user: User, token: str) -> None:
    """Keep `token` valid for the whole run: calls that end sessions are followed by a new sign-in,
    and calls that delete the user's account delete a spare one."""
    answer = app.wsgi_app
    live = token
    spare_names = (f"spare {number}" for number in itertools.count(1))

    def answer_with_live_token(environ: dict[str, Any], start_response: Any) -> Any:
        nonlocal live
        if token not in environ.get(AUTHORIZATION, ""):
            return answer(environ, start_response)
        path = environ["PATH_INFO"]
        used = live
        if path == DELETES_ITS_ACCOUNT:
            used = portal.token(portal.user(next(spare_names)))
        environ[AUTHORIZATION] = f"Bearer {used}"
        try:
            return answer(environ, start_response)
        finally:
            if ENDS_SESSIONS.match(path):
                live = portal.token(user)

    app.wsgi_app = answer_with_live_token


@contextmanager
def loaded(app: Flask, portal: Portal, user: User) -> Iterator[OpenApiSchema]:
    """Serve a portal over HTTP; yield its schema, with requests sent as `user`."""
    token = portal.token(user)
    spec = app.test_client().get("/openapi").get_json()
    keep_signed_in(app, portal, user, token)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    with running(server):
        has_bm25 = cluster_files.pg_textsearch_prefix() is not None
        config = SchemathesisConfig.from_dict(settings_of(token, spec, user, has_bm25=has_bm25))
        address = f"http://127.0.0.1:{server.server_port}/openapi"
        schema = schemathesis.openapi.from_url(address, config=config)
        yield schema.include(path_regex=ONLY) if ONLY else schema
        headers = {"Authorization": f"Bearer {token}"}
        assert app.test_client().get("/api/account/sessions", headers=headers).status_code == 200


class Quiet(WSGIRequestHandler):
    def log(self, *_arguments: Any) -> None: ...


def failures(schema: OpenApiSchema) -> tuple[list[str], int]:
    """Return the distinct failures and the number of calls."""
    found: dict[str, str] = {}
    calls = 0
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            calls += len(event.recorder.interactions)
            found |= _failed_checks(event)
        elif isinstance(event, events.NonFatalError):
            found[f"{event.label}: {event.value}"] = f"{event.label}: {event.value!r}"
        elif isinstance(event, events.FatalError):
            raise event.exception
    return sorted(found.values()), calls


def _failed_checks(event: events.ScenarioFinished) -> dict[str, str]:
    found: dict[str, str] = {}
    for case_id, checks in event.recorder.checks.items():
        case = event.recorder.cases[case_id].value
        for check in checks:
            if check.status is Status.FAILURE and check.failure_info is not None:
                failure = check.failure_info.failure
                kind = f"{case.operation.label} [{check.name}] {failure.title}"
                call = case.as_curl_command()
                found[kind] = f"{kind}: {failure.message[:600]}\n    {call[:600]}"
    return found


@pytest.mark.parametrize("who", ["person", "administrator"])
def test_every_operation_answers_as_described(app: Flask, portal: Portal, who: str) -> None:
    user = portal.admin if who == "administrator" else portal.user("ada")
    furnish(portal, user)
    with loaded(app, portal, user) as schema:
        found, calls = failures(schema)
        asked = len(list(schema.get_all_operations()))
    assert found == [], "\n" + "\n".join(found)
    assert calls > asked * EXAMPLES
