"""Answers as Word documents: headings, paragraphs, lists, tables and quotations, without links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from markdown_it.token import Token

from portal.answering.markdown import answer_parser

# Characters that XML cannot contain.
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LISTS = {"bullet_list_open": "List Bullet", "ordered_list_open": "List Number"}
_LEVELS_OF_LISTS = 3
_LAST_HEADING = 9
# The font for Chinese; the template names none.
_EAST_ASIAN_FONT = "Microsoft YaHei"


class WordDocument:
    """A Word document to append to."""

    def __init__(self, title: str, *, language: str) -> None:
        # The import takes a tenth of a second, and only exports need it.
        import docx
        from docx.oxml.ns import qn

        self._document: Any = docx.Document()
        properties = self._document.core_properties
        properties.title, properties.author, properties.language = _clean(title), "", language
        for style in self._document.styles:
            fonts = style.element.find(f"{qn('w:rPr')}/{qn('w:rFonts')}")
            if fonts is not None:
                fonts.set(qn("w:eastAsia"), _EAST_ASIAN_FONT)
        self.add_heading(title, level=0)

    def add_heading(self, text: str, *, level: int) -> None:
        """Add a heading; level 0 is the title."""
        self._document.add_heading(_clean(text), level=level)

    def add_paragraph(self, text: str) -> None:
        self._document.add_paragraph(_clean(text))

    def add_quotation(self, text: str) -> None:
        """Add a text unchanged, styled as a quotation, with one paragraph per line."""
        for line in text.strip().splitlines():
            self._document.add_paragraph(_clean(line), style="Quote")

    def add_markdown(self, text: str) -> None:
        """Add the Markdown of an answer."""
        tokens = iter(answer_parser().parse(text))
        lists: list[str] = []
        is_quoted = False
        for token in tokens:
            if token.type in _LISTS:
                lists.append(_LISTS[token.type])
            elif token.type in {"bullet_list_close", "ordered_list_close"}:
                lists.pop()
            elif token.type in {"blockquote_open", "blockquote_close"}:
                is_quoted = token.type == "blockquote_open"
            elif token.type == "heading_open":
                level = min(int(token.tag[1:]) + 2, _LAST_HEADING)
                self.add_heading(_plain(next(tokens)), level=level)
            elif token.type == "inline":
                style = _list_style(lists) if lists else "Quote" if is_quoted else None
                _write(self._document.add_paragraph(style=style), token)
            elif token.type in {"fence", "code_block"}:
                self._document.add_paragraph(_clean(token.content.rstrip("\n")), style="No Spacing")
            elif token.type == "table_open":
                self._add_table(list(_rows(tokens)))

    def as_bytes(self) -> bytes:
        written = BytesIO()
        self._document.save(written)
        return written.getvalue()

    def _add_table(self, rows: Sequence[Sequence[Token]]) -> None:
        table = self._document.add_table(len(rows), max(map(len, rows)), style="Table Grid")
        for place, cells in enumerate(rows):
            for cell, content in zip(table.rows[place].cells, cells, strict=False):
                _write(cell.paragraphs[0], content, is_bold=place == 0)
        self._document.add_paragraph()


def _rows(tokens: Iterator[Token]) -> Iterator[list[Token]]:
    """Yield the cells of each row, up to the end of the table."""
    row: list[Token] = []
    for token in tokens:
        if token.type == "table_close":
            return
        if token.type == "inline":
            row.append(token)
        elif token.type == "tr_close":
            yield row
            row = []


def _write(paragraph: Any, token: Token, *, is_bold: bool = False) -> None:
    strong, emphasised = int(is_bold), 0
    for child in token.children or ():
        strong += (child.type == "strong_open") - (child.type == "strong_close")
        emphasised += (child.type == "em_open") - (child.type == "em_close")
        text = "\n" if child.type in {"softbreak", "hardbreak"} else child.content
        if text:
            run = paragraph.add_run(_clean(text))
            run.bold, run.italic = bool(strong) or None, bool(emphasised) or None


def _list_style(lists: Sequence[str]) -> str:
    level = min(len(lists), _LEVELS_OF_LISTS)
    return lists[-1] if level == 1 else f"{lists[-1]} {level}"


def _plain(token: Token) -> str:
    return "".join(child.content for child in token.children or ())


def _clean(text: str) -> str:
    return _NO_XML.sub("", text)
