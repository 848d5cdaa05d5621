"""The terms of a small set of chunks in memory.

A user who has few documents switched on searches the same chunks again and again. Their terms are
fetched once; after that the BM25 scores of a query are a few comparisons of arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from threading import Lock
from uuid import UUID

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray
from psycopg.rows import tuple_row
from sqlalchemy import text

from portal.store.statements import Reader, fetch

_CACHE_BYTES = 32 * 1024 * 1024
_BYTES_A_CHUNK = 250
_MAX_WORDS = 20_000

_EXACT_LENGTHS = 24
_LENGTH_BITS = 4


@dataclass(frozen=True, slots=True)
class Bm25Shape:
    """The two free parameters of BM25, as the index was built with."""

    k1: float
    b: float

    def norms(self, lengths: NDArray[np.float64], mean_length: float) -> NDArray[np.float64]:
        """Return what the count of a term is weighed against in texts of these lengths."""
        return self.k1 * (1 - self.b + self.b * lengths / mean_length)


@dataclass(frozen=True, slots=True, eq=False)
class TermPostings:
    """The terms of chunks, one chunk after another: `hashes` (terms,) with repeats, `places`
    (terms,) the chunk that has each, `lengths` (chunks,) in terms, as the index counts them."""

    # Hashes of 64 bits, because making and comparing numbers is many times faster than text.
    # Python's `hash` differs between processes, and these arrays never leave theirs.
    chunk_ids: Sequence[UUID]
    document_ids: Sequence[UUID]
    lengths: NDArray[np.float64]
    hashes: NDArray[np.int64]
    places: NDArray[np.int32]

    @classmethod
    def of(cls, rows: Sequence[tuple[UUID, UUID, str]]) -> TermPostings:
        """Build from chunks with their documents and their terms separated by white space."""
        split = [terms.split() for _, _, terms in rows]
        counts = list(map(len, split))
        return cls(
            chunk_ids=[row[0] for row in rows],
            document_ids=[row[1] for row in rows],
            lengths=np.array(list(map(indexed_length, counts)), np.float64),
            hashes=np.fromiter(map(hash, chain.from_iterable(split)), np.int64, sum(counts)),
            places=np.repeat(np.arange(len(rows), dtype=np.int32), counts),
        )

    @classmethod
    def joined(cls, parts: Sequence[TermPostings]) -> TermPostings:
        """Return several postings as one."""
        if not parts:
            return cls.of(())
        firsts = np.cumsum([0, *(len(part.lengths) for part in parts[:-1])])
        terms = [len(part.hashes) for part in parts]
        return cls(
            chunk_ids=list(chain.from_iterable(part.chunk_ids for part in parts)),
            document_ids=list(chain.from_iterable(part.document_ids for part in parts)),
            lengths=np.concatenate([part.lengths for part in parts]),
            hashes=np.concatenate([part.hashes for part in parts]),
            places=np.concatenate([part.places for part in parts])
            + np.repeat(firsts.astype(np.int32), terms),
        )

    def bm25(
        self, weights: Mapping[str, float], mean_length: float, shape: Bm25Shape
    ) -> NDArray[np.float64]:
        """Return scores (chunks,) for words of given weights: Robertson and Zaragoza, The
        Probabilistic Relevance Framework, 2009, equation 3.15."""
        norms = shape.norms(self.lengths, mean_length)
        scores = np.zeros(len(self.lengths))
        for word, weight in weights.items():
            holders = self.places[self.hashes == hash(word)]
            counts = np.bincount(holders, minlength=len(scores))
            scores += weight * counts * (shape.k1 + 1) / (counts + norms)
        return scores

    @property
    def mean_length(self) -> float:
        """Return the mean length in terms; 1 without a chunk."""
        return max(1.0, float(self.lengths.mean())) if len(self.lengths) else 1.0

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory use."""
        return _BYTES_A_CHUNK * (1 + len(self.lengths)) + self.hashes.nbytes + self.places.nbytes


