"""System fonts that replace those a PDF names but does not embed."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

DIRECTORIES = (
    Path("/usr/share/fonts"),
    Path("/usr/local/share/fonts"),
    Path("/usr/share/X11/fonts/TTF"),
    Path("/System/Library/Fonts"),
    Path("/Library/Fonts"),
)
CHINESE = 134
# By the charset that PDFium asks for (GDI's numbers): the bit of its code page in the OS/2 table,
# and words in the names of multilingual fonts that draw characters as its language does.
_CHARSETS: dict[int, tuple[int, tuple[str, ...]]] = {
    CHINESE: (18, ("SC", "CN", "GB")),
    136: (20, ("TC", "TW", "HK")),
    128: (17, ("JP",)),
    129: (19, ("KR",)),
    161: (3, ()),
    162: (4, ()),
    163: (8, ()),
    177: (5, ()),
    178: (6, ()),
    186: (7, ()),
    204: (2, ()),
    222: (16, ()),
    238: (1, ()),
}
_WIDE = {CHINESE, 136, 128, 129}
_SUFFIXES = {".ttf", ".ttc", ".otf", ".otc"}
_MAX_FILES = 5_000
_MAX_FILE_BYTES = 64 << 20
_MAX_BYTES = 256 << 20
_MAX_FACES = 64  # of one file
_MAX_TABLE_BYTES = 64 << 10
_SERIF_CLASSES = range(1, 8)
_SERIF_PANOSE = range(2, 11)
_TEXT_PANOSE = 2
_BOLD, _REGULAR = 700, 400
_WINDOWS, _ENGLISH, _FAMILY = 3, 0x409, 1  # in the name table
_SELECTION_AT = 62  # in the OS/2 table
_CODE_PAGES_AT = 78


@dataclass(frozen=True, slots=True)
class Face:
    """A font in a file: `offset` is its place in a collection, 0 for a file with one font."""

    path: Path
    size_bytes: int
    offset: int
    name: str
    weight: int
    is_serif: bool
    is_italic: bool
    code_pages: int


@dataclass(frozen=True, slots=True)
class SubstituteFont:
    """The font for text of a charset, with or without serifs, bold or not."""

    charset: int
    is_serif: bool
    is_bold: bool
    path: str
    offset: int


@lru_cache(maxsize=1)
def system_fonts() -> tuple[SubstituteFont, ...]:
    """Return the fonts of this machine, one for each charset and style that it has."""
    return tuple(choose_fonts(_faces(_files(DIRECTORIES))))


def measuring_fonts() -> tuple[tuple[Any, ...], ...]:
    """Return one font for each Chinese, Japanese and Korean charset, in place of every style: for
    text that is measured and not drawn."""
    plain = {font.charset: font for font in reversed(system_fonts()) if font.charset in _WIDE}
    styles = list(product((True, False), repeat=2))
    return tuple(
        (charset, is_serif, is_bold, font.path, font.offset)
        for charset, font in plain.items()
        for is_serif, is_bold in styles
    )


def choose_fonts(faces: Iterable[Face]) -> Iterator[SubstituteFont]:
    """Yield the best font for each charset and style, from at most 256 MB of files."""
    known, used = list(faces), dict[Path, int]()
    for charset, (bit, words) in _CHARSETS.items():
        fitting = [face for face in known if face.code_pages >> bit & 1]
        for is_serif, is_bold in product((True, False), repeat=2):
            keys = [(_rank(face, words, is_serif, is_bold), face) for face in fitting]
            for _, face in sorted(keys, key=itemgetter(0))[:1]:
                if face.path not in used and sum(used.values()) + face.size_bytes > _MAX_BYTES:
                    continue
                used[face.path] = face.size_bytes
                yield SubstituteFont(charset, is_serif, is_bold, str(face.path), face.offset)


def _rank(face: Face, words: tuple[str, ...], is_serif: bool, is_bold: bool) -> tuple[Any, ...]:
    """Return a sort key that puts the best font first."""
    return (
        not any(word in face.name.split() for word in words),
        face.is_italic,
        face.is_serif != is_serif,
        abs(face.weight - (_BOLD if is_bold else _REGULAR)),
        len(face.name),
        str(face.path),
        face.offset,
    )


def _files(directories: Iterable[Path]) -> Iterator[Path]:
    count = 0
    for directory in directories:
        for folder, _, names in os.walk(directory):
            for name in sorted(names):
                count += 1
                if count > _MAX_FILES:
                    return
                if os.path.splitext(name)[1].lower() in _SUFFIXES:  # noqa: PTH122 - of a name
                    yield Path(folder, name)


def _faces(paths: Iterable[Path]) -> Iterator[Face]:
    for path in paths:
        try:
            yield from read_faces(path)
        except (OSError, struct.error, KeyError):
            continue  # A broken font is of no use.


def read_faces(path: Path) -> Iterator[Face]:
    """Yield the fonts of a file. Raises OSError, struct.error or KeyError for broken ones."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAX_FILE_BYTES:
            return
        kind, _, count = struct.unpack(">4sII", _read(file, 0, 12))
        offsets: tuple[int, ...] = (0,)
        if kind == b"ttcf":
            count = min(count, _MAX_FACES)
            offsets = struct.unpack(f">{count}I", _read(file, 12, 4 * count))
        for offset in offsets:
            tables = _tables(file, offset)
            measures = _read(file, *tables[b"OS/2"])
            weight, family, panose, serif = struct.unpack_from(">4xH24xh2B", measures)
            (selection,) = struct.unpack_from(">H", measures, _SELECTION_AT)
            (code_pages,) = struct.unpack_from(">I", measures, _CODE_PAGES_AT)
            is_serif = family >> 8 in _SERIF_CLASSES
            if panose == _TEXT_PANOSE:
                is_serif = serif in _SERIF_PANOSE
            name = _family(_read(file, *tables[b"name"]))
            yield Face(path, size, offset, name, weight, is_serif, bool(selection & 1), code_pages)


def _tables(file: IO[bytes], offset: int) -> dict[bytes, tuple[int, int]]:
    """Return place and size of the tables of a font."""
    (count,) = struct.unpack(">4xH", _read(file, offset, 6))
    entries = struct.iter_unpack(">4s4xII", _read(file, offset + 12, 16 * count))
    return {tag: (place, size) for tag, place, size in entries}


def _family(table: bytes) -> str:
    """Return the English name of the family."""
    count, strings = struct.unpack_from(">2xHH", table)
    for index in range(count):
        entry = struct.unpack_from(">6H", table, 6 + 12 * index)
        platform, _, language, kind, size, place = entry
        if (platform, language, kind) == (_WINDOWS, _ENGLISH, _FAMILY):
            first = strings + place
            return table[first : first + size].decode("utf-16-be", "replace")
    return ""


def _read(file: IO[bytes], place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(min(size, _MAX_TABLE_BYTES))
