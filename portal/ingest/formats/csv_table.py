"""CSV and TSV: one table, one row per line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace

from portal.domain.documents import ExtractedText
from portal.errors import N_, ExtractionTooLarge, TooMuchInOne
from portal.ingest.formats.plain_text import read_text
from portal.ingest.formats.texts.sheet_text import SheetText
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import COUNTED

EXTRACTOR = "csv"

MAX_CELLS = 2_000_000
# As many as a sheet can have. The time to cut a table into chunks grows with rows times columns.
MAX_COLUMNS = 16_384
_DELIMITERS = ",;\t|"
# Excel's own first line, "sep=;", which is not part of the table.
_NAMED_DELIMITER = re.compile(r"sep=([^\w\"])", re.IGNORECASE)
_LINES_COMPARED = 20
_MAX_LINE_COMPARED = 100_000
_MAX_FIELD_CHARACTERS = 1_000_000


def extract(file: FileToRead) -> ExtractedText:
    """Return one record per line; the first is the header if it reads like one. Raises EmptyFile,
    UndecodableText, TooMuchInOne and ExtractionTooLarge."""
    read, max_characters = read_text(file), file.limits.max_characters
    writer, cell_count, character_count = SheetText(), 0, 0
    for record in _records(read.text, file.name):
        cell_count += len(record)
        character_count += sum(map(len, record))
        if len(record) > MAX_COLUMNS:
            raise TooMuchInOne(name=file.name, what=COUNTED["columns"], limit=MAX_COLUMNS)
        if cell_count > MAX_CELLS:
            raise TooMuchInOne(name=file.name, what=COUNTED["cells"], limit=MAX_CELLS)
        if character_count > max_characters:
            raise ExtractionTooLarge(name=file.name, what=N_("characters"), limit=max_characters)
        writer.add_row(record)
    writer.close_table()
    extracted = writer.readable.extracted(file, EXTRACTOR)
    return replace(extracted, encoding=read.encoding, warnings=read.warnings)


def _records(text: str, file_name: str) -> Iterator[list[str]]:
    """Yield records; after an unmatched quote, the rest of the file line by line."""
    csv.field_size_limit(_MAX_FIELD_CHARACTERS)
    lines = text.split("\n")
    named = _NAMED_DELIMITER.fullmatch(lines[0])
    lines = lines[1:] if named else lines
    delimiter = named[1] if named else _delimiter(lines, file_name)
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=False)
    done = 0
    try:
        for record in reader:
            done = reader.line_num
            yield record
    except csv.Error:  # An unterminated field: its quotation mark is part of the text.
        for line in lines[done:]:
            yield line.split(reader.dialect.delimiter)


def _delimiter(lines: list[str], file_name: str) -> str:
    """Return the delimiter that splits the first lines into the most equal columns."""
    if file_name.lower().endswith((".tsv", ".tab")):
        return "\t"
    sample = [line[:_MAX_LINE_COMPARED] for line in lines[:_LINES_COMPARED] if line.strip()]

    def columns(delimiter: str) -> tuple[int, int]:
        counts = [len(next(csv.reader([line], delimiter=delimiter), [])) for line in sample]
        usual = max(set(counts), key=counts.count, default=1)
        return (counts.count(usual) if usual > 1 else 0), usual

    return max(_DELIMITERS, key=columns)
