"""Uploaded files, spooled to the data directory while they arrive.

All files of a request are spooled to one file without a name: whether a request has a thousand
small files or one of a gigabyte, it takes one descriptor and one block of memory, and a killed
process leaves nothing behind. Nothing of a file is stored beyond the size limit.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn, cast
from uuid import UUID

from flask import Flask, request
from flask import Request as FlaskRequest

from portal.domain.documents import Visibility
from portal.errors import InvalidInput, MalformedRequest, Message, TooLarge, UnsupportedMediaType
from portal.http import context, cookies
from portal.http.marks import Mark
from portal.services.documents.intake import idempotency
from portal.services.documents.intake.disk_space import ReservedSpace, temporary_dir
from portal.services.documents.intake.idempotency import Answer
from portal.services.documents.intake.uploads import (
    Upload,
    UploadTarget,
    clean_file_name,
    digest_of,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_PATH_CHARACTERS = 2000
_ASK_EVERY_BYTES = 8 * 1024 * 1024

one_by_one = Mark(takes_one_by_one=True)
"""Mark a view that takes files one by one: if one is too large, the others are still accepted."""


def sent_files(otherwise: Message) -> list[Upload]:
    """Return the files of the field `file`. Raises MalformedRequest, with the reason `otherwise`
    if the field is missing."""
    files = request.files.getlist("file")
    if not files and "file" in request.form:
        # A part of a form without a readable file name is parsed as text.
        raise MalformedRequest("the part `file` has no file name, or one that is garbled")
    if not files:
        raise MalformedRequest(otherwise)
    return [Upload(file.stream, file.filename or "unnamed") for file in files]


def form_visibility() -> Visibility:
    """Return the visibility for the form's files. Raises InvalidInput for an unknown value, so that
    no file gets a wider audience than intended."""
    try:
        return Visibility(request.form.get("visibility", Visibility.SHARED))
    except ValueError as error:
        raise InvalidInput("visibility must be shared or private") from error


def require_known_fields(*known: str) -> None:
    """Raise InvalidInput for a parameter of the address, and for a field of the form that is
    unknown or repeated: a misspelt `visibility` must not publish a document."""
    form = request.form
    unknown = sorted({*form} - {*known, cookies.CSRF_FIELD} | {*request.args})
    if unknown:
        raise InvalidInput(
            "unknown: %(names)s; the fields of the form are %(known)s",
            names=", ".join(unknown),
            known=", ".join(("file", *known)),
        )
    if repeated := [name for name in form if len(form.getlist(name)) > 1]:
        raise InvalidInput("given more than once: %(names)s", names=", ".join(repeated))


def store_once(
    action: Callable[[], Answer], files: Sequence[Upload], *values: str | None
) -> Answer:
    """Return the answer of `action`, or the earlier answer to the request's `Idempotency-Key` with
    the same files and values. Raises what `idempotency.once` raises."""
    return idempotency.once(
        *context.caller(),
        key=request.headers.get("Idempotency-Key"),
        body_sha256=lambda: digest_of(
            [file.stream for file in files], [*values, *(file.file_name for file in files)]
        ),
        action=action,
    )


def form_target() -> UploadTarget:
    """Return the target of the form's files, from the fields `folder_id` and `path`.

    Raises MalformedRequest for an invalid id, so that no file ends up elsewhere, and for a path
    that is too long.
    """
    folder_id, path = request.form.get("folder_id", ""), request.form.get("path", "")
    _check_length(path)
    try:
        return UploadTarget(UUID(folder_id) if folder_id else None, path)
    except ValueError as error:
        raise MalformedRequest("folder_id must be the id of a folder") from error


def form_targets(count: int) -> list[UploadTarget]:
    """Return the target of each file of the form. The field `paths` has the path of each file, one
    per line; without it all have that of `form_target`. Raises MalformedRequest."""
    target, lines = form_target(), request.form.get("paths", "")
    if not lines:
        return [target] * count
    paths = lines.replace("\r", "").split("\n")
    if len(paths) != count:
        raise MalformedRequest("paths must have a line for each file")
    _check_length(*paths)
    return [replace(target, path=path) for path in paths]


def _check_length(*paths: str) -> None:
    if any(len(path) > MAX_PATH_CHARACTERS for path in paths):
        raise MalformedRequest("a path has at most %(max)s characters", max=MAX_PATH_CHARACTERS)


class Spool:
    """One temporary file for all files of a request."""

    def __init__(self, directory: Path, room: ReservedSpace) -> None:
        """Spool to `directory`; written bytes are taken from the space reserved in `room`."""
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 - of the request
        self._room, self._ask_at = room, _ASK_EVERY_BYTES
        self.size_bytes = 0

    def begin(self, *, limit_bytes: int, refuse: Callable[[], Exception] | None) -> SpooledFile:
        """Return the next file, which must be written before another one begins. Writing beyond the
        limit raises the error of `refuse`; without `refuse` the bytes are counted and dropped."""
        return SpooledFile(self, self.size_bytes, limit_bytes, refuse)

    def append(self, data: memoryview) -> None:
        """Append the data. Raises StorageFull if only the disk's reserve is left, OSError if the
        disk is full."""
        while data:
            if self.size_bytes >= self._ask_at:
                # Check again: the length may be unknown, and others write to the disk too.
                self._room.take(0)
                self._ask_at = self.size_bytes + _ASK_EVERY_BYTES
            written = os.pwrite(self._file.fileno(), data, self.size_bytes)
            self._room.fill(written)
            self.size_bytes += written
            data = data[written:]

    def read_into(self, buffer: memoryview, start: int) -> int:
        return os.preadv(self._file.fileno(), [buffer], start)

    def close(self) -> None:
        self._file.close()


class SpooledFile(io.RawIOBase):
    """A file of the request, within the spool."""

    def __init__(
        self, spool: Spool, start: int, limit_bytes: int, refuse: Callable[[], Exception] | None
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
        """Append, whatever the reading position. Raises the error of `refuse`, StorageFull,
        OSError."""
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
    """A request whose files are spooled, if there is room for its Content-Length.

    JSON is also accepted with the Content-Type of a form, which `curl --data` sends.
    """

    _spool: Spool | None = None
    _room: ReservedSpace | None = None

    def _get_file_stream(
        self,
        total_content_length: int | None,  # noqa: ARG002 - the signature is fixed
        content_type: str | None,  # noqa: ARG002
        filename: str | None = None,
        content_length: int | None = None,  # noqa: ARG002
    ) -> IO[bytes]:
        settings = context.services().settings
        if self._room is None:
            self._room = ReservedSpace(settings)
        if self._spool is None:
            self._room.take(self.content_length or 0)
            self._spool = Spool(temporary_dir(settings), self._room)

        def refuse() -> Exception:
            return TooLarge(name=clean_file_name(filename or ""), limit_mb=settings.max_upload_mb)

        skips_large = context.marks().takes_one_by_one
        file = self._spool.begin(
            limit_bytes=settings.max_upload_bytes, refuse=None if skips_large else refuse
        )
        return cast("IO[bytes]", file)

    def _load_form_data(self) -> None:
        try:
            super()._load_form_data()
        finally:
            # The body has been read, or reading failed. Storing files reserves its own space.
            if self._room is not None:
                self._room.close()

    def on_json_loading_failed(self, error: ValueError | None) -> NoReturn:
        if self.mimetype and not self.is_json:
            raise UnsupportedMediaType from error
        raise MalformedRequest("the body is not JSON in UTF-8") from error

    def close(self) -> None:
        super().close()
        if self._spool is not None:
            self._spool.close()


def init_app(app: Flask) -> None:
    app.request_class = Request
