"""BM25: its parameters, and the two indexes that `portal.database.bm25` builds and searches ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Bm25Index:
    """A BM25 index on the column `terms` of a table: that table's column with the chunk's id, and
    the order of its rows, newest first. Its count of rows may be off by a share of the rows plus
    `count_slack`."""

    name: str
    table: str
    chunk_id: str
    newest_first: str
    count_slack: int


ALL_CHUNKS = Bm25Index(
    "ix_document_chunks_bm25", "document_chunks", "id", "created_at DESC, id", count_slack=20
)
# Words are weighted by everything in an index; with this one, private chunks do not affect scores.
# Chunks that are trashed or made private leave it, but are counted until it is rebuilt.
SHARED_CHUNKS = Bm25Index(
    "ix_shared_chunks_bm25", "shared_chunks", "chunk_id", "ctid DESC", count_slack=0
)
INDEXES = (ALL_CHUNKS, SHARED_CHUNKS)

# After a killed session the postmaster restarts everything but itself: its own start time does not
# change then, but the checkpointer's does.
SERVER_STARTED_AT = """greatest(
    pg_postmaster_start_time(),
    (SELECT max(backend_start) FROM pg_stat_activity WHERE backend_type = 'checkpointer')
)"""


@dataclass(frozen=True, slots=True)
class Bm25Parameters:
    """The free parameters of BM25: `k1` limits the effect of repeated words, `b` penalises long
    chunks."""

    k1: float = 1.2
    b: float = 0.75

    def norms(self, lengths: NDArray[np.float64], mean_length: float) -> NDArray[np.float64]:
        """Return the norms that counts of a term are weighed against in texts of these lengths."""
        return self.k1 * (1 - self.b + self.b * lengths / mean_length)

    def scores(
        self, weight: float, counts: NDArray[Any], norms: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what a word with this weight adds to the scores of texts with these counts of it:
        Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, equation 3.15."""
        added: NDArray[np.float64] = weight * counts * (self.k1 + 1) / (counts + norms)
        return added


DEFAULT_PARAMETERS = Bm25Parameters()
