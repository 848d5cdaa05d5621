"""Makes PDFs with tables for tests."""

from __future__ import annotations

from pathlib import Path

import pikepdf
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

ROWS = [
    ["Grade", "Nights", "Limit"],
    ["Staff", "any", "500"],
    ["Manager", "any", "800"],
    ["", "abroad", "1200"],
]


def ruled_pdf(path: Path) -> Path:
    """Write a page with a table between two texts; one of its cells spans two rows."""
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


def stepped_pdf(path: Path) -> Path:
    """Write a ruled table whose first row is one cell that extends down in the second column."""
    canvas = Canvas(str(path), pagesize=A4)
    for x, top in ((100, 700), (200, 680), (300, 700)):
        canvas.line(x, 640, x, top)
    for y, right in ((700, 300), (680, 200), (660, 300), (640, 300)):
        canvas.line(100, y, right, y)
    for y, cells in ((685, ["Rates"]), (665, ["Single", "80"]), (645, ["Double", "120"])):
        for x, text in zip((105, 205), cells, strict=False):
            canvas.drawString(x, y, text)
    canvas.save()
    return path


def framed_pdf(path: Path) -> Path:
    """Write a page without a table: a frame around its text and a line below its header."""
    canvas = Canvas(str(path), pagesize=A4)
    canvas.rect(60, 60, 470, 720)
    canvas.line(60, 760, 530, 760)
    canvas.drawString(72, 766, "Manual of the desk")
    for number in range(6):
        canvas.drawString(72, 740 - 16 * number, f"Sentence {number} of the text in the frame.")
    canvas.save()
    return path


def pdf_of_many_rules(path: Path) -> Path:
    """Write a word and a drawing with more rules than any table has."""
    canvas = Canvas(str(path), pagesize=A4)
    for number in range(1_200):
        canvas.line(10, 10 + number * 0.6, 590, 10 + number * 0.6)
        canvas.line(10 + number * 0.4, 10, 10 + number * 0.4, 800)
    canvas.drawString(72, 400, "word")
    canvas.save()
    return path


def tagged_pdf(path: Path) -> Path:
    """Write a table without rules that only PDF tags mark; each row has an item and a price, some
    of them on two lines, or a dash."""
    pdf, page = _page_to_tag()
    table = pdf.make_indirect(
        pikepdf.Dictionary(Type=pikepdf.Name.StructElem, S=pikepdf.Name.Table)
    )
    drawn = ["BT /F1 11 Tf 40 350 Td (What a night costs is listed below.) Tj ET"]
    owners, table_rows = [], []
    for number, cells in enumerate(
        [
            ("Item", "Price \\(euros\\)"),
            ("Single room", "80 euros|with breakfast"),
            ("Suite", "240 euros"),
            ("Key AQ6-|20417", "-"),
        ]
    ):
        row = pdf.make_indirect(pikepdf.Dictionary(S=pikepdf.Name.TR, P=table))
        row_cells = []
        for column, text in enumerate(cells):
            place, y = len(owners), 300 - 40 * number
            cell = pikepdf.Dictionary(S=pikepdf.Name.TD, P=row, K=place, Pg=page.obj)
            row_cells.append(pdf.make_indirect(cell))
            owners.append(row_cells[-1])
            lines = " 0 -13 Td ".join(f"({line}) Tj" for line in text.split("|"))
            x = 40 + 150 * column
            drawn.append(f"/TD <</MCID {place}>> BDC BT /F1 11 Tf {x} {y} Td {lines} ET EMC")
        row.K = pikepdf.Array(row_cells)
        table_rows.append(row)
    table.K = pikepdf.Array(table_rows)
    return _save_tagged(path, pdf, page, drawn, table, owners)


def tagged_list_pdf(path: Path) -> Path:
    """Write a list as browsers print it: bullets are drawn, only tags mark the items, and the
    header of the page is an artifact."""
    pdf, page = _page_to_tag()
    tagged = pdf.make_indirect(pikepdf.Dictionary(S=pikepdf.Name.L))
    drawn = ["/Artifact BMC BT /F1 8 Tf 40 385 Td (printed at noon) Tj ET EMC"]
    items = []
    for number, lines in enumerate(
        (
            "Order a laptop and a phone for the person",
            "Choose a colleague who helps in the|first week",
        )
    ):
        item = pdf.make_indirect(
            pikepdf.Dictionary(S=pikepdf.Name.LI, P=tagged, K=number, Pg=page.obj)
        )
        items.append(item)
        shown = " 0 -13 Td ".join(f"({line}) Tj" for line in lines.split("|"))
        drawn.append(
            f"30 {303 - 13 * number} 3 3 re f "
            f"/LI <</MCID {number}>> BDC BT /F1 11 Tf 40 {300 - 13 * number} Td {shown} ET EMC"
        )
    tagged.K = pikepdf.Array(items)
    return _save_tagged(path, pdf, page, drawn, tagged, items)


