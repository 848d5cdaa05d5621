"""Questions whose answers need attention, and the documents that answers cite.

Questions are read without their authors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from portal.store.models import EvaluationQuestionRow

_MAX_QUESTIONS = 50
_MAX_DOCUMENTS = 20
# The answers of the last `days`, for reports. One counts as stale when a document that it cites has
# another text now, or none. Replies to greetings and to requests for a summary do not count:
# nothing was searched for them, so they have no embedding model and no consulted chunks. Only
# quotations have an outcome; if the model failed, they answer in its place.
ANSWERS = """
    WITH answers AS (
        SELECT a.*, cited.is_low, COALESCE(cited.is_stale, false) AS is_stale, cited.titles,
               cited.sources, a.retrieval #>> '{extra,outcome}' IS NOT NULL AS quotes,
               (SELECT q.content FROM messages q
                WHERE q.conversation_id = a.conversation_id AND q.role = 'user'
                  AND q.position < a.position
                ORDER BY q.position DESC LIMIT 1) AS question
        FROM messages a
        LEFT JOIN LATERAL (
            SELECT bool_and((c.scores ->> 'low_confidence')::boolean)
                       FILTER (WHERE c.was_cited) AS is_low,
                   bool_or(d.id IS NULL OR d.deleted_at IS NOT NULL
                           OR (c.revision_id IS NOT NULL AND c.revision_id <> j.revision_id))
                       FILTER (WHERE c.was_cited) AS is_stale,
                   count(*) AS found,
                   array_agg(c.title ORDER BY c.marker) FILTER (WHERE c.was_cited) AS titles,
                   jsonb_agg(jsonb_build_object(
                       'id', d.id, 'title', c.title, 'file_name', d.file_name,
                       'created_at', d.created_at, 'is_in_trash', d.deleted_at IS NOT NULL
                   ) ORDER BY c.marker) FILTER (WHERE c.was_cited AND d.id IS NOT NULL) AS sources
            FROM citations c
            LEFT JOIN documents d ON d.id = c.document_id AND d.purged_at IS NULL
            LEFT JOIN jobs j ON j.id = d.current_job_id
            WHERE c.message_id = a.id
        ) cited ON true
        WHERE a.role = 'assistant' AND a.status <> 'streaming'
          AND NOT EXISTS (SELECT FROM conversations v
                          WHERE v.id = a.conversation_id AND v.deleted_at IS NOT NULL)
          AND (a.superseded_at IS NULL OR a.feedback IS NOT NULL)
          AND a.created_at > now() - make_interval(days => :days)
          AND (a.status = 'done' OR cited.found > 0 AND cited.titles IS NULL
               OR a.retrieval ->> 'embedding_model' IS NOT NULL)
    ), flagged AS (
        SELECT *, status = 'abstained' AS unanswered,
               status = 'unavailable' AS model_failed,
               (status = 'done' OR quotes) AND COALESCE(is_low, false) AS low_confidence,
               COALESCE(feedback = 'not_useful', false) AS not_useful,
               is_stale AS stale
        FROM answers
    )
"""
_WEEKS = text(
    ANSWERS
    + """
    SELECT CAST(date_trunc('week', created_at) AS date) AS week, count(*) AS answers,
           count(*) FILTER (WHERE unanswered) AS unanswered,
           count(*) FILTER (WHERE model_failed) AS model_failed,
           count(*) FILTER (WHERE low_confidence) AS low_confidence,
           count(*) FILTER (WHERE not_useful) AS not_useful,
           count(*) FILTER (WHERE stale) AS stale
    FROM flagged GROUP BY 1 ORDER BY 1 DESC
    """
)
# A question that was asked several times is one row, with its latest answer. What was searched for
# tells a follow-up such as "Why?" from others.
_QUESTIONS = text(
    ANSWERS
    + """
    , reported AS (
        SELECT f.*, COALESCE(NULLIF(f.retrieval ->> 'search_query', ''), question) AS searched
        FROM flagged f
        WHERE question IS NOT NULL
          AND CASE :problem WHEN 'unanswered' THEN unanswered WHEN 'model_failed' THEN model_failed
                   WHEN 'low_confidence' THEN low_confidence
                   WHEN 'not_useful' THEN not_useful WHEN 'stale' THEN stale
                   ELSE unanswered OR model_failed OR low_confidence OR not_useful OR stale END
          AND (CAST(:message_id AS uuid) IS NULL OR id = :message_id)
    ), latest AS (
        SELECT (array_agg(id ORDER BY created_at DESC, id))[1] AS id, count(*) AS times,
               bool_or(unanswered) AS unanswered, bool_or(model_failed) AS model_failed,
               bool_or(low_confidence) AS low_confidence, bool_or(not_useful) AS not_useful,
               bool_or(stale) AS stale,
               (array_agg(feedback_reason ORDER BY created_at DESC)
                   FILTER (WHERE feedback_reason IS NOT NULL))[1] AS reason,
               bool_or(EXISTS (SELECT FROM evaluation_questions e WHERE e.message_id = reported.id))
                   AS is_kept
        FROM reported GROUP BY lower(rtrim(searched, ' ?？。.!！'))
    )
    SELECT l.*, r.created_at, r.question, r.searched,
           COALESCE(CAST(r.retrieval ->> 'enabled_count' AS integer), 0) AS enabled_count,
           COALESCE(CAST(r.retrieval ->> 'document_count' AS integer), 0) AS document_count,
           COALESCE(r.sources, '[]') AS sources
    FROM latest l JOIN reported r USING (id)
    ORDER BY r.created_at DESC, r.id LIMIT :limit
    """
)
_DOCUMENTS = text(
    """
    SELECT d.id, d.title, count(DISTINCT c.message_id) AS answers,
           max(c.created_at) AS last_cited_at
    FROM citations c
    JOIN messages a ON a.id = c.message_id
    JOIN documents d ON d.id = c.document_id
    WHERE c.was_cited AND a.created_at > now() - make_interval(days => :days)
      AND d.deleted_at IS NULL AND d.purged_at IS NULL
    GROUP BY d.id ORDER BY answers DESC, last_cited_at DESC, d.id LIMIT :limit
    """
)
_KEPT = text(
    """
    SELECT e.message_id, e.question, e.gold, e.created_at,
           ARRAY(SELECT q.content FROM messages q
                 WHERE q.conversation_id = a.conversation_id AND q.role = 'user'
                   AND q.position < a.position AND q.content <> e.question
                   AND (q.superseded_at IS NULL OR q.superseded_at > a.created_at)
                   AND a.retrieval ->> 'search_query' <> e.question
                 ORDER BY q.position) AS after,
           ARRAY(SELECT DISTINCT c.document_id FROM citations c
                 JOIN documents d ON d.id = c.document_id
                 WHERE c.message_id = e.message_id AND d.deleted_at IS NULL
                   AND d.purged_at IS NULL) AS document_ids
    FROM evaluation_questions e JOIN messages a ON a.id = e.message_id
    ORDER BY e.created_at, e.message_id
    """
)


@dataclass(frozen=True, slots=True)
class Week:
    """Answers of a week, and how many of them need attention."""

    week: date
    answers: int
    unanswered: int
    model_failed: int
    low_confidence: int
    not_useful: int
    stale: int


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A document that an answer cites, under the title that it had then."""

    id: UUID
    title: str
    file_name: str
    created_at: datetime
    is_in_trash: bool


