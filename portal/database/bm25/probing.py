"""A probe of a BM25 index: whether it finds an existing chunk, and counts them all."""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from portal.database.bm25.indexes import Bm25State, savepoint
from portal.domain.search.bm25 import ALL_CHUNKS, Bm25Index

# How far the index may lag behind the table during concurrent writes.
_COUNT_TOLERANCE = 0.05


@dataclass(frozen=True)
class Probe:
    """Whether an existing chunk is found, and whether all are counted."""

    term: str | None
    matches: int
    row_count: int
    all_rows: int
    counted: int | None
    slack: int

    @property
    def is_exact(self) -> bool:
        """Return whether the index counts exactly the rows that exist."""
        return self.counted is None or self.row_count <= self.counted <= self.all_rows

    @property
    def answers(self) -> bool:
        if self.term is not None and self.matches == 0:
            return False
        if self.counted is None or self.all_rows == 0:
            return True
        # Too few: lost in a restart. Too many: deleted or rolled back rows, which it never forgets.
        min_count = self.row_count * (1 - _COUNT_TOLERANCE) - self.slack
        max_count = self.all_rows * (1 + _COUNT_TOLERANCE) + self.slack
        return min_count <= self.counted <= max_count


def is_healthy(connection: Connection, index: Bm25Index, state: Bm25State) -> bool:
    """Return whether an index was built since the server started, and answers as it should."""
    if state.state != "ready":
        return False
    try:
        with savepoint(connection):
            return probe(connection, index).answers
    except DBAPIError as error:
        # A cancelled statement says nothing about the index.
        if error.connection_invalidated or isinstance(error.orig, psycopg.errors.QueryCanceled):
            raise
        return False  # A damaged file causes an error.


def probe(connection: Connection, index: Bm25Index = ALL_CHUNKS) -> Probe:
    """Query an index for a word of the newest chunk, and for its number of chunks."""
    rows, all_rows = connection.execute(
        text(f"SELECT count(*) FILTER (WHERE terms <> ''), count(*) FROM {index.table}")
    ).one()
    term = _term_of_newest_chunk(connection, index)
    matches = 0
    if term is not None:
        matches = connection.execute(
            text(
                f"""
                SELECT count(*) FROM (
                    SELECT terms <@> to_bm25query(:term, '{index.name}') AS score
                      FROM {index.table}
                     ORDER BY terms <@> to_bm25query(:same_term, '{index.name}')
                     LIMIT 5
                ) AS best WHERE score < 0
                """
            ),
            {"term": term, "same_term": term},
        ).scalar_one()
    return Probe(
        term, matches, rows, all_rows, _count_indexed(connection, index), index.count_slack
    )


def _term_of_newest_chunk(connection: Connection, index: Bm25Index) -> str | None:
    """Return the longest word of a chunk in the table's last pages, where new chunks go, or of any
    chunk if those have none."""
    last_pages = f"""
        SELECT terms FROM {index.table}
         WHERE terms <> '' AND ctid >= format('(%s,0)', greatest(0,
                   pg_relation_size('{index.table}')
                   / current_setting('block_size')::int - 8))::tid
         ORDER BY {index.newest_first} LIMIT 1
    """
    terms = connection.execute(text(last_pages)).scalar()
    if terms is None:
        anywhere = f"SELECT terms FROM {index.table} WHERE terms <> '' LIMIT 1"
        terms = connection.execute(text(anywhere)).scalar()
    words = [word for word in (terms or "").split() if word.isalnum()]
    return max(words, key=len, default=None)


def _count_indexed(connection: Connection, index: Bm25Index) -> int | None:
    """Return how many chunks the index counts; None without the privilege to ask."""
    try:
        with savepoint(connection):
            query = text("SELECT bm25_summarize_index(:name)")
            summary = connection.execute(query, {"name": index.name}).scalar_one()
    except DBAPIError:
        return None
    found = re.search(r"total_docs:\s*(\d+)", summary)
    return int(found[1]) if found else None
