from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pptx import Presentation

from portal.domain.documents import MediaType
from portal.domain.documents.structure import BlockKind
from portal.errors import BrokenFile, PortalError, TooMuchInOne, UnpacksToTooMuch
from portal.ingest.formats import mail, pptx
from tests.factories.files import slides
from tests.unit.ingest.reading import read, type_of


def test_slides_are_pages_under_their_titles(tmp_path: Path) -> None:
    path = slides.write_pptx(tmp_path / "a.pptx")
    assert type_of(path) is MediaType.PPTX
    extracted = read(path)
    assert extracted.text == (
        "季度回顾\n\n- 营收增长 12%\n  - 亚太\n- 成本 <持平>\n\n备注：\n\n先讲亚太。\n\n"
        "各区数字\n\n单位：万元\n\n地区 | 营收\n华东 | 120\n华南 | 95"
    )
    assert [extracted.text[page.start : page.end].split("\n")[0] for page in extracted.pages] == [
        "季度回顾",
        "各区数字",
    ]
    assert [page.number for page in extracted.pages] == [1, 2]
    (table,) = [block for block in extracted.blocks if block.kind is BlockKind.TABLE]
    assert table.header == ("地区", "营收")
    assert extracted.warnings == (pptx.HIDDEN_LEFT_OUT,)


def test_charts_are_tables_and_diagrams_lists(tmp_path: Path) -> None:
    extracted = read(slides.pptx_with_a_chart_and_a_diagram(tmp_path / "a.pptx"))
    assert extracted.text == (
        "各区数字\n\n各区营收\n\n | 营收\n华东 | 120\n华南 | 95.5\n\n- 收集\n- 整理"
    )
    (table,) = [block for block in extracted.blocks if block.kind is BlockKind.TABLE]
    assert (table.header, table.caption) == (("", "营收"), "各区营收")


def test_book_whose_type_is_not_its_first_part_is_recognised_by_its_name(tmp_path: Path) -> None:
    path = slides.write_epub(tmp_path / "a.epub")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in reversed(archive.namelist())}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert type_of(path) is MediaType.EPUB


@pytest.mark.parametrize(
    ("charset", "words"),
    [
        ("gb2312", "朱镕基的报销标准"),
        ("big5", "報銷標準"),
        ("shift_jis", "日本語の資料"),
        ("koi8-r", "Привет всем"),
        ("windows-1255", "שלום"),
    ],
)
def test_mail_in_any_charset_is_read(tmp_path: Path, charset: str, words: str) -> None:
    """The header is not MIME-encoded, as in mail from old programs."""
    coded = words.encode({"gb2312": "gbk"}.get(charset, charset))
    path = tmp_path / "a.eml"
    path.write_bytes(
        b"From: a@b.c\nSubject: " + coded + b"\nMIME-Version: 1.0\n"
        b"Content-Type: text/plain; charset=" + charset.encode() + b"\n\n" + coded
    )
    assert read(path).text == f"{words}\n\nFrom: a@b.c\n\n{words}"


def test_items_that_are_all_below_the_first_level_are_one_list(tmp_path: Path) -> None:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.placeholders[1].text_frame.text = "Moving house: 1 day\nWedding: 2 days"
    for paragraph in slide.placeholders[1].text_frame.paragraphs:
        paragraph.level = 1
    presentation.save(str(tmp_path / "a.pptx"))
    extracted = read(tmp_path / "a.pptx")
    assert extracted.text == "- Moving house: 1 day\n- Wedding: 2 days"
    assert [block.level for block in extracted.blocks] == [1, 1]


def test_slide_without_a_title_is_headed_by_its_first_short_line(tmp_path: Path) -> None:
    presentation = Presentation()
    titled = presentation.slides.add_slide(presentation.slide_layouts[5])
    titled.shapes.title.text_frame.text = "Targets"
    bare = presentation.slides.add_slide(presentation.slide_layouts[6])
    for place, words in enumerate(["Q&A", "Call the hotline."]):
        box = bare.shapes.add_textbox(0, 1_000_000 * place, 1_000_000, 500_000)
        box.text_frame.text = words
    presentation.save(str(tmp_path / "a.pptx"))
    extracted = read(tmp_path / "a.pptx")
    assert extracted.text == "Targets\n\nQ&A\n\nCall the hotline."
    assert [heading.title for heading in extracted.headings] == ["Targets", "Q&A"]


def test_chapters_are_in_reading_order(tmp_path: Path) -> None:
    path = slides.write_epub(tmp_path / "a.epub")
    assert type_of(path) is MediaType.EPUB
    extracted = read(path)
    assert extracted.text == "第一章 出发\n\n火车六点开。\n\n第二章 到达\n\n站 | 时间\n苏州 | 7:30"
    assert [heading.title for heading in extracted.headings] == ["第一章 出发", "第二章 到达"]


