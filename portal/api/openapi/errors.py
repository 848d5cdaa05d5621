"""Describe the errors of a route in the shape of its family, each with an example."""

from __future__ import annotations

from typing import Any

from portal.api.openapi.routes import Route
from portal.api.schemas import ENVELOPE_PREFIX, ERROR_WORDS
from portal.errors import (
    BodyTooSlow,
    Conflict,
    Forbidden,
    InvalidEmbedding,
    InvalidInput,
    MalformedRequest,
    NotFound,
    NotSignedIn,
    PortalError,
    RateLimited,
    ReauthenticationRequired,
    RequestTooLarge,
    StorageFull,
    Unavailable,
    UnsupportedMediaType,
    verbatim,
)

# One error per status. They are real errors, so that the examples cannot become outdated.
EXAMPLES: tuple[PortalError, ...] = (
    MalformedRequest("invalid cursor"),
    NotSignedIn(),
    Forbidden(),
    NotFound(),
    Conflict("this is the last administrator"),
    BodyTooSlow(),
    RequestTooLarge(limit_mb=50),
    UnsupportedMediaType(),
    InvalidInput(verbatim("query")),
    RateLimited(seconds=12),
    PortalError(),
    InvalidEmbedding("some of its numbers are not finite"),
    Unavailable(),
    StorageFull(),
)
_BY_STATUS = {error.status: error for error in EXAMPLES}
_OWN_SCHEMAS = {
    f"#/components/schemas/{name}" for name in ("ErrorBody", "HTTPError", "ValidationError")
}


def add(responses: dict[str, Any], route: Route, has_input: bool, has_body: bool) -> None:
    """Add the errors of an operation, each with its schema and an example."""
    for status in _statuses(route, has_input, has_body):
        responses.setdefault(str(status), {})
    for code in [code for code in responses if code[0] in "45"]:
        response = responses[code]
        response.setdefault("description", ERROR_WORDS[int(code)])
        if code == "414":
            # The web server refuses the request before the application sees it.
            response["content"] = {"text/html": {"schema": {"type": "string"}}}
            continue
        content = response.setdefault("content", {}).setdefault("application/json", {})
        schema = content.get("schema", {})
        if not schema or schema.get("$ref") in _OWN_SCHEMAS:
            content |= _content(int(code), route)
    ordered = sorted(responses.items())
    responses.clear()
    responses.update(ordered)


def _statuses(route: Route, has_input: bool, has_body: bool) -> list[int]:
    """Return the statuses of a route: 400 for a NUL, 414 for a long address, 503 without a
    database."""
    found = [400, 413, 414, 500, 503]
    if not route.is_public:
        found += [401, 403]
    if "{" in route.path:
        found.append(404)
    if has_body:
        found += [408, 415]
    if has_input:
        found.append(422)
    if route.is_limited:
        found.append(429)
    return found


def _content(status: int, route: Route) -> dict[str, Any]:
    is_envelope = route.path.startswith(ENVELOPE_PREFIX)
    schema = "ErrorEnvelope" if is_envelope else "ErrorBody"
    content: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    error = _BY_STATUS[status]
    if status == Forbidden.status and route.needs_recent_sign_in:
        shown = (error, ReauthenticationRequired())
        content["examples"] = {
            shown_error.code: {"value": _example(shown_error, is_envelope)} for shown_error in shown
        }
    else:
        content["example"] = _example(error, is_envelope)
    return content


def _example(error: PortalError, is_envelope: bool) -> dict[str, Any]:
    detail: dict[str, Any] = {
        "code": error.code,
        "message": str(error),
        "request_id": "3f6c1d2e9b7a4c58a1e0d4b2c3f5a697",
    }
    if isinstance(error, InvalidInput):
        detail["details"] = {"json": {"query": ["Field required"]}}
    if is_envelope:
        return {"success": False, "data": None, "error": detail}
    return {"error": detail}
