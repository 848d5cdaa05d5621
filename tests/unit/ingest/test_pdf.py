from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from portal.domain.documents import MediaType
from portal.errors import (
    BlankPdf,
    BrokenPdf,
    DatabaseUnavailable,
    EncryptedPdf,
    ExtractionTimedOut,
    ExtractionTooLarge,
    NoTextInPdf,
    PortalError,
    StorageFull,
)
from portal.ingest import reader_process
from portal.ingest.extraction import extract
from portal.ingest.formats import pdf as pdf_format
from portal.ingest.formats.pages import page_recognition
from portal.ingest.formats.pages.page_layout import Line, join, paragraphs, readable
from portal.ingest.formats.pages.page_recognition import in_words
from portal.ingest.formats.pages.pdf_headings import outlined_headings
from portal.ingest.formats.pages.running_lines import without_running_lines
from portal.ingest.formats.pdf import is_encrypted_pdf
from portal.ingest.limits import FileToRead
from tests.factories import files
from tests.factories.files.hostile import pdf_of_short_lines
from tests.unit.ingest import reading


@pytest.fixture(autouse=True)
def _no_text_recognition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch text recognition off: it has its own tests, and takes seconds a page."""
    monkeypatch.setattr(page_recognition, "is_installed", lambda: False)


read = partial(reading.read, media_type=MediaType.PDF)


def test_chinese_lines_join_without_spaces_and_pages_keep_their_ranges(tmp_path: Path) -> None:
    extracted = read(files.chinese_pdf(tmp_path / "a.pdf"))
    assert "检索文档，并就文档提问；每个答案" in extracted.text
    assert "PO-4711" in extracted.text
    first, second = extracted.pages
    assert extracted.text[first.start : first.end].startswith("知识门户操作手册")
    assert extracted.text[second.start : second.end].endswith("管理员可以看到。")
    assert extracted.warnings == ()


def test_english_lines_join_with_spaces_and_without_their_hyphens(tmp_path: Path) -> None:
    path = files.english_pdf(
        tmp_path / "a.pdf",
        ["This is an English para-", "graph that is broken across", "several lines, as usual."],
    )
    assert (
        read(path).text
        == "This is an English paragraph that is broken across several lines, as usual."
    )


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("state-of-the-", "art", "state-of-the-art"),
        ("A4-", "Format", "A4- Format"),
        ("Anglo-", "Saxon", "Anglo-Saxon"),
        ("para\x02", "graph", "para\x02graph"),
        ("使用", "文档", "使用文档"),
        ("支持", "PostgreSQL", "支持PostgreSQL"),
        ("two", "words", "two words"),
        ("한국어", "문서", "한국어 문서"),
    ],
)
def test_lines_are_joined_according_to_their_script(before: str, after: str, joined: str) -> None:
    expected = joined.replace("para\x02graph", "paragraph")
    assert join([before, after]) == expected


def test_kangxi_radicals_and_ligatures_become_letters_but_punctuation_stays() -> None:
    assert readable("⼀⼈，ﬁne（ＡＢ）！") == "一人，fine（AB）！"


def test_outline_gives_headings_where_they_stand(tmp_path: Path) -> None:
    path = files.write_pdf(
        tmp_path / "a.pdf",
        files.CHINESE_PAGES,
        outline=[("知识门户操作手册", 0, 0), ("第二章 权限", 1, 1)],
    )
    extracted = read(path)
    assert [(h.level, h.title) for h in extracted.headings] == [
        (1, "知识门户操作手册"),
        (2, "第二章 权限"),
    ]
    for heading in extracted.headings:
        assert extracted.text.startswith(heading.title, heading.start)


def test_larger_type_gives_headings_without_an_outline(tmp_path: Path) -> None:
    sizes = {"知识门户操作手册": 18.0, "第二章 权限": 14.0}
    extracted = read(files.write_pdf(tmp_path / "a.pdf", files.CHINESE_PAGES, sizes=sizes))
    assert [(h.level, h.title) for h in extracted.headings] == [
        (1, "知识门户操作手册"),
        (2, "第二章 权限"),
    ]


def test_page_labels_are_kept_where_they_differ_from_numbers(tmp_path: Path) -> None:
    extracted = read(files.labelled_pdf(tmp_path / "a.pdf"))
    assert [page.label for page in extracted.pages] == ["i", "ii", "1"]


@pytest.mark.parametrize(
    ("written", "kept"), [("A\u202e-\n", "A- 1"), ("  ", None), ("x" * 9_000, None), ("\0", None)]
)
def test_labels_are_one_short_line_that_can_be_stored(
    tmp_path: Path, written: str, kept: str | None
) -> None:
    path = files.labelled_pdf(tmp_path / "a.pdf", [["第一页的内容。"]], prefix=written)
    assert read(path).pages[0].label == kept


def test_page_without_text_is_a_warning_and_an_empty_range(tmp_path: Path) -> None:
    extracted = read(files.write_pdf(tmp_path / "a.pdf", [["第一页"], [], ["第三页"]]))
    assert extracted.pages[1].start == extracted.pages[1].end
    (warning,) = extracted.warnings
    assert warning.startswith("no text on page 2, ")
    assert extracted.text == "第一页\n\n第三页"


def recognise(
    monkeypatch: pytest.MonkeyPatch, records: list[dict[str, object]], error: Exception
) -> None:
    """Replace text recognition by one that yields these records and then fails with `error`."""

    def read_records(*_args: object, **_options: object) -> Iterator[dict[str, object]]:
        yield from records
        raise error

    monkeypatch.setattr(page_recognition, "is_installed", lambda: True)
    monkeypatch.setattr(page_recognition, "read_records", read_records)


RECOGNISED = {"page": 2, "lines": [["words of a picture", 50.0, 300.0, 700.0, 12.0]]}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ExtractionTimedOut(name="a.pdf", seconds=9), page_recognition.OUT_OF_TIME),
        (ExtractionTooLarge(name="a.pdf", what="data", limit="9 MB"), page_recognition.BROKE_OFF),
    ],
)
def test_pages_not_reached_by_recognition_have_their_own_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    recognise(monkeypatch, [{"pages": 4}, RECOGNISED, {"page": 3, "lines": []}], error)
    extracted = read(files.write_pdf(tmp_path / "a.pdf", [["第一页"], [], [], [], []]))
    assert extracted.text == "第一页\n\nwords of a picture"
    assert extracted.warnings == (
        f"no text on page 3, only pictures or drawings. {page_recognition.NOTHING_RECOGNISED}",
        f"no text on pages 4–5, only pictures or drawings. {reason}",
    )
    recognise(monkeypatch, [{"pages": 1}], error)
    with pytest.raises(NoTextInPdf, match=re.escape(reason)):
        read(files.write_pdf(tmp_path / "b.pdf", [[]]))


@pytest.mark.parametrize("error", [DatabaseUnavailable(), StorageFull()])
def test_failing_progress_callback_is_not_a_page_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: PortalError
) -> None:
    recognise(monkeypatch, [{"pages": 2}, RECOGNISED], error)
    with pytest.raises(type(error)):
        read(files.write_pdf(tmp_path / "a.pdf", [["第一页"], [], []]))


def test_running_headers_and_page_numbers_are_left_out() -> None:
    pages = [
        [_line("Handbook 2024"), _line(f"Text of page {word}"), _line(str(number))]
        for number, word in enumerate(["one", "two", "three", "four"], 1)
    ]
    kept = without_running_lines(pages)
    assert [[line.text for line in page] for page in kept] == [
        [f"Text of page {word}"] for word in ("one", "two", "three", "four")
    ]


def test_small_header_of_several_lines_is_left_out_of_a_short_document() -> None:
    pages = [
        [
            Line("Northern coast", 72, 150, 800, 6),
            Line("Internal use only", 72, 150, 792, 6),
            Line(f"The keeper of lamp {word} lights it in the evening.", 72, 300, 700, 11),
        ]
        for word in ("one", "two")
    ]
    assert [len(page) for page in without_running_lines(pages)] == [1, 1]


def test_headers_that_name_the_chapter_and_the_page_are_left_out() -> None:
    chapters = ["Lamps", "Lamps", "Boats", "Boats", "Boats"]
    pages = [
        column([f"Chapter: {chapter} {number}", f"Text of {chapter}", "More.", "It ends."], 72, 228)
        for number, chapter in enumerate(chapters, 7)
    ]
    for page in without_running_lines(pages):
        assert page[0].text.startswith("Text of")


def test_numbered_lines_that_do_not_count_pages_are_kept() -> None:
    pages = [[_line(f"Order {number}"), _line("Text"), _line("It ends.")] for number in (12, 40)]
    assert without_running_lines(pages) == pages
    totals = (12, 40, 55, 12, 8)
    bills = [
        column([f"Bill {number}", f"Oil, {total} litres.", f"Total: {total} euros."], 72, 228)
        for number, total in enumerate(totals, 1)
    ]
    kept = [[line.text for line in page] for page in without_running_lines(bills)]
    assert kept == [[f"Oil, {total} litres.", f"Total: {total} euros."] for total in totals]


def _line(text: str) -> Line:
    return Line(text, 72, 300, 700, 11)


@pytest.mark.parametrize(("count", "where"), [(1, "page 1"), (7, "pages 1–7")])
def test_pdf_without_text_says_that_it_is_scanned_and_what_to_do(
    tmp_path: Path, count: int, where: str
) -> None:
    with pytest.raises(NoTextInPdf, match=f"no text on {where},.* ask an administrator"):
        read(files.pdf_without_text(tmp_path / "a.pdf", count))


def test_blank_pages_are_called_blank(tmp_path: Path) -> None:
    blank = Canvas(str(tmp_path / "a.pdf"))
    blank.showPage()
    blank.save()
    with pytest.raises(BlankPdf, match="all of its pages are blank"):
        read(tmp_path / "a.pdf")


def test_pages_are_named_by_ranges() -> None:
    assert in_words([2, 4, 5, 6, 9]) == "pages 2, 4–6, 9"
    assert in_words(range(1, 60, 2)).endswith("17, 19…")


def test_pdf_with_a_password_is_refused_at_upload_and_at_reading(tmp_path: Path) -> None:
    path = files.encrypted_pdf(tmp_path / "a.pdf", user_password="secret")
    assert is_encrypted_pdf(path)
    with pytest.raises(EncryptedPdf):
        read(path)


def test_pdf_that_only_forbids_changes_is_read(tmp_path: Path) -> None:
    path = files.encrypted_pdf(tmp_path / "a.pdf", user_password="")
    assert not is_encrypted_pdf(path)
    assert "知识门户" in read(path).text


def test_plain_pdf_is_not_encrypted(tmp_path: Path) -> None:
    assert not is_encrypted_pdf(files.chinese_pdf(tmp_path / "a.pdf"))


@pytest.mark.parametrize("damage", [b"%PDF-1.7\n", b"%PDF-1.4 rubbish \x00\xff" * 50])
def test_garbage_named_pdf_is_broken(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(damage)
    with pytest.raises(BrokenPdf):
        read(path)


def test_truncated_pdf_is_broken(tmp_path: Path) -> None:
    with pytest.raises(BrokenPdf):
        read(files.truncated_pdf(tmp_path / "a.pdf"))


@pytest.mark.parametrize(
    ("limits", "what"), [({"max_pages": 1}, "pages"), ({"max_characters": 10}, "characters")]
)
def test_error_of_a_limit_names_what_was_too_much(
    tmp_path: Path, limits: dict[str, int], what: str
) -> None:
    with pytest.raises(ExtractionTooLarge, match=what):
        read(files.chinese_pdf(tmp_path / "a.pdf"), **limits)


def test_number_of_lines_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three million lines of one character each would take over a gigabyte in the worker."""
    path = pdf_of_short_lines(tmp_path / "a.pdf", page_count=3, line_count=10)
    monkeypatch.setattr(pdf_format, "_MAX_LINES", 30)
    assert read(path).text.split() == ["a"] * 3 * 6  # Without the first and last two of each page.
    monkeypatch.setattr(pdf_format, "_MAX_LINES", 29)
    with pytest.raises(ExtractionTooLarge, match="lines"):
        read(path)


