"""Child processes: started, restarted when they die, and ended with their supervisor."""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from portal.observability import logs

FIRST_BACKOFF_S = 1.0
MAX_BACKOFF_S = 30.0
# A process that has run this long did not fail at its start.
_SETTLED_AFTER_S = 60.0
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

log = structlog.get_logger(__name__)


@dataclass
class Child:
    """A child process that runs as long as the supervisor."""

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    pass_fds: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)
    backoff_s: float = field(default=FIRST_BACKOFF_S, init=False)
    restart_at: float | None = field(default=None, init=False)

    def start(self) -> None:
        self.started_at, self.restart_at = time.monotonic(), None
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid()), *self.command],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            pass_fds=self.pass_fds,
            # Ctrl-C signals a whole process group; the supervisor decides when each child stops.
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def keep_alive(self) -> None:
        """Restart the process if it died, after a delay that doubles while it keeps dying early."""
        if self.is_running:
            return
        now = time.monotonic()
        if self.restart_at is None:
            if now - self.started_at > _SETTLED_AFTER_S:
                self.backoff_s = FIRST_BACKOFF_S
            status = self.process.returncode if self.process else None
            log.error("process died", process=self.name, status=status, again_in_s=self.backoff_s)
            self.restart_at = now + self.backoff_s
            self.backoff_s = min(self.backoff_s * 2, MAX_BACKOFF_S)
        elif now >= self.restart_at:
            self.start()

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill_group(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


# --- in the child ------------------------------------------------------------------------------


def run_child(supervisor_pid: int, entry: str, arguments: list[str]) -> None:
    """Run `module:function` as a command that ends with the supervisor."""
    # Skip the garbage collection at exit, which takes half a second of processor time.
    atexit.register(gc.freeze)
    _end_with(supervisor_pid)
    logs.log_uncaught()
    module, function = entry.split(":")
    sys.argv = [module, *arguments]
    sys.exit(getattr(importlib.import_module(module), function)())


def _end_with(supervisor_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    else:
        threading.Thread(target=_watch_parent, args=(supervisor_pid,), daemon=True).start()
    if os.getppid() != supervisor_pid:  # The supervisor died before the lines above.
        raise SystemExit(1)


def _watch_parent(supervisor_pid: int) -> None:
    while os.getppid() == supervisor_pid:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    run_child(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