@dataclass(frozen=True, slots=True)
class ReportedQuestion:
    """A question whose answers need attention, by the id of the latest. `times` counts these
    answers, `searched` is what was searched for, `sources` are the documents that the latest cites,
    each once, without those that are gone."""

    id: UUID
    created_at: datetime
    question: str
    searched: str
    times: int
    unanswered: bool
    model_failed: bool
    low_confidence: bool
    not_useful: bool
    stale: bool
    reason: str | None
    enabled_count: int
    document_count: int
    sources: Sequence[AnswerSource]
    is_kept: bool


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document and how many answers cite it."""

    id: UUID
    title: str
    answers: int
    last_cited_at: datetime


@dataclass(frozen=True, slots=True)
class SavedQuestion:
    """A question of the evaluation set: without `gold` the documents do not answer it. A follow-up
    comes `after` the earlier questions of its conversation."""

    message_id: UUID
    question: str
    gold: Sequence[str]
    after: Sequence[str]
    created_at: datetime
    document_ids: Sequence[UUID]


def count_by_week(session: Session, *, days: int) -> list[Week]:
    """Return the weeks of the last `days`, latest first."""
    return [Week(**row) for row in session.execute(_WEEKS, {"days": days}).mappings()]


def list_questions(session: Session, *, days: int, problem: str = "") -> list[ReportedQuestion]:
    """Return the latest questions that need attention, for any problem or for a certain one."""
    values = {"days": days, "problem": problem, "limit": _MAX_QUESTIONS, "message_id": None}
    return _read_reported(session, values)


def find_question(session: Session, message_id: UUID, *, days: int) -> ReportedQuestion | None:
    """Return the question of an answer that needs attention."""
    values = {"days": days, "problem": "", "limit": 1, "message_id": message_id}
    return next(iter(_read_reported(session, values)), None)


def _read_reported(session: Session, values: dict[str, Any]) -> list[ReportedQuestion]:
    rows = session.execute(_QUESTIONS, values).mappings()
    return [ReportedQuestion(**{**row, "sources": _sources(row["sources"])}) for row in rows]


def _sources(cited: Sequence[dict[str, Any]]) -> list[AnswerSource]:
    found = (
        AnswerSource(
            UUID(one["id"]),
            one["title"],
            one["file_name"],
            datetime.fromisoformat(one["created_at"]),
            one["is_in_trash"],
        )
        for one in cited
    )
    return list({source.id: source for source in found}.values())


def list_cited(session: Session, *, days: int) -> list[CitedDocument]:
    """Return the documents that the most answers of the last `days` cite, most cited first."""
    rows = session.execute(_DOCUMENTS, {"days": days, "limit": _MAX_DOCUMENTS}).mappings()
    return [CitedDocument(**row) for row in rows]


def save_question(session: Session, message_id: UUID, question: str, gold: Sequence[str]) -> None:
    """Add a question to the evaluation set, or replace its gold words."""
    statement = insert(EvaluationQuestionRow).values(
        message_id=message_id, question=question, gold=list(gold)
    )
    session.execute(
        statement.on_conflict_do_update(
            index_elements=[EvaluationQuestionRow.message_id], set_={"gold": list(gold)}
        )
    )


def remove_question(session: Session, message_id: UUID) -> bool:
    """Remove a question from the evaluation set; return whether it was there."""
    row = EvaluationQuestionRow
    removed = delete(row).where(row.message_id == message_id).returning(row.message_id)
    return session.scalar(removed) is not None


def list_saved_questions(session: Session) -> list[SavedQuestion]:
    """Return the evaluation set, oldest question first."""
    return [SavedQuestion(**row) for row in session.execute(_KEPT).mappings()]
