"""The portal's own engine on a scratch database: what is measured is what is served."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import psycopg
from sqlalchemy.engine import make_url

from eval.sets import Passage
from portal.bootstrap import build_services
from portal.database.embedded import borrowed
from portal.domain.embedding import Embedder
from portal.domain.people import Person
from portal.domain.search import Fusion, SearchMode, SearchRequest
from portal.services import Services, accounts, setup, uploads
from portal.services.indexing import index_document
from portal.services.searching import search
from portal.settings import Settings

# Modes and fusions that are measured, side by side.
METHODS: dict[str, tuple[SearchMode, Fusion | None]] = {
    "keyword": (SearchMode.KEYWORD, None),
    "vector": (SearchMode.VECTOR, None),
    "hybrid": (SearchMode.HYBRID, Fusion.WEIGHTED),
    "hybrid rrf": (SearchMode.HYBRID, Fusion.RRF),
}

# Long passages are stored in pieces: more hits than documents are asked for.
_HITS = 30
_DOCUMENTS = 10


class Engine:
    """A portal that holds one corpus."""

    def __init__(self, services: Services, person: Person) -> None:
        self._services = services
        self._person = person
        self._passages: dict[UUID, list[str]] = {}

    def add(self, passages: Sequence[Passage], *, told: Callable[[], None]) -> None:
        """Upload each passage as a file of its own and index it, in this process."""
        for passage in passages:
            receipt = uploads.store_upload(
                self._services,
                self._person,
                stream=io.BytesIO(passage.text.encode()),
                file_name=f"{passage.id}.txt",
                title=passage.id,
            )
            self._passages.setdefault(receipt.document.id, []).append(passage.id)
            if not receipt.is_duplicate and receipt.document.job_id is not None:
                index_document(self._services, receipt.document.job_id)
            told()

    def rank(self, question: str, method: str) -> tuple[list[str], float | None]:
        """Ids of the best passages, each once, and the confidence of the first."""
        mode, fusion = METHODS[method]
        request = SearchRequest(query=question, mode=mode, fusion=fusion, top_n=_HITS)
        hits = search(self._services, self._person, request).hits
        documents = list(dict.fromkeys(hit.document_id for hit in hits))[:_DOCUMENTS]
        ids = [passage for document in documents for passage in self._passages[document]]
        return ids, hits[0].confidence if hits else None


@contextmanager
def scratch_engine(
    directory: Path, settings: Settings, wrap: Callable[[Embedder], Embedder]
) -> Iterator[Engine]:
    """An empty portal in a database of its own, which is dropped afterwards. The server on
    `directory` is started for it, or joined."""
    with borrowed(directory) as server_url:
        name = f"eval_{secrets.token_hex(6)}"
        _execute(server_url, f"CREATE DATABASE {name}")
        try:
            url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
            services = build_services(settings, database_url=url)
            services = replace(services, embedder=wrap(services.embedder))
            try:
                for _ in setup.prepare_database(services):
                    pass
                person = accounts.create_user(
                    services, name="evaluation", password=secrets.token_urlsafe(24), is_admin=True
                )
                yield Engine(services, person)
            finally:
                services.database.dispose()
        finally:
            _execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(url: str, statement: str) -> None:
    """Run a statement that no transaction may hold."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(statement.encode())
