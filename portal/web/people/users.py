"""Administration of one user: role, password, sessions, and deleting the account."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import redirect, render_template, request, url_for
from flask_babel import gettext, ngettext
from werkzeug.wrappers import Response

from portal.domain.people import DocumentFate
from portal.errors import N_, Conflict, InvalidInput, NoSuchAccount
from portal.http import context
from portal.http.hosts import external_url
from portal.http.messages import error_message
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.documents.intake import quotas
from portal.services.operations import account_deletion
from portal.services.people import accounts, administration, sessions
from portal.web import shown_once
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, see_other

FATE_WORDS = {
    DocumentFate.TRANSFER: N_("Transfer all documents to another user"),
    DocumentFate.KEEP_SHARED: N_("Keep shared documents, erase private ones"),
    DocumentFate.TRASH: N_("Move all documents to the trash"),
    DocumentFate.PURGE: N_("Erase all documents permanently"),
}

blueprint = PageBlueprint(
    "admin_users", __name__, "/admin/users/<uuid:user_id>", context.for_administrators
)


@blueprint.get("")
def show(user_id: UUID) -> Answer:
    return _page(user_id, **shown_once.take(f"password of {user_id}"))


@blueprint.post("/role")
@require_recent_sign_in
def set_role(user_id: UUID) -> Answer:
    is_admin = request.form.get("role") == "admin"
    try:
        administration.set_role(*context.caller(), user_id, is_admin=is_admin)
    except Conflict as error:
        return _page(user_id, error=error_message(error)), error.status
    message = gettext("Role changed.")
    if user_id == context.user().id and not is_admin:
        return see_other(url_for("account.show"), message)
    return _done(user_id, message)


@blueprint.post("/password")
@require_recent_sign_in
def reset_password(user_id: UUID) -> Answer:
    try:
        reset = administration.begin_password_reset(*context.caller(), user_id)
    except Conflict as error:
        return _page(user_id, error=error_message(error)), error.status
    link = external_url(url_for("sign_in.show_password_reset", token=reset.secret))
    shown_once.hold(f"password of {user_id}", reset_link=link, link_expires_at=reset.expires_at)
    return see_other(url_for("admin_users.show", user_id=user_id))


@blueprint.post("/sessions/end")
@require_recent_sign_in
def end_sessions(user_id: UUID) -> Answer:
    ended = sessions.end_sessions_of(*context.caller(), user_id)
    words = ngettext("%(num)s session ended.", "%(num)s sessions ended.", ended)
    return _done(user_id, words)


@blueprint.get("/delete")
def confirm_delete(user_id: UUID) -> Answer:
    if user_id == context.user().id:  # The page has other choices for the documents.
        return redirect(url_for("account.confirm_delete"))
    return _deletion_page(user_id)


@blueprint.post("/delete")
@require_recent_sign_in
def delete(user_id: UUID) -> Answer:
    user = context.user()
    new_owner_name = request.form.get("heir", "").strip()
    try:
        account_deletion.delete_account(
            context.services(), user, user_id, documents=read_fate(), new_owner_name=new_owner_name
        )
    except (Conflict, InvalidInput, NoSuchAccount) as error:
        page = _deletion_page(user_id, error=error_message(error), new_owner=new_owner_name)
        return page, InvalidInput.status if isinstance(error, NoSuchAccount) else error.status
    return see_other(url_for("admin.show"), gettext("Account deleted."))


def read_fate() -> DocumentFate:
    """Return what the form wants done with the documents. Raises InvalidInput."""
    try:
        return DocumentFate(request.form.get("documents", ""))
    except ValueError as error:
        raise InvalidInput("choose what happens to the documents") from error


def _done(user_id: UUID, message: str) -> Response:
    return see_other(url_for("admin_users.show", user_id=user_id), message)


def _page(user_id: UUID, **more: Any) -> str:
    services, user = context.caller()
    values = {
        "account": accounts.get_summary(services, user, user_id),
        "user": user,
        "sessions": sessions.list_sessions_of(services, user, user_id),
        "used_bytes": quotas.use_by_owner(services, user).get(user_id, 0),
        "error": None,
        "reset_link": None,
    }
    return render_template("pages/people/admin_user.html", **(values | more))


def _deletion_page(user_id: UUID, *, error: str | None = None, new_owner: str = "") -> str:
    services, user = context.caller()
    listed = accounts.list_accounts(services, user)
    return render_template(
        "pages/people/delete_account.html",
        account=accounts.get_summary(services, user, user_id),
        action=url_for("admin_users.delete", user_id=user_id),
        back=url_for("admin_users.show", user_id=user_id),
        fates=FATE_WORDS,
        chosen=request.form.get("documents"),
        owned=account_deletion.count_documents(services, user, user_id),
        new_owners=[
            account.name for account in listed if account.id != user_id and not account.disabled_at
        ],
        new_owner=new_owner,
        asks_password=False,
        error=error,
    )
