"""The portal's own documents as a retriever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, PrivateAttr

from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.domain.search import SearchMode
from portal.integrations.connection import Connection
from portal.integrations.langchain.portal_reading import (
    open_reader,
    search_request,
    to_documents,
    translate_reader_errors,
)
from portal.services import Services
from portal.services.collections.portal_reader import PortalReader


class PortalRetriever(BaseRetriever):
    """Find chunks of the portal's documents by meaning and words, as its search page does.

    ::

        retriever = PortalRetriever(user="ann", conversation=conversation_id, k=4)
        retriever.invoke("How much vacation?")[0].metadata["citation"]["url"]

    `user` is a name or a `User`. `k` defaults to the portal's `top_n`; `mode`, `domain`,
    `threshold` and `scope` are those of `POST /api/knowledge/search`. `connection` is that of
    `PostgresVectorStore`. Raises ValueError for an unknown or disabled user, and for a conversation
    or a scope that the user may not see.
    """

    # A mistyped `conversation` must not silently find documents that are switched off there.
    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    user: str | User
    conversation: UUID | None = None
    k: int | None = None
    mode: SearchMode = SearchMode.HYBRID
    domain: str | None = None
    threshold: float | None = None
    scope: AskScope | None = None
    _reader: PortalReader = PrivateAttr()

    def __init__(self, *, connection: Connection | Services | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._reader = open_reader(self.user, self.conversation, connection)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,  # noqa: ARG002 - LangChain's
        k: int | None = None,
    ) -> list[Document]:
        request = replace(
            search_request(query, self.k if k is None else k),
            mode=self.mode,
            domain=self.domain,
            threshold=self.threshold,
            scope=self.scope,
        )
        with translate_reader_errors(self._reader):
            return to_documents(self._reader, self._reader.search(request))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun | None = None,  # noqa: ARG002
        k: int | None = None,
    ) -> list[Document]:
        return await run_in_executor(None, self._get_relevant_documents, query, k=k)
