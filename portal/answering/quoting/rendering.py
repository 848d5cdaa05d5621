"""Quotations as Markdown that shows a document's characters and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from portal.answering.marker_syntax import without_markers_of_its_own
from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.statements import Statement
from portal.text.layout.tasks import with_task_box

_MARKUP = re.compile(r"[\\`*_\[\]<>|~&$]")
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
# The sign that begins a list item, in Markdown as in most texts.
_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s+(?=\S)")
_INDENT = "    "  # Nests below a sign of any length, "-" or "12.", and makes code of other lines.
_OPENS_BLOCK = re.compile(r"\A(?:(?P<sign>[-+#=:])|(?P<number>\d{1,9})(?P<point>[.)])(?=\s|\Z))")


def render(quotation: Quotation) -> str:
    """Return a block quotation without its marker; table rows as a table with their header."""
    statements = quotation.statements
    title = f"> **{as_markdown(quotation.title)}**\n" if quotation.title else ""
    if statements[0].cells:
        return (title and f"{title}>\n") + _render_table(quotation)
    text = quotation.source.text
    if statements[0].group is not None:
        above = title
        if quotation.starts_at is not None:
            introduction = text[quotation.starts_at : statements[0].start]
            above += f"> {as_markdown(_EMPTY_LINE.split(introduction)[0])}\n"
        return above + _render_list(text, statements, above)
    if statements[0].is_code:
        code = without_markers_of_its_own(text[statements[0].start : statements[-1].end])
        return (title and f"{title}>\n") + "\n".join(
            f"> {_INDENT}{one}" for one in code.split("\n")
        )
    pieces = [text[one.start : one.end] for one in statements]
    between = [text[one.end : two.start] for one, two in pairwise(statements)]
    gaps = ["\n>\n> " if _EMPTY_LINE.search(one) else " " * bool(one) for one in between]
    shown = "".join(gap + as_markdown(one) for gap, one in zip(["", *gaps], pieces, strict=True))
    return f"{title}> {shown}"


def render_marker(quotation: Quotation, number: int) -> str:
    """Return the marker that ends a block quotation; below a table or code, in its own
    paragraph."""
    first = quotation.statements[0]
    return f"\n>\n> [{number}]" if first.cells or first.is_code else f" [{number}]"


def _render_list(text: str, statements: Sequence[Statement], above: str) -> str:
    """Return the items as a nested list if each begins with its sign, else as one line each."""
    items = [text[one.start : one.end] for one in statements]
    signs = [sign for item in items if (sign := _ITEM.match(item))]
    levels = _levels([one.depth for one in statements])
    if len(signs) < len(items) or not _keeps_numbers([sign[1] for sign in signs], levels):
        return "\n".join(f"> {as_markdown(item)}" for item in items)
    lines = [
        f"> {_INDENT * level}{sign[1]} {as_markdown(sign.string[sign.end() :])}"
        for sign, level in zip(signs, levels, strict=True)
    ]
    # Without an empty line, Markdown would join the first item to the paragraph above.
    return (">\n" if above else "") + "\n".join(lines)


def _levels(depths: Sequence[int]) -> list[int]:
    """Return the level of each item in a list of its own, at most one below the item before."""
    levels: list[int] = []
    outermost = min(depths)
    for depth in depths:
        most = levels[-1] + 1 if levels else 0
        levels.append(min(depth - outermost, most))
    return levels


def _keeps_numbers(signs: Sequence[str], levels: Sequence[int]) -> bool:
    """Return whether Markdown, which counts on from the first number of a list, shows the signs
    unchanged."""
    before: dict[int, str] = {}  # The last sign of each open list, by its level.
    for sign, level in zip(signs, levels, strict=True):
        last = before.get(level, "")
        if last[:-1] and last[-1] == sign[-1] and sign != f"{int(last[:-1]) + 1}{last[-1]}":
            return False
        before = {one: other for one, other in before.items() if one < level} | {level: sign}
    return True


def _render_table(quotation: Quotation) -> str:
    header = quotation.statements[0].header
    rows = [(one.cells, one.marked) for one in quotation.statements]
    columns = max(len(header), *(len(cells) for cells, _ in rows))
    lines = [
        _row([_cell(cell, is_marked=place in marked) for place, cell in enumerate(cells)], columns)
        for cells, marked in ((header, frozenset()), *rows)
    ]
    lines.insert(1, _row(["---"] * columns, columns))
    return "\n".join(lines)


def _cell(text: str, *, is_marked: bool) -> str:
    shown = as_markdown(text)
    return f"**{shown}**" if is_marked and shown else shown


def _row(cells: Sequence[str], columns: int) -> str:
    return "> | " + " | ".join((*cells, *("",) * (columns - len(cells)))) + " |"


def as_markdown(text: str) -> str:
    """Return a document's text as one line of Markdown without markup, markers or links: [3] is
    shown as (3)."""
    line = " ".join(without_markers_of_its_own(with_task_box(text)).split())
    line = _MARKUP.sub(lambda sign: f"\\{sign.group()}", line)
    return _OPENS_BLOCK.sub(
        lambda m: f"\\{m['sign']}" if m["sign"] else f"{m['number']}\\{m['point']}", line
    )
