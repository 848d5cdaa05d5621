"""Actions on a document's job: cancel and retry."""

from __future__ import annotations

from uuid import UUID

from flask import url_for

from portal.errors import Conflict
from portal.http import context
from portal.services.documents import library
from portal.services.documents.ingestion import jobs
from portal.web.blueprint import PageBlueprint
from portal.web.documents.job_words import retried_words
from portal.web.documents.listing import progress_line, retry_failed_button, row
from portal.web.layout import Answer, fragments, go_back, wants_fragment

blueprint = PageBlueprint("document_jobs", __name__, "/documents")


@blueprint.post("/<uuid:document_id>/retry")
def retry(document_id: UUID) -> Answer:
    jobs.retry(*context.caller(), document_id)
    return _show_changed(document_id)


@blueprint.post("/<uuid:document_id>/cancel")
def cancel(document_id: UUID) -> Answer:
    services, user = context.caller()
    try:
        jobs.cancel(services, user, document_id)
    except Conflict:
        # The job ended while the user was deciding; the row shows how.
        library.get_summary(services, user, document_id)
    return _show_changed(document_id)


@blueprint.post("/retry-failed")
def retry_failed() -> Answer:
    words = retried_words(jobs.retry_failed(*context.caller(), only_curable=True))
    return go_back(url_for("documents.index"), words)


def _show_changed(document_id: UUID) -> Answer:
    if wants_fragment():
        document = library.get_summary(*context.caller(), document_id)
        return fragments(row(document), progress_line(), retry_failed_button())
    return go_back(url_for("documents.index"))
