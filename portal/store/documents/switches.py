"""Document switches of users and conversations, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.domain.documents import MediaType
from portal.domain.documents.selection import (
    AskScope,
    DocumentSwitch,
    EnabledCounts,
    FolderState,
    FolderSwitch,
    SelectionPage,
)
from portal.domain.people import User
from portal.store.cursors import make_text_cursor, read_text_cursor
from portal.store.documents.folders import MAX_LISTED
from portal.store.documents.selection import (
    ENABLED,
    IN_SCOPE,
    SELECTION_JOINS,
    VISIBLE_FOLDER,
    VISIBLE_WHERE,
    scope_conditions,
    selection_binds,
)
from portal.store.models import (
    ConversationDocumentOverrideRow,
    FolderStateRow,
    FolderSwitchRow,
    UserDocumentDefaultRow,
)

_SEEN = f"""
    FROM documents d {SELECTION_JOINS}
    WHERE d.collection_id = (SELECT id FROM collections WHERE name = 'portal') AND {VISIBLE_WHERE}
"""
# Ends in the id, since titles are not unique.
_ORDER = "d.title_order, d.id"
_FOLDERS = ", ".join(
    f"""{name}.enabled AS {name}, {name}.source_id AS {name}_id, (
        SELECT named.name FROM folders named
        WHERE named.id = {name}.source_id AND {VISIBLE_FOLDER.format("named")}
    ) AS {name}_name"""
    for name in ("folder_default", "folder_override")
)
# Documents in a folder that the user may not see are at the top for that user.
_AT_THE_TOP = f"""AND (d.folder_id IS NULL OR d.folder_id = ANY(ARRAY(
    SELECT f.id FROM folders f WHERE {VISIBLE_FOLDER.format("f")} IS NOT TRUE
)))"""
_COLUMNS = f"""
    d.id, d.title, d.media_type, user_default.enabled AS mine, override.enabled AS here, {_FOLDERS},
    {IN_SCOPE} AS in_scope
"""
_SWITCHES = f"SELECT {_COLUMNS} {_SEEN}"
_SOME = text(f"{_SWITCHES} AND d.id = ANY(:ids)")
# Documents that could not be read are never searched.
_READABLE = "AND (d.status <> 'failed' OR d.current_job_id IS NOT NULL)"
# The order of ids is that of their hexadecimal text.
_HASH = """
    encode(sha256(convert_to(COALESCE(
        string_agg(CAST(d.id AS text), E'\\n' ORDER BY d.id) FILTER (WHERE {enabled}),
        ''), 'UTF8')), 'hex')
"""


def list_switches(
    session: Session,
    user: User,
    conversation_id: UUID | None,
    *,
    contains: str,
    cursor: str | None,
    limit: int,
    in_panel: bool = False,
    folder_id: UUID | None = None,
    scope: AskScope | None = None,
) -> SelectionPage:
    """Return documents visible to the user with their switches, by title.

    Outside a conversation only the user's own switches count. `in_panel` leaves out unreadable
    documents and, without `contains`, those outside of `folder_id`, where None is the top. Only
    documents in the scope are listed. Raises MalformedRequest on a bad cursor.
    """
    binds = selection_binds(user, conversation_id) | {"limit": limit + 1, "folder_id": folder_id}
    enabled_count, total_count = count_enabled(session, user, conversation_id, is_readable=in_panel)
    if contains:
        binds["contains"] = contains
    if cursor:
        binds["after_title"], binds["after_id"] = read_text_cursor(cursor)
    conditions = scope_conditions(scope, binds) + ([_READABLE] if in_panel else [])
    if contains:
        conditions.append("AND strpos(lower(d.title), lower(:contains)) > 0")
    elif in_panel:
        conditions.append("AND d.folder_id = :folder_id" if folder_id else _AT_THE_TOP)
    if cursor:
        conditions.append(f"AND ({_ORDER}) > (natural_order(:after_title), :after_id)")
    statement = f"{_SWITCHES} {' '.join(conditions)} ORDER BY {_ORDER} LIMIT :limit"
    rows = session.execute(text(statement), binds).all()
    more = len(rows) > limit
    last = rows[limit - 1] if more else None
    return SelectionPage(
        items=tuple(_to_switch(row) for row in rows[:limit]),
        enabled_count=enabled_count,
        total_count=total_count,
        next_cursor=make_text_cursor(last.title, last.id) if last is not None else None,
    )


def _to_switch(row: Any) -> DocumentSwitch:
    return DocumentSwitch(
        document_id=row.id,
        title=row.title,
        media_type=MediaType(row.media_type),
        user_default=row.mine,
        override=row.here,
        in_scope=row.in_scope,
        folder_default=_to_state(
            row.folder_default_id, row.folder_default_name, row.folder_default
        ),
        folder_override=_to_state(
            row.folder_override_id, row.folder_override_name, row.folder_override
        ),
    )


def _to_state(folder_id: UUID | None, name: str | None, enabled: bool | None) -> FolderState | None:
    if folder_id is None or enabled is None:
        return None
    return FolderState(folder_id, name, enabled)


def find_switch(
    session: Session, user: User, conversation_id: UUID | None, document_id: UUID
) -> DocumentSwitch | None:
    """Return one document's switches, None if the user may not see it."""
    return find_switches(session, user, [document_id], conversation_id=conversation_id).get(
        document_id
    )


