"""Terms of a chunk's title, heading and caption carry weights of their own in its tsvector."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0028"

_PLAIN = "to_tsvector('simple'::regconfig, terms)"
_WEIGHTED = " || ".join(
    f"setweight(to_tsvector('simple'::regconfig, split_part(terms, chr(10), {part})), '{label}')"
    for part, label in enumerate("DCBA", 1)
)


def upgrade() -> None:
    _compute(_WEIGHTED)


def downgrade() -> None:
    _compute(_PLAIN)


def _compute(expression: str) -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    # With the column its index goes.
    op.execute("ALTER TABLE document_chunks DROP COLUMN terms_vector")
    op.execute(
        "ALTER TABLE document_chunks ADD COLUMN terms_vector tsvector "
        f"GENERATED ALWAYS AS ({expression}) STORED"
    )
    op.create_index(
        "ix_document_chunks_terms_vector",
        "document_chunks",
        ["terms_vector"],
        postgresql_using="gin",
    )
