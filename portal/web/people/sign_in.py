"""Coming in and going out: sign-in, sign-out, and making an account from an invitation."""

from __future__ import annotations

from apiflask import APIBlueprint
from flask import redirect, render_template, request, session, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal import limits
from portal.errors import N_, InvalidInput, NameTaken, PortalError, WrongCredentials
from portal.http import context
from portal.http.messages import error_message
from portal.services.people import invitations, sessions
from portal.web.layout import remember, viewer
from portal.web.security import local_path

blueprint = APIBlueprint("sign_in", __name__, enable_openapi=False)

Answer = Response | str | tuple[str, int]


class PasswordsDiffer(InvalidInput):
    code = "passwords_differ"
    message = N_("The two passwords differ. Type the same one twice.")


@blueprint.get("/login")
@context.public
def show() -> Answer:
    after = local_path(request.args.get("next"))
    if viewer() is not None:
        return redirect(after or url_for("documents.index"), code=303)
    return _sign_in_page(after)


@blueprint.post("/login")
@context.public
@limits.failed_sign_ins
def sign_in() -> Answer:
    after = local_path(request.form.get("next"))
    name, password = request.form.get("name", "").strip(), request.form.get("password", "")
    try:
        return _enter(name, password, after)
    except PortalError as error:
        page = _sign_in_page(after, name=name, error=error_message(error))
        return page, error.status


@blueprint.get("/logout")
@context.public
def confirm_sign_out() -> Answer:
    if viewer() is None:
        return redirect(url_for("sign_in.show"), code=303)
    return render_template("pages/sign_out.html")


@blueprint.post("/logout")
@context.public
def sign_out() -> Answer:
    signed_in = context.signed_in()
    if signed_in is not None:
        sessions.sign_out(context.services(), signed_in)
    session.clear()
    remember(gettext("You are signed out."), kind="success")
    response = redirect(url_for("sign_in.show"), code=303)
    response.delete_cookie(
        context.SESSION_COOKIE, path="/", secure=request.is_secure, httponly=True
    )
    return response


@blueprint.get("/invite/<token>")
@context.public
def show_invitation(token: str) -> Answer:
    invitation = invitations.find_invitation(context.services(), token)
    return render_template("pages/invitation.html", invitation=invitation, token=token)


@blueprint.post("/invite/<token>")
@context.public
@limits.failed_sign_ins
def accept_invitation(token: str) -> Answer:
    services = context.services()
    invitation = invitations.find_invitation(services, token)
    name, password = request.form.get("name", "").strip(), request.form.get("password", "")
    try:
        if password != request.form.get("password_again", ""):
            raise PasswordsDiffer
        invitations.accept_invitation(services, token, name=name, password=password)
    except (InvalidInput, NameTaken) as error:
        page = render_template(
            "pages/invitation.html",
            invitation=invitation,
            token=token,
            name=name,
            error=error_message(error),
        )
        return page, error.status
    welcome = gettext("Welcome, %(name)s. Your account is ready.", name=name)
    remember(welcome, kind="success")
    return _enter(name, password, None)


def start_session(response: Response, *, name: str, password: str) -> None:
    """Give the browser the cookie that keeps it signed in. Raises WrongCredentials."""
    token, life_s = sessions.browser_session(context.services(), name=name, password=password)
    response.set_cookie(
        context.SESSION_COOKIE,
        token,
        max_age=life_s,
        path="/",
        secure=request.is_secure,
        httponly=True,
        samesite="Lax",
    )


def _enter(name: str, password: str, after: str | None) -> Response:
    """Sign in and go where the person was going. Raises WrongCredentials."""
    if not name or not password:
        raise WrongCredentials
    response = redirect(after or url_for("documents.index"), code=303)
    start_session(response, name=name, password=password)
    # A new secret for forms: one that somebody planted before the sign-in is worth nothing after.
    session.pop("csrf_token", None)
    return response


def _sign_in_page(after: str | None, *, name: str = "", error: str | None = None) -> str:
    return render_template("pages/sign_in.html", after=after, name=name, error=error)
