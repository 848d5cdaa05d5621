"""Text extraction for all formats."""

from __future__ import annotations

from pathlib import Path

from portal.domain.documents import ExtractedText, MediaType
from portal.errors import N_, ExtractionTooLarge
from portal.ingest.formats import FORMATS
from portal.ingest.limits import ExtractionLimits, FileToRead

__all__ = ["ExtractionLimits", "extract"]


def extract(
    path: Path,
    *,
    file_name: str,
    media_type: MediaType,
    limits: ExtractionLimits | None = None,
    encoding: str | None = None,
) -> ExtractedText:
    """Return text, pages and headings of a file; never empty, within `limits`.

    Temporary files may be written to the folder of `path`. `encoding` overrides detection for text
    files. Raises EmptyFile, UndecodableText, EncryptedPdf, BrokenPdf, NoTextInPdf,
    ExtractionTimedOut and ExtractionTooLarge.
    """
    limits = limits or ExtractionLimits()
    extracted = FORMATS[media_type].extract(FileToRead(path, file_name, limits, encoding))
    if len(extracted.text) > limits.max_characters:
        raise ExtractionTooLarge(name=file_name, what=N_("characters"), limit=limits.max_characters)
    return extracted
