"""Uploads and jobs on a full disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from flask.testing import FlaskClient

from portal.domain.documents.jobs import JobStatus
from portal.services.documents import library
from portal.services.documents.ingestion import indexing, jobs
from portal.services.documents.ingestion.attempts import BACKOFF_S
from portal.services.documents.intake import uploads
from portal.services.documents.intake.disk_space import ReservedSpace
from tests.conftest import Portal
from tests.factories.uploads import upload
from tests.integration.documents.uploads.conftest import MB, Body, post, rows_of, send

NO_ROOM = "RAISE 'could not extend file' USING ERRCODE = 'disk_full'"


@contextmanager
def full(portal: Portal, table: str) -> Iterator[None]:
    """Make writes to this table fail as if the database's disk were full."""
    name = f"full_{table}"
    portal.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {NO_ROOM}; END $$"
    )
    portal.execute(
        f"CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    )
    yield
    portal.execute(f"DROP FUNCTION {name} CASCADE")


def test_full_database_disk_is_reported_and_stores_nothing(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers() | {"Idempotency-Key": "key-1"}
    for table in ("stored_file_parts", "jobs"):
        with full(portal, table):
            answer = post(client, headers, (b"first", "a.txt"), (b"second", "b.txt"))
            assert (answer.status_code, answer.json["error"]["code"]) == (507, "storage_full")
        for kept in ("stored_files", "stored_file_parts", "documents", "jobs"):
            assert rows_of(portal, kept) == 0, kept
        assert rows_of(portal, "procrastinate_jobs") == 0
    # Once there is room, the same request with the same key succeeds.
    assert post(client, headers, (b"first", "a.txt"), (b"second", "b.txt")).status_code == 202


def test_full_disk_for_uploads_is_reported(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_device(**_: object) -> IO[bytes]:
        return Path("/dev/full").open("r+b", 0)

    monkeypatch.setattr(tempfile, "TemporaryFile", full_device)
    answer = post(client, portal.headers(), (b"text", "a.txt"))
    assert (answer.status_code, answer.json["error"]["code"]) == (507, "storage_full")
    page = send(client, portal.headers() | {"HX-Request": "true"}, (b"text", "a.txt"))
    assert page.status_code == 507
    assert "disk is full" in page.text
    assert rows_of(portal, "documents") == 0


def test_uploads_stop_before_the_embedded_database_has_no_room(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("usage", (), {"free": 64 * MB + 1999})
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    headers = portal.headers()
    # The disk is not checked for a database on another server.
    assert post(client, headers, (b"a" * 1000, "a.txt")).status_code == 202
    (portal.services.settings.data_dir / "postgres").mkdir()
    assert post(client, headers, (b"b" * 1000, "b.txt")).status_code == 507
    assert post(client, headers, (b"b" * 999, "b.txt")).status_code == 202
    # A body that would not fit on the disk is refused before it is read.
    file = Body(4 * MB)
    answer = file.post(client, headers)
    assert (answer.status_code, answer.json["error"]["code"]) == (507, "storage_full")
    assert file.read_bytes < MB
    assert not ReservedSpace._all_bytes


def test_job_waits_for_room_and_loses_no_attempt(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("usage", (), {"free": 31 * MB})
    receipt = uploads.store_upload(
        portal.services, portal.admin, stream=upload("Some words."), file_name="a.txt"
    )
    job_id = receipt.document.job_id
    assert job_id is not None
    (portal.services.settings.data_dir / "postgres").mkdir()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    for _ in range(5):
        indexing.index_document(portal.services, job_id)
    job = jobs.newest_jobs(portal.services, [job_id])[receipt.document.id]
    assert (job.status, job.failure.code) == (JobStatus.QUEUED, "storage_full")
    assert job.retry_at is not None
    waiting = library.get_summary(portal.services, portal.admin, receipt.document.id)
    assert waiting.status == "queued"
    usage.free = 33 * MB
    indexing.index_document(portal.services, job_id)
    ready = library.get_summary(portal.services, portal.admin, receipt.document.id)
    assert ready.status == "ready"
    assert rows_of(portal, "jobs WHERE attempts = 1 AND failed_attempts = 0") == 1


def test_job_on_a_full_disk_waits_fails_with_its_reason_and_is_tried_again(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = uploads.store_upload(
        portal.services, portal.admin, stream=upload("Some words."), file_name="a.txt"
    )
    job_id = receipt.document.job_id
    assert job_id is not None

    def job() -> Any:
        return jobs.newest_jobs(portal.services, [job_id])[receipt.document.id]

    with full(portal, "document_chunks"):
        indexing.index_document(portal.services, job_id)
    assert (job().status, job().failure.code) == (JobStatus.QUEUED, "storage_full")
    # The same for the job's temporary files.
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "_copy_file", lambda *_: Path("/dev/full").write_bytes(b"x"))
        portal.execute("UPDATE jobs SET revision_id = NULL")
        for _ in BACKOFF_S:
            indexing.index_document(portal.services, job_id)
    document = library.get_summary(portal.services, portal.admin, receipt.document.id)
    assert document.status == "failed"
    assert document.failure is not None
    assert document.failure.code == "storage_full"
    jobs.retry(portal.services, portal.admin, document.id)
    indexing.index_document(portal.services, job_id)
    assert portal.services.settings.temporary_dir.is_dir()
    assert not list(portal.services.settings.temporary_dir.iterdir())
    ready = library.get_summary(portal.services, portal.admin, document.id)
    assert ready.status == "ready"
