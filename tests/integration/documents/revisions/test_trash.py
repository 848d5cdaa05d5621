"""Documents in the trash: restored, cited, and purged after their time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import DocumentStatus
from portal.errors import NotFound
from portal.services import Services
from portal.services.documents import library, trash
from portal.services.operations import maintenance
from portal.store.documents import rows as document_store
from portal.store.session import Session
from portal.web.documents import trash as trash_pages
from tests.conftest import Portal
from tests.integration.documents.revisions.versions import FIRST, SECOND, rows


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
    assert page.count('data-testid="purged-on">Will be permanently deleted on <time') == 2
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
        return [item.title for item in library.list_trash(services, portal.admin).items]

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


def test_restoring_a_duplicate_is_refused_with_a_reason(
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


def test_locked_document_may_be_cited_unless_it_is_purged(
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


def test_document_that_cannot_be_purged_does_not_block_others(
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
