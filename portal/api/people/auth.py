"""Issue, refresh and revoke tokens."""

from __future__ import annotations

from pydantic import Field

from portal import limits
from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.people import TokenPair
from portal.http import clients, context
from portal.http.credentials import read_credentials
from portal.http.recent_sign_in import confirm_password, confirms_password
from portal.services.people import sessions, tokens

TAG = {"name": "Sign-in", "description": "Tokens for programs: get one, renew it, end it."}

blueprint = ApiBlueprint("auth_api", __name__, url_prefix="/api/auth", tag=TAG)


class Credentials(RequestModel):
    username: CleanText = Field(min_length=1, max_length=100, examples=["admin"])
    password: CleanText = Field(min_length=1, max_length=1000, examples=["correct horse battery"])
    otp: CleanText | None = Field(
        None,
        max_length=100,
        description="code of the authenticator app, or a recovery code; required if the "
        "account uses two-step verification",
        examples=[None],
    )


class Confirmation(RequestModel):
    password: CleanText = Field(min_length=1, max_length=1000, examples=["correct horse battery"])


class RefreshRequest(RequestModel):
    refresh_token: CleanText = Field(min_length=1, max_length=4096)


class RevokeRequest(RequestModel):
    token: CleanText | None = Field(
        None, max_length=4096, description="default: the token of this request"
    )


class TokenResponse(ResponseModel):
    access_token: str
    token_type: str = "Bearer"  # noqa: S105 - the name of a scheme
    expires_in: int = Field(description="seconds")
    refresh_token: str


def _answer(pair: TokenPair) -> TokenResponse:
    return TokenResponse.of(pair, expires_in=pair.expires_in_s)


@blueprint.post("/token", errors=(401, 403))
@context.public
@limits.failed_sign_ins
def create_token(json_data: Credentials) -> TokenResponse:
    """Sign in.

    401 `second_factor_required` if the password is right and `otp` is missing; 403
    `password_sign_in_off` if users sign in through a provider only.
    """
    credentials = read_credentials()
    pair = sessions.sign_in(
        context.services(),
        name=credentials.name,
        password=credentials.password,
        code=json_data.otp,
        client=clients.current_client(),
    )
    limits.confirm_sign_in(credentials.name)
    return _answer(pair)


@blueprint.post("/refresh", errors=(401,))
@context.public
def refresh_token(json_data: RefreshRequest) -> TokenResponse:
    """Refresh a token.

    A refresh token can be used once: the response contains the next one.
    """
    return _answer(tokens.refresh(context.services(), json_data.refresh_token))


@blueprint.post("/confirm", errors=(401, 403))
@context.for_every_token
@confirms_password
def confirm(json_data: Confirmation) -> None:
    """Confirm the password.

    For scripts of pages, after a response `reauthentication_required`: the session may then change
    rights and credentials for 15 minutes.
    """
    confirm_password(json_data.password)


@blueprint.post("/revoke", errors=(403,))
@context.for_every_token
def revoke_token(json_data: RevokeRequest) -> None:
    """End a session.

    Ends the token and all tokens from the same sign-in (RFC 7009). A token may end itself, whatever
    its scopes. A session may also end the user's other tokens; a token that is invalid or another
    user's is ignored.
    """
    signed_in = context.require_signed_in()
    if json_data.token:
        tokens.revoke(context.services(), signed_in, json_data.token)
    else:
        sessions.sign_out(context.services(), signed_in)
