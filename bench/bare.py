"""Bare index scans: the minimum time of the server, without the portal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.corpus import Corpus, Question
from bench.timing import Contender
from bench.truth import candidates_per_leg
from portal.domain.search.bm25 import SHARED_CHUNKS
from portal.store.embedding_models import registry
from portal.text.terms.analyser import query_terms

VECTOR_SCAN, BM25_SCAN = "bare vector index scan", "bare BM25 index scan"


@contextmanager
def bare_scans(corpus: Corpus) -> Iterator[dict[str, Contender]]:
    """Yield a scan of each leg's index: as many chunks as the leg returns, ids only, unfiltered."""
    limit = candidates_per_leg(corpus)
    services = corpus.services
    with services.database.begin() as session:
        model = registry.find_model(session, services.embedder.name)
    if model is None:
        raise LookupError(services.embedder.name)
    best = f"""
        SELECT chunk_id, terms <@> to_bm25query(%s, '{SHARED_CHUNKS.name}') FROM shared_chunks
        ORDER BY terms <@> to_bm25query(%s, '{SHARED_CHUNKS.name}') LIMIT {limit}
    """.encode()
    # Literals are made beforehand, because that time is not the server's.
    vectors = {
        question.text: f"[{','.join(map(str, corpus.search_vector(question).tolist()))}]"
        for question in corpus.questions
    }
    words = {question.text: " ".join(query_terms(question.text)) for question in corpus.questions}
    with psycopg.connect(
        services.database.conninfo, autocommit=True, prepare_threshold=None
    ) as connection:
        ef_search = services.settings.search.hnsw.ef_search
        connection.execute(f"SET hnsw.ef_search = {max(ef_search, limit)}".encode())
        connection.execute("SET plan_cache_mode = force_custom_plan")
        # Order by the expression on which the partition's index is built.
        order = model.order_expression("e", "asked").replace(":asked", "%s")
        nearest = f"""
            SELECT chunk_id FROM {model.partition} e ORDER BY {order} LIMIT {limit}
        """.encode()

        def scan_vectors(question: Question) -> int:
            return len(connection.execute(nearest, [vectors[question.text]]).fetchall())

        def scan_words(question: Question) -> int:
            asked = words[question.text]
            return len(connection.execute(best, [asked, asked]).fetchall())

        yield {VECTOR_SCAN: Contender(scan_vectors), BM25_SCAN: Contender(scan_words)}
