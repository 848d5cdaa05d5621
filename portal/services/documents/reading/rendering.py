"""Markdown files rendered as pages."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from portal.errors import Overloaded
from portal.ingest.decoding import decode
from portal.ingest.limits import ExtractionLimits, FileToRead
from portal.ingest.reader_process import read_text_records
from portal.services import Services
from portal.services.documents.intake import disk_space
from portal.services.documents.library import StoredFile

_LIMITS = ExtractionLimits(timeout_s=10, memory_mb=512)
_TIMEOUT_S = 5
# Each rendering is a process of its own.
_running = threading.BoundedSemaphore(2)


def render_markdown(services: Services, stored: StoredFile, encoding: str | None) -> str:
    """Return the body of a web page, which may hold any HTML. Raises Overloaded,
    UndecodableText, BrokenFile and ExtractionTimedOut."""
    if not _running.acquire(timeout=_TIMEOUT_S):
        raise Overloaded
    try:
        room = disk_space.temporary_dir(services.settings)
        with tempfile.TemporaryDirectory(prefix="portal-", dir=room) as directory:
            file = FileToRead(Path(directory) / "file", stored.file_name, _LIMITS)
            text = decode(
                b"".join(stored.parts), file_name=stored.file_name, encoding=encoding
            ).text
            (record,) = read_text_records("rendered_reader", text, file)
    finally:
        _running.release()
    return str(record["html"])
