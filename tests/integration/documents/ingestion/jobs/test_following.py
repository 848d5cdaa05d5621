"""Jobs as users follow, cancel and retry them."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import DocumentStatus, ExtractedText, Visibility
from portal.domain.documents.jobs import JobStatus
from portal.domain.people import User
from portal.domain.search import SearchRequest
from portal.errors import Conflict, EmptyFile, Forbidden, NotFound, UnreadableFile
from portal.processes import worker
from portal.services.documents import library
from portal.services.documents.ingestion import attempts, indexing, jobs, rereading
from portal.services.documents.intake import uploads
from portal.services.search import engine
from portal.store.documents.ingestion import jobs as job_store
from tests.conftest import Portal
from tests.factories.uploads import run_apart, upload
from tests.integration.documents.ingestion.jobs.work import LONG, job_of, status_of, store


def test_cancelled_job_stops_reports_it_and_continues_when_retried(portal: Portal) -> None:
    client = portal.client()
    document = store(portal)
    address = f"/api/knowledge/documents/{document.id}"
    calls = iter(range(100))

    def cancel_at_second_batch() -> bool:
        if next(calls) == 1:
            assert client.post(f"{address}/cancel").json["status"] == "failed"
        return False

    indexing.index_document(portal.services, document.job_id, should_stop=cancel_at_second_batch)
    shown = client.get(address).json
    assert (shown["status"], shown["error"]["code"]) == ("failed", "cancelled")
    assert (shown["job"]["status"], shown["job"]["done"]) == ("cancelled", 16)
    assert engine.search(portal.services, portal.admin, SearchRequest("budget")).hits == ()
    assert client.post(f"{address}/cancel").status_code == 409

    assert client.post(f"{address}/retry").status_code == 202
    assert client.post(f"{address}/retry").status_code == 409
    assert client.post(f"{address}/cancel").status_code == 200  # While it waits.
    # Retrying all failed jobs leaves it out, because a user cancelled it.
    again = client.post("/api/knowledge/documents/retry-failed")
    assert again.json == {"count": 0}
    assert client.post(f"{address}/retry").status_code == 202
    run_apart(worker.work_until_empty, portal.services)
    assert status_of(portal, document) is DocumentStatus.READY
    job = client.get(f"/api/knowledge/jobs/{document.job_id}").json
    assert (job["status"], job["stage"], job["done"]) == ("ready", "embedding", job["total"])
    assert job["queued_at"] <= job["started_at"] <= job["finished_at"]


def test_failed_rereading_keeps_the_document_and_says_why(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = portal.client()
    document = portal.add(LONG, name="long.txt")
    address = f"/api/knowledge/documents/{document.id}"
    answer = client.post(f"{address}/reindex", json={})
    assert answer.json["job"]["status"] == "queued"

    def refuse(*_args, **_options):
        raise UnreadableFile(reason="input/output error")

    job_id = UUID(answer.json["job_id"])
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "extract", refuse)
        indexing.index_document(portal.services, job_id)
    shown = client.get(address).json
    assert (shown["status"], shown["error"]) == ("ready", None)
    assert (shown["job"]["status"], shown["job"]["error"]["code"]) == ("failed", "unreadable_file")
    page = client.get(f"/documents/{document.id}").text
    assert shown["job"]["error"]["message"] in page
    assert engine.search(portal.services, portal.admin, SearchRequest("budget")).hits
    again = uploads.store_upload(
        portal.services, portal.admin, stream=upload(LONG), file_name="long.txt"
    )
    assert again.is_duplicate

    # It is retried like any other job; after a success, its earlier failures no longer count.
    def retry_buttons() -> int:
        return client.get("/admin/jobs").text.count('data-testid="retry-job"')

    assert retry_buttons() == 1
    assert "Retry the failed document" in client.get("/admin/jobs").text
    assert jobs.retry_failed(portal.services, portal.admin) == 1
    assert job_of(portal, document).status is JobStatus.READY
    assert status_of(portal, document) is DocumentStatus.READY
    assert retry_buttons() == jobs.queue_state(portal.services, portal.admin).failed == 0
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "split", refuse)
        indexing.index_document(portal.services, job_id)
    rereading.reread(portal.services, portal.admin, document.id)
    assert retry_buttons() == 0
    with pytest.raises(Conflict):
        jobs.retry(portal.services, portal.admin, document.id)


def test_file_that_would_fail_again_is_not_offered_for_retry(
    portal: Portal, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args, **_options):
        raise EmptyFile(name="long.txt")

    monkeypatch.setattr(indexing, "extract", refuse)
    document = portal.add(LONG, name="long.txt")
    assert status_of(portal, document) is DocumentStatus.FAILED
    page = client.get("/admin/jobs", headers=portal.headers()).text
    assert 'data-testid="job-row"' in page
    assert 'data-testid="retry-job"' not in page
    assert 'data-testid="retry-failed"' not in page


@pytest.mark.parametrize("end", [jobs.cancel, library.delete_document])
def test_cancelling_or_deleting_a_document_stops_its_reader(
    portal: Portal, monkeypatch: pytest.MonkeyPatch, end: Callable[..., None]
) -> None:
    """A scan has hundreds of pages, and each takes seconds."""
    read: list[int] = []

    def read_slowly(file, _media_type) -> ExtractedText:
        for number in range(1, 6):
            if number == 3:
                end(portal.services, portal.admin, document.id)
            file.on_page(number, 5)
            read.append(number)
        raise AssertionError("it was read to its end")

    monkeypatch.setattr(indexing, "_NOTE_EVERY_S", 0.0)
    monkeypatch.setattr(indexing, "extract", read_slowly)
    document = store(portal)
    indexing.index_document(portal.services, document.job_id)
    assert read == [1, 2]


def test_jobs_are_listed_for_those_who_see_their_documents(
    portal: Portal, client: FlaskClient
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    private = store(portal, "%PDF-1.7\nprivate", ada, visibility=Visibility.PRIVATE)
    shared = store(portal, "%PDF-1.7\nshared", ada)
    for document in (private, shared):
        indexing.index_document(portal.services, document.job_id)

    def listed(user: User, **query) -> dict:
        return client.get(
            "/api/knowledge/jobs", headers=portal.headers(user), query_string=query
        ).json

    assert [job["document_id"] for job in listed(ada)["jobs"]] == [str(shared.id), str(private.id)]
    assert [job["title"] for job in listed(eve, status="failed")["jobs"]] == [shared.title]
    assert [listed(one)["queue"]["failed"] for one in (ada, eve, portal.admin)] == [2, 0, 2]
    first = listed(portal.admin, limit=1)
    rest = listed(portal.admin, limit=1, cursor=first["next_cursor"])
    assert (rest["jobs"][0]["owner"], rest["next_cursor"]) == ("ada", None)
    assert listed(ada, status="queued") == {
        "jobs": [],
        "queue": {"queued": 0, "processing": 0, "failed": 2, "waiting_since": None},
        "next_cursor": None,
    }
    services = portal.services
    for act in (jobs.cancel, jobs.retry):
        with pytest.raises(Forbidden):
            act(services, eve, shared.id)
        with pytest.raises(NotFound):
            act(services, eve, private.id)
    assert jobs.retry_failed(services, eve) == 0
    assert jobs.retry_failed(services, ada) == 2
    library.delete_document(services, ada, private.id)
    with pytest.raises(NotFound):
        jobs.cancel(services, ada, private.id)
    with pytest.raises(Conflict):
        jobs.retry(services, ada, shared.id)


def test_pages_show_the_progress_of_documents_and_their_actions(portal: Portal) -> None:
    client = portal.client()
    document = store(portal)
    stops = iter([False, True])
    indexing.index_document(portal.services, document.job_id, should_stop=lambda: next(stops))
    with portal.services.database.begin() as session:
        job_store.start(session, job_store.find_job(session, document.job_id))
    total = job_of(portal, document).total
    words = f"Embedding: 16 of {total} passages"

    for path in ("/documents", f"/documents/{document.id}", "/admin/jobs"):
        page = client.get(path).get_data(as_text=True)
        assert words in page, path
        assert f'<progress max="{total}"' in page, path
        assert "/cancel" in page, path
    polled = client.get(
        "/documents/progress",
        headers={"HX-Request": "true"},
        query_string={"watch": f"{document.id}.processing"},
    ).get_data(as_text=True)
    assert words in polled
    assert f'id="progress-{document.id}"' in polled
    assert 'data-testid="document-row"' not in polled  # The row itself keeps its focus.

    path = f"/documents/{document.id}"
    row = client.post(f"{path}/cancel", headers={"HX-Request": "true"})
    assert 'data-status="failed"' in row.get_data(as_text=True)
    assert 'data-testid="retry-failed"' not in row.get_data(as_text=True)
    jobs.retry(portal.services, portal.admin, document.id)
    attempt = attempts.begin(portal.services, document.job_id)
    attempts.fail(portal.services, document.job_id, NotFound(), number=attempt.number)
    page = client.get("/documents").get_data(as_text=True)
    assert 'data-testid="retry-failed"' in page
    answer = client.post("/admin/jobs/retry-failed", data={"status": "failed"})
    assert answer.headers["Location"] == "/admin/jobs?status=failed"
    assert "1 document is queued again." in client.get("/admin/jobs").text
    for action, words in (("cancel", "Job cancelled."), ("retry", "queued again")):
        client.post(f"/admin/jobs/{document.id}/{action}")
        assert words in client.get("/admin/jobs?status=x").text
    answer = client.post(f"{path}/cancel", data={"next": path})
    assert answer.headers["Location"] == path
    answer = client.post("/documents/retry-failed")
    assert "No document" in client.get("/documents").text
    assert answer.headers["Location"] == "/documents"
    assert status_of(portal, document) is DocumentStatus.FAILED  # It stays cancelled.
