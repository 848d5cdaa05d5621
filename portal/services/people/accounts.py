"""Accounts: names, passwords, preferences, and changes by administrators."""

from __future__ import annotations

import hashlib
import os
import secrets
import unicodedata
from datetime import UTC, datetime
from threading import BoundedSemaphore
from uuid import UUID

import structlog
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from portal.domain.people import AccountSummary, User, VerifiedUser, require_admin
from portal.errors import (
    Conflict,
    InvalidInput,
    NoSuchAccount,
    NotFound,
    PasswordSignInOff,
    PortalError,
    WrongCredentials,
    existing,
)
from portal.services import Services, audit
from portal.services.audit import AuditEvent
from portal.services.people import passwords
from portal.settings import OidcSettings
from portal.store.models import UserRow
from portal.store.people import accounts as account_store
from portal.store.people import tokens as token_store
from portal.store.session import Session
from portal.text.characters.look_alikes import shows_nothing
from portal.text.titles import check_domain

MAX_NAME_CHARACTERS = 100
FIRST_ADMINISTRATOR = "admin"
_LANGUAGES = {"zh-CN", "en"}

_hasher = PasswordHasher()
# A hash keeps four threads busy for a tenth of a second. On two cores, four hashes at once leave
# two fifths of a core for all other requests; one hash leaves a whole core.
_hashing = BoundedSemaphore(max(1, (os.cpu_count() or 1) // 2))
# The hash of a discarded password. It is checked for unknown users, so that the answer takes as
# long as for known ones.
_DUMMY_HASH = (
    "$argon2id$v=19$m=65536,t=3,p=4$ZlJMzwyrdQBXOaCxoj8RAQ"
    "$fGE3K2NbYo1ZwNlQ3hMQF6kpqHQ406oTzjkeGAGVJ/M"
)
log = structlog.get_logger(__name__)


def previous_visit(services: Services, user: User) -> datetime | None:
    """Return when the user's visit before this one ended; None on the first."""
    with services.database.begin() as session:
        row = account_store.get_user(session, user.id)
        return row.previous_visit_at if row else None


def normalise_name(name: str) -> str:
    """Return a name as it is stored and looked up: in NFC, without NUL and surrounding spaces."""
    return unicodedata.normalize("NFC", name.replace("\0", " ")).strip()


def fold_name(name: str) -> str:
    """Return the case-folded form of a normalised name, the key of limits and sign-ins."""
    return name.casefold()


def check_name(name: str) -> str:
    """Return a name that an account may have. Raises InvalidInput."""
    name = normalise_name(name)
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS:
        raise InvalidInput("a name must have 1 to %(max)s characters", max=MAX_NAME_CHARACTERS)
    if any(unicodedata.category(character).startswith("C") for character in name):
        raise InvalidInput("a name must not contain invisible characters")
    if all(map(shows_nothing, name)):
        raise InvalidInput("a name must contain visible characters")
    return name


def hash_new_password(services: Services, password: str, *, name: str) -> str:
    """Check the new password of the user called `name`, and hash it. Raises WeakPassword,
    InvalidInput, BreachedListUnavailable."""
    passwords.check_password(services.settings, password, name=name)
    with _hashing:
        return _hasher.hash(password)


def ensure_first_administrator(services: Services) -> tuple[str, str] | None:
    """Create the first administrator; return name and password, or None if there are users."""
    given = services.settings.admin_password
    password = (given.get_secret_value() if given else "") or secrets.token_urlsafe(12)
    passwords.check_length(password)
    with services.database.begin() as session:
        if account_store.has_users(session):
            return None
        row = account_store.add_user(
            session, name=FIRST_ADMINISTRATOR, password_hash=_hasher.hash(password), is_admin=True
        )
        _record_created(session, row, by="first_start")
    _warn_of_weak_password(services, password)
    return FIRST_ADMINISTRATOR, password


def _warn_of_weak_password(services: Services, password: str) -> None:
    """Log that PORTAL_ADMIN_PASSWORD is weak; the portal starts nevertheless."""
    try:
        passwords.check_password(services.settings, password, name=FIRST_ADMINISTRATOR)
    except PortalError as error:
        log.warning("weak_admin_password", reason=str(error), setting="PORTAL_ADMIN_PASSWORD")


def create_user(services: Services, *, name: str, password: str, is_admin: bool = False) -> User:
    """Create an account with a password. Raises NameTaken, WeakPassword, InvalidInput."""
    return _create(services, name=name, password=password, is_admin=is_admin, by="operator")


def _create(services: Services, *, name: str, password: str, is_admin: bool, by: str) -> User:
    name = check_name(name)
    password_hash = hash_new_password(services, password, name=name)
    with services.database.begin() as session:
        row = account_store.add_user(
            session, name=name, password_hash=password_hash, is_admin=is_admin
        )
        _record_created(session, row, by=by)
        return account_store.to_user(row)


def _record_created(session: Session, row: UserRow, *, by: str) -> None:
    """Record a new account in the audit log; `by` is how it was created."""
    audit.record(session, AuditEvent.USER_CREATED, None, row, by=by, is_admin=row.is_admin)


def find_user(services: Services, name: str) -> User:
    """Return an enabled account by name, for the command line. Raises NoSuchAccount."""
    with services.database.begin() as session:
        row = account_store.get_user_by_name(session, normalise_name(name))
        if row.disabled_at is not None:
            raise NoSuchAccount(name=name)
        return account_store.to_user(row)


def verify_password(
    services: Services, name: str, password: str, *, purpose: str = "sign_in"
) -> VerifiedUser:
    """Return the user with this name and password. Raises WrongCredentials, in the same time for a
    wrong name, a wrong password and a disabled account; PasswordSignInOff, for any password, if
    sign-in is only possible through the provider. `purpose` goes into the audit log on failure."""
    name, settings = normalise_name(name), services.settings.oidc
    require_local_sign_in(services, name)
    with services.database.begin() as session:
        row = account_store.find_user_by_name(session, name)
    # PostgreSQL's lower() takes "admİn" for "admin", which the limits would count as another name.
    if row is not None and fold_name(row.name) != fold_name(name):
        row = None
    # Takes equally long for accounts without a password, so that the time does not reveal how a
    # user signs in.
    password_hash = row.password_hash if row else None
    is_match = _matches(password_hash or _DUMMY_HASH, password)
    if not is_match or row is None or row.disabled_at is not None:
        record_failed_sign_in(services, name, row, purpose=purpose)
        raise WrongCredentials
    if settings.only and not row.is_admin:
        raise PasswordSignInOff
    return to_verified_user(row)


def to_verified_user(row: UserRow) -> VerifiedUser:
    """Return a user who has just proved who they are, by a method that the caller has checked."""
    return VerifiedUser(id=row.id, name=row.name, credentials=credentials_digest(row))


def credentials_digest(row: UserRow) -> str:
    """Return a digest that changes with the password."""
    return hashlib.sha256((row.password_hash or "").encode()).hexdigest()


def record_failed_sign_in(
    services: Services, name: str, user: UserRow | None, *, purpose: str = "sign_in"
) -> None:
    """Record a failed sign-in in the audit log and the log, with a digest of the typed name. `user`
    is the account of that name, if any."""
    digest = audit.digest_name(services.secret_key, name)
    with services.database.begin() as session:
        audit.record(
            session, AuditEvent.SIGN_IN_FAILED, None, user, name_digest=digest, purpose=purpose
        )
    address = audit.current_origin().address
    log.warning("sign_in_failed", name_digest=digest, address=address, purpose=purpose)


def require_local_sign_in(services: Services, name: str) -> None:
    """Refuse passwords and passkeys if sign-in is only possible through the provider. Raises
    PasswordSignInOff."""
    if not may_use_password(services.settings.oidc, name):
        raise PasswordSignInOff


def may_use_password(settings: OidcSettings, name: str) -> bool:
    """Return whether this account may use a password. If sign-in is only possible through the
    provider, only the break-glass administrator may."""
    return not settings.only or fold_name(name) == fold_name(settings.break_glass)


def has_password(services: Services, user: User) -> bool:
    """Return whether a user can prove who they are with a password."""
    with services.database.read() as session:
        row = account_store.get_user(session, user.id)
        is_set = row is not None and bool(row.password_hash)
    return is_set and may_use_password(services.settings.oidc, user.name)


def _matches(password_hash: str, password: str) -> bool:
    if len(password) > passwords.MAX_CHARACTERS:
        return False
    try:
        with _hashing:
            return _hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def change_password(services: Services, user: User, *, current: str, new: str) -> VerifiedUser:
    """Set a new password and end all sessions and tokens. Return the user, who may start a new
    session. Raises WrongCredentials."""
    checked = verify_password(services, user.name, current, purpose="password_change")
    password_hash = hash_new_password(services, new, name=user.name)
    with services.database.begin() as session:
        row = existing(account_store.lock_user(session, checked.id))
        row.password_hash = password_hash
        session.flush()
        token_store.revoke_all(session, checked.id)
        audit.record(session, AuditEvent.PASSWORD_CHANGED, user, row)
        return to_verified_user(row)


def set_language(services: Services, user: User, language: str | None) -> None:
    """Save the interface's language; None follows the browser. Raises InvalidInput."""
    if language is not None and language not in _LANGUAGES:
        raise InvalidInput("the language must be zh-CN or en")
    with services.database.begin() as session:
        row = account_store.get_user(session, user.id)
        if row is not None:
            row.language = language


def set_preferred_domain(services: Services, user: User, domain: str | None) -> None:
    """Save the domain that the user's searches prefer; None for no preference. Raises
    InvalidInput."""
    domain = check_domain(domain)
    with services.database.begin() as session:
        row = account_store.get_user(session, user.id)
        if row is not None:
            row.preferred_domain = domain


def require_open_registration(services: Services) -> None:
    """Raise NotFound unless registration is open; PasswordSignInOff if a new account could not sign
    in."""
    if services.settings.registration != "open":
        raise NotFound
    if services.settings.oidc.only:
        raise PasswordSignInOff


def register(services: Services, *, name: str, password: str) -> User:
    """Create an account without an invitation. Raises what `require_open_registration` and
    `create_user` raise."""
    require_open_registration(services)
    return _create(services, name=name, password=password, is_admin=False, by="registration")


def list_accounts(services: Services, user: User) -> tuple[AccountSummary, ...]:
    """List all accounts by name. Administrators only."""
    require_admin(user)
    with services.database.begin() as session:
        return tuple(_summary(row) for row in account_store.list_users(session))


def get_summary(services: Services, user: User, user_id: UUID) -> AccountSummary:
    """Return one account. Users read their own, administrators all. Raises NotFound."""
    if user_id != user.id:
        require_admin(user)
    with services.database.begin() as session:
        row = existing(account_store.get_user(session, user_id))
        return _summary(row)


def _summary(row: UserRow) -> AccountSummary:
    return AccountSummary(
        id=row.id,
        name=row.name,
        is_admin=row.is_admin,
        created_at=row.created_at,
        disabled_at=row.disabled_at,
        last_seen_at=row.last_seen_at,
    )


def set_disabled(services: Services, user: User, user_id: UUID, *, disabled: bool) -> None:
    """Disable or enable an account. Administrators only. Raises NotFound, and Conflict for the last
    administrator."""
    require_admin(user)
    with services.database.begin() as session:
        row = existing(account_store.get_user(session, user_id))
        disable(session, row, user, disabled=disabled)


def disable(session: Session, row: UserRow, actor: User, *, disabled: bool) -> None:
    """Disable an account, which ends its tokens, or enable it. Raises Conflict."""
    if disabled:
        refuse_last_admin(session, row)
        token_store.revoke_all(session, row.id)
    row.disabled_at = datetime.now(UTC) if disabled else None
    event = AuditEvent.USER_DISABLED if disabled else AuditEvent.USER_ENABLED
    audit.record(session, event, actor, row)


def refuse_last_admin(session: Session, row: UserRow) -> None:
    """Raise Conflict for the last administrator who can sign in. Concurrent requests for the last
    two are serialised by a lock."""
    is_active_admin = row.is_admin and row.disabled_at is None
    if is_active_admin and len(account_store.lock_active_admins(session)) <= 1:
        raise Conflict("this is the last administrator")
