"""Rank texts in memory by BM25, for collections without a word index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from portal.store.search.term_postings import Bm25Shape, TermPostings
from portal.text.terms.analyser import index_terms, query_terms

# What changed is counted apart from the rest until it is that many texts and such a part of it.
_MAX_CHANGED = 500
_MAX_PART = 0.25
# Collections name their texts as they like; the ids stand beside the postings.
_NO_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class _Text:
    terms: str
    content_type: str | None


@dataclass(slots=True)
class _Segment:
    """Postings of the texts under `ids`; `is_live` (texts,) marks those that have not changed
    since."""

    ids: Sequence[str]
    postings: TermPostings
    is_live: NDArray[np.bool_]

    @classmethod
    def of(cls, texts: Mapping[str, _Text]) -> _Segment:
        postings = TermPostings.of([(_NO_ID, _NO_ID, text.terms) for text in texts.values()])
        return cls(list(texts), postings, np.ones(len(texts), dtype=np.bool_))

    def count(self, word: str) -> int:
        """Count the texts that contain a word."""
        places = self.postings.places[self.postings.hashes == hash(word)]
        return int(self.is_live[np.unique(places)].sum())


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
        holders = {word: sum(each.count(word) for each in segments) for word in words}
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
