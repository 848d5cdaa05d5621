"""LangChain stores on a test's own database."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.integrations.langchain import PostgresVectorStore
from portal.services import Services
from portal.store.session import Database
from tests.factories.uploads import run_apart
from tests.integration.collections.langchain.embeddings import WordEmbeddings

HERE = Path(__file__).parent
MakeStore = Callable[..., PostgresVectorStore]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.langchain)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run each asynchronous test in its own event loop, including those of LangChain's suites."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    run_apart(lambda: asyncio.run(pyfuncitem.obj(**arguments)))
    return True


@pytest.fixture
def database(services: Services) -> Database:
    return services.database


@pytest.fixture
def make_store(database: Database) -> MakeStore:
    """Return a function that opens stores on this test's database, with a model of words."""

    def make(collection_name: str = "notes", **arguments: object) -> PostgresVectorStore:
        arguments = {"embedding_function": WordEmbeddings(), "connection": database} | arguments
        return PostgresVectorStore(collection_name, **arguments)

    return make


@pytest.fixture
def store(make_store: MakeStore) -> PostgresVectorStore:
    return make_store(collection_metadata={"hnsw:space": "cosine"})