def test_mail_is_read_with_header_text_and_names_of_attachments(tmp_path: Path) -> None:
    path = slides.write_mail(tmp_path / "a.eml")
    assert type_of(path) is MediaType.EML
    extracted = read(path)
    assert extracted.text == (
        "关于报销的说明\n\nFrom: 财务部 <finance@example.com>\nTo: all@example.com\n"
        "Date: Fri, 01 Mar 2024 09:00:00 +0800\n\nAttachments: 标准.pdf\n\n"
        "住宿每晚不超过 500 元。\n\n城市 | 上限\n上海 | 600"
    )


def test_quoted_lines_of_a_mail_are_read_without_their_marks(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text(
        "Subject: RE: Vans\nFrom: a@example.com\n\nSee below.\n\n"
        "> Twelve vans are leased\n> from June on.\n>\n>> - Marc voted against.\n",
        encoding="utf-8",
    )
    extracted = read(path, MediaType.EML)
    assert extracted.text.endswith(
        "See below.\n\nTwelve vans are leased\nfrom June on.\n\n- Marc voted against."
    )


def test_quoted_questions_of_a_mail_stand_alone_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_text(
        "Subject: RE: Vans\nFrom: a@example.com\n\nAnn wrote:\n"
        "> I am new here. When do we leave for the bay in the morning and who is\n"
        "> driving? I can not.\n"
        "> 钥匙能拿到吗？\n> - Is it far?\nWe leave at 7. Is that fine?\n",
        encoding="utf-8",
    )
    assert read(path, MediaType.EML).text.endswith(
        "\n\nAnn wrote:\n\nI am new here.\n\n"
        "> When do we leave for the bay in the morning and who is driving?\n\nI can not.\n\n"
        "> 钥匙能拿到吗？\n\n- Is it far?\n\nWe leave at 7. Is that fine?"
    )


def _write_mixed(path: Path, *parts: str) -> Path:
    """Write an e-mail of several parts, each given as its headers and its content."""
    head = "Subject: FW: Roof\nFrom: a@x.org\nContent-Type: multipart/mixed; boundary=b\n\n"
    path.write_text(head + "".join(f"--b\n{part}\n" for part in parts) + "--b--\n", "utf-8")
    return path


def test_words_of_a_mail_are_kept_beside_a_footer_in_html(tmp_path: Path) -> None:
    path = _write_mixed(
        tmp_path / "a.eml",
        "Content-Type: text/plain\n\nI approve the repair.",
        "Content-Type: text/html\n\n<p>Internal.</p>",
    )
    assert read(path).text == "FW: Roof\n\nFrom: a@x.org\n\nI approve the repair.\n\nInternal."


@pytest.mark.parametrize("kinds", [("plain", "html"), ("html", "plain")])
def test_attached_mail_is_read_under_its_own_subject(
    tmp_path: Path, kinds: tuple[str, str]
) -> None:
    outer, inner = kinds
    path = _write_mixed(
        tmp_path / "a.eml",
        "Content-Type: message/rfc822\n\nSubject: Quote\nFrom: roofer@x.org\n"
        f"Content-Type: text/{inner}\n\n12,000 euros.",
        f"Content-Type: text/{outer}\n\nI approve.",
    )
    extracted = read(path)
    assert extracted.text == (
        "FW: Roof\n\nFrom: a@x.org\n\nI approve.\n\nQuote\n\nFrom: roofer@x.org\n\n12,000 euros."
    )
    assert [(h.level, h.title) for h in extracted.headings] == [(1, "FW: Roof"), (2, "Quote")]
    assert extracted.warnings == ()


@pytest.mark.parametrize(
    ("make", "name", "error"),
    [
        (slides.pptx_billion_laughs, "a.pptx", BrokenFile),
        (slides.pptx_bomb, "a.pptx", UnpacksToTooMuch),
        (slides.epub_reading_a_file, "a.epub", BrokenFile),
        (slides.epub_bomb, "a.epub", UnpacksToTooMuch),
        (slides.mail_of_many_parts, "a.eml", TooMuchInOne),
    ],
)
def test_hostile_files_are_refused_with_a_reason(
    tmp_path: Path, make: Callable[[Path], Path], name: str, error: type[PortalError]
) -> None:
    with pytest.raises(error):
        read(make(tmp_path / name))


def test_nested_mail_is_read_up_to_a_depth(tmp_path: Path) -> None:
    try:
        extracted = read(slides.deep_mail(tmp_path / "a.eml"))
    except BrokenFile:
        return
    assert extracted.text.startswith("deep")
    assert extracted.warnings == (mail.PARTS_LEFT_OUT,)


@pytest.mark.parametrize(("depth", "is_cut"), [(50, False), (51, True)])
def test_parts_of_a_mail_that_are_nested_too_deeply_cause_a_warning(
    tmp_path: Path, depth: int, is_cut: bool
) -> None:
    extracted = read(slides.mail_of_nested_parts(tmp_path / "a.eml", depth))
    assert ("innermost words" in extracted.text) is not is_cut
    assert extracted.warnings == ((mail.PARTS_LEFT_OUT,) if is_cut else ())
