"""Title, name and file facts that a document takes from the file it is searched by."""

from __future__ import annotations

from uuid import UUID

from portal.services.documents.intake.uploads import title_of
from portal.store.documents import rows as document_store
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.ingestion import outdated_chunks
from portal.store.models import DocumentRow
from portal.store.session import Session
from portal.text.titles import check_title


def title_with(document: DocumentRow, file_name: str) -> str:
    """Return a document's title once it has a file of this name; a title set by a user stays."""
    was_given = document.title != check_title(title_of(document.file_name))
    return document.title if was_given else check_title(title_of(file_name))


def adopt(session: Session, document_id: UUID, job_id: UUID, *, analysed_as: str) -> None:
    """Give a locked document the name, type, size and hash of a job's file. Its title changes too
    where it was the old file's name. `analysed_as` is the title that its chunks are indexed
    under."""
    document = document_store.get_document(session, document_id)
    original = file_store.find_original_of_job(session, job_id)
    if document is None:
        return
    if original is not None:
        document.title = title_with(document, original.file_name)
        document.file_name = original.file_name
        document.media_type = original.media_type.value
        document.size_bytes = original.size_bytes
        document.sha256 = original.sha256
        session.flush()
    if document.title != analysed_as:
        outdated_chunks.mark_outdated(session, document.id)
