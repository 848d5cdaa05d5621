"""Reranking: a second, slower model reorders the best candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import structlog

from portal.errors import N_, RerankerUnavailable
from portal.observability import metrics
from portal.services import Services

log = structlog.get_logger(__name__)


class Candidate(Protocol):
    """A candidate with the text of a chunk."""

    @property
    def content(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """The result of reranking. `order` holds indexes of the candidates, best first. `scores` are
    the model's, by index of the candidate, None for those that it did not score. `degraded` lists
    codes of what was left out."""

    order: tuple[int, ...]
    scores: tuple[float | None, ...]
    degraded: tuple[str, ...] = ()


def rerank(services: Services, query: str, candidates: Sequence[Candidate]) -> Reranked:
    """Reorder the first candidates by the reranking model and append the others. Candidates come in
    the order of fusion, which is kept if reranking is off, late or failing, or returns invalid
    scores."""
    settings = services.settings.rerank
    read = candidates[: settings.candidates]
    if services.reranker is None or not read:
        return not_reranked(candidates)
    try:
        with metrics.reranking():
            given = services.reranker.scores(
                query, [candidate.content for candidate in read], deadline_s=settings.timeout_s
            )
            scores = _checked(given, len(read))
    except RerankerUnavailable as error:
        log.warning("not_reranked", model=services.reranker.name, reason=error.reason)
        return not_reranked(candidates, error.code)
    # The sort is stable, so that ties keep the order of fusion.
    best_first = sorted(range(len(read)), key=lambda place: -scores[place])
    unread = range(len(read), len(candidates))
    return Reranked((*best_first, *unread), (*scores, *(None for _ in unread)))


def not_reranked(candidates: Sequence[Candidate], *degraded: str) -> Reranked:
    """Return the candidates in their order, without reranking."""
    count = len(candidates)
    return Reranked(tuple(range(count)), (None,) * count, degraded)


def _checked(scores: npt.ArrayLike, count: int) -> list[float]:
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RerankerUnavailable("its scores are not numbers") from error
    if array.shape != (count,):
        got = " × ".join(map(str, array.shape)) or N_("a single number")
        raise RerankerUnavailable("asked for %(count)s scores, got %(got)s", count=count, got=got)
    if not np.isfinite(array).all():
        raise RerankerUnavailable("some of its scores are not finite")
    return [float(score) for score in array]
