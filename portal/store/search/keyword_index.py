"""What this server can rank words with right now."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import structlog
from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.search import KeywordBackend


@dataclass(frozen=True, slots=True)
class WordIndex:
    """A BM25 index, the table that it is over, and that table's column with the chunk's id."""

    name: str
    table: str
    chunk_id: str


ALL_CHUNKS = WordIndex("ix_document_chunks_bm25", "document_chunks", "id")
# An index weighs words by all that is in it: by this one, nothing private has a part in the scores.
SHARED_CHUNKS = WordIndex("ix_shared_chunks_bm25", "shared_chunks", "chunk_id")
_NAMES = f"('{ALL_CHUNKS.name}', '{SHARED_CHUNKS.name}')"
_COUNT = 2

# From here on, the planner's estimate of the number of chunks is good enough.
_ESTIMATE_FROM = 1000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KeywordState:
    """What a search needs to know before it asks for words."""

    backend: KeywordBackend
    chunk_count: int


# Before 1.4.0 an index answers wrongly, and in silence, after every start of the server and every
# crash of a session: until its guard (portal.database.bm25) has rebuilt it, it is not asked.
# Columns for a SELECT list, from which `state_of` tells.
STATE_COLUMNS = f"""
    (SELECT count(*) FROM pg_index
     WHERE indisvalid AND indexrelid IN (to_regclass('{ALL_CHUNKS.name}'),
                                         to_regclass('{SHARED_CHUNKS.name}'))
    ) = {_COUNT} AS has_keyword_index,
    EXISTS (
        SELECT FROM bm25_index_state
        WHERE index_name IN {_NAMES} AND server_started_at < greatest(
            pg_postmaster_start_time(),
            (SELECT max(backend_start) FROM pg_stat_activity
             WHERE backend_type = 'checkpointer')
        )
    ) AND EXISTS (
        SELECT FROM pg_extension
        WHERE extname = 'pg_textsearch' AND extversion ~ '^(0|1[.][0-3])([.]|$)'
    ) AS has_forgotten,
    (SELECT reltuples FROM pg_class WHERE oid = CAST('document_chunks' AS regclass))
        AS chunk_estimate
"""


def read_state(session: Session, *, wanted: str) -> KeywordState:
    """What ranks words right now, by the setting and by what the server has."""
    row = session.execute(text(f"SELECT {STATE_COLUMNS}")).one()
    return state_of(session, row, wanted=wanted)


def state_of(session: Session, row: Any, *, wanted: str) -> KeywordState:
    """What ranks words, by the setting and by a row that has `STATE_COLUMNS`.

    `auto` without pg_textsearch is off: hybrid search is then by meaning alone. That it
    is off, or on again, is logged once, not for every search.
    """
    if wanted in {"auto", "pg_textsearch"}:
        is_ready = row.has_keyword_index and not row.has_forgotten
        backend = KeywordBackend.PG_TEXTSEARCH if is_ready else KeywordBackend.OFF
        _notice.tell(is_ready=is_ready, has_index=row.has_keyword_index)
    else:
        backend = KeywordBackend(wanted)
    chunk_count = int(row.chunk_estimate)
    if chunk_count < _ESTIMATE_FROM:
        chunk_count = session.scalar(text("SELECT count(*) FROM document_chunks")) or 0
    return KeywordState(backend=backend, chunk_count=chunk_count)


class _Notice:
    """Tells of a change once in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._was_ready = True

    def tell(self, *, is_ready: bool, has_index: bool) -> None:
        with self._lock:
            if is_ready == self._was_ready:
                return
            self._was_ready = is_ready
        if is_ready:
            log.info("keyword search is back")
            return
        log.warning(
            "keyword search is off, searches go by meaning alone",
            reason="the index is being rebuilt" if has_index else "there is no keyword index",
            remedy="a worker mends it within a minute where it can; `portal doctor` tells more",
        )


_notice = _Notice()
