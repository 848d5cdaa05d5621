"""The queue for administrators: all users' jobs, and actions on them."""

from __future__ import annotations

from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.domain.documents.jobs import JobStatus
from portal.errors import PortalError
from portal.http import context
from portal.http.messages import error_message
from portal.services.documents.ingestion import jobs
from portal.web.blueprint import PageBlueprint
from portal.web.documents.job_words import retried_words
from portal.web.layout import Answer, see_other, wants_fragment

PAGE_SIZE = 50

blueprint = PageBlueprint("admin_jobs", __name__, "/admin/jobs", context.for_administrators)


@blueprint.get("")
def show() -> Answer:
    services, user = context.caller()
    status, cursor = _status(), request.args.get("cursor") or None
    state = jobs.queue_state(services, user)
    values = {
        "page": jobs.list_jobs(services, user, status=status, cursor=cursor, limit=PAGE_SIZE),
        "state": state,
        "curable_count": jobs.count_curable(services, user),
        "status": status,
        "statuses": tuple(JobStatus),
        "cursor": cursor,
        "is_active": bool(state.queued or state.processing),
    }
    if wants_fragment("job-list"):
        return render_template("fragments/jobs/_list.html", **values)
    return render_template("pages/operations/jobs.html", **values)


@blueprint.post("/<uuid:document_id>/cancel")
def cancel(document_id: UUID) -> Answer:
    try:
        jobs.cancel(*context.caller(), document_id)
    except PortalError as error:
        return _done(error_message(error), kind="error")
    return _done(gettext("Job cancelled."))


@blueprint.post("/<uuid:document_id>/retry")
def retry(document_id: UUID) -> Answer:
    try:
        jobs.retry(*context.caller(), document_id)
    except PortalError as error:
        return _done(error_message(error), kind="error")
    return _done(gettext("Job queued again."))


@blueprint.post("/retry-failed")
def retry_failed() -> Answer:
    return _done(retried_words(jobs.retry_failed(*context.caller(), only_curable=True)))


def _status() -> JobStatus | None:
    """Return the status filter of the request; an unknown value filters nothing."""
    return request.values.get("status", type=JobStatus)


def _done(message: str, *, kind: str = "success") -> Answer:
    return see_other(url_for("admin_jobs.show", status=_status() or None), message, kind=kind)
