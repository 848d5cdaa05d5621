"""Two ranked lists as one, by reciprocal ranks: scores of two kinds need no common scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from portal.domain.semantic import SemanticHit

RRF_K = 60  # Cormack, Clarke and Büttcher, SIGIR 2009.


def rrf_score(ranks: Iterable[int | None], k: int = RRF_K) -> float:
    """The sum of 1 / (k + rank) over ranks from 1; None is in no list."""
    return sum(1 / (k + rank) for rank in ranks if rank is not None)


@dataclass(frozen=True, slots=True)
class Fused:
    """A passage with its rank in each list, from 1, None where it is not in that list."""

    chunk: SemanticHit
    dense_rank: int | None
    sparse_rank: int | None

    @property
    def rrf_score(self) -> float:
        """The sum of 1 / (60 + rank) over the lists that hold it."""
        return rrf_score((self.dense_rank, self.sparse_rank))


def fuse(dense: Iterable[SemanticHit], sparse: Iterable[SemanticHit]) -> list[Fused]:
    """Both lists as one, each passage once, highest RRF score first."""
    legs = [list(_each_once(dense)), list(_each_once(sparse))]
    dense_ranks, sparse_ranks = (
        {chunk.id: rank for rank, chunk in enumerate(leg, 1)} for leg in legs
    )
    # What both found is kept as the dense list has it, which knows the similarity.
    return reranked(
        Fused(chunk, dense_ranks.get(chunk.id), sparse_ranks.get(chunk.id))
        for chunk in _each_once(chain(*legs))
    )


def reranked(fused: Iterable[Fused]) -> list[Fused]:
    """By RRF score; of equals the more similar first, and at last by id, so that the order is the
    same each time."""

    def best_first(one: Fused) -> tuple[float, float, str]:
        similarity = one.chunk.similarity
        return -one.rrf_score, 1.0 if similarity is None else -similarity, one.chunk.id

    return sorted(fused, key=best_first)


def with_similarities(fused: Iterable[Fused], known: Mapping[str, float]) -> list[Fused]:
    """The same passages, with similarities where they had none."""
    return [
        one
        if one.chunk.similarity is not None
        else replace(one, chunk=replace(one.chunk, similarity=known.get(one.chunk.id)))
        for one in fused
    ]


def _each_once(chunks: Iterable[SemanticHit]) -> Sequence[SemanticHit]:
    seen: dict[str, SemanticHit] = {}
    for chunk in chunks:
        seen.setdefault(chunk.id, chunk)
    return tuple(seen.values())
