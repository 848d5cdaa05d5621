"""The words in which the model reads a statement: below its headings, rows with their header."""

from __future__ import annotations

import re

from portal.answering.quoting.rules.weekdays import with_long_weekdays
from portal.answering.quoting.statements import Statement
from portal.domain.answering import Source

# The address of a link beside its text, whose words say nothing that the text does not.
_ADDRESS = re.compile(r" ?\(https?://[^\s()]*\)")
_UNIT = re.compile(r"[(（]([^)）]{1,12})[)）]")


def context_of(source: Source, statement: Statement) -> str:
    """Return what a statement is read under, from the title down."""
    return " > ".join(dict.fromkeys(filter(None, [source.title, *statement.context.split("\n")])))


def spelled_out(statement: Statement, text: str) -> str:
    """Return a table row with the header of each cell, other statements as they are."""
    if not statement.cells:
        return text[statement.start : statement.end]
    if not statement.header:
        return " | ".join(statement.cells)
    pairs = zip(statement.header, statement.cells, strict=False)
    return "; ".join(f"{name}: {cell}" for name, cell in pairs if cell)


def without_addresses(text: str) -> str:
    return _ADDRESS.sub("", text)


def as_read(text: str) -> str:
    """Return a statement without addresses of links, and with its weekdays in full."""
    return with_long_weekdays(without_addresses(text))


def with_units(statement: Statement) -> str:
    """Return each cell of a table row before its header, which may name the unit: "600 元 价格".
    Empty for other statements."""
    return "; ".join(
        f"{cell} {' '.join(_UNIT.findall(name))} {name}"
        for name, cell in zip(statement.header, statement.cells, strict=False)
    )
