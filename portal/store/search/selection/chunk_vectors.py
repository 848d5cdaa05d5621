"""The vectors of a small set of chunks in memory.

Comparing a query with thousands of vectors takes a millisecond here and several in the server,
which also has to look up their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from portal.domain.embedding import Vector
from portal.store.search.selection.row_cache import ROW_VERSION, RowSource, listed

_BYTES_PER_CHUNK = 400
# Before the values of a vector the server sends their number and two unused bytes.
_HEADER_BYTES = 4
_NONE = np.zeros((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class ChunkVectors:
    """Vectors (chunks, dimensions) of unit length, with the ids of chunks and of documents."""

    chunk_ids: Sequence[str]
    document_ids: Sequence[str]
    vectors: npt.NDArray[np.float32]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> ChunkVectors:
        """Build from rows of chunk ids and document ids, as PostgreSQL arrays, and vectors in its
        binary form."""
        return cls.joined(
            [
                cls(chunks := listed(chunk_ids), listed(document_ids), _read(vectors, len(chunks)))
                for chunk_ids, document_ids, vectors in rows
            ]
        )

    @classmethod
    def joined(cls, parts: Sequence[ChunkVectors]) -> ChunkVectors:
        """Join several into one."""
        parts = [part for part in parts if part.chunk_ids]
        if len(parts) == 1:
            return parts[0]
        return cls(
            list(chain.from_iterable(part.chunk_ids for part in parts)),
            list(chain.from_iterable(part.document_ids for part in parts)),
            np.concatenate([part.vectors for part in parts] or [_NONE]),
        )

    def compare(
        self, plain_vector: Vector, corrected_vector: Vector, *, is_corrected: bool
    ) -> ChunkSimilarities:
        """Return the similarities of all chunks to a query."""
        wanted = plain_vector, corrected_vector
        # Einsum gives the same vector the same cosine wherever it is in the matrix. BLAS does not,
        # and starts threads, which takes longer than the products when the cores are busy.
        plain, corrected = (
            np.einsum("cd,d->c", self.vectors, vector)
            if self.chunk_ids
            else np.zeros(0, np.float32)
            for vector in wanted
        )
        return ChunkSimilarities(self, plain, corrected, corrected if is_corrected else plain)

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the place of each chunk, by id."""
        return {name: place for place, name in enumerate(self.chunk_ids)}

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory use."""
        return _BYTES_PER_CHUNK * (1 + len(self.chunk_ids)) + self.vectors.nbytes


def _read(values: bytes, count: int) -> npt.NDArray[np.float32]:
    rows = np.frombuffer(values, np.uint8).reshape(count, -1)[:, _HEADER_BYTES:]
    return np.ascontiguousarray(rows).view(">f4").astype(np.float32)


@dataclass(frozen=True, slots=True)
class ChunkSimilarities:
    """Cosines (chunks,) to the plain and the corrected vector of a query, and `order`, those of the
    two that the search is ordered by."""

    of: ChunkVectors
    plain: npt.NDArray[np.float32]
    corrected: npt.NDArray[np.float32]
    order: npt.NDArray[np.float32]

    def nearest(self, limit: int) -> list[tuple[str, str, float, float]]:
        """Return the nearest chunks in order: id, document, cosine, corrected cosine."""
        places = np.arange(len(self.order))
        if len(places) > limit:
            places = np.flatnonzero(self.order >= np.partition(self.order, -limit)[-limit])
        ids, near = self.of.chunk_ids, self.order
        best = sorted(places.tolist(), key=lambda place: (-near[place], ids[place]))[:limit]
        return [(ids[place], self.of.document_ids[place], *self._at(place)) for place in best]

    def of_chunk(self, chunk_id: str) -> tuple[float | None, float | None]:
        """Return the cosine and the corrected cosine, None without a vector."""
        place = self.of.places.get(chunk_id)
        return (None, None) if place is None else self._at(place)

    def _at(self, place: int) -> tuple[float, float]:
        return float(self.plain[place]), float(self.corrected[place])


@lru_cache(maxsize=4)
def vectors_of_jobs(partition: str) -> RowSource[ChunkVectors]:
    """Return the source that reads the vectors of jobs from a model's partition."""
    state = f"CAST(e.job_id AS text), count(*), CAST(sum({ROW_VERSION.format(row='e')}) AS bigint)"
    found = f"FROM {partition} e WHERE e.job_id = ANY(CAST(:ids AS uuid[])) GROUP BY e.job_id"
    return RowSource(
        load=text(
            f"""
            SELECT {state}, CAST(array_agg(e.chunk_id) AS text),
                   CAST(array_agg(e.document_id) AS text),
                   string_agg(vector_send(e.embedding), '')
            {found}
            """
        ),
        states=text(f"SELECT {state} {found}"),
        build=ChunkVectors.of,
        join=ChunkVectors.joined,
    )
