"""Rank texts in memory by BM25, for collections without a word index."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter

from portal.domain.search.bm25 import Bm25Parameters
from portal.store.search.selection.term_postings import indexed_length
from portal.text.terms.analyser import index_terms, query_terms

_TABLES = """
    PRAGMA foreign_keys = ON;
    CREATE TABLE texts (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, content_type TEXT, length REAL NOT NULL
    );
    CREATE TABLE postings (
        term TEXT NOT NULL, text_id INTEGER NOT NULL REFERENCES texts ON DELETE CASCADE,
        count INTEGER NOT NULL, PRIMARY KEY (term, text_id)
    ) WITHOUT ROWID;
    CREATE INDEX postings_of_text ON postings (text_id);
"""
_HOLDERS = """
    SELECT term, count(*) FROM postings WHERE term IN (SELECT value FROM json_each(?)) GROUP BY term
"""
_BEST = """
    SELECT t.key
      FROM json_each(:weights) w JOIN postings p ON p.term = w.key JOIN texts t ON t.id = p.text_id
     WHERE :content_type IS NULL OR t.content_type = :content_type
     GROUP BY t.id
     ORDER BY sum(w.value * p.count * (:k1 + 1)
                  / (p.count + :k1 * (1 - :b + :b * t.length / :mean_length))) DESC, t.key
     LIMIT :limit
"""


class LexicalIndex:
    """Texts by id, ranked as in the portal's keyword search: terms of its analyser, weights of
    ln(1 + (N - n + ½) / (n + ½)). Not thread-safe; its owner must lock."""

    def __init__(self, parameters: Bm25Parameters) -> None:
        self._parameters = parameters
        self._tables = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._tables.executescript(_TABLES)

    def __len__(self) -> int:
        return self._state()[0]

    def put(self, key: str, text: str, content_type: str | None) -> None:
        self.remove(key)
        counts = Counter(index_terms(text).split())
        added = self._tables.execute(
            "INSERT INTO texts (key, content_type, length) VALUES (?, ?, ?)",
            (key, content_type, indexed_length(counts.total())),
        )
        postings = [(term, added.lastrowid, count) for term, count in counts.items()]
        self._tables.executemany("INSERT INTO postings VALUES (?, ?, ?)", postings)

    def remove(self, key: str) -> None:
        self._tables.execute("DELETE FROM texts WHERE key = ?", (key,))

    def best(self, query: str, limit: int, content_type: str | None) -> list[str]:
        """Return the ids of the best texts of this type that contain a query term, best first."""
        total, mean_length = self._state()
        holders = self._tables.execute(_HOLDERS, (json.dumps(query_terms(query)),))
        weights = {term: math.log1p((total - n + 0.5) / (n + 0.5)) for term, n in holders}
        values = {
            "weights": json.dumps(weights),
            "content_type": content_type,
            "k1": self._parameters.k1,
            "b": self._parameters.b,
            "mean_length": mean_length,
            "limit": limit,
        }
        return [key for (key,) in self._tables.execute(_BEST, values)]

    def _state(self) -> tuple[int, float]:
        """Return the number of texts, and their mean length in terms."""
        row: tuple[int, float] = self._tables.execute(
            "SELECT count(*), coalesce(avg(length), 0) FROM texts"
        ).fetchone()
        return row
