"""Administration pages: users and invitations."""

from __future__ import annotations

from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.errors import InvitationsClosed
from portal.http import context, hosts
from portal.http.messages import error_message
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.documents.intake import quotas
from portal.services.people import accounts, invitations, second_factors
from portal.web import shown_once
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other

blueprint = PageBlueprint("admin", __name__, "/admin", context.for_administrators)


@blueprint.get("")
def show() -> Answer:
    return _page()


@blueprint.post("/invitations")
@require_recent_sign_in
def invite() -> Answer:
    invitation = invitations.invite(*context.caller())
    link = hosts.external_url(url_for("sign_in.show_invitation", token=invitation.secret))
    shown_once.hold("invitation", invitation_link=link, link_expires_at=invitation.expires_at)
    return see_other(url_for("admin.show"))


@blueprint.post("/invitations/<uuid:invitation_id>/withdraw")
@require_recent_sign_in
def withdraw_invitation(invitation_id: UUID) -> Answer:
    invitations.withdraw(*context.caller(), invitation_id)
    return see_other(url_for("admin.show"), gettext("Invitation withdrawn."))


@blueprint.post("/users/<uuid:user_id>/disabled")
@require_recent_sign_in
def set_disabled(user_id: UUID) -> Answer:
    disabled = request.form.get("disabled") == "true"
    accounts.set_disabled(*context.caller(), user_id, disabled=disabled)
    words = gettext("Account disabled.") if disabled else gettext("Account enabled.")
    return see_other(url_for("admin.show"), words)


@blueprint.post("/users/<uuid:user_id>/second-factors/remove")
@require_recent_sign_in
def remove_second_factors(user_id: UUID) -> Answer:
    second_factors.remove_all(context.services(), context.session_user(), user_id)
    return see_other(url_for("admin.show"), gettext("Two-step verification removed."))


def _page() -> str:
    user = context.user()
    is_closed = invitations.is_closed(context.services())
    values = {
        "accounts": accounts.list_accounts(context.services(), user),
        "verified_in_two_steps": second_factors.users_with_any(context.services(), user),
        "used_bytes": quotas.use_by_owner(context.services(), user),
        "user": user,
        "closed_reason": error_message(InvitationsClosed()) if is_closed else None,
        "open_invitations": invitations.list_invitations(context.services(), user),
        "invitation_link": None,
    }
    shown = shown_once.take("invitation")
    return render_template("pages/operations/admin.html", **(values | shown))
