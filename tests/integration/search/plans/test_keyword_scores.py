"""Keyword scores are those of the extension; words and vectors in memory follow the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import text

from portal.database import bm25
from portal.domain.search import SearchMode
from portal.domain.search.bm25 import ALL_CHUNKS, DEFAULT_PARAMETERS, Bm25Parameters
from portal.store.binary_parameters import UuidsParameter
from portal.store.embedding_models import registry
from portal.store.search.keywords import candidates as keyword_candidates
from portal.store.search.keywords.candidates import best_of_index
from portal.store.search.selection import row_cache
from portal.store.search.selection.chunk_vectors import ChunkVectors, vectors_of_jobs
from portal.store.search.selection.enabled import EnabledSet
from portal.store.search.selection.row_cache import RowCache, listed
from portal.store.search.selection.term_postings import WORDS_OF_JOBS, TermPostings
from portal.store.session import Session
from portal.store.statements import fetch, fetch_under
from portal.text.terms.analyser import query_terms
from tests.integration.search.plans.conftest import NEVER, SIZE, find
from tests.integration.search.plans.synthetic_corpus import (
    CHUNKS_PER_DOCUMENT,
    SyntheticCorpus,
    chunk_id,
    document_id,
    place_of,
)


def bm25_by_extension(corpus: SyntheticCorpus, words: Sequence[str]) -> dict[UUID, float]:
    """Return every chunk's score, as pg_textsearch computes it without the index."""
    with corpus.services.database.read() as session:
        rows = session.execute(
            text(
                f"SELECT id, -(terms <@> to_bm25query(:words, '{ALL_CHUNKS.name}'))"
                " FROM document_chunks WHERE terms_vector @@"
                " to_tsquery('simple', replace(:words, ' ', '|'))"
            ),
            {"words": " ".join(words)},
        )
        return {row[0]: row[1] for row in rows}


