"""A PDF shown as pages: pictures, marks in place, access, and the cost of hostile files."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.conversations import Message
from portal.domain.documents import DocumentSummary, Visibility
from portal.errors import Overloaded, PagesUnavailable
from portal.ingest.fonts import CHINESE as CHINESE_CHARSET
from portal.ingest.fonts import system_fonts
from portal.ingest.limits import ExtractionLimits
from portal.services.answers import conversations
from portal.services.documents import library, private_reads
from portal.services.documents.reading.page_readers import (
    MAX_FAILURES,
    MAX_PROCESSES,
    FileToShow,
    PageReaders,
)
from portal.store.documents.texts import chunks as chunk_store
from tests.conftest import Portal
from tests.factories import files
from tests.factories.answers import ask
from tests.factories.cases import for_each
from tests.factories.files.hostile import pdf_bomb

LINES = [f"Rule {n} says that the fee is {n} euros for each day of travel." for n in range(1, 7)]
FRAGMENT = {"HX-Request": "true"}


@pytest.fixture
def portal_with_pages(portal: Portal) -> Iterator[Portal]:
    yield portal
    portal.services.page_readers.close()


@pytest.fixture
def client(portal_with_pages: Portal) -> FlaskClient:
    return create_app(portal_with_pages.services).test_client()


@pytest.fixture
def fees(portal: Portal, tmp_path: Path) -> DocumentSummary:
    path = files.write_pdf(tmp_path / "fees.pdf", [LINES[:3], LINES[3:]])
    return portal.add(path.read_bytes(), name="fees.pdf")


def asked(portal: Portal) -> Message:
    begun = conversations.create(portal.services, portal.admin, "")
    return ask(portal.services, portal.admin, begun.id, "What is the fee of rule 5?")


def picture_addresses(page: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'src="([^"]+/picture[^"]*)"', page)]


def test_pages_are_shown_with_pictures_and_text(
    client: FlaskClient, portal: Portal, fees: DocumentSummary
) -> None:
    headers = portal.headers()
    page = client.get(f"/documents/{fees.id}", headers=headers).text
    assert len(re.findall('data-testid="page"', page)) == 2
    assert "Rule 5 says that the fee is 5 euros" in page
    assert 'data-testid="passage"' not in page
    address = picture_addresses(page)[1]
    picture = client.get(address, headers=headers)
    assert picture.data.startswith(b"\x89PNG")
    assert picture.headers["Content-Type"] == "image/png"
    assert "immutable" in picture.headers["Cache-Control"]
    assert "private" in picture.headers["Cache-Control"]
    assert "Cookie" in picture.headers["Vary"]
    stale = client.get(re.sub("v=.*", "v=0", address), headers=headers)
    assert stale.headers["Cache-Control"] == "no-cache"


def test_text_has_its_own_address(
    client: FlaskClient, portal: Portal, fees: DocumentSummary
) -> None:
    page = client.get(f"/documents/{fees.id}?view=text", headers=portal.headers()).text
    assert 'data-testid="passage"' in page
    assert 'data-testid="pages"' not in page
    assert re.search(r'href="[^"]*view=pages[^"]*"\s+data-testid="view-pages"', page)


def test_page_and_picture_are_only_for_those_who_may_see_the_document(
    client: FlaskClient, portal: Portal, tmp_path: Path
) -> None:
    path = files.write_pdf(tmp_path / "secret.pdf", [LINES])
    secret = portal.add(path.read_bytes(), name="secret.pdf", visibility=Visibility.PRIVATE)
    address = f"/documents/{secret.id}/pages/1"
    own = client.get(address, headers=portal.headers() | FRAGMENT)
    assert "Rule 2 says" in own.text
    assert client.get(f"{address}/picture?w=700", headers=portal.headers()).status_code == 200
    other = portal.headers(portal.user("ada"))
    for path_, more in ((address, FRAGMENT), (address, {}), (f"{address}/picture?w=700", {})):
        assert client.get(path_, headers=other | more).status_code == 404
        missing = path_.replace(str(secret.id), str(uuid4()))
        assert client.get(missing, headers=other | more).status_code == 404
    library.delete_document(portal.services, portal.admin, secret.id)
    assert client.get(f"{address}/picture?w=700", headers=portal.headers()).status_code == 404


def test_page_views_by_administrators_are_recorded(
    client: FlaskClient, portal: Portal, tmp_path: Path
) -> None:
    path = files.write_pdf(tmp_path / "own.pdf", [LINES])
    ada = portal.user("ada")
    own = portal.add(path.read_bytes(), name="own.pdf", owner=ada, visibility=Visibility.PRIVATE)
    client.get(f"/documents/{own.id}/pages/1/picture?w=700", headers=portal.headers())
    assert len(private_reads.list_reads(portal.services, ada, own.id)) == 1


@for_each("path", ["0", "3", "999999", "1/picture?w=701", "3/picture?w=700", "1/picture?w=3000"])
def test_unknown_pages_and_widths_are_404(
    client: FlaskClient, portal: Portal, fees: DocumentSummary, path: str
) -> None:
    address = f"/documents/{fees.id}/pages/{path}"
    assert client.get(address, headers=portal.headers() | FRAGMENT).status_code == 404


def test_document_without_pages_is_shown_as_text(client: FlaskClient, portal: Portal) -> None:
    note = portal.add("# Note\n\nOnly text.", name="note.md")
    headers = portal.headers()
    assert client.get(f"/documents/{note.id}/pages/1/picture", headers=headers).status_code == 404
    page = client.get(f"/documents/{note.id}?view=pages", headers=headers).text
    assert 'data-testid="passage"' in page
    assert "view-pages" not in page


def test_found_words_are_counted_and_marked_in_place(
    client: FlaskClient, portal: Portal, fees: DocumentSummary
) -> None:
    headers = portal.headers() | {"Accept-Language": "en"}
    page = client.get(f"/documents/{fees.id}?find=THE+FEE&match=5&view=pages", headers=headers).text
    assert "5 of 6" in page
    numbers = re.findall(r'data-testid="page"[^>]*>', page)
    assert len(numbers) == 1  # It opens at page 2, where the fifth match is.
    assert len(re.findall(r'<rect class="found ', page)) == 3
    assert len(re.findall(r'<rect class="found is-chosen" id="found"', page)) == 1
    layer = unescape(re.search(r'data-pages="([^"]+)"', page)[1])  # type: ignore[index]
    other = client.get(layer.replace("/pages/0", "/pages/1"), headers=headers | FRAGMENT).text
    assert len(re.findall(r'<rect class="found ', other)) == 3
    assert 'id="found"' not in other


def test_chunk_without_the_searched_words_has_no_letter_marked(
    client: FlaskClient, portal: Portal, fees: DocumentSummary
) -> None:
    with portal.services.database.begin() as session:
        ((chunk,), _) = chunk_store.list_chunks(session, fees.id, limit=1, offset=0)
    for query, marked in (("euros", 'rect class="found '), ("xyzzy", 'rect class="place ')):
        address = f"/documents/{fees.id}?chunk={chunk.id}&q={query}"
        page = client.get(address, headers=portal.headers()).text
        assert set(re.findall(r'rect class="\w+ ', page)) == {marked}


def test_a_citation_opens_its_page_with_the_quote_marked(
    client: FlaskClient, portal: Portal, fees: DocumentSummary
) -> None:
    answer = asked(portal)
    citation = next(one for one in answer.citations if "Rule 5" in one.excerpt)
    for address in (
        f"/documents/{fees.id}?citation={citation.id}",
        f"/chat/{answer.conversation_id}?source={citation.id}",
    ):
        page = client.get(address, headers=portal.headers()).text
        assert len(re.findall(r'<rect class="quote is-chosen" id="quote"', page)) == 1
        text = client.get(address + "&view=text", headers=portal.headers()).text
        assert '<mark id="quote" class="quote">' in text


def test_quote_missing_from_the_page_is_shown_as_text(
    client: FlaskClient, portal: Portal, fees: DocumentSummary
) -> None:
    answer = asked(portal)
    citation = next(one for one in answer.citations if "Rule 5" in one.excerpt)
    readers = portal.services.page_readers
    shown = client.get(f"/documents/{fees.id}?page=2", headers=portal.headers())
    assert shown.status_code == 200
    for key in list(readers._texts):
        kept = readers._texts[key]
        readers._texts[key] = type(kept)("scanned", kept.boxes)
    headers = portal.headers() | {"Accept-Language": "en"}
    page = client.get(f"/documents/{fees.id}?citation={citation.id}", headers=headers).text
    assert '<mark id="quote" class="quote">' in page
    assert "could not be found on the page" in page


CHINESE = [f"员工手册第{n}章规定：年假每年十天，可结转五天到次年。" for n in "一二三四五六七八九"]


def test_a_page_without_fonts_opens_as_text_and_says_why(
    client: FlaskClient, portal: Portal, tmp_path: Path
) -> None:
    portal.services.page_readers._fonts = tuple
    mixed = [["Rule 1 " * 12] * 30 + ["年假"], CHINESE]
    path = files.write_pdf(tmp_path / "leave.pdf", mixed)
    leave = portal.add(path.read_bytes(), name="leave.pdf")
    headers = portal.headers() | {"Accept-Language": "en"}
    page = client.get(f"/documents/{leave.id}", headers=headers).text
    assert "does not carry its fonts" in page
    assert 'data-testid="passage"' in page
    shown = client.get(f"/documents/{leave.id}?view=pages", headers=headers).text
    assert re.findall(r"(\d+) characters of this page", shown) == ["2", "234"]
    text = unescape(re.findall(r'data-testid="undrawn".*?<a href="([^"]*)"', shown, re.DOTALL)[1])
    assert "年假每年十天" in client.get(text, headers=headers).text


@pytest.mark.skipif(
    not any(font.charset == CHINESE_CHARSET for font in system_fonts()),
    reason="this machine has no Chinese font",
)
def test_system_fonts_replace_fonts_missing_from_the_file(tmp_path: Path) -> None:
    from PIL import Image

    file, ink = opened(files.write_pdf(tmp_path / "leave.pdf", [CHINESE])), []
    for fonts in (system_fonts, tuple):
        readers = PageReaders(fonts=fonts)
        try:
            picture = readers.picture(file, 1, 700)
            undrawn = readers.text(file, 1).undrawn
        finally:
            readers.close()
        path = tmp_path / "picture"
        path.write_bytes(picture.data)
        ink.append((sum(Image.open(path).convert("L").histogram()[:128]), undrawn))
    assert ink[0][0] > 2000
    assert ink[1][0] < 200
    assert [undrawn for _, undrawn in ink] == [0, len(CHINESE) * len(CHINESE[0])]


def opened(path: Path) -> FileToShow:
    data = path.read_bytes()
    return FileToShow(uuid4(), len(data), lambda: iter([data]))


@pytest.fixture
def readers() -> Iterator[PageReaders]:
    made = PageReaders(ExtractionLimits(timeout_s=5, memory_mb=512))
    yield made
    made.close()


def box_pdf(path: Path, box: str, content: bytes = b"") -> Path:
    return files.raw_pdf(
        path,
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] /Contents 4 0 R >>".encode(),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    )


@pytest.mark.parametrize(
    "box", ["0 0 14400 14400", "0 0 1 14400", "0 0 1e9 1e9", "0 0 0 0", "5 5 -9 2", "0 0 1e9 1"]
)
def test_huge_pages_stay_within_pixels_and_time(
    readers: PageReaders, tmp_path: Path, box: str
) -> None:
    from PIL import Image

    file = opened(box_pdf(tmp_path / "box.pdf", box))
    began = time.monotonic()
    try:
        picture = readers.picture(file, 1, 2100)
    except (PagesUnavailable, Overloaded):
        pass
    else:
        (tmp_path / "picture").write_bytes(picture.data)
        width, height = Image.open(tmp_path / "picture").size
        assert width * height <= 8_100_000
        assert max(width, height) <= 8_001
    assert time.monotonic() - began < 20


def test_hostile_files_end_and_are_not_tried_again(readers: PageReaders, tmp_path: Path) -> None:
    hostile = [
        pdf_bomb(tmp_path / "bomb.pdf"),
        files.encrypted_pdf(tmp_path / "locked.pdf", user_password="secret"),
        files.truncated_pdf(tmp_path / "cut.pdf"),
        files.pdf_without_pages(tmp_path / "none.pdf"),
        files.write_text(tmp_path / "text.pdf", "not a PDF"),
    ]
    for path in hostile:
        file = opened(path)
        for _ in range(2):
            began = time.monotonic()
            with contextlib.suppress(PagesUnavailable, Overloaded):
                readers.picture(file, 1, 700)
        assert time.monotonic() - began < 3, path.name


def test_more_pages_than_the_limit_are_refused(tmp_path: Path) -> None:
    readers = PageReaders(ExtractionLimits(max_pages=3, timeout_s=30))
    path = files.write_pdf(tmp_path / "many.pdf", [["one"]] * 4)
    try:
        with pytest.raises(PagesUnavailable):
            readers.sizes(opened(path))
    finally:
        readers.close()


def draw(readers: PageReaders, file: FileToShow, number: int) -> None:
    """Draw a page; retry while the machine is too busy."""
    while True:
        with contextlib.suppress(Overloaded):
            readers.picture(file, number, 2100)
            return


def test_slow_pages_are_stopped_and_soon_no_longer_tried(tmp_path: Path) -> None:
    # Each page draws for far longer than it may.
    content = b"0 0 m " + b"500 500 l 0 500 l 3 0 l " * 200_000 + b"B*"
    readers = PageReaders(ExtractionLimits(timeout_s=1, memory_mb=512))
    file = opened(box_pdf(tmp_path / "slow.pdf", "0 0 600 600", content))
    try:
        for number in range(1, MAX_FAILURES + 3):
            began = time.monotonic()
            with pytest.raises(PagesUnavailable):
                draw(readers, file, number)
            elapsed = time.monotonic() - began
        assert elapsed < 0.5
    finally:
        readers.close()


def test_a_page_that_waited_for_a_processor_is_tried_again(tmp_path: Path) -> None:
    readers = PageReaders(ExtractionLimits(timeout_s=8, memory_mb=512))
    file = opened(files.write_pdf(tmp_path / "page.pdf", [["one"]]))
    try:
        readers.sizes(file)
        process = readers._readers[file.id].process
        assert process
        process._process.send_signal(signal.SIGSTOP)
        with pytest.raises(Overloaded):
            readers.picture(file, 1, 700)
        assert readers.picture(file, 1, 700).data
    finally:
        readers.close()


def test_reader_processes_are_limited_and_end(readers: PageReaders, tmp_path: Path) -> None:
    path = files.write_pdf(tmp_path / "page.pdf", [["one"]])
    seen: set[UUID] = set()
    for _ in range(MAX_PROCESSES + 2):
        file = opened(path)
        seen.add(file.id)
        assert readers.sizes(file) == readers.sizes(file)
        assert len(readers._readers) <= MAX_PROCESSES
    readers.close()
    assert len(readers._readers) == 0
