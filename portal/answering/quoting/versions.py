"""Versions of a document, whose titles differ only in their figures: policies, minutes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.judging.judged import Judged

_FIGURES = re.compile(r"[\d\W_]+")
_YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")
_FIGURE = re.compile(r"\d+")


def newest_first(judged: Sequence[Judged]) -> list[Judged]:
    """Return the versions of one document newest first, because an older one may be out of date;
    other sources in their order."""
    titles = [one.source.title for one in judged]
    names = {_name(one) for one in titles}
    if len(names) != 1 or not all(map(_YEAR.search, titles)):
        return list(judged)
    return sorted(judged, key=lambda one: _date(one.source.title), reverse=True)


def alike_titles(quotations: Iterable[Quotation]) -> set[str]:
    """Return the titles of quoted documents that differ only in their figures. If these were not
    shown, two versions would look like one document that contradicts itself."""
    titles = {one.source.title for one in quotations}
    names = Counter(map(_name, titles))
    return {one for one in titles if names[_name(one)] > 1}


def titles_of_several(quotations: Iterable[Quotation]) -> set[str]:
    """Return the titles of the documents that answer the same question, if they are several: their
    answers may differ."""
    titles = {one.source.title for one in quotations}
    return titles if len(titles) > 1 else set()


def below_title(quotation: Quotation) -> Quotation:
    """Return a quotation with the title of its document before its heading."""
    titles = filter(None, (quotation.source.title, quotation.title))
    return replace(quotation, title=" – ".join(titles))


def _name(title: str) -> str:
    return _FIGURES.sub(" ", title).strip()


def _date(title: str) -> tuple[int, list[int]]:
    """Return the last year of a title and its other figures; those before the year from right to
    left, because the day precedes the month there."""
    *_, year = _YEAR.finditer(title)
    before, after = title[: year.start()], title[year.end() :]
    figures = [*reversed(_FIGURE.findall(before)), *_FIGURE.findall(after)]
    return int(year.group()), [int(one) for one in figures]
