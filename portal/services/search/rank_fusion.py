"""Two ranked lists as one, by reciprocal ranks: scores of two kinds need no common scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from portal.domain.semantic import FoundPassage

RRF_K = 60  # Cormack, Clarke and Büttcher, SIGIR 2009.


def rrf_score(ranks: Iterable[int | None], k: int = RRF_K) -> float:
    """The sum of 1 / (k + rank) over ranks from 1; None is in no list."""
    return sum(1 / (k + rank) for rank in ranks if rank is not None)


@dataclass(frozen=True, slots=True)
class Fused:
    """A passage with its rank in each list, from 1, None where it is not in that list."""

    passage: FoundPassage
    dense_rank: int | None
    sparse_rank: int | None

    @property
    def rrf_score(self) -> float:
        """The sum of 1 / (60 + rank) over the lists that hold it."""
        return rrf_score((self.dense_rank, self.sparse_rank))


def fuse(dense: Iterable[FoundPassage], sparse: Iterable[FoundPassage]) -> list[Fused]:
    """Both lists as one, each passage once, highest RRF score first."""
    legs = [list(_each_once(dense)), list(_each_once(sparse))]
    dense_ranks, sparse_ranks = (
        {passage.id: rank for rank, passage in enumerate(leg, 1)} for leg in legs
    )
    # What both found is kept as the dense list has it, which knows the similarity.
    return reranked(
        Fused(passage, dense_ranks.get(passage.id), sparse_ranks.get(passage.id))
        for passage in _each_once(chain(*legs))
    )


def reranked(fused: Iterable[Fused]) -> list[Fused]:
    """By RRF score; of equals the more similar first, and at last by id, so that the order is the
    same each time."""

    def best_first(one: Fused) -> tuple[float, float, str]:
        similarity = one.passage.similarity
        return -one.rrf_score, 1.0 if similarity is None else -similarity, one.passage.id

    return sorted(fused, key=best_first)


def with_similarities(fused: Iterable[Fused], known: Mapping[str, float]) -> list[Fused]:
    """The same passages, with similarities where they had none."""
    return [
        one
        if one.passage.similarity is not None
        else replace(one, passage=replace(one.passage, similarity=known.get(one.passage.id)))
        for one in fused
    ]


def _each_once(passages: Iterable[FoundPassage]) -> Sequence[FoundPassage]:
    seen: dict[str, FoundPassage] = {}
    for passage in passages:
        seen.setdefault(passage.id, passage)
    return tuple(seen.values())
