"""A user's sessions: list and end them."""

from __future__ import annotations

from uuid import UUID

from flask import render_template, url_for
from flask_babel import gettext, ngettext

from portal.domain.people import SignInMethod
from portal.errors import N_
from portal.http import context
from portal.services.people import sessions
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other

METHOD_WORDS = {
    SignInMethod.PASSWORD: N_("password"),
    SignInMethod.TOTP: N_("authenticator app"),
    SignInMethod.PASSKEY: N_("passkey"),
    SignInMethod.RECOVERY_CODE: N_("recovery code"),
    SignInMethod.OIDC: N_("single sign-on"),
    SignInMethod.OIDC_MFA: N_("single sign-on in two steps"),
    SignInMethod.OPERATOR: N_("command line"),
}

blueprint = PageBlueprint("sessions", __name__, "/account/sessions")


@blueprint.get("")
def show() -> Answer:
    return render_template(
        "pages/people/sessions.html",
        sessions=sessions.list_sessions(context.services(), context.require_signed_in()),
        method_words=METHOD_WORDS,
    )


@blueprint.post("/<uuid:session_id>/end")
def end(session_id: UUID) -> Answer:
    sessions.end_session(context.services(), context.session_user(), session_id)
    return see_other(url_for("sessions.show"), gettext("Session ended."))


@blueprint.post("/end-others")
def end_others() -> Answer:
    context.session_user()
    ended = sessions.end_other_sessions(context.services(), context.require_signed_in())
    words = ngettext("%(num)s other session ended.", "%(num)s other sessions ended.", ended)
    return see_other(url_for("sessions.show"), words)
