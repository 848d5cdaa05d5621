"""The contract of chunk stores, for PostgreSQL and Chroma.

Chroma's own keyword ranking runs on the fake server of `tests.factories.chroma`.
"""

from __future__ import annotations

import numpy as np
import pytest

from portal.domain.search.semantic import SemanticChunk
from portal.errors import EmbedderUnavailable
from portal.integrations.chunk_stores import open_chunk_store
from tests.integration.collections.chunk_stores.conftest import (
    CHUNKS,
    COSINES,
    EVERYWHERE,
    MARKDOWN,
    PLAIN,
    QUESTION,
    World,
    chunk,
    ids,
    similarities,
)

SECRET = "who earns what in 北京?"
HOSTILE = "'; DROP TABLE documents; -- \" } {$where: 1} %s \\ </script> 🎉"


# --- storing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", EVERYWHERE, indirect=True)
def test_chunks_are_stored_read_counted_and_deleted(world: World) -> None:
    store = world.filled()
    assert store.count() == len(CHUNKS)
    assert store.get() == CHUNKS
    assert ids(store.get(["code", "nobody", "leave", "code"])) == ["code", "leave"]
    assert ids(store.get(limit=2, offset=1)) == ["handbook", "report"]
    assert store.get(["nobody"]) == store.get([]) == store.get(limit=0) == []
    assert store.get(["leave"])[0].vector is None
    (whole,) = store.get(["leave"], with_vectors=True)
    np.testing.assert_allclose(whole.vector, [2, 0, 0])
    # The old record is replaced entirely, and the order stays the same.
    store.upsert([chunk("handbook", "New.", (1, 0, 0), other=[1, 2])])
    assert store.get(["handbook"]) == [SemanticChunk("handbook", "New.", {"other": [1, 2]})]
    assert ids(store.get(limit=2)) == ["leave", "handbook"]
    store.upsert([chunk("handbook", "Bare.", (1, 0, 0))])
    assert store.get(["handbook"]) == [SemanticChunk("handbook", "Bare.", {})]
    assert store.delete(["handbook", "nobody", "office", "office"]) == 2
    assert (store.delete([]), store.delete(["nobody"])) == (0, 0)
    assert store.count() == len(CHUNKS) - 2
    assert "handbook" not in ids(store.semantic_search(QUESTION, 10))


def test_texts_of_any_kind_are_stored_and_found(world: World) -> None:
    store = world.open()
    store.upsert(
        [
            chunk("none", None, kind=None, n=1),
            chunk("nul", "half\0leave and \ud800 annual", note="a\0b"),
            chunk(HOSTILE, HOSTILE, (1, 0, 0), **{'it\'s "so"': HOSTILE}),
        ]
    )
    # Chunks without a vector are embedded from their stored text.
    assert world.embedder.embedded == ["", "half leave and ? annual"]
    assert store.get() == [
        SemanticChunk("none", "", {"n": 1}),
        SemanticChunk("nul", "half leave and ? annual", {"note": "a b"}),
        SemanticChunk(HOSTILE, HOSTILE, {'it\'s "so"': HOSTILE}),
    ]
    assert {one.id for one in store.semantic_search(HOSTILE)} == {"none", "nul", HOSTILE}
    assert "nul" in ids(store.semantic_search("annual\0 \ud800 leave", threshold=-1))
    assert store.semantic_search(QUESTION, content_type=HOSTILE) == []
    assert store.semantic_search(QUESTION, content_type="x" * 10_000) == []


def test_batch_with_an_unstorable_chunk_is_refused_whole(world: World) -> None:
    store = world.filled()
    refused = [
        [chunk("other", "of two dimensions", (1, 0))],
        [chunk("nan", "is no number", (1, float("nan"), 0))],
        [chunk("one", "a", (1, 0, 0)), chunk("one", "b", (1, 0, 0))],
        [chunk("", "no id", (1, 0, 0))],
        [chunk("a\0b", "no such id", (1, 0, 0))],
        [chunk("nan", "in metadata", (1, 0, 0), n=float("inf"))],
    ]
    for chunks in refused:
        with pytest.raises(ValueError, match=r"\w"):
            store.upsert([chunk("new", "comes along", (1, 0, 0)), *chunks])
    for arguments in ({"limit": -1}, {"offset": -1}):
        with pytest.raises(ValueError, match="whole number"):
            store.get(**arguments)
    world.embedder.error = EmbedderUnavailable(reason="it is away")
    with pytest.raises(EmbedderUnavailable):
        store.upsert([chunk("new", "has no vector")])
    assert store.get() == CHUNKS


@pytest.mark.parametrize("world", EVERYWHERE, indirect=True)
def test_restart_loses_nothing(world: World) -> None:
    before = world.filled().search(QUESTION)
    world.restart()
    store = world.open()
    assert store.get() == CHUNKS
    assert store.search(QUESTION) == before


# --- semantic_search ------------------------------------------------------------------------------


