"""Versions of what each person sees, bumped by triggers."""

from __future__ import annotations

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
