"""Words that errors and documents carry as values, for the translators.

Layers below write such values in English, some with numbers already in them, and keep them with
the document. Each stands here as a template, so that it reads in the reader's language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from flask_babel import gettext

from portal.domain.documents import Failure
from portal.errors import MESSAGES, N_, PortalError

TEMPLATES = (
    # What a file turned out to be.
    N_("a PNG image"),
    N_("a JPEG image"),
    N_("a GIF image"),
    N_("a BMP image"),
    N_("a TIFF image"),
    N_("a WebP image, sound or video"),
    N_("a video"),
    N_("an MP3 sound"),
    N_("an Ogg sound or video"),
    N_("an old Office document (DOC, XLS, PPT)"),
    N_("an RTF document"),
    N_("a PostScript file"),
    N_("a GZIP archive"),
    N_("a BZIP2 archive"),
    N_("an XZ archive"),
    N_("a 7-Zip archive"),
    N_("a RAR archive"),
    N_("a ZIP archive"),
    N_("a Java archive"),
    N_("a program"),
    N_("an SQLite database"),
    N_("a DjVu document"),
    N_("a Word document (DOCX)"),
    N_("an Excel workbook (XLSX)"),
    N_("a PowerPoint presentation (PPTX)"),
    N_("an EPUB book"),
    N_("an OpenDocument file"),
    N_("a web page (HTML)"),
    N_("binary data"),
    N_("plain text that is called PDF"),
    # What there was too much of.
    N_("pages"),
    N_("characters"),
    N_("data"),
    # What is not right, or clashes.
    N_("a name has 1 to %(most)s characters"),
    N_("a name has no invisible characters"),
    N_("a password has at most %(most)s characters"),
    N_("a title has 1 to %(most)s characters"),
    N_("a domain has at most %(most)s characters"),
    N_("this is the last administrator"),
    N_("only a failed document can be tried again"),
    N_("the cursor is not one of ours"),
    N_("it holds an invisible NUL character"),
    N_("the JSON is nested too deeply"),
    # What is known of a document's text.
    N_("%(empty)s of %(all)s pages have no text (pictures?): %(numbers)s"),
)


def translated(text: str) -> str:
    """`text` in the reader's language; as it is when it fits no template."""
    for template, pattern in _patterns():
        if match := pattern.fullmatch(text):
            words = str(gettext(template))
            return words % match.groupdict() if match.groupdict() else words
    return text


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((template, _pattern(template)) for template in TEMPLATES)


def _pattern(template: str) -> re.Pattern[str]:
    pieces = re.split(r"%\((\w+)\)s", template)
    # Split leaves text and names of places in turn.
    return re.compile(
        "".join(
            re.escape(piece) if index % 2 == 0 else f"(?P<{piece}>.+?)"
            for index, piece in enumerate(pieces)
        )
    )


def in_words(template: str, params: Mapping[str, Any]) -> str:
    """Translate `template` and those of its values that are messages themselves."""
    words = {
        name: translated(value) if isinstance(value, str) else value
        for name, value in params.items()
    }
    text = str(gettext(template))
    return text % words if words else text


def error_message(error: PortalError) -> str:
    """What happened, why and what to do, in the reader's language."""
    return in_words(error.message, error.params)


def failure_message(failure: Failure) -> str:
    """Why a document failed and what to do, in the reader's language."""
    try:
        return in_words(MESSAGES.get(failure.code, PortalError.message), failure.params)
    except (KeyError, TypeError, ValueError):
        # A document that failed under an older version may lack a value that the words want.
        return str(gettext(PortalError.message))
