"""Saved searches, read and written; each belongs to one user."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from portal.domain.search.saved import SavedSearch
from portal.errors import NameTaken
from portal.store.models import SavedSearchRow


def list_saved(session: Session, user_id: UUID) -> list[SavedSearch]:
    """Return a user's saved searches, by name."""
    statement = select(SavedSearchRow).where(SavedSearchRow.user_id == user_id)
    rows = session.scalars(statement.order_by(func.lower(SavedSearchRow.name), SavedSearchRow.id))
    return [_to_saved(row) for row in rows]


def find(session: Session, user_id: UUID, search_id: UUID) -> SavedSearch | None:
    own = select(SavedSearchRow).filter_by(id=search_id, user_id=user_id)
    row = session.scalar(own)
    return _to_saved(row) if row else None


def add(session: Session, user_id: UUID, name: str, arguments: Mapping[str, str]) -> SavedSearch:
    """Add a saved search. Raises NameTaken."""
    row = SavedSearchRow(user_id=user_id, name=name, arguments=dict(arguments))
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise NameTaken(name=name) from error
    session.refresh(row)
    return _to_saved(row)


def rename(session: Session, user_id: UUID, search_id: UUID, name: str) -> None:
    """Rename a saved search. Raises NameTaken."""
    own = update(SavedSearchRow).filter_by(id=search_id, user_id=user_id)
    try:
        with session.begin_nested():
            session.execute(own.values(name=name))
    except IntegrityError as error:
        raise NameTaken(name=name) from error


def remove(session: Session, user_id: UUID, search_id: UUID) -> None:
    session.execute(delete(SavedSearchRow).filter_by(id=search_id, user_id=user_id))


def _to_saved(row: SavedSearchRow) -> SavedSearch:
    return SavedSearch(row.id, row.name, row.arguments, row.created_at)
