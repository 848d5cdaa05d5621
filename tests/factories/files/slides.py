"""Makes presentations, books and e-mails for tests, good and hostile ones."""

from __future__ import annotations

import zipfile
from email.message import EmailMessage
from pathlib import Path

import pptx
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.util import Inches

from tests.factories.files.sheets import claim_size

_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_pptx(path: Path) -> Path:
    """Write three slides: a list with notes, a table in the lower half, and a hidden one."""
    presentation = pptx.Presentation()
    title_and_content, title_only = presentation.slide_layouts[1], presentation.slide_layouts[5]
    first = presentation.slides.add_slide(title_and_content)
    first.shapes.title.text = "季度回顾"
    frame = first.placeholders[1].text_frame
    frame.text = "营收增长 12%"
    frame.add_paragraph().text = "亚太"
    frame.paragraphs[1].level = 1
    frame.add_paragraph().text = "成本 <持平>"
    first.notes_slide.notes_text_frame.text = "先讲亚太。"
    second = presentation.slides.add_slide(title_only)
    second.shapes.title.text = "各区数字"
    shape = second.shapes.add_table(3, 2, Inches(1), Inches(4), Inches(6), Inches(2))
    for row, values in enumerate((("地区", "营收"), ("华东", "120"), ("华南", "95"))):
        for column, value in enumerate(values):
            shape.table.cell(row, column).text = value
    box = second.shapes.add_textbox(Inches(1), Inches(2), Inches(4), Inches(1))
    box.text_frame.text = "单位：万元"
    hidden = presentation.slides.add_slide(title_only)
    hidden.shapes.title.text = "备用"
    hidden._element.set("show", "0")
    presentation.save(path)
    return path


def pptx_with_a_chart_and_a_diagram(path: Path) -> Path:
    """Write a slide with a chart of two categories and a diagram of two points."""
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "各区数字"
    data = CategoryChartData()
    data.categories = ["华东", "华南"]
    data.add_series("营收", (120, 95.5))
    size = Inches(1), Inches(2), Inches(6), Inches(2)
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *size, data).chart
    chart.has_title, chart.chart_title.text_frame.text = True, "各区营收"
    words = "".join(
        f"<d:pt><d:t><a:p><a:r><a:t>{word}</a:t></a:r></a:p></d:t></d:pt>"
        for word in ("收集", "整理")
    )
    spaces = f'xmlns:d="{_DIAGRAM}" xmlns:a="{_DRAWING}" xmlns:r="{_RELATIONS}"'
    model = f"<d:dataModel {spaces}><d:ptLst>{words}</d:ptLst></d:dataModel>".encode()
    uri = PackURI("/ppt/diagrams/data1.xml")
    part = Part(uri, "application/xml", slide.part.package, model)
    name = slide.part.relate_to(part, f"{_RELATIONS}/diagramData")
    frame = f"""<p:graphicFrame xmlns:p="{_SLIDE}" {spaces}><p:nvGraphicFramePr>
        <p:cNvPr id="9" name="d"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr>
        <p:xfrm><a:off x="0" y="6000000"/><a:ext cx="9" cy="9"/></p:xfrm>
        <a:graphic><a:graphicData uri="{_DIAGRAM}"><d:relIds r:dm="{name}"/></a:graphicData>
        </a:graphic></p:graphicFrame>"""
    slide.shapes._spTree.append(parse_xml(frame))
    presentation.save(path)
    return path


def pptx_billion_laughs(path: Path) -> Path:
    write_pptx(path)
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    return _replace(path, "ppt/slides/slide1.xml", f"<!DOCTYPE p [{entities}]><p>&a9;</p>".encode())


def pptx_bomb(path: Path) -> Path:
    return claim_size(write_pptx(path), "ppt/slides/slide9.xml", 101 << 20)


def _replace(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path) as archive:
        parts = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in (parts | {name: content}).items():
            archive.writestr(each, data)
    return path


_CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
_CHAPTERS = {
    "one.xhtml": '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
    "<head><title>x</title></head><body><h1>第一章 出发</h1><p>火车六点开。</p></body></html>",
    "two.xhtml": "<html><body><h1>第二章 到达</h1><table><tr><th>站<th>时间"
    "<tr><td>苏州<td>7:30</table><script>alert(1)</script></body></html>",
}


def write_epub(path: Path, *, container: str = _CONTAINER, claimed_bytes: int = 0) -> Path:
    """Write a book whose chapters are not in reading order in the archive."""
    chapters = _CHAPTERS
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>'
        for name in reversed(chapters)
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>旅行手册</dc:title></metadata><manifest>{items}</manifest>"
        f"<spine>{spine}</spine></package>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("OEBPS/book.opf", package)
        for name, content in reversed(chapters.items()):
            archive.writestr(f"OEBPS/{name}", content)
        if claimed_bytes:
            archive.getinfo("OEBPS/one.xhtml").file_size = claimed_bytes
    return path


def epub_reading_a_file(path: Path) -> Path:
    entity = '<!DOCTYPE c [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    return write_epub(path, container=entity + _CONTAINER.replace("book", "&e;"))


def epub_bomb(path: Path) -> Path:
    return write_epub(path, claimed_bytes=101 << 20)


def write_mail(path: Path) -> Path:
    """Write an e-mail as text and HTML, with an attachment."""
    message = EmailMessage()
    message["Subject"] = "关于报销的说明"
    message["From"] = "财务部 <finance@example.com>"
    message["To"] = "all@example.com"
    message["Date"] = "Fri, 01 Mar 2024 09:00:00 +0800"
    message.set_content("住宿每晚不超过 500 元。\n请附发票。", cte="base64")
    message.add_alternative(
        "<p>住宿每晚不超过 <b>500</b> 元。</p>"
        "<table><tr><th>城市<th>上限<tr><td>上海<td>600</table><script>alert(1)</script>",
        subtype="html",
    )
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="标准.pdf")
    path.write_bytes(message.as_bytes())
    return path


def mail_of_many_parts(path: Path) -> Path:
    part = b"--b\r\nContent-Type: text/plain\r\n\r\nwords\r\n"
    head = b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    path.write_bytes(head + part * 2_000 + b"--b--\r\n")
    return path


def mail_of_nested_parts(path: Path, depth: int) -> Path:
    """Write an e-mail whose words are in this many parts within each other."""
    head = "Subject: nested\n"
    for number in range(depth):
        head += f'Content-Type: multipart/mixed; boundary="b{number}"\n\n--b{number}\n'
    path.write_text(f"{head}Content-Type: text/plain\n\ninnermost words\n", "utf-8")
    return path


def deep_mail(path: Path) -> Path:
    """Write an e-mail of messages nested thousands deep."""
    head = b"MIME-Version: 1.0\r\nSubject: deep\r\nContent-Type: message/rfc822\r\n\r\n"
    path.write_bytes(head * 3_000 + b"Subject: x\r\n\r\ninnermost words")
    return path
