"""The text of a file, whatever its format."""

from __future__ import annotations

from pathlib import Path

from portal.domain.documents import ExtractedText, MediaType
from portal.errors import N_, ExtractionTooLarge
from portal.ingest.formats import EXTRACTORS
from portal.ingest.limits import ExtractionLimits

__all__ = ["ExtractionLimits", "extract"]


def extract(
    path: Path,
    *,
    file_name: str,
    media_type: MediaType,
    limits: ExtractionLimits | None = None,
    encoding: str | None = None,
) -> ExtractedText:
    """Text, pages and headings of a file; never empty, within `limits`. Parts of it may lie
    beside it, in the folder of `path`, while it is read.

    `encoding` overrides what is recognised in text files. Raises EmptyFile, UndecodableText,
    EncryptedPdf, BrokenPdf, NoTextInPdf, ExtractionTimedOut and ExtractionTooLarge.
    """
    limits = limits or ExtractionLimits()
    extracted = EXTRACTORS[media_type](path, file_name=file_name, limits=limits, encoding=encoding)
    if len(extracted.text) > limits.max_characters:
        raise ExtractionTooLarge(name=file_name, what=N_("characters"), limit=limits.max_characters)
    return extracted
