"""A job in its own process, so that a file that crashes its reader crashes nothing else.

A killed worker does not leave a reason. After two such deaths in a row, the third attempt runs in
its own process: if that is killed while the worker lives, the file was the cause. Any other end
says nothing about the file, and the job is retried.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from uuid import UUID

import structlog

from portal.container import build_services
from portal.errors import Unavailable
from portal.observability import tracing
from portal.services import Services
from portal.services.documents.ingestion import attempts, indexing
from portal.settings import Settings

log = structlog.get_logger(__name__)

_POLL_S = 0.2
_ASKED_TO_END = (-signal.SIGINT, -signal.SIGTERM)
# Spawned, not forked: a fork would share the worker's connections and copy locks that are held.
_processes = multiprocessing.get_context("spawn")


def index_alone(services: Services, job_id: UUID, *, should_stop: Callable[[], bool]) -> None:
    """Run `indexing.index_document` in its own process."""
    url = services.database.url
    settings = services.settings.model_copy(update={"database_url": url})
    process = _processes.Process(target=_index, args=(settings, job_id, tracing.origin()))
    process.start()
    while process.is_alive():
        if should_stop():
            process.kill()
            process.join()
            attempts.hand_back(services, job_id)
            return
        process.join(_POLL_S)
    _handle_exit(services, job_id, process.exitcode or 0)


def _handle_exit(services: Services, job_id: UUID, exit_status: int) -> None:
    if exit_status in _ASKED_TO_END:
        attempts.hand_back(services, job_id)
    elif exit_status < 0:
        log.error("job_killed_its_process", job_id=str(job_id), exit_status=exit_status)
        attempts.fail_crashing_job(services, job_id)
    elif exit_status > 0:
        # For example a lost database; errors of the file are recorded by the process itself.
        log.error("job_process_failed", job_id=str(job_id), exit_status=exit_status)
        attempts.fail(services, job_id, Unavailable())


def _index(settings: Settings, job_id: UUID, origin: dict[str, str]) -> None:
    # Ctrl-C and service managers signal all processes at once; the worker decides for this one.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    services = build_services(settings)
    with tracing.resume(origin, task="isolated"):
        indexing.index_document(services, job_id)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
