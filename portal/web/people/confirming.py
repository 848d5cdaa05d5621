"""Ask users to authenticate again, on a page between a form that changes rights and its action.

The page contains the fields of the submitted form and sends them again with the password, so that
nothing is typed twice. Methods that leave the portal, such as OpenID Connect, let the browser hold
the form and come back to `resume`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import render_template, request, url_for

from portal.errors import N_, ReauthenticationRequired, WrongCredentials
from portal.http import context, cookies, recent_sign_in
from portal.http.messages import translated
from portal.http.recent_sign_in import PASSWORD_FIELD, confirms_password
from portal.services.people import accounts
from portal.web import held
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other
from portal.web.security import local_path, referring_path

PATH_FIELD = "confirm_path"
_OWN_FIELDS = {PASSWORD_FIELD, PATH_FIELD, cookies.CSRF_FIELD}
_HELD = "held_form"
WRONG_PASSWORD = N_("Incorrect password. Try again.")

blueprint = PageBlueprint("confirming", __name__, "/account/confirm")


@dataclass(frozen=True, slots=True)
class Method:
    """Another way to confirm: a button that posts the form to `url`."""

    label: str
    url: str


methods: list[Callable[[], Method | None]] = []
"""Functions that return a way to confirm other than the password, or None if the user has none."""


@blueprint.get("")
@context.while_enrolling
def show() -> Answer:
    return _page(action=url_for("confirming.confirm"), path=_read_path(), fields=[])


@blueprint.post("")
@context.while_enrolling
@confirms_password
def confirm() -> Answer:
    try:
        recent_sign_in.confirm_password(request.form.get(PASSWORD_FIELD, ""))
    except WrongCredentials:
        page = _page(
            action=url_for("confirming.confirm"), path=_read_path(), fields=[], is_wrong=True
        )
        return page, 422
    return see_other(_read_path() or url_for("account.show"))


@blueprint.get("/resume")
@context.while_enrolling
def resume() -> Answer:
    """Offer to send the held form after a confirmation outside the portal."""
    found = held.read(_HELD)
    if found is None:
        return see_other(url_for("account.show"))
    held.forget_once_shown(_HELD)
    path, fields = found
    if not fields:
        return see_other(path)
    return render_template("pages/people/confirmed.html", action=path, fields=fields)


def hold() -> None:
    """Hold the form of the confirmation page until the user comes back to `resume`."""
    account = url_for("account.show")
    if not held.hold(_HELD, [_read_path() or account, _fields()]):
        held.hold(_HELD, [account, []])


def ask(error: ReauthenticationRequired) -> tuple[str, int]:
    """Return the page that asks the user to confirm the current request."""
    if request.method == "GET":
        return _page(action=url_for("confirming.confirm"), path=request.full_path, fields=[]), 403
    page = _page(
        action=request.full_path.rstrip("?"),
        path=request.full_path.rstrip("?"),
        fields=_fields(),
        is_wrong=error.is_wrong,
    )
    return page, 422 if error.is_wrong else 403


def _page(
    *, action: str, path: str | None, fields: list[tuple[str, str]], is_wrong: bool = False
) -> str:
    return render_template(
        "pages/people/confirm.html",
        user=context.user(),
        action=action,
        path=path,
        fields=fields,
        error=translated(WRONG_PASSWORD) if is_wrong else None,
        has_password=accounts.has_password(*context.caller()),
        methods=[method for offer in methods if (method := offer()) is not None],
        back=referring_path() or url_for("account.show"),
    )


def _fields() -> list[tuple[str, str]]:
    """Return the fields of the submitted form, without those of the confirmation page."""
    return [
        (name, value) for name, value in request.form.items(multi=True) if name not in _OWN_FIELDS
    ]


def _read_path() -> str | None:
    return local_path(request.values.get(PATH_FIELD) or request.args.get("next"))
