"""Write to a LangChain store, and read it by ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from langchain_core.documents import Document

from portal.integrations.langchain.collection import Where
from portal.integrations.langchain.searching import SearchingStore, refuse_unknown


class WritingStore(SearchingStore):
    """A store that can be written to. Every call writes everything in one transaction, or
    nothing."""

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
        return self.add_texts(
            [document.page_content for document in documents],
            [document.metadata for document in documents],
            [document.id for document in documents] if ids is None else ids,
            embeddings=embeddings,
            **kwargs,
        )

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
