"""A base backup and archived WAL bring a portal back to any moment (docs/backups.md)."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import psycopg
import pytest

from portal.container import build_services
from portal.database.embedded import EmbeddedPostgres
from portal.database.server.programs import installation, run_program
from portal.database.server.server_user import choose_server_user, open_path_for
from portal.domain.search import SearchMode, SearchRequest
from portal.services import Services
from portal.services.documents import library
from portal.services.operations import setup
from portal.services.search import engine
from tests.conftest import SERVER, Portal, make_settings
from tests.faults.world import undisturbed

_TIMEOUT_S = 60


def opened(data_dir: Path, url: str) -> tuple[Services, Portal]:
    services = build_services(make_settings(data_dir, url))
    list(setup.prepare_database(services))
    return services, Portal.of(services)


def owned_like_the_server(folder: Path, cluster: Path) -> None:
    folder.mkdir(parents=True, mode=0o700)
    user = choose_server_user(cluster)
    open_path_for(user, folder)
    if os.geteuid() == 0:
        os.chown(folder, user.pw_uid, user.pw_gid)


@pytest.mark.slow
def test_a_portal_returns_to_the_moment_before_a_mistake(run_dir: Path) -> None:
    root = run_dir / "point-in-time"
    archive, base = root / "archive", root / "base"
    server = EmbeddedPostgres(
        root / "old",
        extra_settings=SERVER | {
            "archive_mode": "on",
            "archive_command": f"test ! -f {archive}/%f && cp %p {archive}/%f",
            "wal_level": "replica",
        },
    )  # fmt: skip
    url = server.start()
    owned_like_the_server(archive, server.cluster)
    services, portal = opened(root / "old", url)
    portal.add("The heron keeps the lighthouse lamp.", title="before the base backup")
    owned_like_the_server(base, server.cluster)
    user = choose_server_user(server.cluster)
    arguments = ["-h", str(server.cluster), "-U", "portal", "-D", str(base), "-X", "none"]
    program = installation() / "bin" / "pg_basebackup"
    assert run_program(program, *arguments, "-c", "fast", user=user, at=server.cluster) is None
    later = portal.add("An otter guards the silver compass.", title="after the base backup")
    stored = undisturbed(services)
    with psycopg.connect(services.database.conninfo, autocommit=True) as connection:
        moment = connection.execute("SELECT now()").fetchone()
        assert moment is not None
        library.purge_document(services, portal.admin, later.id)
        last = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
        assert last is not None
        deadline = time.monotonic() + _TIMEOUT_S
        while not (archive / last[0]).exists():
            assert time.monotonic() < deadline, "the log is not archived"
            time.sleep(0.05)  # The progress of another process can only be polled.
    services.database.dispose()
    server.stop()

    restored = EmbeddedPostgres(
        root / "new",
        extra_settings=SERVER | {
            "restore_command": f"cp {archive}/%f %p",
            "recovery_target_time": str(moment[0]),
            "recovery_target_action": "promote",
            "hot_standby": "off",
        },
    )  # fmt: skip
    (root / "new").mkdir()
    shutil.copytree(base, restored.cluster)
    (restored.cluster / "recovery.signal").touch()
    if os.geteuid() == 0:
        for path in [restored.cluster, *restored.cluster.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid)
    try:
        services, portal = opened(root / "new", restored.start())
        assert undisturbed(services) == stored
        for mode in SearchMode:
            hits = engine.search(services, portal.admin, SearchRequest("silver compass", mode=mode))
            assert [hit.document_id for hit in hits.hits][:1] == [later.id], mode
        services.database.dispose()
    finally:
        restored.stop()
