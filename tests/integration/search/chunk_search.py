"""The search of passages without what surrounds it: a vector and words in, candidates out."""

from __future__ import annotations

from uuid import UUID

from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search import Fusion, KeywordBackend, Normalisation, SearchMode, Weights
from portal.services import Services
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.context import read_context
from portal.store.search.enabled_sets import Scope
from portal.store.search.legs import (
    Candidate,
    ChunkSearch,
    KeywordQuery,
    Limits,
    Ranking,
    Trace,
    VectorQuery,
)
from portal.store.search.query_filters import narrowing
from portal.text.analyser import query_terms
from portal.text.query_syntax import parse_query

# What a search by a use case asks of each leg at least.
LEG_LIMIT = 100
RANKING = Ranking(Fusion.WEIGHTED, Normalisation.CALIBRATED, Weights(), rrf_k=60)


def find(
    services: Services,
    user: User,
    query: str,
    vector: Vector,
    *,
    model: RegisteredModel,
    total_chunks: int,
    mode: SearchMode = SearchMode.HYBRID,
    limit: int = 10,
    domain: str | None = None,
    conversation_id: UUID | None = None,
) -> tuple[list[Candidate], Trace]:
    """What this process finds for a question and its vector (dimensions,), and how."""
    parsed = parse_query(query)
    terms = query_terms(parsed.text)
    with services.database.read() as session:
        context = read_context(session, user.id, conversation_id, keyword_backend="auto")
        chunks = ChunkSearch(
            session,
            Scope(user, conversation_id, narrowing(parsed, domain=domain)),
            vector=None
            if mode is SearchMode.KEYWORD
            else VectorQuery(
                model=model,
                search_vector=vector,
                plain_vector=vector,
                corrected_vector=vector,
                is_corrected=False,
                likeness_low=0.0,
                likeness_width=1.0,
            ),
            keywords=None
            if mode is SearchMode.VECTOR
            else KeywordQuery(KeywordBackend.PG_TEXTSEARCH, terms, " ".join(terms), text_floor=0.0),
            ranking=RANKING,
            limits=Limits(limit=limit, leg_limit=max(LEG_LIMIT, 2 * limit), threshold=0.0),
            total_chunks=total_chunks,
            versions=context.versions,
            settings=services.settings.search,
            enabled_sets=services.enabled_sets,
            corpus_version=context.corpus_version,
        )
        return chunks.run(), chunks.trace
