"""Makes real files for tests: PDFs with Chinese fonts, texts in old encodings, broken files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pikepdf
from pypdfium2 import PdfDocument
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
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
WEB_PAGE = """\
<!DOCTYPE html>
<html lang="zh"><head><title>值班 &amp; 手册</title>
<style>p { color: red }</style><script>alert("script")</script></head>
<body><nav><a href="https://example.com/start">首页</a></nav>
<h1>值班<b>手册</b></h1>
<p>夜班从二十二点
开始，到六点结束。 See the <a href="https://example.com/plan">plan</a> and
bring a lamp.<p hidden>hidden attribute</p><div style="color: red; Display : none">unseen</div>
<h2>Steps</h2>
<ol start="3"><li>Sign in<ul><li>at the gate</ul><li><p>Take the key</p><p>from the box</p></ol>
<table><caption>Phones</caption><tr><th>who<th>number</tr><tr><td>guard<td><p>12</p><p>34</p></table>
<table><tr><td><h3>Side</h3>left<td><table><tr><td>x<td>y</table></table>
<pre><code>def open_gate():
    return  "now"
</code></pre><template>template</template><noscript>no script</noscript>
<img src="a.png" alt="map of the site"><br>last line</body></html>
"""
WEB_PAGE_TEXT = """\
值班手册

夜班从二十二点开始，到六点结束。 See the plan (https://example.com/plan) and bring a lamp.

Steps

3. Sign in
  - at the gate
4. Take the key
  from the box

Phones

who | number
guard | 12 34

Side

left

x | y

def open_gate():
    return  "now"

map of the site
last line"""
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
    """Write a PDF with one line of text below the other; `sizes` gives lines another font size. A
    page without lines gets a drawing.

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
        if not lines:
            canvas.rect(100, 100, 300, 400, fill=1)
        canvas.showPage()
    canvas.save()
    return path


def chinese_pdf(path: Path) -> Path:
    return write_pdf(path, CHINESE_PAGES, title="知识门户操作手册")


def english_pdf(path: Path, lines: Sequence[str]) -> Path:
    return write_pdf(path, [lines], font="Helvetica")


def pdf_without_text(path: Path, page_count: int = 2) -> Path:
    """Write pages with nothing but a drawing, like a scan."""
    canvas = Canvas(str(path), pagesize=A4)
    for _ in range(page_count):
        canvas.rect(100, 100, 300, 400, fill=1)
        canvas.showPage()
    canvas.save()
    return path


def partly_scanned_pdf(path: Path) -> Path:
    """Write nine pages, the third to the ninth of which are drawings."""
    canvas = Canvas(str(path), pagesize=A4)
    for number in range(9):
        if number < 2:
            canvas.drawString(72, 700, f"A written page, number {number}.")
        else:
            canvas.rect(100, 100, 300, 400, fill=1)
        canvas.showPage()
    canvas.save()
    return path


def scanned_pdf(
    path: Path, pages: Sequence[Sequence[str]], *, written_page: str | None = None
) -> Path:
    """Write pictures of pages with these lines in large type, followed by `written_page` as a page
    of real text."""
    drawn = write_pdf(path, pages, sizes={line: 20.0 for lines in pages for line in lines})
    pictures = [page.render(scale=2).to_pil() for page in PdfDocument(drawn.read_bytes())]
    canvas = Canvas(str(path), pagesize=A4)
    for picture in pictures:
        canvas.drawImage(ImageReader(picture), 0, 0, *A4)
        canvas.showPage()
    if written_page:
        canvas.setFont(CHINESE_FONT, 11)
        canvas.drawString(72, 700, written_page)
        canvas.showPage()
    canvas.save()
    return path


def picture(path: Path, pages: Sequence[Sequence[str]], kind: str) -> Path:
    """Write a picture of pages with these lines: of the first page only, unless it is a TIFF."""
    drawn = write_pdf(path, pages, sizes={line: 20.0 for lines in pages for line in lines})
    first, *more = [page.render(scale=2).to_pil() for page in PdfDocument(drawn.read_bytes())]
    first.save(path, kind, **({"save_all": True, "append_images": more} if kind == "TIFF" else {}))
    return path


def pdf_without_pages(path: Path) -> Path:
    pikepdf.new().save(path)
    return path


def pdf_with_javascript(path: Path) -> Path:
    """Write a PDF that tries to run a script when opened and a program when closed."""
    english_pdf(path, ["Some harmless words."])
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.Root.OpenAction = pikepdf.Dictionary(
            S=pikepdf.Name.JavaScript, JS=pikepdf.String("app.alert('opened')")
        )
        pdf.Root.AA = pikepdf.Dictionary(
            WC=pikepdf.Dictionary(S=pikepdf.Name.Launch, F=pikepdf.String("/bin/sh"))
        )
        pdf.save(path)
    return path


def pdf_whose_pages_go_round(path: Path) -> Path:
    """Write a PDF whose page tree contains itself."""
    return raw_pdf(
        path,
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>",
    )


def pdf_with_stream(path: Path, stream: bytes, entries: str) -> Path:
    """Write one page drawn by this stream, with these entries in the stream's dictionary."""
    return raw_pdf(
        path,
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R >>",
        f"<< /Length {len(stream)} {entries} >>\nstream\n".encode() + stream + b"\nendstream",
    )


def raw_pdf(path: Path, *objects: bytes) -> Path:
    """Write a PDF of these objects, numbered from 1; the first is its catalogue."""
    data, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    data += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    data += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\n".encode()
    path.write_bytes(data + f"startxref\n{table}\n%%EOF\n".encode())
    return path


def encrypted_pdf(path: Path, *, user_password: str) -> Path:
    """Write a protected PDF; with an empty user password, all can read but not change it."""
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


def labelled_pdf(
    path: Path,
    pages: Sequence[Sequence[str]] = (["序言"], ["目录"], ["正文从这里开始。"]),
    *,
    prefix: str | None = None,
) -> Path:
    """Write a PDF whose first two pages are labelled i and ii and the others 1, 2, …; with a
    prefix, all pages are labelled with the prefix and 1, 2, …."""
    write_pdf(path, pages)
    ranges = [
        *(0, pikepdf.Dictionary(S=pikepdf.Name.r)),
        *(2, pikepdf.Dictionary(S=pikepdf.Name.D)),
    ]
    if prefix is not None:
        ranges = [0, pikepdf.Dictionary(S=pikepdf.Name.D, P=pikepdf.String(prefix))]
    with pikepdf.open(path, allow_overwriting_input=True) as pdf:
        pdf.Root.PageLabels = pikepdf.Dictionary(Nums=pikepdf.Array(ranges))
        pdf.save(path)
    return path


def write_text(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def english_markdown(path: Path) -> Path:
    return write_text(path, ENGLISH_MARKDOWN)


def web_page(path: Path) -> Path:
    return write_text(path, WEB_PAGE)


def utf_16_web_page(path: Path) -> Path:
    return write_text(path, WEB_PAGE, "utf-16")


def gb18030_text(path: Path) -> Path:
    return write_text(path, SIMPLIFIED_TEXT, "gb18030")


def big5_text(path: Path) -> Path:
    return write_text(path, TRADITIONAL_TEXT, "big5")


def utf_16_text(path: Path) -> Path:
    return write_text(path, SIMPLIFIED_TEXT, "utf-16")


def png_image(path: Path) -> Path:
    """Write a valid image of one pixel, regardless of the path's suffix."""
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
