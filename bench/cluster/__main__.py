"""`./run cluster`: start the cluster, show its state, replace what dies, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from bench.cluster import programs
from bench.cluster.keeping import keep
from bench.cluster.machines import Cluster, Layout


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
    cluster = Cluster(
        options.data_dir, Layout.beginning_at(options.port), replicas=options.replicas
    )
    print("starting servers, pooler, Redis, web processes, workers and the proxy …", flush=True)
    try:
        cluster.start()
        ready.set()
        _show(cluster)
        keep(cluster, stopping, promote_after_s=options.promote_after)
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
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path("/var/tmp/portal-cluster"),
        help="data and logs of all parts (%(default)s)",
    )
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


if __name__ == "__main__":
    sys.exit(main())
