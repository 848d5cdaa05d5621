"""The name and file properties of a document, taken from the file whose text is searched."""

from __future__ import annotations

from uuid import UUID

from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import outdated_chunks
from portal.store.models import DocumentRow
from portal.store.session import Session


def adopt(session: Session, document: DocumentRow, job_id: UUID, *, analysed_as: str) -> None:
    """Give a locked document the name, type, size and hash of a job's file; its title stays.
    `analysed_as` is the title that its chunks are indexed under."""
    original = file_store.find_original_of_job(session, job_id)
    if original is not None:
        document.file_name = original.file_name
        document.media_type = original.media_type.value
        document.size_bytes = original.size_bytes
        document.sha256 = original.sha256
        session.flush()
    if document.title != analysed_as:
        outdated_chunks.mark_outdated(session, document.id)
