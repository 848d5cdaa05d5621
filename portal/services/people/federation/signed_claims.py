"""Claims of tokens that another party signed with a private key."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import Any

import jwt

from portal.services.people.federation.issuer_keys import IssuerKeys

# Errors that reading an untrusted token may raise.
UNREADABLE = (
    *(jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError),
    *(OverflowError, OSError, RecursionError),
)
_MAX_SUBJECT_CHARACTERS = 255


def verify(
    token: str,
    keys: IssuerKeys,
    *,
    algorithms: Collection[str],
    issuer: str,
    audience: str,
    leeway_s: int,
    required: list[str],
) -> dict[str, Any]:
    """Return the claims of a token that `issuer` signed for `audience`. Raises what UNREADABLE
    lists, IssuerUnavailable."""
    header = jwt.get_unverified_header(token)
    algorithm = str(header.get("alg"))
    # Checked before looking for a key. Other fields of a header that name keys (`jku`, `jwk`,
    # `x5u`, `x5c`) are never used.
    if algorithm not in algorithms:
        raise ValueError("algorithm")
    key = keys.find(header.get("kid"), algorithm)
    if key is None:
        raise ValueError("key")
    claims: dict[str, Any] = jwt.decode(
        token,
        key,
        algorithms=[algorithm],
        issuer=issuer,
        audience=audience,
        leeway=leeway_s,
        options={"require": required, "enforce_minimum_key_length": True},
    )
    return claims


def check_subject(subject: str) -> str:
    """Return an identifier unchanged: never trimmed, folded or normalised, since it is an identity.
    Raises ValueError."""
    if not 1 <= len(subject) <= _MAX_SUBJECT_CHARACTERS:
        raise ValueError("length of the subject")
    if any(unicodedata.category(character).startswith("C") for character in subject):
        raise ValueError("invisible characters in the subject")
    return subject
