"""Reader processes, started with limits. Their failures become domain errors."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from portal.errors import (
    N_,
    BrokenFile,
    EmptyPdf,
    EncryptedPdf,
    ExtractionTimedOut,
    ExtractionTooLarge,
    PortalError,
    TooMuchInOne,
    UnpacksToTooMuch,
)
from portal.ingest.limits import ExtractionLimits, FileToRead

COUNTED = {
    "attributes": N_("attributes in one element"),
    "cells": N_("cells"),
    "columns": N_("columns"),
    "depth": N_("levels of nesting"),
    "elements": N_("elements"),
    "lines": N_("lines"),
    "paragraph": N_("characters in one paragraph"),
    "parts": N_("parts"),
}
"""Values of `what` in `too_many`, with their names for users."""

_READERS = Path(__file__).with_name("readers")
_LIMITED = _READERS / "limited.py"
# A reader gets only the environment that Python needs: a file that exploits it must not find the
# database's address and the secret key there.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH")
# A single thread, because some layers of confinement do not cover other threads.
_SET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_MAX_RECORD_LENGTH = 64 << 20  # bytes, and a few more for each character that is allowed
_CHECK_INTERVAL_S = 0.5
_PROBE_LIMITS = ExtractionLimits(timeout_s=10)
# A process that fails with this share of its memory in use is taken to have run out of memory.
_FULL_SHARE = 0.5


def read_records(
    reader: str, file: FileToRead, *, broken: type[PortalError] = BrokenFile, **options: Any
) -> Generator[dict[str, Any], None, None]:
    """Yield the records of `readers/{reader}.py` for a file as they arrive.

    Closing the generator early ends the reader. For readers that count pages first, the file's
    `on_page` is called for each page with lines. Raises ExtractionTimedOut, ExtractionTooLarge,
    UnpacksToTooMuch, TooMuchInOne, EncryptedPdf, EmptyPdf, what the callbacks raise, and
    `broken` if the reader dies, is silent or reports "broken".
    """
    limits, is_empty = file.limits, True
    pages_read = page_count = 0
    with (
        file.path.open("rb") as opened,
        _start(reader, opened, limits, options) as process,
        _Watch(process, limits.timeout_s, file.check) as watch,
    ):
        for line in _lines(process.stdout, _MAX_RECORD_LENGTH + 4 * limits.max_characters):
            record = _record(line)
            if "confined_by" in record:
                continue
            if "error" in record:
                raise _as_portal_error(record, file.name, limits, broken)
            is_empty = False
            page_count = record.get("pages", page_count)
            if "lines" in record:
                pages_read += 1
                file.on_page(pages_read, page_count)
            yield record
        _wait(process)
        watch.stop()
        status, peak_kb = _take_status(process)
    if watch.reason is not None:
        raise watch.reason
    if watch.timed_out or status == -getattr(signal, "SIGXCPU", signal.SIGTERM):
        raise ExtractionTimedOut(name=file.name, seconds=_as_shown(limits.timeout_s))
    if status != 0 and peak_kb > _FULL_SHARE * (limits.memory_mb << 10):
        raise UnpacksToTooMuch(name=file.name, limit_mb=limits.memory_mb)
    if status != 0 or is_empty:
        raise broken(name=file.name)


def read_text_records(
    reader: str, text: str, file: FileToRead, **options: Any
) -> Generator[dict[str, Any], None, None]:
    """Yield a reader's records for a text that was found in a file. Raises as `read_records`."""
    with tempfile.TemporaryDirectory(prefix="portal-", dir=file.path.parent) as directory:
        path = Path(directory) / "text"
        path.write_text(text, encoding="utf-8", newline="\n")
        with closing(read_records(reader, replace(file, path=path), **options)) as records:
            yield from records


def probe_confinement() -> dict[str, bool]:
    """Start a reader and return which layers of confinement hold; see `readers.confinement`. `user`
    is missing unless the portal runs as root, since only root can change user."""
    wanted = ["no_new_privs", "landlock", "seccomp", "limits", "network"]
    if os.geteuid() == 0:
        wanted.insert(0, "user")
    with (
        Path(os.devnull).open("rb") as nothing,
        _start("probe_reader", nothing, _PROBE_LIMITS, {}) as process,
    ):
        first = next(_lines(process.stdout, _MAX_RECORD_LENGTH), b"{}")
    held = _record(first).get("confined_by", [])
    return {layer: layer in held for layer in wanted}


