"""Locks on a data directory. The kernel releases them when their process ends, even by kill -9."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from portal.errors import ServerSetup

LOCK_FILE = "portal.lock"


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class DataDirLock:
    """The lock of the one portal that serves from a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._path = data_dir / LOCK_FILE
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Acquire the lock. Raises ServerSetup if another portal has it, which the message names,
        or if the file system has no locks."""
        descriptor = _open(self._path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            holder = self.holder()
            address = f" at {holder['address']}" if holder.get("address") else ""
            raise ServerSetup(
                f"A portal already runs on {self.data_dir}{address} (process "
                f"{holder.get('pid', 'unknown')}). Stop that one first, or give this one "
                "another directory with --data-dir."
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise ServerSetup(
                f"{self._path} cannot be locked ({error.strerror}). The data directory must "
                "be on a file system with locks; put it on a local disk."
            ) from error
        self._descriptor = descriptor
        self.announce(None)

    def announce(self, address: str | None) -> None:
        """Record the process and its address, to be shown when a second portal starts."""
        if self._descriptor is None:
            raise RuntimeError("announce() needs the lock")
        text = json.dumps({"pid": os.getpid(), "address": address})
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def holder(self) -> dict[str, str | int | None]:
        """Return the pid and address recorded by the holder; empty before that."""
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return stored if isinstance(stored, dict) else {}

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait for the lock `path` and hold it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class UserCount:
    """A count of the processes that use the server: each holds a shared lock."""

    def __init__(self, path: Path) -> None:
        self._descriptor = _open(path)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def leave(self) -> bool:
        """Release this process's share; return True if no other process has one."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(self._descriptor)
