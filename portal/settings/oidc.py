"""Settings of sign-in through an OpenID Connect provider."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from portal.settings.base import Section, https_address


def _split_list(value: str | None) -> frozenset[str]:
    return frozenset(filter(None, (part.strip() for part in (value or "").split(","))))


class OidcSettings(Section):
    """The provider of sign-in in the browser."""

    issuer: str | None = Field(
        None,
        max_length=500,
        description="address of the OpenID Connect provider, exactly as in its discovery document; "
        "unset: sign-in with passwords only",
    )
    client_id: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        validate_default=True,
        description="the portal's client id at the provider",
    )
    client_secret: SecretStr | None = Field(
        None, description="the client's secret; unset: a public client, protected by PKCE alone"
    )
    scopes: str = Field("openid profile email", description="scopes to request")
    name_claim: str = Field(
        "preferred_username", min_length=1, description="claim with the name of a new account"
    )
    groups_claim: str = Field(
        "groups",
        min_length=1,
        description="claim with a user's groups; dots lead into nested objects",
    )
    admin_groups: str | None = Field(
        None,
        description="groups whose members are administrators, separated by commas; if set, each "
        "sign-in grants or removes the role accordingly",
    )
    allowed_groups: str | None = Field(
        None,
        description="groups that may sign in, separated by commas, in addition to the "
        "administrators'; unset: all users of the provider",
    )
    create_accounts: bool = Field(
        False, description="true: users without a linked account get one at their first sign-in"
    )
    label: str | None = Field(
        None, min_length=1, max_length=60, description="the provider's name on the button"
    )
    only: bool = Field(
        False,
        description="true: only the account of PORTAL_OIDC__BREAK_GLASS can sign in with a "
        "password",
    )
    break_glass: str = Field(
        "admin",
        min_length=1,
        max_length=100,
        description="the administrator who may use a password even if PORTAL_OIDC__ONLY is set",
    )
    second_factor: Literal["claims", "always"] = Field(
        "claims",
        description="when a sign-in at the provider counts as two factors: if its `amr` or `acr` "
        "says so, or always",
    )
    second_factor_acr: str | None = Field(
        None, description="values of `acr` that count as two factors, separated by commas"
    )

    @field_validator("issuer")
    @classmethod
    def _is_https(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if "?" in value or "#" in value:
            raise ValueError("an address without ? and #")
        return https_address(value)

    @field_validator("client_id")
    @classmethod
    def _has_a_client(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("issuer") and value is None:
            raise ValueError("the id under which the provider knows this portal")
        if value is not None and not info.data.get("issuer"):
            raise ValueError("nothing, while PORTAL_OIDC__ISSUER is unset")
        return value

    @field_validator("client_secret")
    @classmethod
    def _is_sendable(cls, value: SecretStr | None) -> SecretStr | None:
        text = "x" if value is None else value.get_secret_value()
        if not text or not text.isascii() or not text.isprintable():
            raise ValueError("printable ASCII characters, or nothing for a public client")
        return value

    @field_validator("scopes")
    @classmethod
    def _asks_for_an_id_token(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("scopes separated by spaces, “openid” among them")
        return value

    @field_validator("only")
    @classmethod
    def _has_a_provider(cls, value: bool, info: ValidationInfo) -> bool:
        if value and not info.data.get("issuer"):
            raise ValueError("false, while PORTAL_OIDC__ISSUER is unset: no one could sign in")
        return value

    @property
    def admins(self) -> frozenset[str]:
        return _split_list(self.admin_groups)

    @property
    def allowed(self) -> frozenset[str]:
        """Return the groups that may sign in; empty if everyone may."""
        allowed = _split_list(self.allowed_groups)
        return allowed | self.admins if allowed else allowed

    @property
    def two_factor_acr(self) -> frozenset[str]:
        return _split_list(self.second_factor_acr)
