"""Housekeeping that every worker does between jobs. Running it twice is harmless."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from portal.domain.documents.jobs import UNFINISHED
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import bulk, notifications, shared_words, trash
from portal.services.documents.ingestion import reanalysis, rereading
from portal.services.documents.intake import disk_space, idempotency
from portal.services.models import builds, calibrating
from portal.services.operations.reports import audit_log
from portal.services.people import second_factors
from portal.services.people.federation import oidc_sign_ins
from portal.store.documents.ingestion import jobs as job_store
from portal.store.documents.ingestion import queue
from portal.store.people import sessions as session_store
from portal.store.people import tokens as token_store

log = structlog.get_logger(__name__)

# An ended token is remembered this long, so that a copied refresh token is still recognised.
_TOKEN_MEMORY = timedelta(days=30)
# As long as a browser keeps the cookie that it is known by.
_DEVICE_MEMORY = timedelta(days=400)
# A share of the time between two rounds, so that searches and ingestion come first.
_REANALYSIS_S = 10.0
_PURGE_S = 5.0
_WORDS_S = 30.0


def run(services: Services, *, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Requeue lost jobs and builds, delete what has expired, calibrate a new model, add missing
    words, redo a share of what an older analyser or reader made, and purge old trash. The keyword
    index has its own timer: to build it may take minutes, and what writes to it comes last.
    What takes seconds is left to the next call once `should_stop` returns True."""
    builds.requeue_lost(services)
    _requeue_lost(services)
    with services.database.begin() as session:
        token_store.delete_expired(session, before=datetime.now(UTC) - _TOKEN_MEMORY)
        session_store.delete_old(
            session,
            sessions_before=datetime.now(UTC),
            devices_before=datetime.now(UTC) - _DEVICE_MEMORY,
        )
    second_factors.delete_expired(services)
    oidc_sign_ins.delete_expired(services)
    idempotency.delete_expired(services)
    bulk.delete_expired(services)
    notifications.delete_expired(services)
    conversations.erase_old(services)
    audit_log.delete_expired(services)
    disk_space.delete_leftovers(services.settings)
    slow_duties: tuple[Callable[[], object], ...] = (
        lambda: calibrating.fit_if_due(services),
        lambda: shared_words.fill(services, seconds=_WORDS_S, should_stop=should_stop),
        lambda: reanalysis.reanalyse_for(services, seconds=_REANALYSIS_S, should_stop=should_stop),
        lambda: rereading.reread_outdated(services),
        lambda: trash.purge_expired(services, seconds=_PURGE_S, should_stop=should_stop),
    )
    for duty in slow_duties:
        if should_stop():
            return
        duty()


def _requeue_lost(services: Services) -> None:
    """Queue unfinished jobs that have no entry in the queue, in one worker at a time."""
    with services.database.begin() as session:
        if not queue.lock_requeueing(session):
            return
        for job_id in queue.unfinished_without_queue_entry(session):
            # It may have been cancelled since it was read.
            job = job_store.lock_job(session, job_id)
            if job is None or job.status not in UNFINISHED:
                continue
            log.warning("job_requeued", job_id=str(job_id))
            queue.enqueue(session, job_id)
