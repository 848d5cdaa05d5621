"""Describe what follows from a route: access, errors and headers."""

from __future__ import annotations

from typing import Any

from portal.api.openapi import components, errors
from portal.api.openapi.examples import example_of, request_example
from portal.api.openapi.routes import Route
from portal.domain.documents.revisions import MAX_NUMBER

_TEXTUAL = ("application/json", "multipart/form-data")
_LIMIT_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


def complete(operation: dict[str, Any], route: Route, schemas: dict[str, Any]) -> None:
    """Add everything that the view does not declare itself."""
    operation["operationId"] = _operation_id(route)
    # In OpenAPI 3.1, a bearer scheme may list the scopes that a token needs.
    operation["security"] = [] if route.is_public else [{"bearer": [route.scope]}]
    _complete_parameters(operation, route)
    has_input = "requestBody" in operation or any(
        parameter["in"] == "query" for parameter in operation.get("parameters", [])
    )
    errors.add(operation["responses"], route, has_input, "requestBody" in operation)
    _complete_bodies(operation, route, schemas)
    _complete_headers(operation, route)


def _operation_id(route: Route) -> str:
    """Return the family and the view, such as `knowledge_search`, and the method if the view has
    several."""
    name = route.endpoint.replace("_api.", "_").replace(".", "_")
    return f"{name}_{route.method}" if route.shares_view else name


def _complete_parameters(operation: dict[str, Any], route: Route) -> None:
    for parameter in operation.get("parameters", []):
        schema = parameter["schema"]
        schema.pop("title", None)
        if parameter["in"] == "path":
            parameter["required"] = True
            if parameter["name"] in route.uuid_arguments:
                schema["format"] = "uuid"
            if schema.get("type") == "integer":
                schema |= {"minimum": 1, "maximum": MAX_NUMBER}
                parameter.setdefault("description", "which one, from 1")
            noun = parameter["name"].removesuffix("_id").replace("_", " ")
            parameter.setdefault("description", f"id of the {noun}")
        if parameter["in"] == "path" or "examples" in schema:
            parameter.setdefault("example", example_of(schema, {}, parameter["name"]))
        if "description" in schema:
            parameter.setdefault("description", schema["description"])


def _complete_bodies(operation: dict[str, Any], route: Route, schemas: dict[str, Any]) -> None:
    body = operation.get("requestBody")
    if body is not None:
        body["required"] = not route.body_is_optional
        for media_type, content in body["content"].items():
            if media_type in _TEXTUAL and "examples" not in content:
                content.setdefault("example", request_example(content["schema"], schemas))
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json", {})
        if status.startswith("2") and content.get("schema") and "examples" not in content:
            content.setdefault("example", example_of(content["schema"], schemas))


def _complete_headers(operation: dict[str, Any], route: Route) -> None:
    for status, response in operation["responses"].items():
        names = ["X-Request-ID", *(_LIMIT_HEADERS if route.is_limited else ())]
        if status in {"429", "503"}:
            names.append("Retry-After")
        if status in {"401", "403"}:
            names.append("WWW-Authenticate")
        headers = response.setdefault("headers", {})
        for name in names:
            headers.setdefault(name, components.header(name))
