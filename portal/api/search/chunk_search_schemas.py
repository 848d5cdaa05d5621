"""Schemas of chunk search."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.config import JsonDict

from portal.api.documents.schemas.chunks import ChunkModel, Envelope
from portal.api.schemas import SCOPE, CleanText, RequestModel, ResponseModel, ScopeBody
from portal.api.search.knowledge_search_schemas import CorrectionModel, PartsModel
from portal.domain.search import MAX_QUERY_CHARACTERS, MAX_RESULTS
from portal.domain.search.chunk_search import MAX_QUERIES, FusionMethod, FusionName
from portal.domain.search.metadata_filter import (
    MAX_CONDITIONS,
    MAX_KEY_LENGTH,
    MAX_KEYS,
    MAX_VALUE_LENGTH,
)
from portal.errors import N_
from portal.text.characters.scripts import has_visible_text

MAX_DIMENSIONS = 16_000

_TEXT: JsonDict = {"type": "string", "maxLength": MAX_VALUE_LENGTH, "pattern": "^[^\\u0000]*$"}
_SCALAR: JsonDict = {"anyOf": [_TEXT, {"type": ["number", "boolean"]}]}
_ORDERED: JsonDict = {"anyOf": [_TEXT, {"type": "number"}]}
_NAME: JsonDict = {
    "type": "string",
    "maxLength": MAX_KEY_LENGTH,
    "pattern": rf"^[^.$\u0000][^.\u0000]*([.][^.\u0000]+){{0,{MAX_KEYS - 1}}}$",
}
_OPERATORS = {
    "type": "object",
    "minProperties": 1,
    "properties": {
        **dict.fromkeys(("$eq", "$ne"), _SCALAR),
        **dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), _ORDERED),
        **{key: {"type": "array", "items": _SCALAR} for key in ("$in", "$nin")},
        "$contains": {},
        "$not_contains": {},
    },
    "additionalProperties": False,
}
_NESTED = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": _NAME,
    "additionalProperties": {"anyOf": [_SCALAR, _OPERATORS]},
}


def _condition(operators: list[str], value: JsonDict, *, is_default: bool = False) -> JsonDict:
    """Return the schema of a {field, operator, value} with one of these operators."""
    names: JsonDict = {"type": "array", "items": _NAME, "minItems": 1, "maxItems": MAX_KEYS}
    return {
        "type": "object",
        "required": ["field", "value", *([] if is_default else ["operator"])],
        "properties": {
            "field": {"anyOf": [_NAME, names]},
            "operator": {"enum": [*operators]},
            "value": value,
        },
        "additionalProperties": False,
    }


_FILTERS = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "minProperties": 1,
        "propertyNames": _NAME,
        "additionalProperties": {"anyOf": [_SCALAR, _OPERATORS, _NESTED]},
    },
}
_FILTER_SCHEMA = {
    "description": "keep passages whose metadata fulfils this: names to values, or to operators; "
    "`$and` and `$or` take lists of filters. Or a list of {field, operator, value}, all of which "
    "hold. Types are strict.",
    "anyOf": [
        {
            "type": "object",
            "maxProperties": MAX_CONDITIONS,
            "propertyNames": {"anyOf": [{"enum": ["$and", "$or"]}, _NAME]},
            "properties": {"$and": _FILTERS, "$or": _FILTERS},
            "additionalProperties": {"anyOf": [_SCALAR, _OPERATORS, _NESTED]},
        },
        {
            "type": "array",
            "maxItems": MAX_CONDITIONS,
            "items": {
                "anyOf": [
                    _condition(["eq", "ne"], _SCALAR, is_default=True),
                    _condition(["gt", "gte", "lt", "lte"], _ORDERED),
                    _condition(["in", "nin"], {"type": "array", "items": _SCALAR}),
                    _condition(["contains", "not_contains"], {}),
                ]
            },
        },
        {"type": "null"},
    ],
    "examples": [{"source_file": "leave.pdf", "page_number": {"$gte": 3}}],
}  # fmt: skip
# The domain (`parse_filter`) interprets it and reports errors in readable terms.
FilterJson = Annotated[Any, WithJsonSchema(_FILTER_SCHEMA)]

Query = Annotated[
    CleanText, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, examples=["年假有多少天？"])
]
TopK = Annotated[
    int | None,
    Field(
        ge=1,
        le=MAX_RESULTS,
        description="maximum number of passages, up to PORTAL_SEARCH__MAX_TOP_K; default: "
        "`top_n` of the search settings if an administrator has set it, else "
        "PORTAL_SEARCH__DEFAULT_TOP_K, which defaults to 10",
    ),
]
Threshold = Annotated[float | None, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Component = Annotated[float, Field(allow_inf_nan=False)]


# Exactly one of the two. Not by `oneOf`, since client generators drop models that use it.
_ONE_QUESTION: JsonDict = {
    "if": {"required": ["query_text"], "properties": {"query_text": {"type": "string"}}},
    "then": {"properties": {"query_vector": {"type": "null"}}},
    "else": {"required": ["query_vector"], "properties": {"query_vector": {"type": "array"}}},
}


class WithinBody(RequestModel):
    """Limits of a search."""

    job_id: UUID | None = Field(None, description="only passages of this job")
    metadata_filter: FilterJson = None
    conversation_id: UUID | None = Field(
        None, description="apply the switches of this conversation"
    )
    scope: ScopeBody | None = SCOPE


class SemanticBody(WithinBody):
    """A question as text, or as a vector of the active model; exactly one of them."""

    model_config = ConfigDict(json_schema_extra=_ONE_QUESTION)

    query_text: CleanText | None = Field(
        None,
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        description="the question; alternatively, query_vector",
        examples=["年假有多少天？"],
    )
    query_vector: list[Component] | None = Field(
        None,
        min_length=1,
        max_length=MAX_DIMENSIONS,
        description="your own vector, with the dimensions of the active model and not all "
        "zeros; anything else is 422",
        examples=[None],
    )
    top_k: TopK = None
    similarity_threshold: Threshold = Field(
        None,
        description="minimum cosine similarity; 0 for none; default: "
        "PORTAL_SEARCH__SIMILARITY_THRESHOLD, which defaults to 0",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.query_text is None) == (self.query_vector is None):
            raise ValueError(N_("provide either query_text or query_vector, not both"))
        if self.query_text is not None:
            _require_text(self.query_text)
        return self


class TextBody(WithinBody):
    query: Query
    top_k: TopK = None
    language: Literal["auto", "simple", "english", "chinese", "en", "zh"] = Field(
        "auto",
        description="accepted for compatibility and ignored: words are analysed by their "
        "script, so one query finds passages in both languages",
    )
    highlight: bool = Field(True, description="return highlighted_content")
    fuzzy: bool = Field(
        False, description="search for likely spellings of words that occur in no passage"
    )

    @model_validator(mode="after")
    def _is_text(self) -> Self:
        _require_text(self.query)
        return self


class HybridBody(WithinBody):
    query_text: Query
    top_k: TopK = None
    vector_weight: Weight | None = Field(
        None, description="relative to the sum of both weights; default: as configured, 0.7"
    )
    text_weight: Weight | None = Field(
        None, description="relative to the sum of both weights; default: as configured, 0.3"
    )
    fusion_method: FusionName | None = Field(
        None, description="add up scores, or use ranks only; default: as configured, weighted_sum"
    )
    rrf_k: int | None = Field(
        None, ge=1, le=1000, description="the constant k of rrf; default: as configured, 60"
    )
    similarity_threshold: Threshold = Field(
        None,
        description="minimum cosine similarity of passages without a keyword match; 0 for "
        "none; default: PORTAL_SEARCH__SIMILARITY_THRESHOLD",
    )

    @model_validator(mode="after")
    def _has_weight(self) -> Self:
        if self.vector_weight == 0 and self.text_weight == 0:
            raise ValueError(
                N_("vector_weight and text_weight are both 0; at least one must be greater than 0")
            )
        _require_text(self.query_text)
        return self


class BatchBody(RequestModel):
    queries: list[SemanticBody] = Field(
        min_length=1, max_length=MAX_QUERIES, description="queries, answered in this order"
    )


class SimilarQuery(RequestModel):
    top_k: TopK = None
    exclude_same_job: bool = Field(False, description="only passages of other jobs")
    conversation_id: UUID | None = Field(
        None, description="apply the switches of this conversation"
    )


def _require_text(query: str) -> None:
    if not has_visible_text(query):
        raise ValueError(N_("the query has no visible characters; enter a question"))


# --- responses ------------------------------------------------------------------------------------


class FoundModel(ResponseModel):
    """A passage that was found."""

    chunk: ChunkModel
    chunk_id: UUID
    document_id: UUID
    title: str = Field(description="title of the document", examples=["Leave rules"])


class SimilarModel(FoundModel):
    similarity: float = Field(description="cosine similarity, from -1 to 1", examples=[0.83])


class TextModel(FoundModel):
    relevance_score: float = Field(
        description="BM25 relative to that of the best passage, from 0 to 1", examples=[1.0]
    )
    bm25: float = Field(description="BM25 itself, without an upper bound", examples=[7.42])
    highlighted_content: str | None = Field(
        description="the content as HTML, with the words of the query in <mark>; null if "
        "not requested",
        examples=["工作满一年的员工享有十天带薪<mark>年假</mark>。"],
    )
    similarity: float | None = Field(
        description="for a fuzzy search: similarity of the words of the query and the "
        "passage, from 0 to 1; 1 if it contains each word as typed; null if not"
        " fuzzy",
        examples=[None],
    )


class HybridModel(FoundModel):
    combined_score: float = Field(
        description="the sum of its parts: weighted_sum: the weighted mean of vector_score and "
        "text_score; rrf: the sum of 1 / (rrf_k + rank) over both ranks",
        examples=[0.88],
    )
    parts: PartsModel = Field(description="the addends of combined_score")
    vector_score: float = Field(
        description="cosine similarity; 0 for a passage without a vector", examples=[0.83]
    )
    text_score: float = Field(
        description="BM25 relative to that of the best passage; 0 if no word matched",
        examples=[1.0],
    )
    bm25: float = Field(description="BM25 itself, without an upper bound", examples=[7.42])
    vector_rank: int | None = Field(
        description="rank by meaning, from 1; null if not found by meaning", examples=[1]
    )
    text_rank: int | None = Field(
        description="rank by keywords, from 1; null if not found by keywords", examples=[1]
    )


class HybridParametersModel(ResponseModel):
    """The parameters of a hybrid search, from the request or the configuration."""

    top_k: int
    fusion_method: FusionName
    vector_weight: float = Field(description="relative to the sum of both", examples=[0.7])
    text_weight: float = Field(description="relative to the sum of both", examples=[0.3])
    rrf_k: int = Field(examples=[60])
    similarity_threshold: float


class ResultsModel(ResponseModel):
    total: int = Field(description="number of results returned")
    top_k: int = Field(description="maximum number of results", examples=[10])
    degraded: list[str] = Field(
        description="unavailable parts of the search, as codes", examples=[[]]
    )


class SemanticResultsModel(ResultsModel):
    results: list[SimilarModel]


class TextResultsModel(ResultsModel):
    results: list[TextModel]
    correction: CorrectionModel | None = Field(
        description="another spelling of the query", examples=[None]
    )


class HybridResultsModel(ResultsModel):
    results: list[HybridModel]
    fusion_method: FusionMethod = Field(
        description="how they were ranked; text_only or vector_only if only one of the two "
        "found anything",
        examples=[FusionMethod.WEIGHTED_SUM],
    )
    used: HybridParametersModel | None = Field(
        description="the parameters used; null if nothing was searched"
    )


class SimilarResultsModel(ResultsModel):
    results: list[SimilarModel]
    reference_chunk_id: UUID


class BatchErrorModel(ResponseModel):
    """The reason why a query of a batch has no results."""

    index: int = Field(description="index of the query, from 0", examples=[19])
    code: str = Field(examples=["batch_timed_out"], description="stable code for programs")
    message: str = Field(description="what happened, why, and what to do")


class BatchResultsModel(ResponseModel):
    results: list[SemanticResultsModel] = Field(description="one per query, in the same order")
    total: int
    errors: list[BatchErrorModel] = Field(
        description="one for each query that exceeded the time limit", examples=[[]]
    )


class SemanticResponse(Envelope):
    data: SemanticResultsModel


class TextResponse(Envelope):
    data: TextResultsModel


class HybridResponse(Envelope):
    data: HybridResultsModel


class SimilarResponse(Envelope):
    data: SimilarResultsModel


class BatchResponse(Envelope):
    data: BatchResultsModel
