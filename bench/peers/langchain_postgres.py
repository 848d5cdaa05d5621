"""PGVectorStore of langchain-postgres with HybridSearchConfig."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

from bench import databases
from bench.corpus import Corpus, Question
from bench.corpus.profiles import RESULTS, Profile
from bench.peers.peer import LEG_LIMIT, Peer, operator_filter, visible_chunks
from portal.text.terms.analyser import query_terms

_TABLE = "passages"


class LangchainPostgres:
    """PGVectorStore with HybridSearchConfig on the same server, in its own database."""

    kind = "hybrid"

    def __init__(self, name: str, store: Any, exact: Any, config: Callable[..., Any]) -> None:
        self.name = name
        self._store, self._exact = store, exact
        self._config = config

    def search(self, profile: Profile, question: Question) -> list[int]:
        return self._search(self._store, profile, question)

    def exact(self, profile: Profile, question: Question) -> list[int]:
        return self._search(self._exact, profile, question)

    def _search(self, store: Any, profile: Profile, question: Question) -> list[int]:
        # A new configuration each time: the store's own keeps the words of its first search.
        config = self._config(fts_query=" ".join(query_terms(question.text)))
        found = store.similarity_search_by_vector(
            question.vector.tolist(),
            k=RESULTS,
            filter=operator_filter(profile),
            hybrid_search_config=config,
        )
        return [int(document.id) for document in found]


@contextmanager
def langchain_postgres(corpus: Corpus, _data_dir: Path) -> Iterator[list[Peer]]:
    """Yield the store as documented, and with pgvector's iterative scan, which it cannot enable."""
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_postgres import PGEngine, PGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, weighted_sum_ranking
    from langchain_postgres.v2.indexes import HNSWQueryOptions

    class Iterative(HNSWQueryOptions):
        def to_parameter(self) -> list[str]:
            return [*super().to_parameter(), "hnsw.iterative_scan = relaxed_order"]

    class Exact(HNSWQueryOptions):
        def to_parameter(self) -> list[str]:
            return ["enable_indexscan = off"]

    config = partial(
        HybridSearchConfig,
        tsv_column="content_tsv",
        tsv_lang="pg_catalog.simple",
        fusion_function=weighted_sum_ranking,
        fusion_function_parameters={
            "primary_results_weight": 0.7,
            "secondary_results_weight": 0.3,
        },
        primary_top_k=LEG_LIMIT,
        secondary_top_k=LEG_LIMIT,
    )
    database = f"bench_{corpus.size}_langchain"
    settings = corpus.services.settings.search.hnsw
    _fill_langchain(corpus, database, m=settings.m, ef_construction=settings.ef_construction)
    url = make_url(corpus.services.database.url)
    engine = PGEngine.from_connection_string(
        url.set(drivername="postgresql+asyncpg", database=database)
    )
    try:
        stores = [
            PGVectorStore.create_sync(
                engine,
                DeterministicFakeEmbedding(size=corpus.vectors.shape[1]),
                _TABLE,
                id_column="id",
                metadata_columns=["document"],
                metadata_json_column=None,
                index_query_options=options(ef_search=max(settings.ef_search, LEG_LIMIT)),
                hybrid_search_config=config(),
            )
            for options in (HNSWQueryOptions, Iterative, Exact)
        ]
        names = ("langchain-postgres", "langchain-postgres, iterative")
        yield [
            LangchainPostgres(name, store, stores[-1], config)
            for name, store in zip(names, stores, strict=False)
        ]
    finally:
        asyncio.run(engine.close())


def _fill_langchain(corpus: Corpus, database: str, *, m: int, ef_construction: int) -> None:
    """Make the table that `init_vectorstore_table` makes, filled by COPY, with the indexes that the
    documentation advises and one on the filtered column. It is kept for the next run."""
    from pgvector.psycopg import register_vector

    server_url = databases.named(corpus.services.database.url, "postgres")
    if databases.exists(server_url, database):
        return
    databases.execute(server_url, f"CREATE DATABASE {database}_new")
    url = databases.plain(server_url, database=f"{database}_new")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        register_vector(connection)
        connection.execute(
            f"""
            CREATE TABLE {_TABLE} (
                id integer PRIMARY KEY, content text NOT NULL,
                embedding vector({corpus.vectors.shape[1]}) NOT NULL,
                content_tsv tsvector NOT NULL, document integer
            )
            """.encode()
        )
        connection.execute(f"ALTER TABLE {_TABLE} ALTER embedding SET STORAGE PLAIN".encode())
        connection.execute(f"CREATE TEMP TABLE loaded (LIKE {_TABLE}, terms text)".encode())
        connection.execute("ALTER TABLE loaded ALTER content_tsv DROP NOT NULL")
        types = ["int4", "text", "vector", "int4", "text"]
        columns = "id, content, embedding, document, terms"
        with connection.cursor().copy(
            f"COPY loaded ({columns}) FROM STDIN WITH (FORMAT BINARY)".encode()
        ) as copy:
            copy.set_types(types)
            for row in visible_chunks(corpus):
                vector = corpus.vectors[row.place]
                copy.write_row((row.place, row.content, vector, row.document, row.terms))
        for statement in (
            f"""
            INSERT INTO {_TABLE}
            SELECT id, content, embedding, to_tsvector('simple', terms), document
              FROM loaded ORDER BY id
            """,
            f"""
            CREATE INDEX ON {_TABLE} USING hnsw (embedding vector_cosine_ops)
              WITH (m = {m}, ef_construction = {ef_construction})
            """,
            f"CREATE INDEX ON {_TABLE} USING gin (content_tsv)",
            f"CREATE INDEX ON {_TABLE} (document)",
            "VACUUM (ANALYZE)",
        ):
            connection.execute(statement.encode())
    # Renamed once complete, so that an interrupted run leaves nothing that looks ready.
    databases.execute(server_url, f"ALTER DATABASE {database}_new RENAME TO {database}")
