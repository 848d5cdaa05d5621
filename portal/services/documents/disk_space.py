"""Room on the disk of the data directory, and the folder in it for files on their way.

A database that finds its disk full when it writes its log ends with a crash, not with an answer. So
uploads and workers stop a little before, where the database is the embedded one on that disk. One
elsewhere says itself that it has no room, which is told in the same words.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from portal.database.cluster_files import CLUSTER
from portal.errors import StorageFull
from portal.services import Services
from portal.settings import Settings

# Its rows, and the database's log of them.
_WRITINGS = 2
# No reading takes that long (PORTAL_INGEST__OCR_TIMEOUT_S).
_LEFT_BEHIND_AFTER_S = 2 * 24 * 3600


class Room:
    """Bytes of the disk that are promised to whoever is about to write them, until they are on it
    or `close`: what is free is not promised twice, however many uploads of this process come
    together. Safe between threads."""

    _lock = threading.Lock()
    _all_bytes = 0

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._left_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Promise so much more. Raises StorageFull when that would eat into
        PORTAL_DISK_RESERVE_MB."""
        with Room._lock:
            _expect(self._settings, Room._all_bytes + size_bytes, reserve_share=1)
            Room._all_bytes += size_bytes
            self._left_bytes += size_bytes

    def fill(self, size_bytes: int) -> None:
        """So much is written: from now on the disk itself says that it is not free."""
        with Room._lock:
            filled = min(size_bytes, self._left_bytes)
            Room._all_bytes -= filled
            self._left_bytes -= filled

    def close(self) -> None:
        self.fill(self._left_bytes)


@contextmanager
def room_for(services: Services, size_bytes: int) -> Iterator[None]:
    """Within, a file of that size may go to the database. Raises StorageFull when it would eat
    into PORTAL_DISK_RESERVE_MB."""
    room = Room(services.settings)
    room.take(_WRITINGS * size_bytes)
    try:
        yield
    finally:
        room.close()


def expect_room_to_work(services: Services) -> None:
    """Raises StorageFull when half of the reserve is gone: the other half is for what was taken in
    before that, whose texts and passages want room too."""
    _expect(services.settings, 0, reserve_share=0.5)


def _expect(settings: Settings, needed_bytes: int, *, reserve_share: float) -> None:
    if not settings.disk_reserve_mb or not (settings.data_dir / CLUSTER).is_dir():
        return
    reserve_bytes = settings.disk_reserve_mb * 1024 * 1024 * reserve_share
    if shutil.disk_usage(settings.data_dir).free < needed_bytes + reserve_bytes:
        raise StorageFull


def temporary_dir(settings: Settings) -> Path:
    """The folder for files on their way, made where it is not there. Raises OSError."""
    path = settings.temporary_dir
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def clear_left_behind(settings: Settings) -> None:
    """Remove what processes that were killed left in it, long ago."""
    before = time.time() - _LEFT_BEHIND_AFTER_S
    with suppress(OSError):
        for path in settings.temporary_dir.iterdir():
            if path.lstat().st_mtime >= before:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
