"""Two-step verification of one's own account: authenticator app, passkeys, recovery codes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import segno
from flask import render_template, request, url_for
from flask_babel import gettext
from markupsafe import Markup
from werkzeug.wrappers import Response

from portal.domain.people import SignInMethod
from portal.errors import Conflict, InvalidInput, NotFound, PasskeyRefused, WrongSecondFactor
from portal.http import context
from portal.http.messages import error_message
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.people import second_factors, sessions
from portal.services.people.second_factors import passkeys, recovery_codes, totp
from portal.web import shown_once
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, remember, see_other
from portal.web.people.second_factors import passkey_forms

blueprint = PageBlueprint("second_factors", __name__, "/account/second-factors")


@blueprint.get("")
@context.while_enrolling
def show() -> Answer:
    return _page(**shown_once.take("recovery codes"))


@blueprint.post("/totp")
@context.while_enrolling
@require_recent_sign_in
def begin_totp() -> Answer:
    totp.begin(context.services(), context.session_user())
    return see_other(url_for("second_factors.show_totp"))


@blueprint.get("/totp")
@context.while_enrolling
@require_recent_sign_in
def show_totp() -> Answer:
    try:
        return _totp_page()
    except NotFound:
        return see_other(url_for("second_factors.show"))


@blueprint.post("/totp/confirm")
@context.while_enrolling
@require_recent_sign_in
def confirm_totp() -> Answer:
    try:
        code = request.form.get("code", "")
        codes = totp.confirm(context.services(), context.session_user(), code)
    except WrongSecondFactor as error:
        return _totp_page(error=error_message(error)), 422
    _note_method(SignInMethod.TOTP)
    return _show_codes(codes, gettext("Authenticator app set up."))


@blueprint.post("/totp/remove")
@require_recent_sign_in
def remove_totp() -> Answer:
    totp.remove(context.services(), context.session_user())
    return _done(gettext("Authenticator app removed."))


@blueprint.post("/passkeys/options")
@context.while_enrolling
@require_recent_sign_in
def send_options() -> Answer:
    site = passkey_forms.current_site()
    options = passkeys.begin_registration(context.services(), context.session_user(), site)
    return passkey_forms.send_options(*options)


@blueprint.post("/passkeys")
@context.while_enrolling
@require_recent_sign_in
def add_passkey() -> Answer:
    owner, name = context.session_user(), request.form.get("name", "")
    credential = request.form.get("credential", "")
    if not credential:
        # The password had to be confirmed first. Only a click can open the browser's dialog.
        remember(gettext("Confirmed. You can add the passkey now."), kind="success")
        return _page(passkey_name=name)
    try:
        codes = passkeys.finish_registration(
            context.services(),
            owner,
            passkey_forms.current_site(),
            challenge=passkey_forms.take_challenge(),
            credential=credential,
            name=name,
        )
    except (InvalidInput, Conflict, PasskeyRefused) as error:
        return _page(passkey_error=error_message(error), passkey_name=name), 422
    _note_method(SignInMethod.PASSKEY)
    return _show_codes(codes, gettext("Passkey added."))


@blueprint.post("/passkeys/<uuid:passkey_id>/remove")
@require_recent_sign_in
def remove_passkey(passkey_id: UUID) -> Answer:
    passkeys.remove(context.services(), context.session_user(), passkey_id)
    return _done(gettext("Passkey removed."))


@blueprint.post("/recovery-codes")
@require_recent_sign_in
def replace_recovery_codes() -> Answer:
    codes = recovery_codes.replace(context.services(), context.session_user())
    return _show_codes(codes)


def _note_method(method: SignInMethod) -> None:
    """Record that the user of this session has just authenticated with a second factor."""
    signed_in = context.signed_in()
    if signed_in is not None:
        sessions.renew_authentication(context.services(), signed_in, method=method)


def _show_codes(codes: tuple[str, ...], note: str | None = None) -> Answer:
    if codes:
        shown_once.hold("recovery codes", codes=codes)
        return _done()
    return _done(note)


def _done(message: str | None = None) -> Response:
    return see_other(url_for("second_factors.show"), message)


def _totp_page(*, error: str | None = None) -> str:
    enrolment = totp.find_enrolment(context.services(), context.session_user())
    drawing = segno.make_qr(enrolment.uri).svg_inline(light="#fff", omitsize=True, border=4)
    return render_template(
        "pages/people/totp.html",
        qr=Markup(drawing),  # noqa: S704 - drawn from squares alone
        secret=enrolment.secret,
        error=error,
    )


def _page(**more: Any) -> str:
    services, user = context.caller()
    site, why_no_passkeys = passkey_forms.find_site()
    signed_in = context.signed_in()
    values = {
        "factors": second_factors.load(services, user.id),
        "must_enrol": signed_in is not None and signed_in.must_enrol,
        "site": site,
        "why_no_passkeys": why_no_passkeys,
        "codes": (),
        "passkey_error": None,
        "passkey_name": "",
    }
    return render_template("pages/people/second_factors.html", **(values | more))