def column(texts: list[str], left: float, width: float) -> list[Line]:
    """Return lines from the top of the page down, each as wide as the column."""
    return [
        Line(text, left, left + width, 700 - 14.0 * row, 11.0) for row, text in enumerate(texts)
    ]


def test_lines_of_both_columns_join_to_sentences() -> None:
    first = ["The keepers changed", "shifts every evening", "and recorded the", "weather."]
    second = ["A new lamp was", "installed on the third", "day of October and", "works well."]
    title = Line("The quarterly lighthouse report of the north", 50, 500, 730.0, 18.0)
    page = [title, *column(first, 50, 220), *column(second, 280, 220)]
    assert [paragraph.text for paragraph in paragraphs(page)] == [
        title.text,
        " ".join(first),
        " ".join(second),
    ]


def test_page_of_a_hundred_thousand_columns_is_read() -> None:
    """Comparing every line with all that follow would take hours."""
    page = [Line("word", 20.0 * n, 20.0 * n + 10, 20.0 * n, 11.0) for n in range(100_000)]
    assert sum(paragraph.line_count for paragraph in paragraphs(page)) == len(page)


def test_cells_of_a_table_without_rules_stay_apart() -> None:
    page = [
        Line("The costs of the lighthouse are listed by item and by year below.", 50, 500, 730, 11),
        *column(["Item", "Lamp oil", "Paint", "Boat"], 50, 60),
        *column(["2025", "1,200", "300", "5,500"], 200, 40),
    ]
    assert len(paragraphs(page)) == 9


