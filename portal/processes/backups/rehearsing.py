"""Rehearsing a restore: into a data directory of its own, which is deleted afterwards."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from portal.database.embedded import borrowed
from portal.errors import PortalError
from portal.processes.backups import recording, restoring
from portal.processes.backups.encryption import Key
from portal.processes.backups.manifest import Manifest
from portal.processes.backups.restoring import Note, Report
from portal.settings import Settings


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
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="portal-rehearsal-"))
        # The bundled server may run as another user, who has to enter it.
        Path(directory).chmod(0o711)
        trial = settings.model_copy(update={"data_dir": Path(directory), "database_url": None})
        try:
            manifest = restoring.restore(
                trial, path, replace=False, key=key, report=report, note=note
            )
        except PortalError:
            recording.record_rehearsal(url, path, taken_at=None, has_failed=True)
            raise
        recording.record_rehearsal(url, path, taken_at=manifest.taken_at, has_failed=False)
        return manifest
