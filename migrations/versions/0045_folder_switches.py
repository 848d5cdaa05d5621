"""Switch folders on and off; keep what each switch means for the folders below it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from portal.domain import locks

revision = "0045"
down_revision = "0044"

_THIS_TRANSACTION = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
_OWNERS = {"users": "user_id", "conversations": "conversation_id"}

# States of the folders below `roots` are computed from scratch: every switch on the way down from
# the top is spread until the next switch of the same owner. `owners` NULL means all.
_RESOLVE = """
CREATE FUNCTION resolve_folder_switches(roots uuid[], owners uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH RECURSIVE below AS (
        SELECT id FROM folders WHERE id = ANY(roots)
        UNION
        SELECT f.id FROM folders f JOIN below ON f.parent_id = below.id
    )
    DELETE FROM folder_states s USING below
    WHERE s.folder_id = below.id AND (owners IS NULL OR s.owner_id = ANY(owners));

    WITH RECURSIVE below AS (
        SELECT id FROM folders WHERE id = ANY(roots)
        UNION
        SELECT f.id FROM folders f JOIN below ON f.parent_id = below.id
    ), above AS (
        SELECT id, parent_id FROM folders WHERE id = ANY(roots)
        UNION
        SELECT f.id, f.parent_id FROM folders f JOIN above ON f.id = above.parent_id
    ), tree AS (
        SELECT id FROM below UNION SELECT id FROM above
    ), spread AS (
        SELECT s.owner_id, s.folder_id, s.enabled, s.folder_id AS source_id
        FROM folder_switches s JOIN tree ON tree.id = s.folder_id
        WHERE owners IS NULL OR s.owner_id = ANY(owners)
        UNION ALL
        SELECT spread.owner_id, f.id, spread.enabled, spread.source_id
        FROM spread
        JOIN folders f ON f.parent_id = spread.folder_id
        JOIN tree ON tree.id = f.id
        WHERE NOT EXISTS (
            SELECT FROM folder_switches own
            WHERE own.owner_id = spread.owner_id AND own.folder_id = f.id
        )
    )
    INSERT INTO folder_states (owner_id, folder_id, enabled, source_id)
    SELECT spread.* FROM spread JOIN below ON below.id = spread.folder_id;
END $$;
"""

# Switches and the tree change one after the other: a folder that is moved below one that is being
# switched would otherwise miss the switch. Cascades from a deleted owner or folder need no lock, and
# must not wait for one with rows locked.
_ONE_AT_A_TIME = f"""
CREATE FUNCTION lock_folder_tree() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock({locks.FOLDERS});
    RETURN NULL;
END $$;
CREATE TRIGGER folder_switches_lock_tree BEFORE INSERT OR UPDATE OR DELETE ON folder_switches
    FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION lock_folder_tree();
"""


def _switch_trigger(event: str, image: str) -> str:
    """Return the trigger that follows switches that were written."""
    bump = "".join(
        f"""
        UPDATE {table} SET selection_version = {_THIS_TRANSACTION}
        WHERE id IN (SELECT {key} FROM changed) AND selection_version <> {_THIS_TRANSACTION};
        """
        for table, key in _OWNERS.items()
    )
    return f"""
CREATE FUNCTION follow_folder_switches_{event.lower()}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM resolve_folder_switches(array_agg(folder_id), array_agg(DISTINCT owner_id))
    FROM changed HAVING count(*) > 0;
    -- With a folder, or with access to it, documents_version changes; with an owner nothing is left.
    IF pg_trigger_depth() = 1 THEN {bump} END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER folder_switches_follow_{event.lower()} AFTER {event} ON folder_switches
    REFERENCING {image} TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION follow_folder_switches_{event.lower()}();
"""


_FOLLOW = (
    _switch_trigger("INSERT", "NEW"),
    _switch_trigger("UPDATE", "NEW"),
    _switch_trigger("DELETE", "OLD"),
)

# A new folder is as the one above it, and a moved one as its new place. A switch is
# removed when its user may no longer see the folder, and so could not change it back.
_TREE = f"""
CREATE FUNCTION follow_folder_tree() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO folder_states (owner_id, folder_id, enabled, source_id)
        SELECT owner_id, NEW.id, enabled, source_id FROM folder_states
        WHERE folder_id = NEW.parent_id;
        RETURN NULL;
    END IF;
    IF NEW.parent_id IS DISTINCT FROM OLD.parent_id THEN
        PERFORM resolve_folder_switches(ARRAY[NEW.id], NULL);
    END IF;
    IF NEW.visibility = 'private' THEN
        DELETE FROM folder_switches s USING users u
        WHERE s.folder_id = NEW.id
          AND u.id = COALESCE(
              s.user_id, (SELECT c.user_id FROM conversations c WHERE c.id = s.conversation_id))
          AND NOT (u.is_admin OR u.id IS NOT DISTINCT FROM NEW.owner_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER folders_follow_tree
    AFTER INSERT OR UPDATE OF parent_id, visibility, owner_id ON folders
    FOR EACH ROW EXECUTE FUNCTION follow_folder_tree();

CREATE FUNCTION bump_version_of_folders() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET documents_version = {_THIS_TRANSACTION}
    WHERE name = 'portal' AND documents_version <> {_THIS_TRANSACTION};
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER folders_bump_version
    AFTER DELETE OR UPDATE OF parent_id, visibility, owner_id ON folders
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION bump_version_of_folders();
"""

_DOCUMENT_COLUMNS = (
    "collection_id, owner_id, visibility, current_job_id, chunk_count, deleted_at, title, domain, "
    "media_type"
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "folder_switches",
        sa.Column(
            "owner_id",
            sa.Uuid(),
            sa.Computed("COALESCE(user_id, conversation_id)", persisted=True),
            nullable=False,
        ),
        sa.Column("folder_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid()),
        sa.Column("conversation_id", sa.Uuid()),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "num_nonnulls(user_id, conversation_id) = 1", name=op.f("ck_folder_switches_one_owner")
        ),
        sa.ForeignKeyConstraint(
            ["folder_id"],
            ["folders.id"],
            name=op.f("fk_folder_switches_folder_id_folders"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["users.id"],
            name=op.f("fk_folder_switches_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name=op.f("fk_folder_switches_conversation_id_conversations"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("owner_id", "folder_id", name=op.f("pk_folder_switches")),
    )
    for column in ("folder_id", "user_id", "conversation_id"):
        op.create_index(f"ix_folder_switches_{column}", "folder_switches", [column])
    op.create_table(
        "folder_states",
        sa.Column("owner_id", sa.Uuid(), nullable=False),
        sa.Column("folder_id", sa.Uuid(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("source_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["folder_id"],
            ["folders.id"],
            name=op.f("fk_folder_states_folder_id_folders"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "owner_id",
            "folder_id",
            name=op.f("pk_folder_states"),
            postgresql_include=["enabled"],
        ),
    )
    op.create_index("ix_folder_states_folder_id", "folder_states", ["folder_id"])
    for statements in (_RESOLVE, _ONE_AT_A_TIME, *_FOLLOW, _TREE):
        op.execute(statements)
    _bump_on(f"{_DOCUMENT_COLUMNS}, folder_id, tags")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute("DROP TRIGGER folders_follow_tree ON folders")
    op.execute("DROP TRIGGER folders_bump_version ON folders")
    op.drop_table("folder_states")
    op.drop_table("folder_switches")
    for function in (
        "resolve_folder_switches(uuid[], uuid[])",
        "lock_folder_tree",
        *(f"follow_folder_switches_{event}" for event in ("insert", "update", "delete")),
        "follow_folder_tree",
        "bump_version_of_folders",
    ):
        op.execute(f"DROP FUNCTION {function}")
    _bump_on(_DOCUMENT_COLUMNS)


def _bump_on(columns: str) -> None:
    """Bump documents_version when one of these columns of a document changes."""
    op.execute("DROP TRIGGER documents_bump_version ON documents")
    op.execute(
        f"""
        CREATE CONSTRAINT TRIGGER documents_bump_version
            AFTER INSERT OR DELETE OR UPDATE OF {columns} ON documents
            DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION bump_documents_version()
        """
    )
