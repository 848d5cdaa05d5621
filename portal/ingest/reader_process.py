"""Starts a reader as a process with limits, and turns its end into one of our errors."""

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
from portal.ingest import page_progress
from portal.ingest.limits import ExtractionLimits

ERRORS = ("encrypted", "no_pages", "pages", "characters", "memory", "too_many", "broken")
"""What a reader says went wrong: `{"error": …}`, for `too_many` with `what` and `limit`, for
`memory` perhaps with `limit_mb`."""
COUNTED = {
    "attributes": N_("attributes in one element"),
    "cells": N_("cells"),
    "depth": N_("levels of nesting"),
    "elements": N_("elements"),
    "lines": N_("lines"),
    "paragraph": N_("characters in one paragraph"),
    "parts": N_("parts"),
}
"""`what` of `too_many`, as people are told."""

_READERS = Path(__file__).with_name("readers")
_LIMITED = _READERS / "limited.py"
# A reader gets no more of our environment than Python needs: a file that takes it over must not
# find the database's address and the secret key there.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "SYSTEMROOT")
# One thread each: others would not be confined by all layers.
_SET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_MAX_RECORD_LENGTH = 64 << 20  # bytes, and a few more for each character that is allowed
_LOOK_EVERY_S = 0.5
_PROBE_LIMITS = ExtractionLimits(timeout_s=10)
# A process that was killed with so much of its memory in use was killed for want of memory.
_FULL_SHARE = 0.5


def read_records(
    reader: str,
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,
    options: Mapping[str, Any] | None = None,
    broken: type[PortalError] = BrokenFile,
) -> Generator[dict[str, Any], None, None]:
    """Yield what `readers/{reader}.py` yields for a file, as it comes; closed early, the reader
    ends. For those that count pages first, `page_progress` is told of each that has its lines.

    Raises ExtractionTimedOut, ExtractionTooLarge, UnpacksToTooMuch, TooMuchInOne, EncryptedPdf,
    EmptyPdf, what whoever follows the reading raises to end it and, where the reader dies, says
    nothing or says "broken", `broken`.
    """
    is_empty = True
    pages_read = page_count = 0
    with (
        path.open("rb") as file,
        _started(reader, file, limits, options or {}) as process,
        _watched(process, limits.timeout_s) as watch,
    ):
        for line in _lines(process.stdout, _MAX_RECORD_LENGTH + 4 * limits.max_characters):
            record = _record(line)
            if "confined_by" in record:
                continue
            if "error" in record:
                raise _as_portal_error(record, file_name, limits, broken)
            is_empty = False
            page_count = record.get("pages", page_count)
            if "lines" in record:
                pages_read += 1
                page_progress.tell(pages_read, page_count)
            yield record
        _wait(process)
        watch.stop()
        status, peak_kb = _take_status(process)
    if watch.reason is not None:
        raise watch.reason
    if watch.timed_out or status == -getattr(signal, "SIGXCPU", signal.SIGTERM):
        raise ExtractionTimedOut(name=file_name, seconds=_shown(limits.timeout_s))
    if status < 0 and peak_kb > _FULL_SHARE * (limits.memory_mb << 10):
        raise UnpacksToTooMuch(name=file_name, limit_mb=limits.memory_mb)
    if status != 0 or is_empty:
        raise broken(name=file_name)


def read_text_records(
    reader: str,
    text: str,
    *,
    folder: Path,
    file_name: str,
    limits: ExtractionLimits,
    options: Mapping[str, Any],
) -> Generator[dict[str, Any], None, None]:
    """Yield what a reader yields for a text, which meanwhile lies in a file of its own in `folder`.

    Raises as `read_records` does.
    """
    with tempfile.TemporaryDirectory(prefix="portal-", dir=folder) as directory:
        path = Path(directory) / "text"
        path.write_text(text, encoding="utf-8", newline="\n")
        records = read_records(reader, path, file_name=file_name, limits=limits, options=options)
        with closing(records):
            yield from records


def probe_confinement() -> dict[str, bool]:
    """Start a reader and return which layers of confinement hold; see `readers.confinement`.

    `user` is missing unless the portal runs as root: then there is no other user to become.
    """
    wanted = ["no_new_privs", "landlock", "seccomp", "limits", "network"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        wanted.insert(0, "user")
    with (
        Path(os.devnull).open("rb") as nothing,
        _started("probe_reader", nothing, _PROBE_LIMITS, {}) as process,
    ):
        first = next(_lines(process.stdout, _MAX_RECORD_LENGTH), b"{}")
    held = _record(first).get("confined_by", [])
    return {layer: layer in held for layer in wanted}


@contextmanager
def _started(
    reader: str, file: IO[bytes], limits: ExtractionLimits, options: Mapping[str, Any]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a reader, whose only files are `file` and a pipe to us; it ends with the context."""
    command = [sys.executable, "-P", "-X", "utf8", str(_LIMITED), str(_READERS / f"{reader}.py")]
    command += [str(limits.memory_mb), str(math.ceil(limits.timeout_s)), json.dumps(dict(options))]
    with subprocess.Popen(  # noqa: S603 - our own script, no shell
        command,
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={key: os.environ[key] for key in _PASSED_ON if key in os.environ} | _SET,
        # Ctrl-C is for the portal to handle; it must not look like a broken file.
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class _Watch:
    """Ends a reader whose time is over, or whose result is not wanted any more."""

    def __init__(
        self, process: subprocess.Popen[bytes], timeout_s: float, check: Callable[[], None]
    ) -> None:
        self._process, self._check = process, check
        self._ends_at = time.monotonic() + timeout_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="reader-watch", daemon=True)
        self.timed_out = False
        self.reason: BaseException | None = None
        """What `check` raised."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(min(_LOOK_EVERY_S, max(0, self._ends_at - time.monotonic()))):
            try:
                self._check()
            except Exception as reason:  # noqa: BLE001 - raised where the records are read
                self.reason = reason
            self.timed_out = time.monotonic() >= self._ends_at
            if self.timed_out or self.reason is not None:
                # Not `Popen.kill`, which would take its status from whoever waits for it.
                os.kill(self._process.pid, signal.SIGKILL)
                return


@contextmanager
def _watched(process: subprocess.Popen[bytes], timeout_s: float) -> Iterator[_Watch]:
    watch = _Watch(process, timeout_s, page_progress.current_check())
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait for its end and leave its status to be taken: until then its number is not given away,
    and the watch may kill it."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def _take_status(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Return how it ended, negative for a signal, and the most kilobytes of memory that it used; 0
    where the system does not tell."""
    if not hasattr(os, "wait4"):
        return process.wait(), 0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # The peak counts the process that started it as well; the pages that it touched do not.
    touched_kb = usage.ru_minflt * (os.sysconf("SC_PAGE_SIZE") >> 10)
    return process.returncode, min(usage.ru_maxrss, touched_kb)


def _lines(output: IO[bytes] | None, longest: int) -> Iterator[bytes]:
    """Whole lines only: what a reader that was stopped began to say does not count."""
    while output and (line := output.readline(longest)).endswith(b"\n"):
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


def _shown(seconds: float) -> int | float:
    return int(seconds) if seconds == int(seconds) else seconds
