"""Scopes of questions: documents, folders and tags, as a user sees them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from portal.domain.documents.selection import AskScope, NamedScope
from portal.domain.people import User
from portal.errors import NotFound
from portal.store.documents import document_lists, rows, switches
from portal.store.documents.folders import folder_visible_to
from portal.store.documents.selection import listed_for
from portal.store.models import DocumentRow, FolderRow


def require_visible_scope(session: Session, user: User, scope: AskScope) -> None:
    """Raise NotFound for a document or a folder that the user may not see."""
    named = name_scope(session, user, scope)
    if len(named.documents) < len(scope.documents) or len(named.folders) < len(scope.folders):
        raise NotFound


def name_scope(session: Session, user: User, scope: AskScope) -> NamedScope:
    """Return a scope with names, without documents and folders that the user may no longer see."""
    titles = _names(session, DocumentRow.id, DocumentRow.title, scope.documents, listed_for(user))
    names = _names(session, FolderRow.id, FolderRow.name, scope.folders, folder_visible_to(user))
    return NamedScope(
        documents=tuple((one, titles[one]) for one in scope.documents if one in titles),
        folders=tuple((one, names[one]) for one in scope.folders if one in names),
        tags=scope.tags,
    )


def _names(
    session: Session, id_: Any, name: Any, ids: Collection[UUID], is_visible: Any
) -> dict[UUID, str]:
    """Return the names of the visible ones by id, in one statement."""
    if not ids:
        return {}
    rows = session.execute(select(id_, name).where(id_.in_(ids), is_visible))
    return {row[0]: row[1] for row in rows}


def find_named(session: Session, user: User, words: str, *, limit: int) -> NamedScope:
    """Return documents, folders and tags that a user may see whose names contain the words, those
    with the words nearer to the beginning first."""
    words = words.lower()
    documents = rows.shown_to(user).where(DocumentRow.title.icontains(words, autoescape=True))
    folders = select(FolderRow.id, FolderRow.name).where(
        folder_visible_to(user), FolderRow.name.icontains(words, autoescape=True)
    )

    def order(name: Any) -> tuple[Any, Any]:
        return func.strpos(func.lower(name), words), func.lower(name)

    found = session.execute(
        documents.order_by(*order(DocumentRow.title), DocumentRow.id).limit(limit)
    )
    filed = session.execute(folders.order_by(*order(FolderRow.name), FolderRow.id).limit(limit))
    tags = [name for name, _ in document_lists.list_tags(session, user) if words in name.lower()]
    return NamedScope(
        documents=tuple(
            (summary.id, summary.title) for summary in (rows.to_summary(r) for r in found)
        ),
        folders=tuple((row.id, row.name) for row in filed),
        tags=tuple(sorted(tags, key=lambda name: name.lower().find(words))[:limit]),
    )


def switch_on(session: Session, conversation_id: UUID, scope: AskScope) -> None:
    """Switch the documents and folders of a scope on in a conversation."""
    for document_id in scope.documents:
        switches.set_switch(session, document_id, conversation_id=conversation_id, enabled=True)
    for folder_id in scope.folders:
        switches.set_folder_switch(
            session, folder_id, conversation_id=conversation_id, enabled=True
        )
