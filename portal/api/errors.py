"""Errors as JSON: ``{"error": {"code", "message", "request_id", "details"?}}``."""

from __future__ import annotations

from typing import Any, cast

import structlog
from apiflask.exceptions import HTTPError
from flask import Flask, Response, jsonify, request
from flask.typing import ResponseReturnValue
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException

from portal.api import validation
from portal.api.schemas import ENVELOPE_PREFIX
from portal.errors import (
    InvalidInput,
    MalformedRequest,
    PortalError,
    StorageFull,
    UnsupportedMediaType,
    is_disk_full,
    verbatim,
)
from portal.http import context
from portal.http.messages import error_message
from portal.observability import metrics

log = structlog.get_logger(__name__)

_SERVER_ERROR = 500


def init_app(app: Flask, prefixes: tuple[str, ...]) -> None:
    """Handle errors under `prefixes`; pass others to the handler registered before."""
    pages = app.error_handler_spec[None][None].get(Exception)

    def handle(error: Exception) -> ResponseReturnValue:
        if pages is None or request.path.startswith(prefixes):
            return respond(error)
        return cast("ResponseReturnValue", pages(error))

    app.register_error_handler(Exception, handle)
    # APIFlask's own errors come only from declared JSON endpoints.
    app.register_error_handler(HTTPError, respond)


def respond(error: Exception) -> Response:
    """Return the JSON response for any error raised under an API's address."""
    if isinstance(error, HTTPError):
        return _from_validation(error)
    if isinstance(error, HTTPException):
        return _from_http(error)
    if isinstance(error, PortalError):
        return _body(error)
    if is_disk_full(error):
        return _body(StorageFull())
    if isinstance(error, RecursionError):
        return _body(MalformedRequest("the JSON is nested too deeply"))
    log.error("request_failed", error_type=type(error).__name__, exc_info=error)
    return _body(PortalError())


def _body(error: PortalError, details: dict[str, Any] | None = None) -> Response:
    content: dict[str, Any] = {
        "code": error.code,
        "message": error_message(error),
        "request_id": context.request_id(),
    }
    if details or error.details:
        content["details"] = details or error.details
    envelope: dict[str, Any] = {"error": content}
    if request.path.startswith(ENVELOPE_PREFIX):
        envelope = {"success": False, "data": None, **envelope}
    metrics.count_error(error.code, "api")
    response = jsonify(envelope)
    response.status_code = error.status
    context.add_error_headers(response, error)
    return response


def _from_validation(error: HTTPError) -> Response:
    """Return the response for APIFlask's own errors, of validation and parsing."""
    if error.status_code != InvalidInput.status:
        return _from_http(HTTPException(description=error.message), error.status_code)
    details = error.detail if isinstance(error.detail, dict) else {}
    if not isinstance(error.__cause__, ValidationError):
        names = sorted({name for fields in details.values() for name in fields})
        return _body(InvalidInput(verbatim(", ".join(names) or "body")), details)
    words = validation.words_of(error.__cause__)
    reason = verbatim(validation.summary(words))
    return _body(InvalidInput(reason), dict.fromkeys(details, words))


def _from_http(error: HTTPException, code: int | None = None) -> Response:
    code = code or error.code or _SERVER_ERROR
    if code == UnsupportedMediaType.status:
        response = _body(UnsupportedMediaType())
    else:
        response = _body(context.as_portal_error(error, code))
    context.copy_headers(response, error)
    return response
