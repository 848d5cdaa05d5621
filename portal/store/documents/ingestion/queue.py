"""The ingestion queue: entries share the transaction of their job and are ordered fairly.

An entry's turn is one more than that of the user's last waiting entry, or the lowest turn of all
waiting entries if that is higher. Users therefore take turns, document by document, however many
each has queued, and no entry waits forever: each finished turn raises the lowest (start-time fair
queueing, Goyal, Vin and Cheng 1996).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain import locks
from portal.observability import tracing

QUEUE_NAME = "ingest"
SLOW_QUEUE = "ingest_slow"
"""Files that take long to read. This queue has no time slices, so they only delay each other."""
SMALL_QUEUE = "ingest_small"
"""Files that are read quickly, such as notes, so that they need not wait behind a large one."""
INDEX_TASK = "index_document"

# Limits of a small file and, once known, of its text: some tens of chunks.
_SMALL_BYTES = 32 * 1024
_SMALL_CHARACTERS = 32 * 1024

# Maintenance jobs without a waiting user, after all documents.
LOWEST_PRIORITY = -1_000_000_000

# Sorted with a limit, not by min and max, which would read the whole queue for each entry.
_TAKE_TURN = text(
    """
    UPDATE jobs SET
        status = 'queued',
        retry_at = now() + make_interval(secs => CAST(:wait_s AS float)),
        turn = greatest(
            coalesce((
                SELECT j.turn + 1 FROM jobs j
                JOIN documents d ON d.id = j.document_id
                WHERE d.owner_id = (SELECT owner_id FROM documents WHERE id = jobs.document_id)
                  AND j.status IN ('queued', 'processing') AND j.id <> :job_id
                  AND d.deleted_at IS NULL AND NOT :is_continued
                ORDER BY j.turn DESC LIMIT 1
            ), 0),
            coalesce((
                SELECT j.turn FROM jobs j
                JOIN documents d ON d.id = j.document_id
                WHERE d.deleted_at IS NULL AND j.id <> :job_id
                  AND j.status = 'queued' AND coalesce(j.retry_at <= now(), true)
                ORDER BY j.turn LIMIT 1
            ), 0),
            turn * CAST(:is_continued AS int)
        )
    WHERE id = :job_id
    RETURNING turn, retry_at
    """
)
_DEFER = text(
    """
    SELECT procrastinate_defer_jobs_v1(ARRAY[
        CAST(
            ROW(CAST(:queue AS varchar), CAST(:task AS varchar), :priority, CAST(:lock AS text),
                NULL, CAST(:args AS jsonb), CAST(:at AS timestamptz))
            AS procrastinate_job_to_defer_v1
        )
    ])
    """
)
# Turns of each owner's documents follow each other, as if they were queued one by one.
_ENQUEUE_NEW = text(
    """
    WITH waiting AS (
        SELECT j.turn, j.status, j.retry_at, d.owner_id
        FROM jobs j JOIN documents d ON d.id = j.document_id
        WHERE j.status IN ('queued', 'processing') AND d.deleted_at IS NULL
    ), first AS (
        SELECT coalesce(min(turn), 0) AS turn FROM waiting
        WHERE status = 'queued' AND coalesce(retry_at <= now(), true)
    ), last AS (
        SELECT owner_id, max(turn) + 1 AS turn FROM waiting GROUP BY owner_id
    ), added AS (
        INSERT INTO jobs (document_id, file_id, created_at, turn)
        SELECT d.id, given.file_id, clock_timestamp(),
            greatest(last.turn, first.turn) - 1
                + row_number() OVER (PARTITION BY d.owner_id ORDER BY given.place)
        FROM unnest(CAST(:document_ids AS uuid[]), CAST(:file_ids AS uuid[]))
            WITH ORDINALITY AS given (document_id, file_id, place)
        JOIN documents d ON d.id = given.document_id
        CROSS JOIN first LEFT JOIN last ON last.owner_id = d.owner_id
        RETURNING id, file_id, turn
    )
    SELECT procrastinate_defer_jobs_v1(array_agg(
        CAST(
            ROW(CAST(CASE WHEN f.size_bytes <= :bytes THEN :small ELSE :usual END AS varchar),
                CAST(:task AS varchar), -added.turn, NULL, NULL,
                jsonb_build_object('job_id', added.id, 'origin', CAST(:origin AS jsonb)), NULL)
            AS procrastinate_job_to_defer_v1
        )
    ))
    FROM added JOIN stored_files f ON f.id = added.file_id
    """
)
_IS_SMALL = text(
    """
    SELECT f.size_bytes <= :bytes AND coalesce(r.character_count <= :characters, true)
    FROM jobs j JOIN stored_files f ON f.id = j.file_id
    LEFT JOIN document_revisions r ON r.id = j.revision_id
    WHERE j.id = :job_id
    """
)
_OTHERS_WAIT = text(
    """
    SELECT EXISTS (
        SELECT 1 FROM jobs j JOIN documents d ON d.id = j.document_id
        WHERE j.status = 'queued' AND coalesce(j.retry_at <= now(), true)
          AND d.deleted_at IS NULL
          AND d.owner_id IS DISTINCT FROM (
            SELECT owner_id FROM documents WHERE id = :document_id
          )
    )
    """
)


def enqueue(
    session: Session,
    job_id: UUID,
    *,
    wait_s: float | None = None,
    is_continued: bool = False,
    name: str | None = None,
) -> None:
    """Queue a job on the current connection, so that a rollback removes the entry. Without `name`
    it goes to the queue for its size. It is due after `wait_s`. A job that `is_continued`, after it
    made room for others, runs after one entry of each other user, not after all of the same user.
    """
    if name is None:
        name = SMALL_QUEUE if _is_small(session, job_id) else QUEUE_NAME
    turn, due = session.execute(
        _TAKE_TURN, {"job_id": job_id, "wait_s": wait_s, "is_continued": is_continued}
    ).one()
    defer(session, name, INDEX_TASK, {"job_id": str(job_id)}, priority=-turn, at=due)


def enqueue_new(session: Session, files: Mapping[UUID, UUID]) -> None:
    """Insert and queue a job for each document, to read its file, in this order."""
    if not files:
        return
    binds = {
        "document_ids": list(files),
        "file_ids": list(files.values()),
        "bytes": _SMALL_BYTES,
        "small": SMALL_QUEUE,
        "usual": QUEUE_NAME,
        "task": INDEX_TASK,
        "origin": json.dumps(tracing.origin()),
    }
    session.execute(_ENQUEUE_NEW, binds)


def defer(
    session: Session,
    queue: str,
    task: str,
    arguments: Mapping[str, str],
    *,
    priority: int,
    lock: str | None = None,
    at: datetime | None = None,
) -> None:
    """Add an entry to a queue. Entries with the same `lock` never run concurrently."""
    args = json.dumps({**arguments, "origin": tracing.origin()})
    binds = {"queue": queue, "task": task, "priority": priority, "lock": lock, "at": at}
    session.execute(_DEFER, binds | {"args": args})


def _is_small(session: Session, job_id: UUID) -> bool:
    sizes = {"job_id": job_id, "bytes": _SMALL_BYTES, "characters": _SMALL_CHARACTERS}
    return bool(session.scalar(_IS_SMALL, sizes))


def has_others_waiting(session: Session, document_id: UUID) -> bool:
    """Return whether a document of another user could be read now."""
    return bool(session.scalar(_OTHERS_WAIT, {"document_id": document_id}))


def lock_requeueing(session: Session) -> bool:
    """Lock the requeueing of lost jobs until the transaction ends; False if another has it."""
    query = text("SELECT pg_try_advisory_xact_lock(:lock)")
    return bool(session.scalar(query, {"lock": locks.LOST_JOBS}))


def unfinished_without_queue_entry(session: Session) -> list[UUID]:
    """Return unfinished jobs without an entry in the queue."""
    query = """
        SELECT j.id FROM jobs j JOIN documents d ON d.id = j.document_id
        WHERE d.deleted_at IS NULL AND j.status IN ('queued', 'processing')
          AND NOT EXISTS (
            SELECT 1 FROM procrastinate_jobs q
            WHERE q.status IN ('todo', 'doing') AND q.args->>'job_id' = CAST(j.id AS text)
          )
        ORDER BY j.created_at, j.id
    """
    return list(session.scalars(text(query)))


def has_live_workers(session: Session, *, within_s: float) -> bool:
    """Return whether a worker has sent a heartbeat within the last `within_s` seconds."""
    query = """
        SELECT EXISTS (
            SELECT 1 FROM procrastinate_workers
            WHERE last_heartbeat > now() - make_interval(secs => :within_s)
        )
    """
    return bool(session.scalar(text(query), {"within_s": within_s}))
