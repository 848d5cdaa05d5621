"""A large or hostile file delays no small file, and nothing at all once it is cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import DocumentStatus, DocumentSummary, ExtractedText, MediaType
from portal.ingest import reader_process
from portal.ingest.limits import FileToRead
from portal.processes import worker
from portal.services.documents import trash
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake import uploads
from portal.services.operations import setup
from portal.store.documents.ingestion.queue import QUEUE_NAME, SMALL_QUEUE
from tests.conftest import Portal
from tests.factories.uploads import upload
from tests.integration.documents.ingestion.jobs.work import status_of

WITHIN_S = 30.0
# It stands for a file on which the parser never ends.
ENDLESS_READER = """
import time
def read(file, **options):
    yield {"is_flattened": False}
    while True:
        time.sleep(0.05)
"""
PAGE = "<html><p>words of a page</p></html>"


def store(portal: Portal, content: str, name: str) -> DocumentSummary:
    return uploads.store_upload(
        portal.services, portal.admin, stream=upload(content), file_name=name
    ).document


def queue_of(portal: Portal, document: DocumentSummary) -> str:
    with portal.services.database.begin() as session:
        query = text("SELECT queue_name FROM procrastinate_jobs WHERE args->>'job_id' = :id")
        return session.execute(query, {"id": str(document.job_id)}).scalars().one()


def wait_for(condition: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < ends_at, "it did not happen"
        threading.Event().wait(0.05)


def test_note_is_read_while_a_large_file_holds_the_worker(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_really, may_end = indexing.extract, threading.Event()

    def read(file: FileToRead, media_type: MediaType) -> ExtractedText:
        if file.name == "large.txt":
            assert may_end.wait(WITHIN_S)
        return read_really(file, media_type)

    monkeypatch.setattr(indexing, "extract", read)
    large = store(portal, "Words of a large file. " * 2_000, "large.txt")
    with worker.working(portal.services):
        wait_for(lambda: status_of(portal, large) is DocumentStatus.PROCESSING)
        note = store(portal, "A note.", "note.txt")
        wait_for(lambda: status_of(portal, note) is DocumentStatus.READY)
        assert status_of(portal, large) is DocumentStatus.PROCESSING
        may_end.set()
        wait_for(lambda: status_of(portal, large) is DocumentStatus.READY)


def test_building_the_keyword_index_delays_no_other_duty(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Building it takes ten minutes for a million chunks."""
    ended_rounds, may_end = threading.Semaphore(0), threading.Event()
    monkeypatch.setattr(worker, "_HOUSEKEEPING_EVERY_S", 0.01)
    monkeypatch.setattr(setup, "repair_keyword_index", lambda _: may_end.wait(WITHIN_S))
    monkeypatch.setattr(trash, "purge_expired", lambda *_, **__: ended_rounds.release())
    with worker.working(portal.services):
        assert all(ended_rounds.acquire(timeout=WITHIN_S) for _ in range(2))
        may_end.set()


def test_queue_uses_the_size_of_the_file(portal: Portal) -> None:
    assert queue_of(portal, store(portal, "x" * 32_768, "a.txt")) == SMALL_QUEUE
    assert queue_of(portal, store(portal, "x" * 32_769, "b.txt")) == QUEUE_NAME


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "readers"
    folder.mkdir()
    (folder / "html_reader.py").write_text(ENDLESS_READER)
    monkeypatch.setattr(reader_process, "_READERS", folder)
    yield
    assert _readers(folder) == []


def _readers(folder: Path) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if any(str(folder) in part for part in child.cmdline())
    ]


@pytest.mark.parametrize("way", ["cancel", "trash", "purge"])
@pytest.mark.usefixtures("endless")
def test_cancelled_job_ends_its_reader_at_once(
    portal: Portal, client: FlaskClient, tmp_path: Path, way: str
) -> None:
    document = store(portal, PAGE, "page.html")
    job = threading.Thread(
        target=indexing.index_document, args=(portal.services, document.job_id), daemon=True
    )
    job.start()
    wait_for(lambda: bool(_readers(tmp_path / "readers")))
    address, headers = f"/api/knowledge/documents/{document.id}", portal.headers()
    if way == "cancel":
        assert client.post(f"{address}/cancel", headers=headers).status_code == 200
    else:
        assert client.delete(address, headers=headers).status_code == 204
    if way == "purge":
        assert client.delete(f"{address}?purge=true", headers=headers).status_code == 204
    job.join(10)
    assert not job.is_alive()


@pytest.mark.usefixtures("endless")
def test_slow_page_moves_to_the_slow_queue_while_it_is_read(portal: Portal) -> None:
    document = store(portal, PAGE, "page.html")
    indexing.index_document(portal.services, document.job_id, should_stop_reading=lambda: True)
    with portal.services.database.begin() as session:
        queues = session.execute(text("SELECT queue_name FROM procrastinate_jobs ORDER BY id"))
        assert list(queues.scalars()) == [SMALL_QUEUE, "ingest_slow"]


@pytest.mark.usefixtures("endless")
def test_stopping_worker_returns_a_half_read_file_to_the_queue(portal: Portal) -> None:
    document = store(portal, PAGE, "page.html")
    indexing.index_document(portal.services, document.job_id, should_quit=lambda: True)
    with portal.services.database.begin() as session:
        queues = session.execute(text("SELECT queue_name FROM procrastinate_jobs ORDER BY id"))
        assert list(queues.scalars()) == [SMALL_QUEUE, SMALL_QUEUE]
