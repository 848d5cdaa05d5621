"""Claims about the OpenAPI document, checked for every registered endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV31SpecValidator

from portal import create_app
from portal.api.openapi.examples import FALLBACK
from portal.api.schemas import ENVELOPE_PREFIX
from portal.container import build_services
from portal.http.marks import marks_of
from tests.conftest import make_settings

Operation = dict[str, Any]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """Return a client of a portal without a database, which the document does not need."""
    settings = make_settings(tmp_path_factory.mktemp("data"), "postgresql://127.0.0.1:1/none")
    return create_app(build_services(settings)).test_client()


@pytest.fixture(scope="module")
def spec(client: FlaskClient) -> dict[str, Any]:
    return client.get("/openapi").get_json()


def operations(spec: dict[str, Any]) -> Iterator[tuple[str, str, Operation]]:
    """Yield (name, path, operation) of every operation; the name is for failure messages."""
    for path, methods in spec["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", path, operation


def contents(operation: Operation) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (where, media type, content) of the request and of every response."""
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield "request", media_type, content
    for status, response in operation["responses"].items():
        for media_type, content in response.get("content", {}).items():
            yield status, media_type, content


def parameters(operation: Operation) -> list[dict[str, Any]]:
    return operation.get("parameters", [])


def test_document_is_openapi_3_1(spec: dict[str, Any]) -> None:
    errors = [
        f"{'/'.join(map(str, error.path))}: {error.message}"
        for error in OpenAPIV31SpecValidator(spec).iter_errors()
    ]
    assert errors == []
    assert {"title", "version", "description", "contact", "license"} <= set(spec["info"])
    assert spec["servers"]


def test_document_does_not_contain_the_host_of_the_request(client: FlaskClient) -> None:
    answer = client.get("/openapi", headers={"Host": "another.localhost"})
    assert answer.status_code == 200
    assert "another.localhost" not in answer.get_data(as_text=True)


def test_every_operation_has_a_summary_and_a_described_tag(spec: dict[str, Any]) -> None:
    described = {tag["name"] for tag in spec["tags"] if tag.get("description")}
    seen: dict[str, str] = {}
    for name, _, operation in operations(spec):
        assert operation.get("summary"), name
        assert set(operation.get("tags", [])) & described, f"{name}: its tag has no description"
        assert seen.setdefault(operation["operationId"], name) == name


def test_every_operation_says_who_may_call_it(spec: dict[str, Any]) -> None:
    schemes = spec["components"]["securitySchemes"]
    for name, _, operation in operations(spec):
        assert "security" in operation, name
        for requirement in operation["security"]:
            assert set(requirement) <= set(schemes), name
        assert ("401" in operation["responses"]) or not operation["security"], name


def test_every_response_has_a_schema_and_its_headers(spec: dict[str, Any]) -> None:
    for name, _, operation in operations(spec):
        successes = [status for status in operation["responses"] if status[0] in "23"]
        assert successes, f"{name}: no success is described"
        for status, response in operation["responses"].items():
            assert response.get("description"), f"{name} {status}"
            assert "X-Request-ID" in response["headers"], f"{name} {status}"
        for where, media_type, content in contents(operation):
            assert content.get("schema"), f"{name} {where} {media_type}: no schema"


def test_every_error_has_the_shape_of_its_family(spec: dict[str, Any]) -> None:
    for name, path, operation in operations(spec):
        for status in ("400", "413", "414", "500", "503"):
            assert status in operation["responses"], f"{name} {status}"
        shape = "ErrorEnvelope" if path.startswith(ENVELOPE_PREFIX) else "ErrorBody"
        for status, response in operation["responses"].items():
            if status == "414":
                # Sent by the web server, which knows no routes.
                assert list(response["content"]) == ["text/html"], name
            elif status.startswith("4"):
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": f"#/components/schemas/{shape}"}, f"{name} {status}"


def test_every_parameter_has_a_description_and_a_range(spec: dict[str, Any]) -> None:
    for name, _, operation in operations(spec):
        for parameter in parameters(operation):
            where = f"{name} {parameter['name']}"
            assert parameter.get("description"), f"{where}: no description"
            shapes = parameter["schema"].get("anyOf", [parameter["schema"]])
            for shape in shapes:
                if shape.get("type") in {"integer", "number"}:
                    # Some have no minimum: they replace values that are too small by their default.
                    assert "maximum" in shape, f"{where}: no range"
                if shape.get("type") == "string":
                    assert set(shape) & {"maxLength", "enum", "format", "const"}, (
                        f"{where}: no length"
                    )


def test_every_body_has_an_example_that_fits_its_schema(spec: dict[str, Any]) -> None:
    for name, _, operation in operations(spec):
        for where, media_type, content in contents(operation):
            if media_type != "application/json":
                continue
            examples = [one["value"] for one in content.get("examples", {}).values()]
            examples += [content["example"]] if "example" in content else []
            assert examples, f"{name} {where}: no example"
            schema = {"components": spec["components"], **content["schema"]}
            for example in examples:
                problems = [
                    f"{error.instance_path}: {error.message}"
                    for error in jsonschema_rs.Draft202012Validator(
                        schema, validate_formats=True
                    ).iter_errors(example)
                ]
                assert problems == [], f"{name} {where}"
                text = json.dumps(example, ensure_ascii=False)
                assert f'"{FALLBACK}"' not in text, f"{name} {where}: a field needs an example"


def test_every_parameter_example_fits(spec: dict[str, Any]) -> None:
    for name, _, operation in operations(spec):
        for parameter in parameters(operation):
            if "example" in parameter:
                schema = {"components": spec["components"], **parameter["schema"]}
                assert jsonschema_rs.is_valid(schema, parameter["example"]), (name, parameter)


def test_every_change_of_rights_documents_the_password_prompt(
    client: FlaskClient, spec: dict[str, Any]
) -> None:
    described = {operation["operationId"] for _, _, operation in operations(spec)}
    asking = {
        operation["operationId"]
        for _, _, operation in operations(spec)
        for content in operation["responses"].get("403", {}).get("content", {}).values()
        if "reauthentication_required" in content.get("examples", {})
    }
    marked = {
        endpoint.replace("_api.", "_").replace(".", "_")
        for endpoint, view in client.application.view_functions.items()
        if marks_of(view).needs_recent_sign_in
    }
    assert asking == marked & described
    assert "users_change_user" in asking


def test_a_model_has_one_name(spec: dict[str, Any]) -> None:
    """A generated client has one class for a chunk, not one for each list that contains it."""
    assert [name for name in spec["components"]["schemas"] if "." in name] == []


def test_conditions_of_an_upload_and_a_stream_are_described(spec: dict[str, Any]) -> None:
    upload = spec["paths"]["/api/knowledge/documents"]["post"]
    assert "Idempotency-Key" in {parameter["name"] for parameter in upload["parameters"]}
    for path in (
        "/api/conversations/{conversation_id}/messages",
        "/api/messages/{message_id}/retry",
    ):
        assert "text/event-stream" in spec["paths"][path]["post"]["responses"]["200"]["content"]
    file = spec["paths"]["/api/knowledge/documents/{document_id}/file"]["get"]
    assert "application/pdf" in file["responses"]["200"]["content"]
    assert "Retry-After" in upload["responses"]["429"]["headers"]
