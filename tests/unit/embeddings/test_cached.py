from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.embeddings.cached import CachedQueries
from portal.embeddings.hashing import HashingEmbedder
from portal.errors import EmbedderUnavailable


class Counting(HashingEmbedder):
    asked = 0

    def embed_query(self, text):
        self.asked += 1
        return super().embed_query(text)


def test_question_asked_again_is_not_embedded_again():
    model = Counting()
    cached = CachedQueries(model)
    assert cached.embed_query("a b").tolist() == cached.embed_query("a b").tolist()
    assert model.asked == 1


def test_memory_is_bounded():
    model = Counting()
    cached = CachedQueries(model, max_queries=2)
    for text in ("one", "two", "three", "one"):
        cached.embed_query(text)
    assert model.asked == 4


def test_nobody_can_change_what_others_get():
    cached = CachedQueries(HashingEmbedder())
    with pytest.raises(ValueError, match="read-only"):
        cached.embed_query("a")[0] = 1


def test_many_threads_get_right_vectors():
    cached = CachedQueries(HashingEmbedder(), max_queries=3)
    texts = [f"word{n % 7}" for n in range(200)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(cached.embed_query, texts))
    plain = HashingEmbedder()
    assert all((v == plain.embed_query(t)).all() for v, t in zip(found, texts, strict=True))


def test_it_is_known_whether_the_model_answered_when_last_asked():
    class Moody(HashingEmbedder):
        error = None

        def embed_query(self, text):
            if self.error:
                raise self.error
            return super().embed_query(text)

    model = Moody()
    cached = CachedQueries(model)
    assert cached.seen is None
    cached.embed_query("a")
    assert cached.seen.is_well
    model.error = EmbedderUnavailable(reason="down")
    with pytest.raises(EmbedderUnavailable):
        cached.embed_query("b")
    assert not cached.seen.is_well
    cached.embed_query("a")
    assert not cached.seen.is_well, "a remembered vector says nothing of the model"
    model.error = None
    cached.embed_query("b")
    assert cached.seen.is_well


def test_a_look_asks_the_model_past_what_is_remembered():
    model = Counting()
    cached = CachedQueries(model)
    cached.look()
    cached.look()
    assert model.asked == 2
