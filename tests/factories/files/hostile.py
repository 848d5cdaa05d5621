"""Hostile files, each with the outcome that it must have."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.factories import files
from tests.factories.files import office, ruled, sheets, slides

READY = "ready"
Make = Callable[[Path], Path]


class Hostile(NamedTuple):
    """A hostile file and what becomes of it.

    `outcome` is READY, or the error code that the upload or the document ends with. The text of a
    ready document contains `says` and does not contain `never`. `stored_as` is the name shown, if
    it differs from the one sent.
    """

    name: str
    content: bytes | Make
    outcome: str = READY
    says: str = ""
    never: str = "\0"
    stored_as: str | None = None

    def data(self, folder: Path) -> bytes:
        if isinstance(self.content, bytes):
            return self.content
        return self.content(folder / "file").read_bytes()


def hostile_files() -> Iterator[Hostile]:
    """Yield more than sixty files, no two with the same bytes."""
    yield from _encodings()
    yield from _texts()
    yield from _markup()
    yield from _wrong_names()
    yield from _pdfs()
    yield from _office()
    yield from _sheets()
    yield from _slides()
    yield from _names()


def _encodings() -> Iterator[Hostile]:
    simplified, traditional = files.SIMPLIFIED_TEXT, files.TRADITIONAL_TEXT
    for encoding in ("gb18030", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"):
        text = simplified + f"编码：{encoding}。"
        yield Hostile(f"{encoding}.txt", text.encode(encoding), says=text.split("\n")[0])
    yield Hostile("big5.txt", traditional.encode("big5"), says="台灣高速鐵路")
    japanese = "これは日本語の文書です。検索できるようにしてください。会議は午後三時からです。\n"
    for encoding in ("shift_jis", "euc_jp"):
        yield Hostile(f"{encoding}.txt", japanese.encode(encoding), says="検索できる")
    korean = "이것은 한국어 문서입니다. 회의는 오후 세 시에 시작합니다. 자료를 준비하세요.\n"
    yield Hostile("euc-kr.txt", korean.encode("euc_kr"), says="회의는 오후")
    russian = "Это документ на русском языке. Совещание начинается в три часа дня, приходите.\n"
    for encoding in ("cp1251", "koi8_r"):
        yield Hostile(f"{encoding}.txt", (russian * 4).encode(encoding), says="Совещание")
    yield Hostile("latin.txt", "Größe und Übermaß der Geräte, naïve façade.\n".encode("cp1252"),
                  says="Größe und Übermaß")  # fmt: skip
    yield Hostile("bad-byte.txt", ("值班" * 50).encode() + b"\xff\xfe\x81", says="值班�")
    # Not UTF-8, although they look like it: all bytes are characters of an older encoding.
    yield Hostile("surrogate.txt", b"\xed\xa0\x80" * 40 + "文字".encode(), never="\ud800")
    yield Hostile("overlong.txt", b"\xc0\xaf" * 60 + b" words", says=" words", never="/")


def _texts() -> Iterator[Hostile]:
    yield Hostile("nul.txt", b"before\0after " * 9, "unsupported_format")
    yield Hostile("zero.txt", b"", "empty_file")
    yield Hostile("one-byte.txt", b"x", says="x")
    yield Hostile("spaces.txt", b" \n\t" * 999, "empty_file")
    yield Hostile("invisible.txt", "\u200b\u200c\u2060\ufeff".encode() * 99, "empty_file")
    yield Hostile("binary.txt", bytes(range(256)) * 16, "unsupported_format")
    yield Hostile("line.txt", b"word" * 20_000, says="wordword")
    yield Hostile("line-cn.txt", ("值班手册" * 5_000).encode(), says="值班手册值班")
    yield Hostile("zero-width.txt", "quar\u200bterly\u200d bud\u2060get".encode(), says="quar")
    yield Hostile("rtl.txt", "invoice \u202etxt.exe\u202c مرحبا بالعالم".encode(), says="مرحبا")
    yield Hostile("zalgo.txt", ("a" + "\u0301" * 500 + " ").encode() * 20, says="a\u0301")
    yield Hostile("emoji.txt", "👩‍👩‍👧‍👦🏳️‍🌈".encode() * 500 + b" end", says="👩‍👩‍👧‍👦")
    yield Hostile("line-ends.txt", "one\rtwo\r\nthree\u2028four\x85five".encode(), never="\r",
                  says="one\ntwo\nthree\nfour")  # fmt: skip
    yield Hostile("sql.txt", b"'; DROP TABLE documents; --", says="DROP TABLE documents")
    yield Hostile("template.txt", b"{{ 7*7 }} ${7*7} %(name)s %s {0}", says="{{ 7*7 }} ${7*7} %(n")


def _markup() -> Iterator[Hostile]:
    script = '<script>alert(1)</script><img src=x onerror="alert(1)">'
    yield Hostile("script.md", f"# T\n\nvisible {script}".encode(), says="visible",
                  never="alert(1)</script>")  # fmt: skip
    yield Hostile("hx.md", b'<div hx-get="/logout" hx-trigger="load">shown words</div>',
                  says="shown words", never="hx-get")  # fmt: skip
    yield Hostile("link.md", b'[x](javascript:alert(1)) <a onclick="x()">the link</a>',
                  says="the link", never="onclick")  # fmt: skip
    yield Hostile("deep.md", b"> " * 5_000 + b"deep quotation", says="deep quotation")
    yield Hostile("brackets.md", b"[" * 30_000 + b" words", says="words")
    yield Hostile("table.md", b"|a|b|\n|-|-|\n" + b"|1|2|\n" * 2_000, says="1 | 2")
    yield Hostile("front.md", b"---\ntitle: !!python/object/apply:os.system [x]\n---\nbody words",
                  says="body words")  # fmt: skip
    yield Hostile("comment.md", b"<!--" * 4_000 + b"words at last", says="words at last")
    yield Hostile("script.html", f"<p>visible</p>{script}".encode(), says="visible",
                  never="alert")  # fmt: skip
    yield Hostile("hx.html", b'<body hx-get="/logout" onload="x()"><p hx-on:click="y()">seen',
                  says="seen", never="hx-")  # fmt: skip
    yield Hostile("deep.html", b"<b><i>" * 3_000 + b"deep words", says="deep words")
    yield Hostile("deepest.html", b"<ul><li>" * 50_000 + b"deepest words", says="deepest words")
    yield Hostile("hidden.html", b"<style>p{}</style><p hidden>secret</p><title>t", "empty_file")
    yield Hostile("lying.html", '<meta charset="gb2312"><p>其实是统一码'.encode(), says="其实是")
    yield Hostile("entity.html", b"<p>&#0;&#xD800;&#x110000;&nope; kept", says="kept")
    yield Hostile("page.txt", files.WEB_PAGE.encode(), says="夜班从二十二点开始", never="<h1>")
    yield Hostile("page.md", files.WEB_PAGE.encode("utf-16"), says="Take the key", never="<h1>")


def _wrong_names() -> Iterator[Hostile]:
    yield Hostile("手册.txt", files.chinese_pdf, says="知识门户")
    yield Hostile("image.pdf", files.png_image, "unsupported_format")
    yield Hostile("text.pdf", b"only words, no PDF", "unsupported_format")
    yield Hostile("letter.docx", office.zip_file, "unsupported_format")
    yield Hostile("letter.md", office.write_docx, says="每个答案都注明出处")
    yield Hostile("program.txt", b"\x7fELF" + bytes(60), "unsupported_format")
    yield Hostile("no-suffix", b"words without a suffix", says="without a suffix")


def _pdfs() -> Iterator[Hostile]:
    yield Hostile("encrypted.pdf", _encrypted, "encrypted_pdf")
    yield Hostile("truncated.pdf", files.truncated_pdf, "broken_pdf")
    yield Hostile("rubbish.pdf", b"%PDF-1.7\n" + b"\xff\0rubbish" * 99, "broken_pdf")
    yield Hostile("header-only.pdf", b"%PDF-1.4\n", "broken_pdf")
    yield Hostile("no-pages.pdf", files.pdf_without_pages, "empty_pdf")
    yield Hostile("scan.pdf", files.pdf_without_text, "no_text_in_pdf")
    yield Hostile("partly.pdf", files.partly_scanned_pdf, says="written page")
    yield Hostile("cid.pdf", lambda path: files.write_pdf(path, [["字体嵌入的文字"]]),
                  says="字体嵌入")  # fmt: skip
    yield Hostile("javascript.pdf", files.pdf_with_javascript, says="harmless words",
                  never="app.alert")  # fmt: skip
    yield Hostile("labels.pdf", files.labelled_pdf, says="正文从这里开始")
    yield Hostile("rules.pdf", ruled.pdf_of_many_rules, says="word")
    yield Hostile("loop.pdf", files.pdf_whose_pages_go_round, "no_text_in_pdf")


def _encrypted(path: Path) -> Path:
    return files.encrypted_pdf(path, user_password="secret")


def _office() -> Iterator[Hostile]:
    yield Hostile("bomb.docx", office.docx_bomb, "unpacks_to_too_much")
    yield Hostile("xxe.docx", office.docx_reading_a_file, "broken_file", never="root:")
    yield Hostile("laughs.docx", office.docx_billion_laughs, "broken_file")
    yield Hostile("cut.docx", lambda path: _cut(office.write_docx(path)), "unsupported_format")
    yield Hostile("no-xml.docx", _no_xml, "broken_file")
    yield Hostile("empty.docx", lambda path: office.write_docx(path, ""), "empty_file")


def _cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-40])
    return path


def _no_xml(path: Path) -> Path:
    return office.write_docx(path, parts={"word/document.xml": b"\xff\xfe<w:docu"})


def _sheets() -> Iterator[Hostile]:
    yield Hostile(
        "prices.xlsx", sheets.price_list, says="散热 | 散热片 | 1,200.00", never="never shown"
    )
    yield Hostile("bomb.xlsx", sheets.xlsx_bomb, "unpacks_to_too_much")
    yield Hostile("laughs.xlsx", sheets.xlsx_billion_laughs, "broken_file")
    yield Hostile("wide.xlsx", sheets.xlsx_of_wide_rows, "too_much_in_one")
    yield Hostile("deep.xlsx", sheets.xlsx_with_nested_elements, "too_much_in_one")
    yield Hostile("macro.xlsm", sheets.xlsx_with_a_macro_and_a_link, says="stored", never="evil")
    yield Hostile("formula.csv", b"a,b\n\"=cmd|' /C calc'!A0\",2\n", says="=cmd|'")
    yield Hostile("quotes.csv", b'a,b\n1,"open' + b"\nx,y" * 99, says="x,y")


def _slides() -> Iterator[Hostile]:
    yield Hostile("review.pptx", slides.write_pptx, says="华南 | 95", never="备用")
    yield Hostile("laughs.pptx", slides.pptx_billion_laughs, "broken_file")
    yield Hostile("bomb.pptx", slides.pptx_bomb, "unpacks_to_too_much")
    yield Hostile("book.epub", slides.write_epub, says="苏州 | 7:30", never="alert")
    yield Hostile("xxe.epub", slides.epub_reading_a_file, "broken_file")
    yield Hostile("bomb.epub", slides.epub_bomb, "unpacks_to_too_much")
    yield Hostile("mail.eml", slides.write_mail, says="上海 | 600", never="alert")
    yield Hostile("parts.eml", slides.mail_of_many_parts, "too_much_in_one")


def _names() -> Iterator[Hostile]:
    names = {
        "../../etc/passwd.txt": "passwd.txt",
        "..\\..\\windows\\boot.txt": "....windowsboot.txt",
        "/etc/shadow.txt": "shadow.txt",
        "nul\0byte.txt": "nulbyte.txt",
        "line\nfeed.txt": "line%0Afeed.txt",
        "长" * 300 + ".txt": "长" * 251 + ".txt",
        "a" * 5_000 + ".md": "a" * 252 + ".md",
        ".hidden": ".hidden",
        "....": "unnamed",
        "..": "unnamed",
        "e\u0301te\u0301.txt": "été.txt",
        "gnp.\u202etxt": "gnp.txt",
        "می\u200cخواهم 👩\u200d👩\u200d👧.txt": "می\u200cخواهم 👩\u200d👩\u200d👧.txt",
        "CON.txt": "CON.txt",
        "<script>alert(1)<script>.txt": "<script>alert(1)<script>.txt",
        '"; DROP TABLE files; --.txt': '"; DROP TABLE files; --.txt',
        "Ελληνικά עברית 한국어 👍.txt": "Ελληνικά עברית 한국어 👍.txt",
        "%2e%2e%2fpercent.txt": "%2e%2e%2fpercent.txt",
    }
    for number, (name, shown) in enumerate(names.items()):
        words = f"File {number} has a name to beware of."
        yield Hostile(name, words.encode(), says=words, stored_as=shown)


def pdf_bomb(path: Path, unpacked_bytes: int = 1 << 30) -> Path:
    """Write a page of a few kilobytes whose drawing unpacks, in two steps, to a gigabyte."""
    once = zlib.compressobj(1)  # Fast; the second pass compresses the rest.
    block = b" " * (1 << 20)
    packed = b"".join(once.compress(block) for _ in range(unpacked_bytes >> 20)) + once.flush()
    return files.pdf_with_stream(
        path, zlib.compress(packed, 9), "/Filter [/FlateDecode /FlateDecode]"
    )


def pdf_of_short_lines(path: Path, page_count: int = 1_700, line_count: int = 2_000) -> Path:
    """Write pages that share one drawing of lines with one character each: a few kilobytes with
    millions of lines."""
    drawing = zlib.compress(b"BT /F1 1 Tf 1 TL 0 2900 Td " + b"(a) Tj T* " * line_count + b"ET")
    first = 5
    pages = " ".join(f"{first + number} 0 R" for number in range(page_count))
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 3000] /Contents 4 0 R"
        b" /Resources << /Font << /F1 3 0 R >> >> >>"
    )
    return files.raw_pdf(
        path,
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{pages}] /Count {page_count} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Length {len(drawing)} /Filter /FlateDecode >>\nstream\n".encode()
        + drawing
        + b"\nendstream",
        *[page] * page_count,
    )
