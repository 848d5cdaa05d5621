"""Serve health and metrics to operators."""

from __future__ import annotations

import hmac
from typing import Any, Literal

from flask import Response, jsonify, request
from flask.sansio.blueprints import BlueprintSetupState
from pydantic import AwareDatetime, Field

from portal.api.blueprint import ApiBlueprint
from portal.api.schemas import ResponseModel
from portal.http import context
from portal.http.clients import is_from_this_machine
from portal.services.operations import health, starting
from portal.services.operations.reports import scraping


class LiveBody(ResponseModel):
    """The process is alive."""

    status: Literal["ok"]
    live: Literal[True]


class HealthChecks(ResponseModel):
    database: Literal["ok", "unavailable"]
    # "schema" is a method of every pydantic model.
    schema_: Literal["ok", "ahead", "behind"] = Field(
        alias="schema",
        description="behind: the database needs `portal migrate`; ahead: a newer portal has"
        " migrated it, and this one keeps serving until it is replaced",
    )
    writing: Literal["ok", "unavailable"] | None = Field(
        None, description="with replicas: whether the primary answers"
    )
    replicas: str | None = Field(
        None,
        description="with replicas: how many are available for reading",
        examples=["2 of 3 ok"],
    )


class Rehearsal(ResponseModel):
    """The last rehearsed restore of a backup."""

    status: Literal["ok", "failed"]
    at: AwareDatetime


class HealthBody(ResponseModel):
    """Whether the portal can serve requests."""

    status: Literal["ok", "read_only", "unavailable"] = Field(
        description="read_only: only the replicas answer, not the primary"
    )
    live: bool
    ready: bool
    checks: HealthChecks
    rehearsal: Rehearsal | None = Field(
        None, description="the last `portal restore --rehearse`, if there was one"
    )


class StoreCounts(ResponseModel):
    documents: int
    chunks: int
    missing_embeddings: int = Field(description="passages without a vector of the active model")


class StoredModel(ResponseModel):
    name: str
    provider: str
    dimensions: int
    status: Literal["building", "ready", "active", "retired"]


class VectorStoreBody(ResponseModel):
    """The parts of search. With status `unavailable` only `reason` is given."""

    status: Literal["ok", "degraded", "disabled", "unavailable"]
    reason: str | None = Field(None, description="why the state is unknown")
    enabled: bool | None = None
    extensions: dict[str, str] | None = Field(
        None,
        description="versions of PostgreSQL and its installed extensions",
        examples=[{"postgresql": "18.1", "vector": "0.8.1", "pg_textsearch": "1.4.0"}],
    )
    keyword_backend: Literal["pg_textsearch", "tsvector", "off"] | None = Field(
        None, description="what ranks keyword searches"
    )
    hybrid: bool | None = Field(None, description="whether hybrid search also uses keywords")
    keyword_index: dict[str, Any] | None = Field(
        None,
        description="state of the BM25 index (ready, rebuilding, stale, absent), time of "
        "its last rebuild, approximate number of passages; null if the settings"
        " disable it",
    )
    vector_index: Literal["ok", "missing", "differs", "off"] | None = Field(
        None,
        description="differs: in use, but not as the settings require; off: disabled by the"
        " settings",
    )
    vector_index_detail: str | None = Field(
        None,
        description="how it differs from the settings",
        examples=[
            "index differs from settings: it is hnsw halfvec m=16, they ask for hnsw halfvec m=24"
        ],
    )
    replicas: dict[str, Any] | None = Field(
        None,
        description="with `DATABASE_REPLICA_URL`: the state of each server (ok, behind, "
        "not_following, unavailable), and what ranks keywords (`primary`: "
        "keyword searches are sent to the primary; while it is unavailable "
        "`ts_rank_cd` ranks them)",
    )
    embedding_model: str | None = None
    embedder: Literal["ok", "unavailable"] | None = None
    reranker: str | None = Field(None, description="name of the re-ranking model, if any")
    reranking: Literal["ok", "unavailable"] | None = Field(
        None, description="unavailable: results keep the order of the fusion"
    )
    models: list[StoredModel] | None = None
    counts: StoreCounts | None = Field(None, description="null if counting takes too long")


