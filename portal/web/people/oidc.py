"""Sign-in through the OpenID Connect provider, and linking an account to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flask import g, make_response, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal.domain.people import SignedIn, SignInMethod
from portal.errors import (
    NeedsSession,
    NotFound,
    PortalError,
    ProviderDenied,
    ProviderRefused,
    ProviderSignInFailed,
    existing,
)
from portal.http import context
from portal.http.hosts import external_url
from portal.http.messages import error_message
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.people.federation import oidc_accounts, oidc_sign_ins
from portal.services.people.federation.oidc_provider import OidcClaims, OidcProvider
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other, viewer
from portal.web.people import confirming, oidc_flow, sign_in
from portal.web.people.oidc_flow import CONFIRM, LINK, SIGN_IN, Flow
from portal.web.security import next_path

blueprint = PageBlueprint("oidc", __name__, "/oidc")

_MAX_CODE_CHARACTERS = 4096
# A provider that ignores `prompt=login` returns an older sign-in.
_RECENT = timedelta(minutes=5)


@blueprint.get("/sign-in")
@context.public
def begin_sign_in() -> Answer:
    """Send the browser to the provider."""
    after = next_path()
    provider = _provider()
    if viewer() is not None:
        return see_other(after or url_for("home.show"))
    try:
        address, flow = _begin(provider, SIGN_IN, after)
    except PortalError as error:
        return sign_in.show_refusal(error, after)
    return oidc_flow.keep(see_other(address), flow)


@blueprint.post("/link")
@require_recent_sign_in
def begin_link() -> Answer:
    """Send the browser to the provider, to link the user's account there to this one."""
    return _leave(LINK, _account_address())


@blueprint.post("/confirm")
def begin_confirm() -> Answer:
    """Send the browser to the provider, to confirm who the user is."""
    confirming.hold()
    return _leave(CONFIRM, url_for("confirming.resume"))


@blueprint.post("/unlink")
@require_recent_sign_in
def unlink() -> Answer:
    signed_in = _require_session()
    try:
        oidc_accounts.unlink(
            context.services(),
            signed_in.user,
            issuer=request.form.get("issuer", ""),
            subject=request.form.get("subject", ""),
            keep=signed_in.session.id if signed_in.session else None,
        )
    except NotFound:
        raise
    except PortalError as error:
        return see_other(_account_address(), error_message(error), kind="error")
    return see_other(_account_address(), gettext("Sign-in unlinked."))


@blueprint.get("/callback")
@context.public
def finish() -> Answer:
    """Finish a flow when the provider sends the browser back."""
    provider = _provider()
    flow: Flow | None = None
    try:
        flow = oidc_flow.load(request.args.get("state", ""))
        response = _END[flow.purpose](flow, _claims(provider, flow))
    except PortalError as error:
        g.pop("oidc_sign_in_id", None)
        response = _refuse(flow, error)
    return oidc_flow.finish(response)


def _claims(provider: OidcProvider, flow: Flow) -> OidcClaims:
    """Return the provider's claims about the user whom it sends back. Raises
    ProviderSignInFailed, ProviderDenied, ProviderRefused."""
    issuer = request.args.get("iss")
    if issuer != provider.issuer and (issuer is not None or provider.metadata().sends_issuer):
        # RFC 9207: the response of another provider, mixed into this sign-in.
        raise ProviderSignInFailed
    if "error" in request.args:
        is_denied = request.args["error"] == "access_denied"
        raise ProviderDenied if is_denied else ProviderRefused
    code = request.args.get("code", "")
    if not 1 <= len(code) <= _MAX_CODE_CHARACTERS:
        raise ProviderSignInFailed
    return provider.finish(
        code=code, nonce=flow.nonce, verifier=flow.verifier, redirect_uri=flow.redirect_uri
    )


def _end_sign_in(flow: Flow, claims: OidcClaims) -> Response:
    services = context.services()
    user = oidc_accounts.admit(services, claims)
    oidc_flow.begin_attaching(oidc_sign_ins.remember(services, user, claims))
    return sign_in.continue_sign_in(user, methods=[_method(claims)], after=flow.after)


def _end_link(flow: Flow, claims: OidcClaims) -> Response:
    oidc_accounts.link(context.services(), context.session_user(), claims)
    return see_other(flow.after or _account_address(), gettext("Sign-in linked to your account."))


def _end_confirm(flow: Flow, claims: OidcClaims) -> Response:
    at = claims.authenticated_at
    if at is None or datetime.now(UTC) - at > _RECENT:
        raise ProviderSignInFailed
    oidc_accounts.confirm(context.services(), _require_session(), claims, method=_method(claims))
    return see_other(flow.after or _account_address())


_END = {SIGN_IN: _end_sign_in, LINK: _end_link, CONFIRM: _end_confirm}


def _refuse(flow: Flow | None, error: PortalError) -> Response:
    """Show our message for an error; text from the provider is never shown."""
    if flow is None or flow.purpose == SIGN_IN:
        return make_response(sign_in.show_refusal(error, flow.after if flow else None))
    return see_other(_account_address(), error_message(error), kind="error")


def _method(claims: OidcClaims) -> SignInMethod:
    return SignInMethod.OIDC_MFA if claims.has_two_factors else SignInMethod.OIDC


def _offer_confirming() -> confirming.Method | None:
    services = context.services()
    if services.oidc is None or not oidc_accounts.is_linked(services, context.user()):
        return None
    label = gettext("Confirm with %(label)s", label=sign_in.provider_label())
    return confirming.Method(label=label, url=url_for("oidc.begin_confirm"))


confirming.methods.append(_offer_confirming)


def _begin(
    provider: OidcProvider, purpose: str, after: str | None, session_id: str | None = None
) -> tuple[str, Flow]:
    redirect_uri = external_url(url_for("oidc.finish"))
    address, pending = provider.begin(redirect_uri, again=purpose == CONFIRM)
    flow = Flow(
        purpose=purpose,
        state=pending.state,
        nonce=pending.nonce,
        verifier=pending.verifier,
        redirect_uri=redirect_uri,
        after=after,
        session_id=session_id,
    )
    return address, flow


def _leave(purpose: str, after: str) -> Response:
    """Begin a flow for the session of the request, and send the browser from a form to the
    provider."""
    session = _require_session().session
    try:
        address, flow = _begin(_provider(), purpose, after, str(session.id) if session else None)
    except NotFound:
        raise
    except PortalError as error:
        return see_other(after, error_message(error), kind="error")
    return oidc_flow.keep(sign_in.leave_for(address), flow)


def _provider() -> OidcProvider:
    return existing(context.services().oidc)


def _require_session() -> SignedIn:
    """Return the signed-in user, who must have a session. Raises NotSignedIn, NeedsSession."""
    context.session_user()
    signed_in = context.require_signed_in()
    if signed_in.session is None:
        raise NeedsSession
    return signed_in


def _account_address() -> str:
    return url_for("account.show") + "#sign-ins"
