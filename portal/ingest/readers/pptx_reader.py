"""Reader of a presentation (PPTX) that yields each slide as a simple web page.

    {"slide": 3, "title": "Results", "html": "<p>…</p><table>…</table>", "notes": "…"}
    {"has_hidden": false}

python-pptx knows which text is a title and where each shape is; the order is top to bottom, then
left to right. The first short line is the title of a slide without one. Hidden slides are left
out; pictures, programs and links are not opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape, unescape
from typing import Any, BinaryIO

import pptx
from pptx.chart.chart import Chart
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.oxml import parse_xml
from pptx.oxml.ns import qn

from portal.ingest.readers import archives
from portal.ingest.readers.image_keys import address_of

_MAX_DEPTH = 20  # Groups in groups.
_SAME_LINE = 300_000  # A third of an inch, in the units of shapes.
_FIRST_LINE = re.compile(r"((?:<p><img [^>]*></p>)*)<p>([^<]{1,80})</p>")
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_NO_CONTENT = {
    PP_PLACEHOLDER.DATE,
    PP_PLACEHOLDER.FOOTER,
    PP_PLACEHOLDER.HEADER,
    PP_PLACEHOLDER.SLIDE_NUMBER,
}


def read(file: BinaryIO, *, characters: int) -> Iterator[dict[str, Any]]:
    """Yield the records, or an error: characters, or one of `archives.read_checked`."""
    return archives.read_checked(file, lambda: _slides(pptx.Presentation(file), characters))


def _slides(presentation: Any, characters: int) -> Iterator[dict[str, Any]]:
    has_hidden = False
    for number, slide in enumerate(presentation.slides, 1):
        if slide._element.get("show") in {"0", "false"}:  # noqa: SLF001 - it has no other name
            has_hidden = True
            continue
        title = slide.shapes.title
        html = "".join(_shapes(slide.shapes, title))
        notes = ""
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text
        characters -= len(html) // 4 + len(notes)
        if characters < 0:
            yield {"error": "characters"}
            return
        name = title.text_frame.text if title is not None and title.has_text_frame else ""
        if not name.strip() and (line := _FIRST_LINE.match(html)):
            # Else the slide would be below the title of the one before.
            name, html = unescape(line[2]), line[1] + html[line.end() :]
        yield {"slide": number, "title": name, "html": html, "notes": notes}
    yield {"has_hidden": has_hidden}


def _shapes(shapes: Iterable[Any], title: Any, depth: int = 0) -> Iterator[str]:
    for shape in sorted(shapes, key=_place):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.is_placeholder and shape.placeholder_format.type in _NO_CONTENT:
            continue
        if hasattr(shape, "shapes") and depth < _MAX_DEPTH:
            yield from _shapes(shape.shapes, title, depth + 1)
        elif getattr(shape, "has_table", False) and shape.has_table:
            yield _table(shape.table)
        elif getattr(shape, "has_chart", False) and shape.has_chart:
            yield _chart(shape)
        elif (reference := next(shape._element.iter(f"{_DIAGRAM}relIds"), None)) is not None:  # noqa: SLF001
            yield _diagram(shape.part, reference.get(qn("r:dm")))
        elif (picture := _picture(shape)) is not None:
            yield picture
        elif shape.has_text_frame:
            yield _paragraphs(shape.text_frame.paragraphs, is_body=shape.is_placeholder)


def _picture(shape: Any) -> str | None:
    """Return a picture by its key, without its bytes."""
    name = getattr(shape._element, "blip_rId", None)  # noqa: SLF001 - of pictures alone
    try:
        part = str(shape.part.related_part(name).partname).lstrip("/") if name else None
    except KeyError:
        return None
    return f'<p><img src="{address_of(part)}"></p>' if part else None


def _place(shape: Any) -> tuple[int, int]:
    return (shape.top or 0) // _SAME_LINE, shape.left or 0


def _paragraphs(paragraphs: Iterable[Any], *, is_body: bool) -> str:
    """Return the lines of a shape; several lines of a placeholder become items."""
    lines = [(one.level, escape(one.text).replace("\v", "<br>")) for one in paragraphs]
    lines = [(level, text) for level, text in lines if text.strip()]
    if not is_body or len(lines) < 2:  # noqa: PLR2004
        return "".join(f"<p>{text}</p>" for _, text in lines)
    parts, depth = [], -1
    highest = min(level for level, _ in lines)  # Some slides begin below the first level.
    for level, text in ((level - highest, text) for level, text in lines):
        parts += ["<ul>"] * (level - depth) if level > depth else ["</ul>"] * (depth - level)
        parts.append(f"<li>{text}</li>")
        depth = level
    return "".join([*parts, *["</ul>"] * (depth + 1)])


def _table(table: Any) -> str:
    rows = []
    for number, row in enumerate(table.rows):
        tag = "th" if number == 0 and table.first_row else "td"
        cells = []
        for cell in row.cells:
            if not cell.is_spanned:
                span = f' rowspan="{cell.span_height}" colspan="{cell.span_width}"'
                cells.append(f"<{tag}{span if cell.is_merge_origin else ''}>{escape(cell.text)}")
        rows.append("<tr>" + "".join(cells))
    return f"<table>{''.join(rows)}</table>"


def _chart(shape: Any) -> str:
    """Return the values of a chart by category and series; nothing if it cannot be read."""
    try:
        chart: Chart = shape.chart
        title = chart.chart_title.text_frame.text if chart.has_title else ""
        series = [(line.name, list(line.values)) for plot in chart.plots for line in plot.series]
        rows = [["", *(name for name, _ in series)]]
        for place, category in enumerate(chart.plots[0].categories):
            values = [values[place] if place < len(values) else None for _, values in series]
            rows.append([str(category), *("" if v is None else f"{v:.10g}" for v in values)])
    except Exception:  # noqa: BLE001 - python-pptx knows the common kinds alone
        return ""
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows)
    return f"<table><caption>{escape(title)}</caption>{cells}</table>"


def _diagram(slide: Any, name: str | None) -> str:
    """Return the words of a diagram as items; nothing if its part is missing."""
    try:
        model = parse_xml(slide.related_part(name).blob)
    except (KeyError, ValueError):
        return ""
    points = [
        " ".join(run.text or "" for run in point.iter(qn("a:t")))
        for point in model.iter(f"{_DIAGRAM}t")
    ]
    items = "".join(f"<li>{escape(point)}" for point in points if point.strip())
    return f"<ul>{items}</ul>"
