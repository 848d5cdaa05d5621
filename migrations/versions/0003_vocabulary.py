"""The corpus vocabulary for spelling, folded titles."""

from __future__ import annotations

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
