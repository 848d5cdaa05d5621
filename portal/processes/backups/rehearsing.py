"""Rehearsing a restore: into a data directory of its own, which is deleted afterwards."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from portal.database.embedded import borrowed
from portal.processes.backups import recording, restoring
from portal.processes.backups.encryption import Key
from portal.processes.backups.manifest import Manifest
from portal.processes.backups.restoring import Note, Report
from portal.settings import Settings

_PREFIX = "portal-rehearsal-"
_ENTERED = 0o711
# The trial portal has the backup's key: it would share the serving portal's limits and caches in
# Redis, and read what its replicas have.
_OF_THE_SERVING_PORTAL = {"database_url": None, "database_replica_url": None, "redis_url": None}


def rehearse(
    settings: Settings, path: Path, *, key: Key | None, report: Report, note: Note
) -> Manifest:
    """Restore a backup into a temporary portal on the bundled server, and record in the portal of
    the settings whether that succeeded. Needs as much temporary space as the portal has data.

    Raises as `restoring.restore`; DatabaseUnavailable where the outcome cannot be recorded.
    """
    with ExitStack() as stack:
        url = settings.database_url or stack.enter_context(
            borrowed(settings.data_dir, report=report)
        )
        _delete_leftovers()
        directory = stack.enter_context(_directory())
        trial = settings.model_copy(update={"data_dir": directory} | _OF_THE_SERVING_PORTAL)
        try:
            manifest = restoring.restore(
                trial, path, replace=False, key=key, report=report, note=note
            )
        except Exception:  # A full disk as well as a damaged file.
            recording.record_rehearsal(url, path, taken_at=None, has_failed=True)
            raise
        recording.record_rehearsal(url, path, taken_at=manifest.taken_at, has_failed=False)
        return manifest


@contextmanager
def _directory() -> Iterator[Path]:
    """Yield a temporary directory, locked as long as this process lives."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as directory:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The bundled server may run as another user, who has to enter it.
            os.fchmod(descriptor, _ENTERED)
            yield Path(directory)
        finally:
            os.close(descriptor)


def _delete_leftovers() -> None:
    """Delete what rehearsals left that were killed: each is a copy of the whole portal."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # Gone, or of another user.
        try:
            found = os.fstat(descriptor)
            # One that another rehearsal has just made, and not yet locked, is not open to others.
            if found.st_uid == os.getuid() and found.st_mode & 0o777 == _ENTERED:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            pass  # It runs.
        finally:
            os.close(descriptor)
