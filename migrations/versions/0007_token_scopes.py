"""What a token may do, and whom an outside issuer means by a subject.

Tokens that are there already keep what they could do: their scopes are all three.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

# The first migration's rule of naming put the table's name in twice.
_OLD_KIND = "ck_tokens_ck_tokens_kind_known"
_KINDS = "kind IN ('access', 'refresh', 'personal')"
_KINDS_WITH_OUTSIDE = "kind IN ('access', 'refresh', 'personal', 'outside')"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_check_constraint(
        op.f("ck_tokens_scopes_known"), "tokens", "scopes <@ '{read,write,admin}'::text[]"
    )
    op.drop_constraint(op.f(_OLD_KIND), "tokens", type_="check")
    op.create_check_constraint(op.f("ck_tokens_kind_known"), "tokens", _KINDS_WITH_OUTSIDE)
    op.alter_column("users", "password_hash", nullable=True)
    op.create_table(
        "outside_identities",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_outside_identities_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("issuer", "subject", name="pk_outside_identities"),
    )
    op.create_index("ix_outside_identities_user_id", "outside_identities", ["user_id"])


def downgrade() -> None:
    op.drop_index("ix_outside_identities_user_id", table_name="outside_identities")
    op.drop_table("outside_identities")
    # No password opens these accounts: nothing hashes to an empty text.
    op.execute("UPDATE users SET password_hash = '' WHERE password_hash IS NULL")
    op.alter_column("users", "password_hash", nullable=False)
    op.execute("DELETE FROM tokens WHERE kind = 'outside'")
    # Older code does not look at scopes: what may only read here could write there.
    op.execute(
        "UPDATE tokens SET revoked_at = now() "
        "WHERE revoked_at IS NULL AND NOT scopes @> '{read,write,admin}'::text[]"
    )
    op.drop_constraint(op.f("ck_tokens_kind_known"), "tokens", type_="check")
    op.create_check_constraint(op.f(_OLD_KIND), "tokens", _KINDS)
    op.drop_constraint(op.f("ck_tokens_scopes_known"), "tokens", type_="check")
