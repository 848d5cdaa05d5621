"""The words in which the model reads a statement: below its headings, rows with their header."""

from __future__ import annotations

import re

from portal.answering.quoting.rules.groups.weekdays import with_long_weekdays
from portal.answering.quoting.rules.kinds.patterns import (
    CURRENCY,
    CURRENCY_CODE,
    HAN_MONEY_NOUN,
    MEASURE_UNIT,
    MONEY_NOUN,
)
from portal.answering.quoting.statements import Statement
from portal.domain.answering import Source
from portal.text.characters.scripts import HAN

# The address of a link, after the text of the link; its words add nothing to that text.
_ADDRESS = re.compile(r" ?\(https?://[^\s()]*\)")
# The model does not recognise these as addresses unless the text calls them so.
_E_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_WEB_ADDRESS = re.compile(
    r"(?:https?://|(?<![\w.@/-])(?=www\.|(?:[\w-]{1,63}\.){1,8}[a-z]{2,10}/))([^\s,;，；。)）]+)",
    re.IGNORECASE | re.ASCII,
)
_SAYS_E_MAIL = re.compile(r"mail|邮箱|邮件", re.IGNORECASE)
_SAYS_WEB_ADDRESS = re.compile(r"address|website|\burl|\blink|网[址站页]|链接|地址", re.IGNORECASE)
_HAN = re.compile(f"[{HAN}]")
_COMMA = re.compile(r"[,，、;；]\s*")
_IN_BRACKETS = re.compile(r"[(（]([^)）]{1,12})[)）]")
_UNIT = re.compile(rf"%|{CURRENCY}|{CURRENCY_CODE}\b|{MEASURE_UNIT}", re.IGNORECASE)
_PER_UNIT = re.compile(
    rf"[(（]\s?(?:[$€£¥]|{CURRENCY}|{CURRENCY_CODE})\s?(?:/|每|\bper\b)[^()（）]{{1,16}}[)）]\s?\Z",
    re.IGNORECASE,
)
_SAYS_PRICE = re.compile(
    rf"\b{MONEY_NOUN}\b|{HAN_MONEY_NOUN}|[价费租薪资酬]|\brates?\b", re.IGNORECASE
)
# weight_kg, "Rate EUR"
_LAST_WORD = re.compile(rf"[\s_]({_UNIT.pattern})\Z", re.IGNORECASE)


def context_of(source: Source, statement: Statement) -> str:
    """Return the title of the document and the context of a statement, from the title down."""
    return " > ".join(dict.fromkeys(filter(None, [source.title, *statement.context.split("\n")])))


def spelled_out(statement: Statement, text: str) -> str:
    """Return a table row with the header of each cell, other statements as they are.

    "Peak (CNY/night)" is called a price, because the model does not take an amount per unit for one
    unless the text says so.
    """
    if not statement.cells:
        return text[statement.start : statement.end]
    if not statement.header:
        return " | ".join(statement.cells)
    pairs = zip(statement.header, statement.cells, strict=False)
    return "; ".join(f"{_with_price(name)}: {cell}" for name, cell in pairs if cell)


def _with_price(name: str) -> str:
    if not _PER_UNIT.search(name) or _SAYS_PRICE.search(name):
        return name
    return f"{name}价格" if _HAN.search(name) else f"{name} price"


def without_addresses(text: str) -> str:
    return _ADDRESS.sub("", text)


def as_read(text: str) -> str:
    """Return a statement as the model reads it: without addresses of links, with weekdays in full,
    and with other addresses called so."""
    text = with_long_weekdays(without_addresses(text))
    is_han = _HAN.search(text) is not None
    if not _SAYS_E_MAIL.search(text):
        text = _E_MAIL.sub("邮箱 \\g<0>" if is_han else "the e-mail address \\g<0>", text)
    if not _SAYS_WEB_ADDRESS.search(text):
        text = _WEB_ADDRESS.sub("网址 \\1" if is_han else "the web address \\1", text)
    return text


def with_units(statement: Statement) -> str:
    """Return each cell of a table row with its unit and header: "600 元 价格". If no header names
    a unit, the first cell or the heading may: "住宿标准（每晚上限，元）". Empty for other
    statements."""
    return "; ".join(
        f"{cell} {unit} {name.replace('_', ' ')}"
        for name, unit, cell in zip(
            statement.header, _units(statement), statement.cells, strict=False
        )
    )


def _units(row: Statement) -> list[str]:
    """Return the unit of each cell of a row: its header's, else the row's or the heading's."""
    units = [_unit_in(name) for name in row.header]
    if any(units):
        return units
    if of_row := _unit_in(row.cells[0]) if row.cells else "":
        return ["", *[of_row] * (len(units) - 1)]
    heading = row.context.rpartition("\n")[2]
    pieces = [one for found in _IN_BRACKETS.findall(heading) for one in _COMMA.split(found)]
    pieces.sort(key=lambda piece: _UNIT.match(piece) is None)
    return ["; ".join(pieces)] * len(units)


def _unit_in(header: str) -> str:
    """Return what a table header says in brackets, or the unit that it ends with."""
    return " ".join(_IN_BRACKETS.findall(header) or _LAST_WORD.findall(header))