def selected(corpus: SyntheticCorpus, count: int, *, of_chunks: bool = False) -> EnabledSet:
    """Return an enabled set of `count` evenly spaced documents, or of their chunks."""
    documents = corpus.size // CHUNKS_PER_DOCUMENT
    places = range(0, documents, documents // count)
    with corpus.services.database.read() as session:
        key = "c.id" if of_chunks else "DISTINCT c.job_id"
        ids = session.scalar(
            text(
                f"SELECT CAST(array_agg({key}) AS text) FROM document_chunks c"
                " WHERE document_id = ANY(:ids)"
            ),
            {"ids": [document_id(place) for place in places]},
        )
    return EnabledSet(len(places), len(places) * CHUNKS_PER_DOCUMENT, ids, of_chunks)


@pytest.fixture(params=[(1.2, 0.75), (0.4, 1.0), (3.0, 0.2), (2.0, 0.0)], ids=str)
def shape(request: pytest.FixtureRequest, corpus: SyntheticCorpus) -> Bm25Parameters:
    """Rebuild the index with these k1 and b."""
    k1, b = request.param
    bm25.rebuild_after_start(corpus.services.database.engine, Bm25Parameters(k1=k1, b=b))
    return Bm25Parameters(k1, b)


@pytest.mark.parametrize("of_chunks", [False, True])
def test_scores_are_those_of_the_extension_however_they_are_come_by(
    corpus: SyntheticCorpus, shape: Bm25Parameters, of_chunks: bool
) -> None:
    few, many = (selected(corpus, count, of_chunks=of_chunks) for count in (10, 400))
    for query in ("common", "budget river engine", "年假 报销 合同", "visitor 河流 absent"):
        words = query_terms(query)
        expected = bm25_by_extension(corpus, words)
        with corpus.services.database.read() as session:
            scored = keyword_candidates.KeywordScorer(session, words, shape, 100).best_of_all(few)
            filtered = keyword_candidates.best_of_index(
                session,
                words,
                *keyword_candidates._is_in(many),
                rows=SIZE,
                limit=100,
                enough=100,
                settings={},
            )
        process = corpus.with_settings(plan=NEVER, bm25_k1=shape.k1, bm25_b=shape.b)
        plain, _ = find(
            process, corpus.admin, query, corpus.vectors[0], mode=SearchMode.KEYWORD, limit=100
        )
        assert filtered
        assert plain
        for one in (*scored, *filtered):
            assert one.bm25 == pytest.approx(expected[one.chunk_id], abs=1e-4)
        for one in plain:
            assert one.offer.bm25 == pytest.approx(expected[one.chunk.chunk_id], abs=1e-4)
        assert_best([one.offer.bm25 for one in plain], expected.values())


def assert_best(scores: list[float], of: Any) -> None:
    """Check that these are the greatest of all scores, in order."""
    best = sorted(of, reverse=True)[: len(scores)]
    assert scores == pytest.approx(best, abs=1e-4)


def test_only_words_of_rows_that_changed_are_fetched_again(corpus: SyntheticCorpus) -> None:
    ids = selected(corpus, 4).ids or ""
    changed, emptied, *same = listed(ids)
    cache = RowCache[TermPostings](1_000_000)
    with (
        corpus.services.database.begin() as session,
        patch.object(row_cache, "fetch", wraps=fetch) as read,
    ):
        before = cache.get(session, WORDS_OF_JOBS, ids, 1)
        session.execute(
            text("UPDATE document_chunks SET terms = 'newword' WHERE job_id = :job"),
            {"job": changed},
        )
        session.execute(text("DELETE FROM document_chunks WHERE job_id = :job"), {"job": emptied})
        after = cache.get(session, WORDS_OF_JOBS, ids, 2)
        assert cache.get(session, WORDS_OF_JOBS, ids, 2) is after
        session.rollback()
    assert [call.args[2]["ids"].wire for call in read.call_args_list] == [
        UuidsParameter(ids).wire,
        UuidsParameter(ids).wire,
        UuidsParameter(f"{{{changed},{emptied}}}").wire,
    ]
    assert len(before.chunk_ids) == (2 + len(same)) * CHUNKS_PER_DOCUMENT
    assert len(after.chunk_ids) == (len(same) + 1) * CHUNKS_PER_DOCUMENT
    found = after.bm25({"newword": 1.0}, 20.0, Bm25Parameters(1.2, 0.75))
    assert (found > 0).sum() == CHUNKS_PER_DOCUMENT


def test_vectors_in_memory_are_those_of_the_rows(corpus: SyntheticCorpus) -> None:
    ids = selected(corpus, 4).ids or ""
    changed, emptied, *_ = listed(ids)
    cache = RowCache[ChunkVectors](1_000_000)
    with corpus.services.database.begin() as session:
        source = vectors_of_jobs(active_partition(session))
        before = cache.get(session, source, ids, 1)
        assert vectors_by_chunk(before) == stored_vectors(session, ids)
        session.execute(
            text(
                "UPDATE chunk_embeddings SET embedding = (SELECT embedding FROM chunk_embeddings "
                "WHERE job_id = :emptied LIMIT 1) WHERE job_id = :changed"
            ),
            {"changed": changed, "emptied": emptied},
        )
        session.execute(text("DELETE FROM chunk_embeddings WHERE job_id = :job"), {"job": emptied})
        assert cache.get(session, source, ids, 1) is before
        after = cache.get(session, source, ids, 2)
        assert vectors_by_chunk(after) == stored_vectors(session, ids)
        assert len(after.chunk_ids) == len(before.chunk_ids) - CHUNKS_PER_DOCUMENT
        session.rollback()


def active_partition(session: Session) -> str:
    model = registry.find_active(session)
    assert model is not None
    return model.partition


def vectors_by_chunk(vectors: ChunkVectors) -> dict[str, bytes]:
    return {
        name: vector.tobytes()
        for name, vector in zip(vectors.chunk_ids, vectors.vectors, strict=True)
    }


def stored_vectors(session: Session, ids: str) -> dict[str, bytes]:
    rows = session.execute(
        text(
            "SELECT CAST(chunk_id AS text), CAST(embedding AS real[]) FROM chunk_embeddings "
            "WHERE job_id = ANY(CAST(:ids AS uuid[]))"
        ),
        {"ids": ids},
    )
    return {name: np.array(vector, np.float32).tobytes() for name, vector in rows}


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_best_of_a_selection_are_the_best_that_match(corpus: SyntheticCorpus, count: int) -> None:
    bm25.rebuild_after_start(corpus.services.database.engine, DEFAULT_PARAMETERS)
    enabled = selected(corpus, count)
    step = corpus.size // CHUNKS_PER_DOCUMENT // count
    for query in ("common", "budget river", "年假 报销"):
        words = query_terms(query)
        matching = {
            chunk: score
            for chunk, score in bm25_by_extension(corpus, words).items()
            if place_of(chunk) // CHUNKS_PER_DOCUMENT % step == 0
        }
        with corpus.services.database.read() as session:
            own = keyword_candidates.KeywordScorer(
                session, words, Bm25Parameters(1.2, 0.75), limit=100
            )
            found = own.best_of_selection(enabled, total_chunks=corpus.size, enough=20, settings={})
        assert len(found) >= min(20, len(matching))
        assert {one.chunk_id for one in found} <= matching.keys()
        assert_best([one.bm25 for one in found], matching.values())


def test_words_of_a_larger_selection_are_cached_incrementally(corpus: SyntheticCorpus) -> None:
    bm25.rebuild_after_start(corpus.services.database.engine, DEFAULT_PARAMETERS)
    enabled = selected(corpus, 250)
    words, cache = query_terms("common budget"), RowCache[TermPostings](10_000_000)
    with corpus.services.database.read() as session:
        own = keyword_candidates.KeywordScorer(
            session, words, Bm25Parameters(1.2, 0.75), limit=100, version=1, postings=cache
        )

        def found() -> list[keyword_candidates.Scored]:
            return own.best_of_selection(enabled, total_chunks=corpus.size, enough=20, settings={})

        with patch.object(keyword_candidates, "best_of_index", wraps=best_of_index) as by_index:
            results = [found() for _ in range(20)]
        # Each search fetches some tens of the 500 chunks.
        assert 1 < by_index.call_count < 19
    for result in results[1:]:
        assert [one.chunk_id for one in result] == [one.chunk_id for one in results[0]]
        assert [one.bm25 for one in result] == pytest.approx(
            [one.bm25 for one in results[0]], abs=1e-4
        )


@pytest.mark.parametrize(
    ("query", "expected"),
    [("unique4", {4}), ("unique4 unique40 unique5", {4, 40, 5}), ("absent", set())],
)
def test_search_ends_when_the_index_has_no_more_matches(
    corpus: SyntheticCorpus, query: str, expected: set[int]
) -> None:
    """Once the index is exhausted, reading more of it finds nothing."""
    everything = selected(corpus, corpus.size // CHUNKS_PER_DOCUMENT)
    with (
        patch.object(keyword_candidates, "fetch_under", wraps=fetch_under) as read,
        corpus.services.database.read() as session,
    ):
        found = keyword_candidates.best_of_index(
            session,
            query.split(),
            *keyword_candidates._is_in(everything),
            rows=150,
            limit=100,
            enough=20,
            settings={},
        )
    assert {one.chunk_id for one in found} == {chunk_id(place) for place in expected}
    assert read.call_count == 1
