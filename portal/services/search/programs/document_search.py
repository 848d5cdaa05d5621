"""Document search: each document once, by its best chunk, with a reproducible score.

``final_score`` is exactly the weighted sum of the ``text_score`` and ``vec_score`` of the same hit.
ADR 14 explains why not all chunks of a document are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.domain.search import Fusion, SearchHit, SearchRequest, Unit, Weights
from portal.errors import InvalidInput
from portal.services import Services
from portal.services.search import engine
from portal.text.characters.scripts import has_visible_text


@dataclass(frozen=True, slots=True)
class DocumentHit:
    """A document hit. `text_score` is BM25 as a share of the best chunk's, in [0, 1], `vec_score`
    the cosine to the query; either is 0 where there is none. `chunk` is the document's best."""

    chunk: SearchHit
    text_score: float
    vec_score: float
    final_score: float


@dataclass(frozen=True, slots=True)
class DocumentsFound:
    """Hits by `final_score`, best first. `degraded` lists codes of what was left out."""

    query: str
    hits: tuple[DocumentHit, ...]
    degraded: tuple[str, ...]


def search(
    services: Services, user: User, query: str, *, limit: int, weights: Weights,
    scope: AskScope | None = None,
) -> DocumentsFound:  # fmt: skip
    """Return the `limit` best documents that are searchable for a user; fewer if no more match by
    word or meaning.

    The query is plain text: SQL, markup and search operators are searched for literally. Raises
    InvalidInput for an empty query or weights that add up to nothing, and the errors of
    `engine.search`.
    """
    if not has_visible_text(query):
        raise InvalidInput("the query has no visible characters; enter a question")
    if weights.text + weights.vector <= 0:
        raise InvalidInput("weights are both 0; at least one must be greater than 0")
    outcome = engine.search(
        services,
        user,
        SearchRequest(
            query,
            top_n=limit,
            scope=scope,
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
    """Return the weights used when a request gives none."""
    weights = services.settings.search.weights
    return Weights(vector=weights.vector, text=weights.text)


def _scored(chunk: SearchHit, weights: Weights) -> DocumentHit:
    text, vector = chunk.text_score, chunk.vector_score or 0.0
    return DocumentHit(chunk, text, vector, weights.text * text + weights.vector * vector)


def _best_first(hit: DocumentHit) -> tuple[float, float, bytes]:
    # The statement adds up in another order, so sums that differ in their last digit could be
    # sorted wrongly. Ties keep the order of the statement.
    return -hit.final_score, -hit.vec_score, hit.chunk.chunk_id.bytes
