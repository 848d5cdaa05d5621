"""A Chroma with sparse indexes, which a local Chroma does not have.

The client, the collections, the schema and the code that turns texts into sparse vectors and
requests are Chroma's own, as installed. A local directory does what it can of a server's work. The
rest, which only a distributed server does, is here: it keeps a collection's schema, keeps sparse
vectors in the metadata of records, and ranks by them as Chroma's documentation says: by the dot
product of query and text, weighted by the rarity of the words, lower being better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID


class SparseServer:
    """Replaces a local client's server. A search raises `breaks` if it is set; `searches` are the
    searches received, as sent over the wire."""

    def __init__(self, local: Any) -> None:
        self._local = local
        self._schemas: dict[UUID, dict[str, Any]] = {}
        self._vectors: dict[UUID, dict[str, dict[str, Any]]] = {}
        self.searches: list[dict[str, Any]] = []
        self.breaks: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._local, name)

    def get_or_create_collection(self, *, schema: Any = None, **arguments: Any) -> Any:
        if schema is not None:
            arguments["configuration"] = {"hnsw": {"space": "cosine"}}
        there = {collection.id for collection in self._local.list_collections()}
        model = self._local.get_or_create_collection(schema=None, **arguments)
        # An existing collection keeps the schema that it was created with.
        if schema is not None and model.id not in there:
            self._schemas[model.id] = schema.serialize_to_json()
        return self._with_schema(model)

    def get_collection(self, **arguments: Any) -> Any:
        return self._with_schema(self._local.get_collection(**arguments))

    def _with_schema(self, model: Any) -> Any:
        model.serialized_schema = self._schemas.get(model.id, model.serialized_schema)
        return model

    def _upsert(
        self, collection_id: UUID, ids: Any, embeddings: Any, metadatas: Any = None, **rest: Any
    ) -> bool:
        kept = self._vectors.setdefault(collection_id, {})
        plain: list[dict[str, Any] | None] = []
        for record_id, metadata in zip(ids, metadatas or [None] * len(ids), strict=True):
            sparse = {key: one for key, one in (metadata or {}).items() if _is_sparse(one)}
            kept.setdefault(record_id, {}).update(sparse)
            plain.append({k: v for k, v in (metadata or {}).items() if k not in sparse} or None)
        done: bool = self._local._upsert(collection_id, ids, embeddings, plain, **rest)
        return done

    def _get(self, collection_id: UUID, **arguments: Any) -> Any:
        result = self._local._get(collection_id=collection_id, **arguments)
        if result["metadatas"] is not None:
            result["metadatas"] = self._whole(collection_id, result["ids"], result["metadatas"])
        return result

    def _query(self, collection_id: UUID, **arguments: Any) -> Any:
        result = self._local._query(collection_id=collection_id, **arguments)
        result["metadatas"] = [
            self._whole(collection_id, ids, metadatas)
            for ids, metadatas in zip(result["ids"], result["metadatas"], strict=True)
        ]
        return result

    def _search(self, collection_id: UUID, searches: Sequence[Any], **rest: Any) -> Any:
        from chromadb.api.types import SearchResult

        if self.breaks is not None:
            raise self.breaks
        asked = [search.to_dict() for search in searches]
        self.searches += asked
        found = [self._ranked(collection_id, one, rest) for one in asked]
        return SearchResult(
            ids=[[record["id"] for record in records] for records in found],
            documents=[[record["document"] for record in records] for records in found],
            metadatas=[[record["metadata"] for record in records] for records in found],
            scores=[[record["score"] for record in records] for records in found],
            embeddings=[None] * len(found),
            select=[one["select"]["keys"] for one in asked],
        )

    def _ranked(
        self, collection_id: UUID, search: Mapping[str, Any], place: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        knn = search["rank"]["$knn"]
        result = self._get(
            collection_id,
            where=search["filter"],
            include=["documents", "metadatas"],
            tenant=place["tenant"],
            database=place["database"],
        )
        texts = self._vectors.get(collection_id, {}).values()
        vectors = [_weights(each[knn["key"]]) for each in texts if knn["key"] in each]
        question = dict(zip(knn["query"]["indices"], knn["query"]["values"], strict=True))
        rarity = {
            index: math.log1p((len(vectors) - held + 0.5) / (held + 0.5))
            for index in question
            for held in [sum(index in each for each in vectors)]
        }
        records = []
        for record_id, document, metadata in zip(
            result["ids"], result["documents"], result["metadatas"], strict=True
        ):
            weights = _weights((metadata or {}).get(knn["key"]))
            score = sum(question[i] * rarity[i] * weights.get(i, 0.0) for i in question)
            if score > 0:
                records.append(
                    {"id": record_id, "document": document, "metadata": metadata, "score": -score}
                )
        records.sort(key=lambda one: (one["score"], one["id"]))
        return records[: min(knn["limit"], search["limit"]["limit"])]

    def _whole(
        self, collection_id: UUID, ids: Sequence[str], metadatas: Sequence[Any]
    ) -> list[dict[str, Any] | None]:
        """Return metadata with its sparse vectors, as a server does."""
        kept = self._vectors.get(collection_id, {})
        return [
            ({**(metadata or {}), **kept.get(record_id, {})} or None)
            for record_id, metadata in zip(ids, metadatas, strict=True)
        ]


def with_sparse_indexes(client: Any) -> Any:
    """Return a local client whose server has sparse indexes."""
    client._server = SparseServer(client._server)
    return client


def _is_sparse(value: Any) -> bool:
    return type(value).__name__ == "SparseVector"


def _weights(vector: Any) -> dict[int, float]:
    return {} if vector is None else dict(zip(vector.indices, vector.values, strict=True))
