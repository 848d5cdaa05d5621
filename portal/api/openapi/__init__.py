"""Complete the OpenAPI document by rules for all views and models.

A new endpoint is complete by default: its security, errors, headers, id and examples follow from
its route and its models. A view adds only its docstring, and errors that no rule can know
(`portal.api.blueprint`).
"""

from __future__ import annotations

from typing import Any

from flask import Flask

from portal.api.openapi import components, operations, routes

INFO = {
    "summary": "Upload documents, search them and get cited answers, in Chinese and English.",
    "description": (
        "Everything that the portal's pages do, for programs. Get a token from "
        "`POST /api/auth/token` and send it as `Authorization: Bearer …`.\n\n"
        "Errors are `{error: {code, message, request_id, details?}}`, and under `/api/v1` the same "
        "inside `{success: false, data: null, error}`. `code` is stable, for programs; `message` "
        "follows `Accept-Language` (`zh-CN`, `en`). Items you cannot access return 404, as if "
        "they did not exist. Every answer carries `X-Request-ID`; a request may bring its own "
        "(8 to 64 letters, digits, dots, dashes)."
    ),
    "contact": {"name": "The Portal authors"},
    "license": {"name": "MIT", "identifier": "MIT"},
}
# Relative, since the document is cached: later clients must not see the Host header of the first
# request.
SERVERS = [{"url": "/", "description": "the portal that serves this document"}]


def init_app(app: Flask) -> None:
    """Keep APIFlask from adding errors that the portal does not return."""
    for name in ("AUTO_404_RESPONSE", "AUTO_VALIDATION_ERROR_RESPONSE", "AUTO_AUTH_ERROR_RESPONSE"):
        app.config[name] = False


def complete(spec: dict[str, Any], app: Flask) -> dict[str, Any]:
    """Fill in everything that follows from the routes and the models."""
    spec["info"] |= INFO
    spec["servers"] = SERVERS
    # Blueprints of one family share its tag.
    spec["tags"] = list({tag["name"]: tag for tag in spec["tags"]}.values())
    components.name_schemas(spec)
    components.add_shared(spec)
    for route in routes.list_routes(app):
        operation = spec["paths"].get(route.path, {}).get(route.method)
        if operation is not None:
            operations.complete(operation, route, spec["components"]["schemas"])
    components.drop_unused(spec)
    return spec
