"""Reader of an e-mail (EML) that yields its headers and text.

    {"headers": [["Subject", "…"], ["From", "…"], …], "text": "…", "html": "…",
     "attachments": ["report.pdf"]}

Attachments are named but not opened. `text` is empty if the message has an HTML part.
"""

from __future__ import annotations

import email
import email.policy
import encodings.aliases
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any, BinaryIO

from portal.ingest.readers import archives

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
# The charsets of e-mails. Python loads a codec on first use, which would be too late.
_CHARSETS = (
    "gb18030", "hz", "big5", "big5hkscs", "cp950", "shift_jis", "cp932", "euc_jp", "iso2022_jp",
    "iso2022_jp_2", "euc_kr", "cp949", "iso2022_kr", "utf-7", "utf-16", "utf-32", "koi8-r",
    "koi8-u", "mac-roman", "cp437", "cp850", "cp852", "cp866", "cp874",
    *(f"cp125{number}" for number in range(9)),
    *(f"iso8859-{number}" for number in (*range(1, 12), 13, 14, 15, 16)),
)  # fmt: skip
# Programs declare the old name of an encoding that was extended.
_MEANT = {"gb2312": "gb18030", "gbk": "gb18030", "ks_c_5601_1987": "cp949"}
_MAX_PARTS = 1_000
_MAX_HEADER = 2_000
_MAX_DEPTH = 50


def load(**_options: object) -> None:
    """Import the modules that the package otherwise imports on first use."""
    encodings.aliases.aliases.update(_MEANT)
    for charset in _CHARSETS:
        b"a".decode(charset, "replace")
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
        charset = next(filter(None, (part.get_content_charset() for part in parts)), "utf-8")
        record = {
            "headers": [[name, _header(message, name, charset)] for name in _HEADERS],
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
    """Return the parts that hold content, in order. Not recursive, because messages may be nested
    deeply."""
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
    return _decode(raw, part.get_content_charset() or "utf-8", "utf-8")


def _decode(raw: bytes, *encodings: str) -> str:
    for encoding in (*encodings, "gb18030"):
        try:
            return raw.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            continue
    return raw.decode("utf-8", "replace")


def _header(message: EmailMessage, name: str, charset: str) -> str:
    try:
        raw = next(
            (value for each, value in message.raw_items() if each.lower() == name.lower()), ""
        )
        # Old programs write bytes that are not ASCII.
        data = str(raw).encode("utf-8", "surrogateescape")
        value = str(message.get(name) or "") if data.isascii() else _decode(data, "utf-8", charset)
    except Exception:  # noqa: BLE001 - a header that cannot be parsed is left out
        value = ""
    return " ".join(value.split())[:_MAX_HEADER]
