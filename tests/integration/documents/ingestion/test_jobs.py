"""Jobs: counted attempts, fair scheduling, cancelling, retrying, and who may do which."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import (
    DocumentStatus,
    DocumentSummary,
    ExtractedText,
    Visibility,
)
from portal.domain.documents.jobs import JobStage, JobStatus
from portal.domain.people import User
from portal.domain.search import SearchRequest
from portal.errors import Conflict, EmbedderUnavailable, EmptyFile, Forbidden, NotFound
from portal.processes import importing, isolation, worker
from portal.services.documents import library
from portal.services.documents.ingestion import attempts, indexing, jobs, rereading
from portal.services.documents.intake import uploads
from portal.services.operations import maintenance
from portal.services.search import engine
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.ingestion import queue
from portal.store.documents.ingestion.queue import QUEUE_NAME, SLOW_QUEUE, SMALL_QUEUE
from portal.store.session import Session
from tests.conftest import Portal
from tests.factories.deaths import die_of_a_signal, end_as_asked, end_of_an_error
from tests.factories.uploads import run_apart, upload

LONG = "\n\n".join(f"Section {n}. " + "Budget words fill this paragraph. " * 40 for n in range(14))


def store(portal: Portal, content: str = LONG, owner: User | None = None, **how) -> DocumentSummary:
    name = f"{content[:12].strip()}.txt"
    return uploads.store_upload(
        portal.services, owner or portal.admin, stream=upload(content), file_name=name, **how
    ).document


def work(portal: Portal, document: DocumentSummary, queue: str = QUEUE_NAME) -> None:
    """Run a job as a worker that fetched it does."""
    context = SimpleNamespace(should_abort=lambda: False, job=SimpleNamespace(queue=queue))
    worker._index(portal.services, document.job_id, context)


def status_of(portal: Portal, document: DocumentSummary) -> DocumentStatus:
    return library.get_summary(portal.services, portal.admin, document.id).status


def job_of(portal: Portal, document: DocumentSummary):
    return jobs.get_job(portal.services, portal.admin, document.job_id).job


def rows(portal: Portal, statement: str, **values) -> list:
    with portal.services.database.begin() as session:
        return list(session.execute(text(statement), values).scalars())


def in_turn(portal: Portal) -> list[UUID]:
    """Return the waiting documents in the order in which workers fetch them."""
    return rows(
        portal,
        "SELECT j.document_id FROM procrastinate_jobs q "
        "JOIN jobs j ON CAST(j.id AS text) = q.args->>'job_id' "
        "WHERE q.status = 'todo' ORDER BY q.priority DESC, q.id",
    )


def refuse_to_embed(patch: pytest.MonkeyPatch, portal: Portal) -> None:
    def refuse(_embedder, _texts):
        raise EmbedderUnavailable(reason="it is still being loaded")

    patch.setattr(type(portal.services.embedder), "embed_chunks", refuse)


def test_users_take_turns_document_by_document(portal: Portal) -> None:
    ada, eve, mia = (portal.user(name) for name in ("ada", "eve", "mia"))
    many = [store(portal, f"{n} of ada's many", ada).id for n in range(6)]
    first = store(portal, "eve's first", eve).id
    second = store(portal, "eve's second", eve).id
    assert in_turn(portal) == [many[0], first, many[1], second, *many[2:]]

    # Finished jobs raise the lowest turn, so no user waits for ever.
    for done in (many[0], first, many[1], second, many[2]):
        indexing.index_document(portal.services, _newest(portal, done))
    queued = [many[3], many[4], many[5]]
    third = store(portal, "eve's third", eve).id
    late = store(portal, "mia's only one", mia).id
    waiting = [one for one in in_turn(portal) if one in {*queued, third, late}]
    assert waiting == [many[3], third, late, many[4], many[5]]


def test_what_lies_in_the_trash_puts_off_nothing_that_its_owner_sends(portal: Portal) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    for number in range(3):
        library.delete_document(portal.services, ada, store(portal, f"{number} of ada's", ada).id)
    first, second = store(portal, "eve's first", eve), store(portal, "eve's second", eve)
    late = store(portal, "ada's new one", ada)
    turns = [job_turn(portal, document) for document in (first, second, late)]
    assert turns == [0, 1, 0]


def job_turn(portal: Portal, document: DocumentSummary) -> int:
    return rows(portal, "SELECT turn FROM jobs WHERE id = :id", id=document.job_id)[0]


def _newest(portal: Portal, document_id: UUID) -> UUID:
    return rows(portal, "SELECT id FROM jobs WHERE document_id = :id", id=document_id)[0]


def test_long_document_yields_to_other_users_only(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    monkeypatch.setattr(worker, "_SLICE_S", 0.0)
    long = store(portal, LONG, ada)
    own_next = store(portal, "ada's next", ada)

    # While no other user waits, a job is not interrupted, however long it takes.
    with portal.services.database.begin() as session:
        assert not worker.queue_store.others_wait(session, long.id)
    short = store(portal, "eve's short one", eve)
    work(portal, long)
    made_room = job_of(portal, long)
    assert (made_room.status, made_room.stage) == (JobStatus.QUEUED, JobStage.EMBEDDING)
    assert 0 < made_room.done < made_room.total
    assert made_room.attempts == 0  # Yielding does not count as a failure.
    assert status_of(portal, long) is DocumentStatus.PROCESSING
    waiting = in_turn(portal)[1:]  # The first is the entry that this test ran by hand.
    assert waiting == [short.id, long.id, own_next.id]

    run_apart(worker.work_until_empty, portal.services)
    assert [status_of(portal, one) for one in (long, own_next, short)] == [DocumentStatus.READY] * 3
    assert rows(portal, "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'") == [
        0
    ]


def test_slow_file_uses_slow_queue_until_it_is_read(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Extraction cannot be resumed: 300 pages would start at the first one each time."""
    ada, eve = portal.user("ada"), portal.user("eve")
    monkeypatch.setattr(worker, "_SLICE_S", 0.0)
    read: list[int] = []

    def read_slowly(file, _media_type) -> ExtractedText:
        for number in range(1, 6):
            file.on_page(number, 5)
            read.append(number)
        return ExtractedText(text=LONG, extractor="slow")

    monkeypatch.setattr(indexing, "extract", read_slowly)
    long = store(portal, LONG, ada)
    store(portal, "eve's short one", eve)
    work(portal, long)
    job = job_of(portal, long)
    assert (job.status, job.stage, job.done, job.total) == ("queued", "reading", 1, 5)
    queues = "SELECT queue_name FROM procrastinate_jobs WHERE args->>'job_id' = :id ORDER BY id"
    assert rows(portal, queues, id=str(long.job_id)) == [SMALL_QUEUE, SLOW_QUEUE]
    del read[:]
    work(portal, long, SLOW_QUEUE)
    assert read == [1, 2, 3, 4, 5]
    assert job_of(portal, long).stage is JobStage.EMBEDDING
    assert rows(portal, queues, id=str(long.job_id)) == [SMALL_QUEUE, SLOW_QUEUE, SMALL_QUEUE]
    assert job_of(portal, long).attempts == 0


