"""The view of a PDF as pages: in its document, beside a conversation, and page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode
from uuid import UUID

from flask import Flask, make_response, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal.domain.documents import DocumentDetail, DocumentStatus
from portal.domain.search import Span
from portal.errors import N_, NotFound, Overloaded, PagesUnavailable
from portal.http import context
from portal.http.messages import error_message
from portal.ingest.page_process import Picture
from portal.limits.endpoints import limited
from portal.services.documents import library
from portal.services.documents.reading import showing
from portal.services.documents.reading.showing import WIDTHS, ShownDocument, ShownPage
from portal.text.terms.highlight import occurrences
from portal.web.assets import YEAR_S
from portal.web.blueprint import PageBlueprint
from portal.web.documents.reading.focus import (
    MAX_FIND_CHARACTERS,
    Focus,
    find_focus,
    natural,
    positive,
)
from portal.web.layout import Answer, see_other, wants_fragment

ZOOMS = (50, 75, 100, 150, 200)
"""In percent of the column's width."""
PAGES_AT_ONCE = 3
# The largest ratio of a frame's sides: a page a hundred times as high as wide is not shown in full.
_MAX_RATIO = 5
_MARKS_PER_PAGE = 300
_OF_A_PAGE = frozenset({"page", "view", "match"})
_UNPLACED = N_("The quoted words could not be found on the page. This is the text of the document.")
_UNDRAWN = N_(
    "The file does not carry its fonts, and this server has none that draw its characters. This is "
    "the text of the document."
)

blueprint = PageBlueprint("page_views", __name__, "/documents")


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks on pages: ranges of the text, all of one `kind`: "quote", "found", or "place" for a
    position. `chosen` is the mark that the link leads to. `asked` are the values of an address
    with the same marks."""

    kind: str = "place"
    spans: tuple[Span, ...] = ()
    chosen: Span | None = None
    asked: tuple[tuple[str, str], ...] = ()

    def on(self, start: int, end: int) -> tuple[Span, ...]:
        """Return the ranges that overlap `start` to `end`."""
        return tuple(mark for mark in self.spans if mark.start < end and start < mark.end)


@dataclass(frozen=True, slots=True)
class PagesView:
    """Values of the templates that show a document as pages. `address` builds the address of the
    same view with other values."""

    shown: ShownDocument
    pages: tuple[ShownPage, ...]
    marks: Marks
    number: int
    zoom: int
    is_unplaced: bool
    address: Callable[..., str]

    @property
    def asked(self) -> str:
        return urlencode(self.marks.asked)

    @property
    def is_sought(self) -> bool:
        """Return whether the address leads to a page or mark, not only to the document."""
        return self.number > 1 or self.marks.chosen is not None

    @property
    def sizes(self) -> str:
        """Return the sizes of all pages: "595x842*12 842x595"."""
        runs = [(size, len(list(same))) for size, same in groupby(map(frame, self.shown.sizes))]
        return " ".join(f"{wide}x{high}*{count}" for (wide, high), count in runs)

    @property
    def kept(self) -> dict[str, str]:
        """Return the values of the address that stay when the user goes to another page."""
        kept = {name: value for name, value in request.args.items() if name not in _OF_A_PAGE}
        return kept | {"view": "pages"}

    @property
    def smaller(self) -> int | None:
        return next((zoom for zoom in reversed(ZOOMS) if zoom < self.zoom), None)

    @property
    def larger(self) -> int | None:
        return next((zoom for zoom in ZOOMS if zoom > self.zoom), None)


@blueprint.get("/<uuid:document_id>/pages/<int:number>")
@limited("pages")
def page(document_id: UUID, number: int) -> Answer:
    """Show one page; scripts request it when the user scrolls near it."""
    services, user = context.caller()
    if not wants_fragment():
        library.get_summary(services, user, document_id)
        return see_other(
            url_for("reading.show", document_id=document_id, view="pages", page=number)
        )
    shown = showing.open_pages(services, user, document_id)
    if not 1 <= number <= shown.count:
        raise NotFound
    marks = _find_asked_marks(document_id, shown, number)
    values = {"document_id": document_id, "shown": shown, "marks": marks}
    values |= {"page": _show(document_id, shown, number, marks), "zoom": _zoom()}
    return render_template("fragments/page_views/_page.html", **values)


@blueprint.get("/<uuid:document_id>/pages/<int:number>/picture")
@limited("pages")
def picture(document_id: UUID, number: int) -> Response:
    """Send one page as a picture. 404 for users who may not see the document."""
    width = positive(request.args.get("w"), otherwise=WIDTHS[0])
    return _send_picture(*showing.page_picture(*context.caller(), document_id, number, width))


@blueprint.get("/<uuid:document_id>/images/<key>")
@limited("pages")
def image(document_id: UUID, key: str) -> Response:
    """Send an image from a document. 404 for users who may not see the document."""
    return _send_picture(*showing.document_image(*context.caller(), document_id, key))


def _send_picture(drawn: Picture, version: str) -> Response:
    response = make_response(drawn.data)
    response.headers["Content-Type"] = drawn.media_type
    # Cached for one session only: the next user of the browser must ask the server.
    response.vary.add("Cookie")
    response.headers["Cache-Control"] = (
        f"private, max-age={YEAR_S}, immutable" if request.args.get("v") == version else "no-cache"
    )
    return response


def wants_pages(detail: DocumentDetail, focus: Focus) -> bool:
    """Return whether to show a document as pages: if it has them and the address does not ask for
    text. Targets that are not in the current file are shown as text."""
    if not showing.has_pages(detail.summary.media_type):
        return False
    if detail.summary.status is not DocumentStatus.READY or focus.quoted is not None:
        return False
    if focus.chunk is not None and focus.chunk.chunk.char_start is None:
        return False
    wanted = request.args.get("view")
    return wanted == "pages" or (wanted != "text" and "part" not in request.args)


def pages_view(
    detail: DocumentDetail, focus: Focus, address: Callable[..., str], *, count: int = PAGES_AT_ONCE
) -> tuple[PagesView | None, str | None]:
    """Return the view of `count` pages, starting at the focus; or None and why text is shown
    instead."""
    services, user = context.caller()
    document_id = detail.summary.id
    try:
        shown = showing.open_pages(services, user, document_id)
        marks = _focus_marks(focus)
        target = shown.page_at(marks.chosen.start) if marks.chosen else 1
        number = min(positive(request.args.get("page"), otherwise=target), shown.count)
        pages = tuple(
            _show(document_id, shown, one, marks)
            for one in range(number, min(number + count, shown.count + 1))
        )
    except (PagesUnavailable, Overloaded) as error:
        return None, error_message(error)
    is_unplaced = marks.kind == "quote" and number == target and not _is_placed(pages, marks)
    if request.args.get("view") != "pages":
        if not all(one.is_readable for one in pages):
            return None, gettext(_UNDRAWN)
        if is_unplaced:
            return None, gettext(_UNPLACED)
    return PagesView(shown, pages, marks, number, _zoom(), is_unplaced, address), None


def frame(size: tuple[float, float]) -> tuple[int, int]:
    """Return the width and height of a page's frame, in points."""
    width, height = (max(1.0, side) for side in size)
    return round(max(width, height / _MAX_RATIO)), round(max(height, width / _MAX_RATIO))


