"""Rank texts in memory by BM25, for collections without a word index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from portal.store.search.selection.term_postings import Bm25Shape, indexed_length
from portal.text.terms.analyser import index_terms, query_terms

# What changed is counted apart from the rest until it is that many texts and such a part of it.
_MAX_CHANGED = 500
_MAX_PART = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class _Postings:
    """Term counts of texts. `lengths` (texts,) are in terms, as the index counts them. The texts
    that have the term number n are `texts[starts[n]:starts[n + 1]]`, with the frequencies at the
    same places of `counts`."""

    lengths: NDArray[np.float64]
    terms: Mapping[str, int]
    starts: NDArray[np.int64]
    texts: NDArray[np.int32]
    counts: NDArray[np.float32]

    @classmethod
    def count(cls, texts: Sequence[str]) -> _Postings:
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
        return self.texts[:0] if number is None else self.texts[self._texts_with(number)]

    def bm25(
        self, weights: Mapping[str, float], mean_length: float, shape: Bm25Shape
    ) -> NDArray[np.float64]:
        """Return BM25 scores (texts,) for words of given weights."""
        norms = shape.norms(self.lengths, mean_length)
        scores = np.zeros(len(self.lengths))
        for word, weight in weights.items():
            if (number := self.terms.get(word)) is None:
                continue
            held = self._texts_with(number)
            texts, counts = self.texts[held], self.counts[held].astype(np.float64)
            scores[texts] += shape.scores(weight, counts, norms[texts])
        return scores

    def _texts_with(self, number: int) -> slice:
        return slice(self.starts[number], self.starts[number + 1])


@dataclass(frozen=True, slots=True)
class _Text:
    terms: str
    content_type: str | None


@dataclass(slots=True)
class _Segment:
    """Postings of the texts under `ids`; `is_live` (texts,) marks those that have not changed
    since."""

    ids: Sequence[str]
    postings: _Postings
    is_live: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Mapping[str, _Text]) -> _Segment:
        postings = _Postings.count([text.terms for text in texts.values()])
        return cls(list(texts), postings, np.ones(len(texts), dtype=np.bool_))


class LexicalIndex:
    """Texts under ids, ranked as the portal ranks words: terms by its analyser, weights by ln(1 +
    (N - n + ½) / (n + ½)). Not safe between threads; its owner locks."""

    def __init__(self, shape: Bm25Shape) -> None:
        self._shape = shape
        self._texts: dict[str, _Text] = {}
        self._base = _Segment.of({})
        self._places: dict[str, int] = {}
        self._changed: dict[str, _Text] = {}
        self._recent: _Segment | None = None

    def __len__(self) -> int:
        return len(self._texts)

    def put(self, key: str, text: str, content_type: str | None) -> None:
        self.remove(key)
        self._texts[key] = self._changed[key] = _Text(index_terms(text), content_type)
        self._recent = None

    def remove(self, key: str) -> None:
        self._texts.pop(key, None)
        if self._changed.pop(key, None) is not None:
            self._recent = None
        place = self._places.pop(key, None)
        if place is not None:
            self._base.is_live[place] = False

    def best(self, query: str, limit: int, content_type: str | None) -> list[str]:
        """Return the ids of the best texts of this type that contain a query term, best first."""
        words = query_terms(query)
        segments = self._segments()
        holders = {
            word: sum(int(each.is_live[each.postings.holders(word)].sum()) for each in segments)
            for word in words
        }
        total = len(self._texts)
        weights = {
            word: math.log1p((total - held + 0.5) / (held + 0.5))
            for word, held in holders.items()
            if held
        }
        if not weights:
            return []
        mean = sum(float(each.postings.lengths[each.is_live].sum()) for each in segments) / total
        scored = [
            (float(scores[place]), each.ids[place])
            for each in segments
            for scores in [each.postings.bm25(weights, mean, self._shape)]
            for place in np.flatnonzero((scores > 0) & each.is_live).tolist()
            if content_type in (None, self._texts[each.ids[place]].content_type)
        ]
        scored.sort(key=lambda one: (-one[0], one[1]))
        return [key for _score, key in scored[:limit]]

    def _segments(self) -> tuple[_Segment, _Segment]:
        if len(self._changed) > max(_MAX_CHANGED, _MAX_PART * len(self._places)):
            self._base = _Segment.of(self._texts)
            self._places = {key: place for place, key in enumerate(self._base.ids)}
            self._changed, self._recent = {}, None
        if self._recent is None:
            self._recent = _Segment.of(self._changed)
        return self._base, self._recent
