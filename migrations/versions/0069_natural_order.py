"""Sort titles and names as people count: "note-4" before "note-10".

Numbers are padded with zeros. An ICU collation would need ICU, which the embedded server is built
without. Padding takes up to 0.1 ms, so that keys are stored.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0069"
down_revision = "0068"

# Numbers with more digits are compared as text. Padded once more, a key stays as it is.
_DIGITS = 15
_NAMES = {"documents": "title", "folders": "name"}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute(
        f"""
        CREATE FUNCTION natural_order(name text) RETURNS text
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT regexp_replace(
                regexp_replace(lower(name), '([0-9]+)', '{"0" * _DIGITS}\\1', 'g'),
                '0+([0-9]{{{_DIGITS},}})', '\\1', 'g'
            )
        $$
        """
    )
    for table, name in _NAMES.items():
        ordered = sa.Computed(f"natural_order({name})", persisted=True)
        op.add_column(table, sa.Column(f"{name}_order", sa.Text(), ordered))
    op.create_index(
        "ix_documents_collection_id_title_order", "documents", ["collection_id", "title_order"]
    )
    op.drop_index("ix_documents_collection_id_title", "documents")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_index(
        "ix_documents_collection_id_title", "documents", ["collection_id", sa.text("lower(title)")]
    )
    op.drop_index("ix_documents_collection_id_title_order", "documents")
    for table, name in _NAMES.items():
        op.drop_column(table, f"{name}_order")
    op.execute("DROP FUNCTION natural_order(text)")
