"""LangChain stores on a test's own database."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from sqlalchemy import text

from portal.integrations.langchain import PostgresVectorStore
from portal.services import Services
from portal.store.session import Database
from tests.factories.uploads import run_apart

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
    """Return a function that opens stores on this test's database, with `WordEmbeddings`."""

    def make(collection_name: str = "notes", **arguments: object) -> PostgresVectorStore:
        arguments = {"embedding_function": WordEmbeddings(), "connection": database} | arguments
        return PostgresVectorStore(collection_name, **arguments)

    return make


@pytest.fixture
def store(make_store: MakeStore) -> PostgresVectorStore:
    return make_store(collection_metadata={"hnsw:space": "cosine"})


class WordEmbeddings(Embeddings):
    """Embed a text as the sum of its words' vectors."""

    def __init__(self, size: int = 64) -> None:
        self.size = size

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        total = np.zeros(self.size)
        for word in re.findall(r"\w+", text.lower()) or [""]:
            seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:4])
            total += np.random.default_rng(seed).normal(size=self.size)
        return [float(number) for number in total]


def _rows(database: Database, statement: str, **binds: Any) -> list[Any]:
    with database.begin() as session:
        return list(session.execute(text(statement), binds))
