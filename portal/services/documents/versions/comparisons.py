"""Differences between two texts, computed one pair at a time and cached.

A comparison keeps a processor busy for some seconds and both texts in memory, so several at once
would slow down everything else. Revisions never change, so results are cached by both ids; callers
check permissions before each lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import BoundedSemaphore, Lock
from uuid import UUID

from cachetools import LRUCache

from portal.errors import Overloaded, TextsTooLong, TooManyLines
from portal.text.likeness.differences import Piece, differences, has_more_units

MAX_CHARACTERS = 6_000_000
MAX_UNITS = 200_000
"""Texts with more characters in total, or more lines and sentences, are not compared."""

_TIMEOUT_S = 1.0
_MAX_KEPT = 12_000_000
"""Size of the cache in characters, plus a little for each piece."""
_PIECE_CHARACTERS = 100

Pieces = tuple[Piece, ...]


def require_comparable_length(characters: int) -> None:
    """Raise TextsTooLong if two texts exceed the limit for comparison."""
    if characters > MAX_CHARACTERS:
        raise TextsTooLong(characters=characters, limit=MAX_CHARACTERS)


def compare(old: str, new: str) -> Pieces:
    """Return the differences between two texts. Raises TextsTooLong, TooManyLines."""
    require_comparable_length(len(old) + len(new))
    if has_more_units((old, new), than=MAX_UNITS):
        raise TooManyLines(limit=MAX_UNITS)
    return tuple(differences(old, new))


class Comparisons:
    """A cache of comparisons, one per process. Thread-safe."""

    def __init__(self) -> None:
        self._place = BoundedSemaphore(1)
        self._lock = Lock()
        self._pieces: LRUCache[tuple[UUID, UUID], Pieces] = LRUCache(_MAX_KEPT, getsizeof=_size)

    def find(self, old_id: UUID, new_id: UUID, read: Callable[[], tuple[str, str]]) -> Pieces:
        """Return the differences between two revisions; `read` returns their texts, old and new.
        Raises Overloaded while another comparison runs, TextsTooLong, TooManyLines, and what `read`
        raises."""
        key = old_id, new_id
        found = self._get(key)
        if found is not None:
            return found
        if not self._place.acquire(timeout=_TIMEOUT_S):
            raise Overloaded
        try:
            # The previous holder of the lock may have computed the same pair.
            return self._get(key) or self._store(key, compare(*read()))
        finally:
            self._place.release()

    def _get(self, key: tuple[UUID, UUID]) -> Pieces | None:
        with self._lock:
            return self._pieces.get(key)

    def _store(self, key: tuple[UUID, UUID], pieces: Pieces) -> Pieces:
        if _size(pieces) <= _MAX_KEPT:
            with self._lock:
                self._pieces[key] = pieces
        return pieces


def _size(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.text) + _PIECE_CHARACTERS for piece in pieces)
