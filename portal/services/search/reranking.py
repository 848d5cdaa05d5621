"""Re-ranking: a second, slower model looks again at the best of what was found."""

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
    """Whatever has the text of a passage."""

    @property
    def content(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """`order` are places in the candidates, best first. `scores` are the model's, by place in
    the candidates, None for those that it did not read. `degraded` says in codes what was done
    without."""

    order: tuple[int, ...]
    scores: tuple[float | None, ...]
    degraded: tuple[str, ...] = ()


def rerank(services: Services, query: str, candidates: Sequence[Candidate]) -> Reranked:
    """The first candidates in the order of the re-ranking model, the others behind them as they
    were. Candidates come in the order of fusion, which stays when re-ranking is off, or when the
    model is late, fails or gives something that is no score.
    """
    settings = services.settings.rerank
    read = candidates[: settings.candidates]
    if services.reranker is None or not read:
        return as_they_were(candidates)
    try:
        with metrics.reranking():
            given = services.reranker.scores(
                query, [candidate.content for candidate in read], deadline_s=settings.timeout_s
            )
            scores = _checked(given, len(read))
    except RerankerUnavailable as error:
        log.warning("not_reranked", model=services.reranker.name, reason=error.params["reason"])
        return as_they_were(candidates, error.code)
    # Sorting is stable, so that what the model finds equal stays in the order of fusion.
    best_first = sorted(range(len(read)), key=lambda place: -scores[place])
    unread = range(len(read), len(candidates))
    return Reranked((*best_first, *unread), (*scores, *(None for _ in unread)))


def as_they_were(candidates: Sequence[Candidate], *degraded: str) -> Reranked:
    """The candidates without a second look."""
    count = len(candidates)
    return Reranked(tuple(range(count)), (None,) * count, degraded)


def _checked(scores: npt.ArrayLike, count: int) -> list[float]:
    try:
        array = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RerankerUnavailable(reason=N_("its scores are not numbers")) from error
    if array.shape != (count,):
        got = " × ".join(map(str, array.shape)) or N_("a single number")
        raise RerankerUnavailable(
            reason=N_("asked for %(count)s scores, got %(got)s", count=count, got=got)
        )
    if not np.isfinite(array).all():
        raise RerankerUnavailable(reason=N_("some of its scores are not finite"))
    return [float(score) for score in array]
