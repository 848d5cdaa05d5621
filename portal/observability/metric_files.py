"""The files through which the processes of one portal add up their metrics.

prometheus_client lets each process count in files of its own, which whoever is scraped adds up.
It leaves open who owns the directory, who is alive, and what becomes of those who died. Here each
process holds a lock on a file with its name for as long as it lives, which the system lets go
even after kill -9 and which, unlike a process id, means the same in every container:

- the first of a set empties the directory; whoever comes later, or comes back, counts on;
- gauges of the dead are left out, so that nothing is in flight for ever;
- counts of the dead are added to a file of the past, so that no counter ever goes back.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog
from prometheus_client import Metric, values
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from portal.observability import metrics

log = structlog.get_logger(__name__)

# prometheus_client reads the directory from here.
_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_DIRECTORY_LOCK = "directory.lock"
_PAST = "past"
# Written in full beforehand: a page that is first needed when the disk is full ends the process.
_FILE_BYTES = {"counter": 256 * 1024, "histogram": 2 * 1024 * 1024, "gauge_livesum": 64 * 1024}


@dataclass(frozen=True, slots=True)
class _Membership:
    """What a process is among those that share a directory. Its name has no underscore, since
    that parts the names of files."""

    name: str
    pid: int
    lock: int


_membership: _Membership | None = None


def join(data_dir: Path) -> None:
    """Count in the files of `data_dir` from now on, or in those of PROMETHEUS_MULTIPROC_DIR.

    Counts made before stay this process's own. Where files cannot be had, so do all: metrics
    stop nothing.
    """
    if _membership is not None and _membership.pid == os.getpid():
        return
    directory = Path(os.environ.get(_VARIABLE) or data_dir / "metrics").absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _enter(directory)
    except OSError as error:
        log.warning("metrics_not_shared", directory=str(directory), reason=error.strerror)
        return
    os.environ[_VARIABLE] = str(directory)
    values.ValueClass = values.MultiProcessValue(_own_name)


def collector() -> Collector:
    """The metrics of all processes of this portal, or of this one where none are shared."""
    if _membership is None:
        return metrics.REGISTRY
    return _SharedFiles(Path(os.environ[_VARIABLE]))


class _SharedFiles(Collector):
    """Adds up what all processes have written, while nobody moves files about."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        with _locked(self._directory, fcntl.LOCK_SH):
            alive = _alive(self._directory)
            files = [
                str(path)
                for path in self._directory.glob("*.db")
                # An empty one is being made in this moment.
                if path.stat().st_size and not (_is_gauge(path) and _owner(path) not in alive)
            ]
            merge: Callable[[list[str]], Iterable[Metric]] = MultiProcessCollector.merge
            return list(merge(files))


def _own_name() -> str:
    """Asked before each count, because a fork makes another process of this one."""
    found = _membership
    if found is None or found.pid != os.getpid():
        return _enter(Path(os.environ[_VARIABLE])).name
    return found.name


def _enter(directory: Path) -> _Membership:
    """Take a name and its lock, make the files, and see to those of the dead."""
    global _membership  # noqa: PLW0603 - one process is in one set
    if _membership is not None:
        os.close(_membership.lock)  # A parent's, which keeps it through its own descriptor.
        _membership = None
    pid = os.getpid()
    name = f"{pid}-{secrets.token_hex(4)}"
    with _locked(directory, fcntl.LOCK_EX):
        _bury(directory)
        lock = os.open(directory / f"{name}.alive", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for prefix, size in _FILE_BYTES.items():
                (directory / f"{prefix}_{name}.db").write_bytes(bytes(size))
        except OSError:
            os.close(lock)
            raise
    _membership = _Membership(name, pid, lock)
    return _membership


def _bury(directory: Path) -> None:
    """Add the counts of dead processes to the past; with nobody alive, forget all."""
    alive = _alive(directory)
    for path in list(directory.glob("*.db")):
        owner = _owner(path)
        if owner in alive or (owner == _PAST and alive):
            continue
        if alive and not _is_gauge(path):
            _add_to_past(path)
        path.unlink()
    for path in directory.glob("*.alive"):
        if path.stem not in alive:
            path.unlink()


def _add_to_past(path: Path) -> None:
    kind = path.name.split("_")[0]
    past_path = path.with_name(f"{kind}_{_PAST}.db")
    if not past_path.exists():
        past_path.write_bytes(bytes(_FILE_BYTES[kind]))
    past = MmapedDict(str(past_path))
    try:
        for key, value, _, _ in MmapedDict.read_all_values_from_file(str(path)):
            past.write_value(key, past.read_value(key)[0] + value, 0.0)
    finally:
        past.close()


def _alive(directory: Path) -> set[str]:
    """The names whose locks are held."""
    return {path.stem for path in directory.glob("*.alive") if _is_held(path)}


def _is_held(path: Path) -> bool:
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _owner(path: Path) -> str:
    """Of `histogram_NAME.db` or `gauge_MODE_NAME.db`."""
    return path.stem.rsplit("_", 1)[1]


def _is_gauge(path: Path) -> bool:
    return path.name.startswith("gauge_")


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    with (directory / _DIRECTORY_LOCK).open("ab") as file:
        fcntl.flock(file, how)
        yield
