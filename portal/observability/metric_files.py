"""Add up the metrics of several processes, through files in a shared directory.

This is prometheus_client's multiprocess mode, which leaves open who empties the directory, which
processes are alive, and what happens to the counts of those that exited. Here each process holds
a lock on a file with its name. The system releases the lock when the process dies, even by
kill -9, and unlike a process id it means the same in every container:

- the first process of a set empties the directory, later ones add to what is there;
- gauges of dead processes are left out, so that nothing stays in flight for ever;
- counters of dead processes are merged into one file, so that no counter ever goes back.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
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
# Files are written in full beforehand: a new page of them on a full disk would kill the process.
_FILE_BYTES = {"counter": 256 * 1024, "histogram": 2 * 1024 * 1024, "gauge_livesum": 64 * 1024}


class _Member:
    """The place of a process, and of its forks, in a shared directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._pid: int | None = None
        self._lock: int | None = None
        self._name = ""
        self.name()

    def name(self) -> str:
        """Return this process's name. Called before each count, since a fork needs its own name."""
        if self._pid != os.getpid():
            self.leave()  # After a fork; the parent keeps its lock through its own descriptor.
            self._enter()
        return self._name

    def leave(self) -> None:
        """Release the lock: from now on this process counts as dead."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _enter(self) -> None:
        """Take a name and its lock, create the files, and merge those of dead processes."""
        pid = os.getpid()
        # Without an underscore, which separates the parts of the files' names.
        name = f"{pid}-{secrets.token_hex(4)}"
        with _locked(self.directory, fcntl.LOCK_EX):
            _merge_dead_processes(self.directory)
            lock = os.open(self.directory / f"{name}.alive", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                for prefix, size in _FILE_BYTES.items():
                    (self.directory / f"{prefix}_{name}.db").write_bytes(bytes(size))
            except OSError:
                os.close(lock)
                raise
        self._name, self._pid, self._lock = name, pid, lock


def join(data_dir: Path) -> None:
    """Count in the files of `data_dir` from now on, or in those of PROMETHEUS_MULTIPROC_DIR.

    For entry points of processes. Earlier counts stay this process's own, and so do later ones if
    the files cannot be created: metrics never keep a process from starting.
    """
    if _current_member() is not None:
        return
    directory = Path(os.environ.get(_VARIABLE) or data_dir / "metrics").absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        member = _Member(directory)
    except OSError as error:
        log.warning("metrics_not_shared", directory=str(directory), reason=error.strerror)
        return
    os.environ[_VARIABLE] = str(directory)
    value_class = values.MultiProcessValue(member.name)
    value_class.member = member
    values.ValueClass = value_class


@contextmanager
def joined(data_dir: Path) -> Iterator[None]:
    """Join while the block runs; afterwards this process counts alone again."""
    value_class, variable = values.ValueClass, os.environ.get(_VARIABLE)
    join(data_dir)
    try:
        yield
    finally:
        member = _current_member()
        if member is not None and values.ValueClass is not value_class:
            member.leave()
            values.ValueClass = value_class
            if variable is None:
                del os.environ[_VARIABLE]


def collector() -> Collector:
    """Return the metrics of all processes of this portal, or of this one if none are shared."""
    member = _current_member()
    return metrics.REGISTRY if member is None else _SharedFiles(member.directory)


def of_processes(data_dir: Path) -> Collector | None:
    """Return the metrics of the processes that share `data_dir`, without joining them; None if
    there have never been any."""
    directory = Path(os.environ.get(_VARIABLE) or data_dir / "metrics").absolute()
    return _SharedFiles(directory) if (directory / _DIRECTORY_LOCK).exists() else None


def _current_member() -> _Member | None:
    # Kept where prometheus_client keeps its own state, so that the two cannot disagree.
    return getattr(values.ValueClass, "member", None)


class _SharedFiles(Collector):
    """Adds up what all processes have written, while no process merges or deletes files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        with _locked(self._directory, fcntl.LOCK_SH):
            alive = _alive(self._directory)
            files = [
                str(path)
                for path in self._directory.glob("*.db")
                # An empty file is still being created.
                if path.stat().st_size and not (_is_gauge(path) and _owner(path) not in alive)
            ]
            merge: Callable[[list[str]], Iterable[Metric]] = MultiProcessCollector.merge
            return list(merge(files))


def _merge_dead_processes(directory: Path) -> None:
    """Merge the counters of processes that have exited; delete all if no process is alive."""
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
    """Return the names whose locks are held."""
    return {path.stem for path in directory.glob("*.alive") if _is_held(path)}


def _is_held(path: Path) -> bool:
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _owner(path: Path) -> str:
    """Return NAME of `histogram_NAME.db` or `gauge_MODE_NAME.db`."""
    return path.stem.rsplit("_", 1)[1]


def _is_gauge(path: Path) -> bool:
    return path.name.startswith("gauge_")


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    with (directory / _DIRECTORY_LOCK).open("ab") as file:
        fcntl.flock(file, how)
        yield
