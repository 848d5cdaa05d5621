"""Room on the disk of the data directory, and the folder in it for files on their way.

A database that finds its disk full when it writes its log ends with a crash, not with an answer. So
uploads and workers stop a little before, where the database is the embedded one on that disk. One
elsewhere says itself that it has no room, which is told in the same words.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

from portal.database.cluster_files import CLUSTER
from portal.errors import StorageFull
from portal.services import Services
from portal.settings import Settings

# Its rows, and the database's log of them.
_WRITINGS = 2
# No reading takes that long (PORTAL_INGEST__OCR_TIMEOUT_S).
_LEFT_BEHIND_AFTER_S = 2 * 24 * 3600


def expect_room_for(services: Services, size_bytes: int) -> None:
    """Raises StorageFull when that much more would eat into PORTAL_DISK_RESERVE_MB."""
    _expect(services.settings, _WRITINGS * size_bytes, reserve_share=1)


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
