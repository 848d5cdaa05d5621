"""Add what sign-in through OpenID Connect keeps: sign-ins, and values that count once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "oidc_sign_ins",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid()),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("sid", sa.Text()),
        sa.Column("id_token", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_oidc_sign_ins_session_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_oidc_sign_ins_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oidc_sign_ins")),
        sa.UniqueConstraint("session_id", name=op.f("uq_oidc_sign_ins_session_id")),
    )
    op.create_index("ix_oidc_sign_ins_user_id", "oidc_sign_ins", ["user_id"])
    op.create_index("ix_oidc_sign_ins_issuer_subject", "oidc_sign_ins", ["issuer", "subject"])
    op.create_index("ix_oidc_sign_ins_issuer_sid", "oidc_sign_ins", ["issuer", "sid"])
    op.create_table(
        "oidc_used_values",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oidc_used_values")),
    )
    op.create_index("ix_oidc_used_values_expires_at", "oidc_used_values", ["expires_at"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_table("oidc_used_values")
    op.drop_table("oidc_sign_ins")
