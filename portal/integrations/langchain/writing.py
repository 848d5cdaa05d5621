"""Filling a LangChain store, and reading it back by ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from langchain_core.documents import Document

from portal.integrations.langchain.collection import Where
from portal.integrations.langchain.searching import SearchingStore, refuse_unknown


class WritingStore(SearchingStore):
    """Every call writes all that it is given in one transaction, or nothing."""

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any] | None] | None = None,
        ids: Sequence[str | None] | None = None,
        *,
        embeddings: Any = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts under ids, in the place of what stands there; the ids, made where they are
        missing. `embeddings` are vectors of the texts, which are embedded without them.

        Raises ValueError, then nothing is stored.
        """
        refuse_unknown(kwargs)
        contents = list(texts)
        named = [one or str(uuid4()) for one in ids or [None] * len(contents)]
        given = list(metadatas or [])
        given += [None] * (len(contents) - len(given))
        self._collection.upsert(named, embeddings, given, contents)
        return named

    def add_documents(
        self,
        documents: Sequence[Document],
        embeddings: Any = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """`add_texts` of documents; `ids` go before the documents' own."""
        return self.add_texts(
            [document.page_content for document in documents],
            [document.metadata for document in documents],
            [document.id for document in documents] if ids is None else ids,
            embeddings=embeddings,
            **kwargs,
        )

    def update_document(self, document_id: str, document: Document) -> None:
        """`update_documents` of one."""
        self.update_documents([document_id], [document])

    def update_documents(
        self, ids: Sequence[str], documents: Sequence[Document], embeddings: Any = None
    ) -> None:
        """Change text and vector of records that are there; metadata is merged into theirs."""
        self._collection.update(
            ids,
            embeddings,
            metadatas=[document.metadata for document in documents],
            documents=[document.page_content for document in documents],
        )

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Erase records by ids, by `where` or by `where_document`, for good.

        Raises ValueError when none of them is given.
        """
        self._collection.delete(ids, **kwargs)
        return True

    def delete_document(self, document_id: UUID | str) -> bool:
        """Erase a document of the table `documents` with its records, for good; whether there was
        one. A document is named by its id, or by the `document_key` of its records."""
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
        """Records in the order in which they were first added: `ids`, `embeddings`, `metadatas`
        and `documents`, as far as `include` asks for them."""
        included = ("metadatas", "documents") if include is None else include
        return self._collection.get(ids, where, limit, offset, where_document, included)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents in the order asked for; what is not there is left out."""
        found = self.get(list(dict.fromkeys(ids)))
        columns = (found["ids"], found["documents"], found["metadatas"])
        by_id = {
            one: Document(id=one, page_content=text, metadata=metadata or {})
            for one, text, metadata in zip(*columns, strict=True)
        }
        return [by_id[one] for one in ids if one in by_id]

    # --- what callers of the old system call on a collection ------------------------------------

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._collection.name

    def count(self) -> int:
        """How many records there are."""
        return self._collection.count()

    def add(
        self, ids: Any, embeddings: Any = None, metadatas: Any = None, documents: Any = None
    ) -> None:
        """`Collection.add`: records whose ids are there already stay as they are."""
        self._collection.add(ids, embeddings, metadatas, documents)

    def upsert(
        self, ids: Any, embeddings: Any = None, metadatas: Any = None, documents: Any = None
    ) -> None:
        """`Collection.upsert`."""
        self._collection.upsert(ids, embeddings, metadatas, documents)

    def query(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """`Collection.query`."""
        return self._collection.query(*args, **kwargs)

    def peek(self, limit: int = 10) -> dict[str, Any]:
        """`Collection.peek`."""
        return self._collection.peek(limit)
