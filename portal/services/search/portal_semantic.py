"""`semantic_search` over the portal's own documents, for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search import (
    KeywordBackend,
    SearchHit,
    SearchMode,
    SearchRequest,
    Unit,
)
from portal.domain.semantic import HybridStatus, SemanticHit, SemanticOutcome
from portal.errors import N_, EmbedderUnavailable, Unavailable, VectorStoreDisabled
from portal.services import Services
from portal.services.models import catalog
from portal.services.search import engine
from portal.services.search.semantic import NO_KEYWORD_INDEX, SemanticSearch
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search import found_chunks, keyword_index

BACKEND = "postgresql"


def semantic_search(
    services: Services,
    user: User,
    query: str,
    *,
    limit: int,
    threshold: float | None = None,
    content_type: str | None = None,
) -> SemanticOutcome:
    """What `SemanticSearch.search` finds among what the person may see and has switched on. The
    query is text and nothing else. Raises VectorStoreDisabled, EmbedderUnavailable, Unavailable."""
    if not services.settings.vector_store_enabled:
        raise VectorStoreDisabled
    return _search_for(services, user).search(query, limit, threshold, content_type)


def status(services: Services, user: User) -> HybridStatus:
    """Whether searches are hybrid right now, and why not when they were to be."""
    return _search_for(services, user).status


def _search_for(services: Services, user: User) -> SemanticSearch:
    with services.database.read() as session:
        keywords = keyword_index.read_state(
            session, wanted=services.settings.search.keyword_backend
        )
        model = registry.find_active(session)
    return SemanticSearch(
        PortalBackend(services, user, model, keywords.backend),
        _ServingModel(services, model),
        hybrid=services.settings.hybrid_semantic_search,
    )


@dataclass(frozen=True, slots=True)
class _ServingModel:
    """The embedding model that serves, loaded when it is first asked."""

    services: Services
    model: RegisteredModel | None

    def embed_query(self, text: str) -> Vector:
        if self.model is None:
            raise EmbedderUnavailable(reason=N_("it is still being loaded"))
        loaded = catalog.loaded(self.services, self.model, is_urgent=True)
        return loaded.embedder.embed_query(text)


class PortalBackend:
    """The portal's passages as a person may see them, ranked by the engine of all its searches."""

    name = BACKEND

    def __init__(
        self,
        services: Services,
        user: User,
        model: RegisteredModel | None,
        keywords: KeywordBackend,
    ) -> None:
        self._services = services
        self._user = user
        self._model = model
        self._keywords = keywords

    def why_no_sparse(self) -> str | None:
        return NO_KEYWORD_INDEX if self._keywords is KeywordBackend.OFF else None

    def dense(
        self, query_vector: Vector, limit: int, content_type: str | None
    ) -> list[SemanticHit]:
        vector = tuple(query_vector.tolist())
        return self._find(
            SearchRequest(
                "", mode=SearchMode.VECTOR, top_n=limit, query_vector=vector,
                content_type=content_type, one_hit_per=Unit.PASSAGE, as_shown=True,
            )
        )  # fmt: skip

    def sparse(self, query_text: str, limit: int, content_type: str | None) -> list[SemanticHit]:
        return self._find(
            SearchRequest(
                query_text, mode=SearchMode.KEYWORD, top_n=limit, operators=False,
                content_type=content_type, one_hit_per=Unit.PASSAGE, as_shown=True,
            )
        )  # fmt: skip

    def similarities(self, query_vector: Vector, ids: Sequence[str]) -> Mapping[str, float]:
        if self._model is None:
            return {}
        with self._services.database.read() as session:
            found = found_chunks.similarities(
                session, self._model, query_vector, [UUID(one) for one in ids]
            )
        return {str(chunk_id): cosine for chunk_id, cosine in found.items()}

    def _find(self, request: SearchRequest) -> list[SemanticHit]:
        """Raises Unavailable where the engine did without the one leg that was asked for."""
        outcome = engine.search(self._services, self._user, request)
        if outcome.degraded:
            raise Unavailable
        with self._services.database.read() as session:
            stored = found_chunks.read_chunks(
                session, self._user, [hit.chunk_id for hit in outcome.hits]
            )
        return [_chunk(hit, stored[hit.chunk_id]) for hit in outcome.hits if hit.chunk_id in stored]


def _chunk(hit: SearchHit, stored: found_chunks.WholeChunk) -> SemanticHit:
    return SemanticHit(
        id=str(stored.id),
        document_id=str(stored.document_id),
        content=stored.content,
        metadata=stored.metadata,
        similarity=hit.vector_score,
    )
