"""Makes real files for tests: PDFs with Chinese fonts, texts in old encodings, broken files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pikepdf
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

CHINESE_FONT = "STSong-Light"
CHINESE_PAGES = (
    (
        "知识门户操作手册",
        "",
        "知识门户是一个自托管的系统。用户可以上传文档、检索文档，",
        "并就文档提问；每个答案都注明出处，每个引用都能打开原文。",
        "",
        "订单编号为 PO-4711 的设备在上海仓库。",
    ),
    ("第二章 权限", "", "私有文档只有所有者和管理员可以看到。"),
)
ENGLISH_MARKDOWN = """\
# Solar power in the valley

The plant was opened in **2019** and delivers 4,200 kW. See the
[yearly report](https://example.com/report) for details.

## Maintenance

1. Clean the panels every spring.
2. Check the inverters, e.g. the model `INV-22`.

| part | interval |
|------|----------|
| fan  | 6 months |

```python
print("hello")
```
"""
SIMPLIFIED_TEXT = (
    "青藏铁路全长一千九百五十六公里，是世界上海拔最高的铁路。\n"
    "铁路从西宁出发，经过格尔木，到达拉萨，全线于二〇〇六年七月通车。\n"
)
TRADITIONAL_TEXT = (
    "台灣高速鐵路北起臺北，南至高雄左營，全長約三百五十公里。\n"
    "列車最高時速三百公里，乘客可以在車站或網路上購買車票。\n"
)


def write_pdf(
    path: Path,
    pages: Sequence[Sequence[str]],
    *,
    font: str = CHINESE_FONT,
    title: str | None = None,
    sizes: dict[str, float] | None = None,
    outline: Sequence[tuple[str, int, int]] = (),
) -> Path:
    """A PDF with one line of text below the other; `sizes` gives lines another type size.

    `outline` holds (title, level from 0, page index).
    """
    if font == CHINESE_FONT:
        pdfmetrics.registerFont(UnicodeCIDFont(font))
    canvas = Canvas(str(path), pagesize=A4)
    if title:
        canvas.setTitle(title)
    for index, lines in enumerate(pages):
        canvas.bookmarkPage(str(index))
        for text, level, page in outline:
            if page == index:
                canvas.addOutlineEntry(text, str(index), level)
        baseline = 780
        for line in lines:
            canvas.setFont(font, (sizes or {}).get(line, 11))
            canvas.drawString(72, baseline, line)
            baseline -= 16
        canvas.showPage()
    canvas.save()
    return path


def chinese_pdf(path: Path) -> Path:
    return write_pdf(path, CHINESE_PAGES, title="知识门户操作手册")


def english_pdf(path: Path, lines: Sequence[str]) -> Path:
    return write_pdf(path, [lines], font="Helvetica")


def pdf_without_text(path: Path, page_count: int = 2) -> Path:
    """Pages with a drawing only, as a scan has them."""
    canvas = Canvas(str(path), pagesize=A4)
    for _ in range(page_count):
        canvas.rect(100, 100, 300, 400, fill=1)
        canvas.showPage()
    canvas.save()
    return path


def encrypted_pdf(path: Path, *, user_password: str) -> Path:
    """Protected; with an empty user password everyone can read it, but not change it."""
    plain = chinese_pdf(path.with_suffix(".plain.pdf"))
    with pikepdf.open(plain) as pdf:
        pdf.save(path, encryption=pikepdf.Encryption(owner="owner", user=user_password))
    plain.unlink()
    return path


def truncated_pdf(path: Path) -> Path:
    chinese_pdf(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 8])
    return path


def labelled_pdf(path: Path) -> Path:
    """Three pages: i, ii, 1."""
    write_pdf(path, [["序言"], ["目录"], ["正文从这里开始。"]])
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.Root.PageLabels = pikepdf.Dictionary(
            Nums=pikepdf.Array(
                [
                    *(0, pikepdf.Dictionary(S=pikepdf.Name.r)),
                    *(2, pikepdf.Dictionary(S=pikepdf.Name.D)),
                ]
            )
        )
        pdf.save(path)
    return path


def write_text(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def english_markdown(path: Path) -> Path:
    return write_text(path, ENGLISH_MARKDOWN)


def gb18030_text(path: Path) -> Path:
    return write_text(path, SIMPLIFIED_TEXT, "gb18030")


def big5_text(path: Path) -> Path:
    return write_text(path, TRADITIONAL_TEXT, "big5")


def utf_16_text(path: Path) -> Path:
    return write_text(path, SIMPLIFIED_TEXT, "utf-16")


def png_image(path: Path) -> Path:
    """A valid image of one pixel, whatever the path's suffix says."""
    import struct
    import zlib

    def part(kind: bytes, body: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + checksum

    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
        + part(b"IDAT", zlib.compress(b"\0\xff\0\0"))
        + part(b"IEND", b"")
    )
    return path


def empty_file(path: Path) -> Path:
    path.write_bytes(b"")
    return path
