"""`./run cluster`: start the cluster, show its state, replace what dies, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from bench.cluster import programs
from bench.cluster.machines import Cluster, Layout

_LOOK_EVERY_S = 1.0


def main() -> int:
    options = _parse()
    if lacking := programs.missing():
        print(
            f"./run cluster: install these first: apt-get install {' '.join(lacking)}",
            file=sys.stderr,
        )
        return 1
    stopping, ready = threading.Event(), threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stopping.set()
        if not ready.is_set():
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    cluster = Cluster(options.folder, Layout.beginning_at(options.port), replicas=options.replicas)
    print("starting servers, pooler, Redis, web processes, workers and the proxy …", flush=True)
    try:
        cluster.start()
        ready.set()
        _show(cluster)
        _watch(cluster, stopping, promote_after_s=options.promote_after)
    except KeyboardInterrupt:
        pass
    finally:
        ready.set()
        print("stopping …", flush=True)
        cluster.stop()
    print("stopped", flush=True)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run cluster", description="Run the portal as on several machines."
    )
    parser.add_argument("--port", type=int, default=8000, help="the proxy's; three more follow it")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/portal-cluster"))
    parser.add_argument("--replicas", type=int, default=2, choices=range(1, 6))
    parser.add_argument(
        "--promote-after",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="promote a replica when the primary has been dead this long; 0: never",
    )
    return parser.parse_args()


def _show(cluster: Cluster) -> None:
    print(f"\nThe portal is ready: {cluster.address}")
    if cluster.administrator is not None:
        name, password = cluster.administrator
        print(f"Sign in as:  {name}\nPassword:    {password}   (shown this once)")
    print("\nservers:")
    for node in cluster.nodes:
        print(f"  {node.name:7} {node.state().role:8} psql -h {node.socket} -U portal portal")
    print("processes:")
    for process in cluster.processes:
        print(f"  {process.name:16} pid {process.pid:7} {process.log}")
    print("settings of a web process:")
    for name, value in sorted(cluster.web_environment("web1").items()):
        if name.startswith(("DATABASE", "REDIS", "PORTAL")):
            print(f"  {name}={'…' if 'SECRET' in name else value}")
    print(
        "\nKill what you like: processes start again, and a dead primary is replaced by a replica."
        "\nStop with Ctrl-C.\n",
        flush=True,
    )


def _watch(cluster: Cluster, stopping: threading.Event, *, promote_after_s: float) -> None:
    roles = {name: state.role for name, state in cluster.states().items()}
    dead_since: float | None = None
    while not stopping.wait(_LOOK_EVERY_S):
        for process in cluster.processes:
            if not process.is_running and not stopping.is_set():
                process.start()
                print(f"{process.name} died; started again as {process.pid}", flush=True)
        now = {name: state.role for name, state in cluster.states().items()}
        for name, role in now.items():
            if role != roles[name]:
                print(f"{name}: {roles[name]} → {role}", flush=True)
        roles = now
        primary = cluster.primary
        if primary is None:
            dead_since = dead_since or time.monotonic()
            if promote_after_s and time.monotonic() - dead_since > promote_after_s:
                print(f"promoted {cluster.promote().name}", flush=True)
            continue
        dead_since = None
        for node in cluster.nodes:
            if not node.is_running:
                print(f"{node.name} is down; it returns as a replica", flush=True)
                _bring_back(cluster, node.name)


def _bring_back(cluster: Cluster, name: str) -> None:
    node = next(node for node in cluster.nodes if node.name == name)
    primary = cluster.primary
    if primary is None:
        return
    if (node.cluster / "standby.signal").exists():
        node.start()
    else:
        node.rejoin(primary)


if __name__ == "__main__":
    sys.exit(main())
