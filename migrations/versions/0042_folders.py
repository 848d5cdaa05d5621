"""Add folders of documents, and indexes for sorted lists."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0040"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "folders",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("parent_id", sa.Uuid()),
        sa.Column("owner_id", sa.Uuid()),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("visibility", sa.Text(), server_default=sa.text("'shared'"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "visibility IN ('shared', 'private')", name=op.f("ck_folders_visibility_known")
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["folders.id"], name=op.f("fk_folders_parent_id_folders")
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["users.id"], name=op.f("fk_folders_owner_id_users"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_folders")),
    )
    op.create_index("ix_folders_parent_id", "folders", ["parent_id"])
    op.create_index("ix_folders_owner_id", "folders", ["owner_id"])
    op.add_column("documents", sa.Column("folder_id", sa.Uuid()))
    op.create_foreign_key(
        op.f("fk_documents_folder_id_folders"),
        "documents",
        "folders",
        ["folder_id"],
        ["id"],
        ondelete="SET NULL",
    )
    op.create_index("ix_documents_folder_id", "documents", ["folder_id"])
    op.create_index(
        "ix_documents_collection_id_title", "documents", ["collection_id", sa.text("lower(title)")]
    )
    op.create_index("ix_documents_collection_id_size", "documents", ["collection_id", "size_bytes"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_index("ix_documents_collection_id_size", "documents")
    op.drop_index("ix_documents_collection_id_title", "documents")
    op.drop_column("documents", "folder_id")
    op.drop_table("folders")
