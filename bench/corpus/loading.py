"""Fill a prepared portal with a corpus by COPY, with the rows that indexing would store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb

from bench.corpus.synthesis import Outline, WrittenBlock, make_ids
from portal.domain.search.bm25 import INDEXES
from portal.embeddings.calibration.background import LANGUAGES
from portal.services import Services
from portal.services.operations import setup
from portal.store.documents.rows import portal_collection_id
from portal.store.documents.texts.shared_words import WITH_ALL_WORDS
from portal.store.embedding_models import registry
from portal.text.terms.analyser import analyser_version

CHUNK_IDS, DOCUMENT_IDS, JOB_IDS, REVISION_IDS = range(4)
_OF_A_DOCUMENT = (JOB_IDS, DOCUMENT_IDS, REVISION_IDS)
# Shares of documents that only their owner sees, and of documents in the trash.
PRIVATE_SHARE, DELETED_SHARE = 0.02, 0.01

_DOMAINS = ("law", "finance", "engineering", "people", "research", None)
# A trigger deletes by this index for each document.
_OF_TRIGGER = "ix_shared_chunks_document_id"
_TELL_EVERY = 10  # Blocks.
_BETWEEN_CHUNKS = "\n\n"
_COLUMNS = {
    "documents": {
        "id": "uuid",
        "collection_id": "uuid",
        "owner_id": "uuid",
        "title": "text",
        "file_name": "text",
        "media_type": "text",
        "size_bytes": "int8",
        "sha256": "text",
        "domain": "text",
        "visibility": "text",
        "status": "text",
    },
    "document_revisions": {
        "id": "uuid",
        "document_id": "uuid",
        "revision_number": "int4",
        "text": "text",
        "sha256": "text",
        "extractor": "text",
        "character_count": "int4",
    },
    "jobs": {"id": "uuid", "document_id": "uuid", "revision_id": "uuid", "status": "text"},
    "document_chunks": {
        "id": "uuid",
        "job_id": "uuid",
        "document_id": "uuid",
        "collection_id": "uuid",
        "chunk_index": "int4",
        "content": "text",
        "terms": "text",
        "analyser_version": "int2",
        "language": "text",
        "char_start": "int4",
        "char_end": "int4",
    },
    "embeddings": {
        "model_id": "int4",
        "chunk_id": "uuid",
        "document_id": "uuid",
        "job_id": "uuid",
        "embedding": "vector",
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Which documents only `keeper` sees, and which are in the trash: (documents,) each. The others
    belong to `owner`, who shares them."""

    owner: UUID
    keeper: UUID
    is_private: np.ndarray[Any, np.dtype[np.bool_]]
    is_deleted: np.ndarray[Any, np.dtype[np.bool_]]

    @classmethod
    def draw(cls, plan: Outline, *, owner: UUID, keeper: UUID) -> Access:
        draws = np.random.default_rng([plan.seed, 9]).random(plan.document_count)
        is_private = draws < PRIVATE_SHARE
        return cls(owner, keeper, is_private, ~is_private & (draws < PRIVATE_SHARE + DELETED_SHARE))


def load(
    services: Services,
    plan: Outline,
    write: Callable[[Container[int]], Iterable[WrittenBlock]],
    access: Access,
    *,
    log: Callable[[str], None],
) -> dict[int, str]:
    """Store the corpus and build the indexes; return the texts of the questions by place. `write`
    returns the blocks that are not stored yet. Blocks stored by an interrupted call are kept."""
    with services.database.begin() as session:
        collection = portal_collection_id(session)
        model = registry.find_model(session, services.embedder.name)
    if model is None:
        raise RuntimeError("prepare_database() comes first")
    with psycopg.connect(services.database.conninfo, autocommit=True) as connection:
        register_vector(connection)
        connection.execute(WITH_ALL_WORDS)
        progress = _Progress(connection, model.partition)
        rows = _Rows(plan, access, collection, model.id)
        for number, block in enumerate(write(progress.blocks)):
            with connection.transaction():
                for table, columns in _COLUMNS.items():
                    target = model.partition if table == "embeddings" else table
                    _copy(connection, target, columns, getattr(rows, table)(block))
                progress.keep(block)
            if number % _TELL_EVERY == 0:
                log(f"{block.documents[-1].chunks[-1].chunk + 1} of {plan.chunk_count} passages")
        log("jobs")
        connection.execute(
            "UPDATE documents d SET current_job_id = j.id FROM jobs j"
            " WHERE j.document_id = d.id AND d.current_job_id IS NULL"
        )
        deleted = [
            id_ for id_, gone in zip(rows.ids[DOCUMENT_IDS], access.is_deleted, strict=True) if gone
        ]
        connection.execute("UPDATE documents SET deleted_at = now() WHERE id = ANY(%s)", [deleted])
        progress.build_indexes(log)
        log("keyword index")
        started = time.monotonic()
        setup.prepare_keyword_index(services)
        log(f"keyword index: {time.monotonic() - started:.0f} s")
        log("statistics")
        connection.execute("VACUUM (ANALYZE)")
        return progress.questions


