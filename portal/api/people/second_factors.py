"""Serve two-step verification: the factors of an account, and their setup."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from apiflask import APIBlueprint
from pydantic import Field

from portal.api.people.auth import TAG
from portal.api.schemas import CleanText, RequestModel, ResponseModel, error_responses
from portal.domain.people import SignInMethod
from portal.http import context
from portal.http.recent_sign_in import require_recent_sign_in
from portal.services.people import passkeys, recovery_codes, second_factors, sessions, totp

blueprint = APIBlueprint(
    "second_factors_api", __name__, url_prefix="/api/account/second-factors", tag=TAG
)
admin_blueprint = APIBlueprint(
    "second_factors_admin_api", __name__, url_prefix="/api/admin/users", tag=TAG
)


class TotpModel(ResponseModel):
    created_at: datetime
    last_used_at: datetime | None = Field(description="null: never")


class PasskeyModel(ResponseModel):
    id: UUID
    name: str
    rp_id: str = Field(description="the domain name that it works at", examples=["localhost"])
    created_at: datetime
    last_used_at: datetime | None = Field(description="null: never")


class SecondFactorsModel(ResponseModel):
    required: bool = Field(description="whether the portal requires two-step verification here")
    totp: TotpModel | None = Field(description="the authenticator app; null: none")
    passkeys: list[PasskeyModel]
    recovery_codes_left: int = Field(description="recovery codes that are unused", examples=[10])


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
        description="in this answer only; empty where the account has unused ones",
        examples=[["k3dq-7mzt-a2px-9wvb"]],
    )


@blueprint.get("")
@blueprint.output(SecondFactorsModel)
@blueprint.doc(summary="Show two-step verification")
@context.while_enrolling
def show() -> SecondFactorsModel:
    services, user = context.caller()
    required = second_factors.is_required(services.settings, is_admin=user.is_admin)
    return SecondFactorsModel.of(second_factors.load(services, user.id), required=required)


@blueprint.post("/totp")
@blueprint.output(EnrolmentModel, status_code=201)
@blueprint.doc(
    summary="Begin to set up an authenticator app",
    description="The secret counts once `…/totp/confirm` gets a code. Requires a recent sign-in.",
    responses=error_responses(403, 409),
)
@context.while_enrolling
@require_recent_sign_in
def begin_totp() -> EnrolmentModel:
    return EnrolmentModel.of(totp.begin(context.services(), context.session_user()))


@blueprint.post("/totp/confirm")
@blueprint.input(CodeBody, location="json")
@blueprint.output(RecoveryCodesModel)
@blueprint.doc(
    summary="Confirm an authenticator app",
    description="From now on, signing in with the password asks for a code as well.",
    responses=error_responses(401, 403, 404),
)
@context.while_enrolling
@require_recent_sign_in
def confirm_totp(json_data: CodeBody) -> RecoveryCodesModel:
    services, signed_in = context.services(), context.signed_in()
    codes = totp.confirm(services, context.session_user(), json_data.code)
    if signed_in is not None:
        sessions.renew_authentication(services, signed_in, method=SignInMethod.TOTP)
    return RecoveryCodesModel(recovery_codes=list(codes))


@blueprint.delete("/totp")
@blueprint.output({}, status_code=204)
@blueprint.doc(
    summary="Remove the authenticator app",
    description="Requires a recent sign-in.",
    responses=error_responses(403, 404),
)
@require_recent_sign_in
def remove_totp() -> str:
    totp.remove(context.services(), context.session_user())
    return ""


@blueprint.delete("/passkeys/<uuid:passkey_id>")
@blueprint.output({}, status_code=204)
@blueprint.doc(
    summary="Remove a passkey",
    description="Requires a recent sign-in. Passkeys are added in the browser.",
    responses=error_responses(403, 404),
)
@require_recent_sign_in
def remove_passkey(passkey_id: UUID) -> str:
    passkeys.remove(context.services(), context.session_user(), passkey_id)
    return ""


@blueprint.post("/recovery-codes")
@blueprint.output(RecoveryCodesModel, status_code=201)
@blueprint.doc(
    summary="Replace the recovery codes",
    description="Ten new ones; the old ones stop working. Requires a recent sign-in.",
    responses=error_responses(403, 409),
)
@require_recent_sign_in
def replace_recovery_codes() -> RecoveryCodesModel:
    codes = recovery_codes.replace(context.services(), context.session_user())
    return RecoveryCodesModel(recovery_codes=list(codes))


@admin_blueprint.delete("/<uuid:user_id>/second-factors")
@admin_blueprint.output({}, status_code=204)
@admin_blueprint.doc(
    summary="Remove a user's two-step verification",
    description="For a user who has lost phone, passkeys and recovery codes. The password alone "
    "then signs them in. Requires a recent sign-in.",
    responses=error_responses(403, 404),
)
@context.for_administrators
@require_recent_sign_in
def remove_all(user_id: UUID) -> str:
    second_factors.remove_all(context.services(), context.session_user(), user_id)
    return ""
