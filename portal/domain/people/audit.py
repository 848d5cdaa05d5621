"""Audit events: what happened, who did it, where the request came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class AuditEvent(StrEnum):
    """Everything that the audit log records. Stored by value: never reuse or rename one."""

    SIGN_IN = "sign_in"
    SIGN_IN_FAILED = "sign_in_failed"
    SIGN_OUT = "sign_out"
    SESSION_ENDED = "session_ended"
    NEW_DEVICE = "new_device"
    TOKEN_CREATED = "token_created"  # noqa: S105 - the name of an event
    TOKEN_REVOKED = "token_revoked"  # noqa: S105
    INVITATION_CREATED = "invitation_created"
    INVITATION_USED = "invitation_used"
    INVITATION_WITHDRAWN = "invitation_withdrawn"
    USER_CREATED = "user_created"
    USER_DISABLED = "user_disabled"
    USER_ENABLED = "user_enabled"
    USER_DELETED = "user_deleted"
    ROLE_CHANGED = "role_changed"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105
    PASSWORD_RESET = "password_reset"  # noqa: S105
    SECOND_FACTOR_ADDED = "second_factor_added"
    SECOND_FACTOR_REMOVED = "second_factor_removed"
    RECOVERY_CODE_USED = "recovery_code_used"
    OIDC_LINKED = "oidc_linked"
    OIDC_UNLINKED = "oidc_unlinked"
    VISIBILITY_CHANGED = "visibility_changed"
    GROUP_CREATED = "group_created"
    GROUP_CHANGED = "group_changed"
    GROUP_DELETED = "group_deleted"
    FOLDER_MEMBER_CHANGED = "folder_member_changed"
    FOLDER_SOURCE_CHANGED = "folder_source_changed"
    CONVERSATION_SHARED = "conversation_shared"
    CONVERSATION_UNSHARED = "conversation_unshared"
    PRIVATE_DOCUMENT_OPENED = "private_document_opened"
    PRIVATE_DOCUMENT_FOUND = "private_document_found"
    DOCUMENT_PURGED = "document_purged"
    UPLOAD_INFECTED = "upload_infected"
    SETTINGS_CHANGED = "settings_changed"
    MODEL_SWITCHED = "model_switched"
    MODEL_DROPPED = "model_dropped"
    BACKUP_TAKEN = "backup_taken"
    BACKUP_RESTORED = "backup_restored"
    BACKUP_REHEARSED = "backup_rehearsed"


class Source(StrEnum):
    """The kind of process that an event came from."""

    WEB = "web"
    COMMAND_LINE = "command_line"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of an event; a request also has an address, a user agent and an id."""

    source: Source
    address: str | None = None
    user_agent: str | None = None
    request_id: str | None = None


class SubjectKind(StrEnum):
    """The kind of object that an event is about."""

    USER = "user"
    SESSION = "session"
    TOKEN = "token"  # noqa: S105
    INVITATION = "invitation"
    DOCUMENT = "document"
    FOLDER = "folder"
    GROUP = "group"
    CONVERSATION = "conversation"
    SETTING = "setting"
    MODEL = "model"
    BACKUP = "backup"


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of an event, by its id and title at the time."""

    kind: SubjectKind
    id: str | UUID | int | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One row of the audit log. `event` is text: a newer portal may have written it."""

    id: UUID
    created_at: datetime
    event: str
    source: str
    actor_id: UUID | None = None
    actor_name: str | None = None
    name_digest: str | None = None
    address: str | None = None
    user_agent: str | None = None
    request_id: str | None = None
    subject_kind: str | None = None
    subject_id: str | None = None
    subject_title: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter of entries. `user` is the name of the actor, of the subject, or one that was tried
    at sign-in. `text` occurs in the name, the title, the address, the browser or the request's id.
    `since` is inclusive, `until` is not."""

    event: AuditEvent | None = None
    user: str | None = None
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
