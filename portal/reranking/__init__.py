"""Re-ranking models, one provider a file. A new one is a file and a line in `PROVIDERS`."""

from __future__ import annotations

from collections.abc import Callable

from portal.domain.search.reranking import Reranker
from portal.reranking.time_boxed import TimeBoxed
from portal.settings import RerankSettings


def _sentence_transformers(settings: RerankSettings) -> Reranker:
    from portal.reranking.sentence_transformers import CrossEncoderReranker

    return CrossEncoderReranker(model=settings.model)


PROVIDERS: dict[str, Callable[[RerankSettings], Reranker]] = {
    "sentence-transformers": _sentence_transformers,
}


def create_reranker(settings: RerankSettings) -> Reranker | None:
    """The model that the settings name, which keeps to its time; None when re-ranking is off.

    Nothing is loaded yet, so a model that cannot be used stops no process from starting.
    """
    if settings.provider == "off":
        return None
    return TimeBoxed(PROVIDERS[settings.provider](settings))
