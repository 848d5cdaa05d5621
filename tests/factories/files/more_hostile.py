"""More hostile files: cut off, oversized, or with a text's suffix but nothing to read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.factories import files
from tests.factories.files import office
from tests.factories.files.hostile import Hostile

REFUSED, TOO_MUCH = "unsupported_format", "too_much_in_one"
_CHINESE = "知识门户保存文档，每个答案都注明出处。夜班从二十二点开始。"
_ENGLISH = "The library closes at nine; café and naïve façade. "


def more_hostile_files() -> Iterator[Hostile]:
    """Yield more than sixty files, no two with the same bytes."""
    yield from _damaged_texts()
    yield from _no_texts()
    yield from _texts_after_all()
    yield from _binaries()
    yield from _overgrown_pages()
    yield from _overgrown_documents()
    yield from _pdfs()


def _damaged_texts() -> Iterator[Hostile]:
    for cut in (1, 2):
        yield Hostile(f"cut-{cut}.txt", (_CHINESE + "x" * cut + "完").encode()[:-cut], says="夜班")
    yield Hostile("cut.md", ("# 手册\n\n" + _CHINESE).encode()[:-1], says="手册")
    yield Hostile("cut.html", f"<p>{_CHINESE}".encode()[:-1], says="夜班")
    yield Hostile("cut-emoji.txt", ("words " * 9 + "👍").encode()[:-1], says="words �")
    yield Hostile("cut-english.txt", b"Only English, and then " + "值".encode()[:2], says="Only")
    yield Hostile("cut-gb18030.txt", (_CHINESE * 4).encode("gb18030")[:-1], says="夜班")
    yield Hostile("cut-utf-16.txt", (_CHINESE * 4).encode("utf-16")[:-1], says="夜班")
    yield Hostile("cut-utf-32.txt", (_CHINESE * 3).encode("utf-32")[:-3], says="夜班")
    middle = (_CHINESE * 5).encode()
    yield Hostile("hole.txt", middle[:40] + b"\xff" + middle[42:], says="夜班")
    yield Hostile("holes.txt", b"\xfe".join([(_CHINESE * 2).encode()] * 4), says="夜班")
    yield Hostile("bad-in-html.html", b"<p>" + (_CHINESE * 3).encode() + b"\x81", says="夜班")
    yield Hostile("bell.txt", b"ring \x07 the bell \x08" + b" and more" * 20, says="ring")
    yield Hostile("escape.txt", b"plain \x1b[31mred\x1b[0m words", says="red")
    yield Hostile("one-nul.txt", (_ENGLISH * 9).encode("utf-16") + b"\0\0x\0", says="naïve")
    yield Hostile("half-surrogate.txt", b"\xff\xfe" + "words ".encode("utf-16-le") + b"\x00\xd8",
                  says="words")  # fmt: skip


def _no_texts() -> Iterator[Hostile]:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><text>words</text><script>x()</script></svg>'
    yield Hostile("drawing.svg", svg, REFUSED)
    yield Hostile("drawing.txt", b'<?xml version="1.0"?>\n<!-- by hand -->\n' + svg, REFUSED)
    doctype = b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd">\n'
    yield Hostile("drawing.xml", doctype + svg, REFUSED)
    yield Hostile("drawing-utf16.svg", svg.decode().encode("utf-16"), REFUSED)
    yield Hostile("drawing.md", b"\xef\xbb\xbf" + svg, REFUSED)
    word = b'<?xml version="1.0"?><w:wordDocument xmlns:w="http://schemas.microsoft.com/x">'
    yield Hostile("word.xml", word, REFUSED)
    yield Hostile("flat.xml", b'<?xml version="1.0"?><pkg:package xmlns:pkg="x">', REFUSED)
    yield Hostile("sheet.xml", b'<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">',
                  REFUSED)  # fmt: skip
    yield Hostile("open.fodt", b'<?xml version="1.0"?>\n<office:document a="b">', REFUSED)
    mail = b"From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"
    yield Hostile("letter.eml", mail + b"--x\n\nQUJD", says="QUJD")
    coded = b"Received: by x\nSubject: y\nContent-Transfer-Encoding: base64\n\nQUJDRA=="
    yield Hostile("coded.eml", coded, says="ABCD")
    related = mail.replace(b"multipart/mixed", b"multipart/related").replace(b"\n", b"\r\n")
    yield Hostile("page.mht", related + b"--x", REFUSED)
    yield Hostile("letter.rtf", b"{\\rtf1\\ansi words}", REFUSED)
    yield Hostile("print.ps", b"%!PS-Adobe-3.0\n(words) show", REFUSED)
    yield Hostile("print.txt", b"\x04%!PS-Adobe-3.0\n(words) show", REFUSED)
    yield Hostile("form.fdf", b"%FDF-1.2\n1 0 obj", REFUSED)
    yield Hostile("coded.uue", b"begin 644 x.bin\n" + b"M" + b"0" * 60 + b"\n`\nend\n", REFUSED)
    yield Hostile("picture.ppm", b"P3\n2 2\n255\n" + b"1 2 3 " * 4, REFUSED)


def _texts_after_all() -> Iterator[Hostile]:
    """Yield files that look a little like those above but are readable texts."""
    feed = f"<rss><channel><title>News</title><item>{_CHINESE}</item></channel></rss>"
    yield Hostile("feed.xml", f'<?xml version="1.0"?>{feed}'.encode(), says="夜班")
    yield Hostile("mail.txt", b"From: Ada\nTo: Eve\nSubject: Rota\n\nThe night shift begins.",
                  says="night shift")  # fmt: skip
    yield Hostile(
        "about-svg.md", b"# SVG\n\n`<svg>` draws. <svg><text>x</text></svg>", says="draws"
    )
    yield Hostile("inline.html", b"<html><p>seen<svg><text>drawn</text></svg>", says="seen")
    yield Hostile("begin.txt", b"begin 644 words with us\nMany people come.", says="Many people")
    yield Hostile("p3.txt", b"P3 is the third paper: 2 of 4 agree.", says="third paper")
    yield Hostile("mime.txt", b"Note: MIME-Version is a field.\nThe end.", says="is a field")
    yield Hostile("key-value.txt", b"Title: x\nContent-Type: multipart/mixed\n\nfront matter",
                  says="front matter")  # fmt: skip


def _binaries() -> Iterator[Hostile]:
    for name, start in {
        "photo.heic": b"\0\0\0\x24ftypheic",
        "clip.mp4": b"\0\0\0\x1cftypisom",
        "song.m4a": b"\0\0\0\x20ftypM4A ",
        "icon.ico": b"\0\0\1\0\1\0",
        "design.psd": b"8BPS\0\1",
        "song.flac": b"fLaC\0\0",
        "font.otf": b"OTTO\0\x0b",
        "font.ttf": b"\0\1\0\0\0\x0f",
        "pack.zst": b"\x28\xb5\x2f\xfd",
        "files.tar": b"a.txt" + bytes(252) + b"ustar\x0000",
        "unknown.bin": b"\x01\x02\x03",
    }.items():
        yield Hostile(name, start + bytes(range(256)), REFUSED)


def _overgrown_pages() -> Iterator[Hostile]:
    attributes = " ".join(f"a{n}=1" for n in range(1_000_000)).encode()
    yield Hostile("attributes.html", b"<p " + attributes + b">words", TOO_MUCH)
    yield Hostile("attributes-cut.html", b"<p>words<p " + attributes[: 4 << 20], TOO_MUCH)
    yield Hostile("attributes-end.html", b"<p>words</p " + attributes[: 3 << 20] + b">", TOO_MUCH)
    yield Hostile("many-tags.html", b"<p a=1 b=2>x</p>" * 20_000, says="x")
    yield Hostile("quotes.html", b"<p a='" + b'"' * 50_000 + b"'>words", says="words")
    yield Hostile("formatting.html", b"".join(b"<font a=%d>" % n for n in range(400))
                  + b"<p>x" * 200, says="x")  # fmt: skip


def _overgrown_documents() -> Iterator[Hostile]:
    yield Hostile("paragraph.docx", lambda path: office.write_docx(
        path, office.paragraph("a" * 99_000_000)), TOO_MUCH)  # fmt: skip
    yield Hostile("runs.docx", lambda path: office.write_docx(
        path, "<w:p>" + "<w:r><w:t>abcdefgh</w:t></w:r>" * 130_000 + "</w:p>"),
        TOO_MUCH)  # fmt: skip
    yield Hostile("deep.docx", lambda path: office.write_docx(
        path, "<w:tbl><w:tr><w:tc>" * 100 + office.paragraph("x") + "</w:tc></w:tr></w:tbl>" * 100
    ), TOO_MUCH)  # fmt: skip
    yield Hostile("attributes.docx", lambda path: office.write_docx(path, "<w:p {}/>".format(
        " ".join(f'a{n}="1"' for n in range(2_000)))), TOO_MUCH)  # fmt: skip
    yield Hostile("parts.docx", lambda path: office.write_docx(
        path, parts={f"word/x{n}.bin": b"" for n in range(20_001)}), TOO_MUCH)  # fmt: skip
    yield Hostile("long.docx", lambda path: office.write_docx(
        path, office.paragraph("word " * 2_000) * 5), says="word word")  # fmt: skip


def _pdfs() -> Iterator[Hostile]:
    yield Hostile("no-pages-2.pdf", files.pdf_without_pages, "empty_pdf")
    yield Hostile("bomb.pdf", _small_bomb, "unpacks_to_too_much|no_text_in_pdf")


def _small_bomb(path: Path) -> Path:
    """Write a drawing that unpacks to a gigabyte of spaces."""
    once = zlib.compressobj(1)
    packed = b"".join(once.compress(bytes(1 << 20)) for _ in range(1 << 10)) + once.flush()
    return files.pdf_with_stream(
        path, zlib.compress(packed, 9), "/Filter [/FlateDecode /FlateDecode]"
    )
