"""The worker: reads documents and builds models from the queue, and picks up what others
dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import procrastinate
import structlog
from procrastinate import JobContext

from portal import metrics, tracing
from portal.errors import PortalError, Unavailable
from portal.services import Services, indexing, maintenance, model_builds
from portal.store import jobs as job_store
from portal.store.jobs import INDEX_TASK, QUEUE_NAME
from portal.store.model_builds import BUILD_QUEUE, BUILD_TASK

log = structlog.get_logger(__name__)

# A worker tells the queue every few seconds that it lives; after four silent beats it does not.
_HEARTBEAT_S = 5.0
_SILENT_AFTER_S = 20.0
_RECOVERY_EVERY_S = 5.0
_HOUSEKEEPING_EVERY_S = 30.0
_RETRY_WAIT_S = 10


def create_queue(services: Services) -> procrastinate.App:
    """The queue with our tasks, on the portal's own database."""
    connector = procrastinate.PsycopgConnector(conninfo=services.database.conninfo)
    queue = procrastinate.App(connector=connector)
    retry = procrastinate.RetryStrategy(
        max_attempts=indexing.MAX_ATTEMPTS,
        exponential_wait=_RETRY_WAIT_S,
        retry_exceptions={Unavailable},
    )

    # `origin` is of whoever enqueued the job (portal.tracing); nobody did where it was recovered.
    @queue.task(name=INDEX_TASK, queue=QUEUE_NAME, retry=retry, pass_context=True)
    def index_document(
        context: JobContext, job_id: str, origin: dict[str, str] | None = None
    ) -> None:
        tracing.resume(origin or {})
        with metrics.working(INDEX_TASK):
            _index(services, UUID(job_id), context.should_abort)

    @queue.task(name=BUILD_TASK, queue=BUILD_QUEUE, pass_context=True)
    def build_model(context: JobContext, name: str, origin: dict[str, str] | None = None) -> None:
        tracing.resume(origin or {})
        with metrics.working(BUILD_TASK):
            model_builds.build_slice(services, name, should_stop=context.should_abort)

    return queue


def _index(services: Services, job_id: UUID, should_stop: Callable[[], bool]) -> None:
    try:
        indexing.index_document(services, job_id, should_stop=should_stop)
    except Unavailable:
        raise
    except indexing.Interrupted:
        indexing.hand_back(services, job_id)
    except Exception as error:  # Nothing unforeseen may leave a document "processing" for ever.
        log.exception("job_failed", job_id=str(job_id), error_type=type(error).__name__)
        metrics.error_told(PortalError.code, "job")
        indexing.record_failure(services, job_id, PortalError())


def run(services: Services, *, concurrency: int = 1) -> None:
    """Work until a signal; a job in hand is finished first, or left to the next worker."""
    asyncio.run(_run(services, concurrency))


def work_until_empty(services: Services) -> None:
    """Do what is in the queue and come back: for `portal import --wait` with no worker about."""

    async def work() -> None:
        queue = create_queue(services)
        async with queue.open_async():
            await queue.run_worker_async(
                queues=[QUEUE_NAME],
                wait=False,
                install_signal_handlers=False,
                delete_jobs="successful",
            )

    asyncio.run(work())


def has_live_workers(services: Services) -> bool:
    """Whether some worker has given a sign of life of late."""
    with services.database.begin() as session:
        return job_store.has_live_workers(session, within_s=_SILENT_AFTER_S)


async def _run(services: Services, concurrency: int) -> None:
    queue = create_queue(services)
    async with queue.open_async():
        timers = [
            asyncio.create_task(_every(_RECOVERY_EVERY_S, lambda: _recover(queue))),
            asyncio.create_task(
                _every(_HOUSEKEEPING_EVERY_S, lambda: asyncio.to_thread(maintenance.run, services))
            ),
        ]
        try:
            await queue.run_worker_async(
                queues=[QUEUE_NAME, BUILD_QUEUE],
                concurrency=concurrency,
                wait=True,
                delete_jobs="successful",
                update_heartbeat_interval=_HEARTBEAT_S,
                stalled_worker_timeout=_SILENT_AFTER_S,
                # Jobs are asked to stop at once: what they did so far is kept and goes on later.
                shutdown_graceful_timeout=0.1,
            )
        finally:
            for timer in timers:
                timer.cancel()
            await asyncio.gather(*timers, return_exceptions=True)


async def _recover(queue: procrastinate.App) -> None:
    """Give back what a dead worker held.

    A timer of the worker's own rather than a job: a job could be stuck in the same queue.
    """
    stalled = await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=_SILENT_AFTER_S)
    for job in stalled:
        log.warning("job_recovered", queue_job_id=job.id)
        await queue.job_manager.retry_job(job)


async def _every(seconds: float, action: Callable[[], Awaitable[None]]) -> None:
    """Do something again and again; whatever fails once is logged and tried the next time."""
    while True:
        try:
            await action()
        except Exception as error:  # noqa: BLE001 - the timer must outlive whatever fails once
            log.warning("timer_failed", error_type=type(error).__name__)
        await asyncio.sleep(seconds)
