"""Housekeeping that every worker does between jobs, safe to do twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import structlog

from portal.domain.jobs import UNFINISHED
from portal.services import Services
from portal.services.documents import (
    disk_space,
    idempotency,
    notifications,
    reanalysis,
    rereading,
    trash,
)
from portal.services.models import builds, calibrating
from portal.services.operations import audit_log, setup
from portal.services.people import oidc_sign_ins, second_factors
from portal.store.documents import jobs as job_store
from portal.store.documents import queue
from portal.store.people import sessions as session_store
from portal.store.people import tokens as token_store

log = structlog.get_logger(__name__)

# An ended token is remembered this long, so that a copied refresh token is still recognised.
_TOKEN_MEMORY = timedelta(days=30)
# As long as a browser keeps the cookie that it is known by.
_DEVICE_MEMORY = timedelta(days=400)
# A share of the time between two rounds: searches and ingestion come first.
_REANALYSIS_S = 10.0
_PURGE_S = 5.0


def run(services: Services) -> None:
    """Requeue jobs and builds that the queue lost, and have vectors made where they are gone;
    forget tokens that ended long ago, keys of requests, old notifications and audit entries,
    and see that the keyword index still answers: after a restart of the server an early one
    falls silent. A model without constants of confidence gets them. What an older analyser or
    reader made of documents is made again bit by bit, and what lies in the trash for long is
    purged."""
    setup.heal_keyword_index(services)
    builds.requeue_lost(services)
    _requeue_lost(services)
    with services.database.begin() as session:
        token_store.delete_expired(session, before=datetime.now(UTC) - _TOKEN_MEMORY)
        session_store.delete_old(
            session,
            sessions_before=datetime.now(UTC),
            devices_before=datetime.now(UTC) - _DEVICE_MEMORY,
        )
    second_factors.forget_old(services)
    oidc_sign_ins.forget_old(services)
    idempotency.forget_old(services)
    notifications.forget_old(services)
    audit_log.delete_expired(services)
    disk_space.clear_left_behind(services.settings)
    calibrating.fit_if_due(services)
    reanalysis.reanalyse_for(services, seconds=_REANALYSIS_S)
    rereading.reread_outdated(services)
    trash.purge_forgotten(services, seconds=_PURGE_S)


def _requeue_lost(services: Services) -> None:
    """Queue unfinished jobs of which the queue knows nothing, unless another worker is at that."""
    with services.database.begin() as session:
        if not queue.hold_lost_jobs(session):
            return
        for job_id in queue.unfinished_without_queue_entry(session):
            # Someone may have cancelled it, or thrown its document away, since it was looked for.
            job = job_store.lock_job(session, job_id)
            if job is None or job.status not in UNFINISHED:
                continue
            log.warning("job_requeued", job_id=str(job_id))
            queue.enqueue(session, job_id)
