"""kill -9 of `portal migrate`, `portal backup` and `portal restore` at any moment."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from bench import databases
from portal.store import migrations
from tests.conftest import PASSWORD, Portal
from tests.faults.conftest import Tally
from tests.faults.world import undisturbed

_PORTAL = [sys.executable, "-c", "from portal.processes.cli import main; main()"]
# So many migrations are undone, and run while they are killed.
_BACK = 12
_TIMEOUT_S = 300


class Command:
    """A command of the portal on this test's database."""

    def __init__(self, portal: Portal, *arguments: str | Path) -> None:
        self._environment = os.environ | {
            "DATABASE_URL": databases.plain(portal.services.database.url),
            "PORTAL_DATA_DIR": str(portal.services.settings.data_dir),
            "PORTAL_SECRET_KEY": "a key for tests that is long enough for HS256",
            "PORTAL_EMBEDDING__PROVIDER": "hashing",
            "PORTAL_ADMIN_PASSWORD": PASSWORD,
        }
        self._arguments = [*_PORTAL, *map(str, arguments)]

    def run(self) -> float:
        """Run it to its end; return how long that took."""
        began = time.monotonic()
        done = subprocess.run(
            self._arguments, env=self._environment, capture_output=True, text=True, check=False,
            timeout=_TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return time.monotonic() - began

    def kill(self, after_s: float) -> bool:
        """Kill it after this time; return whether it was still at work."""
        with subprocess.Popen(
            self._arguments, env=self._environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                process.wait(after_s)
            except subprocess.TimeoutExpired:
                process.kill()
                return True
            return False


def moment(rng: random.Random, usual_s: float) -> float:
    """Choose a moment of a run: its first part only loads the program."""
    return usual_s * rng.uniform(0.3, 1.05)


@pytest.mark.slow
def test_killed_migrations_continue_and_lose_nothing(
    portal: Portal, database_url: str, rng: random.Random, counts: dict[str, int], tally: Tally
) -> None:
    portal.add("The heron keeps the lighthouse lamp.\n\n" * 50, title="Heron")
    portal.add("灯塔的预算在第七章。" * 100, title="灯塔")
    before = undisturbed(portal.services)
    portal.services.database.dispose()
    back_to = migrations.known_revisions()[-_BACK]
    command = Command(portal, "migrate")
    migrations.migrate(database_url, back_to)
    usual_s = command.run()
    engine = create_engine(database_url)
    for _ in range(counts["migrate"]):
        migrations.migrate(database_url, back_to)
        while True:
            was_killed = command.kill(moment(rng, usual_s))
            with engine.connect() as connection:
                revision = migrations.current_revision(connection)
            if was_killed:
                break
        tally.note("`portal migrate` killed", recovery_s=command.run())
        with engine.connect() as connection:
            assert migrations.differences(connection) == [], revision
            assert migrations.current_revision(connection) == migrations.newest_revision()
    engine.dispose()
    assert undisturbed(portal.services) == before


@pytest.mark.slow
def test_killed_backups_and_restores_leave_all_or_nothing(
    portal: Portal,
    database_url: str,
    tmp_path: Path,
    rng: random.Random,
    counts: dict[str, int],
    tally: Tally,
) -> None:
    portal.add("The heron keeps the lighthouse lamp.\n\n" * 50, title="before")
    before = undisturbed(portal.services)
    portal.services.database.dispose()
    file = tmp_path / "portal.tar"
    usual_s = Command(portal, "backup", file).run()
    for number in range(counts["backup"]):
        other = tmp_path / f"killed{number}.tar"
        command = Command(portal, "backup", other)
        if command.kill(moment(rng, usual_s)):
            # Only a complete one gets its name.
            recovery_s = None if other.exists() else command.run()
            tally.note("`portal backup` killed", recovery_s=recovery_s)
        assert other.stat().st_size > file.stat().st_size / 2
        file = other
    engine = create_engine(database_url)
    restore = Command(portal, "restore", file, "--replace")
    usual_s = restore.run()
    for number in range(counts["restore"]):
        with engine.begin() as connection:
            connection.execute(text("UPDATE documents SET title = :t"), {"t": f"after{number}"})
        engine.dispose()
        while not restore.kill(moment(rng, usual_s)):
            usual_s *= 0.8  # The machine has become faster; it is whole again, as before the kill.
            with engine.begin() as connection:
                connection.execute(text("UPDATE documents SET title = :t"), {"t": f"after{number}"})
            engine.dispose()
        # Its sessions end as soon as the server notices.
        with engine.connect() as connection:
            titles = connection.execute(text("SELECT title FROM documents")).scalars().all()
            chunks = connection.scalar(text("SELECT count(*) FROM document_chunks"))
        engine.dispose()
        assert titles in (["before"], [f"after{number}"])
        assert chunks == len(before)
        usual_s = restore.run()
        tally.note("`portal restore` killed", recovery_s=usual_s)
    assert undisturbed(portal.services) == before
