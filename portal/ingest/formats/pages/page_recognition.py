"""OCR of scanned pages, if the extra `ocr` is installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from typing import Any

from portal.errors import N_, ExtractionTimedOut, InvalidInput, Message
from portal.ingest.limits import FileToRead
from portal.ingest.reader_process import read_records

_MAX_RANGES_NAMED = 10

# Read by people who may have no access to the server; operators find the extra in the docs.
NOT_INSTALLED = N_(
    "This portal does not read text in pictures. Upload a file that has it as text, or ask an "
    "administrator to install text recognition."
)
NOTHING_RECOGNISED = N_("Text recognition found nothing on them either.")
OUT_OF_TIME = N_(
    "Text recognition ran out of time. Split the file into parts, or ask an administrator to allow "
    "it more time."
)
BROKE_OFF = N_("Text recognition failed on this file.")


@dataclass(frozen=True, slots=True)
class Recognition:
    """The recognised lines by page, in the form of `readers.pdf_reader`, and the numbers of the
    pages that were not reached, with a sentence that gives the reason."""

    lines: dict[int, list[list[Any]]] = field(default_factory=dict)
    not_reached: frozenset[int] = frozenset()
    reason: Message | None = None


@cache
def is_installed() -> bool:
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


def read_pages(file: FileToRead, numbers: Sequence[int]) -> Recognition:
    """Return the text recognised on these pages. Pages not read within `ocr_timeout_s`, or on which
    OCR fails, stay without text: the rest of the document is still useful. Exceptions of the
    progress callbacks pass through."""
    return _read(file, numbers) if numbers else Recognition()


def read_picture(file: FileToRead) -> Recognition:
    """Return the text recognised in a picture, which may have several pages."""
    return _read(file, ())


def _read(file: FileToRead, numbers: Sequence[int]) -> Recognition:
    if not is_installed():
        return Recognition()
    limits = file.limits
    own = replace(limits, timeout_s=limits.ocr_timeout_s, memory_mb=limits.ocr_memory_mb)
    found = {}
    left, reason = set(numbers), None
    try:
        for record in read_records("ocr_reader", replace(file, limits=own), pages=list(numbers)):
            left.discard(record.get("page", 0))
            if record.get("lines"):
                found[record["page"]] = record["lines"]
    except ExtractionTimedOut:
        reason = OUT_OF_TIME
    except InvalidInput:  # The base class of every reader error.
        reason = BROKE_OFF
    return Recognition(found, frozenset(left), reason)


def warnings(numbers: Sequence[int], recognition: Recognition) -> tuple[Message, ...]:
    """Return warnings about pages without text; those that were not reached have their own."""
    not_reached = [number for number in numbers if number in recognition.not_reached]
    reached = [number for number in numbers if number not in recognition.not_reached]
    reason = NOTHING_RECOGNISED if is_installed() else NOT_INSTALLED
    return tuple(
        N_(
            "no text on %(where)s, only pictures or drawings. %(advice)s",
            where=in_words(part),
            advice=why,
        )
        for part, why in ((reached, reason), (not_reached, recognition.reason))
        if part
    )


def advice(recognition: Recognition) -> Message:
    """Return advice on a document without any text."""
    if recognition.not_reached and recognition.reason:
        return recognition.reason
    return NOTHING_RECOGNISED if is_installed() else NOT_INSTALLED


def in_words(numbers: Sequence[int]) -> Message:
    """Return page numbers in words, such as: page 4; pages 3–9, 12."""
    ranges = list(_ranges(numbers))
    more = "…" if len(ranges) > _MAX_RANGES_NAMED else ""
    named = ", ".join(
        f"{first}" if first == last else f"{first}–{last}"
        for first, last in ranges[:_MAX_RANGES_NAMED]
    )
    if len(numbers) == 1:
        return N_("page %(numbers)s", numbers=named)
    return N_("pages %(numbers)s", numbers=named + more)


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    # Consecutive numbers differ from their indexes by the same amount.
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        together = [number for _, number in run]
        yield together[0], together[-1]
