"""The state of a sign-in at the provider, in a cookie: signed, short-lived, used once.

A sign-in can be finished only in the browser in which it began. One that began in a session, to
link an account, can be finished only in that session.
"""

from __future__ import annotations

import hmac
from dataclasses import astuple, dataclass
from uuid import UUID

from flask import g
from itsdangerous import BadSignature, URLSafeTimedSerializer
from werkzeug.wrappers import Response

from portal.errors import ProviderSignInExpired
from portal.http import context, cookies
from portal.services.people.federation import oidc_sign_ins

SIGN_IN, LINK, CONFIRM = "sign-in", "link", "confirm"


@dataclass(frozen=True, slots=True)
class Flow:
    """Why a browser goes to the provider, the values to check when it returns, and where it goes
    afterwards."""

    purpose: str
    state: str
    nonce: str
    verifier: str
    redirect_uri: str
    after: str | None = None
    session_id: str | None = None


def keep(response: Response, flow: Flow) -> Response:
    value = _serializer("flow").dumps(astuple(flow))
    cookies.set_cookie(response, cookies.OIDC, value, max_age=oidc_sign_ins.LIFE_S)
    return response


def load(state: str) -> Flow:
    """Return the flow that this browser began with `state`; it can be loaded once. Raises
    ProviderSignInExpired."""
    try:
        flow = Flow(*_read("flow"))
    except (BadSignature, ValueError, TypeError) as error:
        raise ProviderSignInExpired from error
    if not hmac.compare_digest(flow.state.encode(), state.encode("utf-8", "surrogatepass")):
        raise ProviderSignInExpired
    if flow.session_id is not None and flow.session_id != _current_session_id():
        raise ProviderSignInExpired
    # The cookie is deleted below, but a copy of it would still verify.
    if not oidc_sign_ins.use_state(context.services(), flow.state):
        raise ProviderSignInExpired
    return flow


def begin_attaching(sign_in_id: UUID) -> None:
    """Let the next session of this request be attached to a sign-in at the provider."""
    g.oidc_sign_in_id = sign_in_id


def attach(session_id: UUID, user_id: UUID) -> None:
    """Record that a session began with this browser's sign-in at the provider, made in this request
    or before the second factor. Raises ProviderSignInExpired."""
    sign_in_id = g.pop("oidc_sign_in_id", None)
    try:
        sign_in_id = sign_in_id or UUID(str(_read("sign-in")))
    except (BadSignature, ValueError, TypeError) as error:
        raise ProviderSignInExpired from error
    services = context.services()
    oidc_sign_ins.attach(services, sign_in_id, session_id=session_id, user_id=user_id)


def finish(response: Response) -> Response:
    """Delete the flow; keep the sign-in if a second factor is still missing."""
    sign_in_id: UUID | None = g.pop("oidc_sign_in_id", None)
    if sign_in_id is None:
        cookies.delete_cookie(response, cookies.OIDC)
    else:
        value = _serializer("sign-in").dumps(str(sign_in_id))
        cookies.set_cookie(response, cookies.OIDC, value, max_age=oidc_sign_ins.LIFE_S)
    return response


def _current_session_id() -> str | None:
    signed_in = context.signed_in()
    return str(signed_in.session.id) if signed_in and signed_in.session else None


def _read(kind: str) -> list[str] | str:
    value = cookies.get_cookie(cookies.OIDC) or ""
    found: list[str] | str = _serializer(kind).loads(value, max_age=oidc_sign_ins.LIFE_S)
    return found


def _serializer(kind: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(context.services().secret_key, salt=f"portal-oidc-{kind}")
