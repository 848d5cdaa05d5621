"""Add groups of users, and folders that only their members see."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"

_VISIBILITY = "ck_folders_visibility_known"
_ROLES = "role IN ('reader', 'contributor', 'keeper')"
_SHARED_KEY = "{0}.collection_id, {0}.visibility, {0}.current_job_id, {0}.deleted_at IS NULL"

# The gate of a folder is the nearest folder, itself or above it, that is open to members only; that
# of a document is its folder's. The row of the folder is locked before it is read: one that gets a
# gate at this moment waits for the document, and then finds it.
_GATES = """
CREATE FUNCTION set_document_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.folder_id IS NOT DISTINCT FROM OLD.folder_id THEN
        RETURN NEW;
    END IF;
    NEW.gate_id = NULL;
    IF NEW.folder_id IS NOT NULL THEN
        SELECT gate_id INTO NEW.gate_id FROM folders WHERE id = NEW.folder_id FOR SHARE;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER documents_set_gate BEFORE INSERT OR UPDATE OF folder_id ON documents
    FOR EACH ROW EXECUTE FUNCTION set_document_gate();

CREATE FUNCTION set_folder_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.gate_id = CASE WHEN NEW.visibility = 'members' THEN NEW.id END;
    IF NEW.gate_id IS NULL AND NEW.parent_id IS NOT NULL THEN
        SELECT gate_id INTO NEW.gate_id FROM folders WHERE id = NEW.parent_id FOR SHARE;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER folders_set_gate BEFORE INSERT ON folders
    FOR EACH ROW EXECUTE FUNCTION set_folder_gate();

CREATE FUNCTION spread_folder_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH RECURSIVE below AS (
        SELECT f.id, CASE WHEN f.visibility = 'members' THEN f.id ELSE p.gate_id END AS gate_id
        FROM folders f LEFT JOIN folders p ON p.id = f.parent_id
        WHERE f.id = NEW.id
        UNION
        SELECT f.id, CASE WHEN f.visibility = 'members' THEN f.id ELSE below.gate_id END
        FROM folders f JOIN below ON f.parent_id = below.id
    )
    UPDATE folders f SET gate_id = below.gate_id FROM below
    WHERE f.id = below.id AND f.gate_id IS DISTINCT FROM below.gate_id;

    -- A statement of its own, which sees documents that were waited for.
    WITH RECURSIVE below AS (
        SELECT id, gate_id FROM folders WHERE id = NEW.id
        UNION
        SELECT f.id, f.gate_id FROM folders f JOIN below ON f.parent_id = below.id
    )
    UPDATE documents d SET gate_id = below.gate_id FROM below
    WHERE d.folder_id = below.id AND d.gate_id IS DISTINCT FROM below.gate_id;
    RETURN NULL;
END $$;
CREATE TRIGGER folders_spread_gate AFTER UPDATE OF parent_id, visibility ON folders
    FOR EACH ROW
    WHEN (OLD.parent_id IS DISTINCT FROM NEW.parent_id OR OLD.visibility <> NEW.visibility)
    EXECUTE FUNCTION spread_folder_gate();
"""

# Who may pass a gate, and as what: the one definition of membership. An owner is a keeper.
_ACCESS = """
CREATE VIEW folder_access AS
    SELECT id AS folder_id, owner_id AS user_id, 'keeper' AS role
    FROM folders WHERE visibility = 'members' AND owner_id IS NOT NULL
    UNION ALL
    SELECT folder_id, user_id, role FROM folder_members WHERE user_id IS NOT NULL
    UNION ALL
    SELECT m.folder_id, g.user_id, m.role
    FROM folder_members m JOIN group_members g ON g.group_id = m.group_id
"""


def _share_chunks(gated: str, is_open: str) -> str:
    """Return the functions that keep the chunks which all users may see."""
    is_shared = f"""
        d.visibility = 'shared' AND d.deleted_at IS NULL {is_open}
        AND d.collection_id = (SELECT id FROM collections WHERE name = 'portal')
    """
    old, new = (_SHARED_KEY.format(row) + gated.format(row) for row in ("OLD", "NEW"))
    return f"""
CREATE OR REPLACE FUNCTION share_document_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF ({old}) IS NOT DISTINCT FROM ({new}) THEN
            RETURN NULL;
        END IF;
        DELETE FROM shared_chunks WHERE document_id = NEW.id;
    END IF;
    INSERT INTO shared_chunks (chunk_id, job_id, document_id, terms)
    SELECT c.id, c.job_id, c.document_id, c.terms
    FROM documents d JOIN document_chunks c ON c.job_id = d.current_job_id
    WHERE d.id = NEW.id AND {is_shared}
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION share_changed_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shared_chunks AS present (chunk_id, job_id, document_id, terms)
    SELECT c.id, c.job_id, c.document_id, c.terms
    FROM changed c JOIN documents d ON d.current_job_id = c.job_id
    WHERE {is_shared}
    ON CONFLICT (chunk_id) DO UPDATE SET terms = excluded.terms
        WHERE present.terms <> excluded.terms;
    RETURN NULL;
