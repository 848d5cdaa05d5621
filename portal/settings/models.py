"""Settings of the models that embed, re-rank and write answers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from portal.settings.base import Section

DEFAULT_MODELS = {
    "bundled": "multilingual-e5-small-q4",
    "sentence-transformers": "BAAI/bge-small-zh-v1.5",
    "openai": "text-embedding-3-small",
    "hashing": "hashing-384",
}


DEFAULT_RERANKER = "cross-encoder/mmarco-mMiniLMv2-L12-H384-v1"


class EmbeddingSettings(Section):
    """The embedding model."""

    provider: Literal["bundled", "sentence-transformers", "openai", "hashing"] = Field(
        "bundled", description="where vectors come from; `hashing` is for tests"
    )
    model: str | None = Field(
        None, description="the provider's model; unset: the provider's default"
    )
    dimensions: int | None = Field(
        None, ge=8, le=16000, description="length of a vector; unset: the model's own"
    )
    api_base: str | None = Field(None, description="address of an OpenAI-compatible endpoint")
    api_key: SecretStr | None = Field(None, description="API key of the endpoint")
    query_prefix: str | None = Field(
        None,
        description="text put before a query; unset: the prefix that the model was trained with",
    )
    timeout_s: float = Field(2.0, gt=0, le=60, description="time limit for the vector of a query")
    threads: int = Field(
        0, ge=0, le=64, description="threads of a local model; 0: depends on the number of cores"
    )
    batch_size: int = Field(
        50, ge=1, le=1000, description="chunks embedded and stored together, all or none"
    )
    max_retries: int = Field(
        3, ge=0, le=20, description="retries when an endpoint fails to embed chunks"
    )

    @property
    def model_name(self) -> str:
        return self.model or DEFAULT_MODELS[self.provider]


class RerankSettings(Section):
    """A second model that re-ranks the best results."""

    provider: Literal["off", "sentence-transformers"] = Field(
        "off", description="what re-ranks results; `sentence-transformers` needs the extra `local`"
    )
    model: str | None = Field(
        None, description="name or directory of a cross-encoder; unset: the provider's default"
    )
    candidates: int = Field(20, ge=2, le=100, description="chunks that are re-ranked")
    timeout_s: float = Field(
        1.0, gt=0, le=60, description="time limit; after that, results keep the order of fusion"
    )


class ChatSettings(Section):
    """The model that writes answers."""

    provider: Literal["extractive", "openai"] = Field(
        "extractive",
        description="`extractive` quotes documents; `openai` is any OpenAI-compatible endpoint",
    )
    model: str | None = Field(None, description="the endpoint's model")
    api_base: str | None = Field(None, description="address of an OpenAI-compatible endpoint")
    api_key: SecretStr | None = Field(None, description="API key of the endpoint")
    timeout_s: float = Field(30.0, gt=0, le=600, description="time limit of an answer")
    first_token_timeout_s: float = Field(
        2.6,
        gt=0,
        le=600,
        description="time limit for the first word of an answer; after that, the hits are shown",
    )
    max_tokens: int = Field(1024, ge=16, le=100_000, description="maximum length of an answer")
    concurrent_answers: int = Field(
        10, ge=1, le=1000, description="answers that one process writes at the same time"
    )
    concurrent_answers_each: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="maximum of these for one user; unset: half or two, but fewer than all; "
        "at least one",
    )

    @property
    def answers_per_user(self) -> int:
        """Return how many answers to one user a process writes at the same time, 1 or more."""
        # Two if possible: a question that is asked again begins before the old answer has ended.
        half = max(2, self.concurrent_answers // 2)
        return self.concurrent_answers_each or min(half, max(1, self.concurrent_answers - 1))
