"""Let versions differ although transaction ids recur, as they do after a failover that loses
transactions: a process would take what it cached under a lost version for current.

The transaction's start is mixed in. The id stays: two transactions may start in one microsecond.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0066"
down_revision = "0065"

_ID = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
_VERSION = "transaction_version()"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    _replace(_ID, _VERSION)
    op.execute(
        f"""
        CREATE FUNCTION {_VERSION} RETURNS bigint LANGUAGE sql STABLE AS $$
            SELECT hashint8extended({_ID}, CAST(extract(epoch FROM now()) * 1000000 AS bigint))
        $$
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '10s'")
    op.execute(f"DROP FUNCTION {_VERSION}")
    _replace(_VERSION, _ID)


def _replace(old: str, new: str) -> None:
    """Replace an expression in all trigger functions that have it."""
    query = """
        SELECT pg_get_functiondef(oid) FROM pg_proc
        WHERE pronamespace = to_regnamespace(current_schema()) AND strpos(prosrc, :old) > 0
    """
    functions = op.get_bind().scalars(sa.text(query), {"old": old}).all()
    for function in functions:
        op.get_bind().exec_driver_sql(function.replace(old, new))
