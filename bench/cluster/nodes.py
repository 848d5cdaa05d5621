"""PostgreSQL servers that replicate to each other, from the embedded binaries."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from portal.database.embedded import DATABASE, EmbeddedPostgres
from portal.database.server import cluster_files
from portal.database.server.postmaster import running_postmaster
from portal.database.server.programs import installation, run_program
from portal.database.server.server_user import choose_server_user, open_path_for
from portal.errors import PortalError

USER = cluster_files.SUPERUSER
SOCKET = "socket"
_POLL_S = 0.05
_PROMOTION_TIMEOUT_S = 60
_CONNECT_TIMEOUT_S = 2


@dataclass(frozen=True)
class NodeState:
    """`role` is primary, replica or down; `position` is the end of its WAL, in bytes."""

    role: str
    position: int
    following: bool


class Node:
    """One server. Unless it is the primary, it follows the node that can be written to."""

    def __init__(
        self, name: str, folder: Path, *, hosts: Sequence[Path], settings: Mapping[str, str]
    ) -> None:
        self.name = name
        self.folder = folder
        self.cluster = folder / cluster_files.CLUSTER
        # Outside of the server's files, which other servers copy.
        self.socket = folder / SOCKET
        self._names = ", ".join(host.parent.name for host in hosts)
        standby = {
            # libpq finds the primary among them, also after a promotion.
            "primary_conninfo": f"host={','.join(map(str, hosts))} port={cluster_files.PORT} "
            f"user={USER} application_name={name} target_session_attrs=read-write "
            "connect_timeout=2",
            "wal_retrieve_retry_interval": "200ms",
            # A query on a replica must not be cancelled because the primary removes old rows.
            "hot_standby_feedback": "on",
            "wal_receiver_status_interval": "1s",
        }
        primary = {
            "unix_socket_directories": str(self.socket),
            "wal_keep_size": "256MB",
            "wal_log_hints": "on",  # For pg_rewind.
            "max_wal_senders": "10",
        }
        self.server = EmbeddedPostgres(folder, extra_settings={**primary, **standby, **settings})

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@/{DATABASE}?host={self.socket}&port={cluster_files.PORT}"

    def connect(self, database: str = DATABASE) -> psycopg.Connection:
        return psycopg.connect(
            host=str(self.socket),
            port=cluster_files.PORT,
            user=USER,
            dbname=database,
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
        )

    @property
    def is_running(self) -> bool:
        return self.server.is_running()

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket.mkdir(mode=0o700, exist_ok=True)
        user = choose_server_user(self.cluster)
        open_path_for(user, self.socket)
        if os.geteuid() == 0:
            os.chown(self.socket, user.pw_uid, user.pw_gid)
        self.server.start()

    def require_replica(self) -> None:
        """Acknowledge commits only when a replica has them on disk: a promotion then loses none."""
        with self.connect("postgres") as connection:
            names = f"ANY 1 ({self._names})"
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            connection.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        self.server.stop()

    def kill(self) -> None:
        """Kill the server and all of its sessions, as kill -9 does."""
        postmaster = running_postmaster(self.cluster)
        if postmaster is None:
            return
        process = psutil.Process(postmaster.pid)
        family = [process, *process.children(recursive=True)]
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(family, timeout=10)

    def make_from(self, primary: Node) -> None:
        """Make this node a replica by a base backup of the primary."""
        self.folder.mkdir(parents=True, exist_ok=True)
        user = choose_server_user(primary.cluster)
        open_path_for(user, self.cluster)
        shutil.rmtree(self.cluster, ignore_errors=True)
        self.cluster.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(self.cluster, user.pw_uid, user.pw_gid)
        arguments = ["-h", str(primary.socket), "-U", USER, "-D", str(self.cluster)]
        arguments += ["-X", "stream", "-c", "fast"]
        self._run("pg_basebackup", *arguments)
        (self.cluster / "server.log").unlink(missing_ok=True)
        self._follow()

    def rejoin(self, primary: Node) -> None:
        """Start a former primary again as a replica of the new one."""
        self.kill()
        try:
            self._rewind(primary)
        except (PortalError, RuntimeError):
            # It no longer has the log from where they diverged, as after many promotions.
            self.make_from(primary)
        self.start()

    def _rewind(self, primary: Node) -> None:
        # It must recover from its crash before it can be rewound.
        self.start()
        self.stop()
        source = f"host={primary.socket} port={cluster_files.PORT} user={USER} dbname=postgres"
        self._run("pg_rewind", "-D", str(self.cluster), f"--source-server={source}")
        self._follow()

    def _follow(self) -> None:
        signal_file = self.cluster / "standby.signal"
        signal_file.touch()
        if os.geteuid() == 0:
            state = self.cluster.stat()
            os.chown(signal_file, state.st_uid, state.st_gid)

    def promote(self) -> None:
        """Make this replica the primary, and wait until it can be written to."""
        self._run("pg_ctl", "promote", "-w", "-t", str(_PROMOTION_TIMEOUT_S), "-s")

    def state(self) -> NodeState:
        try:
            with self.connect("postgres") as connection:
                in_recovery, position, following = connection.execute(
                    """
                    SELECT pg_is_in_recovery(),
                           CASE WHEN pg_is_in_recovery()
                                THEN coalesce(greatest(pg_last_wal_receive_lsn(),
                                                       pg_last_wal_replay_lsn()), '0/0')
                                ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn,
                           EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')
                    """
                ).fetchone() or (True, 0, False)
        except psycopg.Error:
            return NodeState("down", 0, following=False)
        return NodeState("replica" if in_recovery else "primary", int(position), following)

    def _run(self, program: str, *arguments: str) -> None:
        user = choose_server_user(self.cluster)
        said = run_program(installation() / "bin" / program, *arguments, user=user, at=self.cluster)
        if said is not None:
            raise RuntimeError(f"{program} on {self.name}: {said}")


def wait(condition: Callable[[], bool], timeout_s: float, complaint: str) -> float:
    """Wait until `condition` holds; return how long that took, in seconds."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > timeout_s:
            raise TimeoutError(complaint)
        time.sleep(_POLL_S)
    return time.monotonic() - began
