"""Bodies of the endpoints for operators."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from portal.api.schemas import ResponseModel


class LiveBody(ResponseModel):
    """The process answers."""

    status: Literal["ok"]
    live: Literal[True]


class HealthChecks(ResponseModel):
    database: Literal["ok", "unavailable"]
    # "schema" is a method of every pydantic model.
    schema_: Literal["ok", "behind"] = Field(
        alias="schema", description="behind: the database waits for portal migrate"
    )


class HealthBody(ResponseModel):
    """Whether the portal can serve."""

    status: Literal["ok", "unavailable"]
    live: bool
    ready: bool
    checks: HealthChecks


class StoreCounts(ResponseModel):
    documents: int
    chunks: int
    missing_embeddings: int = Field(description="passages that the serving model has no vector of")


class StoredModel(ResponseModel):
    name: str
    provider: str
    dimensions: int
    status: Literal["building", "ready", "active", "retired"]


class VectorStoreBody(ResponseModel):
    """The parts of search. With status `unavailable` only `reason` is given."""

    status: Literal["ok", "degraded", "disabled", "unavailable"]
    reason: str | None = Field(None, description="why nothing is known")
    enabled: bool | None = None
    extensions: dict[str, str] | None = Field(
        None,
        description="versions of PostgreSQL and of its extensions that are installed",
        examples=[{"postgresql": "18.1", "vector": "0.8.1", "pg_textsearch": "1.4.0"}],
    )
    keyword_backend: Literal["pg_textsearch", "tsvector", "off"] | None = Field(
        None, description="what ranks words where they alone are searched for"
    )
    hybrid: bool | None = Field(
        None, description="whether hybrid search uses words too, or is semantic only"
    )
    keyword_index: dict[str, Any] | None = Field(
        None,
        description="state of the BM25 index (ready, rebuilding, stale, absent), when it was "
        "rebuilt, about how many passages it holds; null where the settings want none",
    )
    vector_index: Literal["ok", "missing", "differs", "off"] | None = Field(
        None,
        description="differs: it serves, and is not what the settings ask for; off: they ask for "
        "none",
    )
    vector_index_detail: str | None = Field(
        None,
        description="how it differs from the settings",
        examples=[
            "index differs from settings: it is hnsw halfvec m=16, they ask for hnsw halfvec m=24"
        ],
    )
    embedding_model: str | None = None
    embedder: Literal["ok", "unavailable"] | None = None
    reranker: str | None = Field(None, description="name of the re-ranking model, if there is one")
    reranking: Literal["ok", "unavailable"] | None = Field(
        None, description="unavailable: results stay in the order of fusion"
    )
    models: list[StoredModel] | None = None
    counts: StoreCounts | None = Field(None, description="null where counting takes too long")
