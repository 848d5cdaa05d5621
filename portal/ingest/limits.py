"""A file to read, and the limits on reading it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits of a reader process. `timeout_s` is wall and processor time, `memory_mb` address
    space. OCR of scanned pages has higher limits."""

    max_pages: int = 5_000
    max_characters: int = 10_000_000
    timeout_s: float = 120
    memory_mb: int = 768
    ocr_timeout_s: float = 1_800
    ocr_memory_mb: int = 4_096


@dataclass(frozen=True, slots=True)
class FileToRead:
    """A file, its name for users, and for text files the encoding that a user chose.

    Readers may write temporary files to the folder of `path`. `on_page` is called with the number
    of pages done and of all pages, `check` from another thread, about twice a second, while a
    reader process works. An exception raised by either ends the reading.
    """

    path: Path
    name: str
    limits: ExtractionLimits = ExtractionLimits()
    encoding: str | None = None
    on_page: Callable[[int, int], None] = lambda _done, _total: None
    check: Callable[[], None] = lambda: None
