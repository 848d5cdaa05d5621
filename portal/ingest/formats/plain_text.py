"""Plain text: its characters as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from portal.domain.documents import ExtractedText
from portal.errors import EmptyFile
from portal.ingest.decoding import decode
from portal.ingest.limits import ExtractionLimits

EXTRACTOR = "text"

_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\u0085]")


def extract(
    path: Path,
    *,
    file_name: str,
    limits: ExtractionLimits,  # noqa: ARG001 - every extractor takes it
    encoding: str | None = None,
) -> ExtractedText:
    """The text with line feeds as line ends; `encoding` overrides the recognition.

    Raises EmptyFile and UndecodableText.
    """
    text, used = read_text(path, file_name=file_name, encoding=encoding)
    return ExtractedText(text=text, extractor=EXTRACTOR, encoding=used)


def read_text(path: Path, *, file_name: str, encoding: str | None) -> tuple[str, str]:
    """The text, as `storable` has it, and its encoding. Raises EmptyFile and UndecodableText."""
    decoded = decode(path.read_bytes(), file_name=file_name, encoding=encoding)
    text = storable(decoded.text)
    if not text.strip():
        raise EmptyFile(name=file_name)
    return text, decoded.encoding


def storable(text: str) -> str:
    """Text with line feeds as line ends, without NUL, which PostgreSQL cannot store."""
    return _LINE_ENDS.sub("\n", text).replace("\0", "")
