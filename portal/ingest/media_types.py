"""Detection of a file's type by its content; the name only separates similar kinds of text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import PurePath
from typing import IO

from portal.domain.documents import MediaType
from portal.errors import N_, EmptyFile, Message, UnsupportedFormat
from portal.ingest.decoding import BYTE_ORDER_MARKS
from portal.ingest.formats.pages.page_recognition import is_installed

# The bytes of a file that `sniff` needs: all signatures and a fair sample of a text.
HEAD_BYTES = 64 * 1024
_ZIP_END = b"PK\x05\x06"
_ZIP_END_WITHIN = 65_557  # The end record and the longest comment after it.
_ZIP_ENTRY = b"PK\x01\x02"
_MAX_DIRECTORY_BYTES = 4 << 20  # of a ZIP archive; documents have smaller ones.

_EPUB_WITHIN = 100  # Its type is the first part of the archive, uncompressed.
_PDF_HEADER_WITHIN = 1024  # Readers accept a header this far in; some tools put rubbish before it.
# Browsers offer files with these suffixes for upload, and imports of folders read them.
SUFFIXES: Mapping[MediaType, tuple[str, ...]] = {
    MediaType.PDF: (".pdf",),
    MediaType.DOCX: (".docx", ".docm"),
    MediaType.XLSX: (".xlsx", ".xlsm"),
    MediaType.PPTX: (".pptx", ".pptm"),
    MediaType.EPUB: (".epub",),
    MediaType.EML: (".eml",),
    MediaType.TEXT: (".txt", ".text"),
    MediaType.MARKDOWN: (".md", ".markdown", ".mdown", ".mkd"),
    MediaType.HTML: (".html", ".htm", ".xhtml"),
    MediaType.CSV: (".csv", ".tsv", ".tab"),
}
# Never text, whatever their bytes look like.
_PROGRAMS = frozenset((".exe", ".dll", ".msi", ".com", ".scr", ".sys", ".so", ".dylib", ".apk"))
# Readable only with the extra `ocr`.
PICTURES: Mapping[MediaType, tuple[tuple[bytes, ...], tuple[str, ...]]] = {
    MediaType.PNG: ((b"\x89PNG\r\n\x1a\n",), (".png",)),
    MediaType.JPEG: ((b"\xff\xd8\xff",), (".jpg", ".jpeg")),
    MediaType.TIFF: ((b"II*\0", b"MM\0*"), (".tif", ".tiff")),
}
_MAX_CONTROL_SHARE = 0.02
_MAX_IMPLAUSIBLE_SHARE = 0.05

_ZIP_SIGNATURES = (b"PK\x03\x04", _ZIP_END)
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", N_("a PNG image")),
    (b"\xff\xd8\xff", N_("a JPEG image")),
    (b"GIF8", N_("a GIF image")),
    (b"BM", N_("a BMP image")),
    (b"II*\0", N_("a TIFF image")),
    (b"MM\0*", N_("a TIFF image")),
    (b"RIFF", N_("a WebP image, sound or video")),
    (b"ID3", N_("an MP3 sound")),
    (b"OggS", N_("an Ogg sound or video")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", N_("an old Office document (DOC, XLS, PPT)")),
    (b"{\\rtf", N_("an RTF document")),
    (b"%!PS", N_("a PostScript file")),
    (b"\x04%!PS", N_("a PostScript file")),
    (b"\xc5\xd0\xd3\xc6", N_("a PostScript file")),
    (b"%FDF-", N_("a form data file (FDF)")),
    (b"\0\0\1\0", N_("an icon")),
    (b"8BPS", N_("a Photoshop image")),
    (b"fLaC", N_("a sound")),
    (b"MThd", N_("a sound")),
    (b"OTTO", N_("a font")),
    (b"\0\1\0\0", N_("a font")),
    (b"wOFF", N_("a font")),
    (b"wOF2", N_("a font")),
    (b"\x28\xb5\x2f\xfd", N_("a Zstandard archive")),
    (b"\x1f\x8b", N_("a GZIP archive")),
    (b"BZh", N_("a BZIP2 archive")),
    (b"\xfd7zXZ\0", N_("an XZ archive")),
    (b"7z\xbc\xaf\x27\x1c", N_("a 7-Zip archive")),
    (b"Rar!\x1a\x07", N_("a RAR archive")),
    (b"\x7fELF", N_("a program")),
    (b"MZ\x90\0", N_("a program")),
    (b"SQLite format 3\0", N_("an SQLite database")),
    (b"AT&TFORM", N_("a DjVu document")),
    (b"\0asm", N_("a program")),
)
# Words begin like these too ("ID3 is an algorithm"), so they count only if the rest is not text.
_ALSO_WORDS = (
    *(b"GIF8", b"BM", b"RIFF", b"ID3", b"OggS", b"BZh", b"AT&TFORM", b"8BPS", b"fLaC", b"MThd"),
    *(b"OTTO", b"wOFF", b"wOF2"),
)
_ZIP_KINDS = (
    (b"xl/workbook.bin", N_("a binary Excel workbook (XLSB)")),
    (b"xl/", N_("a damaged Excel workbook (XLSX)")),
    (b"ppt/", N_("a damaged PowerPoint presentation (PPTX)")),
    (b"mimetypeapplication/epub", N_("an EPUB book")),
    (b"mimetypeapplication/vnd.oasis", N_("an OpenDocument file")),
    (b"META-INF/", N_("a Java archive")),
)
_OFFICE_PARTS = (
    (b"\nword/", MediaType.DOCX),
    (b"\nxl/workbook.xml\n", MediaType.XLSX),
    (b"\nppt/presentation.xml\n", MediaType.PPTX),
)
# Of archives without a list of parts, which is at their end: it was cut off.
_DAMAGED = {
    ".docx": N_("a damaged Word document (DOCX)"),
    ".xlsx": N_("a damaged Excel workbook (XLSX)"),
    ".pptx": N_("a damaged PowerPoint presentation (PPTX)"),
}
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,4000}?-->\s*)?<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_TAR_MARK_AT = 257
_FTYP_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"mif1", b"msf1", b"avif"), N_("a HEIC or AVIF image")),
    b"M4A ": N_("a sound"),
}
# The prolog before the first element: a declaration, comments, a document type.
_XML_PROLOGUE = re.compile(
    rb"\s*+(?:<\?[^>]{0,1000}\?>\s*+|<!--.{0,4000}?-->\s*+)*+"
    rb"(?:<!DOCTYPE\s+(?!html|svg)[^>\[]{0,400}>\s*+)?",
    re.IGNORECASE | re.DOTALL,
)
_TEXT_KINDS = (
    (re.compile(rb"<(?:svg:)?svg[\s>]|<!DOCTYPE\s+svg\b", re.IGNORECASE), N_("an SVG image")),
    (re.compile(rb"<(?:w:wordDocument|pkg:package)\b"), N_("a Word document saved as XML")),
    (re.compile(rb"<(?:ss:)?Workbook\b[^>]{0,2000}office:spreadsheet"),
     N_("an Excel workbook saved as XML")),
    (re.compile(rb"<office:document\b"), N_("an OpenDocument file saved as XML")),
    (re.compile(rb"begin [0-7]{3} \S[^\r\n]{0,200}\r?\nM[!-`]{60}"), N_("uuencoded data")),
    (re.compile(rb"P[1-3]\s+(?:#[^\n]*\s+)?\d+\s+\d+\s[\d\s]*\Z"), N_("a netpbm image")),
)  # fmt: skip
# The header of an e-mail as programs write it: fields, the first at the very beginning.
_MAIL_FIELDS = re.compile(
    rb"(?:From [^\n]*+\n)?(?:[A-Za-z][A-Za-z0-9-]{1,60}+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+)++"
)
_MAIL_FIELD = re.compile(
    rb"^(?:MIME-Version|Message-ID|Received|Return-Path)\s*:", re.IGNORECASE | re.MULTILINE
)
_MAIL_CODED = re.compile(
    rb"^Content-Type:\s*multipart/|^Content-Transfer-Encoding:\s*(?:base64|quoted-printable)",
    re.IGNORECASE | re.MULTILINE,
)
_PROTECTED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_CONTROLS = bytes(sorted(set(range(0x20)) - set(b"\t\n\v\f\r\x1b") | {0x7F}))


def sniff_file(stream: IO[bytes], file_name: str) -> MediaType:
    """Return the media type of a whole file; leave the stream at its start. Raises as `sniff`."""
    head = stream.read(HEAD_BYTES)
    names = _zip_names(stream) if head.startswith(_ZIP_SIGNATURES) else b""
    stream.seek(0)
    return sniff(head, file_name, zip_names=names)


def sniff(head: bytes, file_name: str, *, zip_names: bytes = b"") -> MediaType:
    """Return the media type of a file from its first HEAD_BYTES and a ZIP archive's names. Raises
    EmptyFile, and UnsupportedFormat with what the file looks like instead."""
    if not head:
        raise EmptyFile(name=file_name)
    suffix = PurePath(file_name).suffix.lower()
    if picture := _picture_type(head, suffix):
        return picture
    # A text may mention %PDF-, so only a file named .pdf may have its header further in.
    if head.startswith(b"%PDF-") or (suffix == ".pdf" and b"%PDF-" in head[:_PDF_HEADER_WITHIN]):
        return MediaType.PDF
    if head.startswith(_ZIP_SIGNATURES):
        return _archive_type(head, zip_names, file_name)
    is_mail = suffix == ".eml" and bool(_MAIL_FIELDS.match(_plain(head)))
    detected = N_("a program") if suffix in _PROGRAMS else _other_format(head)
    if not is_mail and detected:
        raise UnsupportedFormat(name=file_name, detected=detected)
    if suffix == ".pdf":
        raise UnsupportedFormat(name=file_name, detected=N_("plain text that is called PDF"))
    return MediaType.EML if is_mail else _text_type(head, suffix)


def known_suffixes() -> tuple[str, ...]:
    """Return the suffixes of files that can be read here."""
    pictures = (suffixes for _, suffixes in PICTURES.values()) if is_installed() else ()
    return tuple(chain.from_iterable((*SUFFIXES.values(), *pictures)))


def _picture_type(head: bytes, suffix: str) -> MediaType | None:
    if not is_installed():
        return None
    for media_type, (signatures, suffixes) in PICTURES.items():
        if suffix in suffixes and head.startswith(signatures):
            return media_type
    return None


def _archive_type(head: bytes, names: bytes, file_name: str) -> MediaType:
    """Return the type of an archive. Raises UnsupportedFormat."""
    if b"\n[Content_Types].xml\n" in names:
        for part, media_type in _OFFICE_PARTS:
            if part in names:
                return media_type
    suffix = PurePath(file_name).suffix.lower()
    is_epub = suffix == ".epub" or b"mimetypeapplication/epub" in head[:_EPUB_WITHIN]
    if is_epub and b"\nMETA-INF/container.xml\n" in names:
        return MediaType.EPUB
    raise UnsupportedFormat(name=file_name, detected=_zip_kind(head, names, suffix))


def _text_type(head: bytes, suffix: str) -> MediaType:
    plain = _plain(head)
    if suffix in SUFFIXES[MediaType.HTML] or _HTML.match(plain):
        return MediaType.HTML
    fields = _MAIL_FIELDS.match(plain)
    if fields and _MAIL_FIELD.search(fields[0]) and _MAIL_CODED.search(fields[0]):
        return MediaType.EML
    known = (kind for kind in (MediaType.CSV, MediaType.MARKDOWN) if suffix in SUFFIXES[kind])
    return next(known, MediaType.TEXT)


def _zip_names(stream: IO[bytes]) -> bytes:
    """Return the names of an archive's parts, one per line; empty if there are very many. Parsed
    here, because `zipfile` creates an object for each entry that the archive claims to have."""
    size = stream.seek(0, 2)
    stream.seek(max(0, size - _ZIP_END_WITHIN))
    tail = stream.read(_ZIP_END_WITHIN)
    end = tail.rfind(_ZIP_END)
    length = int.from_bytes(tail[end + 12 : end + 16], "little")
    start = int.from_bytes(tail[end + 16 : end + 20], "little")
    if end < 0 or length > _MAX_DIRECTORY_BYTES or start > size:
        return b""
    stream.seek(start)
    directory, names, place = stream.read(length), [b""], 0
    while directory.startswith(_ZIP_ENTRY, place):
        lengths = [
            int.from_bytes(directory[place + at : place + at + 2], "little") for at in (28, 30, 32)
        ]
        names.append(directory[place + 46 : place + 46 + lengths[0]])
        place += 46 + sum(lengths)
    return b"\n".join([*names, b""])


def _plain(head: bytes) -> bytes:
    """Return the beginning of a text as ASCII, in any encoding."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", errors="replace").encode("ascii", errors="replace")
    return head.removeprefix(codecs.BOM_UTF8)


