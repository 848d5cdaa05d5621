"""Runs `pdf_reader` as a process with limits, and turns its end into one of our errors."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from portal.errors import (
    BrokenPdf,
    EncryptedPdf,
    ExtractionTimedOut,
    ExtractionTooLarge,
    PortalError,
)
from portal.ingest.limits import ExtractionLimits

_READER = Path(__file__).with_name("pdf_reader.py")
_OPEN_LIMITS = ExtractionLimits(timeout_s=10)
# The reader gets no more of our environment than Python needs: a PDF that takes it over must not
# find the database's address and the secret key there.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "SYSTEMROOT")


def read_pdf(path: Path, *, file_name: str, limits: ExtractionLimits) -> list[dict[str, Any]]:
    """One record a page and one of the document, as `pdf_reader` describes them."""
    records = _run("read", path, file_name, limits)
    error = records[-1].get("error") if records else "broken"
    if error:
        raise _as_portal_error(error, file_name, limits)
    return records


def open_pdf(path: Path) -> str | None:
    """None if the file opens, else why not: `encrypted` or `broken`."""
    try:
        records = _run("open", path, path.name, _OPEN_LIMITS)
    except PortalError:
        return "broken"
    return records[0].get("error") if records else "broken"


def _run(mode: str, path: Path, name: str, limits: ExtractionLimits) -> list[dict[str, Any]]:
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.run(  # noqa: S603 - our own script, no shell
                [
                    *(sys.executable, "-P", "-X", "utf8", str(_READER), str(path.resolve()), mode),
                    *(str(limits.max_pages), str(limits.max_characters), str(limits.memory_mb)),
                    str(math.ceil(limits.timeout_s)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=limits.timeout_s,
                env={key: os.environ[key] for key in _PASSED_ON if key in os.environ},
                # Ctrl-C is for the portal to handle; it must not look like a broken file.
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ExtractionTimedOut(name=name, seconds=_shown(limits.timeout_s)) from None
        if process.returncode == -getattr(signal, "SIGXCPU", signal.SIGTERM):
            raise ExtractionTimedOut(name=name, seconds=_shown(limits.timeout_s))
        if process.returncode != 0:
            raise BrokenPdf(name=name)
        output.seek(0)
        return [json.loads(line) for line in output]


def _as_portal_error(error: str, name: str, limits: ExtractionLimits) -> PortalError:
    if error == "encrypted":
        return EncryptedPdf(name=name)
    if error == "pages":
        return ExtractionTooLarge(name=name, what="pages", limit=limits.max_pages)
    if error == "characters":
        return ExtractionTooLarge(name=name, what="characters", limit=limits.max_characters)
    if error == "memory":
        return ExtractionTooLarge(name=name, what="data", limit=f"{limits.memory_mb} MB")
    return BrokenPdf(name=name)


def _shown(seconds: float) -> int | float:
    return int(seconds) if seconds == int(seconds) else seconds
