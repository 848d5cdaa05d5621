"""The terms of a small set of chunks in memory.

A user who has few documents switched on searches the same chunks again and again. Their terms are
fetched once; after that the BM25 scores of a query are a few comparisons of arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text

from portal.domain.search.bm25 import Bm25Parameters
from portal.store.search.selection.row_cache import ROW_VERSION, RowSource

_BYTES_BESIDE = 250
BYTES_PER_CHUNK = 3_000
"""The approximate memory use of a chunk of 230 words."""
_MAX_WORDS = 20_000
# Numbers of 16 bits are sorted by radix, in a tenth of the time that sorting the hashes takes.
_MAX_BUCKETS = 1 << 16
_TERMS_A_BUCKET = 16

_EXACT_LENGTHS = 24
_LENGTH_BITS = 4


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
    # In a selection, which is searched, the terms are in a power of two of buckets by the last bits
    # of their hashes: bucket n begins at `buckets[n]`, and the last of `buckets` is the end. In a
    # single document they are not, since it is only joined.
    buckets: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> TermPostings:
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
        """Join several postings into one."""
        if not parts:
            return cls.of(())
        firsts = np.cumsum([0, *(len(part.lengths) for part in parts[:-1])])
        terms = [len(part.hashes) for part in parts]
        hashes = np.concatenate([part.hashes for part in parts])
        places = np.concatenate([part.places for part in parts])
        places += np.repeat(firsts.astype(np.int32), terms)
        count = min(_MAX_BUCKETS, 1 << (len(hashes) // _TERMS_A_BUCKET).bit_length())
        numbers = (hashes & (count - 1)).astype(np.uint16)
        order = np.argsort(numbers, kind="stable")
        return cls(
            chunk_ids=list(chain.from_iterable(part.chunk_ids for part in parts)),
            document_ids=list(chain.from_iterable(part.document_ids for part in parts)),
            lengths=np.concatenate([part.lengths for part in parts]),
            hashes=hashes[order],
            places=places[order],
            buckets=np.append(0, np.cumsum(np.bincount(numbers, minlength=count))),
        )

    def bm25(
        self, weights: Mapping[str, float], mean_length: float, parameters: Bm25Parameters
    ) -> NDArray[np.float64]:
        """Return BM25 scores (chunks,) for words with these weights."""
        norms = parameters.norms(self.lengths, mean_length)
        scores = np.zeros(len(self.lengths))
        for word, weight in weights.items():
            holders = self._holders(hash(word))
            counts = np.bincount(holders, minlength=len(scores))
            scores += parameters.scores(weight, counts, norms)
        return scores

    def _holders(self, term: int) -> NDArray[np.int32]:
        """Return the place of each chunk as often as it has a term."""
        hashes, places = self.hashes, self.places
        if self.buckets is not None:
            number = term & (len(self.buckets) - 2)
            bucket = slice(self.buckets[number], self.buckets[number + 1])
            hashes, places = hashes[bucket], places[bucket]
        holders: NDArray[np.int32] = places[hashes == term]
        return holders

    @property
    def mean_length(self) -> float:
        """Return the mean length in terms; 1 without a chunk."""
        return max(1.0, float(self.lengths.mean())) if len(self.lengths) else 1.0

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory use."""
        buckets = 0 if self.buckets is None else self.buckets.nbytes
        terms = self.hashes.nbytes + self.places.nbytes
        return _BYTES_BESIDE * (1 + len(self.lengths)) + terms + buckets


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
    are not in it. `mean_length` is the mean length of its chunks, in terms."""

    weights: dict[str, float] = field(default_factory=dict)
    mean_length: float | None = None


class WeightsCache:
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


def _words_by(key: str) -> RowSource[TermPostings]:
    name = f"CAST(c.{key} AS text)"
    version = ROW_VERSION.format(row="c")
    found = f"FROM document_chunks c WHERE c.{key} = ANY(CAST(:ids AS uuid[]))"
    return RowSource(
        load=text(f"SELECT {name}, 1, {version}, c.id, c.document_id, c.terms {found}"),
        states=text(
            f"SELECT {name}, count(*), CAST(sum({version}) AS bigint) {found} GROUP BY c.{key}"
        ),
        build=TermPostings.of,
        join=TermPostings.joined,
    )


WORDS_OF_JOBS, WORDS_OF_CHUNKS = _words_by("job_id"), _words_by("id")
