"""Sessions: tokens for a person who proved who they are, and how they end."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid4

from portal.domain.people import (
    Person,
    PersonalToken,
    Scope,
    SignedIn,
    TokenKind,
    TokenPair,
    with_lesser,
)
from portal.errors import Forbidden, NotFound
from portal.services import Services
from portal.services.people import tokens
from portal.services.people.accounts import check_name, verify_password
from portal.store.models import TokenRow
from portal.store.people import tokens as token_store


def sign_in(services: Services, *, name: str, password: str) -> TokenPair:
    """Tokens for an API client. Raises WrongCredentials, alike for a wrong name and password."""
    user = verify_password(services, name, password)
    with services.database.begin() as session:
        return tokens.issue_pair(services, session, user_id=user.id)


def browser_session(services: Services, *, name: str, password: str) -> tuple[str, int]:
    """The token for a browser's cookie and its life in seconds. Raises WrongCredentials."""
    user = verify_password(services, name, password)
    return _browser_token(services, user.id)


def _browser_token(services: Services, user_id: UUID) -> tuple[str, int]:
    # A browser has no way to refresh quietly; its token lives as long as a refresh token would,
    # and sign-out, a new password or a disabled account end it at once.
    ttl_s = services.settings.jwt.refresh_ttl_s
    with services.database.begin() as session:
        token = tokens.issue(
            services,
            session,
            user_id=user_id,
            kind=TokenKind.ACCESS,
            ttl_s=ttl_s,
            family_id=uuid4(),
        )
    return token, ttl_s


def sign_out(services: Services, signed_in: SignedIn) -> None:
    """End the session that this token belongs to."""
    tokens.end_family(services, signed_in.token_id)


def token_for(services: Services, person: Person, *, ttl_s: int) -> str:
    """An access token made by the operator on the command line."""
    with services.database.begin() as session:
        return tokens.issue(
            services,
            session,
            user_id=person.id,
            kind=TokenKind.ACCESS,
            ttl_s=ttl_s,
            family_id=uuid4(),
        )


def create_personal_token(
    services: Services,
    person: Person,
    *,
    name: str,
    ttl_s: int,
    scopes: Iterable[Scope] = (Scope.READ,),
) -> tuple[PersonalToken, str]:
    """A token for scripts, and its secret, which is never stored. `scopes` bring the lesser ones
    with them. Raises InvalidInput, Forbidden."""
    name, scopes, token_id = check_name(name), with_lesser(scopes), uuid4()
    if Scope.ADMIN in scopes and not person.is_admin:
        raise Forbidden
    with services.database.begin() as session:
        secret = tokens.issue(
            services,
            session,
            user_id=person.id,
            kind=TokenKind.PERSONAL,
            ttl_s=ttl_s,
            family_id=uuid4(),
            name=name,
            scopes=scopes,
            token_id=token_id,
        )
        row = token_store.find_token(session, token_id)
        if row is None:
            raise NotFound
        return _personal_token(row), secret


def list_personal_tokens(services: Services, person: Person) -> tuple[PersonalToken, ...]:
    """A person's own live tokens, newest first."""
    with services.database.begin() as session:
        rows = token_store.list_personal_tokens(session, person.id)
        return tuple(_personal_token(row) for row in rows)


def _personal_token(row: TokenRow) -> PersonalToken:
    return PersonalToken(
        id=row.id,
        name=row.name or "",
        scopes=frozenset(map(Scope, row.scopes)),
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )


def revoke_personal_token(services: Services, person: Person, token_id: UUID) -> None:
    """Raises NotFound when the person has no such live token."""
    with services.database.begin() as session:
        if not token_store.revoke_personal_token(session, user_id=person.id, token_id=token_id):
            raise NotFound
