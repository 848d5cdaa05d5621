"""A document as its pages: sizes, pictures, characters, and the places of its stored words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from portal.domain.documents import MediaType, Page
from portal.domain.people import User
from portal.domain.search import Span
from portal.errors import NotFound, Overloaded, PagesUnavailable, existing
from portal.ingest.page_process import PageText, Picture
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.reading.page_readers import FileToShow, Sizes
from portal.store.documents.ingestion import files as file_store
from portal.store.documents.texts import chunks as chunk_store
from portal.text.layout.placing import Box, PlacedPage, lines_of, rectangles

WIDTHS = (700, 1400, 2100)
"""Widths of pictures in pixels: small and large windows, and screens with two pixels per point."""
IMAGE_WIDTH = 1400
"""The maximum width in pixels of images in documents."""
_IMAGES = "images_reader"
_READERS = {MediaType.PDF: "pages_reader"} | dict.fromkeys(
    (MediaType.DOCX, MediaType.PPTX, MediaType.EPUB, MediaType.HTML, MediaType.MARKDOWN), _IMAGES
)
_VERSION_LENGTH = 16
_MAX_UNDRAWN = 0.05  # Share of a page's characters that its picture may lack.


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """The pages of a document. `sizes` are in points, `pages` the ranges of their text; `version`
    changes with the file."""

    file: FileToShow
    version: str
    sizes: Sizes
    pages: Sequence[Page]

    @property
    def count(self) -> int:
        return len(self.sizes)

    def page_at(self, position: int) -> int:
        """Return the number of the page with the character at this position of the text."""
        return next((page.number for page in self.pages if position < page.end), 1)


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page: its size in tenths of a point, its lines in pieces, and the rectangles of each mark,
    empty if it was not found on the page. Of its `visible` characters, `undrawn` ones are missing
    in its picture."""

    number: int
    width: int
    height: int
    lines: list[list[tuple[str, Box]]]
    marks: tuple[tuple[Span, list[Box]], ...] = ()
    visible: int = 0
    undrawn: int = 0

    @property
    def is_readable(self) -> bool:
        return self.undrawn <= _MAX_UNDRAWN * self.visible


def has_pages(media_type: MediaType) -> bool:
    """Return whether documents of this type can be shown as pages."""
    return media_type is MediaType.PDF


def open_pages(services: Services, user: User, document_id: UUID) -> ShownDocument:
    """Return the pages of a document. Raises NotFound, PagesUnavailable, Overloaded."""
    file, version = find_file(services, user, document_id)
    with services.database.begin() as session:
        pages = chunk_store.list_pages(session, document_id)
    return ShownDocument(file, version, services.page_readers.sizes(file), pages)


def find_file(services: Services, user: User, document_id: UUID) -> tuple[FileToShow, str]:
    """Return the file of a document that has pages or images, and its version. Raises NotFound."""
    with library.opening(services, user, document_id) as session:
        original = existing(file_store.find_original(session, document_id))
        reader = existing(_READERS.get(original.media_type))
    stored = library.as_file(services, original)
    file = FileToShow(original.id, original.size_bytes, lambda: stored.parts, reader)
    return file, original.sha256[:_VERSION_LENGTH]


def document_image(
    services: Services, user: User, document_id: UUID, key: str
) -> tuple[Picture, str]:
    """Return an image in a document, and the version of its file. Raises NotFound, also if it is
    not an image, PagesUnavailable, Overloaded."""
    file, version = find_file(services, user, document_id)
    if file.reader != _IMAGES:
        raise NotFound
    image = services.page_readers.picture(file, key, IMAGE_WIDTH)
    if not image.data:
        raise NotFound
    return image, version


def image_sizes(
    services: Services, user: User, document_id: UUID, keys: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Return the width and height of images in a document, as far as they are available."""
    found: dict[str, tuple[int, int]] = {}
    if not keys:
        return found
    with suppress(NotFound, PagesUnavailable, Overloaded):
        file, _ = find_file(services, user, document_id)
        for key in keys:
            found[key] = services.page_readers.image_size(file, key, IMAGE_WIDTH)
    return {key: size for key, size in found.items() if all(size)}


def page_picture(
    services: Services, user: User, document_id: UUID, number: int, width: int
) -> tuple[Picture, str]:
    """Return a page as a picture, one of WIDTHS wide, and the version of its file. Raises NotFound,
    PagesUnavailable, Overloaded."""
    file, version = find_file(services, user, document_id)
    if (
        file.reader == _IMAGES
        or width not in WIDTHS
        or not 1 <= number <= len(services.page_readers.sizes(file))
    ):
        raise NotFound
    return services.page_readers.picture(file, number, width), version


def show_page(
    services: Services, shown: ShownDocument, number: int, stored: str, marks: Sequence[Span]
) -> ShownPage:
    """Return one page with `marks`, which are ranges of the whole text, located on it by its
    `stored` text. Raises PagesUnavailable, Overloaded."""
    text = services.page_readers.text(shown.file, number)
    width, height = shown.sizes[number - 1]
    return ShownPage(
        number=number,
        width=max(1, round(width * 10)),
        height=max(1, round(height * 10)),
        lines=lines_of(text.text, text.box),
        marks=tuple(_place_marks(shown.pages, number, stored, text, marks)) if marks else (),
        visible=sum(not character.isspace() for character in text.text),
        undrawn=text.undrawn,
    )


def _place_marks(
    pages: Sequence[Page], number: int, stored: str, text: PageText, marks: Sequence[Span]
) -> list[tuple[Span, list[Box]]]:
    start = pages[number - 1].start
    placed = PlacedPage(stored, text.text)
    found = []
    for mark in marks:
        ranges = placed.find(max(0, mark.start - start), min(len(stored), mark.end - start))
        found.append((mark, rectangles(ranges, text.text, text.box)))
    return found
