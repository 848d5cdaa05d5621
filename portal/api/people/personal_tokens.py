"""Serve personal access tokens with limited scopes, for scripts."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.blueprint import ApiBlueprint
from portal.api.people.auth import TAG
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.people import SCOPES, PersonalToken, Scope
from portal.http import context
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.people import sessions

DAY_S = 24 * 3600

blueprint = ApiBlueprint("personal_tokens", __name__, url_prefix="/api/auth/tokens", tag=TAG)


class TokenBody(RequestModel):
    name: CleanText = Field(
        min_length=1, max_length=100, examples=["nightly import"], description="its purpose"
    )
    scopes: list[Scope] = Field(
        [Scope.READ],
        min_length=1,
        max_length=len(SCOPES),
        description="`write` includes `read`; `admin`, which only administrators can grant,"
        " includes both",
    )
    expires_in_days: Literal[7, 30, 90, 365] = Field(30, description="lifetime")


class PersonalTokenModel(ResponseModel):
    id: UUID
    name: str
    scopes: list[Scope]
    created_at: AwareDatetime
    expires_at: AwareDatetime
    last_used_at: AwareDatetime | None = Field(description="to the minute; null if never")


class CreatedTokenModel(PersonalTokenModel):
    token: str = Field(description="the token; shown once")


class PersonalTokenList(ResponseModel):
    tokens: list[PersonalTokenModel] = Field(description="active tokens, newest first")


def _model(token: PersonalToken) -> PersonalTokenModel:
    return PersonalTokenModel.of(token, scopes=[scope for scope in SCOPES if scope in token.scopes])


@blueprint.get("")
def list_tokens() -> PersonalTokenList:
    """List your personal access tokens."""
    listed = sessions.list_personal_tokens(*context.caller())
    return PersonalTokenList(tokens=[_model(token) for token in listed])


@blueprint.post(
    "",
    status_code=201,
    errors=(403, 409),
    description=f"A user has at most {sessions.MAX_PERSONAL_TOKENS}; one more is 409.",
)
@require_recent_sign_in
def create_token(json_data: TokenBody) -> CreatedTokenModel:
    """Create a personal access token.

    Requires a token from signing in; personal tokens cannot create tokens.
    """
    made, secret = sessions.create_personal_token(
        context.services(),
        context.session_user(),
        name=json_data.name,
        ttl_s=json_data.expires_in_days * DAY_S,
        scopes=json_data.scopes,
    )
    return CreatedTokenModel.of(_model(made), token=secret)


@blueprint.delete("/<uuid:token_id>", errors=(403, 404))
@require_recent_sign_in
def revoke_token(token_id: UUID) -> None:
    """Revoke a personal access token.

    It stops working at once. Requires a token from signing in; any token can end itself with
    `POST /api/auth/revoke`.
    """
    sessions.revoke_personal_token(context.services(), context.session_user(), token_id)
