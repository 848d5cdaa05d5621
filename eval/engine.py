"""The portal's own search and answers on a scratch database."""

from __future__ import annotations

import io
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from bench import databases
from eval.sets import BadSet, Chunk
from portal.answering import create_chat_model
from portal.container import build_services
from portal.database.embedded import borrowed
from portal.domain.answering import Source
from portal.domain.conversations import Citation, MessageStatus
from portal.domain.documents import DocumentStatus
from portal.domain.embedding import Embedder
from portal.domain.people import User
from portal.domain.search import Fusion, Normalisation, SearchMode, SearchRequest
from portal.services import Services
from portal.services.answers import answering, conversations, retrieving
from portal.services.documents import library
from portal.services.documents.ingestion.indexing import index_document
from portal.services.documents.intake import uploads
from portal.services.operations import setup
from portal.services.people import accounts
from portal.services.search.engine import search
from portal.settings import Settings

Method = tuple[SearchMode, Fusion | None, Normalisation | None]
Wrap = Callable[[Embedder], Embedder]

# The portal's default fusion; confidence is measured on it.
DEFAULT = "calibrated"
# Legs and fusions to compare.
METHODS: dict[str, Method] = {
    "keyword": (SearchMode.KEYWORD, None, None),
    "vector": (SearchMode.VECTOR, None, None),
    **{
        one.value: (SearchMode.HYBRID, Fusion.WEIGHTED, one)
        for one in (Normalisation.RAW, Normalisation.MINMAX)
    },
    "rrf": (SearchMode.HYBRID, Fusion.RRF, None),
    DEFAULT: (SearchMode.HYBRID, Fusion.WEIGHTED, Normalisation.CALIBRATED),
}

# Long passages are stored as several chunks, so more hits than documents are requested.
_HITS = 30
_DOCUMENTS = 10


@dataclass(frozen=True, slots=True)
class Found:
    """Ids of the best passages, each once, and the confidence of the first."""

    ids: tuple[str, ...]
    confidence: float | None
    off_topic: bool


@dataclass(frozen=True, slots=True)
class QuotedPiece:
    """Characters `start` to `end` of the text of a file, which an answer cites."""

    path: Path
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one question; `is_quoting` unless it abstains or only replies. `confidence` is
    the lowest of its quotations', 0 without any."""

    text: str
    is_quoting: bool
    quotations: tuple[QuotedPiece, ...]
    seconds: float
    confidence: float = 0.0


class Engine:
    """A portal that holds one corpus."""

    def __init__(self, services: Services, user: User) -> None:
        self._services = services
        self._user = user
        self._chunks: dict[UUID, list[str]] = {}
        self._files: dict[UUID, Path] = {}
        self.titles: dict[str, str] = {}

    def add(self, chunks: Sequence[Chunk], *, on_done: Callable[[], None]) -> None:
        """Upload each passage as its own file and index it, in this process."""
        for chunk in chunks:
            receipt = uploads.store_upload(
                self._services,
                self._user,
                stream=io.BytesIO(chunk.text.encode()),
                file_name=f"{chunk.id}.txt",
                title=chunk.title or chunk.id,
            )
            self._chunks.setdefault(receipt.document.id, []).append(chunk.id)
            if not receipt.is_duplicate and receipt.document.job_id is not None:
                index_document(self._services, receipt.document.job_id)
            on_done()

    def add_file(self, path: Path) -> None:
        """Upload a document and index it, in this process."""
        with path.open("rb") as stream:
            receipt = uploads.store_upload(
                self._services, self._user, stream=stream, file_name=path.name
            )
        if receipt.document.job_id is not None:
            index_document(self._services, receipt.document.job_id)
        document = library.get_summary(self._services, self._user, receipt.document.id)
        if document.status is not DocumentStatus.READY:
            raise BadSet(f"{path} could not be read")
        self._files[document.id] = path
        self.titles[path.name] = document.title

    def converse(self, questions: Sequence[str]) -> Answered:
        """Ask questions in a new conversation, and return the answer to the last of them."""
        conversation = conversations.create(self._services, self._user)
        for question in questions:
            began = time.perf_counter()
            *_, finished = answering.ask(self._services, self._user, conversation.id, question)
            seconds = time.perf_counter() - began
        message = finished.answer
        return Answered(
            text=message.content,
            is_quoting=message.status is MessageStatus.DONE,
            quotations=tuple(self._quoted(one) for one in message.citations if one.was_cited),
            seconds=seconds,
            confidence=message.replay.extra.get("confidence", 0.0) if message.replay else 0.0,
        )

    def find_sources(self, question: str) -> tuple[str, tuple[Source, ...]]:
        """Return the language of a question and the sources that an answer to it may quote."""
        conversation = conversations.create(self._services, self._user)
        asked = retrieving.ask_in(self._services, self._user, conversation.id, question, None)
        return asked.language, retrieving.retrieve(self._services, asked).sources

    def _quoted(self, citation: Citation) -> QuotedPiece:
        _, text = library.read_text(self._services, self._user, citation.document_id)
        path = self._files[citation.document_id]
        return QuotedPiece(path, text, citation.char_start, citation.char_end)

    def ask(self, question: str, method: str) -> Found:
        mode, fusion, normalisation = METHODS[method]
        request = SearchRequest(
            query=question, mode=mode, fusion=fusion, normalisation=normalisation, top_n=_HITS
        )
        outcome = search(self._services, self._user, request)
        documents = list(dict.fromkeys(hit.document_id for hit in outcome.hits))[:_DOCUMENTS]
        return Found(
            ids=tuple(chunk for document in documents for chunk in self._chunks[document]),
            confidence=outcome.hits[0].confidence if outcome.hits else None,
            off_topic=outcome.off_topic,
        )


@contextmanager
def scratch_engine(
    directory: Path, settings: Settings, wrap: Wrap = lambda model: model
) -> Iterator[Engine]:
    """Open an empty portal in its own database, and drop the database afterwards. Starts the server
    in `directory` unless it is running."""
    with borrowed(directory) as server_url:
        name = f"eval_{secrets.token_hex(6)}"
        with databases.temporary(server_url, name) as url:
            # Nothing has to survive a crash, and every passage takes several transactions.
            databases.execute(server_url, f"ALTER DATABASE {name} SET synchronous_commit = off")
            services = build_services(settings, database_url=url)
            embedder = wrap(services.embedder)
            chat = create_chat_model(settings.chat, embedder)
            services = replace(services, embedder=embedder, chat=chat)
            try:
                for _ in setup.prepare_database(services):
                    pass
                user = accounts.create_user(
                    services, name="evaluation", password=secrets.token_urlsafe(24), is_admin=False
                )
                yield Engine(services, user)
            finally:
                services.database.dispose()
