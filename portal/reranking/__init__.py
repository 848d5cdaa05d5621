"""Re-ranking models, one provider per file. To add one, write a file and a line in `PROVIDERS`."""

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
    """Return the configured model, with a time limit, or None if re-ranking is off.

    It is loaded on first use, so a process starts even if the model cannot be used.
    """
    if settings.provider == "off":
        return None
    return TimeBoxed(PROVIDERS[settings.provider](settings))
