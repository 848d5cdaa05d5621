"""Chroma only: with and without its own BM25 index, and changed by other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from portal.errors import ServerSetup
from portal.integrations.chroma import collection as opening
from portal.integrations.chroma import words
from portal.integrations.chroma.bm25 import SPARSE_KEY, PortalBm25
from portal.integrations.chroma.client import open_directory, open_server
from portal.integrations.chunk_store import SemanticChunkStore
from portal.integrations.chunk_stores import open_chunk_store
from portal.text.terms.analyser import query_terms
from tests.factories.chroma import with_sparse_indexes
from tests.factories.semantic import named
from tests.integration.collections.chunk_stores.conftest import (
    CHUNKS,
    COSINES,
    PLAIN,
    QUESTION,
    Chroma,
    PlannedEmbedder,
    chunk,
    ids,
    similarities,
)

pytestmark = pytest.mark.chroma


def stored(chroma: Chroma, **options: Any) -> SemanticChunkStore:
    store = chroma.open(**{"embedder": PlannedEmbedder(), "hybrid": True} | options)
    store.upsert(CHUNKS)
    return store


def by_words(store: SemanticChunkStore, question: str) -> set[str]:
    return set(ids(store._backend.sparse(question, 10, None)))


def rewrite(theirs: Any, key: str, text: str) -> None:
    """Change a record as another program would."""
    theirs.update(ids=[key], documents=[text], embeddings=[[1, 0, 0]])


# --- its own BM25 index --------------------------------------------------------------------


def test_1_1_to_1_4_collection_gets_an_index_that_chroma_fills(chroma: Chroma) -> None:
    world = chroma.world(native=True)
    store = world.filled()
    made = chroma.client.get_collection("content_chunks", embedding_function=None)
    index = chroma.server._schemas[made.id]["keys"][SPARSE_KEY]["sparse_vector"]
    config = index["sparse_vector_index"]["config"]
    assert config["source_key"] == "#document"
    assert config["bm25"] is True
    assert config["embedding_function"]["name"] == PortalBm25.name()
    # Each document has both vectors; the sparse one is never returned.
    kept = chroma.server._vectors[made.id]
    assert set(kept) == {one.id for one in CHUNKS}
    assert all(len(each[SPARSE_KEY].indices) > 1 for each in kept.values())
    assert store.get() == CHUNKS
    assert SPARSE_KEY not in repr(store.semantic_search(QUESTION, 9))
    with pytest.raises(ValueError, match=SPARSE_KEY):
        store.upsert([chunk("new", "has it", (1, 0, 0), **{SPARSE_KEY: "mine"})])


def test_3_2_and_6_4_chroma_is_asked_for_words_of_a_type_and_as_many_as_are_wanted(
    chroma: Chroma,
) -> None:
    chroma.world(native=True).filled().semantic_search("年假 leave", 20, content_type=PLAIN)
    (search,) = chroma.server.searches
    assert search["filter"] == {"content_type": {"$eq": PLAIN}}
    knn = search["rank"]["$knn"]
    assert (knn["key"], knn["limit"], search["limit"]["limit"]) == (SPARSE_KEY, 40, 40)
    assert knn["query"]["values"] == [1.0] * len(query_terms("年假 leave"))


def test_3_5_native_index_fails_and_meaning_answers(chroma: Chroma) -> None:
    store = chroma.world(native=True).filled()
    chroma.server.breaks = RuntimeError("the index is being compacted")
    outcome = store.search(QUESTION)
    assert (outcome.method, outcome.degraded) == ("dense", ("keyword_unavailable",))


def test_6_5_collection_without_an_index_is_searched_by_meaning(
    chroma: Chroma, log: list[dict[str, Any]]
) -> None:
    made_before = stored(chroma, hybrid=False, lexical="native")
    chroma.client = with_sparse_indexes(chroma.client)
    store = stored(chroma, lexical="native")
    assert store.status.reason == opening.NO_BM25_INDEX
    assert store.search(QUESTION).method == "dense"
    assert store.semantic_search(QUESTION) == made_before.semantic_search(QUESTION)
    assert not named(log, "leg_failed")
    # The portal can still rank words itself.
    assert stored(chroma, lexical="own").search(QUESTION).method == "hybrid"


def test_index_made_by_another_program_is_used_with_its_own_function(chroma: Chroma) -> None:
    import chromadb
    from chromadb.utils.embedding_functions import ChromaBm25EmbeddingFunction

    chroma.client = with_sparse_indexes(chroma.client)
    schema = chromadb.Schema().create_index(
        chromadb.SparseVectorIndexConfig(
            source_key=chromadb.K.DOCUMENT, embedding_function=ChromaBm25EmbeddingFunction()
        ),
        key="theirs",
    )
    chroma.client.get_or_create_collection("content_chunks", schema=schema, embedding_function=None)
    store = stored(chroma, lexical="native")
    assert by_words(store, "annual") == {"leave", "report"}
    assert store.get() == CHUNKS


# --- no index of its own ------------------------------------------------------------------------


def test_8_3_local_chroma_is_noticed_to_have_none(
    chroma: Chroma, log: list[dict[str, Any]]
) -> None:
    for _ in range(2):  # First created, then opened.
        store = stored(chroma, lexical="native")
        assert not store.is_hybrid_search_enabled()
        assert store.status.reason is not None
        assert store.status.reason.startswith(f"{opening.BM25_UNAVAILABLE}: ")
        assert "Sparse vector indexing is not enabled in local" in store.status.reason
        assert (store.search(QUESTION).method, store.count()) == ("dense", 6)
    (warning,) = [entry for entry in log if entry["log_level"] != "info"]
    assert (warning["event"], warning["log_level"]) == ("semantic_search_configured", "warning")
    assert warning["reason"] == store.status.reason


@pytest.mark.parametrize(
    ("error", "is_logged"),
    [
        (RuntimeError("the disk of the index is full"), True),
        (TypeError("got an unexpected keyword argument 'schema'"), False),
        (AttributeError("module 'chromadb' has no attribute 'Schema'"), False),
    ],
)
def test_1_5_index_that_cannot_be_made_leaves_meaning(
    chroma: Chroma, monkeypatch: pytest.MonkeyPatch, error: Exception, is_logged: bool
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(opening.log, "error", lambda event, **_: logged.append(event))

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(opening, "bm25_schema", fail)
    store = stored(chroma, lexical="native")
    assert store.status.reason == f"{opening.BM25_UNAVAILABLE}: {error}"
    assert store.search(QUESTION).method == "dense"
    assert logged == (["chroma_bm25_index_failed"] if is_logged else [])


def test_setting_adds_a_keyword_leg_where_there_is_none(
    chroma: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTAL_CHROMA__LEXICAL_LEG", "own")
    store = stored(chroma)
    assert (store.status.reason, store.search(QUESTION).method) == (None, "hybrid")


# --- words ranked by the portal -----------------------------------------------------------------


def test_records_that_others_write_into_the_directory_are_found_by_words(chroma: Chroma) -> None:
    store = stored(chroma, lexical="own")
    assert by_words(store, "leave") == {"leave", "code"}
    other = open_directory(chroma.directory).get_collection(
        "content_chunks", embedding_function=None
    )
    rewrite(other, "leave", "Changed in its place.")
    assert by_words(store, "leave") == {"code"}
    assert by_words(store, "changed place") == {"leave"}
    other.add(ids=["added"], embeddings=[[1, 0, 0]], documents=["Somebody's leave."])
    other.delete(ids=["code"])
    assert by_words(store, "leave") == {"added"}
    # Another program writes just before the store does.
    rewrite(other, "report", "Of leave.")
    store.upsert([chunk("own", "More leave.", (1, 0, 0))])
    assert by_words(store, "leave") == {"added", "report", "own"}
    # A record without text is found by its vector only.
    other.add(ids=["bare"], embeddings=[[9, 0, 0]])
    assert store.semantic_search(QUESTION, 1)[0].content in {"", "Somebody's leave."}
    assert store.get(["bare"])[0].content == ""


def test_records_written_through_the_store_are_not_read_again(
    chroma: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stored(chroma, lexical="own")
    assert by_words(store, "annual") == {"leave", "report"}

    def fail(*_: object) -> None:
        raise AssertionError("all was read again")

    monkeypatch.setattr(words, "_all", fail)
    store.upsert([chunk("new", "annual", (1, 0, 0)), chunk("leave", "none", (1, 0, 0))])
    store.delete(["report"])
    assert by_words(store, "annual") == {"new"}


def test_collection_without_change_signals_is_reread_periodically(
    chroma: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stored(chroma, lexical="own")
    own = store._backend._own
    monkeypatch.setattr(own, "_directory", None)
    assert by_words(store, "leave") == {"leave", "code"}
    other = chroma.client.get_collection("content_chunks", embedding_function=None)
    rewrite(other, "office", "On leave.")
    assert by_words(store, "leave") == {"leave", "code"}
    # Results show the current text, and never deleted records.
    rewrite(other, "leave", "Changed.")
    assert by_words(store, "leave") == {"office", "code"}
    rewrite(other, "report", "On leave.")
    monkeypatch.setattr(words, "RECHECK_S", 0.0)
    assert by_words(store, "leave") == {"office", "code", "report"}
    other.delete(ids=["code"])
    assert by_words(store, "leave") == {"office", "report"}


def test_record_changed_during_a_reread_hides_only_that_record(
    chroma: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stored(chroma, lexical="own")
    own = store._backend._own
    other = open_directory(chroma.directory).get_collection(
        "content_chunks", embedding_function=None
    )
    read, times = own._read, []

    def read_too_early(there: Any) -> None:
        read(there)
        times.append(1)
        rewrite(other, "code", f"Leave {len(times)}")

    monkeypatch.setattr(own, "_read", read_too_early)
    assert by_words(store, "leave") == {"leave"}
    assert len(times) == 2
    monkeypatch.setattr(own, "_read", read)
    assert by_words(store, "leave") == {"leave", "code"}


def test_failed_write_leaves_keyword_search_correct(chroma: Chroma) -> None:
    store = stored(chroma, lexical="own")
    assert by_words(store, "annual") == {"leave", "report"}
    with pytest.raises(ValueError, match="dimension"):
        store.upsert([chunk("leave", "annual annual", (1, 0))])
    assert by_words(store, "annual") == {"leave", "report"}
    assert store.get() == CHUNKS


# --- existing collections -----------------------------------------------------------------------


@pytest.mark.parametrize("space", ["l2", "ip", None])
def test_collection_of_any_distance_is_searched_by_cosine(
    chroma: Chroma, space: str | None
) -> None:
    metadata = {"hnsw:space": space} if space else None
    chroma.client.create_collection("content_chunks", metadata=metadata)
    store = stored(chroma, lexical="own")
    results = store.semantic_search(QUESTION, 6)
    assert similarities(results) == COSINES
    dense = store._backend.dense(np.array([1, 0, 0], dtype=np.float32), 6, None)
    assert ids(dense) == list(COSINES)


def test_batches_are_as_large_as_chroma_takes(
    chroma: Chroma, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = chroma.open(embedder=PlannedEmbedder(), hybrid=False)
    monkeypatch.setattr(store._backend, "_max_batch_size", 2)
    store.upsert(CHUNKS)
    assert store.get([one.id for one in CHUNKS]) == CHUNKS
    assert store.delete([one.id for one in CHUNKS]) == 6


@pytest.mark.parametrize("metadata", [{"deep": {"er": 1}}, {"big": 2**63}, {"$where": 1}, {"": 1}])
def test_metadata_that_chroma_would_lose_is_refused(
    chroma: Chroma, metadata: dict[str, Any]
) -> None:
    store = chroma.open(embedder=PlannedEmbedder(), hybrid=False)
    with pytest.raises(ValueError, match=r"\w"):
        store.upsert([chunk("one", "text", (1, 0, 0), **metadata)])
    assert store.count() == 0


def test_directory_is_opened_quietly_or_not_at_all(chroma: Chroma, tmp_path: Path) -> None:
    assert chroma.client.get_settings().anonymized_telemetry is False
    by_path = open_chunk_store("chroma", directory=chroma.directory, embedder=PlannedEmbedder())
    by_path.upsert(CHUNKS)
    assert stored(chroma, hybrid=False).get() == CHUNKS
    with pytest.raises(ServerSetup, match="not a Chroma directory"):
        open_directory(tmp_path, create=False)
    (tmp_path / "file").touch()
    with pytest.raises(ServerSetup, match="cannot open"):
        open_directory(tmp_path / "file")
    with pytest.raises(ServerSetup, match=r"no Chroma server answers at 127\.0\.0\.1:9"):
        open_server("127.0.0.1", 9)
