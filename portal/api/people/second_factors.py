"""Serve two-step verification: the factors of an account, and their setup."""

from __future__ import annotations

from uuid import UUID

from pydantic import AwareDatetime, Field

from portal.api.blueprint import ApiBlueprint
from portal.api.people.auth import TAG
from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.people import SignInMethod
from portal.http import context
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.people import second_factors, sessions
from portal.services.people.second_factors import passkeys, recovery_codes, totp

blueprint = ApiBlueprint(
    "second_factors_api", __name__, url_prefix="/api/account/second-factors", tag=TAG
)
admin_blueprint = ApiBlueprint(
    "second_factors_admin_api", __name__, url_prefix="/api/admin/users", tag=TAG
)


class TotpModel(ResponseModel):
    created_at: AwareDatetime
    last_used_at: AwareDatetime | None = Field(description="null if never")


class PasskeyModel(ResponseModel):
    id: UUID
    name: str
    rp_id: str = Field(description="the domain name that it is valid for", examples=["localhost"])
    created_at: AwareDatetime
    last_used_at: AwareDatetime | None = Field(description="null if never")


class SecondFactorsModel(ResponseModel):
    required: bool = Field(
        description="whether the portal requires two-step verification for this account"
    )
    totp: TotpModel | None = Field(description="the authenticator app; null if there is none")
    passkeys: list[PasskeyModel]
    recovery_codes_left: int = Field(description="number of unused recovery codes", examples=[10])


class EnrolmentModel(ResponseModel):
    secret: str = Field(
        description="for the authenticator app, in base32", examples=["JBSWY3DPEHPK3PXP"]
    )
    uri: str = Field(
        description="the same as an `otpauth://` address, for QR codes",
        examples=["otpauth://totp/Knowledge%20portal:ada?secret=JBSWY3DPEHPK3PXP"],
    )


class CodeBody(RequestModel):
    code: CleanText = Field(min_length=1, max_length=100, examples=["123456"])


class RecoveryCodesModel(ResponseModel):
    recovery_codes: list[str] = Field(
        description="shown only in this response; empty if the account has unused ones",
        examples=[["k3dq-7mzt-a2px-9wvb"]],
    )


@blueprint.get("")
@context.while_enrolling
def show() -> SecondFactorsModel:
    """Show two-step verification."""
    services, user = context.caller()
    required = second_factors.is_required(services.settings, is_admin=user.is_admin)
    return SecondFactorsModel.of(second_factors.load(services, user.id), required=required)


@blueprint.post("/totp", status_code=201, errors=(403, 409))
@context.while_enrolling
@require_recent_sign_in
def begin_totp() -> EnrolmentModel:
    """Begin to set up an authenticator app.

    The secret takes effect when `…/totp/confirm` receives a code. Requires a recent sign-in.
    """
    return EnrolmentModel.of(totp.begin(context.services(), context.session_user()))


@blueprint.post("/totp/confirm", errors=(401, 403, 404))
@context.while_enrolling
@require_recent_sign_in
def confirm_totp(json_data: CodeBody) -> RecoveryCodesModel:
    """Confirm an authenticator app.

    From now on, signing in with the password asks for a code as well.
    """
    services, signed_in = context.services(), context.signed_in()
    codes = totp.confirm(services, context.session_user(), json_data.code)
    if signed_in is not None:
        sessions.renew_authentication(services, signed_in, method=SignInMethod.TOTP)
    return RecoveryCodesModel(recovery_codes=list(codes))


@blueprint.delete("/totp", errors=(403, 404))
@require_recent_sign_in
def remove_totp() -> None:
    """Remove the authenticator app.

    Requires a recent sign-in.
    """
    totp.remove(context.services(), context.session_user())


@blueprint.delete("/passkeys/<uuid:passkey_id>", errors=(403, 404))
@require_recent_sign_in
def remove_passkey(passkey_id: UUID) -> None:
    """Remove a passkey.

    Requires a recent sign-in. Passkeys are added in the browser.
    """
    passkeys.remove(context.services(), context.session_user(), passkey_id)


@blueprint.post("/recovery-codes", status_code=201, errors=(403, 409))
@require_recent_sign_in
def replace_recovery_codes() -> RecoveryCodesModel:
    """Replace the recovery codes.

    Returns ten new ones; the old ones stop working. Requires a recent sign-in.
    """
    codes = recovery_codes.replace(context.services(), context.session_user())
    return RecoveryCodesModel(recovery_codes=list(codes))


@admin_blueprint.delete("/<uuid:user_id>/second-factors", errors=(403, 404))
@context.for_administrators
@require_recent_sign_in
def remove_all(user_id: UUID) -> None:
    """Remove a user's two-step verification.

    For a user who has lost phone, passkeys and recovery codes, and who then signs in with the
    password alone. Requires a recent sign-in.
    """
    second_factors.remove_all(context.services(), context.session_user(), user_id)
