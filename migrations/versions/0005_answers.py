"""What answers need: the order of messages, support of sentences, what was asked or answered anew.

Messages that are there already keep their order: they are numbered by when they were written.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

_CHECKS = {
    "status_known": "status IN ('streaming', 'done', 'stopped', 'abstained', 'unavailable')",
    "feedback_known": "feedback IN ('useful', 'not_useful')",
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("messages", sa.Column("position", sa.BigInteger(), nullable=True))
    op.execute(
        """
        UPDATE messages SET position = numbered.position
        FROM (SELECT id, row_number() OVER (ORDER BY created_at, id) AS position
              FROM messages) numbered
        WHERE numbered.id = messages.id
        """
    )
    op.alter_column("messages", "position", nullable=False)
    op.execute("ALTER TABLE messages ALTER COLUMN position ADD GENERATED ALWAYS AS IDENTITY")
    op.execute(
        """
        SELECT setval(pg_get_serial_sequence('messages', 'position'),
                      GREATEST((SELECT max(position) FROM messages), 1),
                      EXISTS (SELECT FROM messages))
        """
    )
    for column in (
        sa.Column("support", postgresql.JSONB(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("superseded_at", sa.DateTime(timezone=True), nullable=True),
    ):
        op.add_column("messages", column)
    for name, rule in _CHECKS.items():
        op.create_check_constraint(op.f(f"ck_messages_{name}"), "messages", rule)
    op.drop_index("ix_messages_conversation_id_created_at", table_name="messages")
    op.create_index(
        "ix_messages_conversation_id_position", "messages", ["conversation_id", "position"]
    )
    # A purge takes revisions away from under their citations.
    op.create_index("ix_citations_revision_id", "citations", ["revision_id"])


def downgrade() -> None:
    op.drop_index("ix_citations_revision_id", table_name="citations")
    op.drop_index("ix_messages_conversation_id_position", table_name="messages")
    op.create_index(
        "ix_messages_conversation_id_created_at",
        "messages",
        ["conversation_id", "created_at", "id"],
    )
    # Older code knows nothing of what was replaced, and would show both.
    op.execute("DELETE FROM messages WHERE superseded_at IS NOT NULL")
    for name in _CHECKS:
        op.drop_constraint(op.f(f"ck_messages_{name}"), "messages", type_="check")
    for column in ("superseded_at", "updated_at", "support", "position"):
        op.drop_column("messages", column)
