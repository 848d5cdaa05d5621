"""The cluster's manager: restarts processes that died, and replaces a dead primary."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from bench.cluster.machines import Cluster
from bench.cluster.nodes import Node
from portal.errors import PortalError

_LOOK_EVERY_S = 1.0
_print = partial(print, flush=True)


def keep(
    cluster: Cluster,
    stopping: threading.Event,
    *,
    promote_after_s: float,
    say: Callable[[str], object] = _print,
) -> None:
    """Keep the cluster running until `stopping`; promote no replica if `promote_after_s` is 0."""
    roles = {name: state.role for name, state in cluster.states().items()}
    dead_since: float | None = None
    while not stopping.wait(_LOOK_EVERY_S):
        for process in [one for one in cluster.processes if not one.is_running]:
            process.start()
            say(f"{process.name} died; started again as {process.pid}")
        now = {name: state.role for name, state in cluster.states().items()}
        for name, role in now.items():
            if role != roles[name]:
                say(f"{name}: {roles[name]} → {role}")
        roles = now
        primary = cluster.primary
        if primary is None:
            dead_since = dead_since or time.monotonic()
            if promote_after_s and time.monotonic() - dead_since > promote_after_s:
                say(f"promoted {cluster.promote().name}")
            continue
        dead_since = None
        # The primary may have died since; it must not become its own replica.
        for node in [one for one in cluster.nodes if not one.is_running and one is not primary]:
            say(f"{node.name} is down; it returns as a replica")
            try:
                _bring_back(node, primary)
            except (PortalError, RuntimeError) as error:
                say(f"{node.name} did not return, and is tried again: {error}")


def _bring_back(node: Node, primary: Node) -> None:
    if (node.cluster / "standby.signal").exists():
        node.start()
    else:
        node.rejoin(primary)
