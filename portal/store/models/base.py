"""The declarative base: one naming rule for constraints, and the columns that recur."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from sqlalchemy import DateTime, ForeignKey, MetaData, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column


class Base(DeclarativeBase):
    """Names of constraints are explicit, so that a violation maps to one domain error."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012
        str: Text,
        datetime: DateTime(timezone=True),
        list[str]: ARRAY(Text),
        list[Any]: JSONB,
        dict[str, Any]: JSONB,
    }


UuidKey = Annotated[UUID, mapped_column(primary_key=True, server_default=text("gen_random_uuid()"))]
CreatedAt = Annotated[datetime, mapped_column(server_default=text("now()"))]
JsonObject = Annotated[dict[str, Any], mapped_column(JSONB, server_default=text("'{}'::jsonb"))]

# References to a row that this one belongs to, and is deleted with.
UserRef = Annotated[UUID, mapped_column(ForeignKey("users.id", ondelete="CASCADE"))]
DocumentRef = Annotated[UUID, mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))]
FolderRef = Annotated[UUID, mapped_column(ForeignKey("folders.id", ondelete="CASCADE"))]
ConversationRef = Annotated[UUID, mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))]
