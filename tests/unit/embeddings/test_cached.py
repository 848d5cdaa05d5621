from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.embeddings.cached import CachedQueries
from portal.embeddings.providers.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable


class Counting(HashingEmbedder):
    asked = 0

    def embed_query(self, text):
        self.asked += 1
        return super().embed_query(text)


def test_repeated_query_is_embedded_once():
    model = Counting()
    cached = CachedQueries(model, "hashing")
    assert cached.embed_query("a b").tolist() == cached.embed_query("a b").tolist()
    assert model.asked == 1


def test_memory_is_bounded():
    model = Counting()
    cached = CachedQueries(model, "hashing", max_queries=2)
    for text in ("one", "two", "three", "one"):
        cached.embed_query(text)
    assert model.asked == 4


def test_cached_vectors_are_read_only():
    cached = CachedQueries(HashingEmbedder(), "hashing")
    with pytest.raises(ValueError, match="read-only"):
        cached.embed_query("a")[0] = 1


def test_many_threads_get_right_vectors():
    cached = CachedQueries(HashingEmbedder(), "hashing", max_queries=3)
    texts = [f"word{n % 7}" for n in range(200)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(cached.embed_query, texts))
    plain = HashingEmbedder()
    assert all((v == plain.embed_query(t)).all() for v, t in zip(found, texts, strict=True))


def test_health_is_that_of_the_last_model_call():
    class Moody(HashingEmbedder):
        error = None

        def embed_query(self, text):
            if self.error:
                raise self.error
            return super().embed_query(text)

    model = Moody()
    cached = CachedQueries(model, "hashing")
    assert cached.health is None
    cached.embed_query("a")
    assert cached.health.ok
    model.error = EmbedderUnavailable(reason="down")
    with pytest.raises(EmbedderUnavailable):
        cached.embed_query("b")
    assert not cached.health.ok
    cached.embed_query("a")
    assert not cached.health.ok, "a remembered vector says nothing of the model"
    model.error = None
    cached.embed_query("b")
    assert cached.health.ok


def test_probe_bypasses_the_cache():
    model = Counting()
    cached = CachedQueries(model, "hashing")
    cached.probe()
    cached.probe()
    assert model.asked == 2
