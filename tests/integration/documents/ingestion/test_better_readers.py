"""Documents read by an older reader are reread in the background."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text

from portal.domain.conversations import SourceState
from portal.domain.documents import DocumentSummary
from portal.domain.documents.structure import BlockKind
from portal.errors import BrokenFile
from portal.services.answers import citing, conversations
from portal.services.documents import library, notifications
from portal.services.documents.ingestion import indexing, rereading
from portal.services.documents.versions import revisions
from tests.conftest import Portal
from tests.factories.answers import ask, saying

HANDBOOK = "# Leave\n\nFifteen days of leave a year.\n\n| Years | Days |\n|---|---|\n| 1–5 | 10 |\n"


def age(portal: Portal) -> None:
    """Make texts and chunks look as if an older reader, without headings and tables, wrote them."""
    portal.execute(
        "UPDATE document_revisions SET headings = '[]', blocks = '[]', reader_version = 0"
    )
    portal.execute("UPDATE document_chunks SET blocks = '[]'")


def outline_titles(portal: Portal, revision_id: UUID | None) -> list[str]:
    with portal.services.database.begin() as session:
        titles = text(
            "SELECT jsonb_path_query(headings, '$[*][1]') FROM document_revisions WHERE id = :id"
        )
        return list(session.scalars(titles, {"id": revision_id}))


def waiting(portal: Portal) -> list[UUID]:
    return portal.scalars("SELECT id FROM jobs WHERE status = 'queued'")


@pytest.fixture
def old(portal: Portal) -> DocumentSummary:
    document = portal.add(HANDBOOK, name="handbook.md")
    age(portal)
    return document


def test_old_text_is_reread_and_its_citations_stay_current(
    portal: Portal, old: DocumentSummary
) -> None:
    talk = conversations.create(portal.services, portal.admin)
    answer = ask(
        saying(portal.services, "Fifteen days of leave a year. [1]"),
        portal.admin, talk.id, "How many days of leave a year?",
    )  # fmt: skip
    told = notifications.state(portal.services, portal.admin).unread
    before = library.get_document(portal.services, portal.admin, old.id)

    assert rereading.reread_outdated(portal.services) == 1
    assert rereading.reread_outdated(portal.services) == 0
    for job_id in waiting(portal):
        indexing.index_document(portal.services, job_id)
    assert rereading.reread_outdated(portal.services) == 0

    after = library.get_document(portal.services, portal.admin, old.id)
    assert after.revision_id == before.revision_id
    page = revisions.list_revisions(portal.services, portal.admin, old.id)
    assert [(item.number, item.is_current) for item in page.items] == [(1, True)]
    (chunk,), _ = library.list_chunks(portal.services, portal.admin, old.id, limit=9, offset=0)
    (table,) = [block for block in chunk.chunk.blocks if block.kind is BlockKind.TABLE]
    assert table.header == ("Years", "Days")
    assert outline_titles(portal, after.revision_id) == ["Leave"]
    citation = conversations.get_message(portal.services, portal.admin, answer.id).citations[0]
    assert citation.state is SourceState.CURRENT
    assert citing.verify(portal.services, portal.admin, citation.id).stands
    assert notifications.state(portal.services, portal.admin).unread == told


def test_file_that_cannot_be_read_any_more_keeps_its_text(
    portal: Portal, old: DocumentSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BrokenFile(name="handbook.md")

    assert rereading.reread_outdated(portal.services) == 1
    monkeypatch.setattr(indexing, "extract", refuse)
    for job_id in waiting(portal):
        indexing.index_document(portal.services, job_id)
    summary = library.get_summary(portal.services, portal.admin, old.id)
    assert (summary.status, summary.failure) == (old.status, None)
    assert revisions.find_unread(portal.services, portal.admin, old.id) is None
    assert rereading.reread_outdated(portal.services) == 0


def test_waiting_documents_come_before_rereading(portal: Portal, old: DocumentSummary) -> None:
    rereading.reread(portal.services, portal.admin, old.id)
    assert rereading.reread_outdated(portal.services) == 0
