"""How often a session may give a wrong password for the account that it is signed in as.

Counted for each session by itself. Whoever has stolen a session cannot guess for long, and cannot
use up the attempts that the owner has for signing in.
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
        return "nobody"
    return f"session {signed_in.session.id if signed_in.session else signed_in.user.id}"
