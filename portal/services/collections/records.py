"""Manage collections of programs, one transaction per call.

These use cases need only a database and the search settings, so that a program can use them without
the rest of the portal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from portal.domain.embedding import Vector
from portal.domain.vector_collections import (
    Distance,
    NewRecord,
    Page,
    RecordChange,
    RecordFilter,
    StoredRecord,
)
from portal.errors import InvalidInput, NotFound, existing
from portal.services.collections.checks import common_length, require_dimensions, require_distinct
from portal.services.collections.nearest import (
    MAX_COMPARED_RECORDS,
    NEVER_INDEXED,
    ResolvedFilter,
    SearchOptions,
    nearest,
    resolve_filter,
)
from portal.settings import SearchSettings
from portal.store.collections import by_vector, reads, writes
from portal.store.collections import rows as collection_store
from portal.store.collections.rows import VectorCollection
from portal.store.documents.selection import PORTAL_COLLECTION
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Database, Session
from portal.text.characters.storable import storable

_MAX_NAME_LENGTH = 512


# Returns the document that a record's metadata names, None if the record is its own.
DocumentOf = Callable[[Mapping[str, Any]], str | None]


@dataclass(frozen=True, slots=True)
class Collections:
    """The collections of a database. Safe to share between threads."""

    database: Database
    search: SearchSettings
    compared_one_by_one: int = MAX_COMPARED_RECORDS

    @property
    def options(self) -> SearchOptions:
        """Return how vectors are searched."""
        return SearchOptions(self.search, self.compared_one_by_one)

    # --- collections themselves -----------------------------------------------------------------

    def find(self, name: str) -> VectorCollection | None:
        with self.database.begin() as session:
            return collection_store.find(session, name=name)

    def names(self) -> list[str]:
        with self.database.begin() as session:
            return collection_store.list_names(session)

    def ensure(
        self, name: str, distance: Distance, metadata: Mapping[str, Any]
    ) -> VectorCollection:
        """Return the collection of this name, creating it if missing. Raises InvalidInput for an
        invalid name."""
        self.check_name(name)
        with self.database.begin() as session:
            collection_store.add(session, name=name, distance=distance, metadata=metadata)
            collection = collection_store.find(session, name=name)
        if collection is None:
            raise NotFound  # Dropped since it was added.
        return collection

    def check_name(self, name: str) -> None:
        """Raise InvalidInput for a name that no program's collection can have."""
        if name != storable(name):
            raise InvalidInput("a collection's name must not contain NUL or an unpaired surrogate")
        if not 0 < len(name) <= _MAX_NAME_LENGTH:
            raise InvalidInput(
                "a collection's name has 1 to %(max)s characters", max=_MAX_NAME_LENGTH
            )
        if name == PORTAL_COLLECTION:
            raise InvalidInput("the collection “%(name)s” is the portal's own", name=name)

    def drop(self, collection_id: UUID) -> None:
        """Delete a collection. Raises NotFound."""

        def erase(session: Session) -> None:
            collection_store.drop(session, _lock(session, collection_id))

        self.database.with_lock_retries(erase)

    # --- writing --------------------------------------------------------------------------------

    def upsert(self, collection_id: UUID, records: Sequence[NewRecord]) -> None:
        """Store records, all or none, replacing those with the same ids. Raises InvalidInput for
        repeated ids or vectors that do not fit, NotFound."""
        if records:
            self._prepare(collection_id, records)
            self._write(collection_id, lambda _session, _collection: records)

    def add_new(self, collection_id: UUID, records: Sequence[NewRecord]) -> None:
        """Store the records whose ids are new; the others stay as they are."""

        def missing(session: Session, collection: VectorCollection) -> list[NewRecord]:
            there = {record.id for record in _read(session, collection, records)}
            return [record for record in records if record.id not in there]

        if records:
            self._prepare(collection_id, records)
            self._write(collection_id, missing)

    def update(
        self, collection_id: UUID, changes: Sequence[RecordChange], document_of: DocumentOf
    ) -> None:
        """Change existing records, all or none; unknown ids are ignored."""

        def changed(session: Session, collection: VectorCollection) -> list[NewRecord]:
            there = {record.id: record for record in _read(session, collection, changes)}
            return [
                _apply_change(there[change.id], change, document_of)
                for change in changes
                if change.id in there
            ]

        require_distinct([change.id for change in changes])
        self._write(collection_id, changed)

    def delete(self, collection_id: UUID, wanted: RecordFilter) -> int:
        """Delete records permanently, including those in the trash; return their number."""
        with self.database.begin() as session:
            return writes.delete(session, _lock(session, collection_id), wanted)

    def delete_document(self, collection_id: UUID, document: UUID | str) -> bool:
        """Delete a document with its records, by its id or by its name in their metadata; return
        whether it existed."""
        with self.database.begin() as session:
            collection = _lock(session, collection_id)
            if isinstance(document, str):
                document = writes.document_id(collection.id, document)
            return writes.delete_document(session, collection, document)

    # --- reading --------------------------------------------------------------------------------

    def count(self, collection_id: UUID) -> int:
        with self.database.begin() as session:
            return reads.count(session, _find(session, collection_id))

    def records(self, collection_id: UUID, wanted: RecordFilter, page: Page) -> list[StoredRecord]:
        """Return matching records in insertion order."""
        with self.database.begin() as session:
            collection = _find(session, collection_id)
            return reads.list_records(session, collection, wanted, page)

    def nearest(
        self, collection_id: UUID, query_vector: Vector, wanted: RecordFilter, page: Page
    ) -> list[StoredRecord]:
        """Return the records nearest to a vector (dimensions,), with their distances. Raises
        InvalidInput for a vector of another length, NotFound."""
        read = partial(by_vector.read_records, with_vectors=page.with_vectors)
        with self.database.read() as session:
            collection = _find(session, collection_id)
            # Without a filter there is nothing to look up: an index, if any, finds the nearest.
            resolved = ResolvedFilter(wanted)
            if not wanted.is_empty:
                resolved = resolve_filter(session, self.options, collection, wanted)
            return nearest(
                session,
                self.options,
                collection,
                query_vector,
                resolved,
                limit=page.limit,
                read=read,
            )

    # --- inside ---------------------------------------------------------------------------------

    def _prepare(self, collection_id: UUID, records: Sequence[NewRecord]) -> None:
        """Check records, and create the collection's table before its first vectors."""
        require_distinct([record.id for record in records])
        vectors = [record.vector for record in records if record.vector is not None]
        dimensions = common_length(vectors)
        with self.database.begin() as session:
            model = _find(session, collection_id).model

        def make(session: Session) -> RegisteredModel | None:
            collection = _lock(session, collection_id)
            if collection.model is None and dimensions is not None:
                collection_store.give_partition(session, collection, dimensions)
            return _lock(session, collection_id).model

        model = model or self.database.with_lock_retries(make)
        if model is not None and dimensions is not None:
            require_dimensions(model, dimensions)

    def _write(
        self,
        collection_id: UUID,
        records_for: Callable[[Session, VectorCollection], Sequence[NewRecord]],
    ) -> None:
        with self.database.begin() as session:
            collection = _lock(session, collection_id)
            records = records_for(session, collection)
            if not records or collection.model is None:
                return
            vectors = [record.vector for record in records if record.vector is not None]
            if (dimensions := common_length(vectors)) is not None:
                require_dimensions(collection.model, dimensions)
            writes.write(session, collection, collection.model, records)
        self.index_if_many(collection_id)

    def index_if_many(self, collection_id: UUID) -> None:
        """Create the index of a collection that has become large, which blocks writers meanwhile.
        Every write calls this."""
        if self.compared_one_by_one >= NEVER_INDEXED:
            return
        with self.database.begin() as session:
            collection = _find(session, collection_id)
            if not collection_store.needs_index(session, collection, self.compared_one_by_one):
                return
        with self.database.begin() as session:
            collection_store.ensure_index(session, _lock(session, collection_id), self.search)


def _find(session: Session, collection_id: UUID) -> VectorCollection:
    return existing(collection_store.find_by_id(session, collection_id))


def _lock(session: Session, collection_id: UUID) -> VectorCollection:
    return existing(collection_store.lock_for_writing(session, collection_id))


def _read(
    session: Session, collection: VectorCollection, named: Sequence[NewRecord | RecordChange]
) -> list[StoredRecord]:
    wanted = RecordFilter(ids=tuple(change.id for change in named))
    return reads.list_records(session, collection, wanted, Page())


def _apply_change(record: StoredRecord, change: RecordChange, document_of: DocumentOf) -> NewRecord:
    metadata = record.metadata
    if change.metadata is not None:
        merged = metadata | dict(change.metadata)
        metadata = {key: value for key, value in merged.items() if value is not None}
    content = record.content if change.content is None else change.content
    return NewRecord(record.id, content, metadata, change.vector, document_of(metadata))
