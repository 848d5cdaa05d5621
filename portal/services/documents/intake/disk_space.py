"""Free space on the disk of the data directory, and its folder for temporary files.

PostgreSQL crashes when the disk fills up while it writes its log. So uploads and workers stop a
little earlier if the embedded database is on that disk. An external database reports a full disk as
an error, which is shown with the same message.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from portal.database.server.cluster_files import CLUSTER
from portal.errors import StorageFull
from portal.services import Services
from portal.settings import Settings

# Files are written twice: as rows, and to the database's write-ahead log.
_WRITES_PER_FILE = 2
# No file takes that long to read (PORTAL_INGEST__OCR_TIMEOUT_S).
_LEFT_BEHIND_AFTER_S = 2 * 24 * 3600


class ReservedSpace:
    """Disk space reserved for pending writes, until they are written or it is closed. Keeps
    concurrent uploads of this process from counting the same free space twice. Thread-safe."""

    _lock = threading.Lock()
    _all_bytes = 0

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._left_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Reserve more bytes. Raises StorageFull when that would cut into
        PORTAL_DISK_RESERVE_MB."""
        with ReservedSpace._lock:
            _expect(self._settings, ReservedSpace._all_bytes + size_bytes, reserve_share=1)
            ReservedSpace._all_bytes += size_bytes
            self._left_bytes += size_bytes

    def fill(self, size_bytes: int) -> None:
        """Release bytes that are written: the disk itself now counts them as used."""
        with ReservedSpace._lock:
            filled = min(size_bytes, self._left_bytes)
            ReservedSpace._all_bytes -= filled
            self._left_bytes -= filled

    def close(self) -> None:
        self.fill(self._left_bytes)


@contextmanager
def room_for(services: Services, size_bytes: int) -> Iterator[None]:
    """Reserve space for a file of this size while the context is open. Raises StorageFull when that
    would cut into PORTAL_DISK_RESERVE_MB."""
    room = ReservedSpace(services.settings)
    room.take(_WRITES_PER_FILE * size_bytes)
    try:
        yield
    finally:
        room.close()


def require_disk_space(services: Services) -> None:
    """Raise StorageFull when half of the reserve is used up. The other half is for files accepted
    earlier, whose text and chunks need space too."""
    _expect(services.settings, 0, reserve_share=0.5)


def _expect(settings: Settings, needed_bytes: int, *, reserve_share: float) -> None:
    if not settings.disk_reserve_mb or not (settings.data_dir / CLUSTER).is_dir():
        return
    reserve_bytes = settings.disk_reserve_mb * 1024 * 1024 * reserve_share
    if shutil.disk_usage(settings.data_dir).free < needed_bytes + reserve_bytes:
        raise StorageFull


def temporary_dir(settings: Settings) -> Path:
    """Return the folder for temporary files, created if missing. Raises OSError."""
    path = settings.temporary_dir
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def delete_leftovers(settings: Settings) -> None:
    """Remove old temporary files that killed processes left behind."""
    before = time.time() - _LEFT_BEHIND_AFTER_S
    with suppress(OSError):
        for path in settings.temporary_dir.iterdir():
            if path.lstat().st_mtime >= before:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
