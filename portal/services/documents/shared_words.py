"""Words of shared chunks. pg_textsearch adds them slowly, and keyword searches wait meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from portal.services import Services
from portal.services.transactions import reading
from portal.store.documents.texts import shared_words
from portal.store.session import Session

# Each takes half a millisecond, for which keyword searches wait.
_CHUNKS_AT_ONCE = 50
_FILLED_AT_ONCE_S = 2.0

_are_left_by = reading(shared_words.are_left_by)

log = structlog.get_logger(__name__)


@contextmanager
def sharing(services: Services) -> Iterator[Session]:
    """Open a transaction that may share many chunks. If there are more than a few hundred, the
    words of the rest are added after the commit; if that fails, the change stands and housekeeping
    adds them."""
    with services.database.begin() as session:
        yield session
        transaction = shared_words.transaction_of(session)
    try:
        # A change that shares nothing does not wait for the words of other changes.
        if transaction and _are_left_by(services, transaction):
            fill(services, seconds=_FILLED_AT_ONCE_S)
    except Exception as error:  # noqa: BLE001 - a job or a request that succeeded must not fail
        log.warning("words_left_to_housekeeping", error_type=type(error).__name__)


def fill(
    services: Services, *, seconds: float, should_stop: Callable[[], bool] = lambda: False
) -> int:
    """Add missing words for about `seconds`, or until `should_stop` returns True; return the number
    of chunks. The next call continues, at the latest that of housekeeping."""
    deadline = time.monotonic() + seconds
    filled, is_last = 0, False
    while not is_last:
        with services.database.begin() as session:
            count = shared_words.fill(session, _CHUNKS_AT_ONCE)
            filled += count
            is_over = time.monotonic() >= deadline or should_stop()
            is_last = count < _CHUNKS_AT_ONCE or is_over
            if is_last and filled:
                shared_words.note_change(session)
    return filled
