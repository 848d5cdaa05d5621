"""Versions, counts and the state of the queue, for health checks and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.people.audit import AuditEvent
from portal.store.embedding_models.registry import COLLECTION_PROVIDER


def read_revision(session: Session) -> str | None:
    """Return the schema's revision; None before the first migration."""
    if session.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision = session.scalar(text("SELECT version_num FROM alembic_version"))
    return str(revision) if revision else None


def read_rehearsal(session: Session) -> dict[str, str] | None:
    """Return the result of the last rehearsed restore, and when it was; None without one."""
    query = """
        SELECT details ->> 'result', created_at FROM audit_log
        WHERE event = :event ORDER BY created_at DESC LIMIT 1
    """
    binds = {"event": AuditEvent.BACKUP_REHEARSED.value}
    row = session.execute(text(query), binds).one_or_none()
    return None if row is None else {"status": row[0], "at": row[1].isoformat()}


def read_extensions(session: Session) -> dict[str, str]:
    """Return the installed extensions with their versions, and PostgreSQL's own."""
    query = """
        SELECT extname, extversion FROM pg_extension
        WHERE extname IN ('vector', 'pg_textsearch', 'pg_trgm', 'unaccent')
        ORDER BY extname
    """
    rows = session.execute(text(query))
    server = session.scalar(text("SELECT current_setting('server_version')"))
    return {"postgresql": str(server)} | {row.extname: row.extversion for row in rows}


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """Counts of documents, searchable chunks, and chunks without a vector by the active model: for
    all documents, and for shared ones alone."""

    everything: dict[str, int]
    shared: dict[str, int]


def read_counts(session: Session) -> StoreCounts:
    """Count documents and chunks outside the trash."""
    query = """
        SELECT d.visibility = 'shared' AND d.gate_id IS NULL AS is_shared,
               count(DISTINCT d.id) AS documents, count(c.id) AS chunks,
               count(c.id) FILTER (WHERE NOT EXISTS (
                   SELECT 1 FROM chunk_embeddings e
                   WHERE e.chunk_id = c.id AND e.model_id = collection.embedding_model_id
               )) AS missing_embeddings
        FROM documents d
        JOIN collections collection ON collection.id = d.collection_id
        LEFT JOIN document_chunks c ON c.job_id = d.current_job_id
        WHERE d.deleted_at IS NULL AND collection.name = 'portal'
        GROUP BY is_shared
    """
    rows = session.execute(text(query)).mappings().all()
    names = ("documents", "chunks", "missing_embeddings")
    return StoreCounts(
        everything={name: sum(int(row[name]) for row in rows) for name in names},
        shared={name: sum(int(row[name]) for row in rows if row["is_shared"]) for name in names},
    )


def read_models(session: Session) -> list[dict[str, Any]]:
    query = """
        SELECT name, provider, dimensions, status FROM embedding_models
        WHERE provider <> :collection ORDER BY id
    """
    rows = session.execute(text(query), {"collection": COLLECTION_PROVIDER})
    return [dict(row) for row in rows.mappings()]


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """The number of `jobs` by queue and status, of `documents` by status, and how long the oldest
    upload has been waiting for a worker, in seconds."""

    jobs: dict[tuple[str, str], int]
    documents: dict[str, int]
    oldest_wait_s: float
    live_workers: int


def read_queue(session: Session, *, silent_after_s: float) -> QueueMetrics:
    """Return the state of the queue, in one statement."""
    query = """
        SELECT 'job' AS kind, queue_name AS name, CAST(status AS text) AS status,
               CAST(count(*) AS double precision) AS amount
          FROM procrastinate_jobs GROUP BY queue_name, status
        UNION ALL
        SELECT 'document', '', status, count(*) FROM documents
         WHERE deleted_at IS NULL
           AND collection_id = (SELECT id FROM collections WHERE name = 'portal') GROUP BY status
        UNION ALL
        SELECT 'wait', '', '', COALESCE(extract(epoch FROM now() - min(j.created_at)), 0)
          FROM jobs j JOIN documents d ON d.id = j.document_id
         WHERE j.status = 'queued' AND d.deleted_at IS NULL
        UNION ALL
        SELECT 'worker', '', '', count(*) FROM procrastinate_workers
         WHERE last_heartbeat > now() - make_interval(secs => :silent_after_s)
    """
    rows = session.execute(text(query), {"silent_after_s": silent_after_s}).all()
    single = {row.kind: row.amount for row in rows}
    return QueueMetrics(
        jobs={(row.name, row.status): int(row.amount) for row in rows if row.kind == "job"},
        documents={row.status: int(row.amount) for row in rows if row.kind == "document"},
        oldest_wait_s=float(single["wait"]),
        live_workers=int(single["worker"]),
    )
