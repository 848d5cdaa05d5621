"""Note which documents a version of a selection changed, so that sets are brought up to date."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0052"

_THIS_TRANSACTION = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
# More changes of a transaction are noted as one of unknown documents.
_MAX_NOTED = 64
_MAX_KEPT = 256

# Of each owner the newest notes are kept.
_FORGET = f"""
CREATE FUNCTION trim_selection_changes(owner uuid) RETURNS void LANGUAGE sql AS $$
    DELETE FROM selection_changes WHERE owner_id = owner AND position < (
        SELECT position FROM selection_changes WHERE owner_id = owner
        ORDER BY position DESC OFFSET {_MAX_KEPT} LIMIT 1
    )
$$;
CREATE FUNCTION forget_selection_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM selection_changes WHERE owner_id = OLD.id;
    RETURN NULL;
END $$;
"""
_OWNERS = ("users", "conversations", "collections")

_SELECTIONS = {
    "user_document_defaults": ("users", "user_id"),
    "conversation_document_overrides": ("conversations", "conversation_id"),
}
_EVENTS = {"INSERT": ["NEW"], "DELETE": ["OLD"], "UPDATE": ["OLD", "NEW"]}


def _follow_switches(table: str, event: str, *, notes: bool) -> str:
    """Return the function that follows switches of documents that were written."""
    owner, key = _SELECTIONS[table]
    changed = " UNION ".join(
        f"SELECT {key} AS owner_id, document_id FROM changed_{image.lower()}"
        for image in _EVENTS[event]
    )
    # The owner's row is locked first, so that notes are in the order in which versions become
    # visible.
    note = f"""
    WITH changed AS ({changed}), counted AS (
        SELECT owner_id, count(*) <= {_MAX_NOTED} AS is_few FROM changed GROUP BY owner_id
    ), locked AS MATERIALIZED (
        SELECT o.id, o.selection_version, counted.is_few
        FROM {owner} o JOIN counted ON counted.owner_id = o.id FOR NO KEY UPDATE OF o
    )
    INSERT INTO selection_changes (owner_id, version_before, version, document_id, chunk_count)
    SELECT l.id, l.selection_version, {_THIS_TRANSACTION}, c.document_id,
           COALESCE(d.chunk_count, 0)
    FROM locked l JOIN changed c ON c.owner_id = l.id AND l.is_few
    LEFT JOIN documents d ON d.id = c.document_id
    UNION ALL
    SELECT l.id, l.selection_version, {_THIS_TRANSACTION}, NULL, 0
    FROM locked l WHERE NOT l.is_few;
    PERFORM trim_selection_changes(owner_id) FROM ({changed}) changed GROUP BY owner_id;
    """
    return f"""
CREATE OR REPLACE FUNCTION bump_{table}_{event.lower()}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {note if notes else ""}
    UPDATE {owner} SET selection_version = {_THIS_TRANSACTION}
    WHERE id IN (SELECT owner_id FROM ({changed}) changed)
      AND selection_version <> {_THIS_TRANSACTION};
    RETURN NULL;
END $$;
"""


def _follow_documents(*, notes: bool) -> str:
    """Return the function that follows documents. Only searches of the portal read its notes."""
    note = f"""
    noted := COALESCE(NULLIF(current_setting('portal.noted_documents', true), ''), '0');
    IF noted <= {_MAX_NOTED} THEN
        INSERT INTO selection_changes (owner_id, version_before, version, document_id, chunk_count)
        SELECT c.id, c.documents_version, {_THIS_TRANSACTION},
               CASE WHEN noted < {_MAX_NOTED} THEN
                   CASE WHEN TG_OP = 'DELETE' THEN OLD.id ELSE NEW.id END END,
               greatest(CASE WHEN TG_OP <> 'INSERT' THEN OLD.chunk_count END,
                        CASE WHEN TG_OP <> 'DELETE' THEN NEW.chunk_count END, 0)
        FROM (
            SELECT id, documents_version FROM collections WHERE name = 'portal' AND id IN (
                CASE WHEN TG_OP <> 'INSERT' THEN OLD.collection_id END,
                CASE WHEN TG_OP <> 'DELETE' THEN NEW.collection_id END
            ) FOR NO KEY UPDATE
        ) c;
        IF FOUND THEN
            PERFORM set_config('portal.noted_documents', CAST(noted + 1 AS text), true);
            IF noted = 0 THEN
                PERFORM trim_selection_changes(id) FROM collections WHERE name = 'portal';
            END IF;
        END IF;
    END IF;
    """
    return f"""
