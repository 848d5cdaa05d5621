"""Housekeeping that every worker does between jobs. Running it twice is harmless."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog

from portal.domain.documents.jobs import UNFINISHED
from portal.errors import DatabaseUnavailable
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
# As long as a browser keeps the cookie that identifies it.
_DEVICE_MEMORY = timedelta(days=400)
# A share of the time between two rounds, so that searches and ingestion come first.
_REANALYSIS_S = 10.0
_PURGE_S = 5.0
_WORDS_S = 30.0


def run(services: Services, *, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Requeue lost jobs and builds, delete what has expired, calibrate a new model, add missing
    words, redo a share of the work of an older analyser or reader, and purge old trash. The keyword
    index has its own timer, because building it may take minutes. Slow duties are left to the next
    call once `should_stop` returns True; those that write to the keyword index come last."""
    for duty in (
        builds.requeue_lost,
        _requeue_lost,
        _delete_expired_sessions,
        second_factors.delete_expired,
        oidc_sign_ins.delete_expired,
        idempotency.delete_expired,
        bulk.delete_expired,
        notifications.delete_expired,
        partial(conversations.erase_old, should_stop=should_stop),
        partial(audit_log.delete_expired, should_stop=should_stop),
        _delete_leftovers,
    ):
        _run(duty, services)
    for slow_duty in (
        calibrating.fit_if_due,
        partial(shared_words.fill, seconds=_WORDS_S, should_stop=should_stop),
        partial(reanalysis.reanalyse_for, seconds=_REANALYSIS_S, should_stop=should_stop),
        rereading.reread_outdated,
        partial(trash.purge_expired, seconds=_PURGE_S, should_stop=should_stop),
    ):
        if should_stop():
            return
        _run(slow_duty, services)


def _run(duty: Callable[[Services], object], services: Services) -> None:
    """Run a duty and log its failure, so that the ones after it still run. Raises
    DatabaseUnavailable."""
    try:
        duty(services)
    except DatabaseUnavailable:
        raise
    except Exception:
        log.exception("duty_failed", duty=getattr(duty, "func", duty).__name__)


def _delete_expired_sessions(services: Services) -> None:
    now = datetime.now(UTC)
    with services.database.begin() as session:
        token_store.delete_expired(session, before=now - _TOKEN_MEMORY)
        session_store.delete_old(session, sessions_before=now, devices_before=now - _DEVICE_MEMORY)


def _delete_leftovers(services: Services) -> None:
    disk_space.delete_leftovers(services.settings)


def _requeue_lost(services: Services) -> None:
    """Queue unfinished jobs that have no entry in the queue, in one worker at a time."""
    with services.database.begin() as session:
        if not queue.lock_requeueing(session):
            return
        for job_id in queue.unfinished_without_queue_entry(session):
            # It may have been cancelled since it was read.
            locked = job_store.lock_job(session, job_id)
            if locked is None or locked[0].status not in UNFINISHED:
                continue
            log.warning("job_requeued", job_id=str(job_id))
            queue.enqueue(session, job_id)
