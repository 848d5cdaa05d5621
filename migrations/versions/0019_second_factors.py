"""Second factors: authenticator apps, passkeys, recovery codes, and what limits guessing at them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"

_MOMENT = sa.DateTime(timezone=True)
_NOW = sa.text("now()")


def _user_id(table: str) -> tuple[sa.Column, sa.ForeignKeyConstraint]:
    return (
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=f"fk_{table}_user_id", ondelete="CASCADE"
        ),
    )


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "totp_secrets",
        *_user_id("totp_secrets"),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _MOMENT, server_default=_NOW, nullable=False),
        sa.Column("confirmed_at", _MOMENT),
        sa.Column("last_step", sa.BigInteger()),
        sa.Column("last_used_at", _MOMENT),
        sa.PrimaryKeyConstraint("user_id", name="pk_totp_secrets"),
    )
    op.create_table(
        "passkeys",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        *_user_id("passkeys"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("rp_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.LargeBinary(), nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column(
            "transports",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'::text[]"),
            nullable=False,
        ),
        sa.Column("created_at", _MOMENT, server_default=_NOW, nullable=False),
        sa.Column("last_used_at", _MOMENT),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 100", name=op.f("ck_passkeys_name_length")),
        sa.PrimaryKeyConstraint("id", name="pk_passkeys"),
        sa.UniqueConstraint("credential_id", name="uq_passkeys_credential_id"),
    )
    op.create_index("ix_passkeys_user_id", "passkeys", ["user_id"])
    op.create_table(
        "recovery_codes",
        *_user_id("recovery_codes"),
        sa.Column("code_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", _MOMENT, server_default=_NOW, nullable=False),
        sa.Column("used_at", _MOMENT),
        sa.PrimaryKeyConstraint("user_id", "code_sha256", name="pk_recovery_codes"),
    )
    op.create_table(
        "second_factor_failures",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        *_user_id("second_factor_failures"),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("sign_in_sha256", sa.LargeBinary()),
        sa.Column(
            "failed_at", _MOMENT, server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint(
            "method IN ('totp', 'recovery_code')",
            name=op.f("ck_second_factor_failures_method_known"),
        ),
        sa.PrimaryKeyConstraint("id", name="pk_second_factor_failures"),
    )
    op.create_index(
        "ix_second_factor_failures_recent",
        "second_factor_failures",
        ["user_id", "method", "failed_at"],
    )
    op.create_table(
        "spent_challenges",
        sa.Column("challenge_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("challenge_sha256", name="pk_spent_challenges"),
    )
    op.create_index("ix_spent_challenges_expires_at", "spent_challenges", ["expires_at"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    for table in (
        "spent_challenges",
        "second_factor_failures",
        "recovery_codes",
        "passkeys",
        "totp_secrets",
    ):
        op.drop_table(table)
