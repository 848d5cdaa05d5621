"""The account page: language, theme, preferred domain, password, personal access tokens."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import render_template, request, session, url_for
from flask_babel import gettext

from portal.domain.people import SCOPES, DocumentFate, Scope, SignInMethod
from portal.errors import N_, Conflict, InvalidInput, PortalError, TooManyTokens, WrongCredentials
from portal.http import context, cookies, recent_sign_in
from portal.http.messages import error_message, translated
from portal.http.recent_sign_in import (
    PASSWORD_FIELD,
    confirms_password,
    counting_failure,
    require_recent_sign_in,
)
from portal.services.documents import library
from portal.services.documents.intake import quotas
from portal.services.operations import account_deletion
from portal.services.people import accounts, second_factors, sessions
from portal.services.people.federation import oidc_accounts
from portal.web import shown_once
from portal.web.blueprint import PageBlueprint
from portal.web.i18n import language
from portal.web.layout import Answer, remember, see_other
from portal.web.people import preferences
from portal.web.people.confirming import WRONG_PASSWORD
from portal.web.people.sign_in import (
    PasswordsDiffer,
    continue_sign_in,
    provider_label,
    require_same,
)
from portal.web.people.users import FATE_WORDS, read_fate

DAY_S = 24 * 3600
TOKEN_DAYS = (7, 30, 90, 365)
# Scopes of tokens and their descriptions, from the narrowest to the widest.
SCOPE_WORDS = {
    Scope.READ: (
        N_("Read"),
        N_("Search, read documents and conversations, and get answers that are not saved."),
    ),
    Scope.WRITE: (
        N_("Read and write"),
        N_("Also upload, change and delete documents, and ask in conversations."),
    ),
    Scope.ADMIN: (
        N_("Administer"),
        N_("Everything you can do, including all users' documents and administration."),
    ),
}

blueprint = PageBlueprint("account", __name__, "/account")


@blueprint.get("")
def show() -> Answer:
    return _page(**shown_once.take("token"))


@blueprint.post("/password")
@confirms_password
def change_password() -> Answer:
    services, user = context.services(), context.session_user()
    new = request.form.get("new", "")
    try:
        require_same(new, request.form.get("new_again", ""))
        with counting_failure():
            verified = accounts.change_password(
                services, user, current=request.form.get("current", ""), new=new
            )
    except (InvalidInput, WrongCredentials) as error:
        wrong = "new_again" if isinstance(error, PasswordsDiffer) else "new"
        page = _page(
            password_error=_message(error),
            wrong_field="current" if isinstance(error, WrongCredentials) else wrong,
        )
        return page, _form_status(error)
    remember(gettext("Password changed. Other sessions were signed out."), kind="success")
    # Changing the password ends every session, including this one: start a new one.
    signed_in = context.signed_in()
    known = signed_in.session.methods if signed_in and signed_in.session else ()
    return continue_sign_in(
        verified, methods=known or [SignInMethod.PASSWORD], after=url_for("account.show")
    )


@blueprint.post("/preferences")
def save_preferences() -> Answer:
    """Save language, theme and preferred domain; fields that are missing stay unchanged."""
    form = request.form
    if "domain" in form:
        try:
            accounts.set_preferred_domain(*context.caller(), form["domain"])
        except InvalidInput as error:
            page = _page(domain_error=error_message(error), domain=form["domain"])
            return page, error.status
    # If the language is unchanged, the user has not chosen it for all their browsers.
    chosen = None if form.get("language") == language() else form.get("language")
    # After a change of language, this message would still be in the old one.
    message = gettext("Preferences saved.") if chosen is None else None
    response = see_other(url_for("account.show"), message)
    return preferences.save(response, language=chosen, theme=form.get("theme"))


@blueprint.post("/tokens")
@require_recent_sign_in
def create_token() -> Answer:
    days = request.form.get("days", "")
    ttl_s = (int(days) if days in {str(day) for day in TOKEN_DAYS} else TOKEN_DAYS[0]) * DAY_S
    scope = request.form.get("scope", Scope.READ, type=Scope)
    name, user = request.form.get("name", "").strip(), context.session_user()
    try:
        if not name:
            raise InvalidInput("enter a note for the token")
        _, secret = sessions.create_personal_token(
            context.services(), user, name=name, ttl_s=ttl_s, scopes=[scope]
        )
    except (InvalidInput, TooManyTokens) as error:
        values = {"token_error": error_message(error), "token_name": name, "token_scope": scope}
        return _page(**values), error.status
    shown_once.hold("token", new_token=secret, new_token_name=name)
    return see_other(url_for("account.show") + "#tokens")


@blueprint.post("/tokens/<uuid:token_id>/revoke")
@require_recent_sign_in
def revoke_token(token_id: UUID) -> Answer:
    sessions.revoke_personal_token(context.services(), context.session_user(), token_id)
    return see_other(url_for("account.show") + "#tokens", gettext("Token revoked."))


@blueprint.get("/delete")
def confirm_delete() -> Answer:
    return _deletion_page()


@blueprint.post("/delete")
@confirms_password
def delete() -> Answer:
    services, user = context.services(), context.session_user()
    try:
        # Ask even after a recent sign-in: this cannot be undone.
        if accounts.has_password(services, user):
            recent_sign_in.confirm_password(request.form.get(PASSWORD_FIELD, ""))
        else:
            recent_sign_in.require_recent()
        account_deletion.delete_account(services, user, user.id, documents=read_fate())
    except (Conflict, InvalidInput, WrongCredentials) as error:
        return _deletion_page(error=_message(error)), _form_status(error)
    session.clear()
    response = see_other(url_for("sign_in.show"), gettext("Your account was deleted."))
    cookies.delete_cookie(response, cookies.SESSION)
    return response


def _deletion_page(*, error: str | None = None) -> str:
    services, user = context.caller()
    return render_template(
        "pages/people/delete_account.html",
        account=accounts.get_summary(services, user, user.id),
        action=url_for("account.delete"),
        back=url_for("account.show"),
        fates={
            fate: words for fate, words in FATE_WORDS.items() if fate is not DocumentFate.TRANSFER
        },
        chosen=request.form.get("documents"),
        owned=account_deletion.count_documents(services, user, user.id),
        new_owners=[],
        new_owner="",
        asks_password=accounts.has_password(services, user),
        error=error,
    )


def _page(**more: Any) -> str:
    services, user = context.caller()
    values = {
        "identities": oidc_accounts.list_identities(services, user),
        "issuer": services.settings.oidc.issuer,
        "label": provider_label(),
        "has_password": accounts.has_password(services, user),
        "tokens": sessions.list_personal_tokens(services, user),
        "token_days": TOKEN_DAYS,
        "token_name": "",
        "token_scope": Scope.READ,
        "scopes": [scope for scope in SCOPES if user.is_admin or scope is not Scope.ADMIN],
        "scope_words": SCOPE_WORDS,
        "user": user,
        "factors": second_factors.load(services, user.id),
        "use": quotas.use_of(services, user),
        "domain": user.preferred_domain or "",
        "domains": library.list_domains(services, user),
        "domain_error": None,
        "password_error": None,
        "wrong_field": None,
        "token_error": None,
        "new_token": None,
        "new_token_name": None,
    }
    return render_template("pages/people/account.html", **(values | more))


def _message(error: PortalError) -> str:
    # The form asks for the password only, so the message must not mention the name.
    is_password = isinstance(error, WrongCredentials)
    return translated(WRONG_PASSWORD) if is_password else error_message(error)


def _form_status(error: PortalError) -> int:
    # 401 would mean that the session has ended, but only the password in the form is wrong.
    return InvalidInput.status if isinstance(error, WrongCredentials) else error.status