def indexed_length(count: int) -> int:
    """Return the length of a chunk as the index stores it: in one byte, like Lucene, where values
    above 39 terms keep the four highest bits of what exceeds 24. Chunks added since the index was
    built still have their exact length there, a difference of at most 2 % of a score."""
    if count < _EXACT_LENGTHS:
        return count
    over = count - _EXACT_LENGTHS
    shift = max(0, over.bit_length() - _LENGTH_BITS)
    return _EXACT_LENGTHS + (over >> shift << shift)


@dataclass(slots=True)
class WordWeights:
    """Weights of words in one state of an index, as far as they were looked up: 0 for words that
    are not in it. `mean_length` of its chunks is in terms."""

    weights: dict[str, float] = field(default_factory=dict)
    mean_length: float | None = None


class KeptWeights:
    """A process's cache of the weights in an index's current state. Thread-safe."""

    def __init__(self) -> None:
        self._kept: tuple[Hashable, WordWeights] | None = None

    def get(self, version: Hashable) -> WordWeights:
        """Return the weights of this version, to be read and added to."""
        kept = self._kept
        if kept is not None and kept[0] == version and len(kept[1].weights) < _MAX_WORDS:
            return kept[1]
        made = WordWeights()
        self._kept = version, made
        return made


class KeptPostings:
    """A process's LRU cache of postings, kept by document: after a switch only the words of
    documents that were not on before are fetched, and after changes of the corpus only those of
    documents whose rows changed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: LRUCache[str, _Kept] = LRUCache(
            _CACHE_BYTES, getsizeof=lambda entry: entry.postings.size_bytes
        )

    def get(
        self, reader: Reader, names: Sequence[str], version: Hashable, *, of_chunks: bool = False
    ) -> TermPostings:
        """Return the postings of these jobs, or chunks, as one. What is cached of another version
        of the corpus is compared with its rows."""
        with self._lock:
            kept = {name: entry for name in names if (entry := self._kept.get(name))}
        if old := [name for name, entry in kept.items() if entry.version != version]:
            rows = fetch(reader, _ROWS[of_chunks], {"ids": old}, tuple_row)
            present = {name: (count, total) for name, count, total in rows}
            for name in old:
                if kept[name].rows == present.get(name, _NO_ROWS):
                    kept[name].version = version
                else:
                    del kept[name]
        if missing := [name for name in names if name not in kept]:
            found = fetch(reader, _TERMS[of_chunks], {"ids": missing}, tuple_row)
            loaded = dict.fromkeys(missing, _Kept(version, _NO_ROWS, TermPostings.of(())))
            for name, group in groupby(found, key=itemgetter(0)):
                rows = list(group)
                state = len(rows), sum(row[1] for row in rows)
                loaded[name] = _Kept(version, state, TermPostings.of([row[2:] for row in rows]))
            kept |= loaded
            with self._lock:
                for name, entry in loaded.items():
                    # Postings that alone exceed the cache are not stored.
                    if entry.postings.size_bytes <= _CACHE_BYTES:
                        self._kept[name] = entry
        return TermPostings.joined([kept[name].postings for name in names])


@dataclass(slots=True)
class _Kept:
    """Postings, and the number and the versions of the rows that they were made of, which are the
    same in any version of the corpus from `version` on in which no row was written."""

    version: Hashable
    rows: tuple[int, int]
    postings: TermPostings


_NO_ROWS = (0, 0)
_ROW_VERSION = "CAST(CAST(c.xmin AS text) AS bigint)"
_TERMS, _ROWS = (
    [
        text(
            f"""
            SELECT CAST(c.{key} AS text), {columns} FROM document_chunks c
            WHERE c.{key} = ANY(CAST(:ids AS uuid[])) {order}
            """
        )
        for key in ("job_id", "id")
    ]
    for columns, order in (
        (f"{_ROW_VERSION}, c.id, c.document_id, c.terms", "ORDER BY 1"),
        (f"count(*), CAST(sum({_ROW_VERSION}) AS bigint)", "GROUP BY 1"),
    )
)
