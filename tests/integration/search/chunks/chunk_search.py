"""Search chunks in the store alone, from a vector and words to candidates."""

from __future__ import annotations

from uuid import UUID

from portal.domain.deadlines import Deadline
from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.domain.search import KeywordBackend, SearchMode, SearchRequest, Unit
from portal.domain.search.fusion import Ranking, Scale
from portal.services import Services
from portal.services.search.dynamic_config import DynamicConfig
from portal.services.search.finding import Candidate, find
from portal.services.search.plan import SearchPlan
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.context import read_context
from portal.store.search.filters.narrowing import narrowing
from portal.store.search.legs.trace import Trace
from portal.store.search.queries import KeywordQuery, Legs, VectorQuery
from portal.store.search.selection.scope import Scope
from portal.text.terms.analyser import query_terms
from portal.text.terms.query_syntax import parse_query

# The minimum that the use case requests of each leg.
LEG_LIMIT = 100


def find_chunks(
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
    """Return the candidates for a query and its vector (dimensions,), and the plan used."""
    parsed = parse_query(query)
    terms = query_terms(parsed.text)
    with services.database.driver() as reader:
        context = read_context(reader, user.id, conversation_id, keyword_backend="auto")
        visible = services.enabled_sets.visible
        corpus = None if user.is_admin else visible.get(reader, user.id, context.versions)
    by_meaning = VectorQuery(
        model=model,
        search_vector=vector,
        plain_vector=vector,
        corrected_vector=vector,
        is_corrected=False,
    )
    by_words = KeywordQuery(KeywordBackend.PG_TEXTSEARCH, terms, " ".join(terms))
    legs = Legs(
        scope=Scope(user, conversation_id, narrowing(parsed, domain=domain)),
        vector=None if mode is SearchMode.KEYWORD else by_meaning,
        keywords=None if mode is SearchMode.VECTOR else by_words,
        versions=context.versions,
        corpus=corpus,
        corpus_version=context.corpus_version,
        total_chunks=total_chunks,
        leg_limit=max(LEG_LIMIT, 2 * limit),
        deadline=Deadline.within(services.settings.search.statement_timeout_s),
        settings=services.settings.search,
    )
    plan = SearchPlan(
        user=user,
        request=SearchRequest(
            query,
            top_n=limit,
            mode=mode,
            domain=domain,
            conversation_id=conversation_id,
            one_hit_per=Unit.CHUNK,
        ),
        parsed=parsed,
        terms=terms,
        config=DynamicConfig(domain_boost=0),
        ranking=Ranking(),
        scale=Scale(),
        legs=legs,
        limit=limit,
        words_alone=() if mode is SearchMode.VECTOR else (by_words,),
        spare=0,
    )
    trace = Trace()
    _plan, found = find(services, plan, trace)
    return list(found.candidates)[:limit], trace
