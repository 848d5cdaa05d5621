"""Versions of a document, and how tests send and read them."""

from __future__ import annotations

from uuid import UUID

from portal.domain.people import User
from portal.services.documents import library
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake.uploads import Upload, UploadReceipt
from portal.services.documents.versions import revisions
from tests.conftest import Portal
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


def rows(portal: Portal, table: str) -> int:
    return portal.scalar(f"SELECT count(*) FROM {table}") or 0
