"""Makes PDFs with the marks of real typesetting programs for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

PLAIN, BOLD = "Helvetica", "Helvetica-Bold"
FILLED = "This line of the page is as wide as the text and goes on in the next one."


def write_pages(
    path: Path, pages: Iterable[Iterable[tuple[float, float, str, str, float]]]
) -> Path:
    """Write pages of (x, y, text, font, size); the size scales text drawn in size one."""
    canvas = Canvas(str(path), pagesize=A4)
    for page in pages:
        for x, y, text, font, size in page:
            canvas.saveState()
            canvas.translate(x, y)
            canvas.scale(size, size)
            canvas.setFont(font, 1)
            canvas.drawString(0, 0, text)
            canvas.restoreState()
        canvas.showPage()
    canvas.save()
    return path


def report(path: Path) -> Path:
    """Write a page with a title in large type, and headings in bold type as large as the text."""
    lines = [
        ("Report on the lighthouses of", BOLD, 20),
        ("the northern coast", BOLD, 20),
        ("1 Lamps", BOLD, 11),
        *[(FILLED, PLAIN, 11)] * 3,
        ("1.1 Oil", BOLD, 11),
        *[(FILLED, PLAIN, 11)] * 3,
    ]
    page, y = [], 780.0
    for text, font, size in lines:
        page.append((72.0, y, text, font, float(size)))
        y -= 1.2 * size
    return write_pages(path, [page])


def pages_with_footers_first(path: Path, count: int) -> Path:
    """Write pages whose footer precedes the text in the file and alternates between two texts."""
    names = "abcdefghij"
    return write_pages(
        path,
        [
            [
                (72.0, 30.0, "Keepers' manual" if number % 2 else "Northern coast", PLAIN, 9.0),
                (72.0, 780.0, f"The text of page {names[number]} begins here.", PLAIN, 11.0),
                (72.0, 766.0, f"It goes on in the line below {names[number]}.", PLAIN, 11.0),
            ]
            for number in range(count)
        ],
    )


def raised_letters(path: Path) -> Path:
    """Write a sentence with a raised and a lowered number in smaller type."""
    parts = [
        ("The lamp of Mira", 0, 11), ("2", 4, 7), (" burns H", 0, 11), ("2", -3, 7),
        (" and oil, as was told.", 0, 11),
    ]  # fmt: skip
    canvas = Canvas(str(path), pagesize=A4)
    x = 72.0
    for text, rise, size in parts:
        canvas.setFont(PLAIN, size)
        canvas.drawString(x, 700 + rise, text)
        x += canvas.stringWidth(text, PLAIN, size)
    canvas.save()
    return path


def open_table(path: Path) -> Path:
    """Write a table without rules at its left and right, drawn after the text below it."""
    canvas = Canvas(str(path), pagesize=A4)
    canvas.setFont(PLAIN, 10)
    canvas.drawString(72, 780, "The oil is listed by the month in which it was bought.")
    canvas.drawString(72, 676, "Table 4: Oil by month")
    canvas.drawString(72, 600, "Ask the keeper for the receipts of the other months.")
    rows = [("Month", "Litres", "Price"), ("May", "40", "80 marks"), ("June", "25", "52 marks")]
    for number, row in enumerate(rows):
        y = 740 - 20 * number
        canvas.line(72, y + 14, 372, y + 14)
        for column, text in enumerate(row):
            canvas.drawString(76 + 100 * column, y, text)
    canvas.line(72, 694, 372, 694)
    for x in (172, 272):
        canvas.line(x, 694, x, 754)
    canvas.save()
    return path
