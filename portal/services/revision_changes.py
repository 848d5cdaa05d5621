"""How much of a document's text is new: counted once, before the new text takes the place of the
old one."""

from __future__ import annotations

from portal.services import Services
from portal.services.attempts import Attempt
from portal.store import jobs as job_store
from portal.store import revisions as revision_store
from portal.text.differences import characters_changed, differences

MOST_CHARACTERS = 20_000_000
"""Two texts that are longer together are not compared."""


def note(services: Services, attempt: Attempt) -> None:
    """Count the characters that tell an attempt's text from the one that is searched, if any."""
    with services.database.begin() as session:
        job = job_store.find_job(session, attempt.job_id)
        current = revision_store.find_current(session, attempt.document_id)
        if job is None or job.revision_id is None or current is None:
            return
        revision_id = job.revision_id
        old, new = (revision_store.read_body(session, one) for one in (current, revision_id))
    if len(old) + len(new) > MOST_CHARACTERS:
        return
    added, removed = characters_changed(differences(old, new))
    with services.database.begin() as session:
        revision_store.count_changes(session, revision_id, added=added, removed=removed)
