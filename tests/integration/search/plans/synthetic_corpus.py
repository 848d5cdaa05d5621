"""A few thousand chunks with clustered vectors, bulk-loaded for tests of search plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector.psycopg import register_vector

from portal.domain.embedding import Vector
from portal.domain.people import User
from portal.services import Services
from portal.services.people import accounts
from portal.store.documents.texts.shared_words import WITH_ALL_WORDS
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel

CHUNKS_PER_DOCUMENT = 2
_CENTRES = 40
_SPREAD = 0.6  # Radius of a cluster; centres are about 1.4 apart.
_DOCUMENTS, _JOBS, _CHUNKS = range(1, 4)


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticCorpus:
    """The loaded chunks. `vectors` (chunks, dimensions) have unit length, `terms` are the chunks'
    analysed words; chunk n belongs to document n // CHUNKS_PER_DOCUMENT."""

    services: Services
    admin: User
    model: RegisteredModel
    vectors: Vector
    terms: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.vectors)

    def with_settings(self, **search: Any) -> SyntheticCorpus:
        """Return the same corpus in a process with other search settings and empty caches."""
        settings = self.services.settings
        changed = type(settings.search).model_validate(settings.search.model_dump() | search)
        services = replace(
            self.services,
            settings=settings.model_copy(update={"search": changed}),
            enabled_sets=type(self.services.enabled_sets)(),
        )
        return replace(self, services=services)

    def near(self, count: int, *, seed: int) -> Vector:
        """Return query vectors (count, dimensions), each near some chunk."""
        rng = np.random.default_rng(seed)
        targets = self.vectors[rng.integers(0, self.size, count)]
        return _unit(targets + _SPREAD * _unit(rng.normal(size=targets.shape)))

    def user_with(self, name: str, enabled: npt.NDArray[np.bool_]) -> User:
        """Create a user who has enabled only the `enabled` documents, a mask (documents,)."""
        user = accounts.create_user(self.services, name=name, password="correct horse battery")
        off = [document_id(place) for place in np.flatnonzero(~enabled).tolist()]
        with psycopg.connect(self.services.database.conninfo) as connection:
            connection.execute(
                "INSERT INTO user_document_defaults SELECT %s, unnest(%s::uuid[]), FALSE",
                [user.id, off],
            )
        return user

    def exact(self, vector: Vector, enabled: npt.NDArray[np.bool_], k: int) -> list[UUID]:
        """Return the k nearest chunks of the enabled documents (documents,), by brute force."""
        allowed = np.repeat(enabled, CHUNKS_PER_DOCUMENT)
        cosines = np.where(allowed, self.vectors @ vector, -np.inf)
        places = np.argsort(-cosines, kind="stable")[: min(k, int(allowed.sum()))]
        return [chunk_id(place) for place in places.tolist()]


def document_id(place: int) -> UUID:
    return UUID(int=_DOCUMENTS << 120 | place)


def chunk_id(place: int) -> UUID:
    return UUID(int=_CHUNKS << 120 | place)


def place_of(chunk: UUID) -> int:
    """Return a chunk's index in the corpus."""
    return chunk.int & 0xFFFF_FFFF


def load(services: Services, terms: Sequence[str], *, seed: int = 0) -> SyntheticCorpus:
    """Store a chunk for each of `terms`, with a vector of some cluster and its terms as text."""
    accounts.ensure_first_administrator(services)
    with services.database.begin() as session:
        model = registry.find_active(session)
    assert model is not None
    vectors = _clustered(len(terms), model.dimensions, seed)
    with psycopg.connect(services.database.conninfo, autocommit=True) as connection:
        register_vector(connection)
        connection.execute(WITH_ALL_WORDS)
        _copy_all(connection, model, vectors, terms)
        connection.execute("ANALYZE documents, jobs, document_chunks, chunk_embeddings")
        connection.execute(f"ANALYZE {model.partition}".encode())
    admin = accounts.find_user(services, "admin")
    return SyntheticCorpus(services, admin, model, vectors, tuple(terms))


def _clustered(count: int, dimensions: int, seed: int) -> Vector:
    rng = np.random.default_rng(seed)
    centres = _unit(rng.normal(size=(_CENTRES, dimensions)))
    noise = _unit(rng.normal(size=(count, dimensions)))
    return _unit(centres[rng.integers(0, _CENTRES, count)] + _SPREAD * noise)


def _unit(vectors: npt.NDArray[np.floating[Any]]) -> Vector:
    unit: Vector = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _copy_all(
    connection: psycopg.Connection, model: RegisteredModel, vectors: Vector, terms: Sequence[str]
) -> None:
    row = connection.execute("SELECT id FROM collections WHERE name = 'portal'").fetchone()
    assert row is not None
    collection, count = row[0], len(terms)
    documents = range(count // CHUNKS_PER_DOCUMENT)
    _copy(
        connection,
        "documents (id, collection_id, title, file_name, media_type, size_bytes, sha256, status)",
        [
            (document_id(place), collection, f"d{place}", "a", "text/plain", 1, "", "ready")
            for place in documents
        ],
    )
    _copy(
        connection,
        "jobs (id, document_id, status)",
        [(_job_id(place), document_id(place), "ready") for place in documents],
    )
    _copy(
        connection,
        "document_chunks (id, job_id, document_id, collection_id, chunk_index, content, terms,"
        " char_start, char_end)",
        [
            (
                chunk_id(place),
                _job_id(place // CHUNKS_PER_DOCUMENT),
                document_id(place // CHUNKS_PER_DOCUMENT),
                collection,
                place % CHUNKS_PER_DOCUMENT,
                words,
                words,
                0,
                len(words),
            )
            for place, words in enumerate(terms)
        ],
    )
    _copy(
        connection,
        f"{model.partition} (model_id, chunk_id, document_id, job_id, embedding)",
        [
            (
                model.id,
                chunk_id(place),
                document_id(place // CHUNKS_PER_DOCUMENT),
                _job_id(place // CHUNKS_PER_DOCUMENT),
                vector,
            )
            for place, vector in enumerate(vectors)
        ],
    )
    connection.execute(
        "UPDATE documents d SET current_job_id = j.id FROM jobs j WHERE j.document_id = d.id"
    )


def _job_id(document: int) -> UUID:
    return UUID(int=_JOBS << 120 | document)


def _copy(connection: psycopg.Connection, target: str, rows: Sequence[tuple[object, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(row)
