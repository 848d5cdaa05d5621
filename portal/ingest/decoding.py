"""Decoding of text files, without dropping a character."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import charset_normalizer

from portal.errors import N_, Message, UndecodableText
from portal.text.characters.folding import simplify

# The 640 characters that make up four fifths of Chinese text, simplified; text decoded with the
# wrong encoding has next to none of them.
_COMMON_HAN = frozenset(Path(__file__).with_name("common_han.txt").read_text("utf-8")) - {"\n"}
_COMMON_PUNCTUATION = frozenset("。，、；：？！“”‘’「」『』（）《》〈〉【】…—·～　％")

BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # Before UTF-16, whose byte order mark it begins with.
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"\x84\x31\x95\x33": "gb18030",
}
# In the order of preference on a tie: the plain encoding before its vendor extensions.
_EAST_ASIAN = (
    "gb18030", "big5", "cp950", "big5hkscs", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949",
    "utf_16_le", "utf_16_be",
)  # fmt: skip
# The encodings a user may choose when detection was wrong, by their Python names: those that are
# easily confused, and others found in documents.
ENCODINGS = (
    "utf-8", "utf-16-le", "utf-16-be", "gb18030", "big5", "big5hkscs", "cp950", "shift_jis",
    "cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "johab", "cp1250", "cp1251", "cp1252",
    "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp437", "cp850", "cp852",
    "cp866", "cp874", "iso8859-1", "iso8859-2", "iso8859-5", "iso8859-7", "iso8859-9",
    "iso8859-15", "koi8-r", "koi8-u", "mac-roman",
)  # fmt: skip
# Labels as browsers interpret them: authors use the old name of an encoding that was extended.
_ALSO = {"gb2312": "gb18030", "gbk": "gb18030", "ascii": "cp1252", "utf-8-sig": "utf-8"}
_KOREAN = frozenset({"euc_kr", "cp949"})
_JAPANESE = frozenset({"shift_jis", "cp932", "euc_jp"})
_EUROPEAN = ("cp1252", "cp1250", "cp1251", "koi8_r", "iso8859_7", "cp1254", "cp1255", "cp1256")
_EAST_EUROPEAN_LETTERS = frozenset("ěřůłęążőűğışŞĞİ")
_MIN_SCORE = 0.45  # Right decodings of the development texts score 0.55 and more, wrong ones < 0.3.
_DRAW = 0.03  # Vendor variants differ in a character or two, which is no reason to prefer them.
_SCORED_CHARACTERS = 100_000
# Control characters other than white space and line ends.
_CONTROL = re.compile("[\x01-\x08\x0e-\x1f\x7f]")
# A stray NUL only damages a text. With a larger share the encoding is wrong (every second character
# of English UTF-16 read as anything else) or the file is not text.
_MAX_NUL_SHARE = 0.01
# Multi-byte characters required for each bad byte of UTF-8; text in another encoding has far fewer.
_MIN_WHOLE_SHARE = 10
# At the end of a file: the first bytes, at least two, of a three- or four-byte character.
_CUT_CHARACTER = re.compile(rb"(?:[\xe0-\xef][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{1,2})\Z")


@dataclass(frozen=True, slots=True)
class DecodedText:
    """Decoded text, with U+FFFD for each NUL and each invalid byte; `warnings` count both, and name
    invisible control characters."""

    text: str
    encoding: str
    warnings: tuple[Message, ...] = ()


def decode(data: bytes, *, file_name: str, encoding: str | None = None) -> DecodedText:
    """Return the whole text and its encoding; `encoding` overrides the detection.

    charset-normalizer confuses short Chinese texts (Big5 for GB18030 and the reverse), so East
    Asian encodings are ranked by how common the decoded characters are. Raises UndecodableText,
    also if much of the result is NUL.
    """
    if encoding is not None:
        return _decode_as(encoding, data, file_name)
    for mark, name in BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            if cut_off := _cut_off(name, data):
                return cut_off
            damaged = _decode_damaged_utf_8(data[len(mark) :]) if mark == codecs.BOM_UTF8 else None
            return damaged or _decode_as(name, data, file_name)
    # A file is never valid UTF-8 throughout by chance, even with a NUL or two in it.
    for read in (
        partial(decode_strictly, "utf-8"),
        _decode_damaged_utf_8,
        _recognise,
        _by_charset_normalizer,
    ):
        if decoded := read(data):
            return decoded
    guess = _recognise(data[:-1])
    if guess and (decoded := _cut_off(guess.encoding, data)):
        return decoded
    raise UndecodableText(name=file_name)


def known_encoding(name: str) -> str | None:
    """Return the entry of ENCODINGS with this name, such as `GBK` or `latin-1`; None for other
    names, because not every Python codec is for text: some unpack archives."""
    try:
        name = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    name = _ALSO.get(name, name)
    return name if name in ENCODINGS else None


def full_of_nul(nul_count: int, character_count: int) -> bool:
    """Return whether that many NULs mean that the encoding is wrong or the file is not text."""
    return nul_count > _MAX_NUL_SHARE * character_count


def decode_strictly(encoding: str, data: bytes) -> DecodedText | None:
    """Return the whole text; None if a byte is invalid or there are many NULs."""
    text = _try(encoding, data)
    return None if text is None else _without_nul(text.removeprefix("\ufeff"), encoding)


def _decode_damaged_utf_8(data: bytes) -> DecodedText | None:
    """Decode UTF-8 with a few bad bytes, or cut off within a character. Return None if another
    encoding is as likely."""
    text = data.decode("utf-8", errors="replace")
    # U+FFFD that the file itself contains is not damage.
    damage_count = text.count("\ufffd") - data.count("\ufffd".encode())
    whole_count = sum(character > "\x7f" for character in text) - text.count("\ufffd")
    if damage_count == 0:
        return None
    is_cut = damage_count == 1 and _CUT_CHARACTER.search(data) is not None
    if not is_cut and whole_count < _MIN_WHOLE_SHARE * damage_count:
        return None
    decoded = _without_nul(text, "utf-8")
    return None if decoded is None else _with_damage(decoded.text, decoded, damage_count)


def _cut_off(encoding: str, data: bytes) -> DecodedText | None:
    """Decode a text that is valid except for a character cut off at its end."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data)
        is_whole = _try(encoding, data) is not None
    except UnicodeError:
        return None
    decoded = None if is_whole else _without_nul(text.removeprefix("\ufeff"), encoding)
    return None if decoded is None else _with_damage(decoded.text + "\ufffd", decoded, 1)


