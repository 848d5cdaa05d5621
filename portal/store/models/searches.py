"""Searches that users have saved."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from portal.store.models.base import Base, CreatedAt, UuidKey


class SavedSearchRow(Base):
    __tablename__ = "saved_searches"

    id: Mapped[UuidKey]
    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(Text)
    # The address of the page of search: names and values.
    arguments: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]

    __table_args__ = (UniqueConstraint("user_id", "name"),)