class _Progress:
    """The progress so far, in tables next to the portal's: the blocks by their first documents,
    with their questions, and the indexes that were dropped, to be built over full tables."""

    def __init__(self, connection: psycopg.Connection, partition: str) -> None:
        self._connection = connection
        connection.execute(
            "CREATE TABLE IF NOT EXISTS bench_blocks (first int PRIMARY KEY, questions jsonb)"
        )
        connection.execute(
            "CREATE TABLE IF NOT EXISTS bench_indexes (name text PRIMARY KEY, definition text)"
        )
        rows = connection.execute("SELECT first, questions FROM bench_blocks").fetchall()
        self.blocks = {first for first, _ in rows}
        self.questions = {int(place): asked for _, of in rows for place, asked in of.items()}
        if not rows:
            with connection.transaction():
                _drop_indexes(connection, ("document_chunks", "shared_chunks", partition))

    def keep(self, block: WrittenBlock) -> None:
        self.questions |= block.questions
        self._connection.execute(
            "INSERT INTO bench_blocks VALUES (%s, %s)", [block.first, Jsonb(block.questions)]
        )

    def build_indexes(self, log: Callable[[str], None]) -> None:
        """Build the indexes that are missing."""
        rows = self._connection.execute(
            "SELECT name, definition FROM bench_indexes WHERE to_regclass(name) IS NULL"
        )
        for name, definition in rows.fetchall():
            log(f"index {name}")
            started = time.monotonic()
            self._connection.execute(definition.encode())
            log(f"index {name}: {time.monotonic() - started:.0f} s")


class _Rows:
    """The rows of a block, one method per table, with the columns of `_COLUMNS`."""

    def __init__(self, plan: Outline, access: Access, collection: UUID, model_id: int) -> None:
        self._plan, self._access = plan, access
        self._collection, self._model_id = collection, model_id
        count = plan.document_count
        self.ids = {
            CHUNK_IDS: make_ids(plan.seed, CHUNK_IDS, plan.chunk_count),
            **{kind: make_ids(plan.seed, kind, count) for kind in _OF_A_DOCUMENT},
        }

    def documents(self, block: WrittenBlock) -> Iterator[tuple[Any, ...]]:
        for one in block.documents:
            id_ = self.ids[DOCUMENT_IDS][one.document]
            is_private = self._access.is_private[one.document]
            size = sum(len(chunk.content.encode()) for chunk in one.chunks)
            yield (
                id_,
                self._collection,
                self._access.keeper if is_private else self._access.owner,
                one.title,
                f"{one.document}.txt",
                "text/plain",
                size,
                hashlib.sha256(id_.bytes).hexdigest(),
                _DOMAINS[one.document % len(_DOMAINS)],
                "private" if is_private else "shared",
                "ready",
            )

    def document_revisions(self, block: WrittenBlock) -> Iterator[tuple[Any, ...]]:
        for one in block.documents:
            text = _BETWEEN_CHUNKS.join(chunk.content for chunk in one.chunks)
            yield (
                self.ids[REVISION_IDS][one.document],
                self.ids[DOCUMENT_IDS][one.document],
                1,
                text,
                hashlib.sha256(text.encode()).hexdigest(),
                "bench",
                len(text),
            )

    def jobs(self, block: WrittenBlock) -> Iterator[tuple[Any, ...]]:
        for one in block.documents:
            yield (*(self.ids[kind][one.document] for kind in _OF_A_DOCUMENT), "ready")

    def document_chunks(self, block: WrittenBlock) -> Iterator[tuple[Any, ...]]:
        for one in block.documents:
            language = LANGUAGES[self._plan.languages[one.document]]
            start = 0
            for index, chunk in enumerate(one.chunks):
                end = start + len(chunk.content)
                yield (
                    self.ids[CHUNK_IDS][chunk.chunk],
                    self.ids[JOB_IDS][one.document],
                    self.ids[DOCUMENT_IDS][one.document],
                    self._collection,
                    index,
                    chunk.content,
                    chunk.terms,
                    analyser_version(),
                    language,
                    start,
                    end,
                )
                start = end + len(_BETWEEN_CHUNKS)

    def embeddings(self, block: WrittenBlock) -> Iterator[tuple[Any, ...]]:
        for one in block.documents:
            for chunk in one.chunks:
                yield (
                    self._model_id,
                    self.ids[CHUNK_IDS][chunk.chunk],
                    self.ids[DOCUMENT_IDS][one.document],
                    self.ids[JOB_IDS][one.document],
                    self._plan.vectors[chunk.chunk],
                )


def _drop_indexes(connection: psycopg.Connection, tables: Sequence[str]) -> None:
    """Drop the indexes that enforce no constraint, and record their definitions: built over full
    tables they take a fraction of the time. The portal's own code makes the keyword index."""
    rows = connection.execute(
        """
        SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
          FROM pg_index i
         WHERE i.indrelid::regclass::text = ANY(%s) AND NOT i.indisunique
           AND i.indexrelid::regclass::text <> %s
           AND NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
        """,
        [list(tables), _OF_TRIGGER],
    ).fetchall()
    made_elsewhere = {index.name for index in INDEXES}
    for name, definition in rows:
        connection.execute(f"DROP INDEX {name}".encode())
        if name not in made_elsewhere:
            connection.execute("INSERT INTO bench_indexes VALUES (%s, %s)", [name, definition])


def _copy(
    connection: psycopg.Connection,
    table: str,
    columns: dict[str, str],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN WITH (FORMAT BINARY)"
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row(row)
