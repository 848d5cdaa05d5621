"""What writes answers, why one was not useful, and questions to measure answers with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0029"

_REASONS = "feedback_reason IN ('wrong', 'incomplete', 'outdated', 'bad_source')"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("messages", sa.Column("feedback_reason", sa.Text()))
    op.create_check_constraint(op.f("ck_messages_feedback_reason_known"), "messages", _REASONS)
    op.create_index(
        "ix_messages_created_at",
        "messages",
        ["created_at"],
        postgresql_where=sa.text("role = 'assistant'"),
    )
    op.create_table(
        "chat_setup",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("endpoint", postgresql.JSONB()),
        sa.Column("writer", postgresql.JSONB()),
        sa.CheckConstraint("id = 1", name=op.f("ck_chat_setup_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_setup")),
    )
    op.create_table(
        "evaluation_questions",
        sa.Column("message_id", sa.Uuid(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column(
            "gold", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name=op.f("fk_evaluation_questions_message_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("message_id", name=op.f("pk_evaluation_questions")),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_table("evaluation_questions")
    op.drop_table("chat_setup")
    op.drop_index("ix_messages_created_at", "messages")
    op.drop_constraint(op.f("ck_messages_feedback_reason_known"), "messages", type_="check")
    op.drop_column("messages", "feedback_reason")
