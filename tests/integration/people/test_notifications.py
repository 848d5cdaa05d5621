"""Notifications: exactly one for each ended job, shown once, only of documents the user may see."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import DocumentSummary
from portal.domain.documents.notifications import (
    MANY_IN_WORK,
    FailedUpdate,
    Notification,
    NotificationKind,
)
from portal.domain.people import User
from portal.errors import EmbedderUnavailable, EmptyFile, NotFound
from portal.services.documents import library, notifications
from portal.services.documents.ingestion import attempts, indexing, jobs, rereading
from portal.services.documents.intake import uploads
from portal.services.documents.intake.uploads import Upload
from portal.services.documents.versions import revisions
from portal.services.operations import maintenance
from portal.store.documents import notifications as notification_store
from tests.conftest import Portal
from tests.factories.uploads import failing, upload

READY, FAILED = NotificationKind.READY, NotificationKind.FAILED
HTMX = {"HX-Request": "true"}


class Killed(BaseException):
    """An exception that nothing catches, like the death of the process."""


def store(
    portal: Portal, name: str, owner: User | None = None, content: str | bytes | None = None
) -> DocumentSummary:
    return uploads.store_upload(
        portal.services,
        owner or portal.admin,
        stream=upload(content or f"What {name} says."),
        file_name=f"{name}.txt",
    ).document


def read(portal: Portal, document: DocumentSummary) -> None:
    assert document.job_id
    indexing.index_document(portal.services, document.job_id)


def listed(portal: Portal, user: User | None = None, **which) -> list[Notification]:
    page = notifications.list_notifications(portal.services, user or portal.admin, **which)
    return list(page.items)


def kinds(portal: Portal, user: User | None = None) -> list[tuple[str, NotificationKind]]:
    """Return titles and kinds, oldest first."""
    return [(item.title, item.kind) for item in reversed(listed(portal, user))]


def count(portal: Portal) -> int:
    return portal.scalar("SELECT count(*) FROM notifications")


def messages(answer) -> list[str]:
    found = re.findall(r'toast-message">(.*?)</p>', answer.get_data(as_text=True))
    return [message.replace("&#39;", "'") for message in found]


def test_each_end_notifies_exactly_once_despite_kills(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = store(portal, "report")
    add = notification_store.add_ending
    for is_written in (False, True):

        def die(session, job_id: UUID, kind: NotificationKind, written: bool = is_written) -> None:
            if written:
                add(session, job_id, kind)
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(notification_store, "add_ending", die)
            with pytest.raises(Killed):
                read(portal, document)
        assert library.get_summary(portal.services, portal.admin, document.id).status != "ready"
        assert kinds(portal) == []
    read(portal, document)
    read(portal, document)  # As if the queue entry were delivered twice.
    with portal.services.database.begin() as session:
        notification_store.add_ending(session, document.job_id, READY)
    assert kinds(portal) == [("report", READY)]

    # A failed attempt that will be retried does not notify; a retried job notifies again.
    flaky = store(portal, "flaky")
    for error in (EmbedderUnavailable(reason="x"), EmptyFile(name="x"), EmptyFile(name="x"), None):
        with monkeypatch.context() as patch:
            if error is not None:
                patch.setattr(indexing, "split", failing(error))
            read(portal, flaky)
        if isinstance(error, EmptyFile):
            jobs.retry(portal.services, portal.admin, flaky.id)
    assert kinds(portal)[1:] == [("flaky", FAILED), ("flaky", FAILED), ("flaky", READY)]


def test_failed_version_is_named_as_such_and_unseen_notes_stay_unread(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = store(portal, "policy")
    monkeypatch.setattr(indexing, "split", failing(EmptyFile(name="policy.txt")))
    read(portal, document)
    monkeypatch.undo()
    jobs.retry(portal.services, portal.admin, document.id)
    read(portal, document)
    rereading.reread(portal.services, portal.admin, document.id)
    monkeypatch.setattr(indexing, "split", failing(EmptyFile(name="policy.txt")))
    read(portal, library.get_summary(portal.services, portal.admin, document.id))
    newer = Upload(upload("Other words."), "policy.txt")
    version = revisions.add_version(portal.services, portal.admin, document.id, newer)
    read(portal, version.document)
    # Notifications record the state when the job ended, not the document's current state.
    besides = [(item.kind, item.beside) for item in reversed(listed(portal))]
    assert besides == [
        (FAILED, None),
        (READY, None),
        (FAILED, FailedUpdate.REREAD),
        (FAILED, FailedUpdate.VERSION),
    ]
    client = portal.client()
    page = client.get("/notifications").get_data(as_text=True)
    assert "The new version of “policy” could not be read." in page
    assert "“policy” failed." in page

    # Notifications that arrive while the list is open are not marked as read with it.
    late = listed(portal)[0]
    until = {"until": listed(portal)[1].created_at.isoformat()}
    assert client.post("/notifications/read", data=until).status_code == 303
    assert [item.id for item in listed(portal, unread_only=True)] == [late.id]


def test_cancelled_deleted_and_program_documents_notify_no_user(portal: Portal) -> None:
    cancelled, deleted, programs = (store(portal, name) for name in ("one", "two", "three"))
    jobs.cancel(portal.services, portal.admin, cancelled.id)
    read(portal, cancelled)
    attempt = attempts.begin(portal.services, deleted.job_id)
    library.delete_document(portal.services, portal.admin, deleted.id)
    attempts.fail(portal.services, deleted.job_id, NotFound(), number=attempt.number)
    portal.execute(
        "WITH c AS (INSERT INTO collections (name, embedding_model_id) "
        "SELECT 'a program''s', embedding_model_id FROM collections LIMIT 1 RETURNING id) "
        "UPDATE documents SET collection_id = c.id FROM c WHERE documents.id = :id",
        id=programs.id,
    )
    with portal.services.database.begin() as session:
        notification_store.add_ending(session, programs.job_id, READY)
    assert count(portal) == 0


def test_only_owner_and_uploader_are_notified(portal: Portal) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    document = store(portal, "shared", ada)
    read(portal, document)
    newer = Upload(upload("Other words."), "shared.txt")
    version = revisions.add_version(portal.services, portal.admin, document.id, newer)
    read(portal, version.document)
    # Rereading by another user still notifies the uploader.
    rereading.reread(portal.services, ada, document.id)
    read(portal, library.get_summary(portal.services, ada, document.id))
    assert kinds(portal, ada) == [("shared", READY)] * 3
    assert kinds(portal) == [("shared", READY)] * 2
    assert kinds(portal, eve) == []
    latest = "(SELECT max(created_at) FROM notifications)"
    portal.execute(f"DELETE FROM notifications WHERE created_at < {latest}")

    # Notifications show the current title, and none of a document that became invisible.
    library.change_document(portal.services, ada, document.id, title="Renamed")
    assert kinds(portal, ada) == [("Renamed", READY)]
    (mine,) = listed(portal, ada)
    with pytest.raises(NotFound):
        notifications.open_notification(portal.services, eve, mine.id)
    notifications.mark_read(portal.services, eve, [mine.id])
    portal.execute("UPDATE users SET is_admin = false WHERE id = :id", id=portal.admin.id)
    portal.execute("UPDATE documents SET visibility = 'private'")
    client = portal.client(portal.admin)
    answer = client.get("/api/notifications").get_json()
    assert (answer["notifications"], answer["unread_count"]) == ([], 0)

    library.delete_document(portal.services, ada, document.id)
    assert notifications.state(portal.services, ada).unread == 0
    assert notifications.take(portal.services, ada) == ()
    library.restore_document(portal.services, ada, document.id)
    assert notifications.state(portal.services, ada).unread == 1
    assert [item.title for item in notifications.take(portal.services, ada)] == ["Renamed"]
    library.purge_document(portal.services, ada, document.id)
    assert count(portal) == 0


def test_two_pages_at_once_show_each_note_once(portal: Portal, client: FlaskClient) -> None:
    ada = portal.user("ada")
    headers = portal.headers(ada)
    calm = client.get("/notifications/state?known=0.30", headers=headers | HTMX)
    assert (calm.status_code, calm.get_data()) == (204, b"")
    for number in range(4):
        read(portal, store(portal, f"note {number}", ada))
    with ThreadPoolExecutor(2) as pool:
        taken = [pool.submit(notifications.take, portal.services, ada) for _ in range(2)]
    told = [item.title for one in taken for item in one.result()]
    assert sorted(told) == [f"note {number}" for number in range(4)]

    # Documents processed together are reported as one batch, including those reported before.
    read(portal, store(portal, "bl<a>nk", ada, "\n \n"))
    page = client.get("/documents", headers=headers).get_data(as_text=True)
    assert 'data-unread="1"' in page
    assert 'hx-post="/notifications/deliver"' in page
    answer = client.post("/notifications/deliver", headers=headers | HTMX)
    assert messages(answer) == ["Your uploads: 4 ready, 1 failed."]
    # A later notification of the batch replaces this one.
    assert answer.text.count('data-key="batch-') == 1
    (batch,) = notifications.list_batches(portal.services, ada).items
    assert (batch.ready, batch.failed) == (4, 1)
    opened = client.post(f"/notifications/{batch.latest.id}/open", headers=headers)
    listed_batch = client.get(opened.headers["Location"], headers=headers).text
    assert listed_batch.index("bl&lt;a&gt;nk") < listed_batch.index("note 0")
    assert notifications.state(portal.services, ada).unread == 0
    headers_of_eve = portal.headers(portal.user("eve"))
    assert client.get(opened.headers["Location"], headers=headers_of_eve).status_code == 404
    again = client.post("/notifications/deliver", headers=headers | HTMX)
    assert (again.status_code, again.get_data()) == (204, b"")
    assert 'hx-post="/notifications/deliver"' not in client.get(
        "/search", headers=headers
    ).get_data(as_text=True)

    # An import is announced in one message, at its end.
    waiting = [store(portal, f"import {number}", ada) for number in range(MANY_IN_WORK + 1)]
    read(portal, waiting[0])
    bell = client.get("/notifications/state?known=5.30", headers=headers | HTMX)
    assert 'hx-trigger="every 3s, ' in bell.get_data(as_text=True)
    assert "tell" not in bell.get_data(as_text=True)
    for document in waiting[1:]:
        read(portal, document)
    bell = client.get("/notifications/state?known=1.3", headers=headers | HTMX)
    assert 'hx-post="/notifications/deliver"' in bell.get_data(as_text=True)


def test_list_is_paged_filtered_and_read(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = portal.user("ada")
    client = portal.client(ada)
    # Deleted while queued, these stay ahead of later jobs in the queue.
    for name in ("thrown away", "this one too"):
        library.delete_document(portal.services, portal.admin, store(portal, name).id)
    monkeypatch.setattr(notification_store, "_MAX_JOBS_CHECKED", 1)
    for number in range(3):
        document = store(portal, f"note {number}", ada, "\n" if number == 1 else None)
        portal.execute("UPDATE jobs SET turn = 7 WHERE id = :id", id=document.job_id)
        assert notifications.state(portal.services, ada).in_work == 1
        read(portal, document)
    path = "/api/notifications"
    first = client.get(f"{path}?limit=2").get_json()
    rest = client.get(f"{path}?limit=2&cursor={first['next_cursor']}").get_json()
    found = first["notifications"] + rest["notifications"]
    assert [item["title"] for item in found] == ["note 2", "note 1", "note 0"]
    assert (first["unread_count"], rest["next_cursor"]) == (3, None)
    assert found[1]["kind"] == "failed"
    assert "note 1.txt" in found[1]["error"]["message"]
    assert client.get(f"{path}?cursor=x").status_code == 400

    # Opening a notification marks it as read; the others need a request.
    portal.execute("UPDATE notifications SET batch_id = gen_random_uuid()")
    opened = client.post(f"/notifications/{found[0]['id']}/open")
    assert opened.headers["Location"] == f"/documents/{found[0]['document_id']}"
    unread = client.get(f"{path}?unread=true").get_json()
    assert [item["title"] for item in unread["notifications"]] == ["note 1", "note 0"]
    refused = client.post(f"{path}/read", json={"ids": ["x"]})
    assert refused.status_code == 422
    none = client.post(f"{path}/read", json={})
    assert none.get_json() == {"unread_count": 2}
    left = client.post(f"{path}/read", json={"ids": [found[1]["id"]]})
    assert left.get_json() == {"unread_count": 1}
    page = client.get("/notifications").get_data(as_text=True)
    assert page.count('data-testid="notification"\n      data-document-id') == 3
    assert page.count("is-unread") == 1
    # A time outside the range of UTC is treated like an unreadable one.
    for crafted in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "x"):
        form = {"until": crafted}
        assert client.post("/notifications/read", data=form).status_code == 303
    assert notifications.state(portal.services, ada).unread == 0
    # Read notifications are not announced.
    assert notifications.take(portal.services, ada) == ()


def test_old_notifications_and_those_of_deleted_users_are_deleted(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    for number in range(3):
        read(portal, store(portal, f"note {number}", ada))
    read(portal, store(portal, "eve's", eve))
    days = portal.services.settings.notification_days
    age = "UPDATE notifications SET created_at = now() - make_interval(days => :days, secs => :s)"
    which = " FROM documents d WHERE d.id = document_id AND d.title = :title"
    portal.execute(age + which, days=days, s=5, title="note 0")
    portal.execute(age + which, days=days, s=-60, title="note 1")
    maintenance.run(portal.services)
    assert [title for title, _ in kinds(portal, ada)] == ["note 1", "note 2"]
    monkeypatch.setattr(notifications, "_MAX_PER_USER", 1)
    maintenance.run(portal.services)
    assert [title for title, _ in kinds(portal, ada)] == ["note 2"]
    with portal.services.database.begin() as session:
        notification_store.add_recovery_code(session, ada.id, left=3)
    read(portal, store(portal, "note 3", ada))
    read(portal, store(portal, "note 4", ada))
    maintenance.run(portal.services)
    assert [kind for _, kind in kinds(portal, ada)] == [NotificationKind.RECOVERY_CODE, READY]
    assert len(listed(portal, eve)) == 1
    portal.execute("DELETE FROM users WHERE id = :id", id=eve.id)
    assert count(portal) == 2
