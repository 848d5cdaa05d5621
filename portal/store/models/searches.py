"""Searches that users have saved."""

from __future__ import annotations

from typing import Any

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped

from portal.store.models.base import Base, CreatedAt, UserRef, UuidKey


class SavedSearchRow(Base):
    __tablename__ = "saved_searches"

    id: Mapped[UuidKey]
    user_id: Mapped[UserRef]
    name: Mapped[str]
    # The arguments in the URL of the search page: names and values.
    arguments: Mapped[dict[str, Any]]
    created_at: Mapped[CreatedAt]

    __table_args__ = (UniqueConstraint("user_id", "name"),)
