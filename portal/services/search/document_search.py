"""Searching documents: each once, by the passage that scores best, its score reproducible.

What a hit shows adds up: ``final_score`` is just the weighted sum of ``text_score`` and
``vec_score`` as they stand beside it. ADR 14 says why passages of one document are not all shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.domain.people import User
from portal.domain.search import Fusion, SearchHit, SearchRequest, Unit, Weights
from portal.errors import InvalidInput, verbatim
from portal.services import Services
from portal.services.search import engine
from portal.text.scripts import has_visible_text


@dataclass(frozen=True, slots=True)
class DocumentHit:
    """A document found. `text_score` is BM25 as a share of the best passage's, in [0, 1],
    `vec_score` the cosine to the question; either is 0 where there is none. `chunk` is the
    document's best."""

    chunk: SearchHit
    text_score: float
    vec_score: float
    final_score: float


@dataclass(frozen=True, slots=True)
class DocumentsFound:
    """Hits by `final_score`, best first. `degraded` says in codes what was done without."""

    query: str
    hits: tuple[DocumentHit, ...]
    degraded: tuple[str, ...]


def search(
    services: Services, user: User, query: str, *, limit: int, weights: Weights
) -> DocumentsFound:
    """The best `limit` documents of those that count for a person, fewer where no more have a word
    of the question in them or a meaning on its side.

    The query is text and nothing else: what looks like SQL, markup or a search operator is looked
    for. Raises InvalidInput for an empty query or weights that come to nothing, and what
    `searching.search` raises.
    """
    if not has_visible_text(query):
        raise InvalidInput(reason=verbatim("query"))
    if weights.text + weights.vector <= 0:
        raise InvalidInput(reason=verbatim("weights"))
    outcome = engine.search(
        services,
        user,
        SearchRequest(
            query,
            top_n=limit,
            fusion=Fusion.WEIGHTED,
            weights=weights,
            operators=False,
            one_hit_per=Unit.DOCUMENT,
            as_shown=True,
        ),
    )
    hits = [_scored(chunk, weights) for chunk in outcome.hits]
    return DocumentsFound(query, tuple(sorted(hits, key=_best_first)), outcome.degraded)


def default_weights(services: Services) -> Weights:
    """What counts where a request does not say."""
    weights = services.settings.search.weights
    return Weights(vector=weights.vector, text=weights.text)


def _scored(chunk: SearchHit, weights: Weights) -> DocumentHit:
    text, vector = chunk.text_score, chunk.vector_score or 0.0
    return DocumentHit(chunk, text, vector, weights.text * text + weights.vector * vector)


def _best_first(hit: DocumentHit) -> tuple[float, float, bytes]:
    # The statement adds up in another order: sums that differ in their last digit would stand the
    # wrong way round. Among equals the order is the statement's.
    return -hit.final_score, -hit.vec_score, hit.chunk.chunk_id.bytes