def test_1_3_what_is_written_is_found_by_either_leg_at_once(world: World) -> None:
    store = world.filled()
    backend, vector = store._backend, world.embedder.embed_query("")

    def by_words(question: str) -> list[str]:
        return ids(backend.sparse(question, 10, None))

    assert by_words("annual") == ["report", "leave"] or by_words("annual") == ["leave", "report"]
    store.upsert([chunk("leave", "A sabbatical", (0, 0, 1)), chunk("new", "annual", (3, 0, 0))])
    assert set(by_words("annual")) == {"report", "new"}
    assert set(by_words("sabbatical")) == {"leave", "code"}
    assert ids(backend.dense(vector, 1, None)) == ["new"]
    store.delete(["new"])
    assert by_words("annual") == ["report"]
    assert by_words("年假") == ["chinese"]
    assert by_words("volcano !?") == by_words("...") == []
    assert ids(backend.dense(vector, 1, None)) == ["handbook"]


def test_2_and_6_1_disabled_hybrid_searches_by_meaning_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USE_HYBRID_SEARCH", "yes")
    assert world.open(hybrid=None).is_hybrid_search_enabled()
    monkeypatch.delenv("USE_HYBRID_SEARCH")
    store = world.filled(hybrid=None)
    assert not store.is_hybrid_search_enabled()
    assert (store.status.is_requested, store.status.reason) == (False, None)
    outcome = store.search(QUESTION, 3)
    assert (outcome.method, ids(outcome.results)) == ("dense", ["leave", "handbook", "chinese"])
    assert dict(outcome.results[1].metadata) == {
        "content_type": MARKDOWN,
        "similarity": pytest.approx(0.8),
    }


@pytest.mark.parametrize("world", EVERYWHERE, indirect=True)
def test_2_3_to_5_1_both_legs_are_fused_by_reciprocal_ranks(world: World) -> None:
    store = world.filled()
    assert store.is_hybrid_search_enabled()
    assert store.status.reason is None
    outcome = store.search(QUESTION, 6)
    assert (outcome.method, outcome.degraded) == ("hybrid", ())
    dense = ids(store._backend.dense(world.embedder.embed_query(""), 12, None))
    sparse = ids(store._backend.sparse(QUESTION, 12, None))
    assert dense == list(COSINES)
    assert sparse[0] == "leave"
    assert set(sparse) == {"leave", "report", "code"}
    expected = {
        key: sum(1 / (60 + leg.index(key) + 1) for leg in (dense, sparse) if key in leg)
        for key in dense
    }
    assert ids(outcome.results) == sorted(expected, key=lambda key: -expected[key])
    for result in outcome.results:
        assert result.metadata["rrf_score"] == pytest.approx(expected[result.id])
        assert result.metadata["similarity"] == result.similarity
    assert similarities(outcome.results) == COSINES
    assert {result.id: result.document_id for result in outcome.results}["code"] == "codes"
    assert {result.id: result.document_id for result in outcome.results}["leave"] == "leave"
    # The metadata is the chunk's own plus the search's fields.
    by_id = {result.id: result for result in outcome.results}
    assert set(by_id["leave"].metadata) == {
        "content_type", "similarity", "rrf_score", "dense_rank", "sparse_rank"
    }  # fmt: skip


@pytest.mark.parametrize("world", EVERYWHERE, indirect=True)
def test_6_4_content_type_counts_before_the_limit_in_both_legs(world: World) -> None:
    store = world.filled()
    crowd = [
        chunk(f"crowd {n}", "annual leave", (1, 0, n / 1000), content_type=PLAIN) for n in range(40)
    ]
    store.upsert(crowd)
    outcome = store.search(QUESTION, 2, None, MARKDOWN)
    ranks = {
        result.id: (result.metadata["dense_rank"], result.metadata["sparse_rank"])
        for result in outcome.results
    }
    assert ranks == {"handbook": (1, None), "code": (2, 1)}
    assert store.search(QUESTION, 2, content_type="image/png").results == ()
    assert {one.metadata["content_type"] for one in store.semantic_search(QUESTION, 9)} == {PLAIN}


@pytest.mark.parametrize("world", EVERYWHERE, indirect=True)
def test_8_2_collection_is_made_where_it_is_missing(world: World) -> None:
    store = world.open()
    assert (store.count(), store.get(), store.semantic_search(QUESTION)) == (0, [], [])
    assert store.delete(["leave"]) == 0
    store.upsert(CHUNKS)
    world.drop("content_chunks")
    assert store.semantic_search(QUESTION) == []
    assert store.count() == 0
    world.drop("content_chunks")
    store.upsert(CHUNKS)
    assert similarities(store.semantic_search(QUESTION, 6)) == COSINES
    assert store.is_hybrid_search_enabled()
    # Other collections are unaffected.
    assert world.open("other.chunks").count() == 0


def test_there_is_no_third_backend() -> None:
    with pytest.raises(ValueError, match="postgresql or chroma"):
        open_chunk_store("mysql")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pass exactly one"):
        open_chunk_store("chroma")
    with pytest.raises(ValueError, match="pass exactly one"):
        open_chunk_store("chroma", directory="here", host="there")
