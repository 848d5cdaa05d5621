"""Settings of tokens (ours and those of an outside issuer), passwords and sign-in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from portal.settings.base import Section, https_address

OutsideAlgorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]


_SHA1_CHARACTERS = 40
_SHA1 = re.compile(rb"[0-9A-Fa-f]{40}")


class OutsideIssuerSettings(Section):
    """An issuer whose tokens are accepted besides the portal's own."""

    issuer: str | None = Field(
        None,
        min_length=1,
        max_length=500,
        description="`iss` of an outside issuer; unset: only the portal's own tokens are accepted",
    )
    audience: str | None = Field(
        None, min_length=1, validate_default=True, description="`aud` of its tokens for this portal"
    )
    algorithm: OutsideAlgorithm = Field(
        "RS256", description="algorithm that it signs with; a token that names another is refused"
    )
    jwks_url: str | None = Field(
        None,
        validate_default=True,
        description="address of its public keys (a JWKS): https, or http on this machine",
    )

    @field_validator("audience")
    @classmethod
    def _has_an_audience(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("issuer") and value is None:
            # Otherwise the tokens that it issues for other services would be accepted here too.
            raise ValueError("the audience of this portal, since there is an outside issuer")
        return value

    @field_validator("jwks_url")
    @classmethod
    def _is_private(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("issuer") and value is None:
            raise ValueError("the address of the issuer's keys")
        if value is None:
            return None
        if not info.data.get("issuer"):
            raise ValueError("nothing, while PORTAL_JWT__OUTSIDE__ISSUER is unset")
        return https_address(value)


class PasswordSettings(Section):
    """What new passwords are checked against, besides common passwords and names."""

    breached_file: Path | None = Field(
        None,
        description="a list of breached passwords: sorted SHA-1 hashes in hexadecimal, one per "
        "line, as Have I Been Pwned offers it",
    )

    @field_validator("breached_file")
    @classmethod
    def _is_list_of_hashes(cls, value: Path | None) -> Path | None:
        if value is None:
            return None
        try:
            with value.open("rb") as file:
                first = file.read(_SHA1_CHARACTERS)
        except OSError:
            first = b""
        if not _SHA1.fullmatch(first):
            raise ValueError("a readable file with sorted SHA-1 hashes in hexadecimal, one a line")
        return value


class JwtSettings(Section):
    """The claims of our tokens, and the outside issuer whose tokens are accepted."""

    issuer: str = Field("portal", min_length=1, description="`iss` of the portal's tokens")
    audience: str = Field("portal", min_length=1, description="`aud` of the portal's tokens")
    leeway_s: int = Field(60, ge=0, le=600, description="tolerated clock skew")
    access_ttl_s: int = Field(3600, ge=60, le=86400, description="lifetime of an access token")
    refresh_ttl_s: int = Field(
        1209600,
        ge=3600,
        le=7776000,
        description="lifetime of a refresh token and of a browser session",
    )
    outside: OutsideIssuerSettings = OutsideIssuerSettings()

    @field_validator("outside")
    @classmethod
    def _is_another(
        cls, value: OutsideIssuerSettings, info: ValidationInfo
    ) -> OutsideIssuerSettings:
        if value.issuer is not None and value.issuer == info.data.get("issuer"):
            raise ValueError("an issuer that is not called as we are in PORTAL_JWT__ISSUER")
        return value


class SignInSettings(Section):
    """What signing in requires."""

    require_second_factor: Literal["off", "administrators", "everyone"] = Field(
        "off", description="who must set up two-step verification before using anything else"
    )

    @field_validator("require_second_factor", mode="before")
    @classmethod
    def _off_in_yaml(cls, value: object) -> object:
        # YAML reads a bare `off` as false.
        return "off" if value is False else value
