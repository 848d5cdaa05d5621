"""The services, user, language and id of the current request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast
from uuid import uuid4

import structlog
from flask import Flask, Request, Response, current_app, g, request
from flask_login import LoginManager, UserMixin, current_user
from werkzeug.exceptions import ClientDisconnected, HTTPException
from werkzeug.wrappers import Response as AnyResponse

from portal.domain.people import Scope, SignedIn, TokenKind, User
from portal.domain.people.audit import Origin, Source
from portal.errors import (
    BodyTooLarge,
    BodyTooSlow,
    Forbidden,
    InsufficientScope,
    InvalidToken,
    IssuerUnavailable,
    MalformedRequest,
    MethodNotAllowed,
    NeedsSession,
    NotFound,
    NotSignedIn,
    PortalError,
    RateLimited,
    RequestTooLarge,
    SecondFactorEnrolmentRequired,
    Unavailable,
    verbatim,
)
from portal.http import clients, cookies, hosts
from portal.http.marks import Mark, Marks, marks_of
from portal.observability import tracing
from portal.services import Services, audit
from portal.services.people import tokens

_LANGUAGES = ("zh-CN", "en")
# All variants of Chinese get the Chinese interface.
_CHINESE = ("zh-CN", "zh", "zh-Hans", "zh-Hans-CN", "zh-SG", "zh-TW", "zh-HK", "zh-Hant")

# Requests that only read, RFC 9110.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_FIRST_ERROR = 400
_FIRST_SERVER_ERROR = 500
UPLOAD = "multipart/form-data"

log = structlog.get_logger(__name__)
login_manager = LoginManager()


class CurrentUser(UserMixin):
    """A signed-in user, in the form that flask-login needs."""

    def __init__(self, signed_in: SignedIn) -> None:
        self.signed_in = signed_in

    def get_id(self) -> str:
        return str(self.signed_in.user.id)


def init_app(app: Flask, services: Services) -> None:
    """Set up the services, the id and the user of every request."""
    app.extensions["portal"] = services
    login_manager.init_app(app)
    # The token identifies the user; flask-login must not keep a second copy.
    login_manager.session_protection = None
    app.before_request(_name_request)
    app.before_request(services.database.enter_request)
    app.before_request(hosts.check_host)
    app.after_request(_finish_request)
    app.teardown_request(lambda _error: audit.set_origin(None))
    app.teardown_request(lambda _error: services.database.leave_request())


def require_login(app: Flask) -> None:
    """Require a sign-in for all views that are not public. Call this after the limits are
    registered, so that refused requests are counted too."""
    app.before_request(_require_sign_in)


public = Mark(is_public=True)
"""Mark a view that needs no sign-in; all others do."""

reads = Mark(scope=Scope.READ)
"""Mark a view that only reads although it is a POST, such as a search."""

for_every_token = Mark(scope=Scope.READ, writes=True)
"""Mark a view that writes but accepts any token, such as the one that revokes the token."""

for_administrators = Mark(scope=Scope.ADMIN)
"""Mark a view for administrators; a token needs the scope `admin`."""

while_enrolling = Mark(is_for_enrolment=True)
"""Mark a view that stays open to users who must set up a second factor first."""


def open_when(check: Callable[[], bool]) -> Mark:
    """Mark a view that needs no sign-in while `check` holds."""
    return Mark(is_open=check)


def view() -> Callable[..., Any] | None:
    """Return the view of this request; None for an unknown address."""
    return current_app.view_functions.get(request.endpoint or "")


def marks() -> Marks:
    """Return the marks of this request's view."""
    return marks_of(view())


def is_public() -> bool:
    """Return whether this address needs no sign-in."""
    return marks().is_public


def services() -> Services:
    return cast("Services", current_app.extensions["portal"])


def signed_in() -> SignedIn | None:
    """Return the signed-in user with their token, or None."""
    user = current_user
    return user.signed_in if isinstance(user._get_current_object(), CurrentUser) else None  # noqa: SLF001 - the proxy has no other way


def require_signed_in() -> SignedIn:
    """Return the signed-in user with their token. Raises NotSignedIn, or InvalidToken for a token
    that is not valid."""
    found = signed_in()
    if found is not None:
        return found
    error: PortalError | None = g.get("token_error")
    raise error or NotSignedIn()


def user() -> User:
    """Return the signed-in user. Raises NotSignedIn, InvalidToken."""
    return require_signed_in().user


def caller() -> tuple[Services, User]:
    """Return the services and the user, the first arguments of use cases. Raises NotSignedIn,
    InvalidToken."""
    return services(), user()


def administrator() -> User:
    """Return the signed-in administrator. Raises NotSignedIn, InsufficientScope, Forbidden."""
    _require_scope(Scope.ADMIN)
    found = user()
    _require_enrolled()
    if not found.is_admin:
        raise Forbidden
    return found


def session_user() -> User:
    """Return the user of a session: other tokens, such as personal ones, may not create or revoke
    tokens. Raises NotSignedIn, InvalidToken, NeedsSession."""
    found = require_signed_in()
    if found.token_kind is not TokenKind.ACCESS:
        raise NeedsSession
    return found.user


def language() -> str:
    """Return `zh-CN` or `en`: from the account, else the cookie, else the browser's preference."""
    try:
        found = signed_in()
    except PortalError:
        # Without a database the user is unknown, and the error page still needs a language.
        found = None
    if found is not None and found.user.language:
        return found.user.language
    chosen = cookies.get_cookie(cookies.LANGUAGE)
    if chosen in _LANGUAGES:
        return chosen
    best = request.accept_languages.best_match([*_CHINESE, "en"], default="en")
    return "zh-CN" if best in _CHINESE else "en"


