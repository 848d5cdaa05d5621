"""The worker: reads documents and builds models from the queue, and recovers lost jobs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from uuid import UUID

import procrastinate
import psycopg_pool
import structlog
from procrastinate import JobContext
from procrastinate.exceptions import ConnectorException

from portal.domain.people.audit import Origin, Source
from portal.observability import metrics, tracing
from portal.processes import isolation
from portal.services import Services, audit
from portal.services.documents.ingestion import attempts, indexing
from portal.services.documents.sources import syncing
from portal.services.models import builds
from portal.services.operations import maintenance, setup
from portal.store.documents.ingestion import queue as queue_store
from portal.store.documents.ingestion.queue import INDEX_TASK, QUEUE_NAME, SLOW_QUEUE, SMALL_QUEUE
from portal.store.embedding_models.builds import BUILD_QUEUE, BUILD_TASK

log = structlog.get_logger(__name__)

# A worker counts as dead after four missed heartbeats.
_HEARTBEAT_S = 5.0
_SILENT_AFTER_S = 20.0
_RECOVERY_EVERY_S = 5.0
_HOUSEKEEPING_EVERY_S = 30.0
_SOURCES_EVERY_S = 10.0
# After this time, a document makes way for one of another user. Its progress is kept.
_SLICE_S = 15.0
# A file that takes longer than this to read is not small.
_SMALL_SLICE_S = 4.0
# Searches take precedence if both need the processor.
_NICENESS = 5
_MAX_THREADS = 32
_RECONNECT_S = 1.0


def create_queue(services: Services) -> procrastinate.App:
    """Return the queue with the portal's tasks, on the portal's database."""
    connector = procrastinate.PsycopgConnector(conninfo=services.database.conninfo)
    queue = procrastinate.App(connector=connector)

    # `origin` is the trace of the request that queued the job; a recovered job has none.
    @queue.task(name=INDEX_TASK, queue=QUEUE_NAME, pass_context=True)
    def index_document(
        context: JobContext, job_id: str, origin: dict[str, str] | None = None
    ) -> None:
        with tracing.resume(origin or {}, task=INDEX_TASK), metrics.working(INDEX_TASK):
            _index(services, UUID(job_id), context)

    @queue.task(name=BUILD_TASK, queue=BUILD_QUEUE, pass_context=True)
    def build_model(context: JobContext, name: str, origin: dict[str, str] | None = None) -> None:
        with tracing.resume(origin or {}, task=BUILD_TASK), metrics.working(BUILD_TASK):
            builds.build_slice(services, name, should_stop=context.should_abort)

    return queue


class _Slice:
    """The time that a job may take while one of another user waits. It begins with the first check,
    so that each attempt makes progress, and begins again when it is over."""

    def __init__(self, services: Services, job_id: UUID, length_s: float) -> None:
        self._services, self._job_id, self._length_s = services, job_id, length_s
        self._ends_at: float | None = None

    def is_over(self) -> bool:
        now = time.monotonic()
        if self._ends_at is not None and now < self._ends_at:
            return False
        has_begun = self._ends_at is not None
        is_over = has_begun and attempts.has_others_waiting(self._services, self._job_id)
        self._ends_at = now + self._length_s
        return is_over


def _index(services: Services, job_id: UUID, context: JobContext) -> None:
    """Read and embed a document, in slices while others wait. A file that takes longer than a slice
    to read moves to the slow queue, where only a shutdown interrupts reading; then it moves back,
    and its chunks are embedded in slices."""
    if attempts.is_suspect(services, job_id):
        isolation.index_alone(services, job_id, should_stop=context.should_abort)
        return
    is_slow = context.job.queue == SLOW_QUEUE
    length_s = min(_SLICE_S, _SMALL_SLICE_S) if context.job.queue == SMALL_QUEUE else _SLICE_S
    reading, embedding = (_Slice(services, job_id, length_s) for _ in range(2))
    indexing.index_document(
        services,
        job_id,
        should_stop=lambda: is_slow or context.should_abort() or embedding.is_over(),
        # Interrupted while reading, a slow file stays in the slow queue when the worker stops.
        should_stop_reading=lambda: context.should_abort() if is_slow else reading.is_over(),
        should_quit=lambda: not is_slow and context.should_abort(),
    )


def run(services: Services) -> None:
    """Work until a signal arrives; a running job is left to the next worker, with its progress."""
    os.nice(_NICENESS)
    asyncio.run(_run(services))


def work_until_empty(services: Services, *, concurrency: int = 1) -> None:
    """Run all jobs that are due, and return."""

    async def work() -> None:
        queue = create_queue(services)
        async with queue.open_async():
            await queue.run_worker_async(
                queues=[QUEUE_NAME, SMALL_QUEUE, SLOW_QUEUE],
                concurrency=concurrency,
                wait=False,
                install_signal_handlers=False,
                delete_jobs="successful",
            )

    asyncio.run(work())


@contextmanager
def working(services: Services) -> Iterator[threading.Thread]:
    """Run a worker in a thread of this process, for `portal import --wait` if no other is running.
    At the end, a running job is left to the next worker, with its progress."""
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_work_until(services, stopping))

    thread = threading.Thread(target=work, name="worker", daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        with contextlib.suppress(RuntimeError):  # The loop is closed if the worker failed.
            loop.call_soon_threadsafe(stopping.set)
        thread.join()


def has_live_workers(services: Services) -> bool:
    """Return whether any worker has sent a heartbeat recently."""
    with services.database.begin() as session:
        return queue_store.has_live_workers(session, within_s=_SILENT_AFTER_S)


async def _run(services: Services) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await _work_until(services, stopping)


async def _work_until(services: Services, stopping: asyncio.Event) -> None:
    # Jobs and timers may occupy threads for minutes, and the default is too low on few cores.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_MAX_THREADS))
    # Jobs and timers run in copies of this context.
    audit.set_origin(Origin(Source.WORKER))
    while not stopping.is_set():
        # `_work` ends if the database is lost. Loaded models stay loaded.
        try:
            await _work(services, stopping)
        except (ConnectorException, psycopg_pool.PoolTimeout) as error:
            log.warning("queue_lost", error_type=type(error).__name__)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), _RECONNECT_S)


async def _work(services: Services, stopping: asyncio.Event) -> None:
    """Work until `stopping` is set or the queue is unreachable."""
    queue = create_queue(services)
    async with queue.open_async():
        await _prepare_keyword_index(services)
        async with _timers(services, queue):
            await _run_queues(queue, stopping)


async def _prepare_keyword_index(services: Services) -> None:
    """Rebuild or drop a keyword index that came from another server, before anything is stored: on
    a promoted replica its file is empty, and each job would fail."""
    try:
        await asyncio.to_thread(setup.prepare_keyword_index, services)
    except Exception as error:  # noqa: BLE001 - housekeeping tries again
        log.warning("keyword_index_not_healed", error_type=type(error).__name__)


async def _run_queues(queue: procrastinate.App, stopping: asyncio.Event) -> None:
    tasks = [
        asyncio.create_task(stopping.wait()),
        asyncio.create_task(_work_on(queue, [QUEUE_NAME, SMALL_QUEUE, BUILD_QUEUE])),
        # Reserved for small files, so that they do not wait for long ones.
        asyncio.create_task(_work_on(queue, [SMALL_QUEUE])),
        asyncio.create_task(_work_on(queue, [SLOW_QUEUE])),
    ]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended


async def _work_on(queue: procrastinate.App, names: list[str]) -> None:
    await queue.run_worker_async(
        queues=names,
        wait=True,
        install_signal_handlers=False,
        delete_jobs="successful",
        update_heartbeat_interval=_HEARTBEAT_S,
        stalled_worker_timeout=_SILENT_AFTER_S,
        # Jobs are asked to stop at once: their progress is kept, and they continue later.
        shutdown_graceful_timeout=0.1,
    )


@asynccontextmanager
async def _timers(services: Services, queue: procrastinate.App) -> AsyncIterator[None]:
    """Run recovery, housekeeping and the syncing of sources, in every worker: any of them may be
    the only one left."""
    ending = threading.Event()

    async def sync(*, is_web: bool) -> None:
        await asyncio.to_thread(
            syncing.sync_due, services, is_web=is_web, should_stop=ending.is_set
        )

    timers = [
        # Two timers, so that directories do not wait for slow web servers.
        asyncio.create_task(_run_every(_SOURCES_EVERY_S, lambda: sync(is_web=False))),
        asyncio.create_task(_run_every(_SOURCES_EVERY_S, lambda: sync(is_web=True))),
        asyncio.create_task(_run_every(_RECOVERY_EVERY_S, lambda: _recover(queue))),
        *(
            asyncio.create_task(
                _run_every(
                    _HOUSEKEEPING_EVERY_S,
                    partial(asyncio.to_thread, duty, services, should_stop=ending.is_set),
                )
            )
            # Two timers, since building the keyword index takes minutes if there are many chunks.
            for duty in (maintenance.run, setup.repair_keyword_index)
        ),
    ]
    try:
        yield
    finally:
        ending.set()
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)


async def _recover(queue: procrastinate.App) -> None:
    """Requeue the jobs of dead workers. This runs by a timer, since a job of the queue could itself
    be stuck."""
    stalled = await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=_SILENT_AFTER_S)
    for job in stalled:
        log.warning("job_recovered", queue_job_id=job.id)
        await queue.job_manager.retry_job(job)


async def _run_every(seconds: float, action: Callable[[], Awaitable[None]]) -> None:
    """Run an action forever; log failures and retry the next time."""
    while True:
        try:
            await action()
        except Exception as error:  # noqa: BLE001 - the timer must outlive every failure
            log.warning("timer_failed", error_type=type(error).__name__)
        await asyncio.sleep(seconds)
