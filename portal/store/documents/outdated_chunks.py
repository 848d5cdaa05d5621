"""Passages whose terms an older analyser made: found in batches, and written anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain import locks


@dataclass(frozen=True, slots=True)
class OutdatedChunk:
    """A passage and where it stands."""

    id: UUID
    title: str
    heading: str | None
    context: str | None
    content: str


def is_alone(session: Session) -> bool:
    """Whether this transaction is the only one to write terms anew, until it ends."""
    query = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(session.scalar(query, {"key": locks.REANALYSIS}))


def count_outdated(session: Session, version: int) -> int:
    query = text("SELECT count(*) FROM document_chunks WHERE analyser_version < :version")
    return session.scalar(query, {"version": version}) or 0


def lock_outdated(session: Session, version: int, *, limit: int) -> list[OutdatedChunk]:
    """Some passages of analysers before `version`, held until the transaction ends. Those that
    somebody else holds come another time."""
    rows = session.execute(
        text(
            """
            SELECT c.id, d.title, c.heading, c.context, c.content
            FROM document_chunks c JOIN documents d ON d.id = c.document_id
            WHERE c.analyser_version < :version
            ORDER BY c.analyser_version, c.id
            LIMIT :limit
            FOR UPDATE OF c SKIP LOCKED
            """
        ),
        {"version": version, "limit": limit},
    )
    return [OutdatedChunk(*row) for row in rows]


def write_terms(session: Session, terms: Mapping[UUID, str], version: int) -> None:
    """Replace the terms of these passages by those of an analyser of this version."""
    session.execute(
        text(
            """
            UPDATE document_chunks c SET terms = new.terms, analyser_version = :version
            FROM unnest(CAST(:ids AS uuid[]), CAST(:terms AS text[])) AS new (id, terms)
            WHERE c.id = new.id
            """
        ),
        {"ids": list(terms), "terms": list(terms.values()), "version": version},
    )


def mark_outdated(session: Session, document_id: UUID) -> None:
    """Have a document's passages analysed anew, because what they are analysed with changed."""
    query = text("UPDATE document_chunks SET analyser_version = 0 WHERE document_id = :id")
    session.execute(query, {"id": document_id})
