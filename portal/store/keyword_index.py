"""What this server can rank words with right now."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.search import KeywordBackend

BM25_INDEX = "ix_document_chunks_bm25"
# From here on, the planner's estimate of the number of chunks is good enough.
_ESTIMATE_FROM = 1000


@dataclass(frozen=True, slots=True)
class KeywordState:
    """What a search needs to know before it asks for words."""

    backend: KeywordBackend
    chunk_count: int


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