def find_switches(
    session: Session,
    user: User,
    document_ids: Sequence[UUID],
    *,
    conversation_id: UUID | None = None,
) -> dict[UUID, DocumentSwitch]:
    """Return the switches of these documents, without those hidden from the user."""
    binds = selection_binds(user, conversation_id) | {"ids": list(document_ids)}
    return {row.id: _to_switch(row) for row in session.execute(_SOME, binds)}


def count_enabled(
    session: Session,
    user: User,
    conversation_id: UUID | None,
    *,
    is_readable: bool = False,
    scope: AskScope | None = None,
) -> tuple[int, int]:
    """Count the enabled documents in the scope, and all that the user may see. `is_readable` leaves
    out those that could not be read."""
    enabled, binds = _enabled_in(user, conversation_id, scope)
    statement = f"SELECT count(*) FILTER (WHERE {enabled}), count(*) {_SEEN}"
    row = session.execute(text(f"{statement} {_READABLE if is_readable else ''}"), binds).one()
    return row[0], row[1]


def has_enabled(
    session: Session, user: User, conversation_id: UUID | None, scope: AskScope | None = None
) -> bool:
    """Return whether any document in the scope is enabled."""
    enabled, binds = _enabled_in(user, conversation_id, scope)
    return bool(session.scalar(text(f"SELECT EXISTS (SELECT {_SEEN} AND {enabled})"), binds))


def _enabled_in(
    user: User, conversation_id: UUID | None, scope: AskScope | None
) -> tuple[str, dict[str, Any]]:
    """Return the condition that a document is enabled and in the scope, with its binds."""
    binds = selection_binds(user, conversation_id)
    return " ".join([ENABLED, *scope_conditions(scope, binds)]), binds


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The documents enabled at one moment. `selection_hash` is SHA-256, in hexadecimal, over the
    ids of the enabled documents, sorted and joined by line feeds. The counts leave out documents
    that could not be read."""

    enabled_count: int
    document_count: int
    selection_hash: str


def snapshot(
    session: Session, user: User, conversation_id: UUID | None, scope: AskScope | None = None
) -> Snapshot:
    """Return the documents enabled for a user in a conversation and a scope, right now."""
    enabled, binds = _enabled_in(user, conversation_id, scope)
    columns = f"""
        count(*) FILTER (WHERE {enabled} {_READABLE}), count(*) FILTER (WHERE true {_READABLE}),
        {_HASH.format(enabled=enabled)}
    """
    return Snapshot(*session.execute(text(f"SELECT {columns} {_SEEN}"), binds).one())


# --- folders --------------------------------------------------------------------------------------

_FOLDER_SWITCHES = f"""
    SELECT d.id, d.name, {_FOLDERS}, (
        SELECT CASE WHEN scope IS NOT NULL THEN FALSE END FROM conversations
        WHERE id = :conversation_id
    ) AS in_scope, EXISTS (
        SELECT FROM folders below WHERE below.parent_id = d.id AND {VISIBLE_FOLDER.format("below")}
    ) AS has_folders
    FROM folders d
    LEFT JOIN folder_states folder_default
        ON folder_default.folder_id = d.id AND folder_default.owner_id = :user_id
    LEFT JOIN folder_states folder_override
        ON folder_override.folder_id = d.id AND folder_override.owner_id = :conversation_id
    LEFT JOIN folders parent ON parent.id = d.parent_id AND {VISIBLE_FOLDER.format("parent")}
    WHERE {VISIBLE_FOLDER.format("d")}