def _with_damage(text: str, decoded: DecodedText, count: int) -> DecodedText:
    warning = N_(
        "bytes that are not valid characters, shown as “�” in the text: %(count)s", count=count
    )
    return DecodedText(text, decoded.encoding, (*decoded.warnings, warning))


def _decode_as(encoding: str, data: bytes, file_name: str) -> DecodedText:
    decoded = decode_strictly(encoding, data)
    if decoded is None:
        raise UndecodableText(name=file_name)
    return decoded


def _try(encoding: str, data: bytes) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _without_nul(text: str, encoding: str) -> DecodedText | None:
    """Return the text without NULs, as PostgreSQL requires; None if it is full of them."""
    nul_count = text.count("\0")
    if full_of_nul(nul_count, len(text)):
        return None
    warnings = []
    if nul_count:
        warnings.append(N_("U+0000 (NUL), shown as “�” in the text: %(count)s", count=nul_count))
    if controls := sorted(set(_CONTROL.findall(text))):
        named = ", ".join(f"U+{ord(control):04X}" for control in controls)
        warnings.append(N_("invisible control characters: %(names)s", names=named))
    name = codecs.lookup(encoding).name
    return DecodedText(text.replace("\0", "\ufffd"), name, tuple(warnings))


def _recognise(data: bytes) -> DecodedText | None:
    best: DecodedText | None = None
    best_score = _MIN_SCORE
    for encoding in _EAST_ASIAN:
        text = _try(encoding, data)
        decoded = None if text is None else _without_nul(text, encoding)
        if text is None or decoded is None:
            continue
        score = _plausibility(text, encoding)
        if score > best_score + (_DRAW if best else 0):
            best, best_score = decoded, score
    return best


def _by_charset_normalizer(data: bytes) -> DecodedText | None:
    guess = charset_normalizer.from_bytes(data, cp_isolation=[*_EUROPEAN, *_EAST_ASIAN]).best()
    if guess is None:
        return None
    encoding = guess.encoding
    if encoding in {"cp1250", "cp1254"} and not _EAST_EUROPEAN_LETTERS & set(str(guess)):
        encoding = "cp1252"  # They share most letters, and this is by far the most frequent.
    text = _try(encoding, data)
    return None if text is None or _binary(text) else _without_nul(text, encoding)


def _binary(text: str) -> bool:
    controls = sum(n for c, n in Counter(text).items() if unicodedata.category(c) == "Cc"
                   and not c.isspace())  # fmt: skip
    return controls > 0.01 * len(text)


def _plausibility(text: str, encoding: str) -> float:
    """Return the mean score of non-ASCII characters: near 1 for real text, <= 0 for garbage."""
    counts = Counter(simplify(text[:_SCORED_CHARACTERS].replace("\0", "\x01")))
    if encoding.startswith("utf_16") and counts:
        # ASCII counts here: only in UTF-16 every second byte of it is zero.
        return sum(_character_score(c, encoding) * n for c, n in counts.items()) / counts.total()
    beyond = {c: n for c, n in counts.items() if c > "\x7f" or _character_score(c, encoding) < 0}
    total = sum(beyond.values())
    return sum(_character_score(c, encoding) * n for c, n in beyond.items()) / total if total else 0


def _character_score(character: str, encoding: str) -> float:  # noqa: PLR0911 - a table of cases
    if character in _COMMON_HAN:
        return -0.5 if encoding in _KOREAN else 1.0
    if character in _COMMON_PUNCTUATION:
        return 0.8
    if "\u4e00" <= character <= "\u9fff":
        return -1.0 if encoding in _KOREAN else 0.1
    if "\u3041" <= character <= "\u30fe":
        # GB18030 and Big5 have kana too, but text in them has no whole lines of these.
        return 1.0 if encoding in _JAPANESE else 0.3
    if "\uac00" <= character <= "\ud7a3":  # A third of what random UTF-16 decodes to.
        return 0.8 if encoding in _KOREAN else 0.3
    if "\uff61" <= character <= "\uff9f":  # Half-width kana: any byte of a wrong text.
        return -0.5
    if character.isspace() or " " <= character <= "~":
        return 0.6
    if unicodedata.category(character) in {"Cc", "Cn", "Co", "Cs"}:
        return -3.0
    return 0.2 if character >= "\uff00" else -0.2
