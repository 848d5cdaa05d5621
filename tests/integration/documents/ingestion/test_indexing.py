"""Indexing resumes after an interruption at any point, and partial results are never found."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import event

from portal.domain.documents import DocumentStatus
from portal.domain.search import SearchRequest
from portal.errors import EmbedderUnavailable
from portal.processes.worker import has_live_workers, work_until_empty
from portal.services.documents import library
from portal.services.documents.ingestion import attempts, chunk_storage, indexing, jobs
from portal.services.documents.intake import uploads
from portal.services.models import catalog
from portal.services.search import engine
from portal.store.documents.ingestion import jobs as job_store
from tests.conftest import Portal
from tests.factories.uploads import run_apart, upload

LONG = "\n\n".join(f"Section {n}. " + "Budget words fill this paragraph. " * 40 for n in range(40))


def store(portal: Portal, content: str = LONG, name: str = "long.txt"):
    return uploads.store_upload(
        portal.services, portal.admin, stream=upload(content), file_name=name
    ).document


def found(portal: Portal) -> int:
    return len(engine.search(portal.services, portal.admin, SearchRequest("budget")).hits)


def test_interrupted_ingestion_is_invisible_and_continues(portal: Portal) -> None:
    document = store(portal)
    batches = iter([False, False, True])
    indexing.index_document(portal.services, document.job_id, should_stop=lambda: next(batches))
    half = portal.scalars("SELECT id FROM document_chunks ORDER BY chunk_index")
    assert half
    assert found(portal) == 0
    indexing.index_document(portal.services, document.job_id)
    assert found(portal) > 0
    whole = portal.scalars("SELECT id FROM document_chunks ORDER BY chunk_index")
    assert whole[: len(half)] == half
    assert portal.scalars("SELECT count(*) FROM chunk_embeddings") == [len(whole)]


def test_next_batch_is_embedded_while_one_is_stored(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = store(portal)
    second_is_embedded, calls = threading.Event(), iter(range(100))
    embed, store_chunks = catalog.embed_for_all, chunk_storage.store

    def embed_and_tell(*values, **named):
        vectors = embed(*values, **named)
        if next(calls) == 1:
            second_is_embedded.set()
        return vectors

    def store_later(*values, **named):
        assert second_is_embedded.wait(20)
        return store_chunks(*values, **named)

    monkeypatch.setattr(catalog, "embed_for_all", embed_and_tell)
    monkeypatch.setattr(chunk_storage, "store", store_later)
    indexing.index_document(portal.services, document.job_id)
    assert found(portal) > 0


def test_a_known_text_takes_few_statements(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time that such a file takes is spent on statements, a millisecond each."""
    first = store(portal, "Budget words of the year.", "one.txt")
    indexing.index_document(portal.services, first.job_id)
    document = store(portal, "Budget words of the year.\n", "two.txt")
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    def refuse(_texts: object) -> None:
        raise AssertionError("a known text is embedded")

    monkeypatch.setattr(portal.services.embedder, "embed_chunks", refuse)
    event.listen(portal.services.database.engine, "before_cursor_execute", note)
    try:
        indexing.index_document(portal.services, document.job_id)
    finally:
        event.remove(portal.services.database.engine, "before_cursor_execute", note)
    assert portal.scalars("SELECT status FROM documents") == ["ready", "ready"]
    assert len(statements) <= 30


def test_repeated_job_changes_nothing(portal: Portal) -> None:
    document = store(portal)
    indexing.index_document(portal.services, document.job_id)
    before = portal.scalars("SELECT id FROM document_chunks ORDER BY id")
    indexing.index_document(portal.services, document.job_id)
    assert portal.scalars("SELECT id FROM document_chunks ORDER BY id") == before


def test_deleting_during_indexing_never_revives_the_document(portal: Portal) -> None:
    document = store(portal)
    calls = iter(range(100))

    def delete_at_second_batch() -> bool:
        if next(calls) == 1:
            library.delete_document(portal.services, portal.admin, document.id)
        return False

    indexing.index_document(portal.services, document.job_id, should_stop=delete_at_second_batch)
    assert found(portal) == 0
    assert library.list_documents(portal.services, portal.admin).total_count == 0


def test_purging_during_indexing_leaves_nothing(portal: Portal) -> None:
    document = store(portal)
    calls = iter(range(100))

    def purge_at_second_batch() -> bool:
        if next(calls) == 1:
            library.purge_document(portal.services, portal.admin, document.id)
        return False

    indexing.index_document(portal.services, document.job_id, should_stop=purge_at_second_batch)
    for table in ("document_chunks", "chunk_embeddings", "document_revisions", "jobs"):
        assert portal.scalars(f"SELECT count(*) FROM {table}") == [0], table


def test_unreadable_file_fails_with_its_reason(portal: Portal) -> None:
    document = store(portal, "%PDF-1.7\nnot really", "broken.pdf")
    indexing.index_document(portal.services, document.job_id)
    summary = library.get_summary(portal.services, portal.admin, document.id)
    assert summary.status is DocumentStatus.FAILED
    assert summary.failure
    assert summary.failure.code == "broken_pdf"
    assert summary.failure.params == {"name": "broken.pdf"}


def test_unavailable_model_is_retried_then_reported(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = store(portal)

    def refuse(texts):
        raise EmbedderUnavailable(reason="the endpoint does not answer")

    monkeypatch.setattr(type(portal.services.embedder), "embed_chunks", lambda _, t: refuse(t))
    for _ in range(attempts.MAX_ATTEMPTS):
        indexing.index_document(portal.services, document.job_id)
    summary = library.get_summary(portal.services, portal.admin, document.id)
    assert summary.failure
    assert summary.failure.code == "embedder_unavailable"


def test_failed_document_can_be_retried(portal: Portal) -> None:
    document = store(portal, "%PDF-1.7\nnot really", "broken.pdf")
    indexing.index_document(portal.services, document.job_id)
    jobs.retry(portal.services, portal.admin, document.id)
    summary = library.get_summary(portal.services, portal.admin, document.id)
    assert summary.status is DocumentStatus.QUEUED
    assert summary.failure is None


def test_worker_does_what_is_queued(portal: Portal) -> None:
    document = store(portal)
    assert not has_live_workers(portal.services)
    run_apart(work_until_empty, portal.services)
    summary = library.get_summary(portal.services, portal.admin, document.id)
    assert summary.status is DocumentStatus.READY


def test_rolled_back_job_is_not_queued(portal: Portal) -> None:
    document = store(portal)

    def add_and_fail() -> None:
        with portal.services.database.begin() as session:
            job_store.add_job(session, document_id=document.id, file_id=None)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        add_and_fail()
    # Only the upload's own job is queued.
    assert portal.scalars("SELECT count(*) FROM procrastinate_jobs") == [1]


def test_job_that_the_queue_lost_is_queued_again(portal: Portal) -> None:
    from portal.services.operations import maintenance

    document = store(portal)
    portal.execute("DELETE FROM procrastinate_jobs")
    maintenance.run(portal.services)
    assert portal.scalars("SELECT args->>'job_id' FROM procrastinate_jobs") == [
        str(document.job_id)
    ]