def _is_placed(pages: Sequence[ShownPage], marks: Marks) -> bool:
    return any(boxes for one in pages for mark, boxes in one.marks if mark == marks.chosen)


def _show(document_id: UUID, shown: ShownDocument, number: int, marks: Marks) -> ShownPage:
    services, user = context.caller()
    stored = ""
    on_page: tuple[Span, ...] = ()
    if number <= len(shown.pages):
        place = shown.pages[number - 1]
        on_page = marks.on(place.start, place.end)[:_MARKS_PER_PAGE]
        if on_page:
            _, stored = library.read_text(
                services, user, document_id, start=place.start, end=place.end
            )
    return showing.show_page(services, shown, number, stored, on_page)


def _focus_marks(focus: Focus) -> Marks:
    if focus.find:
        if not focus.matches:
            return Marks()
        chosen = focus.matches[focus.match_number - 1]
        arguments = (("find", focus.find), ("chosen", str(chosen.start)))
        return Marks("found", focus.matches, chosen, arguments)
    if focus.citation is not None and focus.chunk is not None:
        quote = Span(focus.citation.char_start, focus.citation.char_end)
        return Marks("quote", (quote,), quote, (("citation", str(focus.citation.id)),))
    if focus.chunk is None or focus.chunk.chunk.char_start is None:
        return Marks()
    start = focus.chunk.chunk.char_start
    if focus.position is not None:
        content = focus.chunk.chunk.content
        end = content.find("\n", max(0, focus.position - start))
        line = Span(focus.position, start + (end if end > 0 else len(content)))
        return Marks("place", (line,), line, (("at", str(focus.position)),))
    words = focus.spans([focus.chunk]).get(focus.chunk.id, ())
    spans = tuple(Span(start + word.start, start + word.end) for word in words)
    arguments = (("chunk", str(focus.chunk.id)), ("q", focus.query))
    kind, spans = ("found", spans) if spans else ("place", (Span(start, start + 1),))
    return Marks(kind, spans, spans[0], arguments)


def _find_asked_marks(document_id: UUID, shown: ShownDocument, number: int) -> Marks:
    """Return the marks of one page that the address asks for."""
    services, user = context.caller()
    find = " ".join(request.args.get("find", "")[:MAX_FIND_CHARACTERS].split())
    if not find:
        return _focus_marks(find_focus(library.get_document(services, user, document_id)))
    if number > len(shown.pages):
        return Marks()
    # Search only the page and a little around it, for matches that cross its edges.
    place = shown.pages[number - 1]
    around = 2 * MAX_FIND_CHARACTERS
    start = max(0, place.start - around)
    _, text = library.read_text(services, user, document_id, start=start, end=place.end + around)
    found = occurrences(text, find)
    spans = tuple(Span(start + first, start + last) for first, last in found)
    chosen_start = natural(request.args.get("chosen"))
    chosen = next((span for span in spans if span.start == chosen_start), None)
    return Marks("found", spans, chosen)


def _zoom() -> int:
    percent = positive(request.args.get("zoom"), otherwise=100)
    return min(ZOOMS, key=lambda zoom: abs(zoom - percent))


def init_app(app: Flask) -> None:
    app.jinja_env.globals.update(page_frame=frame, page_widths=WIDTHS)
