"""Text extraction for all formats."""

from __future__ import annotations

from portal.domain.documents import ExtractedText, MediaType
from portal.errors import N_, ExtractionTooLarge
from portal.ingest.formats import FORMATS
from portal.ingest.limits import FileToRead


def extract(file: FileToRead, media_type: MediaType) -> ExtractedText:
    """Return text, pages and headings of a file; never empty, within its limits. Raises EmptyFile,
    UndecodableText, EncryptedPdf, BrokenPdf, NoTextInPdf, ExtractionTimedOut, ExtractionTooLarge,
    and what its callbacks raise."""
    extracted, limit = FORMATS[media_type].extract(file), file.limits.max_characters
    if len(extracted.text) > limit:
        raise ExtractionTooLarge(name=file.name, what=N_("characters"), limit=limit)
    return extracted
