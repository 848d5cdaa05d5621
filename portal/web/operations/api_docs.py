"""The API reference: Swagger UI over the OpenAPI document, and a plain list without JavaScript."""

from __future__ import annotations

from typing import Any, cast

from apiflask import APIFlask
from flask import Response, current_app, make_response, render_template

from portal.http import context
from portal.web import security
from portal.web.blueprint import PageBlueprint

blueprint = PageBlueprint("api_docs", __name__)

# Swagger UI's style sheet embeds its icons.
_POLICY = security.CONTENT_SECURITY_POLICY.replace("img-src 'self'", "img-src 'self' data:")


@blueprint.get("/docs")
@context.public
def show() -> Response:
    spec = cast("dict[str, Any]", cast("APIFlask", current_app).spec)
    endpoints = [
        (method.upper(), path, operation["summary"])
        for path, operations in sorted(spec["paths"].items())
        for method, operation in operations.items()
    ]
    page = make_response(render_template("pages/operations/api_docs.html", endpoints=endpoints))
    page.headers["Content-Security-Policy"] = _POLICY
    return page
