"""Sign-in, sign-out, and new accounts: from invitations, or open to everyone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from flask import json, make_response, render_template, request, session, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal import limits
from portal.domain.people import (
    OIDC_METHODS,
    Invitation,
    SessionKind,
    SignInMethod,
    User,
    VerifiedUser,
)
from portal.errors import (
    N_,
    InvalidInput,
    NameTaken,
    PortalError,
    SecondFactorRequired,
    WeakPassword,
    WrongCredentials,
)
from portal.http import clients, context, cookies
from portal.http.credentials import Credentials, read_credentials
from portal.http.hosts import external_url
from portal.http.messages import error_message
from portal.services.people import accounts, administration, invitations, passwords, sessions
from portal.services.people.federation import oidc_sign_ins
from portal.services.people.second_factors import pending_sign_ins
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, remember, see_other, viewer, wants_fragment
from portal.web.people import oidc_flow
from portal.web.people.second_factors import passkey_forms
from portal.web.security import clear_csrf, csrf_token, next_path

blueprint = PageBlueprint("sign_in", __name__, mark=context.public)


class PasswordsDiffer(InvalidInput):
    code = "passwords_differ"
    message = N_("The passwords do not match.")


class ShortPasswordsDiffer(WeakPassword):
    message = N_(
        "The password is too short, and the passwords do not match. Use at least %(min)s "
        "characters."
    )


def require_same(password: str, again: str) -> None:
    """Compare the two entries of a new password. Raises PasswordsDiffer, ShortPasswordsDiffer."""
    if password == again:
        return
    try:
        passwords.check_length(password)
    except WeakPassword as error:
        raise ShortPasswordsDiffer(**error.params) from error
    raise PasswordsDiffer


@blueprint.get("/login")
def show() -> Answer:
    after, user = next_path(), viewer()
    if user is None and wants_fragment():
        if context.signed_in() is None:
            return _render_dialog(after)
        return Response("", headers={"HX-Redirect": url_for("second_factors.show")})
    if user is None:
        return show_sign_in_page(after)
    if wants_fragment():
        # A page whose session had ended continues with these.
        event = {"portal:signed-in": {"token": csrf_token(), "person": str(user.id)}}
        return Response("", headers={"HX-Reswap": "none", "HX-Trigger": json.dumps(event)})
    return see_other(after or url_for("home.show"))


@blueprint.post("/login")
@limits.failed_sign_ins
def sign_in() -> Answer:
    after = next_path()
    credentials = read_credentials()
    try:
        entered = _enter(credentials, after)
    except PortalError as error:
        if wants_fragment():
            return _render_dialog(
                after, name=credentials.name, error=error_message(error)
            ), error.status
        page = show_sign_in_page(after, name=credentials.name, error=error_message(error))
        return page, error.status
    return _for_dialog(entered) if wants_fragment() else entered


@blueprint.get("/logout")
def confirm_sign_out() -> Answer:
    if viewer() is None:
        return see_other(url_for("sign_in.show"))
    return render_template("pages/people/sign_out.html")


@blueprint.post("/logout")
def sign_out() -> Answer:
    services, signed_in, elsewhere = context.services(), context.signed_in(), None
    if signed_in is not None:
        elsewhere = oidc_sign_ins.sign_out_address(
            services, signed_in, return_to=external_url(url_for("sign_in.show"))
        )
        sessions.sign_out(services, signed_in)
    session.clear()
    remember(gettext("Signed out."), kind="success")
    to_sign_in = see_other(url_for("sign_in.show"))
    response = leave_for(elsewhere) if elsewhere else to_sign_in
    cookies.delete_cookie(response, cookies.SESSION)
    return response


@blueprint.get("/invite/<token>")
def show_invitation(token: str) -> Answer:
    return _account_page(invitations.find_invitation(context.services(), token))


@blueprint.post("/invite/<token>")
@limits.failed_sign_ins
def accept_invitation(token: str) -> Answer:
    services = context.services()
    invitation = invitations.find_invitation(services, token)
    return _create_account(partial(invitations.accept_invitation, services, token), invitation)


@blueprint.get("/register")
def show_registration() -> Answer:
    accounts.require_open_registration(context.services())
    return _account_page()


@blueprint.post("/register")
@limits.registrations
def register() -> Answer:
    services = context.services()
    accounts.require_open_registration(services)
    return _create_account(partial(accounts.register, services))


def _create_account(create: Callable[..., User], invitation: Invitation | None = None) -> Answer:
    """Create the account in the form by `create`, and sign this browser in."""
    credentials = read_credentials()
    try:
        require_same(credentials.password, request.form.get("password_again", ""))
        create(name=credentials.name, password=credentials.password)
    except (InvalidInput, NameTaken) as error:
        wrong = "password" if isinstance(error, WeakPassword) else "name"
        page = _account_page(
            invitation,
            name=credentials.name,
            error=error_message(error),
            wrong_field="password_again" if isinstance(error, PasswordsDiffer) else wrong,
        )
        return page, error.status
    welcome = gettext("Welcome, %(name)s. Your account is ready.", name=credentials.name)
    remember(welcome, kind="success")
    return _enter(credentials, next_path())


def _account_page(invitation: Invitation | None = None, **entered: str) -> str:
    """Render the form of a new account, which is sent to the address of the page."""
    return render_template(
        "pages/people/create_account.html", invitation=invitation, after=next_path(), **entered
    )


@blueprint.get("/reset/<token>")
def show_password_reset(token: str) -> Answer:
    return _reset_page(token)


@blueprint.post("/reset/<token>")
@limits.failed_sign_ins
def reset_password(token: str) -> Answer:
    password = request.form.get("password", "")
    try:
        require_same(password, request.form.get("password_again", ""))
        administration.finish_password_reset(context.services(), token, password=password)
    except InvalidInput as error:
        return _reset_page(token, error=error_message(error)), error.status
    return see_other(url_for("sign_in.show"), gettext("Your password is set. Sign in with it."))


def _reset_page(token: str, *, error: str | None = None) -> str:
    name = administration.find_password_reset(context.services(), token)
    return render_template("pages/people/password_reset.html", name=name, token=token, error=error)


def start_session(
    response: Response, user: VerifiedUser, *, methods: Sequence[SignInMethod]
) -> None:
    """Start a session for a verified user in this browser. Raises WrongCredentials,
    SecondFactorRequired, ProviderSignInExpired."""
    started = sessions.start_session(
        context.services(),
        user,
        kind=SessionKind.BROWSER,
        methods=methods,
        client=clients.identify_browser(response),
    )
    cookies.set_cookie(
        response, cookies.SESSION, started.access_token, max_age=started.expires_in_s
    )
    if OIDC_METHODS.intersection(methods):
        oidc_flow.attach(started.id, user.id)
    cookies.delete_cookie(response, cookies.PENDING_SIGN_IN)
    cookies.delete_cookie(response, cookies.OIDC)
    clear_csrf()


def finish_sign_in(
    user: VerifiedUser, *, methods: Sequence[SignInMethod], after: str | None
) -> Response:
    """Start a session and redirect to `after`, by default the home page. Raises as
    `start_session` does."""
    response = see_other(after or url_for("home.show"))
    start_session(response, user, methods=methods)
    limits.confirm_sign_in(user.name)
    return response


def store_pending(
    response: Response, user: VerifiedUser, *, methods: Sequence[SignInMethod]
) -> None:
    """Let this browser, and no other, continue a sign-in that needs a second factor."""
    state = pending_sign_ins.begin(context.services(), user, methods=methods)
    cookies.set_cookie(response, cookies.PENDING_SIGN_IN, state, max_age=pending_sign_ins.LIFE_S)


def load_pending() -> pending_sign_ins.PendingSignIn:
    """Return this browser's pending sign-in. Raises SignInExpired."""
    state = cookies.get_cookie(cookies.PENDING_SIGN_IN) or ""
    return pending_sign_ins.load(context.services(), state)


