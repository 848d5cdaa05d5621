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
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from portal.errors import (
    BrokenFile,
    EncryptedPdf,
    ExtractionTimedOut,
    ExtractionTooLarge,
    PortalError,
)
from portal.ingest import page_progress
from portal.ingest.limits import ExtractionLimits

ERRORS = ("encrypted", "pages", "characters", "memory", "broken")
"""What a reader says went wrong: `{"error": …}`."""

_READERS = Path(__file__).with_name("readers")
_LIMITED = _READERS / "limited.py"
# A reader gets no more of our environment than Python needs: a file that takes it over must not
# find the database's address and the secret key there.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "SYSTEMROOT")
_LONGEST_RECORD = 64 << 20  # bytes, and a few more for each character that is allowed


def read_records(
    reader: str,
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,
    options: Mapping[str, Any] | None = None,
    broken: type[PortalError] = BrokenFile,
) -> Generator[dict[str, Any], None, None]:
    """What `readers/{reader}.py` yields for a file, as it comes; closed early, the reader ends.
    Those that count pages say first how many: `page_progress` tells of each that has its lines.

    Raises ExtractionTimedOut, ExtractionTooLarge, EncryptedPdf and, where the reader dies, says
    nothing or says "broken", `broken`.
    """
    command = [sys.executable, "-P", "-X", "utf8", str(_LIMITED), str(_READERS / f"{reader}.py")]
    command += [str(path.resolve()), str(limits.memory_mb), str(math.ceil(limits.timeout_s))]
    timed_out = threading.Event()
    is_empty = True
    pages_read = page_count = 0
    with subprocess.Popen(  # noqa: S603 - our own script, no shell
        [*command, json.dumps(dict(options or {}))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={key: os.environ[key] for key in _PASSED_ON if key in os.environ},
        # Ctrl-C is for the portal to handle; it must not look like a broken file.
        start_new_session=True,
    ) as process:

        def stop() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(limits.timeout_s, stop)
        timer.start()
        try:
            for line in _lines(process.stdout, _LONGEST_RECORD + 4 * limits.max_characters):
                record = _record(line)
                if error := record.get("error"):
                    raise _as_portal_error(error, file_name, limits, broken)
                is_empty = False
                page_count = record.get("pages", page_count)
                if "lines" in record:
                    pages_read += 1
                    page_progress.tell(pages_read, page_count)
                yield record
            process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
    if timed_out.is_set() or process.returncode == -getattr(signal, "SIGXCPU", signal.SIGTERM):
        raise ExtractionTimedOut(name=file_name, seconds=_shown(limits.timeout_s))
    if process.returncode != 0 or is_empty:
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
    """What a reader yields for a text, which meanwhile lies in a file of its own in `folder`.

    Raises as `read_records` does.
    """
    with tempfile.TemporaryDirectory(prefix="portal-", dir=folder) as directory:
        path = Path(directory) / "text"
        path.write_text(text, encoding="utf-8", newline="\n")
        records = read_records(reader, path, file_name=file_name, limits=limits, options=options)
        with closing(records):
            yield from records


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


def _as_portal_error(
    error: str, name: str, limits: ExtractionLimits, broken: type[PortalError]
) -> PortalError:
    if error == "encrypted":
        return EncryptedPdf(name=name)
    if error == "pages":
        return ExtractionTooLarge(name=name, what="pages", limit=limits.max_pages)
    if error == "characters":
        return ExtractionTooLarge(name=name, what="characters", limit=limits.max_characters)
    if error == "memory":
        return ExtractionTooLarge(name=name, what="data", limit=f"{limits.memory_mb} MB")
    return broken(name=name)


def _shown(seconds: float) -> int | float:
    return int(seconds) if seconds == int(seconds) else seconds
