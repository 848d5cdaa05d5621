"""Table rows with cells that have nothing to do with a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.judging.matching import shares_of_words
from portal.answering.quoting.phrasing import with_units
from portal.answering.quoting.questions import has_name, is_han
from portal.answering.quoting.rules.groups.months import columns_of, name_of
from portal.answering.quoting.rules.kinds import Wanted, can_hold
from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold

MIN_WIDE = 7  # Cells.
_NAMING_CELLS = 2  # The first cells say what the row is about.
# Kinds of answer that can be recognised in a cell.
_IN_FIGURES = (
    Wanted.MONEY, Wanted.DURATION, Wanted.TIME, Wanted.DAY, Wanted.UNTIL, Wanted.CLOCK,
    Wanted.WEIGHT, Wanted.TEMPERATURE, Wanted.MEASURE, Wanted.PERCENT, Wanted.CONTACT,
)  # fmt: skip
_MAX_ANSWERING = 2


def can_be_told(row: Statement, asked: Asked) -> bool:
    """Return whether a row is wide, and its cells show whether they have the wanted kind of
    answer."""
    is_wide = len(row.cells) >= MIN_WIDE and len(row.header) == len(row.cells)
    return is_wide and asked.wanted in _IN_FIGURES


def in_months(row: Statement, asked: Asked) -> Statement:
    """Return a row without the columns of other months than those asked about, which the header of
    the remaining one then names: "september: Peak Jul–Oct"."""
    columns = columns_of(asked.months, row.header)
    if not columns or len(row.header) != len(row.cells):
        return row
    kept = [place for place in range(len(row.cells)) if columns.get(place, True)]
    is_chinese = any(map(is_han, asked.folded))

    def header(place: int) -> str:
        name = row.header[place]
        shared = sorted(columns.get(place, ()))
        said = " ".join(name_of(one, is_han=is_chinese) for one in shared)
        return f"{said}: {name}" if said and said not in fold(name).text else name

    return replace(
        row, cells=tuple(row.cells[one] for one in kept), header=tuple(map(header, kept))
    )


def narrowed(row: Statement, asked: Asked, *, is_foreign: bool) -> Statement:
    """Return a row with its first cells, those that share words with the question, and those that
    have the wanted kind of answer."""
    said = [f"{name} {cell}" for name, cell in zip(row.header, row.cells, strict=True)]
    means = asked.senses if is_foreign else None
    shared = np.count_nonzero(shares_of_words(asked.words, said, means), axis=1)
    of_months = columns_of(asked.months, row.header)
    holding = [*of_months] or _holding(row, asked, np.flatnonzero(shared == 0).tolist())
    kept = sorted({*range(_NAMING_CELLS), *np.flatnonzero(shared).tolist(), *holding})
    cells, header = (tuple(each[place] for place in kept) for each in (row.cells, row.header))
    return replace(row, cells=cells, header=header)


def with_answer_marked(row: Statement, asked: Asked) -> Statement:
    """Return a row with the cells marked that have the wanted kind of answer, if they are few: of
    two durations, the one whose header the question names."""
    if not can_be_told(row, asked):
        return row
    columns = columns_of(asked.months, row.header)
    of_months = [place for place, shared in columns.items() if shared]
    holding = of_months or _holding(row, asked, range(_NAMING_CELLS, len(row.cells)))
    if len(holding) > _MAX_ANSWERING:
        return row
    named = [place for place in holding if has_name(asked.folded, fold(row.header[place]).text)]
    return replace(row, marked=frozenset(named or holding))


def _holding(row: Statement, asked: Asked, places: Sequence[int]) -> list[int]:
    def holds(place: int) -> bool:
        cells, header = row.cells[place : place + 1], row.header[place : place + 1]
        cell = with_units(replace(row, cells=cells, header=header))
        return can_hold(asked.wanted, cell, asked.question)

    return [place for place in places if place >= _NAMING_CELLS and holds(place)]
