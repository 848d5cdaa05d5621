"""Re-analysis of stored chunks after a change of the analyser, while the portal is running.

Until it is done, rows of both versions exist side by side. Queries use the new analyser, so chunks
of the old version may rank lower or be missed by keyword search; vector search still finds them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog

from portal.services import Services
from portal.services.documents.ingestion.chunk_storage import chunk_terms, chunk_text
from portal.store.documents import vocabulary
from portal.store.documents.ingestion import outdated_chunks
from portal.text.terms.analyser import analyser_version

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """The numbers of chunks analysed so far and left to do."""

    done: int
    left: int


def reanalyse(services: Services, *, batch_size: int = 500) -> Iterator[Progress]:
    """Analyse chunks of older versions again, with the vocabulary. Each batch is one transaction,
    so an interrupted run can be resumed. Ends when none is left or another process does this."""
    done = 0
    while batch := _reanalyse_batch(services, batch_size):
        done += batch
        with services.database.begin() as session:
            left = outdated_chunks.count_outdated(session, analyser_version())
        yield Progress(done, left)


def reanalyse_for(
    services: Services,
    *,
    seconds: float,
    batch_size: int = 100,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Run `reanalyse` for about this many seconds or until `should_stop` returns True, for a
    periodic task with other duties."""
    until = time.monotonic() + seconds
    for progress in reanalyse(services, batch_size=batch_size):
        if not progress.left:
            log.info("all chunks have the terms of this analyser", version=analyser_version())
        if time.monotonic() >= until or should_stop():
            log.info("chunks analysed again", done=progress.done, left=progress.left)
            return


def _reanalyse_batch(services: Services, batch_size: int) -> int:
    with services.database.begin() as session:
        if not outdated_chunks.try_lock_reanalysis(session):
            return 0
        chunks = outdated_chunks.lock_outdated(session, analyser_version(), limit=batch_size)
        parts = {c.id: (c.title, c.heading, c.context, c.content) for c in chunks}
        if parts:
            terms = {chunk_id: chunk_terms(*each) for chunk_id, each in parts.items()}
            outdated_chunks.write_terms(session, terms, analyser_version())
            vocabulary.add_words(session, [chunk_text(*each) for each in parts.values()])
        return len(parts)
