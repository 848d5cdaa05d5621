"""Makes documents of each format that carry an image."""

from __future__ import annotations

import base64
import io
import zipfile

import docx
import pptx
from PIL import Image

SCRIPT = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def png(colour: str = "teal", size: tuple[int, int] = (300, 120)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, colour).save(written, "PNG")
    return written.getvalue()


def address(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64," + base64.b64encode(data).decode("ascii")


def word(image: bytes) -> bytes:
    document, written = docx.Document(), io.BytesIO()
    document.add_heading("Lamps", 1)
    document.add_paragraph("Above the image.")
    document.add_picture(io.BytesIO(image))
    document.add_paragraph("Below the image.")
    document.save(written)
    return written.getvalue()


def slides(image: bytes) -> bytes:
    presentation, written = pptx.Presentation(), io.BytesIO()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Above the image."
    slide.shapes.add_picture(io.BytesIO(image), 914_400, 1_828_800)
    presentation.save(written)
    return written.getvalue()


def page(image: bytes) -> bytes:
    return (
        f"<html><body><h1>Lamps</h1><p>Above the image.</p><img src='{address(image)}'>"
        f"<img src='{address(SCRIPT, 'svg+xml')}'><img src='https://example.com/x.png'>"
        "<p>Below the image.</p></body></html>"
    ).encode()


def notes(image: bytes) -> bytes:
    return (
        f"# Lamps\n\nAbove the image.\n\n![]({address(image)})\n\n"
        f"![]({address(SCRIPT, 'svg+xml')})\n\nBelow the image.\n"
    ).encode()


def book(image: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container><rootfiles><rootfile full-path="OEBPS/p.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/p.opf",
            "<package><metadata><title>Lamps</title></metadata><manifest><item id='a' "
            "href='text/a.xhtml' media-type='application/xhtml+xml'/></manifest><spine>"
            "<itemref idref='a'/></spine></package>",
        )
        archive.writestr(
            "OEBPS/text/a.xhtml",
            "<html><body><p>Above the image.</p><img src='../img/x%20y.png' alt=''/>"
            "<p>Below the image.</p></body></html>",
        )
        archive.writestr("OEBPS/img/x y.png", image)
    return written.getvalue()


FORMATS = {"docx": word, "pptx": slides, "html": page, "md": notes, "epub": book}
