"""Scopes of questions: documents, folders and tags, as a user sees them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from portal.domain.documents.selection import AskScope, NamedScope
from portal.domain.people import User
from portal.errors import NotFound
from portal.store.documents import document_lists, rows, selections
from portal.store.documents.folders import find_folder, folder_visible_to
from portal.store.models import DocumentRow, FolderRow


def require_visible_scope(session: Session, user: User, scope: AskScope) -> None:
    """Raise NotFound for a document or a folder that the user may not see."""
    found = rows.list_summaries(session, user, scope.documents)
    if len(found) < len(set(scope.documents)):
        raise NotFound
    if any(find_folder(session, user, folder) is None for folder in scope.folders):
        raise NotFound


def name_scope(session: Session, user: User, scope: AskScope) -> NamedScope:
    """Return the names in a scope, without those that the user may not see any more."""
    found = {
        summary.id: summary.title for summary in rows.list_summaries(session, user, scope.documents)
    }
    folders = (find_folder(session, user, folder) for folder in scope.folders)
    return NamedScope(
        documents=tuple(
            (document, found[document]) for document in scope.documents if document in found
        ),
        folders=tuple((folder.id, folder.name) for folder in folders if folder is not None),
        tags=scope.tags,
    )


def find_named(session: Session, user: User, words: str, *, limit: int) -> NamedScope:
    """Return documents, folders and tags that a user may see whose names contain the words: the
    nearer to the beginning, the earlier."""
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
        selections.set_switch(session, document_id, conversation_id=conversation_id, enabled=True)
    for folder_id in scope.folders:
        selections.set_folder_switch(
            session, folder_id, conversation_id=conversation_id, enabled=True
        )