def _render_dialog(after: str | None, *, name: str = "", error: str | None = None) -> str:
    """Render the form for the dialog of a page whose session has ended."""
    return render_template("fragments/sign_in/_again.html", after=after, name=name, error=error)


def _for_dialog(entered: Response) -> Response:
    """Turn the redirect after a password into a response for the dialog: stay on the page, or go
    to the page that asks for the second factor."""
    address = entered.headers.pop("Location")
    entered.status_code = 200
    entered.set_data("")
    if address.startswith(url_for("second_step.show")):
        entered.headers["HX-Redirect"] = address
    else:
        entered.headers["HX-Reswap"] = "none"
        entered.headers["HX-Trigger"] = "portal:entered"
    return entered


def _enter(credentials: Credentials, after: str | None) -> Response:
    """Sign in with a name and password. Raises WrongCredentials."""
    if not credentials.name or not credentials.password:
        raise WrongCredentials
    user = accounts.verify_password(context.services(), credentials.name, credentials.password)
    return continue_sign_in(user, methods=[SignInMethod.PASSWORD], after=after)


def continue_sign_in(
    user: VerifiedUser, *, methods: Sequence[SignInMethod], after: str | None
) -> Response:
    """Sign this browser in, or ask for a second factor first if the account has one. Raises
    WrongCredentials, ProviderSignInExpired."""
    try:
        return finish_sign_in(user, methods=methods, after=after)
    except SecondFactorRequired:
        response = see_other(url_for("second_step.show", next=after))
        store_pending(response, user, methods=methods)
        return response


def show_refusal(error: PortalError, after: str | None) -> tuple[str, int]:
    """Return the sign-in page with an error from another view."""
    return show_sign_in_page(after, error=error_message(error)), error.status


def leave_for(address: str) -> Response:
    """Send the browser from a form to another site, by a page. The content security policy forbids
    forms to lead to other sites, even by a redirect."""
    response = make_response(
        render_template("pages/people/leaving.html", address=address, label=provider_label())
    )
    response.headers["Refresh"] = f"0; url={address}"
    return response


def provider_label() -> str:
    """Return the provider's name for pages."""
    return context.services().settings.oidc.label or gettext("single sign-on")


def show_sign_in_page(after: str | None, *, name: str = "", error: str | None = None) -> str:
    """Render the form for name and password, with the other ways to sign in."""
    services = context.services()
    site, _ = passkey_forms.find_site()
    settings, provider = services.settings.oidc, services.oidc
    return render_template(
        "pages/people/sign_in.html",
        after=after,
        name=name,
        error=error,
        site=None if services.settings.oidc.only else site,
        has_provider=provider is not None,
        is_reachable=provider is not None and provider.is_reachable(),
        is_password_folded=settings.only,
        registration=services.settings.registration,
        label=provider_label(),
        # The language switch leads back here, not to the address of a failed sign-in.
        here=url_for("sign_in.show", next=after),
    )
