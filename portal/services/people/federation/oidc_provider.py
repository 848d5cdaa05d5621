"""The OpenID Connect provider: its discovery document, the code exchange, the tokens it signs.

Authlib builds the requests and checks the claims, PyJWT checks signatures; downloads are limited
and cached (`provider_documents`).
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args
from urllib.parse import quote, urlencode

import httpx
import jwt

from portal.errors import (
    IssuerUnavailable,
    ProviderGroupsMissing,
    ProviderSignInFailed,
    ProviderUnavailable,
)
from portal.services.people.federation.issuer_keys import IssuerKeys
from portal.services.people.federation.provider_documents import (
    CachedDocument,
    UnusableDocument,
    download,
    json_object,
    request,
)
from portal.services.people.federation.signed_claims import UNREADABLE, check_subject, verify
from portal.settings import OidcSettings
from portal.settings.base import https_address
from portal.settings.sign_in import OutsideAlgorithm

ALGORITHMS = frozenset(get_args(OutsideAlgorithm))
"""Signatures with a public key. `none` and those with a shared secret are never accepted."""

LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
_EXCHANGE_TIMEOUT_S = 5.0
# An exchange holds a web thread until the provider answers.
_MAX_EXCHANGES = 4
_MAX_SESSION_ID_CHARACTERS = 255
_MAX_ID_TOKEN_CHARACTERS = 16 * 1024
# Long enough for a slow network, short enough to remember every `jti` meanwhile.
LOGOUT_TOKEN_LIFE_S = 300
# `amr` values of RFC 8176 that say that more than one factor was used.
_TWO_FACTOR_METHODS = frozenset({"mfa"})


@dataclass(frozen=True, slots=True)
class Metadata:
    """The parts of the discovery document that are used."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None
    algorithms: frozenset[str]
    token_auth_methods: frozenset[str]
    sends_issuer: bool


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """The secrets of a sign-in that began in one browser and must end there."""

    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class OidcClaims:
    """The claims of a verified id token."""

    issuer: str
    subject: str
    name: str
    groups: frozenset[str]
    session_id: str | None
    has_two_factors: bool
    authenticated_at: datetime | None
    id_token: str


@dataclass(frozen=True, slots=True)
class LogoutClaims:
    """The claims of a verified logout token; `subject` or `session_id` is set."""

    issuer: str
    subject: str | None
    session_id: str | None
    token_id: str


