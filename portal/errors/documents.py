"""Errors of documents: uploads, jobs, versions and sources."""

from __future__ import annotations

import math

from portal.errors.base import Conflict, InvalidInput, PortalError, TooLarge, Unavailable
from portal.errors.messages import N_

# A message on the line of its name keeps this list short.
# fmt: off


class JobCancelled(Conflict):
    code = "cancelled"
    message = N_("Processing was cancelled. Retry to read the document.")


class Superseded(JobCancelled):
    message = N_("A newer version was uploaded before this one was read.")


class AlreadyElsewhere(Conflict):
    message = N_("This file already exists as “%(title)s”. To add it as a version of this "
                 "document, delete that one first.")


class KeptElsewhere(Conflict):
    message = N_("This file already exists as “%(title)s”. It was not moved.")


class UploadedAgain(Conflict):
    message = N_("This file was uploaded again as “%(title)s”. To restore this copy, delete that "
                 "document first.")


class ChunkIndexTaken(Conflict):
    message = N_("This job has a passage with chunk_index %(index)s already. Choose another, or "
                 "leave it out to append the passage.")


class IdempotencyConflict(Conflict):
    code = "idempotency_in_flight"
    message = N_("The same request is still in progress. Wait for it to finish, then try again.")


class IdempotencyMismatch(PortalError):
    status = 409
    message = N_("This Idempotency-Key was used for another request. Use a new one.")


class OwnerQuotaExceeded(PortalError):
    status = 413
    message = N_("Not enough storage for “%(name)s”: the version counts against the storage of the "
                 "document's owner, who has too little left.")


class QuotaExceeded(PortalError):
    status = 413
    message = N_("Not enough storage for “%(name)s” (%(size_mb)s MB): you are using %(used_mb)s MB "
                 "of %(limit_mb)s MB. Delete documents and empty the trash, or ask your "
                 "administrator for more storage.")

    def __init__(self, *, name: str, size_bytes: int, used_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            name=name,
            size_mb=_megabytes(size_bytes),
            used_mb=_megabytes(used_bytes),
            limit_mb=_megabytes(limit_bytes),
        )
        self.details = {
            "size_bytes": size_bytes,
            "used_bytes": used_bytes,
            "limit_bytes": limit_bytes,
        }


def _megabytes(size_bytes: int) -> str:
    """Return the size in MB, rounded up to a tenth."""
    return f"{math.ceil(10 * size_bytes / 1024**2) / 10:.1f}".removesuffix(".0")


class UnsupportedFormat(PortalError):
    status = 415
    message = N_("“%(name)s” is not supported: it looks like %(detected)s. Upload a PDF, "
                 "Word, Excel, PowerPoint, EPUB, e-mail (EML), CSV, HTML, Markdown or plain text "
                 "file.")


class UnsupportedSuffix(UnsupportedFormat):
    message = N_("This file type is not supported. Supported are PDF, Word, Excel, PowerPoint, "
                 "EPUB, e-mail (EML), CSV, HTML, Markdown and plain text.")


class TextsTooLong(TooLarge):
    message = N_("The two texts are too long to compare (%(characters)s characters; the limit is "
                 "%(limit)s).")


class TooManyLines(TextsTooLong):
    message = N_("The two texts are too long to compare (more than %(limit)s lines and sentences).")


class InfectedFile(InvalidInput):
    message = N_("“%(name)s” was refused: the malware scanner found something in it. Nothing was "
                 "stored. Check the computer it came from, or ask your administrator.")


class ScannerUnavailable(Unavailable):
    message = N_("The file could not be scanned for malware, so nothing was stored. Try again in a "
                 "moment; if it stays so, tell your administrator.")
    retry_after_s = 30


class KilledWorker(InvalidInput):
    message = N_("Reading “%(name)s” crashed %(times)s times in a row. Split it into smaller "
                 "files, or save a new copy and upload that.")


class PagesUnavailable(InvalidInput):
    message = N_("The pages of this file cannot be shown. Its text can be read.")


class SourceUnavailable(InvalidInput):
    message = N_("The source cannot be read: %(reason)s. Nothing was removed.")


class PageUnavailable(InvalidInput):
    message = N_("The page cannot be read: %(reason)s.")


class PageGone(PageUnavailable):
    message = N_("The server has removed the page permanently.")