def test_paragraph_of_many_lines_is_joined_once() -> None:
    lines = [Line("ab-", 0, 300, -12 * number, 11) for number in range(80_000)]
    started = time.process_time()
    (paragraph,) = paragraphs(lines)
    assert time.process_time() - started < 6  # Copying it for each line would take 17 s.
    assert (len(paragraph.text), paragraph.line_count) == (80_000 * 2 + 1, 80_000)


def test_outline_title_matches_the_line_with_nothing_else() -> None:
    text = "Tools that build packages\n\nTools you need for Tools\n\n12.6 Tools\n\nMake and others."
    (heading,) = outlined_headings([(1, "Tools", 0)], text, [(0, len(text))])
    assert (heading.title, heading.start) == ("12.6 Tools", text.index("12.6"))


def test_outline_titles_are_searched_near_the_start_of_their_page() -> None:
    text = "title " + "x" * 30_000 + " late"
    headings = outlined_headings([(1, "Title", 0), (1, "late", 0)], text, [(0, len(text))])
    assert [heading.start for heading in headings] == [0, 0]


def test_progress_is_still_reported_after_the_last_page(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = files.chinese_pdf(tmp_path / "a.pdf")
    extract(FileToRead(path, path.name, on_page=lambda *page: told.append(page)), MediaType.PDF)
    assert told == [(1, 2), (2, 2), (2, 2), (2, 2)]


def test_slow_reader_is_stopped(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(ExtractionTimedOut):
        read(files.chinese_pdf(tmp_path / "a.pdf"), timeout_s=0.01)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("import os; os.abort()", BrokenPdf),
        ("while True: pass", ExtractionTimedOut),
        ("raise SystemExit(3)", BrokenPdf),
        ("pass", BrokenPdf),
        ("def read(file, **options): yield from ()", BrokenPdf),
        ("print('no JSON')", BrokenPdf),
        ("print('{\"pages\": ', end='')", BrokenPdf),
    ],
)
def test_reader_that_dies_or_hangs_fails_only_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: type[Exception]
) -> None:
    """The process is real; the script that it runs stands in for a hostile PDF."""
    (tmp_path / "pdf_reader.py").write_text(script)
    monkeypatch.setattr(reader_process, "_READERS", tmp_path)
    # Only the script that hangs should run out of time.
    timeout_s = 1 if error is ExtractionTimedOut else 60
    with pytest.raises(error):
        read(files.chinese_pdf(tmp_path / "a.pdf"), timeout_s=timeout_s)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS holds on Linux")
def test_reader_gets_no_more_memory_than_allowed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import limited\n"
        "limited.limit_process(512, 10)\n"
        "try: bytearray(1 << 30)\n"
        "except MemoryError: print('refused')"
    )
    folder = str(reader_process._READERS)
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "refused"


def test_reader_does_not_see_our_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTAL_SECRET_KEY", "hidden")
    (tmp_path / "pdf_reader.py").write_text(
        "import os\n"
        "def read(file, **options):\n"
        "    yield {'error': 'encrypted' if 'PORTAL_SECRET_KEY' in os.environ else 'pages'}"
    )
    monkeypatch.setattr(reader_process, "_READERS", tmp_path)
    with pytest.raises(ExtractionTooLarge):
        read(files.chinese_pdf(tmp_path / "a.pdf"))
    assert os.environ["PORTAL_SECRET_KEY"] == "hidden"