@contextmanager
def _start(
    reader: str, file: IO[bytes], limits: ExtractionLimits, options: Mapping[str, Any]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a reader with `file` and a pipe as its only files; kill it when the context ends."""
    with start_reader(reader, file, limits, options) as process:
        try:
            yield process
        finally:
            process.kill()


def start_reader(
    reader: str, given: IO[bytes] | int, limits: ExtractionLimits, options: Mapping[str, Any]
) -> subprocess.Popen[bytes]:
    """Start a reader whose input is `given`, a file or `subprocess.PIPE`. The caller ends it."""
    command = [sys.executable, "-P", "-X", "utf8", str(_LIMITED), str(_READERS / f"{reader}.py")]
    command += [str(limits.memory_mb), str(math.ceil(limits.timeout_s)), json.dumps(dict(options))]
    return subprocess.Popen(  # noqa: S603 - our own script, no shell
        command,
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={key: os.environ[key] for key in _PASSED_ON if key in os.environ} | _SET,
        # Ctrl-C is for the portal to handle; it must not look like a broken file.
        start_new_session=True,
    )


class _Watch:
    """Within its context, kills a reader that times out or whose result is no longer wanted."""

    def __init__(
        self, process: subprocess.Popen[bytes], timeout_s: float, check: Callable[[], None]
    ) -> None:
        self._process, self._check = process, check
        self._ends_at = time.monotonic() + timeout_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="reader-watch", daemon=True)
        self.timed_out = False
        self.reason: BaseException | None = None
        """The exception that `check` raised."""

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(min(_CHECK_INTERVAL_S, max(0, self._ends_at - time.monotonic()))):
            try:
                self._check()
            except Exception as reason:  # noqa: BLE001 - raised where the records are read
                self.reason = reason
            self.timed_out = time.monotonic() >= self._ends_at
            if self.timed_out or self.reason is not None:
                # Not `Popen.kill`, which would reap the status that the caller waits for.
                os.kill(self._process.pid, signal.SIGKILL)
                return


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a process without reaping it. Until then its id is not reused, so the
    watch may kill it."""
    if hasattr(os, "waitid"):  # Not on macOS before Python 3.13.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def _take_status(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Reap a process. Return its exit status, negative for a signal, and its peak memory in
    kilobytes."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # The peak includes the parent before the fork; the pages that it touched do not.
    touched_kb = usage.ru_minflt * (os.sysconf("SC_PAGE_SIZE") >> 10)
    return process.returncode, min(usage.ru_maxrss, touched_kb)


def _lines(output: IO[bytes] | None, max_bytes: int) -> Iterator[bytes]:
    """Yield whole lines only: the incomplete output of a killed reader is dropped."""
    while output and (line := output.readline(max_bytes)).endswith(b"\n"):
        yield line


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {"error": "broken"}
    return record if isinstance(record, dict) else {"error": "broken"}


def _as_portal_error(  # noqa: PLR0911 - a table of cases
    record: Mapping[str, Any], name: str, limits: ExtractionLimits, broken: type[PortalError]
) -> PortalError:
    match record["error"]:
        case "encrypted":
            return EncryptedPdf(name=name)
        case "no_pages":
            return EmptyPdf(name=name)
        case "pages":
            return ExtractionTooLarge(name=name, what=N_("pages"), limit=limits.max_pages)
        case "characters":
            return ExtractionTooLarge(name=name, what=N_("characters"), limit=limits.max_characters)
        case "memory":
            return UnpacksToTooMuch(name=name, limit_mb=record.get("limit_mb", limits.memory_mb))
        case "too_many" if record.get("what") in COUNTED:
            return TooMuchInOne(name=name, what=COUNTED[record["what"]], limit=record["limit"])
        case _:
            return broken(name=name)


def _as_shown(seconds: float) -> int | float:
    return int(seconds) if seconds == int(seconds) else seconds
