"""New versions of a document: published atomically, refused with a reason, compared, never lost."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.conversations import SourceState
from portal.domain.documents import DocumentStatus, Visibility
from portal.domain.people import User
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest, Weights
from portal.errors import (
    AlreadyElsewhere,
    Conflict,
    EmptyFile,
    Forbidden,
    NotFound,
    UploadedAgain,
)
from portal.services import Services
from portal.services.answers import citing, conversations, single_answer
from portal.services.answers.retrieving import ask_in, retrieve, search_further
from portal.services.documents import library, trash
from portal.services.documents.ingestion import indexing, jobs, rereading
from portal.services.documents.intake.uploads import Upload, UploadReceipt
from portal.services.documents.versions import comparisons, revision_changes, revisions
from portal.services.operations import maintenance
from portal.services.search import engine, finding
from portal.store.documents import rows as document_store
from portal.store.search.legs.offers import Offers
from portal.store.session import Session
from portal.web.documents import trash as trash_pages
from tests.conftest import Portal
from tests.factories.answers import ask, saying
from tests.factories.uploads import upload

FIRST = "Employees may take fifteen days of annual leave. Unused leave expires in March."
SECOND = "Employees may take twenty days of annual leave. Unused leave expires in March."
THIRD = "Employees may take thirty days of annual leave."


def send(
    portal: Portal,
    document_id: UUID,
    content: str | bytes,
    name: str = "policy.txt",
    user: User | None = None,
) -> UploadReceipt:
    """Upload a new version without processing it."""
    return revisions.add_version(
        portal.services, user or portal.admin, document_id, Upload(upload(content), name)
    )


def read(portal: Portal, document_id: UUID) -> None:
    """Run the document's newest job to completion."""
    summary = library.get_summary(portal.services, portal.admin, document_id)
    assert summary.job_id is not None
    indexing.index_document(portal.services, summary.job_id)


def body(portal: Portal, document_id: UUID) -> str:
    return library.read_text(portal.services, portal.admin, document_id)[1]


def found(portal: Portal, words: str) -> list[str]:
    outcome = engine.search(portal.services, portal.admin, SearchRequest(words, top_n=5))
    return [hit.excerpt for hit in outcome.hits]


def rows(portal: Portal, table: str) -> int:
    with portal.services.database.begin() as session:
        return session.scalar(text(f"SELECT count(*) FROM {table}")) or 0