def test_error_that_may_pass_is_tried_three_times_with_longer_waits(
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
            due = rows(
                portal,
                "SELECT round(extract(epoch FROM scheduled_at - now())) FROM procrastinate_jobs "
                "WHERE scheduled_at IS NOT NULL ORDER BY id DESC LIMIT 1",
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
    text_id = rows(portal, "SELECT id FROM document_revisions")
    jobs.retry(portal.services, portal.admin, document.id)
    indexing.index_document(portal.services, document.job_id)
    assert status_of(portal, document) is DocumentStatus.READY
    assert rows(portal, "SELECT id FROM document_revisions") == text_id


def test_job_that_met_another_ones_lock_is_tried_again(
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


def test_worker_that_seemed_dead_changes_nothing_any_more(portal: Portal) -> None:
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
    indexes = rows(portal, "SELECT chunk_index FROM document_chunks ORDER BY 1")
    assert indexes == list(range(job.total))
    assert rows(portal, "SELECT count(*) FROM chunk_embeddings") == [job.total]


def die(portal: Portal, document: DocumentSummary) -> None:
    """Leave a job as a worker that died does."""
    assert attempts.begin(portal.services, document.job_id) is not None


def test_deadly_file_fails_after_three_deaths_and_takes_no_worker_along(
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
def test_process_of_its_own_that_ends_otherwise_does_not_blame_the_file(
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


def test_process_of_its_own_leaves_signals_to_the_worker(
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


def test_progress_after_a_death_makes_it_innocent_again(portal: Portal) -> None:
    document = store(portal)
    die(portal, document)
    stops = iter([False, True])
    indexing.index_document(portal.services, document.job_id, should_stop=lambda: next(stops))
    die(portal, document)
    assert not attempts.is_suspect(portal.services, document.job_id)


def test_cancelled_job_stops_reports_it_and_continues_when_tried_again(
    portal: Portal, client: FlaskClient
) -> None:
    headers = portal.headers()
    document = store(portal)
    address = f"/api/knowledge/documents/{document.id}"
    calls = iter(range(100))

    def cancel_at_second_batch() -> bool:
        if next(calls) == 1:
            assert client.post(f"{address}/cancel", headers=headers).json["status"] == "failed"
        return False

    indexing.index_document(portal.services, document.job_id, should_stop=cancel_at_second_batch)
    shown = client.get(address, headers=headers).json
    assert (shown["status"], shown["error"]["code"]) == ("failed", "cancelled")
    assert (shown["job"]["status"], shown["job"]["done"]) == ("cancelled", 16)
    assert engine.search(portal.services, portal.admin, SearchRequest("budget")).hits == ()
    assert client.post(f"{address}/cancel", headers=headers).status_code == 409

    assert client.post(f"{address}/retry", headers=headers).status_code == 202
    assert client.post(f"{address}/retry", headers=headers).status_code == 409
    assert client.post(f"{address}/cancel", headers=headers).status_code == 200  # While it waits.
    # Retrying all failed jobs leaves it out, because a user cancelled it.
    again = client.post("/api/knowledge/documents/retry-failed", headers=headers)
    assert again.json == {"count": 0}
    assert client.post(f"{address}/retry", headers=headers).status_code == 202
    run_apart(worker.work_until_empty, portal.services)
    assert status_of(portal, document) is DocumentStatus.READY
    job = client.get(f"/api/knowledge/jobs/{document.job_id}", headers=headers).json
    assert (job["status"], job["stage"], job["done"]) == ("ready", "embedding", job["total"])
    assert job["queued_at"] <= job["started_at"] <= job["finished_at"]


def test_reading_again_that_fails_leaves_the_document_as_it_was_and_says_why(
    portal: Portal, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = portal.headers()
    document = portal.add(LONG, name="long.txt")
    address = f"/api/knowledge/documents/{document.id}"
    answer = client.post(f"{address}/reindex", headers=headers, json={})
    assert answer.json["job"]["status"] == "queued"

    def refuse(*_args, **_options):
        raise EmptyFile(name="long.txt")

    job_id = UUID(answer.json["job_id"])
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "extract", refuse)
        indexing.index_document(portal.services, job_id)
    shown = client.get(address, headers=headers).json
    assert (shown["status"], shown["error"]) == ("ready", None)
    assert (shown["job"]["status"], shown["job"]["error"]["code"]) == ("failed", "empty_file")
    page = client.get(f"/documents/{document.id}", headers=headers).text
    assert shown["job"]["error"]["message"] in page
    assert engine.search(portal.services, portal.admin, SearchRequest("budget")).hits
    again = uploads.store_upload(
        portal.services, portal.admin, stream=upload(LONG), file_name="long.txt"
    )
    assert again.is_duplicate

    # It is retried like any other job; after a success, its earlier failures no longer count.
    def retry_buttons() -> int:
        return client.get("/admin/jobs", headers=headers).text.count('data-testid="retry-job"')

    assert retry_buttons() == 1
    assert "Retry the failed document" in client.get("/admin/jobs", headers=headers).text
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


def test_lost_jobs_are_queued_once_and_not_after_they_were_cancelled(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, cancelled = store(portal, "lost"), store(portal, "cancelled")
    entries = "SELECT args->>'job_id' FROM procrastinate_jobs"
    with portal.services.database.begin() as session:
        session.execute(text("DELETE FROM procrastinate_jobs"))
    with portal.services.database.begin() as session:
        assert queue.lock_requeueing(session)  # As another worker does.
        maintenance.run(portal.services)
        assert rows(portal, entries) == []
    look = queue.unfinished_without_queue_entry

    def cancel_after_looking(session: Session) -> list[UUID]:
        found = look(session)
        jobs.cancel(portal.services, portal.admin, cancelled.id)
        return found

    monkeypatch.setattr(queue, "unfinished_without_queue_entry", cancel_after_looking)
    maintenance.run(portal.services)
    assert rows(portal, entries) == [str(lost.job_id)]
    assert job_of(portal, cancelled).status is JobStatus.CANCELLED


def test_import_that_waits_continues_after_an_error_that_passes(
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
        portal.services,
        [path],
        owner="admin",
        domain=None,
        visibility=Visibility.SHARED,
        wait=True,
    )
    assert status == 0
    assert status_of(portal, document) is DocumentStatus.READY


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
    assert jobs.retry_failed(services, portal.admin, own=True) == 0
    assert jobs.retry_failed(services, ada) == 2
    library.delete_document(services, ada, private.id)
    with pytest.raises(NotFound):
        jobs.cancel(services, ada, private.id)
    with pytest.raises(Conflict):
        jobs.retry(services, ada, shared.id)


def test_pages_show_how_far_documents_are_and_what_can_be_done(
    portal: Portal, client: FlaskClient
) -> None:
    headers = portal.headers()
    document = store(portal)
    stops = iter([False, True])
    indexing.index_document(portal.services, document.job_id, should_stop=lambda: next(stops))
    with portal.services.database.begin() as session:
        job_store.start(session, job_store.lock_job(session, document.job_id))
    total = job_of(portal, document).total
    words = f"Embedding: 16 of {total} passages"

    for path in ("/documents", f"/documents/{document.id}", "/admin/jobs"):
        page = client.get(path, headers=headers).get_data(as_text=True)
        assert words in page, path
        assert f'<progress max="{total}"' in page, path
        assert "/cancel" in page, path
    polled = client.get(
        "/documents/progress",
        headers=headers | {"HX-Request": "true"},
        query_string={"watch": f"{document.id}.processing"},
    ).get_data(as_text=True)
    assert words in polled
    assert f'id="progress-{document.id}"' in polled
    assert 'data-testid="document-row"' not in polled  # The row itself keeps its focus.

    path = f"/documents/{document.id}"
    row = client.post(f"{path}/cancel", headers=headers | {"HX-Request": "true"})
    assert 'data-status="failed"' in row.get_data(as_text=True)
    assert 'data-testid="retry-failed"' not in row.get_data(as_text=True)
    jobs.retry(portal.services, portal.admin, document.id)
    attempt = attempts.begin(portal.services, document.job_id)
    attempts.fail(portal.services, document.job_id, NotFound(), number=attempt.number)
    page = client.get("/documents", headers=headers).get_data(as_text=True)
    assert 'data-testid="retry-failed"' in page
    answer = client.post("/admin/jobs/retry-failed", headers=headers, data={"status": "failed"})
    assert answer.headers["Location"] == "/admin/jobs?status=failed"
    assert "1 document is queued again." in client.get("/admin/jobs", headers=headers).text
    for action, words in (("cancel", "Job cancelled."), ("retry", "queued again")):
        client.post(f"/admin/jobs/{document.id}/{action}", headers=headers)
        assert words in client.get("/admin/jobs?status=x", headers=headers).text
    answer = client.post(f"{path}/cancel", headers=headers, data={"next": path})
    assert answer.headers["Location"] == path
    answer = client.post("/documents/retry-failed", headers=headers)
    assert "No document" in client.get("/documents", headers=headers).text
    assert answer.headers["Location"] == "/documents"
    assert status_of(portal, document) is DocumentStatus.FAILED  # It stays cancelled.
