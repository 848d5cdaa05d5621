"""Jobs that fail, time out or kill their worker."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import DocumentStatus, DocumentSummary, Visibility
from portal.domain.documents.jobs import JobStatus
from portal.errors import EmbedderUnavailable
from portal.processes import importing, isolation
from portal.services.documents import library
from portal.services.documents.ingestion import attempts, indexing, jobs
from portal.store.documents.ingestion import jobs as job_store
from portal.store.session import Session
from tests.conftest import Portal
from tests.factories.deaths import die_of_a_signal, end_as_asked, end_of_an_error
from tests.integration.documents.ingestion.jobs.work import LONG, job_of, status_of, store, work


def refuse_to_embed(patch: pytest.MonkeyPatch, portal: Portal) -> None:
    def refuse(_embedder, _texts):
        raise EmbedderUnavailable(reason="it is still being loaded")

    patch.setattr(type(portal.services.embedder), "embed_chunks", refuse)


def test_temporary_error_is_tried_three_times_with_longer_waits(
    portal: Portal, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = store(portal)
    with monkeypatch.context() as patch:
        refuse_to_embed(patch, portal)
        for number, wait_s in enumerate(attempts.BACKOFF_S, 1):
            indexing.index_document(portal.services, document.job_id)
            job = job_of(portal, document)
            assert (job.status, job.attempts) == (JobStatus.QUEUED, number)
            assert status_of(portal, document) is DocumentStatus.QUEUED
            due = portal.scalars(
                "SELECT round(extract(epoch FROM scheduled_at - now())) FROM procrastinate_jobs "
                "WHERE scheduled_at IS NOT NULL ORDER BY id DESC LIMIT 1"
            )
            assert wait_s - 2 <= due[0] <= wait_s
            page = client.get("/documents", headers=portal.headers()).get_data(as_text=True)
            assert f"Attempt {number} failed: The embedding model cannot be used" in page
        indexing.index_document(portal.services, document.job_id)
    job = job_of(portal, document)
    assert (job.status, job.attempts, job.retry_at) == (JobStatus.FAILED, 3, None)
    summary = library.get_summary(portal.services, portal.admin, document.id)
    assert summary.failure
    assert summary.failure.code == "embedder_unavailable"

    # A retry by hand resumes where the job stopped, with a fresh count of attempts.
    text_id = portal.scalars("SELECT id FROM document_revisions")
    jobs.retry(portal.services, portal.admin, document.id)
    indexing.index_document(portal.services, document.job_id)
    assert status_of(portal, document) is DocumentStatus.READY
    assert portal.scalars("SELECT id FROM document_revisions") == text_id


def test_job_that_hits_a_deadlock_is_retried(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = store(portal, "Budget words.")
    with monkeypatch.context() as patch:

        def deadlock(session: Session, *_rest: object, **_named: object) -> None:
            session.execute(text("DO $$ BEGIN RAISE 'x' USING ERRCODE = '40P01'; END $$"))

        patch.setattr(job_store, "finish", deadlock)
        indexing.index_document(portal.services, document.job_id)
    job = job_of(portal, document)
    assert (job.status, job.attempts) == (JobStatus.QUEUED, 1)
    indexing.index_document(portal.services, document.job_id)
    assert status_of(portal, document) is DocumentStatus.READY


def test_worker_that_seemed_dead_changes_nothing(portal: Portal) -> None:
    document = store(portal)
    calls = iter(range(100))

    def another_takes_over() -> bool:
        if next(calls) == 1:
            indexing.index_document(portal.services, document.job_id)
        return False

    indexing.index_document(portal.services, document.job_id, should_stop=another_takes_over)
    assert status_of(portal, document) is DocumentStatus.READY
    job = job_of(portal, document)
    assert (job.status, job.attempts) == (JobStatus.READY, 2)
    indexes = portal.scalars("SELECT chunk_index FROM document_chunks ORDER BY 1")
    assert indexes == list(range(job.total))
    assert portal.scalars("SELECT count(*) FROM chunk_embeddings") == [job.total]


def die(portal: Portal, document: DocumentSummary) -> None:
    """Leave a job as a worker does when it dies."""
    assert attempts.begin(portal.services, document.job_id) is not None


def test_deadly_file_fails_after_three_deaths_without_killing_the_worker(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = store(portal)
    die(portal, document)
    assert not attempts.is_suspect(portal.services, document.job_id)
    die(portal, document)
    assert attempts.is_suspect(portal.services, document.job_id)
    with monkeypatch.context() as patch:
        patch.setattr(isolation, "_index", die_of_a_signal)
        work(portal, document)
    assert _is_killer(portal, document)

    # A harmless file whose workers died as often for other reasons is read in isolation.
    jobs.retry(portal.services, portal.admin, document.id)
    die(portal, document)
    die(portal, document)
    work(portal, document)
    assert status_of(portal, document) is DocumentStatus.READY


@pytest.mark.parametrize("end", [end_as_asked, end_of_an_error])
def test_isolated_process_that_ends_otherwise_does_not_fail_the_file(
    portal: Portal, monkeypatch: pytest.MonkeyPatch, end: Callable[..., None]
) -> None:
    document = store(portal)
    die(portal, document)
    die(portal, document)
    with monkeypatch.context() as patch:
        patch.setattr(isolation, "_index", end)
        work(portal, document)
    job = job_of(portal, document)
    assert job.status is JobStatus.QUEUED
    assert (job.failure.code if job.failure else None) == (
        "unavailable" if end is end_of_an_error else None
    )


def test_separate_process_leaves_signals_to_the_worker(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C reaches every process of the terminal's group."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    seen = []

    def build(_settings: object) -> object:
        seen.extend(signal.getsignal(number) for number in numbers)
        raise KeyboardInterrupt

    monkeypatch.setattr(isolation, "build_services", build)
    try:
        with pytest.raises(KeyboardInterrupt):
            isolation._index(portal.services.settings, uuid4(), {})
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert seen == [signal.SIG_IGN, signal.SIG_IGN]


def _is_killer(portal: Portal, document: DocumentSummary) -> bool:
    failure = library.get_summary(portal.services, portal.admin, document.id).failure
    return failure is not None and failure.code == "killed_worker"


def test_progress_after_a_death_clears_the_suspicion(portal: Portal) -> None:
    document = store(portal)
    die(portal, document)
    stops = iter([False, True])
    indexing.index_document(portal.services, document.job_id, should_stop=lambda: next(stops))
    die(portal, document)
    assert not attempts.is_suspect(portal.services, document.job_id)


def test_waiting_import_continues_after_a_temporary_error(
    portal: Portal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = store(portal)
    monkeypatch.setattr(attempts, "BACKOFF_S", (0.2, 0.2))
    embed = type(portal.services.embedder).embed_chunks
    calls = iter(range(100))

    def fail_once(embedder, texts):
        if next(calls) == 0:
            raise EmbedderUnavailable(reason="it is still being loaded")
        return embed(embedder, texts)

    monkeypatch.setattr(type(portal.services.embedder), "embed_chunks", fail_once)
    path = tmp_path / "again.txt"
    path.write_text(LONG, encoding="utf-8")
    status = importing.import_and_wait(
        portal.services, [path], owner="admin", domain=None, visibility=Visibility.SHARED, wait=True
    )
    assert status == 0
    assert status_of(portal, document) is DocumentStatus.READY
