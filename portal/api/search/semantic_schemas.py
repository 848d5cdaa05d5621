"""Bodies of `semantic_search`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from portal.api.schemas import CleanText, RequestModel, ResponseModel
from portal.domain.search import MAX_QUERY_CHARACTERS, MAX_RESULTS
from portal.services.search.semantic import DEFAULT_LIMIT

Similarity = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class SemanticSearchBody(RequestModel):
    query: CleanText = Field(
        max_length=MAX_QUERY_CHARACTERS,
        examples=["年假有多少天？"],
        description="text and nothing else; an empty one finds nothing",
    )
    limit: int = Field(
        DEFAULT_LIMIT,
        le=MAX_RESULTS,
        description="most results; less than 1 counts as 5",
    )
    threshold: Similarity | None = Field(
        None, description="least cosine similarity; unset: no result is too far"
    )
    content_type: CleanText | None = Field(
        None,
        max_length=200,
        examples=["text/markdown"],
        description="only passages whose metadata names this `content_type`, or whose document is "
        "of this media type",
    )


class SemanticResultModel(ResponseModel):
    id: UUID = Field(description="the passage's")
    document_id: UUID
    content: str = Field(description="the whole passage")
    similarity: float | None = Field(
        description="cosine to the question; null where the question or the passage has no vector"
    )
    metadata: dict[str, Any] = Field(
        description="`title`, `content_type`, `page`, `heading`, `chunk_index`, what a program "
        "said of the passage, and `similarity`; of a hybrid search also `rrf_score`, `dense_rank` "
        "and `sparse_rank`",
        examples=[{"title": "员工手册", "content_type": "text/markdown", "similarity": 0.87}],
    )
    url: str = Field(description="opens the document at the passage")


class SemanticSearchResponse(ResponseModel):
    query: str
    results: list[SemanticResultModel]
    count: int = Field(description="how many results there are")
    method: Literal["dense", "sparse", "hybrid", "none"] = Field(description="what ran")
    hybrid_enabled: bool = Field(description="whether hybrid search is switched on and possible")
    degraded: list[str] = Field(
        description="what was done without, in codes such as `embedder_unavailable`", examples=[[]]
    )


class HybridStatusModel(ResponseModel):
    backend: str = Field(examples=["postgresql"])
    is_requested: bool = Field(description="by USE_HYBRID_SEARCH")
    is_enabled: bool = Field(description="requested, and there is an index of words")
    reason: str | None = Field(None, description="why it is requested and not enabled, as a code")
