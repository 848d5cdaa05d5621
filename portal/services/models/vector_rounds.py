"""Incremental rounds through the stored chunks, to find those that lost their vectors."""

from __future__ import annotations

from threading import Lock
from uuid import UUID

from portal.store.embedding_models import builds as build_store
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Session

# Takes some tens of milliseconds, so that searches do not slow down. If all vectors are lost, the
# first batch shows it.
CHUNKS_PER_ROUND = 20_000


class VectorRounds:
    """A process's position in its round through the chunks. Thread-safe."""

    def __init__(self, *, chunks: int = CHUNKS_PER_ROUND) -> None:
        self._chunks = chunks
        self._lock = Lock()
        self._after: UUID | None = None

    def find_missing(self, session: Session, model: RegisteredModel) -> bool:
        """Return whether some of the next chunks have no vector from this model. After the last
        chunk the next call starts over."""
        with self._lock:
            found = build_store.check_missing(session, model, after=self._after, limit=self._chunks)
            self._after = found.last
            return found.is_some
