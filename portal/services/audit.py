"""Record audit events, in the transaction of the change itself.

Every use case that changes who may do what calls `record` before it commits, so that an event is
in the log exactly when its change is in the database.
"""

from __future__ import annotations

import hmac
import unicodedata
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol
from uuid import UUID

from portal.domain.people.audit import AuditEvent, Origin, Source, Subject, SubjectKind
from portal.store.operations import audit_log
from portal.store.session import Session

__all__ = [
    "AuditEvent",
    "Subject",
    "SubjectKind",
    "digest_name",
    "record",
    "record_each",
    "record_own",
    "record_visibility",
    "set_origin",
]

_MAX_USER_AGENT_CHARACTERS = 300
_DIGEST_CHARACTERS = 32

_origin: ContextVar[Origin | None] = ContextVar("audit_origin", default=None)
_COMMAND_LINE = Origin(Source.COMMAND_LINE)


class Actor(Protocol):
    """A user, or a row of `users`."""

    @property
    def id(self) -> UUID: ...

    @property
    def name(self) -> str: ...


def set_origin(origin: Origin | None) -> None:
    """Attribute further work of this thread or task to `origin`; None means the command line."""
    if origin is not None and origin.user_agent:
        # Clients choose this text, and PostgreSQL stores no NUL.
        readable = "".join(
            character
            for character in origin.user_agent[:_MAX_USER_AGENT_CHARACTERS]
            if not unicodedata.category(character).startswith("C")
        )
        origin = Origin(origin.source, origin.address, readable, origin.request_id)
    _origin.set(origin)


def current_origin() -> Origin:
    """Return where the current work comes from."""
    return _origin.get() or _COMMAND_LINE


def record(
    session: Session,
    event: AuditEvent,
    actor: Actor | None = None,
    subject: Subject | Actor | None = None,
    /,
    *,
    name_digest: str | None = None,
    **details: Any,
) -> None:
    """Add an event to the audit log, in the caller's transaction.

    Without an `actor`, the event was caused by the operator on the command line, or by a client on
    the web that is not signed in. A `subject` may be an account. `details` are a few plain JSON
    values; never secrets, questions or text of documents.
    """
    if subject is not None and not isinstance(subject, Subject):
        subject = Subject(SubjectKind.USER, subject.id, subject.name)
    audit_log.add_entries(
        session,
        event,
        [(subject, details)],
        origin=current_origin(),
        actor_id=actor.id if actor else None,
        actor_name=actor.name if actor else None,
        name_digest=name_digest,
    )


def record_each(
    session: Session,
    event: AuditEvent,
    actor: Actor,
    entries: Sequence[tuple[Subject, Mapping[str, Any]]],
) -> None:
    """Add an event for each subject, with its details, to the audit log."""
    if entries:
        who = {"actor_id": actor.id, "actor_name": actor.name}
        audit_log.add_entries(session, event, entries, origin=current_origin(), **who)


def record_visibility(
    session: Session, user: Actor, subject: Subject, before: str, after: str
) -> None:
    """Add the event that a user changed who may see a document or a folder."""
    record(session, AuditEvent.VISIBILITY_CHANGED, user, subject, before=before, after=after)


def record_own(session: Session, event: AuditEvent, user: Actor, /, **details: Any) -> None:
    """Add an event that a user caused on their own account."""
    record(session, event, user, user, **details)


def digest_name(secret_key: str, name: str) -> str:
    """Return a keyed digest of a name that was typed to sign in. The log can be searched for a
    name, but what was typed by mistake, such as a password in the wrong field, cannot be read from
    it."""
    folded = unicodedata.normalize("NFC", name).strip().lower()
    key = hmac.digest(secret_key.encode(), b"names in the audit log", "sha256")
    digest = hmac.new(key, folded.encode("utf-8", "surrogatepass"), "sha256")
    return digest.hexdigest()[:_DIGEST_CHARACTERS]
