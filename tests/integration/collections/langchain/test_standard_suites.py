"""LangChain's own suites for vector stores and retrievers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from portal.integrations.langchain import PortalRetriever, PortalVectorStore, PostgresVectorStore
from portal.services import Services
from portal.store.session import Database
from tests.conftest import Portal


class TestStore(VectorStoreIntegrationTests):
    """The whole suite, synchronous and asynchronous."""

    @pytest.fixture
    def vectorstore(self, database: Database) -> Iterator[VectorStore]:
        store = PostgresVectorStore("standard", self.get_embeddings(), connection=database)
        yield store
        store.delete_collection()


_TEXTS = ["Annual leave is 24 days", "The canteen opens at noon", "Laptops are lent", "Bicycles"]


class _RetrieverSuite(RetrieversIntegrationTests):
    """The suite makes its retriever without fixtures, so the database is passed in."""

    database: Database
    search_type = "similarity"
    search_kwargs: dict[str, Any] = {}  # noqa: RUF012 - LangChain's own way

    @pytest.fixture(autouse=True)
    def _on_this_database(self, database: Database) -> None:
        type(self).database = database

    @property
    def retriever_constructor(self) -> Any:
        embeddings = DeterministicFakeEmbedding(size=6)
        store = PostgresVectorStore("retrieved", embeddings, connection=self.database)
        store.add_documents([Document(text) for text in _TEXTS], ids=list("abcd"))
        return store.as_retriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"search_type": self.search_type, "search_kwargs": self.search_kwargs}

    @property
    def retriever_query_example(self) -> str:
        return "How much leave is there?"


class TestSimilarityRetriever(_RetrieverSuite):
    pass


class TestDiverseRetriever(_RetrieverSuite):
    search_type = "mmr"


class TestFilteredRetriever(_RetrieverSuite):
    search_kwargs = {"where_document": {"$contains": "e"}}  # noqa: RUF012


class TestPortalRetriever(_RetrieverSuite):
    """The portal's own documents."""

    services: Services

    @pytest.fixture(autouse=True)
    def _with_documents(self, portal: Portal) -> None:
        type(self).services = portal.services
        for text in _TEXTS:
            portal.add(text)

    @property
    def retriever_constructor(self) -> Any:
        return partial(PortalRetriever, user="admin", connection=self.services)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {}


class TestPortalStoreRetriever(TestPortalRetriever):
    @property
    def retriever_constructor(self) -> Any:
        return PortalVectorStore("admin", connection=self.services).as_retriever
