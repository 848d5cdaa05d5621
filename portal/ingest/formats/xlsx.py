"""XLSX: each sheet with its tables, read by openpyxl in a limited process."""

from __future__ import annotations

import re
from dataclasses import replace

from portal.domain.documents import ExtractedText
from portal.errors import N_, EmptyFile
from portal.ingest.formats.texts.readable_text import one_line
from portal.ingest.formats.texts.sheet_text import SheetText
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records

EXTRACTOR = "openpyxl"

HIDDEN_LEFT_OUT = N_("hidden sheets were skipped")
RESULTS_LEFT_OUT = N_("formulas without a stored result were skipped")
_LEFT_OUT = {"has_hidden": HIDDEN_LEFT_OUT, "lacks_results": RESULTS_LEFT_OUT}
# Default names that programs give to sheets.
_NO_NAME = re.compile(r"(?:sheet|工作表|工作表單|表)\s*\d*", re.IGNORECASE)


def extract(file: FileToRead) -> ExtractedText:
    """Return cells as displayed, row by row: results of formulas, dates and percentages. Raises
    EmptyFile, BrokenFile, TooMuchInOne, ExtractionTimedOut and ExtractionTooLarge."""
    writer, warnings = SheetText(), []
    for record in read_records("xlsx_reader", file, characters=file.limits.max_characters):
        if "sheet" in record:
            name = one_line(record["sheet"])
            writer.open_sheet(name, is_heading=bool(name) and not _NO_NAME.fullmatch(name))
        for row in record.get("rows", ()):
            writer.add_row(row)
        warnings += [words for name, words in _LEFT_OUT.items() if record.get(name)]
    writer.close_table()
    if not writer.readable.has_words:
        raise EmptyFile(name=file.name)
    return replace(writer.readable.extracted(file, EXTRACTOR), warnings=tuple(warnings))