CREATE OR REPLACE FUNCTION bump_documents_version() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    noted int;
BEGIN
    {note if notes else ""}
    UPDATE collections SET documents_version = {_THIS_TRANSACTION}
    WHERE id IN (
        CASE WHEN TG_OP <> 'INSERT' THEN OLD.collection_id END,
        CASE WHEN TG_OP <> 'DELETE' THEN NEW.collection_id END
    ) AND documents_version <> {_THIS_TRANSACTION};
    RETURN NULL;
END $$;
"""


def _note_unknown(owners: str) -> str:
    """Return a statement that notes a change of unknown documents, whatever the version before."""
    return f"""
    INSERT INTO selection_changes (owner_id, version_before, version, document_id, chunk_count)
    SELECT owner_id, {_THIS_TRANSACTION}, {_THIS_TRANSACTION}, NULL, 0 FROM ({owners}) changed;
    """


def _follow_folder_switches(event: str, *, notes: bool) -> str:
    bump = "".join(
        f"""
        UPDATE {table} SET selection_version = {_THIS_TRANSACTION}
        WHERE id IN (SELECT {key} FROM changed) AND selection_version <> {_THIS_TRANSACTION};
        """
        for table, key in (("users", "user_id"), ("conversations", "conversation_id"))
    )
    note = _note_unknown("SELECT DISTINCT owner_id FROM changed") if notes else ""
    return f"""
CREATE OR REPLACE FUNCTION follow_folder_switches_{event.lower()}() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM resolve_folder_switches(array_agg(folder_id), array_agg(DISTINCT owner_id))
    FROM changed HAVING count(*) > 0;
    -- With a folder, or with access to it, documents_version changes; with an owner nothing is left.
    IF pg_trigger_depth() = 1 THEN {bump} {note} END IF;
    RETURN NULL;
END $$;
"""


def _follow_folders(*, notes: bool) -> str:
    note = f"""
    IF COALESCE(current_setting('portal.noted_folders', true), '') = '' THEN
        {_note_unknown("SELECT id AS owner_id FROM collections WHERE name = 'portal'")}
        PERFORM set_config('portal.noted_folders', 'yes', true);
    END IF;
    """
    return f"""
CREATE OR REPLACE FUNCTION bump_version_of_folders() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET documents_version = {_THIS_TRANSACTION}
    WHERE name = 'portal' AND documents_version <> {_THIS_TRANSACTION};
    {note if notes else ""}
    RETURN NULL;
END $$;
"""


def _follow_scope(*, notes: bool) -> str:
    return f"""
CREATE OR REPLACE FUNCTION bump_version_of_scope() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.selection_version = {_THIS_TRANSACTION};
    {_note_unknown("SELECT NEW.id AS owner_id") if notes else ""}
    RETURN NEW;
END $$;
"""


def _functions(*, notes: bool) -> list[str]:
    return [
        *(
            _follow_switches(table, event, notes=notes)
            for table in _SELECTIONS
            for event in _EVENTS
        ),
        *(_follow_folder_switches(event, notes=notes) for event in _EVENTS),
        _follow_documents(notes=notes),
        _follow_folders(notes=notes),
        _follow_scope(notes=notes),
    ]


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "selection_changes",
        sa.Column("owner_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("version_before", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("document_id", sa.Uuid()),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "position", name=op.f("pk_selection_changes")),
    )
    op.execute(_FORGET)
    for table in _OWNERS:
        op.execute(
            f"CREATE TRIGGER {table}_forget_selection_changes AFTER DELETE ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION forget_selection_changes()"
        )
    for function in _functions(notes=True):
        op.execute(function)
    # The chunks that only some users may see are counted for each of them.
    op.create_index(
        "ix_documents_limited",
        "documents",
        ["collection_id"],
        postgresql_where=sa.text("visibility = 'private' OR gate_id IS NOT NULL"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    # A table with events of deferred triggers could not be altered.
    op.execute("SET CONSTRAINTS ALL IMMEDIATE")
    op.drop_index("ix_documents_limited", "documents")
    for function in _functions(notes=False):
        op.execute(function)
    for table in _OWNERS:
        op.execute(f"DROP TRIGGER {table}_forget_selection_changes ON {table}")
    op.drop_table("selection_changes")
    op.execute("DROP FUNCTION forget_selection_changes")
    op.execute("DROP FUNCTION trim_selection_changes(uuid)")