"""
_FOLDERS_IN = "parent.id IS NOT DISTINCT FROM :parent_id"
_FOLDERS_NAMED = "strpos(lower(d.name), lower(:contains)) > 0"
_ONE_FOLDER = "d.id = :folder_id"
_FOLDER_ORDER = "ORDER BY d.name_order, d.id LIMIT :limit"
# Folders and the folders that the user sees below them; `top_id` is the one that a row is below.
_BELOW = f"""
    WITH RECURSIVE below AS (
        SELECT id, id AS top_id FROM folders WHERE id = ANY(:folder_ids)
        UNION ALL
        SELECT f.id, below.top_id FROM folders f JOIN below ON f.parent_id = below.id
        WHERE {VISIBLE_FOLDER.format("f")}
    )
"""
_COUNTS_BELOW = text(
    f"""
    {_BELOW}
    SELECT below.top_id, count(*) FILTER (WHERE inside.enabled), count(*)
    FROM below JOIN (SELECT d.folder_id, {ENABLED} AS enabled {_SEEN} {_READABLE}) inside
        ON inside.folder_id = below.id
    GROUP BY below.top_id
    """
)


def list_folder_switches(
    session: Session,
    user: User,
    conversation_id: UUID | None,
    *,
    parent_id: UUID | None = None,
    contains: str = "",
    with_counts: bool = False,
) -> tuple[FolderSwitch, ...]:
    """Return the children of a folder, None for the top, by name; or, with `contains`, all folders
    whose names contain it. `with_counts` counts the documents in each and below."""
    binds = selection_binds(user, conversation_id) | {"limit": MAX_LISTED}
    if contains:
        which, binds["contains"] = _FOLDERS_NAMED, contains
    else:
        which, binds["parent_id"] = _FOLDERS_IN, parent_id
    statement = text(f"{_FOLDER_SWITCHES} AND {which} {_FOLDER_ORDER}")
    found = tuple(_to_folder_switch(row) for row in session.execute(statement, binds))
    if not with_counts:
        return found
    binds["folder_ids"] = [folder.folder_id for folder in found]
    counts = {row[0]: EnabledCounts(*row[1:]) for row in session.execute(_COUNTS_BELOW, binds)}
    return tuple(replace(folder, counts=counts.get(folder.folder_id)) for folder in found)


def find_folder_switch(
    session: Session, user: User, conversation_id: UUID | None, folder_id: UUID
) -> FolderSwitch | None:
    """Return one folder's switches, None if the user may not see it."""
    binds = selection_binds(user, conversation_id) | {"folder_id": folder_id}
    row = session.execute(text(f"{_FOLDER_SWITCHES} AND {_ONE_FOLDER}"), binds).one_or_none()
    return _to_folder_switch(row) if row else None


def _to_folder_switch(row: Any) -> FolderSwitch:
    mine = _to_state(row.folder_default_id, row.folder_default_name, row.folder_default)
    here = _to_state(row.folder_override_id, row.folder_override_name, row.folder_override)
    own_mine = mine is not None and mine.folder_id == row.id
    own_here = here is not None and here.folder_id == row.id
    return FolderSwitch(
        folder_id=row.id,
        name=row.name,
        has_folders=row.has_folders,
        in_scope=row.in_scope,
        user_default=row.folder_default if own_mine else None,
        override=row.folder_override if own_here else None,
        folder_default=None if own_mine else mine,
        folder_override=None if own_here else here,
    )


