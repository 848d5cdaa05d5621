"""Processes that render PDF pages and images of documents, and a cache of their results.

A process reads one file and stays alive for its next pages. Results are kept for minutes and only
in memory, so that a purge leaves nothing on disk. Both are bounded in number, bytes and time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from cachetools import TTLCache

from portal.errors import Overloaded, PagesUnavailable
from portal.ingest.fonts import SubstituteFont, system_fonts
from portal.ingest.limits import ExtractionLimits
from portal.ingest.page_process import PageProcess, PageText, Picture

Value = TypeVar("Value")
Sizes = list[tuple[float, float]]

LIMITS = ExtractionLimits(timeout_s=8, memory_mb=768)
"""The limits of a process; `timeout_s` is that of one page."""
# Each has a file of up to the upload limit in memory, and what PDFium allocates for it.
MAX_PROCESSES = 3
MAX_FAILURES = 3
"""How many pages of one file may fail before no more are tried for a while."""
_CPU_S = 120
_MAX_PICTURE_BYTES = 64 << 20
_MAX_TEXTS = 500
_MAX_FILES = 200
_KEPT_S = 600
_IDLE_S = 60
_CHECK_S = 10
# Requests that render or wait for it, so that a slow file leaves threads for others.
_MAX_WAITING = 8
_TIMEOUT_S = 3


@dataclass(frozen=True, slots=True)
class FileToShow:
    """A stored file; `parts` reads it, and `reader` shows its pages or images."""

    id: UUID
    size_bytes: int
    parts: Callable[[], Iterator[bytes]] = field(repr=False)
    reader: str = "pages_reader"


@dataclass(slots=True)
class _Reader:
    """The process of a file, started by its first user."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    process: PageProcess | None = None
    users: int = 0
    used_at: float = field(default_factory=time.monotonic)

    def close(self) -> None:
        if self.process is not None:
            self.process.close()
        self.process = None


class PageReaders:
    """The open readers and their cached results. Thread-safe."""

    def __init__(
        self,
        limits: ExtractionLimits = LIMITS,
        fonts: Callable[[], Iterable[SubstituteFont]] = system_fonts,
    ) -> None:
        self._limits = limits
        self._fonts = fonts
        self._lock = threading.Lock()
        self._places = threading.Semaphore(_MAX_WAITING)
        self._readers: dict[UUID, _Reader] = {}
        self._watch: threading.Thread | None = None
        self._closing = threading.Event()
        self._sizes: TTLCache[Any, Sizes] = TTLCache(_MAX_FILES, _KEPT_S)
        self._image_sizes: TTLCache[Any, tuple[int, int]] = TTLCache(_MAX_TEXTS, _KEPT_S)
        self._texts: TTLCache[Any, PageText] = TTLCache(_MAX_TEXTS, _KEPT_S)
        self._pictures: TTLCache[Any, Picture] = TTLCache(
            _MAX_PICTURE_BYTES, _KEPT_S, getsizeof=lambda picture: len(picture.data)
        )
        self._failures: TTLCache[UUID, frozenset[int | str]] = TTLCache(_MAX_FILES, _KEPT_S)

    def sizes(self, file: FileToShow) -> Sizes:
        """Return the sizes of all pages in points. Raises PagesUnavailable, Overloaded."""
        return self._get(self._sizes, file, (), lambda process: process.sizes)

    def text(self, file: FileToShow, number: int) -> PageText:
        """Return the characters of a page. Raises PagesUnavailable, Overloaded."""
        return self._get(self._texts, file, (number,), lambda process: process.text(number))

    def picture(self, file: FileToShow, name: int | str, width: int) -> Picture:
        """Return a page or image as a picture. Raises PagesUnavailable, Overloaded."""
        return self._get(
            self._pictures, file, (name, width), lambda process: process.picture(name, width)
        )

    def image_size(self, file: FileToShow, key: str, width: int) -> tuple[int, int]:
        """Return the size that `picture` gives an image. Raises PagesUnavailable, Overloaded."""
        return self._get(
            self._image_sizes, file, (key, width), lambda process: process.image_size(key, width)
        )

    def close(self) -> None:
        """End all processes that are not in use, and the thread that watches them."""
        self._end_idle(0)
        self._closing.set()
        if self._watch is not None:
            self._watch.join()

    def _get(
        self,
        kept: TTLCache[Any, Value],
        file: FileToShow,
        key: tuple[int | str, ...],
        ask: Callable[[PageProcess], Value],
    ) -> Value:
        page = key[0] if key else 0
        with self._lock:
            value = kept.get((file.id, *key))
            failures = self._failures.get(file.id, frozenset())
        if value is not None:
            return value
        if page in failures or 0 in failures or len(failures) >= MAX_FAILURES:
            raise PagesUnavailable
        with self._reader(file) as reader:
            value = self._ask(reader, file, page, ask)
        # A picture may be larger than the whole cache.
        with self._lock, suppress(ValueError):
            kept[file.id, *key] = value
        return value

    def _ask(
        self,
        reader: _Reader,
        file: FileToShow,
        page: int | str,
        ask: Callable[[PageProcess], Value],
    ) -> Value:
        failed: int | str = 0
        try:
            if reader.process is None or reader.process.has_ended:
                reader.close()
                reader.process = PageProcess(
                    file.parts(),
                    file.size_bytes,
                    self._limits,
                    cpu_s=_CPU_S,
                    fonts=self._fonts(),
                    reader=file.reader,
                )
            failed = page
            return ask(reader.process)
        except Overloaded:
            reader.close()
            raise
        except PagesUnavailable:
            reader.close()
            with self._lock:
                failures = self._failures.get(file.id, frozenset())
                self._failures[file.id] = failures | {failed}
            raise

    @contextmanager
    def _reader(self, file: FileToShow) -> Iterator[_Reader]:
        """Lock the reader of a file. Raises Overloaded after too long, or if too many wait."""
        if not self._places.acquire(blocking=False):
            raise Overloaded
        try:
            reader = self._acquire(file.id)
            try:
                if not reader.lock.acquire(timeout=_TIMEOUT_S):
                    raise Overloaded
                try:
                    yield reader
                finally:
                    reader.lock.release()
            finally:
                with self._lock:
                    reader.users -= 1
                    reader.used_at = time.monotonic()
        finally:
            self._places.release()

    def _acquire(self, file_id: UUID) -> _Reader:
        with self._lock:
            reader = self._readers.get(file_id)
            if reader is None:
                if len(self._readers) >= MAX_PROCESSES:
                    self._end_one()
                reader = self._readers[file_id] = _Reader()
            reader.users += 1
            if self._watch is None or not self._watch.is_alive():
                self._closing.clear()
                self._watch = threading.Thread(
                    target=self._end_while_open, name="page-readers", daemon=True
                )
                self._watch.start()
            return reader

    def _end_one(self) -> None:
        """End the least recently used reader. Raises Overloaded if all are in use."""
        free = [file_id for file_id, reader in self._readers.items() if not reader.users]
        if not free:
            raise Overloaded
        oldest = min(free, key=lambda file_id: self._readers[file_id].used_at)
        self._readers.pop(oldest).close()

    def _end_idle(self, idle_s: float) -> None:
        with self._lock:
            before = time.monotonic() - idle_s
            for file_id, reader in list(self._readers.items()):
                if not reader.users and reader.used_at <= before:
                    self._readers.pop(file_id).close()

    def _end_while_open(self) -> None:
        """End idle processes until none is left."""
        while not self._closing.wait(_CHECK_S):
            self._end_idle(_IDLE_S)
            with self._lock:
                if not self._readers:
                    self._watch = None
                    return
