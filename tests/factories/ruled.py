"""Makes PDFs with ruled tables for tests."""

from __future__ import annotations

from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

ROWS = [
    ["Grade", "Nights", "Limit"],
    ["Staff", "any", "500"],
    ["Manager", "any", "800"],
    ["", "abroad", "1200"],
]


def ruled_pdf(path: Path) -> Path:
    """A page of text with a table between, one of whose cells spans two rows."""
    text = getSampleStyleSheet()["Normal"]
    table = Table(
        ROWS,
        style=[("GRID", (0, 0), (-1, -1), 0.5, "black"), ("SPAN", (0, 2), (0, 3))],
        colWidths=[120, 120, 120],
    )
    SimpleDocTemplate(str(path), pagesize=A4).build(
        [
            Paragraph(
                "Lodging is paid by grade. Keep the receipts until the end of the year.", text
            ),
            Paragraph("Table 2: What a night may cost", text),
            table,
            Paragraph("Ask the desk where a limit is too low for the place.", text),
        ]
    )
    return path


def framed_pdf(path: Path) -> Path:
    """A page with a frame around its text and a line below its header: no table."""
    canvas = Canvas(str(path), pagesize=A4)
    canvas.rect(60, 60, 470, 720)
    canvas.line(60, 760, 530, 760)
    canvas.drawString(72, 766, "Manual of the desk")
    for number in range(6):
        canvas.drawString(72, 740 - 16 * number, f"Sentence {number} of the text in the frame.")
    canvas.save()
    return path


def pdf_of_many_rules(path: Path) -> Path:
    """A drawing of as many rules as no table has, with a word."""
    canvas = Canvas(str(path), pagesize=A4)
    for number in range(1_200):
        canvas.line(10, 10 + number * 0.6, 590, 10 + number * 0.6)
        canvas.line(10 + number * 0.4, 10, 10 + number * 0.4, 800)
    canvas.drawString(72, 400, "word")
    canvas.save()
    return path
