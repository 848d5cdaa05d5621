"""Health of the portal: whether it is alive and ready, and the state of what its search needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portal.database.bm25 import indexes
from portal.domain.health import HealthSample, Monitored
from portal.domain.search import KeywordBackend
from portal.embeddings.validation import is_path
from portal.errors import DatabaseUnavailable
from portal.services import Services
from portal.services.models import catalog
from portal.settings import SearchSettings
from portal.settings.search import uses_bm25
from portal.store.embedding_models import builds, registry
from portal.store.embedding_models.builds import IndexState
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.migrations import newest_revision, serves_schema
from portal.store.operations import health as health_store
from portal.store.search.keywords import index as keyword_index
from portal.store.search.keywords.index import KeywordState
from portal.store.session import Session

# Load balancers and health checks of containers time out after a second.
_TIMEOUT_S = 0.5
_COUNTING_TIMEOUT_S = 0.35
_SHARED_COUNTS = "shared_counts"


def check(services: Services) -> dict[str, Any]:
    """Return ``status`` "ok" if the database answers and this code can serve its schema,
    "read_only" if only replicas answer, else "unavailable". During a rolling upgrade
    ``checks.schema`` is "ahead".

    Takes at most a second, also when the database hangs.
    """
    try:
        schema, rehearsal = services.database.probe(_read_schema, timeout_s=_TIMEOUT_S)
        database = True
    except DatabaseUnavailable:
        database, schema, rehearsal = False, "behind", None
    is_ready = database and schema != "behind"
    checks = {"database": "ok" if database else "unavailable", "schema": schema}
    writes = True
    if replicas := services.database.replica_states:
        writes = not services.database.is_primary_lost
        checks["writing"] = "ok" if writes else "unavailable"
        checks["replicas"] = f"{[state for state, _ in replicas].count('ok')} of {len(replicas)} ok"
    return {
        "status": ("ok" if writes else "read_only") if is_ready else "unavailable",
        "live": True,
        "ready": is_ready,
        "checks": checks,
        **({"rehearsal": rehearsal} if rehearsal else {}),
    }


def _read_schema(session: Session) -> tuple[str, dict[str, str] | None]:
    """Return the state of the schema, and the result of the last rehearsed restore."""
    revision = health_store.read_revision(session)
    if not serves_schema(revision):
        return "behind", None
    schema = "ok" if revision == newest_revision() else "ahead"
    return schema, health_store.read_rehearsal(session)


def check_vector_store(services: Services, *, for_administrators: bool = True) -> dict[str, Any]:
    """Return the state of extensions, indexes and models, and counts, without names or text.

    Private documents are counted, and affect the status, only `for_administrators`. Takes at most a
    second; ``counts`` is None when counting takes longer. Concurrent calls share one query.
    """
    found = dict(services.vector_store_reads.ask(lambda: _read_vector_store(services)))
    shared = found.pop(_SHARED_COUNTS, None)
    if for_administrators or found["status"] == "unavailable":
        return found
    index = found["keyword_index"]
    if index is not None and index["row_count"] is not None:
        found["keyword_index"] = index | {"row_count": shared["chunks"] if shared else None}
    found["counts"] = shared
    return found | {"status": _status(found, services.settings.search.keyword_backend)}


def _read_vector_store(services: Services) -> dict[str, Any]:
    search = services.settings.search
    try:
        state = services.database.probe(
            lambda session: _read_index_state(session, search), timeout_s=_TIMEOUT_S
        )
    except DatabaseUnavailable:
        return {"status": "unavailable", "reason": "the database does not answer"}
    # Probes that are due start before counting, and may end while it runs.
    _embedder_answers(services, state.serving)
    _reranking(services)
    counts = count(services)
    index = state.vector_index
    differs = (
        f"index differs from settings: it is {index.has}, they ask for {index.wanted}; "
        "a running worker replaces it"
    )
    found = {
        "status": "ok",
        "enabled": services.settings.vector_store_enabled,
        "extensions": state.extensions,
        "keyword_backend": state.keywords.alone.value,
        "hybrid": state.keywords.backend is not KeywordBackend.OFF,
        "keyword_index": state.keyword_index,
        "vector_index": index.state,
        "vector_index_detail": differs if index.state == "differs" else None,
        "embedding_model": state.serving.name if state.serving else services.embedder.name,
        "embedder": "ok" if _embedder_answers(services, state.serving) else "unavailable",
        "reranker": _shown_name(services.reranker.name) if services.reranker else None,
        "reranking": _reranking(services),
        "models": state.models,
        "counts": counts.everything if counts else None,
        _SHARED_COUNTS: counts.shared if counts else None,
    }
    if replicas := services.database.replica_states:
        found["replicas"] = {
            "states": [{"state": state, "behind_bytes": behind} for state, behind in replicas],
            "words": _words_on_replicas(services),
        }
    return found | {"status": _status(found, search.keyword_backend)}


def _words_on_replicas(services: Services) -> str:
    """Return what ranks words when replicas are read from: `primary` if searches for words are sent
    to the primary, and use `ts_rank_cd` only without it."""
    if not uses_bm25(services.settings.search):
        return str(services.settings.search.keyword_backend)
    return "pg_textsearch" if services.database.replicates_bm25 else "primary"


def finds_by_meaning(vector_store: dict[str, Any]) -> bool:
    """Return whether search by meaning works, according to a result of `check_vector_store`."""
    return (
        bool(vector_store.get("enabled"))
        and vector_store["embedder"] == "ok"
        and vector_store["vector_index"] != "missing"
        and not (vector_store["counts"] or {}).get("missing_embeddings")
    )


def count(services: Services) -> health_store.StoreCounts | None:
    """Count documents, chunks, and chunks without a vector; None when that takes too long."""
    try:
        return services.database.probe(health_store.read_counts, timeout_s=_COUNTING_TIMEOUT_S)
    except DatabaseUnavailable:
        return None


@dataclass(frozen=True, slots=True)
class _IndexState:
    extensions: dict[str, str]
    keywords: KeywordState
    keyword_index: dict[str, Any] | None
    models: list[dict[str, Any]]
    serving: RegisteredModel | None
    vector_index: IndexState


def _read_index_state(session: Session, search: SearchSettings) -> _IndexState:
    wanted = search.keyword_backend
    serving = registry.find_active(session)
    keywords = keyword_index.read_state(session, wanted=wanted)

    return _IndexState(
        extensions=health_store.read_extensions(session),
        keywords=keywords,
        keyword_index=_read_keyword_index(session, keywords) if uses_bm25(search) else None,
        models=health_store.read_models(session),
        serving=serving,
        vector_index=builds.index_state(session, serving, search) if serving else IndexState("ok"),
    )


def _read_keyword_index(session: Session, keywords: KeywordState) -> dict[str, Any]:
    """Return the current state of the BM25 index, and about how many chunks it contains."""
    state = indexes.read_state(session.connection())
    return {
        "state": state.state,
        "rebuilt_at": state.rebuilt_at.isoformat() if state.rebuilt_at else None,
        "row_count": None if state.state == "absent" else keywords.chunk_count,
    }


def _status(found: dict[str, Any], wanted: str) -> str:
    if not found["enabled"]:
        return "disabled"
    is_hybrid = wanted == KeywordBackend.OFF or found["hybrid"]
    is_whole = is_hybrid and finds_by_meaning(found) and found["reranking"] != "unavailable"
    return "ok" if is_whole else "degraded"


def _embedder_answers(services: Services, serving: RegisteredModel | None) -> bool:
    """Return whether the serving model, which may differ from the configured one, returned vectors
    at its last use. Starts a probe if that was long ago."""
    if not services.settings.vector_store_enabled:
        return True
    name = serving.name if serving is not None else services.embedder.name
    provider = serving.provider if serving is not None else services.settings.embedding.provider
    known = catalog.peek(services, serving) if serving is not None else services.embedder
    return services.embedder_health.is_healthy(
        name,
        _last_health(known),
        lambda: _probe(
            catalog.loaded(services, serving).embedder if serving else services.embedder
        ),
        at_first=provider == "openai",
    )


def _reranking(services: Services) -> str | None:
    """Return "ok" if the re-ranking model returned scores at its last use, else "unavailable"; None
    without a model."""
    reranker = services.reranker
    if reranker is None:
        return None
    if is_path(reranker.name) and not Path(reranker.name).expanduser().is_dir():
        return "unavailable"
    answers = services.reranker_health.is_healthy(
        reranker.name, _last_health(reranker), lambda: _probe(reranker)
    )
    return "ok" if answers else "unavailable"


def _shown_name(model: str) -> str:
    """Return a model's name; of a directory only the last part, because /health is public."""
    return Path(model).name if is_path(model) else model


def _last_health(thing: object) -> HealthSample | None:
    return thing.health if isinstance(thing, Monitored) else None


def _probe(thing: object) -> None:
    if isinstance(thing, Monitored):
        thing.probe()
