"""The second step of signing in, and signing in with a passkey alone."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from flask import make_response, render_template, request, url_for
from werkzeug.wrappers import Response

from portal.domain.people import SignInMethod, VerifiedUser
from portal.errors import PortalError, SignInExpired
from portal.http import context, cookies
from portal.http.messages import error_message
from portal.services.people import accounts, second_factors
from portal.services.people.second_factors import passkeys
from portal.services.people.second_factors.pending_sign_ins import PendingSignIn
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other
from portal.web.people.second_factors import passkey_forms
from portal.web.people.sign_in import finish_sign_in, load_pending, show_sign_in_page
from portal.web.security import next_path

blueprint = PageBlueprint("second_step", __name__, "/login", context.public)


@blueprint.get("/second-step")
def show() -> Answer:
    try:
        return _page(next_path())
    except SignInExpired as error:
        return _start_again(error)


@blueprint.post("/second-step")
def verify_code() -> Answer:
    def check(pending: PendingSignIn) -> SignInMethod:
        return second_factors.check_code(
            context.services(),
            pending.user.id,
            request.form.get("code", ""),
            sign_in=cookies.get_cookie(cookies.PENDING_SIGN_IN),
        )

    return _finish(check)


@blueprint.post("/second-step/passkey/options")
def send_second_step_options() -> Answer:
    pending, site = load_pending(), passkey_forms.current_site()
    options = passkeys.begin_sign_in(context.services(), site, pending.user.id)
    return passkey_forms.send_options(*options)


@blueprint.post("/second-step/passkey")
def verify_passkey() -> Answer:
    def check(pending: PendingSignIn) -> SignInMethod:
        _check_passkey(pending.user.id)
        return SignInMethod.PASSKEY

    return _finish(check)


@blueprint.post("/passkey/options")
def send_sign_in_options() -> Answer:
    options = passkeys.begin_sign_in(context.services(), passkey_forms.current_site(), None)
    return passkey_forms.send_options(*options)


@blueprint.post("/passkey")
def sign_in_with_passkey() -> Answer:
    """Sign in with a passkey that has verified its owner: two factors in one."""
    after = next_path()
    try:
        user = _check_passkey(None)
        # If only the provider may sign users in, a passkey must not bypass it.
        accounts.require_local_sign_in(context.services(), user.name)
        return finish_sign_in(user, methods=[SignInMethod.PASSKEY], after=after)
    except PortalError as error:
        return show_sign_in_page(after, error=error_message(error)), error.status


def _finish(check: Callable[[PendingSignIn], SignInMethod]) -> Answer:
    """Finish this browser's pending sign-in if `check` accepts the second factor."""
    after = next_path()
    try:
        # Use the user of the pending sign-in: it fails if the password has been changed since.
        pending = load_pending()
        methods = [*pending.methods, check(pending)]
        return finish_sign_in(pending.user, methods=methods, after=after)
    except SignInExpired as error:
        return _start_again(error)
    except PortalError as error:
        response = make_response(_page(after, error=error_message(error)), error.status)
        context.add_error_headers(response, error)
        return response


def _check_passkey(user_id: UUID | None) -> VerifiedUser:
    """Return the user of the passkey in the form. Raises PasskeyRefused."""
    return passkeys.finish_sign_in(
        context.services(),
        passkey_forms.current_site(),
        challenge=passkey_forms.take_challenge(),
        credential=request.form.get("credential", ""),
        user_id=user_id,
    )


def _start_again(error: SignInExpired) -> Response:
    again = url_for("sign_in.show", next=next_path())
    return see_other(again, error_message(error), kind="error")


def _page(after: str | None, *, error: str | None = None) -> str:
    pending = load_pending()
    site, why_no_passkeys = passkey_forms.find_site()
    factors = second_factors.load(context.services(), pending.user.id)
    here = [passkey for passkey in factors.passkeys if site and passkey.rp_id == site.id]
    return render_template(
        "pages/people/second_step.html",
        factors=factors,
        site=site,
        can_use_passkey=bool(here),
        why_no_passkeys=why_no_passkeys if factors.passkeys else None,
        after=after,
        error=error,
    )
