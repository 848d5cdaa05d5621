"""Verify tokens of the external issuer in the settings, and read their claims."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import jwt

from portal.domain.people import SCOPES, Scope, with_implied
from portal.errors import InvalidToken
from portal.services import Services
from portal.services.people.federation.signed_claims import UNREADABLE, check_subject, verify
from portal.settings import OutsideIssuerSettings

_REQUIRED_CLAIMS = ["iss", "aud", "sub", "iat", "exp"]


@dataclass(frozen=True, slots=True)
class OutsideClaims:
    """The claims of a verified token."""

    token_id: UUID
    issuer: str
    subject: str
    scopes: frozenset[Scope]
    expires_at: datetime


def is_outside(services: Services, token: str) -> bool:
    """Return whether a token claims to be from the outside issuer. The issuer alone decides which
    key checks a token."""
    issuer = services.settings.jwt.outside.issuer
    if issuer is None:
        return False
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except UNREADABLE:
        return False
    return bool(claims.get("iss") == issuer)


def read_claims(services: Services, token: str) -> OutsideClaims:
    """Return the claims of a valid token. Raises InvalidToken, and IssuerUnavailable when there is
    no key to check it with."""
    outside = services.settings.jwt.outside
    try:
        claims = _verify(services, outside, token)
        return OutsideClaims(
            token_id=_token_id(token),
            issuer=claims["iss"],
            subject=check_subject(claims["sub"]),
            scopes=_scopes(claims),
            expires_at=datetime.fromtimestamp(int(claims["exp"]), UTC),
        )
    except UNREADABLE as error:
        raise InvalidToken from error


def _verify(services: Services, outside: OutsideIssuerSettings, token: str) -> dict[str, Any]:
    if services.issuer_keys is None:
        raise InvalidToken
    return verify(
        token,
        services.issuer_keys,
        algorithms=[outside.algorithm],
        issuer=outside.issuer or "",
        audience=outside.audience or "",
        leeway_s=services.settings.jwt.leeway_s,
        required=_REQUIRED_CLAIMS,
    )


def _token_id(token: str) -> UUID:
    """Return the key of a token's row, derived from what is signed: a signature can be written in
    several ways, and an ended token must not come back with another."""
    signed, _, _ = token.rpartition(".")
    return UUID(bytes=hashlib.sha256(signed.encode()).digest()[:16])


def _scopes(claims: dict[str, Any]) -> frozenset[Scope]:
    """Return the portal's scopes in the claim; all scopes without the claim."""
    claim = claims.get("scope", claims.get("scp"))
    if claim is None:
        return frozenset(SCOPES)
    named = claim.split() if isinstance(claim, str) else claim
    return with_implied(scope for scope in SCOPES if scope.value in named)
