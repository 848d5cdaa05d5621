"""Figures by day, for administrators."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.overview import Day
from portal.store.operations.questions import ANSWERS

_DAYS = text(
    ANSWERS
    + """, days AS (
        SELECT CAST(day AS date) AS day
        FROM generate_series(current_date - (:days - 1), current_date, interval '1 day') day
    ), answered AS (
        SELECT CAST(created_at AS date) AS day, count(*) AS answers,
               count(*) FILTER (WHERE unanswered) AS unanswered
        FROM flagged GROUP BY 1
    ), worked AS (
        SELECT CAST(finished_at AS date) AS day,
               count(*) FILTER (WHERE status = 'ready') AS read,
               count(*) FILTER (WHERE status = 'failed') AS failed
        FROM jobs WHERE finished_at >= current_date - (:days - 1) GROUP BY 1
    ), stored AS (
        SELECT CAST(created_at AS date) AS day, sum(size_bytes) AS bytes
        FROM documents WHERE purged_at IS NULL GROUP BY 1
    )
    SELECT days.day, COALESCE(answers, 0) AS answers, COALESCE(unanswered, 0) AS unanswered,
           COALESCE(read, 0) AS read, COALESCE(failed, 0) AS failed,
           COALESCE((SELECT sum(bytes) FROM stored WHERE stored.day <= days.day), 0) AS stored_bytes
    FROM days LEFT JOIN answered USING (day) LEFT JOIN worked USING (day) ORDER BY days.day
    """
)
_QUEUE = text(
    """
    SELECT count(*) FILTER (WHERE j.status = 'queued') AS waiting,
           count(*) FILTER (WHERE j.status = 'processing') AS working
    FROM jobs j JOIN documents d ON d.id = j.document_id
    WHERE j.status IN ('queued', 'processing') AND d.deleted_at IS NULL
    """
)


class Queue(NamedTuple):
    waiting: int
    working: int


def read_days(session: Session, *, days: int) -> list[Day]:
    """Return the last `days`, oldest first."""
    return [
        Day(row.day, row.answers, row.unanswered, row.read, row.failed, int(row.stored_bytes))
        for row in session.execute(_DAYS, {"days": days})
    ]


def read_queue(session: Session) -> Queue:
    row = session.execute(_QUEUE).one()
    return Queue(row.waiting, row.working)
