from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from portal.database import embedded
from portal.database.embedded import EmbeddedPostgres, borrowed
from portal.database.lock import DataDirLock
from portal.database.server import cluster_files
from portal.database.server.postmaster import running_postmaster
from portal.database.server.programs import installation
from portal.errors import ServerSetup
from tests.integration.database.conftest import QUICK

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the server a user")


def ask(url: str, query: str) -> object:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            result = connection.execute(text(query))
            return result.scalar() if result.returns_rows else None
    finally:
        engine.dispose()


def postmaster_pid(server: EmbeddedPostgres) -> int:
    found = running_postmaster(server.cluster)
    assert found is not None
    return found.pid


def kill_postmaster(server: EmbeddedPostgres) -> None:
    process = psutil.Process(postmaster_pid(server))
    process.kill()
    psutil.wait_procs([process], timeout=10)


def test_server_listens_on_no_network_address(server: EmbeddedPostgres) -> None:
    assert ask(server.url(), "SHOW listen_addresses") == ""
    assert psutil.Process(postmaster_pid(server)).net_connections(kind="inet") == []


def test_server_is_durable_and_sized_to_the_machine(server: EmbeddedPostgres) -> None:
    memory = cluster_files.machine_memory_bytes()
    settings = cluster_files.server_settings(
        memory_bytes=memory, socket_dir=Path("/tmp"), textsearch_prefix=None
    )
    assert {"fsync", "synchronous_commit", "full_page_writes"}.isdisjoint(settings)
    assert ask(server.url(), "SHOW full_page_writes") == "on"
    assert ask(server.url(), "SHOW jit") == "off"
    megabytes = int(settings["shared_buffers"].removesuffix("MB"))
    assert 64 <= megabytes <= 2048


@pytest.mark.parametrize(
    ("memory_mib", "buffers", "maintenance"),
    [(256, "64MB", "64MB"), (4096, "1024MB", "512MB"), (262_144, "2048MB", "2048MB")],
)
def test_settings_follow_the_memory(memory_mib: int, buffers: str, maintenance: str) -> None:
    settings = cluster_files.server_settings(
        memory_bytes=memory_mib * 1024 * 1024, socket_dir=Path("/tmp"), textsearch_prefix=None
    )
    assert (settings["shared_buffers"], settings["maintenance_work_mem"]) == (buffers, maintenance)


def test_bundled_pgvector_of_pgserver_is_never_used(server: EmbeddedPostgres) -> None:
    ask(server.url(), "CREATE EXTENSION IF NOT EXISTS vector")
    version = ask(server.url(), "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    assert version == "0.8.6"
    assert str(ask(server.url(), "SHOW dynamic_library_path")).startswith("$libdir:")


def test_chinese_words_have_trigrams(server: EmbeddedPostgres) -> None:
    ask(server.url(), "CREATE EXTENSION IF NOT EXISTS pg_trgm")
    assert ask(server.url(), "SELECT cardinality(show_trgm('知识门户')) > 0") is True


def test_a_second_start_joins_the_running_server(server: EmbeddedPostgres) -> None:
    before = postmaster_pid(server)
    assert EmbeddedPostgres(server.data_dir).start() == server.url()
    assert postmaster_pid(server) == before


def test_a_killed_server_comes_back_with_everything(own_server: EmbeddedPostgres) -> None:
    url = own_server.start()
    ask(url, "CREATE TABLE kept AS SELECT 42 AS answer")
    kill_postmaster(own_server)
    assert not own_server.is_running()
    assert ask(own_server.start(), "SELECT answer FROM kept") == 42


def test_a_pid_that_another_program_got_does_not_stop_the_start(
    own_server: EmbeddedPostgres,
) -> None:
    own_server.start()
    pid_file = own_server.cluster / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    kill_postmaster(own_server)
    owner = own_server.cluster.stat()
    with subprocess.Popen(
        ["sleep", "600"],  # This user may have no access to the Python interpreter.
        user=owner.st_uid if os.geteuid() == 0 else None,
    ) as other:
        for path in (pid_file, own_server.cluster / ".s.PGSQL.5432.lock"):
            path.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
            os.chown(path, owner.st_uid, owner.st_gid)
        assert not own_server.is_running()
        own_server.start()
        assert postmaster_pid(own_server) != other.pid
        assert other.poll() is None
        other.kill()


def test_a_long_path_in_chinese_works(tmp_path: Path) -> None:
    data_dir = tmp_path / ("很长的目录 with 'quotes' \"and\" $HOME " + "资料" * 20)
    assert len(os.fsencode(data_dir)) > 108
    server = EmbeddedPostgres(data_dir, extra_settings=QUICK)
    try:
        assert ask(server.start(), "SELECT 1") == 1
        found = running_postmaster(server.cluster)
        assert found is not None
        assert found.socket_dir.stat().st_mode & 0o077 == 0
        url = server.url()
        server.stop()
        assert not found.socket_dir.exists()
        assert server.start() == url
    finally:
        server.stop()


def test_another_major_version_is_refused_with_a_remedy(own_server: EmbeddedPostgres) -> None:
    own_server.start()
    own_server.stop()
    (own_server.cluster / "PG_VERSION").write_text("17\n")
    with pytest.raises(ServerSetup, match=r"PostgreSQL 17.*portal backup.*portal restore"):
        own_server.start()
    (own_server.cluster / "PG_VERSION").write_text("18\n")


def test_server_starts_without_pg_textsearch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_files, "pg_textsearch_prefix", lambda: None)
    with borrowed(tmp_path / "data", extra_settings=QUICK) as url:
        assert ask(url, "SHOW shared_preload_libraries") == ""


