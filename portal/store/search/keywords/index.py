"""The keyword backends that this server can use right now."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any

import structlog
from sqlalchemy import text

from portal.domain.search import NO_TEXTSEARCH, TEXTSEARCH_REMEDY, KeywordBackend
from portal.domain.search.bm25 import INDEXES, SERVER_STARTED_AT
from portal.store.connections.replicas import HAS_EARLY_TEXTSEARCH
from portal.store.statements import Reader, fetch, fetch_named

_NAMES = ", ".join(f"'{index.name}'" for index in INDEXES)
_OIDS = ", ".join(f"to_regclass('{index.name}')" for index in INDEXES)

_COUNT_CHUNKS = text("SELECT count(*) FROM document_chunks")
# From this number on, the planner's estimate of the number of chunks is accurate enough.
_ESTIMATE_FROM = 1000

# Cover density of a chunk's analysed terms for the words bound to :words.
COVER_DENSITY = """CAST(ts_rank_cd(CAST(:label_weights AS float4[]), c.terms_vector,
    to_tsquery('simple', :words), CAST(:normalization AS int)) AS float8)"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KeywordState:
    """The keyword backends in a hybrid search (`backend`) and for keywords alone (`alone`). Without
    BM25 the first is off, unless the setting names another, and the second is `ts_rank_cd`.
    `is_rebuilding`: BM25 is only missing for some minutes. `lacks_shared`: the index of shared
    chunks does not have the words of all of them yet."""

    backend: KeywordBackend
    chunk_count: int
    alone: KeywordBackend
    is_rebuilding: bool = False
    lacks_shared: bool = False


# Before 1.4.0 an index gives wrong results silently after every start of the server and every crash
# of a session, so it is not used until its guard (portal.database.bm25) has rebuilt it. It is not
# written to the log either: a replica has an empty file, also when it becomes the primary. These
# are columns for a SELECT list, which `state_of` reads.
STATE_COLUMNS = f"""
    (SELECT count(*) FROM pg_index
     WHERE indisvalid AND indexrelid IN ({_OIDS})
    ) = {len(INDEXES)} AS has_keyword_index,
    (pg_is_in_recovery() OR EXISTS (
        SELECT FROM bm25_index_state
        WHERE index_name IN ({_NAMES}) AND server_started_at <> {SERVER_STARTED_AT}
    )) AND {HAS_EARLY_TEXTSEARCH} AS has_forgotten,
    EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_textsearch') AS has_textsearch,
    (SELECT chunk_id FROM shared_chunks WHERE terms IS NULL ORDER BY chunk_id LIMIT 1)
        IS NOT NULL AS lacks_shared,
    (SELECT reltuples FROM pg_class WHERE oid = CAST('document_chunks' AS regclass))
        AS chunk_estimate
"""


_STATE = text(f"SELECT {STATE_COLUMNS}")


def read_state(reader: Reader, *, wanted: str, logs: bool = True) -> KeywordState:
    """Return the keyword backends by the setting and by what the server has; `logs` is passed to
    `state_of`, for processes that search afterwards."""
    (row,) = fetch_named(reader, _STATE, {})
    return state_of(reader, row, wanted=wanted, logs=logs)


def state_of(reader: Reader, row: Any, *, wanted: str, logs: bool = True) -> KeywordState:
    """Return the keyword backends by the setting and by a row that has `STATE_COLUMNS`.

    A change is logged once in each process, not for every search.
    """
    is_bm25 = wanted in {"auto", "pg_textsearch"}
    is_ready = False
    if is_bm25:
        is_ready = row.has_keyword_index and not row.has_forgotten
        backend = KeywordBackend.PG_TEXTSEARCH if is_ready else KeywordBackend.OFF
        alone = backend if is_ready else KeywordBackend.TSVECTOR
        if logs:
            _notice.tell(row, is_ready=is_ready)
    else:
        backend = alone = KeywordBackend(wanted)
    chunk_count = int(row.chunk_estimate)
    if chunk_count < _ESTIMATE_FROM:
        ((chunk_count,),) = fetch(reader, _COUNT_CHUNKS, {})
    return KeywordState(
        backend,
        chunk_count,
        alone,
        is_rebuilding=is_bm25 and row.has_textsearch and not is_ready,
        lacks_shared=is_ready and row.lacks_shared,
    )


class _Notice:
    """Logs a change once in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._was_ready = True

    def tell(self, row: Any, *, is_ready: bool) -> None:
        with self._lock:
            if is_ready == self._was_ready:
                return
            self._was_ready = is_ready
        if is_ready:
            log.info("hybrid search uses words again")
            return
        if not row.has_textsearch:
            reason, remedy = NO_TEXTSEARCH, TEXTSEARCH_REMEDY
        else:
            reason = "the keyword index is " + (
                "being rebuilt" if row.has_keyword_index else "missing"
            )
            remedy = "a running worker rebuilds it, in minutes where there are many chunks"
        log.warning(
            "hybrid search is semantic only; searches for words alone rank by ts_rank_cd",
            reason=reason,
            remedy=remedy,
        )


_notice = _Notice()
