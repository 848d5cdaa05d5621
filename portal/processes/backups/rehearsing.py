"""Rehearsing a restore: into a temporary data directory, which is deleted afterwards."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from portal.container import opened_services
from portal.database.embedded import borrowed
from portal.domain.search import SearchRequest
from portal.errors import BackupRefused
from portal.processes.backups import recording, restoring
from portal.processes.backups.encryption import Key
from portal.processes.backups.manifest import Manifest
from portal.processes.backups.restoring import Note, Report
from portal.services.search import engine
from portal.settings import Settings
from portal.store.documents import question_texts
from portal.store.people import accounts

_PREFIX = "portal-rehearsal-"
_ENTERED = 0o711
_SEARCHES = 50
_QUERY_CHARACTERS = 200
# Not used by the trial portal: it has the backup's key, so it would share the serving portal's
# limits and caches in Redis, and would read from its replicas.
_OF_THE_SERVING_PORTAL = {"database_url": None, "database_replica_url": None, "redis_url": None}


def rehearse(
    settings: Settings, path: Path, *, key: Key | None, report: Report, note: Note
) -> Manifest:
    """Restore a backup into a temporary portal on the bundled server, search it, and record the
    outcome in the portal of the settings. Needs as much temporary space as the portal has data.

    Raises what `restoring.restore` raises; BackupRefused if most searches do not find their
    document; DatabaseUnavailable if the outcome cannot be recorded.
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
            report("searching")
            _check_searches(trial)
        except Exception:  # Any error means failure: a full disk as well as a damaged file.
            recording.record_rehearsal(url, path, taken_at=None, has_failed=True)
            raise
        recording.record_rehearsal(url, path, taken_at=manifest.taken_at, has_failed=False)
        return manifest


def _check_searches(trial: Settings) -> None:
    """Search for the first words of the newest documents; each document should be in the first ten
    results. Documents with similar beginnings compete, so half of them are enough. Raises
    BackupRefused."""
    with borrowed(trial.data_dir) as url, opened_services(trial, url) as services:
        with services.database.begin() as session:
            row = accounts.first_active_admin(session)
            if row is None:
                return
            admin = accounts.to_user(row)
            texts = question_texts.read_newest(session, admin, limit=_SEARCHES)
        queries = {text.body[:_QUERY_CHARACTERS].strip(): text.title for text in texts}
        queries.pop("", None)
        found = 0
        for query, title in queries.items():
            request = SearchRequest(query=query, top_n=10, operators=False)
            hits = engine.search(services, admin, request).hits
            found += any(hit.title == title for hit in hits)
    if found < len(queries) / 2:
        raise BackupRefused(
            f"The backup was restored, but of {len(queries)} searches for the first words "
            f"of documents only {found} found their document. Run `portal doctor --deep` on the "
            "portal that serves, and take a new backup."
        )


@contextmanager
def _directory() -> Iterator[Path]:
    """Yield a temporary directory, locked while this process uses it."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as directory:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The bundled server may run as another user, who must be able to enter it.
            os.fchmod(descriptor, _ENTERED)
            yield Path(directory)
        finally:
            os.close(descriptor)


def _delete_leftovers() -> None:
    """Delete the directories of killed rehearsals: each has a copy of the whole portal."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # It is gone, or belongs to another user.
        try:
            found = os.fstat(descriptor)
            # A directory that another rehearsal has not locked yet does not have this mode yet.
            if found.st_uid == os.getuid() and found.st_mode & 0o777 == _ENTERED:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            pass  # Its lock is held: that rehearsal still runs.
        finally:
            os.close(descriptor)
