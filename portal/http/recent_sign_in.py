"""Asking for the password again before rights or credentials change.

Someone who finds a browser unlocked, or steals its cookie, must not be able to turn that into
lasting access: make a token, change a role, remove a second factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from flask import Flask, g, request

from portal.domain.people import SessionKind, SignedIn, TokenKind
from portal.errors import NeedsSession, ReauthenticationRequired, WrongCredentials
from portal.http import context
from portal.http.marks import Mark
from portal.services.people import sessions

MAX_AGE = timedelta(minutes=15)
PASSWORD_FIELD = "confirm_password"  # noqa: S105 - the name of a field

require_recent_sign_in = Mark(needs_recent_sign_in=True)
"""Mark a view that changes rights or credentials.

In a browser's session, the user must have authenticated within the last 15 minutes. If not, a page
asks for the password and then sends the same form again; a JSON API responds with 403
`reauthentication_required`. Tokens of API clients and of the command line are exempt.
"""

confirms_password = Mark(confirms_password=True)
"""Mark a view that checks the password of the signed-in user. Wrong passwords are counted per
session, separately from those of sign-ins."""


def init_app(app: Flask) -> None:
    """Check marked views. Call this after CSRF protection: a form may contain the password."""
    app.before_request(check_recent_sign_in)


def is_confirmation() -> bool:
    """Return whether this request contains the password of the signed-in user."""
    marks = context.marks()
    return marks.confirms_password or (marks.needs_recent_sign_in and bool(_given_password()))


def is_recent(signed_in: SignedIn) -> bool:
    """Return whether the user has authenticated recently, or does not have to."""
    session = signed_in.session
    if context.bearer_token(request) is not None:
        # A thief may send a cookie's token in a bearer header: it still counts as a browser's.
        if session is None or session.kind is not SessionKind.BROWSER:
            return True
    elif session is None:
        return False
    return datetime.now(UTC) - session.authenticated_at <= MAX_AGE


def check_recent_sign_in() -> None:
    """Check the password in the form if the view needs a recent sign-in and the last one is too
    old. Raises ReauthenticationRequired if it is missing or wrong, NeedsSession."""
    if not context.marks().needs_recent_sign_in:
        return
    signed_in = context.signed_in()
    if signed_in is None or is_recent(signed_in):
        return
    password = _given_password()
    if not password:
        raise ReauthenticationRequired
    try:
        confirm_password(password)
    except WrongCredentials as error:
        raise ReauthenticationRequired(is_wrong=True) from error


def require_recent() -> None:
    """Raise ReauthenticationRequired unless the sign-in is recent. For views whose requests contain
    no password."""
    signed_in = context.signed_in()
    if signed_in is not None and not is_recent(signed_in):
        raise ReauthenticationRequired


def confirm_password(password: str) -> None:
    """Check the password of the signed-in user, and record that they have authenticated. Raises
    WrongCredentials, NeedsSession."""
    signed_in = context.signed_in()
    if signed_in is None or signed_in.token_kind is not TokenKind.ACCESS:
        raise NeedsSession
    with counting_failure():
        sessions.confirm_password(context.services(), signed_in, password)


@contextmanager
def counting_failure() -> Iterator[None]:
    """Count a wrong password of this request against its session."""
    try:
        yield
    except WrongCredentials:
        g.wrong_password = True
        raise


def has_failed() -> bool:
    """Return whether the password of this request was wrong."""
    return bool(g.get("wrong_password"))


def _given_password() -> str:
    return request.form.get(PASSWORD_FIELD, "")
