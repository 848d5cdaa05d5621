"""Documents to ingest, and the state of their jobs."""

from __future__ import annotations

from types import SimpleNamespace

from portal.domain.documents import DocumentStatus, DocumentSummary
from portal.domain.people import User
from portal.processes import worker
from portal.services.documents import library
from portal.services.documents.ingestion import jobs
from portal.services.documents.intake import uploads
from portal.store.documents.ingestion.queue import QUEUE_NAME
from tests.conftest import Portal
from tests.factories.uploads import upload

LONG = "\n\n".join(f"Section {n}. " + "Budget words fill this paragraph. " * 40 for n in range(14))


def store(portal: Portal, content: str = LONG, owner: User | None = None, **how) -> DocumentSummary:
    name = f"{content[:12].strip()}.txt"
    return uploads.store_upload(
        portal.services, owner or portal.admin, stream=upload(content), file_name=name, **how
    ).document


def work(portal: Portal, document: DocumentSummary, queue: str = QUEUE_NAME) -> None:
    """Run a job as a worker does after fetching it."""
    context = SimpleNamespace(should_abort=lambda: False, job=SimpleNamespace(queue=queue))
    worker._index(portal.services, document.job_id, context)


def status_of(portal: Portal, document: DocumentSummary) -> DocumentStatus:
    return library.get_summary(portal.services, portal.admin, document.id).status


def job_of(portal: Portal, document: DocumentSummary):
    return jobs.get_job(portal.services, portal.admin, document.job_id).job
