"""Reader of an e-mail (EML) that yields its headers and text.

    {"headers": [["Subject", "…"], ["From", "…"], …], "text": "…", "html": "…",
     "attachments": ["report.pdf"]}

Attachments are named but not opened. `text` is empty if the message has an HTML part.
"""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any, BinaryIO

from portal.ingest.readers import archives

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_MAX_PARTS = 1_000
_MAX_HEADER = 2_000
_MAX_DEPTH = 50


def load() -> None:
    """Import the modules that the package otherwise imports on first use."""
    message = email.message_from_bytes(
        b"Subject: =?utf-8?q?a?=\nFrom: a <a@b.c>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"
        b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nYQ==\n",
        policy=email.policy.default,
    )
    str(message["subject"]), str(message["from"]), str(message["date"]), message.get_content()


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield the one record, or an error: broken, too_many, characters."""
    data = file.read()
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
        parts = _parts(message)
        if len(parts) > _MAX_PARTS:
            yield archives.too_many("parts", _MAX_PARTS)
            return
        text, html, attachments = _bodies(parts)
        record = {
            "headers": [[name, _header(message, name)] for name in _HEADERS],
            "text": "" if html else text,
            "html": html,
            "attachments": attachments,
        }
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any exception of a parser means that the file is broken
        yield {"error": "broken"}
        return
    yield {"error": "characters"} if len(text) + len(html) // 4 > characters else record


def _parts(message: EmailMessage) -> list[EmailMessage]:
    """Return the parts that are no containers, in order.

    Avoids recursion: messages may be nested deeply.
    """
    found: list[EmailMessage] = []
    waiting: list[tuple[Any, int]] = [(message, 0)]
    while waiting and len(found) <= _MAX_PARTS:
        part, depth = waiting.pop()
        children = part.get_payload() if part.is_multipart() and depth < _MAX_DEPTH else None
        if isinstance(children, list):
            waiting += ((child, depth + 1) for child in reversed(children))
        else:
            found.append(part)
    return found


def _bodies(parts: list[EmailMessage]) -> tuple[str, str, list[str]]:
    text, html, attachments = [], [], []
    for part in parts:
        name = part.get_filename()
        if name or part.get_content_disposition() == "attachment":
            attachments.append(" ".join((name or part.get_content_type()).split())[:_MAX_HEADER])
        elif part.get_content_type() == "text/html":
            html.append(_content(part))
        elif part.get_content_type() == "text/plain":
            text.append(_content(part))
    return "\n\n".join(text), "".join(html), attachments


def _content(part: EmailMessage) -> str:
    data = part.get_payload(decode=True)
    raw = data if isinstance(data, bytes) else b""
    for encoding in (part.get_content_charset() or "utf-8", "utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            continue
    return raw.decode("utf-8", "replace")


def _header(message: EmailMessage, name: str) -> str:
    try:
        value = str(message.get(name) or "")
    except Exception:  # noqa: BLE001 - a header that cannot be parsed is left out
        value = ""
    return " ".join(value.split())[:_MAX_HEADER]
