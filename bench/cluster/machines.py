"""The cluster: its programs, their settings, and its states and faults."""

from __future__ import annotations

import http.client
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.cluster import programs
from bench.cluster.nodes import SOCKET, USER, Node, NodeState, wait
from bench.cluster.programs import Process
from portal.database.embedded import DATABASE
from portal.database.server import cluster_files
from portal.database.server.server_user import choose_server_user

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
_PORTAL = [sys.executable, "-c", "from portal.processes.cli import main; main()"]
_POOLER_PORT = 6432
_START_TIMEOUT_S = 120.0
_STATEMENT_TIMEOUT_MS = 60_000
# All servers of the bench are on one machine, so each takes little of its memory.
_SERVER = {"shared_buffers": "128MB", "maintenance_work_mem": "128MB", "max_connections": "100"}

_PGBOUNCER = """\
[databases]
; To promote a replica, write its address here and send SIGHUP.
{database} = host={primary} {common}
; To read from, one a server.
{each}

[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
unix_socket_mode = 0700
listen_port = {port}
; Only who may open the socket connects, as one user.
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
query_wait_timeout = 2
server_login_retry = 1
; What the portal sends at the start of a connection and the pooler need not know.
ignore_startup_parameters = extra_float_digits
pidfile = {folder}/pgbouncer.pid
"""


@dataclass(frozen=True)
class Layout:
    """Ports of the cluster: of the proxy, of two web processes and of Redis."""

    proxy: int
    web: tuple[int, int]
    redis: int

    @classmethod
    def beginning_at(cls, port: int) -> Layout:
        return cls(port, (port + 1, port + 2), port + 3)

    @classmethod
    def of_free_ports(cls) -> Layout:
        proxy, first, second, redis = (programs.free_port() for _ in range(4))
        return cls(proxy, (first, second), redis)


