from __future__ import annotations

import io
from pathlib import Path

import pytest

from portal.domain.documents import MediaType
from portal.errors import EmptyFile, UnsupportedFormat
from portal.ingest.media_types import sniff, sniff_file
from tests.factories import files
from tests.factories.files import office


@pytest.mark.parametrize(
    ("make", "name", "media_type"),
    [
        (files.chinese_pdf, "手册.pdf", MediaType.PDF),
        (files.chinese_pdf, "手册.txt", MediaType.PDF),
        (files.english_markdown, "notes.md", MediaType.MARKDOWN),
        (files.english_markdown, "NOTES.MARKDOWN", MediaType.MARKDOWN),
        (files.english_markdown, "notes", MediaType.TEXT),
        (files.gb18030_text, "a.txt", MediaType.TEXT),
        (files.big5_text, "a.txt", MediaType.TEXT),
        (files.utf_16_text, "a.txt", MediaType.TEXT),
        (files.web_page, "a.html", MediaType.HTML),
        (files.web_page, "notes.md", MediaType.HTML),
        (files.utf_16_web_page, "notes.txt", MediaType.HTML),
        (files.gb18030_text, "a.htm", MediaType.HTML),
        (office.write_docx, "a.docx", MediaType.DOCX),
        (office.write_docx, "手册.txt", MediaType.DOCX),
    ],
)
def test_content_decides_and_the_name_only_distinguishes_texts(
    tmp_path: Path, make, name: str, media_type: MediaType
) -> None:
    with make(tmp_path / "file").open("rb") as file:
        assert sniff_file(file, name) is media_type
        assert file.tell() == 0


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Plain words only.\n" * 9, files.SIMPLIFIED_TEXT])
def test_utf_16_without_a_byte_order_mark_is_text(text: str, encoding: str) -> None:
    assert sniff(text.encode(encoding), "a.txt") is MediaType.TEXT


def test_png_called_pdf_is_refused_by_what_it_is(tmp_path: Path) -> None:
    head = files.png_image(tmp_path / "scan.pdf").read_bytes()
    with pytest.raises(UnsupportedFormat, match="PNG image"):
        sniff(head, "scan.pdf")


@pytest.mark.parametrize(
    ("head", "name", "detected"),
    [
        (b"PK\x03\x04\x14\0\0\0[Content_Types].xml", "a.xlsx", "Excel"),
        (b"PK\x03\x04\x14\0\0\0a.txt", "a.zip", "ZIP"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.doc", "old Office"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "a.docx",
            "Office document with a password",
        ),
        (b"{\\rtf1\\ansi", "a.rtf", "RTF"),
        (b"\0\1\2\3" * 100, "a.txt", "binary"),
        (bytes(range(256)) * 4, "a.txt", "binary"),
        (b"just words", "a.pdf", "plain text"),
        (b"MZ just words", "a.exe", "a program"),
    ],
)
def test_other_formats_are_named(head: bytes, name: str, detected: str) -> None:
    with pytest.raises(UnsupportedFormat, match=detected):
        sniff(head, name)


@pytest.mark.parametrize(
    ("names", "file_name", "detected"),
    [
        (("a.txt",), "a.docx", "a ZIP archive"),
        (("[Content_Types].xml", "xl/workbook.bin"), "a.docx", "Excel"),
        (("[Content_Types].xml", "ppt/presProps.xml"), "a.zip", "damaged PowerPoint"),
        (("word/document.xml",), "a.docx", "a ZIP archive"),
        (("[Content_Types].xml.bak", "sword/a"), "a.docx", "a ZIP archive"),
    ],
)
def test_archive_type_is_detected_by_its_members(
    tmp_path: Path, names: tuple[str, ...], file_name: str, detected: str
) -> None:
    path = office.zip_file(tmp_path / "file", names)
    with path.open("rb") as file, pytest.raises(UnsupportedFormat, match=detected):
        sniff_file(file, file_name)


@pytest.mark.parametrize("keep", [4, 60, -30])
@pytest.mark.parametrize(("name", "kind"), [("a.zip", "ZIP"), ("a.docx", "damaged Word")])
def test_truncated_archive_is_not_a_document(
    tmp_path: Path, keep: int, name: str, kind: str
) -> None:
    data = office.write_docx(tmp_path / "file").read_bytes()[:keep]
    with pytest.raises(UnsupportedFormat, match=kind):
        sniff_file(io.BytesIO(data), name)


def test_text_about_other_formats_stays_text() -> None:
    assert sniff(b"A PDF begins with %PDF-1.7", "a.txt") is MediaType.TEXT
    for words in (
        b"BMW builds cars",
        b"ID3 is a decision tree",
        b"BZhou wrote the duty handbook",
        b"RIFF files are containers",
        b"OggS is a capture pattern",
        b"GIF89a came later",
    ):
        assert sniff(words, "a.txt") is MediaType.TEXT
    assert sniff(b"# HTML\n\n<html> is a tag", "a.md") is MediaType.MARKDOWN


def test_empty_file_is_refused() -> None:
    with pytest.raises(EmptyFile):
        sniff(b"", "a.txt")
