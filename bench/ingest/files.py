"""A realistic folder of files: Chinese and English, TXT, Markdown and PDF, with editions that
differ only slightly.

python -m bench.ingest.files FOLDER --count 1000 --bad 10
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.corpus.texts import draft, write, write_title

T = TypeVar("T")

_SEED = 77
_TOPICS = 40
# Percent of files by their number of chunks of about 300 tokens; most files are short.
_LENGTHS = {1: 75, 2: 15, 4: 7, 8: 2, 16: 1}
# Percent of files that are an earlier file with one more chunk at its end.
_EDITIONS = 10
_KINDS = {"txt": 45, "md": 35, "pdf": 20}
_CHUNKS_PER_PAGE = 2
_CHARACTERS_PER_LINE = {"zh": 40, "en": 88}
_FONTS = {
    "zh": b"<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H"
    b" /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light"
    b" /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 0 >> /DW 1000"
    b" /FontDescriptor << /Type /FontDescriptor /FontName /STSong-Light /Flags 6"
    b" /FontBBox [-25 -254 1000 880] /ItalicAngle 0 /Ascent 752 /Descent -271 /CapHeight 737"
    b" /StemV 58 >> >>] >>",
    "en": b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """A file before it is written."""

    name: str
    kind: str
    language: str
    title: str
    chunks: tuple[str, ...]

    @property
    def pages(self) -> int:
        """Return the pages of a PDF; for other files, the number that they would fill."""
        return -(-len(self.chunks) // _CHUNKS_PER_PAGE)

    def write(self, folder: Path) -> Path:
        """Write the file below `folder`, and return its path."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._content())
        return path

    def _content(self) -> bytes:
        if self.kind == "pdf":
            return _pdf(self)
        if self.kind == "txt":
            return "\n\n".join((self.title, *self.chunks)).encode()
        parts = [f"## {number}\n\n{one}" for number, one in enumerate(self.chunks, 1)]
        return "\n\n".join((f"# {self.title}", *parts)).encode()


def sheets(count: int) -> list[Sheet]:
    """Return `count` files, the same in every run."""
    rng = np.random.default_rng(_SEED)
    made: list[Sheet] = []
    for number in range(count):
        if made and rng.integers(100) < _EDITIONS:
            made.append(_edition(rng, number, made[int(rng.integers(len(made)))]))
        else:
            made.append(_sheet(rng, number))
    return made


def _sheet(rng: np.random.Generator, number: int) -> Sheet:
    topic, language = int(rng.integers(_TOPICS)), ("zh", "en")[number % 2]
    kind, length = _drawn(rng, _KINDS), _drawn(rng, _LENGTHS)
    chunks = tuple(write(draft(rng, topic, language)) for _ in range(length))
    title = write_title(rng, topic, language)
    return Sheet(_name(number, topic, title, kind), kind, language, title, chunks)


def _edition(rng: np.random.Generator, number: int, old: Sheet) -> Sheet:
    topic = int(rng.integers(_TOPICS))
    chunks = (*old.chunks, write(draft(rng, topic, old.language)))
    name = _name(number, topic, old.title, old.kind)
    return Sheet(name, old.kind, old.language, old.title, chunks)


def _name(number: int, topic: int, title: str, kind: str) -> str:
    return f"{topic:02}/{number:05} {title}.{kind}"


def _drawn(rng: np.random.Generator, shares: Mapping[T, int]) -> T:
    values = list(shares)
    return values[int(rng.choice(len(values), p=np.array(list(shares.values())) / 100))]


def _pdf(sheet: Sheet) -> bytes:
    """Write pages of lines in a standard PDF font, which need not be embedded."""
    width = _CHARACTERS_PER_LINE[sheet.language]
    lines = [textwrap.wrap(one, width) for one in sheet.chunks]
    pages = [
        [line for chunk in lines[start : start + _CHUNKS_PER_PAGE] for line in (*chunk, "")]
        for start in range(0, len(lines), _CHUNKS_PER_PAGE)
    ]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        _FONTS[sheet.language],
    ]
    for number, page in enumerate(pages):
        drawn = _drawing(page, sheet.language)
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]"
            b" /Resources << /Font << /F 3 0 R >> >>"
            + f" /Contents {5 + 2 * number} 0 R >>".encode(),
            f"<< /Length {len(drawn)} >>\nstream\n".encode() + drawn + b"\nendstream",
        ]
    return _numbered(objects)


def _drawing(lines: Sequence[str], language: str) -> bytes:
    codec = "utf-16-be" if language == "zh" else "ascii"
    shown = (f"<{line.encode(codec, 'replace').hex()}> Tj T*" for line in lines)
    return "\n".join(["BT /F 11 Tf 72 780 Td 14 TL", *shown, "ET"]).encode()


def _numbered(objects: Sequence[bytes]) -> bytes:
    data, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R >>\n"
    return data + f"{end}startxref\n{len(data)}\n%%EOF\n".encode()


def write_bad(folder: Path, count: int) -> None:
    """Write files that cannot be read, for different reasons."""
    kinds = (
        ("empty.txt", b""),
        ("picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
        ("cut off.pdf", b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog"),
        ("spaces.md", b" \n\t\n "),
        ("undecodable.txt", b"\xff\xfe\x00\xd8\x00\xd8\x81\x20\xff"),
    )
    for number in range(count):
        name, data = kinds[number % len(kinds)]
        # A few extra bytes make each file unique.
        more = b" " * (number // len(kinds)) if data.strip() else data
        (folder / f"bad {number} {name}").write_bytes(data + more)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write a folder of files to import.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--bad", type=int, default=0, help="so many of them cannot be read (0)")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for sheet in sheets(options.count - options.bad):
        sheet.write(options.folder)
    write_bad(options.folder, options.bad)
    return 0


if __name__ == "__main__":
    sys.exit(main())