END $$;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.create_table(
        "groups",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_groups")),
    )
    op.create_index("uq_groups_name", "groups", [sa.text("lower(name)")], unique=True)
    op.create_table(
        "group_members",
        sa.Column("group_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        *(
            _cascade("group_members", *key)
            for key in (("group_id", "groups"), ("user_id", "users"))
        ),
        sa.PrimaryKeyConstraint("group_id", "user_id", name=op.f("pk_group_members")),
    )
    op.create_index("ix_group_members_user_id", "group_members", ["user_id"])
    op.create_table(
        "folder_members",
        sa.Column("folder_id", sa.Uuid(), nullable=False),
        sa.Column(
            "member_id",
            sa.Uuid(),
            sa.Computed("COALESCE(user_id, group_id)", persisted=True),
            nullable=False,
        ),
        sa.Column("user_id", sa.Uuid()),
        sa.Column("group_id", sa.Uuid()),
        sa.Column("role", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "num_nonnulls(user_id, group_id) = 1", name=op.f("ck_folder_members_one_member")
        ),
        sa.CheckConstraint(_ROLES, name=op.f("ck_folder_members_role_known")),
        *(
            _cascade("folder_members", *key)
            for key in (("folder_id", "folders"), ("user_id", "users"), ("group_id", "groups"))
        ),
        sa.PrimaryKeyConstraint("folder_id", "member_id", name=op.f("pk_folder_members")),
    )
    for column in ("user_id", "group_id"):
        op.create_index(f"ix_folder_members_{column}", "folder_members", [column])
    _allow("'shared', 'private', 'members'")
    for table in ("folders", "documents"):
        op.add_column(table, sa.Column("gate_id", sa.Uuid()))
        op.create_index(
            f"ix_{table}_gate_id",
            table,
            ["gate_id"],
            postgresql_where=sa.text("gate_id IS NOT NULL"),
        )
    for statements in (
        _ACCESS,
        _GATES,
        _share_chunks(", {0}.gate_id IS NULL", "AND d.gate_id IS NULL"),
    ):
        op.execute(statements)
    op.execute(
        """
        CREATE TRIGGER documents_share_gated AFTER UPDATE OF folder_id, gate_id ON documents
            FOR EACH ROW WHEN ((OLD.gate_id IS NULL) <> (NEW.gate_id IS NULL))
            EXECUTE FUNCTION share_document_chunks()
        """
    )
    # Members find other documents in their next search.
    for table in ("group_members", "folder_members"):
        op.execute(
            f"""
            CREATE CONSTRAINT TRIGGER {table}_bump_version
                AFTER INSERT OR UPDATE OR DELETE ON {table}
                DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION bump_version_of_folders()
            """
        )


def downgrade() -> None:
    """Close folders with members to all but their owners, and so their documents.

    Without gates nothing else keeps those from being shown to all users.
    """
    op.execute("SET LOCAL lock_timeout = '10s'")
    # A table with events of deferred triggers could not be altered.
    op.execute("SET CONSTRAINTS ALL IMMEDIATE")
    op.execute("UPDATE documents SET visibility = 'private' WHERE gate_id IS NOT NULL")
    for trigger, table in (
        ("documents_share_gated", "documents"),
        ("documents_set_gate", "documents"),
        ("folders_set_gate", "folders"),
        ("folders_spread_gate", "folders"),
    ):
        op.execute(f"DROP TRIGGER {trigger} ON {table}")
    op.execute("UPDATE folders SET visibility = 'private' WHERE visibility = 'members'")
    op.execute(_share_chunks("", ""))
    for function in ("set_document_gate", "set_folder_gate", "spread_folder_gate"):
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DROP VIEW folder_access")
    for table in ("folder_members", "group_members", "groups"):
        op.drop_table(table)
    for table in ("folders", "documents"):
        op.drop_column(table, "gate_id")
    _allow("'shared', 'private'")


def _cascade(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}_{target}")
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")


def _allow(values: str) -> None:
    op.drop_constraint(op.f(_VISIBILITY), "folders")
    op.create_check_constraint(op.f(_VISIBILITY), "folders", f"visibility IN ({values})")
