"""An in-memory inverted index of a small set of chunks: which have which terms, and how often.

A user who has few documents switched on searches the same chunks again and again. Their terms are
fetched and counted once; after that the BM25 scores of a query are a few additions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from uuid import UUID

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

_CACHE_BYTES = 32 * 1024 * 1024
_BYTES_A_TERM = 120  # The term's text, and its slot in the dictionary.
_BYTES_A_CHUNK = 200
_MAX_WORDS = 20_000

_EXACT_LENGTHS = 24
_LENGTH_BITS = 4


@dataclass(frozen=True, slots=True)
class Bm25Shape:
    """The two free parameters of BM25, as the index was built with."""

    k1: float
    b: float


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Term counts of texts. `lengths` (texts,) are in terms, as the index counts them. The texts
    that have the term number n are `texts[starts[n]:starts[n + 1]]`, with the frequencies at the
    same places of `counts`."""

    lengths: NDArray[np.float64]
    terms: Mapping[str, int]
    starts: NDArray[np.int64]
    texts: NDArray[np.int32]
    counts: NDArray[np.float32]

    @classmethod
    def count(cls, texts: Sequence[str]) -> Postings:
        """Count the terms of texts, each given as its terms separated by white space."""
        # All texts in one pass: a search after a change of the selection waits for this.
        split = [text.split() for text in texts]
        held_terms = list(chain.from_iterable(split))
        terms = {term: number for number, term in enumerate(dict.fromkeys(held_terms))}
        numbers = np.fromiter(map(terms.__getitem__, held_terms), np.int64, len(held_terms))
        lengths = np.array(list(map(len, split)), np.int64)
        holders = np.repeat(np.arange(len(texts)), lengths)
        # Sorted by term, then by text; repeats within a text are adjacent and counted.
        keys, counts = np.unique(numbers * max(1, len(texts)) + holders, return_counts=True)
        held, places = np.divmod(keys, max(1, len(texts)))
        return cls(
            lengths=np.array([indexed_length(int(length)) for length in lengths], np.float64),
            terms=terms,
            starts=np.searchsorted(held, np.arange(len(terms) + 1)),
            texts=places.astype(np.int32),
            counts=counts.astype(np.float32),
        )

    def holders(self, term: str) -> NDArray[np.int32]:
        """Return the indexes of the texts that have a term."""
        number = self.terms.get(term)
        return self.texts[:0] if number is None else self.texts[self._held(number)]

    def bm25(
        self, weights: Mapping[str, float], mean_length: float, shape: Bm25Shape
    ) -> NDArray[np.float64]:
        """Return scores (texts,) for words of given weights: Robertson and Zaragoza, The
        Probabilistic Relevance Framework, 2009, equation 3.15."""
        norms = shape.k1 * (1 - shape.b + shape.b * self.lengths / mean_length)
        scores = np.zeros(len(self.lengths))
        for word, weight in weights.items():
            if (number := self.terms.get(word)) is None:
                continue
            held = self._held(number)
            texts, counts = self.texts[held], self.counts[held].astype(np.float64)
            scores[texts] += weight * counts * (shape.k1 + 1) / (counts + norms[texts])
        return scores

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory use, with the ids of each text."""
        arrays = self.starts.nbytes + self.texts.nbytes + self.counts.nbytes
        return arrays + _BYTES_A_TERM * len(self.terms) + _BYTES_A_CHUNK * (1 + len(self.lengths))

    def _held(self, number: int) -> slice:
        return slice(self.starts[number], self.starts[number + 1])


@dataclass(frozen=True, slots=True, eq=False)
class TermPostings:
    """Term counts of chunks, with the ids of the chunks and their documents."""

    chunk_ids: Sequence[UUID]
    document_ids: Sequence[UUID]
    postings: Postings

    @classmethod
    def of(cls, rows: Sequence[tuple[UUID, UUID, str]]) -> TermPostings:
        """Build from chunks with their documents and their terms separated by single spaces."""
        counted = Postings.count([terms for _, _, terms in rows])
        return cls([row[0] for row in rows], [row[1] for row in rows], counted)

    def bm25(
        self, weights: Mapping[str, float], mean_length: float, shape: Bm25Shape
    ) -> NDArray[np.float64]:
        """Return scores (chunks,), as `Postings.bm25`."""
        return self.postings.bm25(weights, mean_length, shape)

    @property
    def mean_length(self) -> float:
        """Return the mean length in terms; 1 without a chunk."""
        lengths = self.postings.lengths
        return max(1.0, float(lengths.mean())) if len(lengths) else 1.0

    @property
    def size_bytes(self) -> int:
        return self.postings.size_bytes


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
    """A process's LRU cache of postings. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: LRUCache[Hashable, TermPostings] = LRUCache(
            _CACHE_BYTES, getsizeof=lambda postings: postings.size_bytes
        )

    def get(self, key: Hashable, compute: Callable[[], TermPostings]) -> TermPostings:
        """Return the postings under a key that names their dependencies, from the cache or
        computed."""
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None:
            return kept
        found = compute()
        with self._lock:
            # Postings that alone exceed the cache are not stored.
            if found.size_bytes <= _CACHE_BYTES:
                self._kept[key] = found
        return found