def request_id() -> str:
    """Return the id of this request in the log."""
    return str(g.get("request_id", ""))


def as_portal_error(error: HTTPException, code: int) -> PortalError:
    """Convert an error of the framework to a PortalError."""
    if code == RequestTooLarge.status:
        return _too_large()
    if isinstance(error, ClientDisconnected) and isinstance(error.__context__, TimeoutError):
        return BodyTooSlow()
    if code == RateLimited.status:
        return RateLimited(seconds=retry_after_s(error))
    for known in (NotSignedIn, Forbidden, NotFound, MethodNotAllowed, Unavailable):
        if code == known.status:
            return known()
    is_ours = code >= _FIRST_SERVER_ERROR
    return PortalError() if is_ours else MalformedRequest(verbatim(error.name.lower()))


def _too_large() -> PortalError:
    """Return RequestTooLarge for an upload, else BodyTooLarge."""
    if request.mimetype == UPLOAD and marks().accepts_files:
        return RequestTooLarge(limit_mb=services().settings.max_upload_mb)
    return BodyTooLarge(limit=(request.max_content_length or 0) // 1024)


def add_error_headers(response: AnyResponse, error: PortalError) -> None:
    """Set Retry-After and WWW-Authenticate."""
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s)
    if error.challenge:
        response.headers["WWW-Authenticate"] = error.challenge


def copy_headers(response: AnyResponse, error: HTTPException) -> None:
    """Copy the headers that clients need from an error of the framework."""
    for name, value in error.get_headers():
        if name in {"Allow", "Retry-After"}:
            response.headers[name] = value


def retry_after_s(error: HTTPException) -> int:
    """Return the error's Retry-After; 60 if it has none."""
    seconds = str(dict(error.get_headers()).get("Retry-After", ""))
    return int(seconds) if seconds.isdigit() else 60


def bearer_token(from_request: Request) -> str | None:
    """Return the token of a bearer header, or None. Other schemes are ignored: behind a proxy with
    a password, browsers send that password with every request."""
    scheme, _, token = from_request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def read_token(from_request: Request) -> str | None:
    """Return the token of a request. The cookie is ignored if there is a bearer header: such
    requests skip the CSRF check, and with the cookie they could be forged."""
    bearer = bearer_token(from_request)
    return cookies.get_cookie(cookies.SESSION, of=from_request) if bearer is None else bearer


@login_manager.request_loader
def _load_user(from_request: Request) -> CurrentUser | None:
    token = read_token(from_request)
    if token is None:
        return None
    try:
        return CurrentUser(
            tokens.authenticate(services(), token, address=clients.current_address())
        )
    except (InvalidToken, IssuerUnavailable) as error:
        g.token_error = error
        return None


def _name_request() -> None:
    sent_id = request.headers.get("X-Request-ID", "")
    # Keep a caller's id only if it cannot break a log line.
    g.request_id = sent_id if tracing.is_request_id(sent_id) else uuid4().hex
    tracing.begin(
        g.request_id, request.headers.get("traceparent", ""), request.headers.get("tracestate", "")
    )
    audit.set_origin(
        Origin(Source.WEB, request.remote_addr, request.user_agent.string, g.request_id)
    )
    g.started_at = time.perf_counter()


def _require_sign_in() -> None:
    """Refuse a request that its view does not allow; send permitted reads to a replica."""
    wanted = view()
    if wanted is None or is_public():
        return
    marked = marks_of(wanted)
    if marked.is_open is not None and marked.is_open():
        return
    user()
    if not marked.is_for_enrolment:
        _require_enrolled()
    scope = scope_of(wanted, request.method)
    if scope is Scope.ADMIN:
        administrator()
    else:
        _require_scope(scope)
    # The user was authenticated and authorised on the primary; the rest may read from a replica.
    is_reading = request.method in SAFE_METHODS or marked.scope is Scope.READ
    if is_reading and not marked.writes:
        services().database.enter_reading()


def _require_enrolled() -> None:
    """Refuse a user who must first set up a second factor."""
    found = signed_in()
    if found is not None and found.must_enrol:
        raise SecondFactorEnrolmentRequired


def scope_of(view: Callable[..., Any], method: str) -> Scope:
    """Return the scope that a view needs: the marked one, else read for safe methods and write for
    all others."""
    return marks_of(view).scope or (Scope.READ if method in SAFE_METHODS else Scope.WRITE)


def _require_scope(scope: Scope) -> None:
    found = signed_in()
    if found is not None and scope not in found.scopes:
        raise InsufficientScope(scope=scope.value)


def _path_without_secret() -> str:
    """Return the path without the secret of an invitation or a password link."""
    secret = (request.view_args or {}).get("token")
    return request.path.replace(str(secret), "…") if secret else request.path


def _finish_request(response: Response) -> Response:
    """Add the request id, and log the request without its query string, which has users' words."""
    response.headers.setdefault("X-Request-ID", request_id())
    # Requests that only read are logged at level debug, unless they fail.
    is_news = request.method not in SAFE_METHODS or response.status_code >= _FIRST_ERROR
    (log.info if is_news else log.debug)(
        "request",
        method=request.method,
        path=_path_without_secret(),
        status=response.status_code,
        duration_ms=round((time.perf_counter() - g.get("started_at", 0.0)) * 1000, 1),
    )
    return response
