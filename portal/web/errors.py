"""Render errors as a page, or as a fragment if HTMX sent the request.

The reader sees the error's message in their language and a request id that finds the log line,
never a stack trace.
"""

from __future__ import annotations

from contextlib import suppress
from typing import IO, cast

import structlog
from flask import Response, current_app, make_response, render_template, request, url_for
from flask_babel import gettext
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.wrappers import Response as AnyResponse
from werkzeug.wsgi import LimitedStream

from portal.errors import (
    N_,
    CsrfFailed,
    MethodNotAllowed,
    NotSignedIn,
    PortalError,
    ReauthenticationRequired,
    RequestTooLarge,
    SecondFactorEnrolmentRequired,
    StorageFull,
    WrongCredentials,
    is_disk_full,
)
from portal.http import context
from portal.http.messages import error_message
from portal.observability import metrics
from portal.web.i18n import load_reader
from portal.web.layout import see_other, wants_fragment
from portal.web.security import local_path, referring_path

log = structlog.get_logger(__name__)

DRAIN_LIMIT_BYTES = 2 * 1024**3
_DRAINED_AT_ONCE_BYTES = 1024 * 1024
# Statuses of errors that may be raised before the whole body has been read.
_WHILE_SENDING = {RequestTooLarge.status, StorageFull.status}

TITLES = {
    400: N_("Bad request"),
    401: N_("Sign in required"),
    403: N_("Permission denied"),
    404: N_("Not found"),
    405: N_("Method not allowed"),
    408: N_("The request took too long"),
    409: N_("Conflict"),
    413: N_("Too large"),
    415: N_("Unsupported file type"),
    422: N_("Please check your input"),
    429: N_("Too many requests"),
    503: N_("Temporarily unavailable"),
    507: N_("Server storage full"),
}
TITLE_OTHERWISE = N_("Something went wrong")
FORM_EXPIRED = N_("This form has expired")


def respond(error: Exception) -> AnyResponse:
    """Return the page or fragment of an error; redirects of the framework are passed on."""
    if is_disk_full(error):
        error = StorageFull()
    if isinstance(error, PortalError):
        if error.status in _WHILE_SENDING:
            _drain()
        return show_error(error)
    if not isinstance(error, HTTPException):
        log.error("request_failed", error_type=type(error).__name__, exc_info=error)
        return show_error(PortalError())
    code = error.code or 500
    if code < 400:  # noqa: PLR2004 - not an error
        return AnyResponse.force_type(error.get_response(), request.environ)
    if code == RequestTooLarge.status:
        _drain()
    is_reading = request.method in context.SAFE_METHODS
    if code == MethodNotAllowed.status and is_reading and not wants_fragment():
        return see_other(_nearest_page())
    response = show_error(context.as_portal_error(error, code))
    context.copy_headers(response, error)
    return response


def show_error(error: PortalError) -> AnyResponse:
    """Return the page or fragment of an expected failure, or a redirect to the sign-in page."""
    load_reader()
    if isinstance(error, NotSignedIn) and not isinstance(error, WrongCredentials):
        return _to_sign_in()
    if isinstance(error, SecondFactorEnrolmentRequired):
        return _to_enrolment()
    metrics.count_error(error.code, "page")
    if isinstance(error, ReauthenticationRequired):
        return _ask_to_confirm(error)
    is_expired = isinstance(error, CsrfFailed)
    title = FORM_EXPIRED if is_expired else TITLES.get(error.status, TITLE_OTHERWISE)
    values = {"message": error_message(error), "title": gettext(title), "status": error.status}
    values["form_page"] = referring_path() if is_expired else None
    values |= {"request_id": context.request_id(), "code": error.code}
    name = "errors/_error.html" if wants_fragment() else "errors/error.html"
    response = make_response(render_template(name, **values), error.status)
    if wants_fragment():
        response.headers["HX-Retarget"] = "#notifications"
        response.headers["HX-Reswap"] = "beforeend"
    context.add_error_headers(response, error)
    return response


def _nearest_page() -> str:
    """Return the nearest page above this path. A browser that shows the response to a form is at
    the form's address, which may have no page."""
    routes = current_app.create_url_adapter(request)
    path = request.path
    while routes and path != "/":
        path = path.rpartition("/")[0] or "/"
        if routes.test(path, "GET"):
            return path
    return "/"


def _to_sign_in() -> AnyResponse:
    """Redirect to the sign-in page, which leads back to where the user was."""
    came_from = request.full_path.rstrip("?") if request.method in context.SAFE_METHODS else None
    if wants_fragment():
        came_from = referring_path()
        address = url_for("sign_in.show", next=came_from or None)
        return Response("", status=401, headers={"HX-Redirect": address})
    after = local_path(came_from) or referring_path()
    return see_other(url_for("sign_in.show", next=after))


def _ask_to_confirm(error: ReauthenticationRequired) -> AnyResponse:
    """Show the page that asks for the password and then sends the same form again."""
    # Imported here to avoid a cycle.
    from portal.web.people import confirming

    if wants_fragment():
        address = url_for("confirming.show", next=referring_path())
        return Response("", status=error.status, headers={"HX-Redirect": address})
    return make_response(confirming.ask(error))


def _to_enrolment() -> AnyResponse:
    """Redirect to the page that sets up a second factor."""
    address = url_for("second_factors.show")
    if wants_fragment():
        return Response("", status=403, headers={"HX-Redirect": address})
    return see_other(address)


def _drain() -> None:
    # If the server closes the connection early, a browser that is still sending shows "connection
    # reset" instead of our message. So the rest of an upload is read and dropped, up to a limit.
    if not context.marks().accepts_files or context.signed_in() is None:
        return
    try:
        stream: IO[bytes] = request.stream
    except RequestEntityTooLarge:
        # Refused because of its Content-Length: nothing has been read.
        sent = request.environ["wsgi.input"]
        stream = cast("IO[bytes]", LimitedStream(sent, request.content_length or 0))
    left = DRAIN_LIMIT_BYTES
    with suppress(HTTPException, OSError):
        while left > 0 and (piece := stream.read(_DRAINED_AT_ONCE_BYTES)):
            left -= len(piece)
