"""Whose document is read next."""

from __future__ import annotations

from uuid import UUID

import pytest

from portal.domain.documents import DocumentStatus, DocumentSummary, ExtractedText
from portal.domain.documents.jobs import JobStage, JobStatus
from portal.processes import worker
from portal.services.documents import library
from portal.services.documents.ingestion import indexing, jobs
from portal.services.operations import maintenance
from portal.store.documents.ingestion import queue
from portal.store.documents.ingestion.queue import SLOW_QUEUE, SMALL_QUEUE
from portal.store.session import Session
from tests.conftest import Portal
from tests.factories.uploads import run_apart
from tests.integration.documents.ingestion.jobs.work import LONG, job_of, status_of, store, work


def in_turn(portal: Portal) -> list[UUID]:
    """Return the waiting documents in the order in which workers fetch them."""
    return portal.scalars(
        "SELECT j.document_id FROM procrastinate_jobs q "
        "JOIN jobs j ON CAST(j.id AS text) = q.args->>'job_id' "
        "WHERE q.status = 'todo' ORDER BY q.priority DESC, q.id"
    )


def test_users_take_turns_document_by_document(portal: Portal) -> None:
    ada, eve, mia = (portal.user(name) for name in ("ada", "eve", "mia"))
    many = [store(portal, f"{n} of ada's many", ada).id for n in range(6)]
    first = store(portal, "eve's first", eve).id
    second = store(portal, "eve's second", eve).id
    assert in_turn(portal) == [many[0], first, many[1], second, *many[2:]]

    # Finished jobs raise the lowest turn, so no user waits forever.
    for done in (many[0], first, many[1], second, many[2]):
        indexing.index_document(portal.services, _newest(portal, done))
    queued = [many[3], many[4], many[5]]
    third = store(portal, "eve's third", eve).id
    late = store(portal, "mia's only one", mia).id
    waiting = [one for one in in_turn(portal) if one in {*queued, third, late}]
    assert waiting == [many[3], third, late, many[4], many[5]]


def test_documents_in_the_trash_delay_none_of_their_owners_uploads(portal: Portal) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    for number in range(3):
        library.delete_document(portal.services, ada, store(portal, f"{number} of ada's", ada).id)
    first, second = store(portal, "eve's first", eve), store(portal, "eve's second", eve)
    late = store(portal, "ada's new one", ada)
    turns = [job_turn(portal, document) for document in (first, second, late)]
    assert turns == [0, 1, 0]


def job_turn(portal: Portal, document: DocumentSummary) -> int:
    return portal.scalars("SELECT turn FROM jobs WHERE id = :id", id=document.job_id)[0]


def _newest(portal: Portal, document_id: UUID) -> UUID:
    return portal.scalars("SELECT id FROM jobs WHERE document_id = :id", id=document_id)[0]


def test_long_document_yields_to_other_users_only(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    monkeypatch.setattr(worker, "_SLICE_S", 0.0)
    long = store(portal, LONG, ada)
    own_next = store(portal, "ada's next", ada)

    # While no other user waits, a job is not interrupted, however long it takes.
    with portal.services.database.begin() as session:
        assert not worker.queue_store.has_others_waiting(session, long.id)
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
    unfinished = "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'"
    assert portal.scalar(unfinished) == 0


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
    assert portal.scalars(queues, id=str(long.job_id)) == [SMALL_QUEUE, SLOW_QUEUE]
    del read[:]
    work(portal, long, SLOW_QUEUE)
    assert read == [1, 2, 3, 4, 5]
    assert job_of(portal, long).stage is JobStage.EMBEDDING
    assert portal.scalars(queues, id=str(long.job_id)) == [SMALL_QUEUE, SLOW_QUEUE, SMALL_QUEUE]
    assert job_of(portal, long).attempts == 0


def test_lost_jobs_are_queued_once_and_not_after_they_were_cancelled(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, cancelled = store(portal, "lost"), store(portal, "cancelled")
    entries = "SELECT args->>'job_id' FROM procrastinate_jobs"
    portal.execute("DELETE FROM procrastinate_jobs")
    with portal.services.database.begin() as session:
        assert queue.lock_requeueing(session)  # As another worker does.
        maintenance.run(portal.services)
        assert portal.scalars(entries) == []
    look = queue.unfinished_without_queue_entry

    def cancel_after_looking(session: Session) -> list[UUID]:
        found = look(session)
        jobs.cancel(portal.services, portal.admin, cancelled.id)
        return found

    monkeypatch.setattr(queue, "unfinished_without_queue_entry", cancel_after_looking)
    maintenance.run(portal.services)
    assert portal.scalars(entries) == [str(lost.job_id)]
    assert job_of(portal, cancelled).status is JobStatus.CANCELLED
