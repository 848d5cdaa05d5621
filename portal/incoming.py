"""Files on their way in, written to the data directory's disk as they come.

All files of a request are parts of one file without a name: a request has one descriptor open and
a block in memory, whether it brings a thousand small files or one of a gigabyte, and of a process
that is killed nothing is left. What is longer than a file may be is not kept beyond that.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from flask import Flask
from flask import Request as FlaskRequest

from portal import context
from portal.errors import TooLarge
from portal.services import disk_space
from portal.services.uploads import clean_file_name

if TYPE_CHECKING:
    from typing_extensions import Buffer

View = TypeVar("View", bound=Callable[..., Any])


def one_by_one(view: View) -> View:
    """Mark a view that takes each file by itself: one that is too long is not to cost the others.
    Anywhere else reading ends with it."""
    cast("Any", view).takes_one_by_one = True
    return view


class Spool:
    """The file behind all files of a request."""

    def __init__(self, directory: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 - of the request
        self.size_bytes = 0

    def begin(self, *, limit_bytes: int, refuse: Callable[[], Exception] | None) -> SpooledFile:
        """The next file, which takes what is written until the one after it begins. What goes
        beyond the limit raises what `refuse` makes, or without it is counted and not kept."""
        return SpooledFile(self, self.size_bytes, limit_bytes, refuse)

    def append(self, data: memoryview) -> None:
        while data:
            written = os.pwrite(self._file.fileno(), data, self.size_bytes)
            self.size_bytes += written
            data = data[written:]

    def read_into(self, buffer: memoryview, start: int) -> int:
        return os.preadv(self._file.fileno(), [buffer], start)

    def close(self) -> None:
        self._file.close()


class SpooledFile(io.RawIOBase):
    """One of them, from its own beginning to its own end."""

    def __init__(
        self,
        spool: Spool,
        start: int,
        limit_bytes: int,
        refuse: Callable[[], Exception] | None,
    ) -> None:
        self._spool, self._start = spool, start
        self._limit_bytes, self._refuse = limit_bytes, refuse
        self._place = self._kept_bytes = self._size_bytes = 0

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        """Add to the end, wherever reading is. Raises OSError, such as of a full disk."""
        block = memoryview(data).cast("B")
        self._size_bytes += len(block)
        if self._size_bytes > self._limit_bytes and self._refuse is not None:
            raise self._refuse()
        kept = block[: max(0, self._limit_bytes - self._kept_bytes)]
        self._spool.append(kept)
        self._kept_bytes += len(kept)
        return len(block)

    def readinto(self, buffer: Buffer, /) -> int:
        block = memoryview(buffer).cast("B")
        left = max(0, self._kept_bytes - self._place)
        count = self._spool.read_into(block[:left], self._start + self._place) if left else 0
        self._place += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size_bytes}[whence]
        self._place = max(0, base + offset)
        return self._place

    def tell(self) -> int:
        return self._place


class Request(FlaskRequest):
    """A request whose files go to a spool."""

    _spool: Spool | None = None

    def _get_file_stream(
        self,
        total_content_length: int | None,  # noqa: ARG002 - the signature is fixed
        content_type: str | None,  # noqa: ARG002
        filename: str | None = None,
        content_length: int | None = None,  # noqa: ARG002
    ) -> IO[bytes]:
        settings = context.services().settings
        if self._spool is None:
            self._spool = Spool(disk_space.temporary_dir(settings))

        def refuse() -> Exception:
            return TooLarge(name=clean_file_name(filename or ""), limit_mb=settings.max_upload_mb)

        goes_on = getattr(context.view(), "takes_one_by_one", False)
        file = self._spool.begin(
            limit_bytes=settings.max_upload_bytes, refuse=None if goes_on else refuse
        )
        return cast("IO[bytes]", file)

    def close(self) -> None:
        super().close()
        if self._spool is not None:
            self._spool.close()


def init_app(app: Flask) -> None:
    app.request_class = Request
