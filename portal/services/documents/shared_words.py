"""Words of shared chunks, which pg_textsearch adds slowly and while no search by words can run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from portal.services import Services
from portal.store.documents.texts import shared_words
from portal.store.session import Session

# Half a millisecond each, for which searches by words wait.
_CHUNKS_AT_ONCE = 50
_FILLED_AT_ONCE_S = 2.0


@contextmanager
def sharing(services: Services) -> Iterator[Session]:
    """Open a transaction that may share many chunks. The words of more than some hundred are added
    after it."""
    with services.database.begin() as session:
        yield session
    fill(services, seconds=_FILLED_AT_ONCE_S)


def fill(services: Services, *, seconds: float) -> int:
    """Add words that are still missing, for about that long; return of how many chunks. What is
    left is for the next call, at the latest for housekeeping."""
    deadline = time.monotonic() + seconds
    filled = 0
    while time.monotonic() < deadline:
        with services.database.begin() as session:
            count = shared_words.fill(session, _CHUNKS_AT_ONCE)
        filled += count
        if count < _CHUNKS_AT_ONCE:
            break
    if filled:
        with services.database.begin() as session:
            shared_words.note_change(session)
    return filled
