"""The offers of both legs, merged from the hits of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from portal.domain.search.fusion import Offer


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of both legs, each chunk once, unordered. `documents` has the document of each
    chunk, if requested."""

    offers: Sequence[Offer]
    documents: Mapping[str, str] = field(default_factory=dict)


Hit = tuple[str, str, float | None, float | None, float]
"""A chunk that a leg found: its id, its document's, empty if not requested, its cosine to the query
as it is and as corrected (likeness), None without a vector, and its BM25 score. A plain tuple,
because a search makes hundreds."""


def hits_of(rows: Iterable[Sequence[Any]]) -> list[Hit]:
    """Return the hits in the rows of arrays that the statements of a leg return."""
    hits: list[Hit] = []
    for chunk_ids, document_ids, cosines, likenesses, scores in rows:
        if chunk_ids is not None:
            names = chunk_ids[1:-1].split(",")
            documents = document_ids[1:-1].split(",") if document_ids else repeat("")
            columns = names, documents, cosines, likenesses, scores or repeat(0.0)
            hits += zip(*columns, strict=False)
    return hits


def merge_hits(by_vector: Sequence[Hit], by_words: Sequence[Hit], *, limit: int) -> list[Offer]:
    """Return the offers of both legs, each chunk once. Hits by words may come from several
    statements."""
    offers: dict[str, Offer] = {}
    for rank, (name, _, cosine, likeness, _) in enumerate(by_vector, 1):
        offers[name] = Offer(name, rank, None, cosine, likeness)
    best = sorted(by_words, key=lambda hit: (-hit[-1], hit[0]))[:limit]
    for rank, (name, _, cosine, likeness, bm25) in enumerate(best, 1):
        nearest = offers[name].vector_rank if name in offers else None
        offers[name] = Offer(name, nearest, rank, cosine, likeness, bm25)
    return list(offers.values())
