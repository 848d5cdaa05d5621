"""Size of the change between two texts: counted once, before the new text replaces the old one."""

from __future__ import annotations

import structlog

from portal.errors import PortalError, TextsTooLong
from portal.services import Services
from portal.services.documents.ingestion.attempts import Attempt, JobGone
from portal.services.documents.versions.comparisons import compare
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.texts import revisions as revision_store
from portal.text.likeness.differences import characters_changed

log = structlog.get_logger(__name__)


def note(services: Services, attempt: Attempt) -> None:
    """Count the characters that differ between an attempt's text and the searchable one, if any. If
    counting fails the text is published without the count. Only errors that would end the attempt
    anyway, such as DatabaseUnavailable, are raised."""
    try:
        _note(services, attempt)
    except TextsTooLong:
        return
    except (PortalError, JobGone):
        raise
    except Exception:
        log.warning("changes_not_counted", job_id=str(attempt.job_id), exc_info=True)


def _note(services: Services, attempt: Attempt) -> None:
    with services.database.begin() as session:
        job = job_store.find_job(session, attempt.job_id)
        current = revision_store.find_current(session, attempt.document_id)
        if job is None or job.revision_id is None or current is None:
            return
        revision_id = job.revision_id
        if revision_id == current:
            return
        old, new = (
            revision_store.read_body(session, revision) for revision in (current, revision_id)
        )
    if old is None or new is None:
        return
    added, removed = characters_changed(compare(old, new))
    with services.database.begin() as session:
        revision_store.record_change_counts(session, revision_id, added=added, removed=removed)
