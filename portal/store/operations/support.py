"""The database part of a support bundle: names of the schema, numbers, codes and times.

Nothing that a user wrote is read: no titles, no names, no parameters of errors.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

_STATEMENTS = {
    "tables": """
        SELECT relname AS name, CAST(reltuples AS bigint) AS rows,
               pg_total_relation_size(oid) AS bytes
          FROM pg_class
         WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname
    """,
    "indexes": """
        SELECT c.relname AS name, i.indrelid::regclass::text AS table, am.amname AS method,
               i.indisvalid AS is_valid, pg_relation_size(c.oid) AS bytes
          FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam
         WHERE c.relnamespace = current_schema()::regnamespace ORDER BY c.relname
    """,
    # Not those of type string, which may contain addresses and passwords of other servers.
    "settings": """
        SELECT name, setting, unit, source FROM pg_settings
         WHERE source <> 'default' AND vartype <> 'string' ORDER BY name
    """,
    "connections": """
        SELECT state, wait_event_type, count(*) AS count,
               CAST(max(extract(epoch FROM clock_timestamp() - xact_start)) AS float)
                   AS longest_transaction_s
          FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1, 2 ORDER BY 1, 2
    """,
    "queue": """
        SELECT queue_name AS queue, task_name AS task, CAST(status AS text) AS status,
               count(*) AS count
          FROM procrastinate_jobs GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    """,
    "workers": """
        SELECT CAST(extract(epoch FROM now() - last_heartbeat) AS float) AS silent_s
          FROM procrastinate_workers ORDER BY 1
    """,
    "documents": """
        SELECT status, media_type, visibility, deleted_at IS NOT NULL AS in_trash, count(*) AS count
          FROM documents GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    """,
    "failed_jobs": """
        SELECT error->>'code' AS code, stage, count(*) AS count, max(finished_at) AS last
          FROM jobs WHERE status = 'failed' GROUP BY 1, 2 ORDER BY 1, 2
    """,
    "answers": """
        SELECT status, count(*) AS count, max(created_at) AS last
          FROM messages WHERE role = 'assistant' GROUP BY 1 ORDER BY 1
    """,
    "users": """
        SELECT is_admin, disabled_at IS NOT NULL AS is_disabled, count(*) AS count
          FROM users GROUP BY 1, 2 ORDER BY 1, 2
    """,
    "models": """
        SELECT provider, dimensions, status, count(*) AS count
          FROM embedding_models GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    """,
}


def read_state(session: Session) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each statement, by its name."""
    return {
        name: [dict(row) for row in session.execute(text(statement)).mappings()]
        for name, statement in _STATEMENTS.items()
    }
