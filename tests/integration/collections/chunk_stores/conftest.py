"""Chunk stores in PostgreSQL and in Chroma."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.cluster.programs import free_port
from portal.domain.embedding import Vector
from portal.domain.search.semantic import SemanticChunk
from portal.integrations.chroma.client import open_directory, open_server
from portal.integrations.chunk_store import SemanticChunkStore
from portal.integrations.chunk_stores import open_chunk_store
from portal.services.collections.records import Collections
from portal.settings import SearchSettings
from portal.store.session import Database
from tests.factories.chroma import with_sparse_indexes
from tests.factories.semantic import captured_log
from tests.factories.servers.endpoint import wait_until
from tests.factories.uploads import needs_bm25

BACKENDS = [
    pytest.param("postgresql", marks=needs_bm25),
    pytest.param("chroma, words ranked here", marks=pytest.mark.chroma),
    pytest.param("chroma, words ranked there", marks=pytest.mark.chroma),
]
EVERYWHERE = [*BACKENDS, pytest.param("chroma, on a server", marks=pytest.mark.chroma)]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    return captured_log(monkeypatch)


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "postgresql":
        return _in_postgresql(request.getfixturevalue("services").database)
    if request.param == "chroma, on a server":
        return _on_server(request.getfixturevalue("chroma_server"))
    chroma: Chroma = request.getfixturevalue("chroma")
    return chroma.world(native=request.param.endswith("there"))


def _in_postgresql(database: Database) -> World:
    def drop(name: str) -> None:
        collections = Collections(database, SearchSettings())
        handle = collections.find(name)
        assert handle is not None
        collections.drop(handle.id)

    def opened(*arguments: Any, **options: Any) -> SemanticChunkStore:
        return open_chunk_store("postgresql", *arguments, connection=database, **options)

    return World("postgresql", opened, database.engine.dispose, drop)


def _on_server(port: int) -> World:
    client = open_server("127.0.0.1", port)
    for there in client.list_collections():
        client.delete_collection(there.name)
    opened = partial(open_chunk_store, "chroma", host="127.0.0.1", port=port, lexical="own")
    # The server runs in another process, so there is nothing to restart here.
    return World("chroma", opened, lambda: None, client.delete_collection)


@pytest.fixture(scope="module")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start a Chroma server as `chroma run` does; yield its port."""
    needs_chroma()
    port = free_port()
    directory = tmp_path_factory.mktemp("chroma-server")
    # This runs the command `chroma` without its slow imports.
    command = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(sys.argv)"
    arguments = ["run", "--path", str(directory), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        [sys.executable, "-c", command, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            wait_until(lambda: _answers(port), within_s=60, complaint="Chroma did not start")
            yield port
        finally:
            server.terminate()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


class Chroma:
    """A Chroma directory and a client that has it open."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.client = open_directory(directory)
        self.server: Any = None

    def world(self, *, native: bool) -> World:
        if native:
            self.client = with_sparse_indexes(self.client)
            self.server = self.client._server
        lexical = "native" if native else "own"
        opened = partial(self.open, lexical=lexical)
        return World("chroma", opened, self.restart, self._drop)

    def open(self, *arguments: Any, **options: Any) -> SemanticChunkStore:
        return open_chunk_store("chroma", *arguments, client=self.client, **options)

    def restart(self) -> None:
        self.client.close()
        self.client = open_directory(self.directory)
        if self.server is not None:
            # The fake server keeps its data, as on disk.
            self.server._local = self.client._server
            self.client._server = self.server

    def _drop(self, name: str) -> None:
        self.client.delete_collection(name)


@pytest.fixture
def chroma(tmp_path: Path) -> Iterator[Chroma]:
    needs_chroma()
    opened = Chroma(tmp_path / "chroma")
    yield opened
    opened.client.close()


def needs_chroma() -> None:
    pytest.importorskip("chromadb", reason="needs the extra `chroma` (./run setup --chroma)")


QUESTION = "annual leave"
PLAIN, MARKDOWN = "text/plain", "text/markdown"


@dataclass
class PlannedEmbedder:
    """Embed queries along the first axis and chunks along the last, or raise."""

    error: Exception | None = None
    name: str = "planned"
    dimensions: int = 3
    embedded: list[str] = field(default_factory=list)

    def embed_query(self, text: str) -> Vector:
        if self.error is not None:
            raise self.error
        return np.array([1, 0, 0], dtype=np.float32)

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        if self.error is not None:
            raise self.error
        self.embedded += texts
        return np.tile(np.array([0, 0, 1], dtype=np.float32), (len(texts), 1))


def chunk(
    key: str, text: str | None, vector: Sequence[float] | None = None, **metadata: Any
) -> SemanticChunk:
    at = None if vector is None else np.array(vector, dtype=np.float32)
    return SemanticChunk(key, text, metadata, at)


# Similarities: leave 1, handbook 0.8, chinese 0.6, code 0.28, report 0, office -1. Keyword hits:
# leave, report, code.
CHUNKS = [
    chunk("leave", "Employees take fifteen days of annual leave.", (2, 0, 0), content_type=PLAIN),
    chunk("handbook", "Employees get a badge and a key.", (0.8, 0.6, 0), content_type=MARKDOWN),
    chunk("report", "The annual report of the meeting in spring.", (0, 1, 0), content_type=PLAIN),
    chunk("office", "The office closes at six.", (-1, 0, 0), content_type=PLAIN),
    chunk(
        "code",
        "The code PO-4711 stands for leave that is not paid, and for a sabbatical.",
        (0.28, 0, 0.96),
        content_type=MARKDOWN,
        document_id="codes",
    ),
    chunk("chinese", "员工每年有十五天带薪年假。", (0.6, 0.8, 0), content_type=PLAIN),
]
COSINES = {
    "leave": 1.0,
    "handbook": 0.8,
    "chinese": 0.6,
    "code": 0.28,
    "report": 0.0,
    "office": -1.0,
}


@dataclass
class World:
    """A backend and its stores. `restart` discards everything in memory; `drop` deletes a
    collection without the stores' knowledge."""

    backend: str
    _open: Callable[..., SemanticChunkStore]
    restart: Callable[[], None]
    drop: Callable[[str], None]
    embedder: PlannedEmbedder = field(default_factory=PlannedEmbedder)

    def open(
        self, collection: str = "content_chunks", *, hybrid: bool | None = True
    ) -> SemanticChunkStore:
        return self._open(collection, embedder=self.embedder, hybrid=hybrid)

    def filled(self, *, hybrid: bool | None = True) -> SemanticChunkStore:
        store = self.open(hybrid=hybrid)
        store.upsert(CHUNKS)
        return store


def ids(results: Sequence[Any]) -> list[str]:
    return [result.id for result in results]


def similarities(results: Sequence[Any]) -> Mapping[str, float]:
    return {result.id: round(result.similarity, 5) for result in results}