def _other_format(head: bytes) -> Message | None:
    is_text = _is_text(head)
    if not is_text and head[_TAR_MARK_AT:].startswith(b"ustar"):
        return N_("a TAR archive")
    if not is_text and head[4:8] == b"ftyp":
        return _FTYP_BRANDS.get(head[8:12], N_("a video"))
    for signature, name in _SIGNATURES:
        if head.startswith(signature) and not (is_text and signature in _ALSO_WORDS):
            return N_("an Office document with a password") if _PROTECTED_OFFICE in head else name
    return _find_text_format(_plain(head)) if is_text else N_("binary data")


def _find_text_format(head: bytes) -> Message | None:
    """Return what a file is if its text is not meant to be read; None for readable text."""
    start = _XML_PROLOGUE.match(head)
    root = head[start.end() :] if start else head
    for pattern, name in _TEXT_KINDS:
        if pattern.match(root):
            return name
    fields = _MAIL_FIELDS.match(head)
    if fields and _MAIL_FIELD.search(fields[0]) and b"multipart/related" in fields[0].lower():
        return N_("a web page archive (MHTML)")
    return None


def _zip_kind(head: bytes, names: bytes, suffix: str) -> Message:
    for part, name in _ZIP_KINDS:
        if part in head + names:
            return name
    is_zip = N_("a ZIP archive")
    return is_zip if names else _DAMAGED.get(suffix, is_zip)


def _is_text(head: bytes) -> bool:
    if head.startswith(tuple(BYTE_ORDER_MARKS)):
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls <= _MAX_CONTROL_SHARE * len(head) and b"\0" not in head:
        return True
    return _is_utf_16(head)


def _is_utf_16(head: bytes) -> bool:
    """Return whether data reads as UTF-16 without a byte order mark: one byte of each pair is
    mostly zero, or the text is nearly all Chinese characters, punctuation and ASCII."""
    whole = head[: len(head) // 2 * 2]
    for encoding, high in (("utf-16-le", whole[1::2]), ("utf-16-be", whole[0::2])):
        text = whole.decode(encoding, errors="replace")[:-1]
        known = sum(c.isalnum() or c.isspace() or c.isprintable() for c in text)
        common = sum(c < "\u0250" or "\u3000" <= c <= "\u9fff" or c >= "\uff00" for c in text)
        if text and min(known, common) > 0.95 * len(text) and "\0" not in text:
            plausible_high = sum(b == 0 or 0x30 <= b <= 0x9F or b == 0xFF for b in high)  # noqa: PLR2004
            return plausible_high > (1 - _MAX_IMPLAUSIBLE_SHARE) * len(high)
    return False