def _page_to_tag() -> tuple[pikepdf.Pdf, pikepdf.Page]:
    pdf = pikepdf.new()
    page = pdf.add_blank_page(page_size=(400, 400))
    # A bracket with its outline on the left, as full-width ones have.
    font = pikepdf.Dictionary(
        Type=pikepdf.Name.Font,
        Subtype=pikepdf.Name.Type1,
        BaseFont=pikepdf.Name.Helvetica,
        FirstChar=32,
        LastChar=126,
        Widths=[
            800 if code == ord(")") else round(pdfmetrics.stringWidth(chr(code), "Helvetica", 1000))
            for code in range(32, 127)
        ],
    )
    page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=pdf.make_indirect(font)))
    page.StructParents = 0
    return pdf, page


def _save_tagged(
    path: Path,
    pdf: pikepdf.Pdf,
    page: pikepdf.Page,
    drawn: list[str],
    tagged: pikepdf.Object,
    owners: list[pikepdf.Object],
) -> Path:
    """Save a page with its tags; `owners` are the elements of its marked content, in order."""
    root = pikepdf.Dictionary(
        Type=pikepdf.Name.StructTreeRoot,
        K=tagged,
        ParentTree=pikepdf.Dictionary(Nums=pikepdf.Array([0, pikepdf.Array(owners)])),
    )
    pdf.Root.StructTreeRoot = pdf.make_indirect(root)
    pdf.Root.MarkInfo = pikepdf.Dictionary(Marked=True)
    page.Contents = pdf.make_stream("\n".join(drawn).encode())
    pdf.save(path)
    return path


def titled_pdf(path: Path, font: str) -> Path:
    """Write a ruled table of narrow cells below a title that spans it, in a font that is not
    embedded."""
    pdfmetrics.registerFont(UnicodeCIDFont(font))
    rows = [["价目", "", ""], ["型号", "起订\n量", "交货\n期"], ["泵", "10 支", "3 天"]]
    table = Table(rows, colWidths=60)
    table.setStyle(
        [
            ("GRID", (0, 0), (-1, -1), 1, "black"),
            ("SPAN", (0, 0), (-1, 0)),
            ("FONT", (0, 0), (-1, -1), font),
        ]
    )
    SimpleDocTemplate(str(path)).build([table])
    return path


def aligned_pdf(path: Path, pages: list[list[tuple[float, float, str]]]) -> Path:
    """Write pages of (x, y, text) without any rules, in the given order."""
    canvas = Canvas(str(path), pagesize=A4)
    for page in pages:
        for x, y, text in page:
            canvas.drawString(x, y, text)
        canvas.showPage()
    canvas.save()
    return path


def aligned_rows(
    rows: list[list[str]], places: list[float], *, top: float = 700
) -> list[tuple[float, float, str]]:
    """Return (x, y, text) of cells, row by row; `places` are the x of the columns."""
    return [
        (x, top - 16 * number, text)
        for number, row in enumerate(rows)
        for x, text in zip(places, row, strict=True)
        if text
    ]


def spelled_rows(
    rows: list[list[str]], places: list[float], *, top: float = 700
) -> list[tuple[float, float, str]]:
    """Return (x, y, letter) of the letters of cells, as programs that place each letter do."""
    return [
        (x + pdfmetrics.stringWidth(text[:place], "Helvetica", 12), y, letter)
        for x, y, text in aligned_rows(rows, places, top=top)
        for place, letter in enumerate(text)
        if letter != " "
    ]


def turned_pdf(path: Path) -> Path:
    """Write a ruled table with turned text in its first row and, turned otherwise, below it. The
    letters of one cell come before and after another cell."""
    canvas = Canvas(str(path), pagesize=A4)
    for x in (100, 140, 180):
        canvas.line(x, 560, x, 700)
    for y in (700, 600, 580, 560):
        canvas.line(100, y, 180, y)
    for x, text in ((115, "Employee"), (155, "Monday")):
        canvas.saveState()
        canvas.translate(x, 698)
        canvas.rotate(-90)
        canvas.drawString(0, 0, text)
        canvas.restoreState()
    end = 104 + canvas.stringWidth("M")
    for x, y, text in (
        (104, 585, "Anna"), (144, 585, "early"), (104, 565, "M"), (144, 561.3, "off"),
        (end, 565, "irko"),
    ):  # fmt: skip
        canvas.drawString(x, y, text)
    canvas.translate(150, 300)
    canvas.rotate(90)
    canvas.drawString(0, 0, "Sideways remark")
    canvas.save()
    return path
