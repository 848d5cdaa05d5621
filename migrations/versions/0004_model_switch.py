"""What switching embedding models needs: how to load a model again, how its index is built, how
far its building is, and how it compares.

What the columns say of models that are there already is true of them: all were built as HNSW of
half precision.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

_TABLE = "embedding_models"
_STATUS = "ck_embedding_models_status_known"
# The first migration's name of it went through the naming rule twice.
_OLD_STATUS = "ck_embedding_models_ck_embedding_models_status_known"


def upgrade() -> None:
    for column in (
        sa.Column("options", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("index_method", sa.Text(), server_default=sa.text("'hnsw'"), nullable=False),
        sa.Column("vector_type", sa.Text(), server_default=sa.text("'halfvec'"), nullable=False),
        sa.Column("is_complete", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("done_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("total_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error", postgresql.JSONB(), nullable=True),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("comparison", postgresql.JSONB(), nullable=True),
    ):
        op.add_column(_TABLE, column)
    op.drop_constraint(op.f(_OLD_STATUS), _TABLE, type_="check")
    for name, rule in {
        "status_known": "status IN ('building', 'ready', 'active', 'retired')",
        "index_method_known": "index_method IN ('hnsw', 'ivfflat')",
        "vector_type_known": "vector_type IN ('halfvec', 'vector', 'bit')",
        "stage_known": "stage IN ('queued', 'embedding', 'indexing', 'comparing', 'failed')",
    }.items():
        op.create_check_constraint(op.f(f"ck_embedding_models_{name}"), _TABLE, rule)


def downgrade() -> None:
    op.drop_constraint(op.f(_STATUS), _TABLE, type_="check")
    # What was built and waits has no name for it there; it is still "building" to older code.
    op.execute("UPDATE embedding_models SET status = 'building' WHERE status = 'ready'")
    op.create_check_constraint(
        op.f(_OLD_STATUS), _TABLE, "status IN ('building', 'active', 'retired')"
    )
    for name in ("index_method_known", "vector_type_known", "stage_known"):
        op.drop_constraint(op.f(f"ck_embedding_models_{name}"), _TABLE, type_="check")
    for column in (
        "comparison", "noted_at", "error", "total_count", "done_count", "stage", "retired_at", "is_complete",
        "vector_type", "index_method", "options",
    ):  # fmt: skip
        op.drop_column(_TABLE, column)
