"""Open a LangChain store, write to it, and read it by ids."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast
from uuid import UUID, uuid4

import structlog
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from portal.domain.vector_collections import DISTANCES, Distance
from portal.errors import NotFound
from portal.integrations.connection import Connection, connect, portal_model
from portal.integrations.langchain.arguments import Where, columns_of, refuse_unknown
from portal.integrations.langchain.collection import Collection
from portal.integrations.langchain.embeddings import EmbedderEmbeddings
from portal.integrations.values import (
    DEFAULT_DOCUMENT_KEY,
    clean_metadata,
    translate_collection_errors,
)
from portal.services.collections.nearest import MAX_COMPARED_RECORDS
from portal.services.collections.records import Collections
from portal.store.documents.selection import PORTAL_COLLECTION

DEFAULT_COLLECTION = "langchain"

log = structlog.get_logger(__name__)


class CollectionStore(VectorStore):
    """A LangChain store on a collection of the portal's database. Every call writes everything in
    one transaction, or nothing."""

    def __init__(
        self,
        collection_name: str = DEFAULT_COLLECTION,
        embedding_function: Embeddings | None = None,
        persist_directory: str | None = None,
        host: str | None = None,
        port: int | None = None,
        headers: dict[str, str] | None = None,
        chroma_cloud_api_key: str | None = None,
        tenant: str | None = None,
        database: str | None = None,
        client_settings: Any = None,
        collection_metadata: dict[str, Any] | None = None,
        collection_configuration: Mapping[str, Any] | None = None,
        client: Any = None,
        relevance_score_fn: Callable[[float], float] | None = None,
        create_collection_if_not_exists: bool | None = True,
        *,
        ssl: bool = False,
        connection: Connection | None = None,
        document_key: str | None = DEFAULT_DOCUMENT_KEY,
        compared_one_by_one: int = MAX_COMPARED_RECORDS,
    ) -> None:
        """Accept the arguments of `langchain_chroma.Chroma`. Instead of those for the location of
        the data, which are ignored, there is `connection`: a URL, the portal's settings or a
        Database, by default this machine's settings.

        `embedding_function` defaults to the portal's own model. Records with the same metadata
        value under `document_key` belong to one document. A search compares up to
        `compared_one_by_one` records one by one; above that it uses an index. Raises ValueError.
        """
        _warn_of_ignored(
            persist_directory=persist_directory, host=host, port=port, headers=headers,
            chroma_cloud_api_key=chroma_cloud_api_key, tenant=tenant, database=database,
            client_settings=client_settings, client=client, ssl=ssl or None
        )  # fmt: skip
        opened, self._settings = connect(connection)
        self._collections = Collections(opened, self._settings.search, compared_one_by_one)
        self._embedding_function = embedding_function
        self._collection_name = collection_name
        self._collection_metadata = collection_metadata
        self._collection_configuration = collection_configuration
        self._document_key = document_key
        self.override_relevance_score_fn = relevance_score_fn
        self._opened: Collection | None = None
        self._open(create=bool(create_collection_if_not_exists))

    @property
    def embeddings(self) -> Embeddings:
        """Return the caller's model, or the portal's own."""
        if self._embedding_function is None:
            model = portal_model(self._settings)
            self._embedding_function = EmbedderEmbeddings(lambda: model)
        return self._embedding_function

    @property
    def _collection(self) -> Collection:
        """Return the collection, which has the methods of Chroma. Raises ValueError if it was
        deleted."""
        if self._opened is None:
            raise ValueError(
                "Chroma collection not initialized. "
                "Use `reset_collection` to re-create and initialize the collection. "
            )
        return self._opened

    def _open(self, *, create: bool) -> None:
        name = self._collection_name
        if name == PORTAL_COLLECTION:
            raise ValueError(
                "the collection “portal” holds the portal's own documents, which are read for a "
                "user: PortalVectorStore(user=…) or PortalRetriever(user=…)"
            )
        if not isinstance(name, str):
            raise ValueError(f"a collection's name is a text; got {name!r}")
        wanted = _distance(self._collection_metadata, self._collection_configuration)
        with translate_collection_errors(name):
            self._collections.check_name(name)
            handle = self._collections.find(name)
            if handle is None and not create:
                raise ValueError(f"Collection [{name}] does not exist")
            if handle is None:
                metadata = clean_metadata(self._collection_metadata)
                handle = self._collections.ensure(name, wanted or "cosine", metadata)
        if wanted is not None and handle.distance != wanted:
            log.warning(
                "the collection keeps its original distance",
                collection=name, distance=handle.distance, wanted=wanted
            )  # fmt: skip
        self._opened = Collection(
            self._collections, handle, lambda: self.embeddings, self._document_key
        )

    def delete_collection(self) -> None:
        """Delete the collection with all its records."""
        collection = self._collection
        with translate_collection_errors(collection.name):
            self._collections.drop(collection.id)
        self._opened = None

    def reset_collection(self) -> None:
        """Delete the collection of this name, if it exists, and create it again, empty. Another
        program may have done so since this store was opened."""
        with translate_collection_errors(self._collection_name):
            existing = self._collections.find(self._collection_name)
            if existing is not None:
                with suppress(NotFound):  # Deleted meanwhile.
                    self._collections.drop(existing.id)
        self._open(create=True)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        if self.override_relevance_score_fn is not None:
            return self.override_relevance_score_fn
        by_distance: dict[str, Callable[[float], float]] = {
            "cosine": self._cosine_relevance_score_fn,
            "l2": self._euclidean_relevance_score_fn,
            "ip": self._max_inner_product_relevance_score_fn,
        }
        return by_distance[self._collection.configuration["hnsw"]["space"]]

    # --- writing and reading by ids ---------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any] | None] | None = None,
        ids: Sequence[str | None] | None = None,
        *,
        embeddings: Any = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts, replacing those with the same ids, and return the ids; missing ids are
        generated. Texts are embedded unless `embeddings` are given.

        Raises ValueError, and then stores nothing.
        """
        refuse_unknown(kwargs)
        contents = list(texts)
        named = [str(uuid4()) if one is None else one for one in ids or [None] * len(contents)]
        known = list(metadatas or [])
        known += [None] * (len(contents) - len(known))
        self._collection.upsert(named, embeddings, known, contents)
        return named

    def add_documents(
        self,
        documents: Sequence[Document],
        embeddings: Any = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store documents as `add_texts` does; `ids` take precedence over their own."""
        return self.add_texts(*columns_of(documents, ids), embeddings=embeddings, **kwargs)

    def update_document(self, document_id: str, document: Document) -> None:
        """Update one document, see `update_documents`."""
        self.update_documents([document_id], [document])

    def update_documents(
        self, ids: Sequence[str], documents: Sequence[Document], embeddings: Any = None
    ) -> None:
        """Change the text and vector of existing records, and merge their metadata."""
        self._collection.update(
            ids,
            embeddings,
            metadatas=[document.metadata for document in documents],
            documents=[document.page_content for document in documents],
        )

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Permanently delete records by ids, `where` or `where_document`.

        Raises ValueError without any of them.
        """
        self._collection.delete(ids, **kwargs)
        return True

    def delete_document(self, document_id: UUID | str) -> bool:
        """Permanently delete a document with its records, by its id or its `document_key`. Return
        whether it existed."""
        return self._collection.delete_document(document_id)

    def get(
        self,
        ids: str | Sequence[str] | None = None,
        where: Where | None = None,
        limit: int | None = None,
        offset: int | None = None,
        where_document: Where | None = None,
        include: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return records in insertion order: their `ids`, and those of `embeddings`, `metadatas`
        and `documents` that `include` names."""
        included = ("metadatas", "documents") if include is None else include
        return self._collection.get(ids, where, limit, offset, where_document, included)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents in the given order, without unknown ids."""
        found = self.get(list(dict.fromkeys(ids)))
        columns = (found["ids"], found["documents"], found["metadatas"])
        by_id = {
            one: Document(id=one, page_content=text, metadata=metadata or {})
            for one, text, metadata in zip(*columns, strict=True)
        }
        return [by_id[record_id] for record_id in ids if record_id in by_id]

    # --- methods of a Chroma collection, for programs written for Chroma ------------------------

    @property
    def name(self) -> str:
        """Return the collection's name."""
        return self._collection.name

    def count(self) -> int:
        """Count the records."""
        return self._collection.count()

    def add(
        self, ids: Any, embeddings: Any = None, metadatas: Any = None, documents: Any = None
    ) -> None:
        """Add records; records with existing ids are left unchanged."""
        self._collection.add(ids, embeddings, metadatas, documents)

    def upsert(
        self, ids: Any, embeddings: Any = None, metadatas: Any = None, documents: Any = None
    ) -> None:
        """Call `Collection.upsert`."""
        self._collection.upsert(ids, embeddings, metadatas, documents)

    def query(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Call `Collection.query`."""
        return self._collection.query(*args, **kwargs)

    def peek(self, limit: int = 10) -> dict[str, Any]:
        """Call `Collection.peek`."""
        return self._collection.peek(limit)


def _warn_of_ignored(**arguments: Any) -> None:
    ignored = [name for name, value in arguments.items() if value is not None]
    if ignored:
        warnings.warn(
            f"{', '.join(ignored)}: ignored, because the data is in PostgreSQL; see `connection`",
            UserWarning,
            stacklevel=3,
        )


def _distance(
    metadata: Mapping[str, Any] | None, configuration: Mapping[str, Any] | None
) -> Distance | None:
    """Return the distance that the caller requests; None if there is none. Raises ValueError for
    an unknown one."""
    of_index = (configuration or {}).get("hnsw") or (configuration or {}).get("spann") or {}
    space = of_index.get("space") or (metadata or {}).get("hnsw:space")
    if space is None:
        return None
    if space not in DISTANCES:
        raise ValueError(f"hnsw:space is one of {', '.join(DISTANCES)}; got {space!r}")
    return cast("Distance", space)