def test_new_version_takes_the_place_of_the_old_one_and_keeps_it(
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
    assert after.summary.title == "leave 2026"  # No user has renamed it.
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


def test_same_bytes_and_other_documents_are_reported(portal: Portal) -> None:
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
        one.number
        for one in revisions.list_revisions(portal.services, portal.admin, document.id).items
    ]
    assert numbers == [3, 1]
    assert rows(portal, "document_chunks") == 1

    # A document that could never be read takes the new file at once.
    broken = portal.add(b"%PDF-1.7 broken", name="broken.pdf")
    assert broken.status is DocumentStatus.FAILED
    again = send(portal, broken.id, "It can be read now.", "mended.txt").document
    assert (again.status, again.title, again.file_name) == (
        DocumentStatus.QUEUED, "mended", "mended.txt",
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


def test_search_in_the_very_moment_of_the_swap_finds_the_document(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = portal.add(FIRST)
    find_offers, coming = finding.find_offers, [SECOND]

    def late(*asked: Any, **named: Any) -> Offers:
        # The enabled documents are known by now; the chunks are not yet looked up.
        if coming:
            send(portal, document.id, coming.pop())
            read(portal, document.id)
        return find_offers(*asked, **named)

    monkeypatch.setattr(finding, "find_offers", late)
    for mode in SearchMode:
        coming[:] = [SECOND]
        request = SearchRequest("annual leave", mode=mode)
        hits = engine.search(portal.services, portal.admin, request).hits
        assert [hit.document_id for hit in hits] == [document.id], mode
        assert "twenty" in hits[0].excerpt
        send(portal, document.id, FIRST)
        read(portal, document.id)


def test_answers_retry_when_a_document_changes_before_its_text_is_read(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = portal.add(FIRST)
    search, coming = engine.search, [SECOND]

    def then_swapped(*asked: Any) -> SearchOutcome:
        outcome = search(*asked)
        if coming:
            send(portal, document.id, coming.pop())
            read(portal, document.id)
        return outcome

    monkeypatch.setattr(engine, "search", then_swapped)
    question = "How many days of annual leave are there?"
    place = conversations.create(portal.services, portal.admin).id
    asked = ask_in(portal.services, portal.admin, place, question, None)
    (source,) = retrieve(portal.services, asked).sources
    assert "twenty" in source.text
    coming.append(THIRD)
    (source,) = search_further(portal.services, asked, "annual leave", ())
    assert "thirty" in source.text
    coming.append(FIRST)
    weights = Weights(0.7, 0.3)
    answer = single_answer.answer(
        portal.services, portal.admin, question, k=3, weights=weights, language="en"
    )
    assert "fifteen" in answer.text
    assert answer.citations == (document.id,)


def test_searches_see_the_old_text_or_the_new_one_and_never_both_or_neither(
    portal: Portal,
) -> None:
    document = portal.add(f"Kingfisher. {FIRST}", name="version 0.txt")
    portal.add("Nothing of that kind.")
    stop, wrong, seen = threading.Event(), [], set()

    def search_on(mode: SearchMode) -> None:
        while not stop.is_set():
            hits = engine.search(
                portal.services, portal.admin, SearchRequest("kingfisher", mode=mode, top_n=5)
            ).hits
            texts = {hit.excerpt for hit in hits if hit.document_id == document.id}
            seen.update(texts)
            if len(texts) != 1:
                wrong.append((mode, texts))

    searchers = [
        threading.Thread(target=search_on, args=[mode])
        for mode in (SearchMode.HYBRID, SearchMode.KEYWORD)
    ]
    for searcher in searchers:
        searcher.start()
    for number in range(1, 9):
        send(portal, document.id, f"Kingfisher. Version {number}. {FIRST}")
        read(portal, document.id)
    stop.set()
    for searcher in searchers:
        searcher.join()
    assert wrong == []
    assert len(seen) > 2


def test_trash_is_purged_after_its_days_and_says_when(
    make_services: Callable[..., Services],
    portal: Portal,
    client: FlaskClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services, headers = portal.services, portal.headers() | {"Accept-Language": "en"}
    old, young, kept = (
        portal.add(f"Text {name}.", title=name) for name in ("old", "young", "kept")
    )

    def delete(document_id: UUID, *, days_ago: int) -> None:
        library.delete_document(services, portal.admin, document_id)
        earlier = "UPDATE documents SET deleted_at = deleted_at - make_interval(days => :days)"
        with services.database.begin() as session:
            values = {"id": document_id, "days": days_ago}
            session.execute(text(f"{earlier} WHERE id = :id"), values)

    def tombstone(document_id: UUID) -> tuple[str, bool]:
        lay_there = "SELECT title, purged_at - deleted_at > interval '1 day' FROM documents"
        with services.database.begin() as session:
            row = session.execute(text(f"{lay_there} WHERE id = :id"), {"id": document_id}).one()
        return row[0], row[1]

    delete(old.id, days_ago=29)
    delete(young.id, days_ago=0)
    page = client.get("/trash", headers=headers).text
    assert "Documents are permanently deleted after 30 days." in page
    asked = client.get(f"/documents/{kept.id}/delete", headers=headers).text
    assert "Documents are permanently deleted after 30 days." in asked
    assert page.count('data-testid="purged-on"') == 2
    assert "Show more" not in page
    # The trash is listed newest first, in pages.
    monkeypatch.setattr(trash_pages, "PAGE_SIZE", 1)
    first = client.get("/trash", headers=headers).text
    assert (f'id="trash-{young.id}"' in first, f'id="trash-{old.id}"' in first) == (True, False)
    more = re.search(r'href="(/trash\?cursor=[^"]+)"', first)
    assert more
    htmx = headers | {"HX-Request": "true", "HX-Target": "load-more"}
    for step in (client.get(more[1], headers=one).text for one in (headers, htmx)):
        assert (f'id="trash-{young.id}"' in step, f'id="trash-{old.id}"' in step) == (False, True)
        assert "load-more" not in step
    assert step.lstrip().startswith("<li")
    assert client.get("/trash?cursor=x", headers=headers).status_code == 400

    def left() -> list[str]:
        return [one.title for one in library.list_trash(services, portal.admin).items]

    now = datetime.now(UTC)
    maintenance.run(services)
    assert left() == ["young", "old"]
    for_ever = make_services(trash_days=0)
    assert trash.purge_expired(for_ever, seconds=60, now=now + timedelta(days=9999)) == 0
    assert trash.purge_expired(services, seconds=60, now=now + timedelta(days=1, hours=1)) == 1
    assert left() == ["young"]
    with pytest.raises(NotFound):
        library.restore_document(services, portal.admin, old.id)
    assert tombstone(old.id) == ("old", True)
    assert rows(portal, "document_revisions") == rows(portal, "stored_files") == 2
    # Each round purges at least one document, even without time left.
    assert trash.purge_expired(services, seconds=0, now=now + timedelta(days=31)) == 1
    assert left() == []
    assert library.get_summary(services, portal.admin, kept.id).status is DocumentStatus.READY
    # A purge by hand keeps the time of the deletion, too.
    delete(kept.id, days_ago=2)
    library.purge_document(services, portal.admin, kept.id)
    assert tombstone(kept.id) == ("kept", True)


def test_restoring_what_was_uploaded_again_is_refused_in_words(
    portal: Portal, client: FlaskClient
) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add(FIRST, title="Leave")
    library.delete_document(portal.services, portal.admin, document.id)
    again = portal.add(FIRST, title="Leave, again")
    assert again.id != document.id
    address = f"/api/knowledge/documents/{document.id}/restore"
    refused = client.post(address, headers=headers)
    assert (refused.status_code, refused.json["error"]["code"]) == (409, "uploaded_again")
    assert "“Leave, again”" in refused.json["error"]["message"]
    library.delete_document(portal.services, portal.admin, again.id)
    assert client.post(address, headers=headers).status_code == 200
    assert library.list_documents(portal.services, portal.admin).total_count == 1


def test_texts_that_would_take_too_long_are_not_compared(
    portal: Portal, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add("a\rb\rc")
    with monkeypatch.context() as patch:
        patch.setattr(comparisons, "MAX_UNITS", 5)
        send(portal, document.id, "a\rb\u2028d")
        read(portal, document.id)
        # Published without a count of changes.
        newest = revisions.list_revisions(portal.services, portal.admin, document.id).items[0]
        assert (newest.number, newest.characters_added) == (2, None)
        address = f"/api/knowledge/documents/{document.id}/revisions/2/differences"
        refused = client.get(address, headers=headers)
        assert (refused.status_code, refused.json["error"]["code"]) == (413, "too_many_lines")
        page = client.get(f"/documents/{document.id}/revisions/2?against=1", headers=headers)
        assert page.status_code == 200
        assert "more than 5 lines and sentences" in page.text
        patch.setattr(comparisons, "MAX_CHARACTERS", 3)
        assert client.get(address, headers=headers).json["error"]["code"] == "texts_too_long"

    # Comparisons run one at a time; results are cached, and shown only to those who may see them.
    monkeypatch.setattr(comparisons, "_PATIENCE_S", 0)
    with portal.services.comparisons._place:
        busy = client.get(address, headers=headers)
    assert (busy.status_code, busy.json["error"]["code"]) == (503, "overloaded")
    assert int(busy.headers["Retry-After"]) > 0
    told = client.get(address, headers=headers)
    assert told.status_code == 200
    with portal.services.comparisons._place:
        assert client.get(address, headers=headers).json == told.json
        library.change_document(
            portal.services, portal.admin, document.id, visibility=Visibility.PRIVATE
        )
        ada = portal.headers(portal.user("ada"))
        assert client.get(address, headers=ada).status_code == 404


def test_text_is_published_even_if_counting_changes_fails(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(_old: str, _new: str) -> None:
        raise MemoryError

    monkeypatch.setattr(revision_changes, "compared", too_much)
    document = portal.add(FIRST)
    send(portal, document.id, SECOND)
    read(portal, document.id)
    assert body(portal, document.id) == SECOND
    newest = revisions.list_revisions(portal.services, portal.admin, document.id).items[0]
    assert (newest.is_current, newest.characters_added) == (True, None)
    # The document is purged between two statements.
    monkeypatch.setattr(revisions.revision_store, "read_body", lambda *_, **__: None)
    with pytest.raises(NotFound):
        revisions.read_text(portal.services, portal.admin, document.id, 1)


def test_retried_read_again_or_restored_a_file_is_one_document(portal: Portal) -> None:
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


def test_outcome_of_a_file_is_reported(portal: Portal, client: FlaskClient) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add(FIRST)

    def post(content: str) -> str:
        data = {"file": (upload(content), "new.txt")}
        return client.post(
            f"/documents/{document.id}/revisions",
            data=data,
            headers=headers,
            follow_redirects=True,
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


def test_document_in_hand_may_be_cited_unless_it_is_purged(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, database = portal.add(FIRST), portal.services.database
    referred = text("SELECT id FROM documents WHERE id = :id FOR KEY SHARE SKIP LOCKED")

    def may_be_cited() -> bool:
        with database.begin() as session:
            return session.scalar(referred, {"id": document.id}) is not None

    with database.begin() as session:
        document_store.lock_document(session, document.id)
        assert may_be_cited()
    seen: list[bool] = []
    monkeypatch.setattr(library, "erase", lambda *_, **__: seen.append(may_be_cited()))
    library.purge_document(portal.services, portal.admin, document.id)
    assert seen == [False]


def test_document_that_cannot_be_purged_keeps_no_other_from_it(
    portal: Portal, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, headers = portal.services, portal.headers()
    stuck, other = portal.add(FIRST, title="stuck"), portal.add(SECOND, title="other")
    ada = portal.headers(portal.user("ada"))
    assert client.get(f"/trash/{stuck.id}/purge", headers=headers).status_code == 404
    for document in (stuck, other):
        library.delete_document(services, portal.admin, document.id)
    assert client.get(f"/trash/{stuck.id}/purge", headers=ada).status_code == 404
    assert "stuck" in client.get(f"/trash/{stuck.id}/purge", headers=headers).text

    def erase(session: Session, document_id: UUID) -> None:
        if document_id == stuck.id:
            session.execute(text("SELECT 1 / 0"))
        library.erase(session, document_id)

    later = datetime.now(UTC) + timedelta(days=31)
    with monkeypatch.context() as patch:
        patch.setattr(trash, "erase", erase)
        assert trash.purge_expired(services, seconds=60, now=later) == 1
    left = library.list_trash(services, portal.admin).items
    assert [one.title for one in left] == ["stuck"]
    assert trash.purge_expired(services, seconds=60, now=later) == 1


def test_api_of_revisions(portal: Portal, client: FlaskClient) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    document = portal.add(FIRST)
    address = f"/api/knowledge/documents/{document.id}/revisions"

    def post(content: str, key: str | None = None) -> Any:
        keyed = {"Idempotency-Key": key} if key else {}
        data = {"file": (upload(content), "new.txt")}
        return client.post(address, data=data, headers=headers | keyed)

    same = post(FIRST)
    assert (same.status_code, same.json["is_duplicate"]) == (202, True)
    assert same.json["job"]["status"] == "ready"
    sent = post(SECOND, "a-key")
    assert (sent.status_code, sent.json["is_duplicate"], sent.json["id"]) == (
        202, False, str(document.id),
    )  # fmt: skip
    assert sent.json["job"]["status"] == "queued"
    assert post(SECOND, "a-key").json == sent.json
    assert post(THIRD, "a-key").status_code == 409
    assert client.post(address, data={"title": "x"}, headers=headers).status_code == 400
    assert post("").json["error"]["code"] == "empty_file"
    assert client.delete(f"{address}/unread", headers=headers).status_code == 409
    read(portal, document.id)

    listed = client.get(address, headers=headers).json
    assert listed["total_count"] == 2
    assert [(one["number"], one["is_current"]) for one in listed["revisions"]] == [
        (2, True), (1, False),
    ]  # fmt: skip
    first = client.get(f"{address}?limit=1", headers=headers).json
    rest = client.get(f"{address}?limit=1&cursor={first['next_cursor']}", headers=headers).json
    assert [*first["revisions"], *rest["revisions"]] == listed["revisions"]
    assert rest["next_cursor"] is None
    for cursor in ("x", "9" * 200, "-1", "9" * 10, "0" * 20 + "9" * 20):
        assert client.get(f"{address}?cursor={cursor}", headers=headers).status_code == 400
    assert client.get(f"{address}/1/content", headers=headers).json["text"] == FIRST
    assert client.get(f"{address}/1/file", headers=headers).data == FIRST.encode()
    told = client.get(f"{address}/2/differences", headers=headers).json
    assert (told["against"], told["characters_added"], told["characters_removed"]) == (1, 6, 7)
    assert [(one["kind"], one["text"]) for one in told["stretches"]][1:3] == [
        ("removed", "fifteen"), ("added", "twenty"),
    ]  # fmt: skip
    back = client.get(f"{address}/1/differences?against=2", headers=headers).json
    assert back["characters_added"] == 7
    for missing in ("3/content", f"{10**12}/content", "1/differences", "0/file"):
        assert client.get(f"{address}/{missing}", headers=headers).status_code == 404, missing
    # Text that looks like markup is escaped on the pages.
    post(f"{SECOND}\n<script>alert(1)</script>\n")
    read(portal, document.id)
    page = client.get(f"/documents/{document.id}/revisions/3?against=1", headers=headers)
    assert page.status_code == 200
    assert "<ins>twenty</ins>" in page.text
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert" in page.text
    for path in ("", "/1", "/1?part=7", "/1?part=99999", "/2/file", "/3?against=2&part=99"):
        answer = client.get(f"/documents/{document.id}/revisions{path}", headers=headers)
        assert answer.status_code == 200, path


def test_text_of_a_version_is_laid_out_in_whole_lines(client: FlaskClient, portal: Portal) -> None:
    rows = "\n".join(f"| Item number {n} | {n} euros |" for n in range(2500))
    document = portal.add(f"# Prices\n\n| What | Price |\n|---|---|\n{rows}", name="prices.md")
    address, cells = f"/documents/{document.id}/revisions/1", []
    for part in (1, 2, 3):
        page = client.get(address, query_string={"part": part}, headers=portal.headers()).text
        shown = page[page.index('data-testid="revision-text"') :]
        assert '<th scope="col">Price</th>' in shown
        assert " | " not in shown
        cells += re.findall(r"<td>(.*?)</td>", shown)
    assert cells == [cell for n in range(2500) for cell in (f"Item number {n}", f"{n} euros")]


def test_what_cannot_be_mended_is_replaced_not_tried_again(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers()
    broken = portal.add(b"%PDF-1.7 broken", name="broken.pdf")
    address = f"/documents/{broken.id}"
    for page in ("/documents", address):
        shown = client.get(page, headers=headers).text
        assert "Upload a new version" in shown, page
        assert f"{address}/retry" not in shown, page
    assert 'data-testid="retry-failed"' not in client.get("/documents", headers=headers).text
    client.post("/documents/retry-failed", headers=headers)
    assert portal_status(portal, broken.id) is DocumentStatus.FAILED
    # A failure of the server is tried again, and so is a file that administrators ask for.
    with portal.services.database.begin() as session:
        session.execute(text("""UPDATE jobs SET error = '{"code": "internal", "params": {}}'"""))
        session.execute(
            text("""UPDATE documents SET error = '{"code": "internal", "params": {}}'""")
        )
    assert f"{address}/retry" in client.get(address, headers=headers).text
    client.post("/documents/retry-failed", headers=headers)
    assert portal_status(portal, broken.id) is DocumentStatus.QUEUED


def portal_status(portal: Portal, document_id: UUID) -> DocumentStatus:
    return library.get_summary(portal.services, portal.admin, document_id).status
