"""Limit of wrong passwords where a session has to confirm its own.

Counted per session: a stolen session cannot guess for long, nor use up the owner's sign-in
attempts.
"""

from __future__ import annotations

from flask_limiter import Limit

from portal.http import context, recent_sign_in
from portal.limits.everyday import NONE


def limits() -> list[Limit]:
    return [Limit(_allowed, key_function=_session, scope="confirm-password", shared=True)]


def has_failed() -> bool:
    """Return whether the password was wrong."""
    return recent_sign_in.has_failed()


def _allowed() -> str:
    if not recent_sign_in.is_confirmation() or context.signed_in() is None:
        return NONE
    return str(context.services().settings.rate_limits.sign_in_confirmation)


def _session() -> str:
    signed_in = context.signed_in()
    if signed_in is None:
        return "no session"
    return f"session {signed_in.session.id if signed_in.session else signed_in.user.id}"
