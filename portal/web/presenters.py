"""Domain values as text for pages: sizes, confidence, reasons, marked text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from flask import Flask
from flask_babel import format_date, format_decimal, format_time, gettext
from lucide.jinja import lucide
from markupsafe import Markup

from portal.domain.documents import MediaType
from portal.domain.people.devices import Device
from portal.domain.search import Span
from portal.errors import N_
from portal.http import messages
from portal.http.messages import failure_message
from portal.ingest.media_types import known_suffixes
from portal.text.titles import MAX_DOMAIN_CHARACTERS, MAX_TITLE_CHARACTERS
from portal.web import i18n
from portal.web.documents.reading.structured import chunk_pieces
from portal.web.search.excerpts import excerpt_blocks, headings_above

HIGH_CONFIDENCE = 0.75
MEDIUM_CONFIDENCE = 0.5
MAX_UNBROKEN_CELL = 20
MIN_LONG_CELL = 40
UNITS = ("B", "KB", "MB", "GB")

STATUS_WORDS = {
    "queued": N_("Queued"),
    "processing": N_("Processing"),
    "ready": N_("Ready"),
    "failed": N_("Failed"),
    "cancelled": N_("Cancelled"),
}
STATUS_ICONS = {
    "queued": "clock",
    "processing": "loader-circle",
    "ready": "circle-check",
    "failed": "circle-alert",
    "cancelled": "ban",
    "new_device": "monitor-smartphone",
    "recovery_code": "key-round",
    "shared": "share-2",
}
SOURCE_WORDS = {
    "hybrid": N_("Keywords and meaning"),
    "vector": N_("Meaning"),
    "keyword": N_("Keywords"),
}
CONFIDENCE_WORDS = {
    "high": N_("High confidence"),
    "medium": N_("Medium confidence"),
    "low": N_("Low confidence"),
}


ICON_ATTRIBUTES = {"class": "icon", "aria-hidden": "true", "focusable": "false"}


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of text, marked or not."""

    text: str
    is_marked: bool


def segments(text: str, spans: Iterable[Span]) -> list[Segment]:
    """Split `text` at `spans`; the segments add up to `text`.

    Spans may overlap, be out of order or reach past the end.
    """
    pieces: list[Segment] = []
    position = 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        start, end = max(span.start, position), min(span.end, len(text))
        if start >= end:
            continue
        if start > position:
            pieces.append(Segment(text[position:start], is_marked=False))
        pieces.append(Segment(text[start:end], is_marked=True))
        position = end
    if position < len(text):
        pieces.append(Segment(text[position:], is_marked=False))
    return pieces


def confidence_level(confidence: float) -> str:
    """Return `high`, `medium` or `low`."""
    if confidence >= HIGH_CONFIDENCE:
        return "high"
    return "medium" if confidence >= MEDIUM_CONFIDENCE else "low"


def percent(share: float) -> int:
    """Return a share, such as a confidence, as a whole number of percent."""
    return round(100 * share)


def file_size(size_bytes: int) -> str:
    """Format a size, such as 842 B, 12 KB or 3.4 MB."""
    exponent = min(max(size_bytes, 1).bit_length() - 1, 39) // 10
    pattern = "#,##0" if exponent < 2 else "#,##0.#"  # noqa: PLR2004 - from megabytes on
    return f"{format_decimal(size_bytes / 1024**exponent, format=pattern)} {UNITS[exponent]}"


def short_date(moment: datetime) -> str:
    return str(format_date(moment, format="medium"))


def exact_time(moment: datetime) -> str:
    """Format a time in the browser's zone, or in UTC, which is then named."""
    written = f"{format_date(moment, format='medium')} {format_time(moment, format='short')}"
    if not i18n.is_timezone_known():
        written += "\u00a0UTC"
    # The narrow space before "AM" has no width in many fonts.
    return written.replace("\u202f", "\u00a0")


def cell_class(text: str) -> str:
    """Return the class of a table's cell with `text`: `is-short`, never broken, `is-long`, never
    squeezed to a word a line, or none."""
    text = text.strip()
    # Codes, dates, times and numbers of telephones break at their hyphens and spaces otherwise.
    is_short = len(text) <= MAX_UNBROKEN_CELL and text.isascii()
    if is_short and (" " not in text or not any(map(str.isalpha, text))):
        return "is-short"
    return "is-long" if len(text) >= MIN_LONG_CELL else ""


@cache
def icon(name: str, size: int = 20) -> Markup:
    """Render an icon hidden from screen readers; the text beside it says the same."""
    return Markup(lucide(name, size=size, stroke_width=1.75, **ICON_ATTRIBUTES))  # noqa: S704


def device_words(device: Device) -> str:
    """Return the name of a device, such as “Firefox on Linux”."""
    if device.program and device.platform:
        words = gettext(
            "%(program)s on %(platform)s", program=device.program, platform=device.platform
        )
        return str(words)
    return device.program or device.platform or str(gettext("Unknown device"))


def init_app(app: Flask) -> None:
    app.jinja_env.filters.update(
        file_size=file_size,
        short_date=short_date,
        exact_time=exact_time,
        cell_class=cell_class,
        confidence_level=confidence_level,
        percent=percent,
        failure_message=failure_message,
    )
    app.jinja_env.globals.update(_globals())


def _globals() -> dict[str, Any]:
    return {
        "icon": icon,
        "device_words": device_words,
        "translated": messages.translated,
        "segments": segments,
        "excerpt_blocks": excerpt_blocks,
        "headings_above": headings_above,
        "chunk_pieces": chunk_pieces,
        "status_word": lambda status: gettext(STATUS_WORDS[status]),
        "status_icon": STATUS_ICONS.__getitem__,
        "source_word": lambda source: gettext(SOURCE_WORDS[source]),
        "confidence_word": lambda level: gettext(CONFIDENCE_WORDS[level]),
        # Forms accept the same files and lengths as the services.
        "accepted_files": ",".join([*known_suffixes(), *MediaType]),
        "max_title_characters": MAX_TITLE_CHARACTERS,
        "max_domain_characters": MAX_DOMAIN_CHARACTERS,
    }
