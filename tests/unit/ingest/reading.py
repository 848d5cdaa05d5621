"""Helpers that read files as an upload does, and list the tables and cells."""

from __future__ import annotations

from pathlib import Path

from portal.domain.documents import ExtractedText, MediaType
from portal.domain.documents.structure import Block, BlockKind
from portal.ingest.extraction import extract
from portal.ingest.limits import ExtractionLimits, FileToRead
from portal.ingest.media_types import sniff_file
from portal.text.layout.tables import table_rows


def read(path: Path, media_type: MediaType | None = None, **limits: float) -> ExtractedText:
    """Return the text of a file; without a media type it is detected."""
    file = FileToRead(path, path.name, ExtractionLimits(**limits))  # type: ignore[arg-type]
    return extract(file, media_type or type_of(path))


def type_of(path: Path) -> MediaType:
    with path.open("rb") as stream:
        return sniff_file(stream, path.name)


def tables(extracted: ExtractedText) -> list[Block]:
    return [block for block in extracted.blocks if block.kind is BlockKind.TABLE]


def cells(text: str, table: Block) -> list[tuple[str, ...]]:
    return [row.texts(text) for row in table_rows(text, table)]