_TAG = {"name": "Operations", "description": "Health and metrics, for those who run the portal."}

blueprint = ApiBlueprint("ops", __name__, tag=_TAG)


@blueprint.record_once
def _announce(state: BlueprintSetupState) -> None:
    """Log what searches use when the process starts."""
    starting.announce(state.app.extensions["portal"])


_TEXT = {"schema": {"type": "string"}}
_METRICS = {
    "200": {
        "description": "in Prometheus' text format, or OpenMetrics if requested",
        "content": {"text/plain": _TEXT, "application/openmetrics-text": _TEXT},
    }
}


_NOT_READY = {
    "status": "unavailable",
    "live": True,
    "ready": False,
    "checks": {"database": "unavailable", "schema": "behind"},
}
_NO_STORE = {"status": "unavailable", "reason": "the database does not answer"}


def _not_well(description: str, body: type, example: dict[str, Any]) -> Any:
    schema = {"$ref": f"#/components/schemas/{body.__name__}"}
    content = {"application/json": {"schema": schema, "example": example}}
    return {503: {"description": description, "content": content}}


def _answer(status: dict[str, Any], *, is_well: bool) -> Response:
    response = jsonify(status)
    response.status_code = 200 if is_well else 503
    return response


@blueprint.get("/health", responses=_not_well("they do not", HealthBody, _NOT_READY))
@blueprint.output(HealthBody, description="they do")
@context.public
def show_health() -> Response:
    """Check the portal and its database.

    Responds within a second, even without the database. Contains nothing private.
    """
    status = health.check(context.services())
    return _answer(status, is_well=status["ready"])


@blueprint.get("/health/live")
@blueprint.output(LiveBody, description="it is alive")
@context.public
def show_live() -> Response:
    """Check that the process is alive.

    Checks nothing else: restarting the process would not repair the database.
    """
    return jsonify({"status": "ok", "live": True})


@blueprint.get("/health/ready", responses=_not_well("it cannot", HealthBody, _NOT_READY))
@blueprint.output(HealthBody, description="it can")
@context.public
def show_ready() -> Response:
    """Check that the portal can serve requests.

    The same as `/health`, under the name that orchestrators expect.
    """
    return show_health()


@blueprint.get(
    "/health/vector_store",
    responses=_not_well("the database does not answer", VectorStoreBody, _NO_STORE),
)
@blueprint.output(VectorStoreBody, description="state of the parts of search")
@context.public
def show_vector_store() -> Response:
    """Show extensions, indexes and counts of search.

    Responds within a second, even without the database. Counts cover shared documents; for
    administrators, all documents.
    """
    signed_in = context.signed_in()
    is_admin = signed_in is not None and signed_in.user.is_admin
    status: dict[str, Any] = health.check_vector_store(
        context.services(), for_administrators=is_admin
    )
    return _answer(status, is_well=status["status"] != "unavailable")


def _may_read_metrics() -> bool:
    """Return whether the settings open the metrics to this request without a token."""
    settings = context.services().settings
    if settings.metrics_public:
        return True
    token, sent = settings.metrics.token, context.bearer_token(request)
    if token is not None and sent is not None:
        return hmac.compare_digest(token.get_secret_value().encode(), sent.encode())
    return settings.metrics.from_this_machine and is_from_this_machine(
        trusted_proxies=settings.trusted_proxies
    )


@blueprint.get("/metrics", responses=_METRICS, errors=(401, 403))
@context.open_when(_may_read_metrics)
@context.for_administrators
def show_metrics() -> Response:
    """Get metrics for Prometheus.

    They cover all processes of this portal and are cached for a second. Open to administrators and
    to the bearer token in `PORTAL_METRICS__TOKEN`. `PORTAL_METRICS__FROM_THIS_MACHINE` and
    `PORTAL_METRICS_PUBLIC` open them further.
    """
    body, media_type = scraping.exposition(context.services(), request.headers.get("Accept", ""))
    return Response(body, content_type=media_type)