def find_folders_off(session: Session, user: User) -> set[UUID]:
    """Return the folders that are off for a user, in any conversation without another switch."""
    off = select(FolderStateRow.folder_id).where(
        FolderStateRow.owner_id == user.id, FolderStateRow.enabled.is_(False)
    )
    return set(session.scalars(off))


# --- writing --------------------------------------------------------------------------------------

# Rows are locked in one order, so that two concurrent "all off" requests do not deadlock.
_SET_ALL = text(
    f"""
    INSERT INTO conversation_document_overrides (conversation_id, document_id, enabled)
    SELECT :conversation_id, d.id, :enabled {_SEEN} ORDER BY d.id
    ON CONFLICT (conversation_id, document_id)
    DO UPDATE SET enabled = excluded.enabled, updated_at = now()
    """
)

_CLEAR_BELOW = [
    text(f"{_BELOW} DELETE FROM {switches}")
    for switches in (
        """conversation_document_overrides
        WHERE conversation_id = :conversation_id AND document_id IN (
            SELECT d.id FROM documents d JOIN below ON below.id = d.folder_id
        )""",
        """folder_switches
        WHERE conversation_id = :conversation_id AND folder_id IN (SELECT id FROM below)""",
    )
]


def set_switch(
    session: Session,
    document_id: UUID,
    *,
    user_id: UUID | None = None,
    conversation_id: UUID | None = None,
    enabled: bool | None,
) -> None:
    """Set the switch of a document for a user or in a conversation; None removes it."""
    table: type[UserDocumentDefaultRow | ConversationDocumentOverrideRow] = UserDocumentDefaultRow
    key = {"user_id": user_id, "document_id": document_id}
    if conversation_id is not None:
        table = ConversationDocumentOverrideRow
        key = {"conversation_id": conversation_id, "document_id": document_id}
    if enabled is None:
        session.execute(delete(table).filter_by(**key))
        return
    changed = {"enabled": enabled, "updated_at": func.now()}
    row = insert(table).values(**key, enabled=enabled)
    session.execute(row.on_conflict_do_update(index_elements=list(key), set_=changed))


def set_folder_switch(
    session: Session,
    folder_id: UUID,
    *,
    user_id: UUID | None = None,
    conversation_id: UUID | None = None,
    enabled: bool | None,
) -> None:
    """Set the switch of a folder for a user or in a conversation; None removes it."""
    owner = {"user_id": user_id, "conversation_id": conversation_id}
    if enabled is None:
        owned = delete(FolderSwitchRow).filter_by(owner_id=user_id or conversation_id)
        session.execute(owned.filter_by(folder_id=folder_id))
        return
    row = insert(FolderSwitchRow).values(**owner, folder_id=folder_id, enabled=enabled)
    key = ["owner_id", "folder_id"]
    session.execute(row.on_conflict_do_update(index_elements=key, set_={"enabled": enabled}))


def clear_folder(session: Session, user: User, conversation_id: UUID, folder_id: UUID) -> None:
    """Remove a conversation's switches of a folder, and of everything that the user sees in it."""
    binds = selection_binds(user, conversation_id) | {"folder_ids": [folder_id]}
    for statement in _CLEAR_BELOW:
        session.execute(statement, binds)


def set_all_overrides(
    session: Session, user: User, conversation_id: UUID, *, enabled: bool | None
) -> None:
    """Set a conversation's switch of every document visible to the user; None removes all. Switches
    of folders are removed, so that they do not decide about documents added later."""
    session.execute(delete(FolderSwitchRow).filter_by(conversation_id=conversation_id))
    if enabled is None:
        session.execute(
            delete(ConversationDocumentOverrideRow).filter_by(conversation_id=conversation_id)
        )
    else:
        binds = selection_binds(user, conversation_id) | {"enabled": enabled}
        session.execute(_SET_ALL, binds)
