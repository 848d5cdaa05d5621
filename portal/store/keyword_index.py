"""The keyword index: what this server can rank words with, and the BM25 index itself."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.search import KeywordBackend

BM25_INDEX = "ix_document_chunks_bm25"
# From here on, the planner's estimate of the number of chunks is good enough.
_ESTIMATE_FROM = 1000
_PREPARE_LOCK = 7_316_003


@dataclass(frozen=True, slots=True)
class KeywordState:
    """What a search needs to know before it asks for words."""

    backend: KeywordBackend
    chunk_count: int


def prepare(session: Session, *, wanted: str, k1: float, b: float) -> KeywordBackend:
    """Make the BM25 index where the server can have it; gives what ranks words from now on."""
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _PREPARE_LOCK})
    if wanted in {"auto", "pg_textsearch"} and _loaded(session):
        session.execute(text("CREATE EXTENSION IF NOT EXISTS pg_textsearch"))
        # Settings are bounded numbers, so they may stand in the statement.
        session.execute(
            text(
                f"CREATE INDEX IF NOT EXISTS {BM25_INDEX} ON document_chunks USING bm25 (terms)"
                f" WITH (text_config = 'simple', k1 = {float(k1)}, b = {float(b)})"
            )
        )
    return read_state(session, wanted=wanted).backend


def _loaded(session: Session) -> bool:
    """Whether the extension is there and preloaded: without preloading it cannot be created."""
    return bool(
        session.scalar(
            text(
                """
                SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'pg_textsearch')
                   AND current_setting('shared_preload_libraries') LIKE '%pg_textsearch%'
                """
            )
        )
    )


def read_state(session: Session, *, wanted: str) -> KeywordState:
    """What ranks words right now, by the setting and by what the server has.

    `auto` without pg_textsearch is off: hybrid search is then by meaning alone (seed 000).
    """
    has_index, estimate = session.execute(
        text(
            """
            SELECT to_regclass(:index_name) IS NOT NULL,
                   (SELECT reltuples FROM pg_class WHERE oid = CAST('document_chunks' AS regclass))
            """
        ),
        {"index_name": BM25_INDEX},
    ).one()
    if wanted in {"auto", "pg_textsearch"}:
        backend = KeywordBackend.PG_TEXTSEARCH if has_index else KeywordBackend.OFF
    else:
        backend = KeywordBackend(wanted)
    chunk_count = int(estimate)
    if chunk_count < _ESTIMATE_FROM:
        chunk_count = session.scalar(text("SELECT count(*) FROM document_chunks")) or 0
    return KeywordState(backend=backend, chunk_count=chunk_count)
