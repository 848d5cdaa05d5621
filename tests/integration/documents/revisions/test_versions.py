"""A new version takes the place of the old one when it has been read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient

from portal.domain.conversations import SourceState
from portal.domain.documents import DocumentStatus, Visibility
from portal.domain.search import SearchRequest
from portal.errors import AlreadyElsewhere, Conflict, EmptyFile, Forbidden, NotFound, UploadedAgain
from portal.services.answers import citing, conversations
from portal.services.documents import library
from portal.services.documents.ingestion import indexing, jobs, rereading
from portal.services.documents.versions import revisions
from portal.services.search import engine
from tests.conftest import Portal
from tests.factories.answers import ask, saying
from tests.factories.uploads import upload
from tests.integration.documents.revisions.versions import (
    FIRST,
    SECOND,
    THIRD,
    body,
    read,
    rows,
    send,
)


def found(portal: Portal, words: str) -> list[str]:
    outcome = engine.search(portal.services, portal.admin, SearchRequest(words, top_n=5))
    return [hit.excerpt for hit in outcome.hits]


def test_new_version_replaces_the_old_one_and_keeps_it_readable(
    portal: Portal, client: FlaskClient
) -> None:
    document = portal.add(FIRST, name="leave 2025.txt")
    services = saying(portal.services, "Employees may take fifteen days of annual leave. [1]")
    talk = conversations.create(portal.services, portal.admin)
    answer = ask(services, portal.admin, talk.id, "How many days of annual leave?")
    before = library.get_document(portal.services, portal.admin, document.id)

    receipt = send(portal, document.id, f"# Leave\n\n{SECOND}", "leave 2026.md")
    assert (receipt.is_duplicate, receipt.document.status) == (False, DocumentStatus.READY)
    # While the version waits, text, name and original stay the same.
    assert library.get_document(portal.services, portal.admin, document.id).sha256 == before.sha256
    assert body(portal, document.id) == FIRST
    original = library.open_file(portal.services, portal.admin, document.id)
    assert (original.file_name, b"".join(original.parts)) == ("leave 2025.txt", FIRST.encode())
    read(portal, document.id)

    after = library.get_document(portal.services, portal.admin, document.id)
    assert SECOND in body(portal, document.id)
    assert after.summary.title == "leave 2025"
    assert (after.summary.file_name, after.summary.media_type.short) == ("leave 2026.md", "MD")
    assert after.sha256 != before.sha256
    hits = found(portal, "annual leave days")
    assert len(hits) == 1
    assert "twenty" in hits[0]
    # Citations keep their text and say that there is a newer version.
    citation = conversations.get_message(portal.services, portal.admin, answer.id).citations[0]
    assert citation.state is SourceState.REPLACED
    assert citing.verify(portal.services, portal.admin, citation.id).stands is True
    page = client.get(f"/documents/{document.id}?citation={citation.id}", headers=portal.headers())
    assert "The document has changed" in page.text
    assert f"/documents/{document.id}/revisions/2?against=1" in page.text
    # Both versions stay readable and downloadable.
    listed = revisions.list_revisions(portal.services, portal.admin, document.id).items
    assert [(one.number, one.is_current, one.file_name) for one in listed] == [
        (2, True, "leave 2026.md"), (1, False, "leave 2025.txt"),
    ]  # fmt: skip
    assert listed[0].uploaded_by == "admin"
    assert (listed[0].characters_added, listed[0].characters_removed) == (13, 7)
    assert revisions.read_text(portal.services, portal.admin, document.id, 1)[1] == FIRST
    file = revisions.open_file(portal.services, portal.admin, document.id, 1)
    assert b"".join(file.parts) == FIRST.encode()
    # Rereading uses the newest file and keeps a title given by a user.
    library.change_document(portal.services, portal.admin, document.id, title="Leave")
    rereading.reread(portal.services, portal.admin, document.id)
    read(portal, document.id)
    send(portal, document.id, THIRD, "leave 2027.txt")
    read(portal, document.id)
    assert library.get_summary(portal.services, portal.admin, document.id).title == "Leave"
    listed = revisions.list_revisions(portal.services, portal.admin, document.id).items
    assert [(one.number, one.is_reread) for one in listed] == [
        (4, False), (3, True), (2, False), (1, False),
    ]  # fmt: skip
    library.purge_document(portal.services, portal.admin, document.id)
    assert rows(portal, "stored_files") == rows(portal, "document_revisions") == 0


def test_earlier_version_becomes_the_newest_again(portal: Portal, client: FlaskClient) -> None:
    document = portal.add(FIRST, name="leave 2025.txt")
    send(portal, document.id, SECOND, "leave 2026.txt")
    read(portal, document.id)
    pages = f"/documents/{document.id}/revisions"
    address = f"{pages}/1/restore"
    assert f'action="{address}"' in client.get(pages, headers=portal.headers()).text
    assert f'action="{pages}/2/restore"' not in client.get(pages, headers=portal.headers()).text
    reader = portal.headers(portal.user("eve"))
    assert address not in client.get(pages, headers=reader).text
    assert client.post(address, headers=reader).status_code == 403
    assert client.post(f"{pages}/9/restore", headers=portal.headers()).status_code == 404
    assert client.post(address, headers=portal.headers()).status_code == 303
    read(portal, document.id)
    assert body(portal, document.id) == FIRST
    assert library.get_summary(portal.services, portal.admin, document.id).title == "leave 2025"
    listed = revisions.list_revisions(portal.services, portal.admin, document.id).items
    assert [(one.number, one.is_current) for one in listed] == [(3, True), (2, False), (1, False)]


def test_file_already_stored_here_or_elsewhere_is_reported(portal: Portal) -> None:
    document, other = portal.add(FIRST), portal.add("Another matter altogether.", title="Other")
    assert send(portal, document.id, FIRST).is_duplicate
    assert not send(portal, document.id, SECOND).is_duplicate
    assert send(portal, document.id, SECOND).is_duplicate  # It is already waiting.
    with pytest.raises(AlreadyElsewhere, match="“Other”"):
        send(portal, document.id, "Another matter altogether.")
    # Uploading the waiting file as its own document finds the same document.
    assert portal.add(SECOND).id == document.id
    with pytest.raises(EmptyFile):
        send(portal, document.id, "")
    # Sending the published version again cancels the waiting one.
    send(portal, document.id, THIRD)
    assert send(portal, document.id, SECOND).is_duplicate
    assert revisions.find_unread(portal.services, portal.admin, document.id) is None
    assert rows(portal, "stored_files") == 3
    assert body(portal, document.id) == SECOND
    assert other.status is DocumentStatus.READY
    ada = portal.user("ada")
    with pytest.raises(Forbidden):
        send(portal, document.id, THIRD, user=ada)
    hidden = portal.add("Hidden.", visibility=Visibility.PRIVATE)
    with pytest.raises(NotFound):
        send(portal, hidden.id, THIRD, user=ada)


def test_newest_version_wins_over_one_that_is_being_read(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = portal.add(FIRST)
    job_id = send(portal, document.id, SECOND).document.job_id
    assert job_id is not None

    # The third version arrives while the second is being embedded.
    publish = indexing._publish

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(indexing, "_publish", publish)
        send(portal, document.id, THIRD)
        publish(*arguments)

    monkeypatch.setattr(indexing, "_publish", late)
    indexing.index_document(portal.services, job_id)
    assert body(portal, document.id) == FIRST
    assert jobs.get_job(portal.services, portal.admin, job_id).job.status == "cancelled"
    read(portal, document.id)
    assert body(portal, document.id) == THIRD
    assert "thirty" in found(portal, "annual leave days")[0]
    numbers = [
        revision.number
        for revision in revisions.list_revisions(portal.services, portal.admin, document.id).items
    ]
    assert numbers == [3, 1]
    assert rows(portal, "document_chunks") == 1

    # A document that could never be read takes the new file at once.
    broken = portal.add(b"%PDF-1.7 broken", name="broken.pdf")
    assert broken.status is DocumentStatus.FAILED
    again = send(portal, broken.id, "It can be read now.", "mended.txt").document
    assert (again.status, again.title, again.file_name) == (
        DocumentStatus.QUEUED, "broken", "mended.txt",
    )  # fmt: skip
    read(portal, broken.id)
    assert body(portal, broken.id) == "It can be read now."


def test_version_that_fails_leaves_the_old_one_and_can_be_discarded(
    portal: Portal, client: FlaskClient
) -> None:
    document, headers = portal.add(FIRST), portal.headers() | {"Accept-Language": "en"}
    send(portal, document.id, b"%PDF-1.7 broken", "new.pdf")
    read(portal, document.id)
    summary = library.get_summary(portal.services, portal.admin, document.id)
    assert (summary.status, summary.file_name) == (DocumentStatus.READY, "note.txt")
    assert body(portal, document.id) == FIRST
    original = library.open_file(portal.services, portal.admin, document.id)
    assert b"".join(original.parts) == FIRST.encode()
    page = client.get(f"/documents/{document.id}", headers=headers).text
    assert "new.pdf" in page
    assert "is damaged and cannot be read" in page
    assert "discard-version" in page
    jobs.retry(portal.services, portal.admin, document.id)
    with pytest.raises(Conflict):  # It is waiting again.
        revisions.discard_unread(portal.services, portal.admin, document.id)
    read(portal, document.id)
    sent = client.post(f"/documents/{document.id}/revisions/discard", headers=headers)
    assert sent.status_code == 303
    assert "new.pdf" not in client.get(f"/documents/{document.id}", headers=headers).text
    assert rows(portal, "jobs") == rows(portal, "stored_files") == 1
    with pytest.raises(Conflict):
        revisions.discard_unread(portal.services, portal.admin, document.id)

    # Cancelled between two batches, it leaves no words in the index.
    send(portal, document.id, "A zyzzyva is a weevil.")
    summary = library.get_summary(portal.services, portal.admin, document.id)
    assert summary.job_id is not None
    indexing.index_document(portal.services, summary.job_id, should_stop=lambda: True)
    jobs.cancel(portal.services, portal.admin, document.id)
    revisions.discard_unread(portal.services, portal.admin, document.id)
    assert rows(portal, "document_revisions") == 1
    # A document deleted while a version waits is restored unchanged, and the version continues.
    send(portal, document.id, SECOND)
    library.delete_document(portal.services, portal.admin, document.id)
    assert found(portal, "annual leave") == []
    library.restore_document(portal.services, portal.admin, document.id)
    assert body(portal, document.id) == FIRST
    read(portal, document.id)
    assert body(portal, document.id) == SECOND


def test_file_stays_one_document_through_retry_reread_and_restore(portal: Portal) -> None:
    services, admin = portal.services, portal.admin
    document = portal.add(FIRST)
    send(portal, document.id, SECOND)
    jobs.cancel(services, admin, document.id)
    other = portal.add(SECOND, title="Other")
    assert other.id != document.id
    for again in (jobs.retry, rereading.reread):
        with pytest.raises(AlreadyElsewhere, match="“Other”"):
            again(services, admin, document.id)
    library.delete_document(services, admin, other.id)
    jobs.retry(services, admin, document.id)
    # A deleted document whose waiting version has the same file as another one stays deleted.
    library.delete_document(services, admin, document.id)
    library.restore_document(services, admin, other.id)
    with pytest.raises(UploadedAgain, match="“Other”"):
        library.restore_document(services, admin, document.id)
    library.purge_document(services, admin, other.id)
    library.restore_document(services, admin, document.id)
    read(portal, document.id)
    assert body(portal, document.id) == SECOND

    # Of two documents that failed with the same file, only one is retried.
    for _ in range(2):
        portal.add(b"%PDF-1.7 broken", name="broken.pdf")
    assert jobs.queue_state(services, admin).failed == 2
    assert jobs.retry_failed(services, admin) == 1
    assert jobs.retry_failed(services, admin) == 0


def test_outcome_of_sending_a_version_is_reported(portal: Portal, client: FlaskClient) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add(FIRST)

    def post(content: str) -> str:
        data = {"file": (upload(content), "new.txt")}
        return client.post(
            f"/documents/{document.id}/revisions", data=data, headers=headers, follow_redirects=True
        ).text

    assert "already the current version." in post(FIRST)
    assert "New version queued." in post(SECOND)
    assert "already being read." in post(SECOND)
    assert "The pending version was withdrawn." in post(FIRST)
    assert "already the current version." in post(FIRST)


def test_encodings_are_offered_for_the_file_that_would_be_read(
    portal: Portal, client: FlaskClient
) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add(FIRST)

    def page() -> str:
        return client.get(f"/documents/{document.id}", headers=headers).text

    assert "reindex-encoding" in page()
    assert "The file was read as" in page()
    send(portal, document.id, b"%PDF-1.7 broken", "new.pdf")
    read(portal, document.id)
    assert "reindex-encoding" not in page()
    revisions.discard_unread(portal.services, portal.admin, document.id)
    send(portal, document.id, SECOND)
    jobs.cancel(portal.services, portal.admin, document.id)
    assert "reindex-encoding" in page()
    assert "The file was read as" not in page()


def test_version_that_cannot_be_repaired_is_replaced_not_retried(portal: Portal) -> None:
    client = portal.client()
    broken = portal.add(b"%PDF-1.7 broken", name="broken.pdf")
    address = f"/documents/{broken.id}"
    for page in ("/documents", address):
        shown = client.get(page).text
        assert "Upload a new version" in shown, page
        assert f"{address}/retry" not in shown, page
    assert 'data-testid="retry-failed"' not in client.get("/documents").text
    client.post("/documents/retry-failed")
    assert portal_status(portal, broken.id) is DocumentStatus.FAILED
    # A failure of the server is tried again, and so is a file that administrators ask for.
    portal.execute("""UPDATE jobs SET error = '{"code": "internal", "params": {}}'""")
    portal.execute("""UPDATE documents SET error = '{"code": "internal", "params": {}}'""")
    assert f"{address}/retry" in client.get(address).text
    client.post("/documents/retry-failed")
    assert portal_status(portal, broken.id) is DocumentStatus.QUEUED


def portal_status(portal: Portal, document_id: UUID) -> DocumentStatus:
    return library.get_summary(portal.services, portal.admin, document_id).status
