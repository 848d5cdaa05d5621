"""A rehearsed restore does not touch the serving portal, reports failure, and leaves nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from portal.processes.backups import rehearsing, restoring
from portal.services import Services
from portal.settings import Settings
from portal.store.operations import health


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Settings]:
    """Return the settings of trial portals, each of which runs into a full disk."""
    used: list[Settings] = []

    def fill_the_disk(settings: Settings, *_: object, **__: object) -> None:
        used.append(settings)
        assert settings.data_dir.stat().st_mode & 0o777 == 0o711
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(restoring, "restore", fill_the_disk)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return used


def rehearse(services: Services, **changes: object) -> None:
    settings = services.settings.model_copy(update=changes)
    with pytest.raises(OSError, match="No space left"):
        rehearsing.rehearse(
            settings, Path("a.tar"), key=None, report=lambda _: None, note=lambda _: None
        )


def test_full_disk_counts_as_failed_and_nothing_is_left(
    services: Services, used: list[Settings], tmp_path: Path
) -> None:
    rehearse(services)
    with services.database.begin() as session:
        result = health.read_rehearsal(session)
    assert result is not None
    assert result["status"] == "failed"
    assert len(used) == 1
    assert list(tmp_path.glob("portal-rehearsal-*")) == []


def test_trial_shares_no_server_with_the_portal_that_serves(
    services: Services, used: list[Settings]
) -> None:
    rehearse(services, redis_url="redis://127.0.0.1:1", database_replica_url="postgresql://x")
    (trial,) = used
    assert (trial.database_url, trial.redis_url, trial.replica_urls) == (None, None, [])
    assert trial.data_dir != services.settings.data_dir


def test_next_rehearsal_deletes_what_a_killed_one_left(
    services: Services, used: list[Settings], tmp_path: Path
) -> None:
    killed, running, new, linked = (
        tmp_path / f"portal-rehearsal-{name}" for name in ("killed", "running", "new", "linked")
    )
    other = tmp_path / "other"
    for directory in (killed, running, other):
        (directory / "postgres").mkdir(parents=True)
        directory.chmod(0o711)
    new.mkdir(0o700)
    linked.symlink_to(other)
    descriptor = os.open(running, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    rehearse(services)
    os.close(descriptor)
    assert [path.exists() for path in (killed, running, new, linked, other)] == [
        False, True, True, True, True
    ]  # fmt: skip
    assert (other / "postgres").is_dir()
