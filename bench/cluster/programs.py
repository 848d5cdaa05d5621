"""Processes of the cluster: started, watched, and ended by their own id."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

# Debian keeps these out of the path of ordinary users.
_SYSTEM_PATH = os.pathsep.join(["/usr/sbin", "/usr/local/sbin", "/sbin"])
_END_TIMEOUT_S = 15.0
NEEDED = {"pgbouncer": "pgbouncer", "nginx": "nginx", "redis-server": "redis-server"}


def find(program: str) -> str | None:
    return shutil.which(program, path=os.environ.get("PATH", "") + os.pathsep + _SYSTEM_PATH)


def missing() -> list[str]:
    """Return the Debian packages of programs that are not installed."""
    return [package for program, package in NEEDED.items() if find(program) is None]


class Process:
    """A program that writes its output to a log and can be killed and started again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        cwd: Path,
        environment: Mapping[str, str] | None = None,
        user: pwd.struct_passwd | None = None,
    ) -> None:
        self.name = name
        self._command = list(command)
        self._log = log
        self._cwd = cwd
        self._environment = dict(environment or {})
        self._user = user if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self._log

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        user = self._user
        # Programs open /dev/stdout again by name, as the user that they run as.
        with self._log.open("ab") as output:
            if user is not None:
                os.fchown(output.fileno(), user.pw_uid, user.pw_gid)
            self._process = subprocess.Popen(
                self._command,
                cwd=self._cwd,
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
            )

    def signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the process and its children, as kill -9 does."""
        process = self._process  # Another may be started as soon as it is dead.
        if process is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            ours = psutil.Process(process.pid)
            for one in [*ours.children(recursive=True), ours]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_TIMEOUT_S)
        self.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
