"""A process that renders the pages of one PDF, or the images in a file, on demand, with the rights
and limits of a reader."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from math import inf
from typing import Any

import psutil

from portal.errors import Overloaded, PagesUnavailable
from portal.ingest.fonts import SubstituteFont
from portal.ingest.limits import ExtractionLimits
from portal.ingest.reader_process import start_reader

# A picture of eight million pixels, in base64.
_MAX_ANSWER_BYTES = 64 << 20
# The share of a processor that a command must have used before it timed out: with less, the machine
# was busy, and the page is not to blame.
_MIN_SHARE = 1 / 8


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as a picture."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class PageText:
    """The characters of a page as it is shown. `boxes` has left, top, right and bottom of each, in
    tenths of a point from the upper left corner; line ends have zeros. `undrawn` counts the
    characters that the picture lacks because no font has them."""

    text: str
    boxes: tuple[int, ...]
    undrawn: int = 0

    def box(self, index: int) -> tuple[int, int, int, int]:
        left, top, right, bottom = self.boxes[4 * index : 4 * index + 4]
        return left, top, right, bottom


class PageProcess:
    """A reader of one file that waits for commands. One thread at a time may use it. All methods
    raise PagesUnavailable if the file is broken or locked, has too many pages, or exceeds its
    limits of time and memory, and Overloaded if the time passed with little work, on a busy
    machine. After either, the process cannot be used any more."""

    def __init__(
        self,
        parts: Iterable[bytes],
        size_bytes: int,
        limits: ExtractionLimits,
        *,
        cpu_s: float,
        fonts: Iterable[SubstituteFont] = (),
        reader: str = "pages_reader",
    ) -> None:
        """Start `readers/{reader}.py` and send it the file. `limits.timeout_s` applies to each
        command, `cpu_s` is the processor time of all commands together; `fonts` draw the text that
        the file has no font for."""
        self._timeout_s = limits.timeout_s
        whole = ExtractionLimits(timeout_s=cpu_s, memory_mb=limits.memory_mb)
        given = [astuple(font) for font in fonts]
        options = {"size": size_bytes, "pages": limits.max_pages, "fonts": given}
        self._process = start_reader(reader, subprocess.PIPE, whole, options)
        try:
            with self._within_time():
                for part in parts:
                    self._write(part)
                self.sizes = [(float(wide), float(high)) for wide, high in self._sizes()]
        except BaseException:
            self.close()
            raise

    def text(self, number: int) -> PageText:
        with self._within_time():
            answer = self._ask("text", number)
        boxes = tuple(map(int, answer["boxes"]))
        return PageText(str(answer["text"]), boxes, int(answer["undrawn"]))

    def picture(self, name: int | str, width: int) -> Picture:
        """Return a page, or the image with this key, as a picture about `width` pixels wide; empty
        if it is not an image."""
        with self._within_time():
            answer = self._ask("picture", name, width)
        return Picture(str(answer["type"]), base64.b64decode(answer["data"]))

    def image_size(self, key: str, width: int) -> tuple[int, int]:
        """Return the size of the result of `picture` for an image; zeros if it is not an image."""
        with self._within_time():
            wide, high = self._ask("size", key, width)["size"]
        return int(wide), int(high)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()
        self._process.wait()

    @contextmanager
    def _within_time(self) -> Iterator[None]:
        limit_s = self._processor_s() + self._timeout_s * _MIN_SHARE
        has_waited = threading.Event()

        def stop() -> None:
            if self._processor_s() < limit_s:
                has_waited.set()
            self._process.kill()

        timer = threading.Timer(self._timeout_s, stop)
        timer.start()
        try:
            yield
        except (OSError, ValueError, KeyError, TypeError, PagesUnavailable) as error:
            raise (Overloaded if has_waited.is_set() else PagesUnavailable) from error
        finally:
            timer.cancel()

    def _processor_s(self) -> float:
        """Return the processor time of the process so far; infinity if the process has ended."""
        try:
            return sum(psutil.Process(self._process.pid).cpu_times()[:2])
        except psutil.Error:
            return inf

    def _sizes(self) -> list[list[float]]:
        answer = self._answer()
        if "confined_by" in answer:
            answer = self._answer()
        return list(answer["sizes"])

    def _ask(self, *command: Any) -> dict[str, Any]:
        self._write(json.dumps(command).encode() + b"\n")
        return self._answer()

    def _write(self, data: bytes) -> None:
        if self._process.stdin is None:
            raise PagesUnavailable
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline(_MAX_ANSWER_BYTES) if self._process.stdout else b""
        answer = json.loads(line) if line.endswith(b"\n") else None
        if not isinstance(answer, dict) or "error" in answer:
            raise PagesUnavailable
        return answer
