"""Embedding models, one provider per file. To add one, write a file and a line in `PROVIDERS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from portal.domain.caching import SharedCache
from portal.domain.embedding import Embedder
from portal.embeddings.cached import CachedQueries
from portal.embeddings.shared import SharedVectors
from portal.settings import EmbeddingSettings


def _bundled(settings: EmbeddingSettings, cache_dir: Path | None) -> Embedder:
    from portal.embeddings.providers.bundled import BundledEmbedder

    return BundledEmbedder(
        name=settings.model,
        threads=settings.threads,
        timeout_s=settings.timeout_s,
        cache_dir=cache_dir,
    )


def _hashing(settings: EmbeddingSettings, _cache_dir: Path | None) -> Embedder:
    from portal.embeddings.providers.hashing import DEFAULT_DIMENSIONS, HashingEmbedder

    return HashingEmbedder(
        name=settings.model, dimensions=settings.dimensions or DEFAULT_DIMENSIONS
    )


def _sentence_transformers(settings: EmbeddingSettings, _cache_dir: Path | None) -> Embedder:
    from portal.embeddings.providers.sentence_transformers import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(
        model=settings.model,
        dimensions=settings.dimensions,
        query_prefix=settings.query_prefix,
        timeout_s=settings.timeout_s,
    )


def _openai(settings: EmbeddingSettings, _cache_dir: Path | None) -> Embedder:
    from portal.embeddings.providers.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        model=settings.model,
        dimensions=settings.dimensions,
        api_base=settings.api_base,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        query_prefix=settings.query_prefix,
        timeout_s=settings.timeout_s,
        max_retries=settings.max_retries,
    )


PROVIDERS: dict[str, Callable[[EmbeddingSettings, Path | None], Embedder]] = {
    "bundled": _bundled,
    "hashing": _hashing,
    "sentence-transformers": _sentence_transformers,
    "openai": _openai,
}


def create_embedder(
    settings: EmbeddingSettings, cache: SharedCache | None = None, cache_dir: Path | None = None
) -> Embedder:
    """Return the model for these settings, with a cache of query vectors.

    Processes that are given the same `cache` share vectors. `cache_dir` is for what a model
    measures on this machine. Nothing is loaded or requested yet, so an unusable model does not keep
    a process from starting: embedding then raises EmbedderUnavailable, with the remedy. Only a
    bundled model that does not exist is rejected here.
    """
    model = PROVIDERS[settings.provider](settings, cache_dir)
    shared = SharedVectors(cache, settings, model.name) if cache is not None else None
    return CachedQueries(model, settings.provider, shared=shared)