class OidcProvider:
    """The provider in the settings, one instance per process. Thread-safe."""

    def __init__(self, settings: OidcSettings, *, leeway_s: int) -> None:
        self._settings = settings
        self._leeway_s = leeway_s
        self._document = CachedDocument(self._load_metadata, name="oidc-discovery")
        self._keys = IssuerKeys(
            lambda: download(self.metadata().jwks_uri), algorithms=sorted(ALGORITHMS)
        )
        self._exchanges = threading.BoundedSemaphore(_MAX_EXCHANGES)

    @property
    def issuer(self) -> str:
        return self._settings.issuer or ""

    def metadata(self) -> Metadata:
        """Return what is used of the provider's discovery document. Raises ProviderUnavailable."""
        try:
            return self._document.get()
        except IssuerUnavailable as error:
            raise ProviderUnavailable from error

    def is_reachable(self) -> bool:
        """Return whether a sign-in could begin now; the first call waits up to two seconds."""
        try:
            self.metadata()
        except ProviderUnavailable:
            return False
        return True

    def begin(self, redirect_uri: str, *, again: bool = False) -> tuple[str, PendingSignIn]:
        """Return the address to send the browser to, and the secrets of the sign-in. `again` asks
        the provider not to rely on its own session. Raises ProviderUnavailable."""
        pending = PendingSignIn(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
        )
        more = {"prompt": "login", "max_age": "0"} if again else {}
        address, _ = self._client().create_authorization_url(
            self.metadata().authorization_endpoint,
            state=pending.state,
            nonce=pending.nonce,
            code_verifier=pending.verifier,
            redirect_uri=redirect_uri,
            **more,
        )
        return str(address), pending

    def finish(self, *, code: str, nonce: str, verifier: str, redirect_uri: str) -> OidcClaims:
        """Exchange a code for an id token and verify it. Raises ProviderUnavailable,
        ProviderSignInFailed, ProviderGroupsMissing."""
        metadata = self.metadata()
        token = self._exchange(
            metadata, code=code, code_verifier=verifier, redirect_uri=redirect_uri
        )
        try:
            if not isinstance(token, str) or len(token) > _MAX_ID_TOKEN_CHARACTERS:
                raise ValueError("no id token")
            claims = self._verify(metadata, token, ["iss", "aud", "sub", "iat", "exp", "nonce"])
            self._check_claims(token, claims, nonce)
            return self._read(token, claims)
        except UNREADABLE as error:
            raise ProviderSignInFailed from error

    def verify_logout_token(self, token: str) -> LogoutClaims:
        """Verify a token that ends sessions (OpenID Connect Back-Channel Logout 1.0, 2.6). Raises
        ProviderSignInFailed, ProviderUnavailable."""
        try:
            claims = self._verify(self.metadata(), token, ["iss", "aud", "iat", "jti"])
            events, subject = claims["events"], claims.get("sub")
            if not isinstance(events[LOGOUT_EVENT], dict) or "nonce" in claims:
                raise ValueError("not a logout token")
            if time.time() - claims["iat"] > LOGOUT_TOKEN_LIFE_S + self._leeway_s:
                raise ValueError("too old")
            found = LogoutClaims(
                issuer=self.issuer,
                subject=None if subject is None else check_subject(subject),
                session_id=_session_id(claims),
                token_id=check_subject(claims["jti"]),
            )
        except UNREADABLE as error:
            raise ProviderSignInFailed from error
        if found.subject is None and found.session_id is None:
            raise ProviderSignInFailed
        return found

    def end_session_address(self, *, id_token: str, return_to: str) -> str | None:
        """Return where the browser goes to sign out at the provider; None if it has no such page
        or cannot be reached."""
        try:
            endpoint = self.metadata().end_session_endpoint
        except ProviderUnavailable:
            return None
        if endpoint is None:
            return None
        query = urlencode(
            {
                "id_token_hint": id_token,
                "client_id": self._settings.client_id,
                "post_logout_redirect_uri": return_to,
            }
        )
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    def _load_metadata(self) -> Metadata:
        address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        document = json_object(download(address))
        if document.get("issuer") != self.issuer:
            raise UnusableDocument("its issuer is not the one in PORTAL_OIDC__ISSUER")
        algorithms = ALGORITHMS.intersection(
            _strings(document.get("id_token_signing_alg_values_supported", ["RS256"]))
        )
        if not algorithms:
            raise UnusableDocument("it signs with nothing that is accepted here")
        end_session = document.get("end_session_endpoint")
        return Metadata(
            authorization_endpoint=self._endpoint(document, "authorization_endpoint"),
            token_endpoint=self._endpoint(document, "token_endpoint"),
            jwks_uri=self._endpoint(document, "jwks_uri"),
            end_session_endpoint=self._endpoint(document, "end_session_endpoint")
            if end_session
            else None,
            algorithms=algorithms,
            token_auth_methods=_strings(
                document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            ),
            sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        )

    def _endpoint(self, document: Mapping[str, Any], name: str) -> str:
        try:
            address = https_address(str(document.get(name)))
        except ValueError as error:
            raise UnusableDocument(f"its {name} does not begin with https://") from error
        if self.issuer.startswith("https://") and not address.startswith("https://"):
            raise UnusableDocument(f"its {name} does not begin with https://")
        return address

    def _client(self) -> Any:
        # Loading Authlib takes a while, and most commands never need it.
        from authlib.oauth2.client import OAuth2Client

        return OAuth2Client(
            _TokenEndpoint(),
            client_id=self._settings.client_id,
            scope=self._settings.scopes,
            code_challenge_method="S256",
        )

    def _client_auth(self, metadata: Metadata) -> Any:
        from authlib.oauth2.auth import ClientAuth

        client_id, given = self._settings.client_id or "", self._settings.client_secret
        if given is None:
            return ClientAuth(client_id, None, "none")
        secret, methods = given.get_secret_value(), metadata.token_auth_methods
        if "client_secret_post" in methods and "client_secret_basic" not in methods:
            return ClientAuth(client_id, secret, "client_secret_post")
        # RFC 6749, 2.3.1: both are form-encoded before they become a header.
        return ClientAuth(quote(client_id, ""), quote(secret, ""), "client_secret_basic")

    def _exchange(self, metadata: Metadata, **parameters: str) -> object:
        from authlib.oauth2 import OAuth2Error

        if not self._exchanges.acquire(blocking=False):
            raise ProviderUnavailable
        try:
            response = self._client().fetch_token(
                metadata.token_endpoint,
                auth=self._client_auth(metadata),
                grant_type="authorization_code",
                **parameters,
            )
        except httpx.HTTPStatusError as error:
            is_theirs = error.response.is_server_error
            raise (ProviderUnavailable if is_theirs else ProviderSignInFailed) from error
        except httpx.HTTPError as error:
            raise ProviderUnavailable from error
        except (OAuth2Error, ValueError, TypeError, RecursionError) as error:
            raise ProviderSignInFailed from error
        finally:
            self._exchanges.release()
        return response.get("id_token")

    def _verify(self, metadata: Metadata, token: str, required: list[str]) -> dict[str, Any]:
        try:
            return verify(
                token,
                self._keys,
                algorithms=metadata.algorithms,
                issuer=self.issuer,
                audience=self._settings.client_id or "",
                leeway_s=self._leeway_s,
                required=required,
            )
        except IssuerUnavailable as error:
            raise ProviderUnavailable from error

    def _check_claims(self, token: str, claims: dict[str, Any], nonce: str) -> None:
        """Check the claims that only id tokens have: `nonce`, `azp`, `auth_time`. `at_hash` is not
        checked, since the access token is never used. Raises ValueError."""
        from authlib.oidc.core import CodeIDToken
        from joserfc.errors import JoseError

        parameters = {"nonce": nonce, "client_id": self._settings.client_id}
        checked = CodeIDToken(claims, jwt.get_unverified_header(token), params=parameters)
        try:
            checked.validate(leeway=self._leeway_s)
        except JoseError as error:
            raise ValueError("claims") from error

    def _read(self, token: str, claims: dict[str, Any]) -> OidcClaims:
        settings = self._settings
        authenticated_at = claims.get("auth_time")
        methods = _strings(claims.get("amr"))
        return OidcClaims(
            issuer=self.issuer,
            subject=check_subject(claims["sub"]),
            name=str(claims.get(settings.name_claim) or claims["sub"]),
            groups=self._groups(claims),
            session_id=_session_id(claims),
            has_two_factors=settings.second_factor == "always"
            or not methods.isdisjoint(_TWO_FACTOR_METHODS)
            or str(claims.get("acr")) in settings.two_factor_acr,
            authenticated_at=datetime.fromtimestamp(authenticated_at, UTC)
            if authenticated_at
            else None,
            id_token=token,
        )

    def _groups(self, claims: dict[str, Any]) -> frozenset[str]:
        settings = self._settings
        name = settings.groups_claim
        if name in claims:
            return _strings(claims[name])
        found: Any = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        # Entra ID leaves out more than 200 groups and says so. Treating that as no group at all
        # would silently remove a role, or lock a user out.
        elsewhere = claims.get("_claim_names")
        is_left_out = found is None and isinstance(elsewhere, dict) and name in elsewhere
        if is_left_out and (settings.admins or settings.allowed):
            raise ProviderGroupsMissing
        return _strings(found)


class _TokenEndpoint:
    """The part of an HTTP session that Authlib's client needs, with the portal's limits."""

    def post(
        self, url: str, *, data: dict[str, str], headers: dict[str, str], auth: Any
    ) -> httpx.Response:
        url, headers, body = auth.prepare("POST", url, dict(headers), urlencode(data))
        return request("POST", url, headers=headers, content=body, timeout_s=_EXCHANGE_TIMEOUT_S)


def _session_id(claims: Mapping[str, Any]) -> str | None:
    found = claims.get("sid")
    if found is None:
        return None
    if not isinstance(found, str) or not 1 <= len(found) <= _MAX_SESSION_ID_CHARACTERS:
        raise ValueError("sid")
    return check_subject(found)


def _strings(found: object) -> frozenset[str]:
    """Return the strings of a list, or a single one."""
    listed = found if isinstance(found, list) else [found]
    return frozenset(item for item in listed if isinstance(item, str))


def create_oidc_provider(settings: OidcSettings, *, leeway_s: int) -> OidcProvider | None:
    """Return the provider of the settings, or None."""
    return None if settings.issuer is None else OidcProvider(settings, leeway_s=leeway_s)
