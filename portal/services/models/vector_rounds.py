"""Goes through the stored chunks bit by bit, to find those that lost their vectors."""

from __future__ import annotations

from threading import Lock
from uuid import UUID

from portal.store.embedding_models import builds as build_store
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.session import Session

# Some tens of milliseconds: searches must not notice a round. Where all is lost the first tells.
CHUNKS_PER_ROUND = 20_000


class VectorRounds:
    """Where this process is in its way through the chunks. Safe between threads."""

    def __init__(self, *, chunks: int = CHUNKS_PER_ROUND) -> None:
        self._chunks = chunks
        self._lock = Lock()
        self._after: UUID | None = None

    def find_missing(self, session: Session, model: RegisteredModel) -> bool:
        """Whether some of the next chunks have no vector by this model. Past the last one it
        starts over the next time."""
        with self._lock:
            found = build_store.look_for_missing(
                session, model, after=self._after, limit=self._chunks
            )
            self._after = found.last
            return found.is_some
