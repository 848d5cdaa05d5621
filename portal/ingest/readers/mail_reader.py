"""Reader of an e-mail (EML) that yields its headers and text, then those of e-mails attached to it.

    {"headers": [["Subject", "…"], ["From", "…"], …], "bodies": [["text/plain", "…"], …],
     "attachments": ["report.pdf"], "is_cut": false}

`is_cut` is true if parts or e-mails within it are nested too deeply to be read.
Other attachments are named but not opened. Of alternatives, only the one in HTML is read.
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
_ACTUAL_ENCODINGS = {"gb2312": "gb18030", "gbk": "gb18030", "ks_c_5601_1987": "cp949"}
_HTML = "text/html"
_MAILS = frozenset({"message/rfc822", "message/global"})
_MAX_PARTS = 1_000
_MAX_HEADER = 2_000
_MAX_DEPTH = 50


def load(**_options: object) -> None:
    """Import the modules that the package otherwise imports on first use."""
    encodings.aliases.aliases.update(_ACTUAL_ENCODINGS)
    for charset in _CHARSETS:
        b"a".decode(charset, "replace")
    message = email.message_from_bytes(
        b"Subject: =?utf-8?q?a?=\nFrom: a <a@b.c>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\n"
        b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nYQ==\n",
        policy=email.policy.default,
    )
    str(message["subject"]), str(message["from"]), str(message["date"]), message.get_content()


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield a record for each e-mail, or an error: broken, too_many, characters."""
    data = file.read()
    try:
        mails = _mails(email.message_from_bytes(data, policy=email.policy.default))
        if sum(len(parts) for _, parts, _ in mails) > _MAX_PARTS:
            yield archives.too_many("parts", _MAX_PARTS)
            return
        records = [_record(message, parts, is_cut) for message, parts, is_cut in mails]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - any exception of a parser means that the file is broken
        yield {"error": "broken"}
        return
    bodies = [body for record in records for body in record["bodies"]]
    length = sum(len(text) // (4 if kind == _HTML else 1) for kind, text in bodies)
    yield from [{"error": "characters"}] if length > characters else records


def _mails(message: EmailMessage) -> list[tuple[EmailMessage, list[EmailMessage], bool]]:
    """Return an e-mail and those attached to it, each with its parts and whether some are nested
    too deeply. Not recursive, because they may be nested deeply."""
    found: list[tuple[EmailMessage, list[EmailMessage], bool]] = []
    waiting: list[tuple[Any, int]] = [(message, 0)]
    count = 0
    while waiting and count <= _MAX_PARTS:
        mail, depth = waiting.pop()
        parts = _parts(mail)
        count += len(parts)
        attached = [part.get_payload(0) for part in parts if _is_mail(part)]
        is_deepest = depth == _MAX_DEPTH
        is_cut = any(part.is_multipart() and (is_deepest or not _is_mail(part)) for part in parts)
        found.append((mail, parts, is_cut))
        waiting += ((each, depth + 1) for each in reversed(attached) if not is_deepest)
    return found


def _is_mail(part: EmailMessage) -> bool:
    return part.get_content_type() in _MAILS and part.is_multipart()


def _parts(message: EmailMessage) -> list[EmailMessage]:
    """Return the parts that hold content, in order. Not recursive either."""
    found: list[EmailMessage] = []
    waiting: list[tuple[Any, int]] = [(message, 0)]
    while waiting and len(found) <= _MAX_PARTS:
        part, depth = waiting.pop()
        is_open = part.is_multipart() and depth < _MAX_DEPTH and not _is_mail(part)
        children = part.get_payload() if is_open else None
        if isinstance(children, list):
            is_choice = part.get_content_type() == "multipart/alternative"
            shown = _alternatives_to_read(children) if is_choice else children
            waiting += ((child, depth + 1) for child in reversed(shown))
        else:
            found.append(part)
    return found


def _alternatives_to_read(alternatives: list[EmailMessage]) -> list[EmailMessage]:
    """Return the last alternative with words in HTML; all of them if none has any."""
    for part in reversed(alternatives):
        pages = (each for each in part.walk() if each.get_content_type() == _HTML)
        if any(str(page.get_payload()).strip() for page in pages):
            return [part]
    return alternatives


def _record(message: EmailMessage, parts: list[EmailMessage], is_cut: bool) -> dict[str, Any]:
    charset = next(filter(None, (part.get_content_charset() for part in parts)), "utf-8")
    bodies, attachments = [], []
    for part in parts:
        name, kind = part.get_filename(), part.get_content_type()
        if _is_mail(part):
            continue  # It has a record of its own.
        if name or part.get_content_disposition() == "attachment":
            attachments.append(" ".join((name or kind).split())[:_MAX_HEADER])
        elif kind in {_HTML, "text/plain"}:
            bodies.append((kind, _content(part)))
    return {
        "headers": [[name, _header(message, name, charset)] for name in _HEADERS],
        "bodies": bodies,
        "attachments": attachments,
        "is_cut": is_cut,
    }


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
