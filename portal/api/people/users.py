"""Serve accounts: their administration, and deletion of one's own."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from flask import url_for
from pydantic import AwareDatetime, Field, WithJsonSchema

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.people import DocumentFate
from portal.http import context, recent_sign_in
from portal.http.hosts import external_url
from portal.http.recent_sign_in import confirms_password, require_recent_sign_in
from portal.services.operations import account_deletion
from portal.services.people import accounts, administration, sessions

TAG = {"name": "Accounts", "description": "Users, their roles and passwords. For administrators."}

blueprint = ApiBlueprint("users_api", __name__, url_prefix="/api", tag=TAG)


class UserModel(ResponseModel):
    id: UUID
    name: str = Field(examples=["ada"])
    is_admin: bool
    created_at: AwareDatetime
    disabled_at: AwareDatetime | None = Field(description="null if enabled", examples=[None])
    last_seen_at: AwareDatetime | None = Field(description="null if they never signed in")


class UserList(ResponseModel):
    users: list[UserModel] = Field(description="by name")


class UserChange(RequestModel):
    is_admin: bool | None = Field(None, description="omit to leave unchanged")
    disabled: bool | None = Field(None, description="omit to leave unchanged")


class PasswordResetModel(ResponseModel):
    url: str = Field(description="single-use link that sets a new password; shown once")
    expires_at: AwareDatetime


class UserDeletion(RequestModel):
    documents: Literal["transfer", "keep_shared", "trash", "purge"] = Field(
        description="`transfer`: all are transferred to the user `to`. `keep_shared`: "
        "shared ones are transferred to an administrator, private ones are "
        "erased. `trash`: all are moved to the trash of an administrator. "
        "`purge`: all are erased",
        examples=["keep_shared"],
    )
    to: CleanText | None = Field(
        None,
        max_length=100,
        description="with `transfer`: the name of another active user",
        examples=[None],
    )


class OwnDeletion(RequestModel):
    documents: Annotated[
        DocumentFate,
        WithJsonSchema({"type": "string", "enum": ["keep_shared", "trash", "purge"]}),
        Field(description="as for administrators, without `transfer`: 422", examples=["trash"]),
    ]
    password: CleanText = Field(min_length=1, max_length=1000, examples=["correct horse battery"])


@blueprint.get("/users", errors=(403,))
@context.for_administrators
def list_users() -> UserList:
    """List accounts."""
    listed = accounts.list_accounts(*context.caller())
    return UserList(users=[UserModel.of(account) for account in listed])


@blueprint.patch("/users/<uuid:user_id>", errors=(403, 404, 409))
@context.for_administrators
@require_recent_sign_in
def change_user(user_id: UUID, json_data: UserChange) -> UserModel:
    """Change an account.

    409 for the last administrator.
    """
    services, user = context.caller()
    administration.change_account(
        services, user, user_id, is_admin=json_data.is_admin, disabled=json_data.disabled
    )
    return UserModel.of(accounts.get_summary(services, user, user_id))


@blueprint.post("/users/<uuid:user_id>/password-reset", status_code=201, errors=(403, 404, 409))
@context.for_administrators
@require_recent_sign_in
def reset_password(user_id: UUID) -> PasswordResetModel:
    """Reset a password.

    The current password stops working, and all sessions and tokens end at once. The link is valid
    for 24 hours.
    """
    reset = administration.begin_password_reset(*context.caller(), user_id)
    url = external_url(url_for("sign_in.show_password_reset", token=reset.secret))
    return PasswordResetModel(url=url, expires_at=reset.expires_at)


@blueprint.delete("/users/<uuid:user_id>/sessions", errors=(403, 404))
@context.for_administrators
@require_recent_sign_in
def end_sessions(user_id: UUID) -> None:
    """End all sessions of a user.

    They end at once, in every process. Personal access tokens are kept.
    """
    sessions.end_sessions_of(*context.caller(), user_id)


@blueprint.delete("/users/<uuid:user_id>", errors=(403, 404, 409))
@context.for_administrators
@require_recent_sign_in
def delete_user(user_id: UUID, query_data: UserDeletion) -> None:
    """Delete an account.

    Also deletes its conversations, saved searches, tokens and settings, all or nothing. Folders and
    their sources go to the new owner; `trash` and `purge` end sources. `transfer` is 404 for an
    unknown user, and 422 from your own account or to the account itself. 409 for the last
    administrator.
    """
    account_deletion.delete_account(
        *context.caller(),
        user_id,
        documents=DocumentFate(query_data.documents),
        new_owner_name=query_data.to or "",
    )


@blueprint.post("/account/delete", errors=(401, 403, 409))
@confirms_password
def delete_own(json_data: OwnDeletion) -> None:
    """Delete your account.

    Requires a token from signing in, and the password.
    """
    user = context.session_user()
    recent_sign_in.confirm_password(json_data.password)
    account_deletion.delete_account(
        context.services(), user, user.id, documents=json_data.documents
    )
