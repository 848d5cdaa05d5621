"""The page and headings at a position in a text."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from portal.domain.documents import Heading, Page

SEPARATOR = " › "
_MAX_PATH_LENGTH = 300
_START = attrgetter("start")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text.

    `page_label` is the label printed on the page, if it is not its number; `heading` the titles
    above, None if unknown.
    """

    page: int | None = None
    page_label: str | None = None
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Outline:
    """The pages that a chunk touches and the headings of its text up to its end, both in order.

    Either is empty if it adds nothing to the place where the chunk begins.
    """

    pages: tuple[Page, ...] = ()
    headings: tuple[Heading, ...] = ()

    def place(self, position: int, beginning: Place) -> Place:
        """Return the place of character `position` of the text.

        `beginning` is the place where the chunk begins; it is used where this outline is empty.
        """
        return self._place(*self._spot(position), beginning)

    def best_place(self, spans: Iterable[tuple[int, int]], start: int, beginning: Place) -> Place:
        """Return the place with most characters of `spans`, the first on a tie.

        Without spans, return the place of `start`.
        """
        if not (self.pages or self.headings):
            return beginning
        marked: Counter[tuple[int, int]] = Counter()
        for first, end in spans:
            marked[self._spot(first)] += end - first
        spot = max(marked, key=marked.__getitem__) if marked else self._spot(start)
        return self._place(*spot, beginning)

    def last_page(self, end: int) -> Page | None:
        """Return the page of the last character before `end`."""
        place = self._spot(end - 1)[0]
        return self.pages[place] if place >= 0 else None

    def _spot(self, position: int) -> tuple[int, int]:
        """Return the indexes of the page and of the heading above, -1 if there is none."""
        page = bisect_right(self.pages, position, key=_START) - 1
        section = bisect_right(self.headings, position, key=_START) - 1
        return max(page, 0) if self.pages else -1, section

    def _place(self, page: int, section: int, beginning: Place) -> Place:
        heading = beginning.heading
        if self.headings:
            heading = heading_paths(self.headings[: section + 1])[-1] if section >= 0 else None
        if page < 0:
            return Place(beginning.page, beginning.page_label, heading)
        return Place(self.pages[page].number, self.pages[page].label, heading)


def heading_paths(headings: Sequence[Heading]) -> list[str]:
    """Return the path of titles to each heading: "Guide › Install › Linux"."""
    paths = []
    above: list[Heading] = []
    for heading in headings:
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        path = SEPARATOR.join(" ".join(heading_above.title.split()) for heading_above in above)
        paths.append(path[:_MAX_PATH_LENGTH])
    return paths
