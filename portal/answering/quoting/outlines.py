"""Documents without a question: the first sentence of each section, or whole sections."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.remarks import is_quoted
from portal.answering.quoting.statements import Statement, statements
from portal.domain.answering import Source

_MAX_SECTIONS = 20
_MAX_STATEMENTS = 60
_MAX_CHARACTERS = 400


def outline(sources: Sequence[Source]) -> list[Quotation]:
    """Return the first statement below each heading, in order; for a table or list, its first row
    or item."""
    return _sections(sources)[:_MAX_SECTIONS]


def sections_around(sources: Sequence[Source], answer: str) -> list[Quotation]:
    """Return the sections that an answer quotes from, unless it quotes all of them. Adjacent
    statements in the same list or table are one quotation."""
    found: list[Quotation] = []
    has_more = False
    for source in sources:
        shown = _quoted_sections(source, statements(source), answer)
        has_more |= any(not is_quoted(answer, source, one) for one in shown)
        above = ""
        for (heading, _), run in groupby(shown, lambda one: (one.heading, one.group)):
            title = heading or source.heading or source.title
            found.append(Quotation(source, tuple(run), title=title if title != above else ""))
            above = title
    return found[:_MAX_STATEMENTS] if has_more else []


def _quoted_sections(source: Source, whole: Sequence[Statement], answer: str) -> list[Statement]:
    """Return the statements below the headings that an answer quotes from."""
    headings = {one.heading for one in whole if is_quoted(answer, source, one)}
    return [one for one in whole if one.heading in headings]


def outlined_count(sources: Sequence[Source]) -> int:
    """Return how many sources, from the first, the outline covers."""
    sections = _sections(sources)
    if len(sections) <= _MAX_SECTIONS:
        return len(sources)
    left_out = sections[_MAX_SECTIONS].source.chunk_id
    return max(1, [one.chunk_id for one in sources].index(left_out))


def _sections(sources: Sequence[Source]) -> list[Quotation]:
    found: dict[str, Quotation] = {}
    for source in sources:
        below = statements(source)
        for place, statement in enumerate(below):
            heading = _heading(statement, source)
            if heading not in found:
                found[heading] = Quotation(source, _sentence(source, below[place:]), title=heading)
    return list(found.values())


def _sentence(source: Source, below: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return the first statement with the clauses that continue it after a semicolon."""
    end = 1
    while (
        end < len(below)
        and source.text[below[end - 1].end - 1] in "；;"
        and below[end].context == below[end - 1].context
        and below[end].end - below[0].start <= _MAX_CHARACTERS
    ):
        end += 1
    return tuple(below[:end])


def _heading(statement: Statement, source: Source) -> str:
    return statement.heading or source.heading or source.title
