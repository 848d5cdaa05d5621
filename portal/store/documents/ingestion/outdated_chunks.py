"""Chunks whose terms an older analyser made, to be updated in batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain import locks

# Chunks of a later version are left alone: a process of an earlier release would revert them.
_IS_OUTDATED = """c.analyser_version <> :version
    AND c.analyser_version / 100 <= CAST(:version AS smallint) / 100"""


@dataclass(frozen=True, slots=True)
class OutdatedChunk:
    """A chunk with all that its terms are made from."""

    id: UUID
    title: str
    heading: str | None
    context: str | None
    content: str


def try_lock_reanalysis(session: Session) -> bool:
    """Lock the updating of terms until the transaction ends; return False if another has the
    lock."""
    query = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(session.scalar(query, {"key": locks.REANALYSIS}))


def count_outdated(session: Session, version: int) -> int:
    query = text(f"SELECT count(*) FROM document_chunks c WHERE {_IS_OUTDATED}")
    return session.scalar(query, {"version": version}) or 0


def lock_outdated(session: Session, version: int, *, limit: int) -> list[OutdatedChunk]:
    """Lock some chunks of earlier analysers, or of this one in another language. They stay locked
    until the transaction ends; chunks locked by others are skipped."""
    query = f"""
        SELECT c.id, d.title, c.heading, c.context, c.content
        FROM document_chunks c JOIN documents d ON d.id = c.document_id
        WHERE {_IS_OUTDATED}
        ORDER BY c.analyser_version, c.id
        LIMIT :limit
        FOR UPDATE OF c SKIP LOCKED
    """
    rows = session.execute(text(query), {"version": version, "limit": limit})
    return [OutdatedChunk(*row) for row in rows]


def write_terms(session: Session, terms: Mapping[UUID, str], version: int) -> None:
    """Replace the terms of these chunks with those of this analyser version."""
    query = """
        UPDATE document_chunks c SET terms = new.terms, analyser_version = :version
        FROM unnest(CAST(:ids AS uuid[]), CAST(:terms AS text[])) AS new (id, terms)
        WHERE c.id = new.id
    """
    binds = {"ids": list(terms), "terms": list(terms.values()), "version": version}
    session.execute(text(query), binds)


def mark_outdated(session: Session, document_id: UUID) -> None:
    """Mark a document's chunks for analysis, because a part of their terms changed."""
    query = text("UPDATE document_chunks SET analyser_version = 0 WHERE document_id = :id")
    session.execute(query, {"id": document_id})