def test_failed_start_reports_the_reason_from_postgresql(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "data", extra_settings={"max_connections": "0"})
    with pytest.raises(ServerSetup, match=r"did not start.*max_connections"):
        server.start()


def test_interrupted_creation_is_repeated(own_server: EmbeddedPostgres) -> None:
    half = own_server.data_dir / "postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    assert ask(own_server.start(), "SELECT 1") == 1
    assert not half.exists()


def test_missing_embedded_server_is_reported_with_the_alternative(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ServerSetup, match="DATABASE_URL"):
        embedded.EmbeddedPostgres(tmp_path)


def test_commands_share_a_server_and_the_last_one_stops_it(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with borrowed(data_dir, extra_settings=QUICK) as first_url:
        with borrowed(data_dir) as second_url:
            assert second_url == first_url
        assert ask(first_url, "SELECT 1") == 1
        server = EmbeddedPostgres(data_dir)
        assert server.is_running()
    assert not server.is_running()


def test_second_portal_learns_who_holds_the_data_directory(tmp_path: Path) -> None:
    with DataDirLock(tmp_path) as lock:
        lock.announce("http://127.0.0.1:8000")
        expected = rf"already runs.*http://127\.0\.0\.1:8000.*process {os.getpid()}"
        with pytest.raises(ServerSetup, match=expected):
            DataDirLock(tmp_path).acquire()
    DataDirLock(tmp_path).acquire()


def test_a_dead_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from portal.database.lock import DataDirLock;"
        "DataDirLock(Path(sys.argv[1])).acquire(); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ServerSetup, match=str(holder.pid)):
            DataDirLock(tmp_path).acquire()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    DataDirLock(tmp_path).acquire()


@as_root
def test_another_user_of_the_machine_cannot_connect(server: EmbeddedPostgres) -> None:
    url = make_url(server.url())
    psql = installation() / "bin" / "psql"
    done = subprocess.run(
        [psql, "-h", str(url.query["host"]), "-U", str(url.username), "-c", "SELECT 1", "portal"],
        check=False,
        capture_output=True,
        text=True,
        user="nobody",
        group="nogroup",
        extra_groups=[],
    )
    assert done.returncode != 0
    assert "ermission denied" in done.stderr


@as_root
def test_server_accepts_only_its_own_user_and_root(server: EmbeddedPostgres) -> None:
    identities = (server.cluster / "pg_ident.conf").read_text()
    assert {line.split('"')[1] for line in identities.splitlines() if line[0] != "#"} == {
        pwd.getpwuid(server.cluster.stat().st_uid).pw_name,
        "root",
    }
    assert (server.cluster / "pg_hba.conf").read_text().splitlines()[1:] == [
        "local all all peer map=portal",
        "local replication all peer map=portal",
    ]


@as_root
def test_root_opens_its_own_directories_only_to_pass_through(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with borrowed(private / "data", extra_settings=QUICK) as url:
        assert ask(url, "SELECT 1") == 1
    assert private.stat().st_mode & 0o777 == 0o701


@as_root
def test_root_does_not_open_what_belongs_to_another(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    nobody = pwd.getpwnam("nobody")
    os.chown(private, nobody.pw_uid, nobody.pw_gid)
    with pytest.raises(ServerSetup, match=r"may not enter .*private"):
        EmbeddedPostgres(private / "data").start()
    assert private.stat().st_mode & 0o777 == 0o700
