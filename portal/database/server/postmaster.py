"""The server process, if any, that runs a cluster, and cleanup after a killed one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from portal.errors import ServerSetup

_ORPHANS_WAIT_S = 20.0


@dataclass(frozen=True)
class Postmaster:
    """The contents of postmaster.pid."""

    pid: int
    socket_dir: Path
    is_ready: bool


def read_postmaster(cluster: Path) -> Postmaster | None:
    """Parse postmaster.pid; return None when there is none or it is being written."""
    try:
        # PostgreSQL, src/include/utils/pidfile.h, numbers these lines.
        lines = (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        ready = [line.strip() for line in lines[7:8]] == ["ready"]
        return Postmaster(int(lines[0]), Path(lines[4].strip()), ready)
    except (OSError, ValueError, IndexError):
        return None


def running_postmaster(cluster: Path) -> Postmaster | None:
    """Return the server that really runs this cluster: the recorded pid may belong to another
    program by now."""
    recorded = read_postmaster(cluster)
    if recorded is None:
        return None
    try:
        process = psutil.Process(recorded.pid)
        return recorded if _serves(process, cluster) else None
    except psutil.NoSuchProcess:
        return None


def _serves(process: psutil.Process, cluster: Path) -> bool:
    """Return whether a process works inside the cluster's directory, as PostgreSQL's do."""
    try:
        if not process.name().startswith("postgres"):
            return False
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return Path(process.cwd()) == cluster
    except psutil.AccessDenied:
        # No permission to look; PostgreSQL's own check decides then.
        return True


def clear_leftovers(cluster: Path, report: Callable[[str], None]) -> None:
    """Prepare a cluster whose server was killed for a new one.

    A killed server's sessions may live on for a moment; a new server beside them would damage the
    data. The number in its pid file may also belong to another program by now (always so in
    containers), which PostgreSQL would take for a running server. Raises ServerSetup when sessions
    do not end.
    """
    left = read_postmaster(cluster)
    if left is None and not (cluster / "postmaster.pid").exists():
        # A base backup contains socket locks with the pid of the server that it was made from.
        _remove_sockets(cluster)
        return
    orphans = [p for p in psutil.process_iter() if _is_visible_server(p, cluster)]
    if orphans:
        report("waiting for sessions of a killed database server to end")
        _, alive = psutil.wait_procs(orphans, timeout=_ORPHANS_WAIT_S)
        if alive:
            pids = ", ".join(str(process.pid) for process in alive)
            raise ServerSetup(
                f"Processes of an earlier database server still use {cluster} ({pids}). "
                f"End them (kill {pids.replace(',', '')}) and start again."
            )
    with contextlib.suppress(FileNotFoundError):
        (cluster / "postmaster.pid").unlink()
    if left is not None:
        _remove_sockets(left.socket_dir)


def _remove_sockets(directory: Path) -> None:
    for path in directory.glob(".s.PGSQL.*"):
        path.unlink(missing_ok=True)


def _is_visible_server(process: psutil.Process, cluster: Path) -> bool:
    try:
        return process.name().startswith("postgres") and Path(process.cwd()) == cluster
    except (psutil.Error, OSError):
        return False
