"""Keep a row for each sign-in, and the devices that a user has signed in with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    now = sa.text("now()")
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "sessions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("methods", ARRAY(sa.Text()), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("user_agent", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", moment, server_default=now, nullable=False),
        sa.Column("authenticated_at", moment, server_default=now, nullable=False),
        sa.Column("last_used_at", moment, server_default=now, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.Column("ended_at", moment, nullable=True),
        sa.CheckConstraint(
            "kind IN ('browser', 'api', 'command_line')", name=op.f("ck_sessions_kind_known")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"])
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"])
    op.create_table(
        "known_devices",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("device_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", moment, server_default=now, nullable=False),
        sa.Column("last_used_at", moment, server_default=now, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_known_devices_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "device_sha256", name=op.f("pk_known_devices")),
    )
    op.create_index(op.f("ix_known_devices_last_used_at"), "known_devices", ["last_used_at"])
    # Whoever is signed in stays so. Only API clients have refresh tokens.
    op.execute(
        """
        INSERT INTO sessions (id, user_id, kind, methods, created_at, authenticated_at,
                              last_used_at, expires_at)
        SELECT family_id, user_id,
               CASE WHEN bool_or(kind = 'refresh') THEN 'api' ELSE 'browser' END,
               '{password}', min(created_at), min(created_at),
               coalesce(max(last_used_at), max(created_at)), max(expires_at)
        FROM tokens
        WHERE kind IN ('access', 'refresh')
        GROUP BY family_id, user_id
        HAVING bool_or(revoked_at IS NULL) AND max(expires_at) > now()
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_table("known_devices")
    op.drop_table("sessions")
