"""An index over vectors may have them shortened along a model's direction of language. Those that
stand are as they were; the worker makes the serving one anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_PLAIN = "index_axis ~ '^m[0-9]+_[0-9a-f]{12}$'"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.add_column("embedding_models", sa.Column("index_axis", sa.Text()))
    op.create_check_constraint(
        op.f("ck_embedding_models_index_axis_plain"), "embedding_models", _PLAIN
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    # Portals before this one order by plain vectors: an index over shortened ones would never serve
    # them. They make another where the partition has none.
    op.execute(
        """
        DO $$
        DECLARE found text;
        BEGIN
            FOR found IN
                SELECT format('DROP INDEX %s', i.indexrelid::regclass)
                FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
                WHERE c.relname LIKE 'chunk_embeddings_m%'
                  AND pg_get_indexdef(i.indexrelid) LIKE '%shortened_m%'
            LOOP EXECUTE found; END LOOP;
            FOR found IN
                SELECT format('DROP FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
                WHERE p.proname ~ '^(shortened|stretched)_m[0-9]+_[0-9a-f]{12}$'
                  AND p.pronamespace = to_regnamespace(CAST(current_schema() AS text))
            LOOP EXECUTE found; END LOOP;
        END $$
        """
    )
    op.drop_constraint(op.f("ck_embedding_models_index_axis_plain"), "embedding_models")
    op.drop_column("embedding_models", "index_axis")
