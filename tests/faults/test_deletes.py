"""Deleting at any moment of an ingestion: nothing revives, nothing is left, citations stay true."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from uuid import UUID

from sqlalchemy import text

from portal.domain.conversations import Message, SourceState
from portal.domain.documents import DocumentSummary
from portal.domain.search import SearchMode, SearchRequest
from portal.processes.worker import work_until_empty
from portal.services.answers import conversations
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from portal.services.operations import maintenance
from portal.services.search import engine
from portal.store.documents.ingestion import files
from portal.store.documents.ingestion import jobs as job_store
from tests.conftest import Portal
from tests.factories.answers import ask, saying
from tests.factories.uploads import run_apart, upload

SHORT, LONG = 5, 50
# Where words, vectors and files of a document could be left.
TABLES = {
    "document_chunks": "document_id",
    "chunk_embeddings": "document_id",
    "document_revisions": "document_id",
    "jobs": "document_id",
}


class Round:
    """A document that was cited, and then a new and longer text of it that is being read."""

    def __init__(self, portal: Portal, number: int) -> None:
        self.portal, self.word = portal, f"lantern{number}"
        self.sentence = f"The keeper of {self.word} lives on the island."
        self.document: DocumentSummary = portal.add(self.sentence, title=f"Keepers {number}")
        talk = conversations.create(portal.services, portal.admin)
        services = saying(portal.services, f"{self.sentence} [1]")
        self.answer: Message = ask(services, portal.admin, talk.id, f"Who lives by {self.word}?")
        assert self.answer.citations[0].document_id == self.document.id
        longer = "\n\n".join(f"{self.sentence} Again, {n}. " + "Oil. " * 250 for n in range(40))
        with portal.services.database.begin() as session:
            file_id = files.add_file(session, upload(longer))
            self.job_id: UUID = job_store.add_job(
                session, document_id=self.document.id, file_id=file_id
            )

    def index(self) -> None:
        indexing.index_document(self.portal.services, self.job_id)

    def hits(self) -> list[UUID]:
        return [
            hit.document_id
            for mode in SearchMode
            for hit in engine.search(
                self.portal.services, self.portal.admin, SearchRequest(self.word, mode=mode)
            ).hits
            if hit.document_id == self.document.id
        ]

    def rows_left(self) -> dict[str, int]:
        counts = {
            table: self.portal.scalar(
                f"SELECT count(*) FROM {table} WHERE {column} = :id", id=self.document.id
            )
            for table, column in TABLES.items()
        }
        return {table: count for table, count in counts.items() if count}

    def check_citation(self, state: SourceState) -> None:
        services, admin = self.portal.services, self.portal.admin
        citation = conversations.get_message(services, admin, self.answer.id).citations[0]
        assert citation.state is state
        assert citation.title == self.document.title
        assert citation.quote_sha256 == hashlib.sha256(self.sentence.encode()).hexdigest()
        assert citation.excerpt == ("" if state is SourceState.GONE else self.sentence)


def test_deleted_while_it_is_indexed_a_document_is_gone_and_its_citations_stay(
    portal: Portal, rng: random.Random, is_long: bool
) -> None:
    services, admin = portal.services, portal.admin
    undisturbed = Round(portal, 0)
    began = time.monotonic()
    undisturbed.index()
    usual_s = time.monotonic() - began
    assert undisturbed.hits()

    rounds = [Round(portal, number) for number in range(1, 1 + (LONG if is_long else SHORT))]
    purged = rng.sample(rounds, len(rounds) // 2)
    for one in rounds:
        indexer = threading.Thread(target=one.index)
        indexer.start()
        indexer.join(rng.uniform(0, usual_s))
        remove = library.purge_document if one in purged else library.delete_document
        remove(services, admin, one.document.id)
        assert one.hits() == []
        indexer.join()
        assert one.hits() == []

    # Nor does what is left in the queue bring any of them back.
    maintenance.run(services)
    run_apart(work_until_empty, services)
    for one in rounds:
        assert one.hits() == []
        one.check_citation(SourceState.GONE if one in purged else SourceState.TRASHED)
        if one not in purged:
            library.purge_document(services, admin, one.document.id)
        assert one.rows_left() == {}
        one.check_citation(SourceState.GONE)
    with services.database.begin() as session:
        assert session.scalar(text("SELECT count(*) FROM stored_files")) == 2
    assert library.list_documents(services, admin).total_count == 1