class Cluster:
    """A primary and replicas, poolers, Redis, two web processes, two workers and a proxy."""

    def __init__(
        self,
        folder: Path,
        layout: Layout,
        *,
        replicas: int = 2,
        environment: Mapping[str, str] | None = None,
        server_settings: Mapping[str, str] | None = None,
        workers: int = 2,
    ) -> None:
        self.folder = folder.resolve()
        self.layout = layout
        self._environment = dict(environment or {})
        names = [f"node{number}" for number in range(1, replicas + 2)]
        hosts = [self.folder / name / SOCKET for name in names]
        server = {**_SERVER, **(server_settings or {})}
        self.nodes = [
            Node(name, self.folder / name, hosts=hosts, settings=server) for name in names
        ]
        self.pooler: Process
        self.redis: Process
        self.web: list[Process] = []
        self.workers: list[Process] = []
        self.proxy: Process
        self._worker_count = workers
        self.administrator: tuple[str, str] | None = None

    # --- addresses ----------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.layout.proxy}"

    @property
    def direct_url(self) -> str:
        """Return the address of the primary without a pooler, for workers and migrations."""
        hosts = ",".join(str(node.socket) for node in self.nodes)
        return (
            f"postgresql://{USER}@/{DATABASE}?host={hosts}&port={cluster_files.PORT}"
            "&target_session_attrs=read-write"
        )

    @property
    def pooled_url(self) -> str:
        return f"postgresql://{USER}@/{DATABASE}?host={self._pooler_dir}&port={_POOLER_PORT}"

    @property
    def replica_urls(self) -> list[str]:
        """Return the pooler's addresses of all servers: the portal reads from those that follow."""
        return [
            f"postgresql://{USER}@/{node.name}?host={self._pooler_dir}&port={_POOLER_PORT}"
            for node in self.nodes
        ]

    @property
    def redis_url(self) -> str:
        return f"redis://{HOST}:{self.layout.redis}/0"

    # --- start and stop -----------------------------------------------------------------------

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for node in self.nodes:
            (node.folder).mkdir(exist_ok=True)
        self._start_servers()
        self._start_pooler()
        self._start_redis()
        self._migrate()
        self._start_portal()
        self._start_proxy()
        wait(self.answers, _START_TIMEOUT_S, f"the portal did not start; see {self.folder}/*.log")

    def _start_servers(self) -> None:
        first, *others = self.nodes
        if (first.cluster / "PG_VERSION").exists():
            self._start_again()
            return
        first.start()
        for node in others:
            node.make_from(first)
            node.start()
        # Only now, because the first server is prepared before there is a replica.
        for node in self.nodes:
            node.require_replica()

    def _start_again(self) -> None:
        """Start the servers of an earlier run, the former primary first."""
        replicas = [node for node in self.nodes if (node.cluster / "standby.signal").exists()]
        for node in [node for node in self.nodes if node not in replicas] + replicas:
            if node.cluster.exists():
                node.start()

    @property
    def _pooler_dir(self) -> Path:
        return self.folder / "pooler"

    def _start_pooler(self) -> None:
        program = programs.find("pgbouncer")
        assert program is not None
        self._pooler_dir.mkdir(exist_ok=True)
        # The servers admit the operating system's user that runs them, and root.
        user = choose_server_user(self.nodes[0].cluster)
        if os.geteuid() == 0:
            os.chown(self._pooler_dir, user.pw_uid, user.pw_gid)
        primary = self.primary
        assert primary is not None
        configuration = self._configure_pooler(primary)
        log, folder = self.folder / "pooler.log", self._pooler_dir
        command = [program, str(configuration)]
        self.pooler = Process("pooler", command, log=log, cwd=folder, user=user)
        self.pooler.start()

    def _configure_pooler(self, primary: Node) -> Path:
        common = f"port={cluster_files.PORT} user={USER} dbname={DATABASE} "
        common += f"connect_query='SET statement_timeout = {_STATEMENT_TIMEOUT_MS}'"
        each = "\n".join(f"{node.name} = host={node.socket} {common}" for node in self.nodes)
        path = self._pooler_dir / "pgbouncer.ini"
        path.write_text(
            _PGBOUNCER.format(
                database=DATABASE,
                primary=primary.socket,
                common=common,
                each=each,
                folder=self._pooler_dir,
                port=_POOLER_PORT,
            )
        )
        return path

    def _start_redis(self) -> None:
        program = programs.find("redis-server")
        assert program is not None
        command = [program, "--bind", HOST, "--port", str(self.layout.redis), "--save", ""]
        command += ["--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru"]
        log = self.folder / "redis.log"
        self.redis = Process("redis", command, log=log, cwd=self.folder)
        self.redis.start()

    def _migrate(self) -> None:
        done = subprocess.run(
            [*_PORTAL, "migrate"],
            cwd=ROOT,
            env=os.environ | self.environment("migrate"),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip())
        made = re.search(r"administrator: (\S+)\npassword: (\S+)", done.stderr)
        self.administrator = (made[1], made[2]) if made else None

    def _secret_key(self) -> str:
        path = self.folder / "secret_key"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_urlsafe(48))
        return path.read_text()

    def environment(self, name: str) -> dict[str, str]:
        """Return the settings of the machine with this name, as an operator would set them."""
        return {
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": self.direct_url,
            "REDIS_URL": self.redis_url,
            "PORTAL_SECRET_KEY": self._secret_key(),
            "PORTAL_DATA_DIR": str(self.folder / name),
            "PORTAL_LOG_FORMAT": "json",
            "OMP_NUM_THREADS": "1",
            **self._environment,
        }

    def web_environment(self, name: str) -> dict[str, str]:
        return self.environment(name) | {
            "DATABASE_URL": self.pooled_url,
            "DATABASE_REPLICA_URL": ",".join(self.replica_urls),
            "PORTAL_DATABASE_POOLER": "transaction",
            "PORTAL_TRUSTED_PROXIES": "1",
            "PORTAL_PUBLIC_URL": self.address,
        }

    def _start_portal(self) -> None:
        for number, port in enumerate(self.layout.web, 1):
            name = f"web{number}"
            command = [sys.executable, "-m", "gunicorn", "wsgi:app", "--bind", f"{HOST}:{port}"]
            command += ["--no-control-socket", "--timeout", "120"]
            self.web.append(self._process(name, command, self.web_environment(name)))
        for number in range(1, self._worker_count + 1):
            name = f"worker{number}"
            self.workers.append(self._process(name, [*_PORTAL, "worker"], self.environment(name)))
        for process in (*self.web, *self.workers):
            process.start()

    def _process(self, name: str, command: list[str], environment: Mapping[str, str]) -> Process:
        log = self.folder / f"{name}.log"
        return Process(name, command, log=log, cwd=ROOT, environment=environment)

    def _start_proxy(self) -> None:
        program = programs.find("nginx")
        assert program is not None
        folder = self.folder / "proxy"
        folder.mkdir(exist_ok=True)
        text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
        servers = " ".join(f"server {HOST}:{port} fail_timeout=1s;" for port in self.layout.web)
        for pattern, replacement in (
            (r"server web:8000;", servers),
            (r"listen 8080 default_server;", f"listen {HOST}:{self.layout.proxy} default_server;"),
            (r"pid /tmp/nginx.pid;", f"pid {folder}/nginx.pid;"),
            (r"/tmp/nginx-", f"{folder}/"),
            # All clients of the bench have the same address.
            (r"limit_(conn|req) (zone=|connections)[^;]*;\n", "\n"),
            (r"worker_processes auto;", "worker_processes 1;"),
        ):
            text, count = re.subn(pattern, replacement, text)
            assert count, f"deploy/nginx.conf has no {pattern}"
        (folder / "nginx.conf").write_text(text, encoding="utf-8")
        command = [program, "-c", str(folder / "nginx.conf"), "-p", str(folder)]
        command += ["-g", "daemon off;"]
        log = self.folder / "proxy.log"
        self.proxy = Process("proxy", command, log=log, cwd=folder)
        self.proxy.start()

    def answers(self, port: int | None = None) -> bool:
        """Return whether the portal answers that it is ready, on all ports or on one."""
        ports = (*self.layout.web, self.layout.proxy) if port is None else (port,)
        for one in ports:
            connection = http.client.HTTPConnection(HOST, one, timeout=5)
            try:
                connection.request("GET", "/health")
                if connection.getresponse().status != http.HTTPStatus.OK:
                    return False
            except (OSError, http.client.HTTPException):
                return False
            finally:
                connection.close()
        return True

    @property
    def processes(self) -> list[Process]:
        """Return the processes other than the PostgreSQL servers."""
        named = [vars(self).get(name) for name in ("pooler", "redis", "proxy")]
        return [*filter(None, named), *self.web, *self.workers]

    def stop(self) -> None:
        """Stop everything, the proxy first and the servers last."""
        for process in reversed(self.processes):
            process.signal(signal.SIGTERM)
        for process in reversed(self.processes):
            process.stop()
        states = {node.name: node.state() for node in self.nodes}
        # A primary that waits for its replicas must not wait for those that are gone.
        for node in sorted(self.nodes, key=lambda node: states[node.name].role != "primary"):
            node.stop()

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- states and faults ----------------------------------------------------------------------

    def states(self) -> dict[str, NodeState]:
        return {node.name: node.state() for node in self.nodes}

    @property
    def primary(self) -> Node | None:
        return next((node for node in self.nodes if node.state().role == "primary"), None)

    @property
    def replicas(self) -> list[Node]:
        return [node for node in self.nodes if node.state().role == "replica"]

    def promote(self) -> Node:
        """Promote the replica that has received the most, and point the pooler to it."""
        states = self.states()
        best = max(self.replicas, key=lambda node: states[node.name].position)
        best.promote()
        self._configure_pooler(best)
        self.pooler.signal(signal.SIGHUP)
        return best
