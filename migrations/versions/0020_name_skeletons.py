"""Keep what names that look alike share, once for all users.

Of users whose names looked alike before, the one who came first has it. The others go on without:
they keep their names, and no one else gets one that looks like it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from portal.text.look_alikes import skeleton

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("users", sa.Column("name_skeleton", sa.Text(), nullable=True))
    users = sa.table("users", sa.column("id"), sa.column("name"), sa.column("name_skeleton"))
    connection = op.get_bind()
    seen: set[str] = set()
    for user_id, name in connection.execute(
        sa.text("SELECT id, name FROM users ORDER BY created_at, id")
    ).all():
        shared = skeleton(name)
        if shared in seen:
            continue
        seen.add(shared)
        connection.execute(
            sa.update(users).where(users.c.id == user_id).values(name_skeleton=shared)
        )
    op.create_unique_constraint(op.f("uq_users_name_skeleton"), "users", ["name_skeleton"])


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.drop_constraint(op.f("uq_users_name_skeleton"), "users")
    op.drop_column("users", "name_skeleton")
