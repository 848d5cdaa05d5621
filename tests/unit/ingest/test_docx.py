from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from portal.domain.documents import MediaType
from portal.domain.documents.structure import BlockKind
from portal.errors import BrokenFile, EmptyFile, ExtractionTooLarge, TooMuchInOne
from portal.ingest.formats import docx
from tests.factories.files import office
from tests.unit.ingest import reading

HANDBOOK_TEXT = """\
知识门户操作手册

每个答案都注明出处。

安装

1. 下载软件包
  - 校验 SHA-256
2. 运行安装程序

部件 | 数量
风扇 | fan | 6

if ready:
    start()

修订中加入的文字"""


read = partial(reading.read, media_type=MediaType.DOCX)


def test_document_reads_as_word_shows_it(tmp_path: Path) -> None:
    extracted = read(office.write_docx(tmp_path / "a.docx"))
    assert extracted.text == HANDBOOK_TEXT
    assert extracted.warnings == ()
    assert [(h.level, h.title) for h in extracted.headings] == [
        (1, "知识门户操作手册"),
        (2, "安装"),
    ]
    for heading in extracted.headings:
        assert extracted.text.startswith(heading.title, heading.start)


def test_document_with_a_picture_without_description_is_read(tmp_path: Path) -> None:
    extracted = read(office.docx_with_picture(tmp_path / "a.docx"))
    assert extracted.text == "The lamp is drawn below.\n\nIt burns oil."


def test_bold_lines_above_text_are_headings(tmp_path: Path) -> None:
    def bold(text: str) -> str:
        return f"<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>{text}</w:t></w:r></w:p>"

    cells = f"<w:tc>{bold('费用')}{office.paragraph('元')}</w:tc><w:tc>{bold('住宿')}</w:tc>"
    body = "".join([
        bold("一、总则"), office.paragraph("适用于全体。"),
        bold("注意："), office.paragraph("先申请。"),
        bold("不得转让。"), office.paragraph("违者收回。"), bold("封面"), bold("二、年假"),
        f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>",
    ])  # fmt: skip
    extracted = read(office.write_docx(tmp_path / "a.docx", body))
    assert [heading.title for heading in extracted.headings] == ["一、总则", "封面", "二、年假"]


def test_interrupted_list_continues_its_numbers(tmp_path: Path) -> None:
    body = "".join([
        office.paragraph("Stop the press.", level=0), office.paragraph("Wait.", level=0),
        office.paragraph("Ten minutes at least."), office.table(("Press", "A")),
        office.paragraph("Open it.", level=0), office.paragraph("Use gloves", level=1),
    ])  # fmt: skip
    assert read(office.write_docx(tmp_path / "a.docx", body)).text == (
        "1. Stop the press.\n2. Wait.\n\nTen minutes at least.\n\nPress | A\n\n"
        "3. Open it.\n  - Use gloves"
    )


def _parts_of_list_styles(*names: str) -> dict[str, str]:
    """Return the parts that define these styles of Word, each as a list of one level."""
    styles = numbering = ""
    for number, name in enumerate(names):
        style = name.replace(" ", "")
        kind = "bullet" if "Bullet" in name else "decimal"
        styles += (
            f'<w:style w:type="paragraph" w:styleId="{style}"><w:name w:val="{name}"/></w:style>'
        )
        numbering += (
            f'<w:abstractNum w:abstractNumId="{number}"><w:lvl w:ilvl="0">'
            f'<w:numFmt w:val="{kind}"/><w:pStyle w:val="{style}"/></w:lvl></w:abstractNum>'
        )
    return {
        "word/styles.xml": f'<w:styles xmlns:w="{office.MAIN}">{styles}</w:styles>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{office.MAIN}">{numbering}</w:numbering>',
    }


def test_styles_of_nested_lists_nest_their_items(tmp_path: Path) -> None:
    names = ["List Number", "List Number 2", "List Bullet 2", "List Bullet 3"]
    body = "".join([
        office.paragraph("Close the vents", style="ListNumber"),
        office.paragraph("Switch off", style="ListNumber"),
        office.paragraph("the pumps", style="ListNumber2"),
        office.paragraph("the lamps", style="ListNumber2"),
        office.paragraph("Sign", style="ListNumber"),
        office.paragraph("the sheet", style="ListBullet2"),
        office.paragraph("in ink", style="ListBullet3"),
    ])  # fmt: skip
    path = office.write_docx(tmp_path / "a.docx", body, parts=_parts_of_list_styles(*names))
    extracted = read(path)
    assert extracted.text == (
        "1. Close the vents\n2. Switch off\n  1. the pumps\n  2. the lamps\n3. Sign\n"
        "  - the sheet\n    - in ink"
    )
    assert [block.level for block in extracted.blocks] == [1, 1, 2, 2, 1, 2, 3]


def test_empty_items_count_as_in_word_and_deleted_ones_do_not(tmp_path: Path) -> None:
    def item(text: str) -> str:
        return office.paragraph(text, level=0)

    deleted = item("Old").replace("<w:r>", "<w:del><w:r>").replace("</w:r>", "</w:r></w:del>")
    deleted = deleted.replace("</w:pPr>", "<w:rPr><w:del/></w:rPr></w:pPr>")
    body = "".join([
        deleted, item("First"), item(""), item("Third"), office.paragraph("Wait."), item("Fourth"),
    ])  # fmt: skip
    text = read(office.write_docx(tmp_path / "a.docx", body)).text
    assert text == "1. First\n3. Third\n\nWait.\n\n4. Fourth"


def _level(depth: int, kind: str, text: str, more: str = "") -> str:
    """Return a level of a list; `more` may change its start, style and so on."""
    start = "" if "w:start " in more else '<w:start w:val="1"/>'
    return (
        f'<w:lvl w:ilvl="{depth}">{start}<w:numFmt w:val="{kind}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def _numbering(*levels: str, nums: str = "") -> dict[str, str]:
    """Return the part with an abstract list of these levels, and list 1 that is based on it."""
    base = f'<w:abstractNum w:abstractNumId="0">{"".join(levels)}</w:abstractNum>'
    first = '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    xml = f'<w:numbering xmlns:w="{office.MAIN}">{base}{first}{nums}</w:numbering>'
    return {"word/numbering.xml": xml}


def _items(*levels: int) -> str:
    return "".join(office.paragraph(f"p{place}", level=at) for place, at in enumerate(levels, 1))


@pytest.mark.parametrize(
    ("levels", "depths", "text"),
    [
        ([_level(0, "chineseCounting", "第%1条", '<w:start w:val="9"/>')], (0, 0, 0),
         "第九条 p1\n第十条 p2\n第十一条 p3"),
        ([_level(0, "decimal", "%1."), _level(1, "decimal", "%1.%2")], (0, 1, 1, 0, 1),
         "1. p1\n  1.1 p2\n  1.2 p3\n2. p4\n  2.1 p5"),
        ([_level(0, "lowerLetter", "(%1)", '<w:start w:val="26"/>')], (0, 0), "(z) p1\n(aa) p2"),
        ([_level(0, "upperRoman", "%1)")], (0, 0, 0, 0), "I) p1\nII) p2\nIII) p3\nIV) p4"),
        ([_level(0, "decimalZero", "%1"), _level(1, "decimalEnclosedCircle", "%2")], (0, 1, 1),
         "01 p1\n  ① p2\n  ② p3"),
        # The articles of a law are counted through all its chapters.
        ([_level(0, "chineseCountingThousand", "第%1章"),
          _level(1, "chineseCountingThousand", "第%2条", '<w:lvlRestart w:val="0"/>')],
         (0, 1, 1, 0, 1), "第一章 p1\n  第一条 p2\n  第二条 p3\n第二章 p4\n  第三条 p5"),
        ([_level(0, "upperRoman", "%1."), _level(1, "decimal", "%1.%2", "<w:isLgl/>")],
         (0, 0, 1), "I. p1\nII. p2\n  2.1 p3"),
        ([_level(0, "chineseLegalSimplified", "%1、", '<w:start w:val="10"/>')], (0, 0),
         "壹拾、 p1\n壹拾壹、 p2"),
        ([_level(0, "none", "")], (0, 0), "p1\np2"),
        ([_level(0, "bullet", "%1"), _level(1, "decimal", "“%2”")], (0, 1), "- p1\n  “1” p2"),
    ],
)  # fmt: skip
def test_items_have_the_labels_that_word_shows(
    tmp_path: Path, levels: list[str], depths: tuple[int, ...], text: str
) -> None:
    path = office.write_docx(tmp_path / "a.docx", _items(*depths), parts=_numbering(*levels))
    extracted = read(path)
    assert extracted.text == text
    assert [block.level for block in extracted.blocks] == [depth + 1 for depth in depths]


def test_lists_on_one_base_count_together_until_one_starts_again(tmp_path: Path) -> None:
    def num(number: int, more: str = "") -> str:
        return f'<w:num w:numId="{number}"><w:abstractNumId w:val="0"/>{more}</w:num>'

    restart = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    own = f'<w:lvlOverride w:ilvl="0">{_level(0, "upperLetter", "%1.")}</w:lvlOverride>'
    parts = _numbering(
        _level(0, "decimal", "%1."), nums=num(2) + num(3, restart) + num(4, own + own)
    )
    body = "".join(
        _items(0).replace('numId w:val="1"', f'numId w:val="{number}"') + office.paragraph("-")
        for number in (1, 2, 3, 3, 4)
    )
    text = read(office.write_docx(tmp_path / "a.docx", body, parts=parts)).text
    assert text.replace("\n\n-", "").split("\n\n") == [
        "1. p1", "2. p1", "5. p1", "6. p1", "G. p1",
    ]  # fmt: skip


def test_headings_have_the_numbers_of_their_styles(tmp_path: Path) -> None:
    """Word numbers paragraphs by their style too, or by the one that it is based on."""

    def style(key: str, name: str, more: str) -> str:
        return (
            f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/>{more}'
            "</w:style>"
        )

    number = '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
    styles = (
        style("1", "heading 1", number)
        + style("2", "heading 2", number.replace("<w:numId", '<w:ilvl w:val="1"/><w:numId'))
        + style("A", "Article", '<w:basedOn w:val="B"/>')
        + style("B", "Clause", number + '<w:basedOn w:val="A"/>')
    )
    parts = _numbering(
        _level(0, "chineseCountingThousand", "第%1章", '<w:pStyle w:val="1"/>'),
        _level(1, "decimal", "%1.%2", '<w:isLgl/><w:suff w:val="nothing"/>'),
    ) | {"word/styles.xml": f'<w:styles xmlns:w="{office.MAIN}">{styles}</w:styles>'}
    unnumbered = office.paragraph("附则", style="1").replace(
        "</w:pPr>", '<w:numPr><w:numId w:val="0"/></w:numPr></w:pPr>'
    )
    body = "".join([
        office.paragraph("总则", style="1"), office.paragraph("目的", style="2"), unnumbered,
        office.paragraph("年假", style="1"), office.paragraph("天数", style="2"),
        office.paragraph("五天。", style="A"),
    ])  # fmt: skip
    extracted = read(office.write_docx(tmp_path / "a.docx", body, parts=parts))
    assert [(heading.level, heading.title) for heading in extracted.headings] == [
        (1, "第一章 总则"), (2, "1.1目的"), (1, "附则"), (1, "第二章 年假"), (2, "2.1天数"),
    ]  # fmt: skip
    assert extracted.text.endswith("第三章 五天。")


def test_cells_have_their_labels(tmp_path: Path) -> None:
    """Word numbers the rows of tables by empty cells."""
    parts = _numbering(_level(0, "decimal", "%1"), _level(1, "chineseCounting", "（%2）"))
    cells = "".join(
        f"<w:tr><w:tc>{office.paragraph('', level=0)}</w:tc><w:tc>{_items(1, 1)}</w:tc></w:tr>"
        for _ in range(2)
    )
    path = office.write_docx(tmp_path / "a.docx", f"<w:tbl>{cells}</w:tbl>", parts=parts)
    assert read(path).text == "1 | （一） p1; （二） p2\n2 | （一） p1; （二） p2"


def test_hostile_numbering_is_read_cheaply(tmp_path: Path) -> None:
    """Numbers without an end, links in a circle, and labels longer than all of the text."""
    linked = (
        '<w:abstractNum w:abstractNumId="7"><w:numStyleLink w:val="L"/></w:abstractNum>'
        '<w:num w:numId="7"><w:abstractNumId w:val="7"/></w:num>'
    )
    parts = _numbering(
        _level(0, "upperLetter", "%1." + "x" * 100_000, '<w:start w:val="999999"/>'),
        _level(1, "upperRoman", "%2" * 100_000, '<w:start w:val="99999999999"/>'),
        _level(2, "nonsense", "%9%8%3&lt;b&gt;&quot;", '<w:start w:val="x"/>'),
        _level(77, "decimal", "%1"),
        nums=linked,
    ) | {
        "word/styles.xml": f'<w:styles xmlns:w="{office.MAIN}"><w:style w:type="numbering" '
        'w:styleId="L"><w:pPr><w:numPr><w:numId w:val="7"/></w:numPr></w:pPr></w:style></w:styles>'
    }
    body = _items(*(0, 1, 2) * 2_000) + _items(0).replace('numId w:val="1"', 'numId w:val="7"')
    text = read(office.write_docx(tmp_path / "a.docx", body, parts=parts)).text
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0].startswith("999999.xxx")
    assert lines[2] == '0<b>" p3'
    assert max(map(len, lines)) < 300
    assert lines[-1] == "p1"


def test_list_that_begins_with_a_picture_does_not_take_the_number_of_the_next(
    tmp_path: Path,
) -> None:
    picture = office.paragraph("", level=0).replace("<w:t ", "<w:br/><w:drawing/><w:t ")
    body = "".join([
        office.paragraph("One", level=0), office.paragraph("Wait."), picture,
        office.paragraph("Three", level=0),
    ])  # fmt: skip
    text = read(office.write_docx(tmp_path / "a.docx", body)).text
    assert text.endswith("3. Three")


def test_results_of_fields_and_words_below_ruby_are_read(tmp_path: Path) -> None:
    run = "<w:r><w:t>{}</w:t></w:r>"
    field = f'<w:fldSimple w:instr=" SEQ Table ">{run.format(3)}</w:fldSimple>'
    ruby = (
        f"<w:r><w:ruby><w:rt>{run.format('zhāng')}</w:rt>"
        f"<w:rubyBase>{run.format('张')}</w:rubyBase></w:ruby></w:r>"
    )
    body = f"<w:p>{run.format('表')}{field}{run.format('：')}{ruby}{run.format('伟')}</w:p>"
    assert read(office.write_docx(tmp_path / "a.docx", body)).text == "表3：张伟"


def test_notes_are_at_the_end_of_their_sections(tmp_path: Path) -> None:
    def note(number: int) -> str:
        return f'<w:footnote w:id="{number}">{office.paragraph(f"Note {number}.")}</w:footnote>'

    def sentence(text: str, number: int) -> str:
        return office.paragraph(text).replace(
            "</w:p>", f'<w:r><w:footnoteReference w:id="{number}"/></w:r></w:p>'
        )

    body = "".join([
        office.paragraph("Scope", style="1"), sentence("Parts.", 7), office.paragraph("Dates."),
        office.paragraph("Price", style="1"), sentence("Fees.", 8), sentence("Taxes.", 9),
    ])  # fmt: skip
    notes = "".join(map(note, (7, 8, 9)))
    parts = {
        "word/footnotes.xml": f'<w:footnotes xmlns:w="{office.MAIN}">{notes}</w:footnotes>',
    }
    extracted = read(office.write_docx(tmp_path / "a.docx", body, parts=parts))
    assert extracted.text == (
        "Scope\n\nParts.[1]\n\nDates.\n\n1. Note 7.\n\n"
        "Price\n\nFees.[2]\n\nTaxes.[3]\n\n2. Note 8.\n3. Note 9."
    )
    assert [block.kind for block in extracted.blocks] == [BlockKind.FOOTNOTE] * 3


def test_skipped_formulas_cause_a_warning(tmp_path: Path) -> None:
    path = office.write_docx(tmp_path / "a.docx", office.paragraph("Energy:") + office.FORMULA)
    (warning,) = read(path).warnings
    assert "formulas" in warning


@pytest.mark.parametrize(
    ("words", "is_told"),
    [
        ("合同编号 4711，机密", True),
        ("Confidential", True),
        ("Page 3 of 12", False),
        ("第 3 页 共 12 页", False),
        ("all of it", False),  # The text contains it as well.
        ("", False),
    ],
)
def test_skipped_headers_cause_a_warning(tmp_path: Path, words: str, is_told: bool) -> None:
    header = f'<w:hdr xmlns:w="{office.MAIN}">{office.paragraph(words)}</w:hdr>'
    parts = {"word/header1.xml": header}
    path = office.write_docx(tmp_path / "a.docx", office.paragraph("all of it"), parts=parts)
    assert read(path).warnings == ((docx.HEADERS_LEFT_OUT,) if is_told else ())


def test_styles_in_the_file_hide_nothing(tmp_path: Path) -> None:
    """By default, mammoth follows a style map in the file that makes paragraphs invisible."""
    path = office.write_docx(
        tmp_path / "a.docx", office.paragraph("all of it"), parts={"mammoth/style-map": "p => !"}
    )
    assert read(path).text == "all of it"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (office.docx_reading_a_file, BrokenFile),
        (lambda path: office.docx_reading_a_file(path, encoding="utf-16"), BrokenFile),
        (office.docx_billion_laughs, BrokenFile),
        (office.docx_bomb, ExtractionTooLarge),
        (office.docx_that_lies_about_its_size, BrokenFile),
        (lambda path: office.write_docx(path, "<w:tbl><w:tr><w:tc>" * 3_000), TooMuchInOne),
        (lambda path: office.write_docx(path, parts={"word/document.xml": "no xml"}), BrokenFile),
        (lambda path: office.zip_file(path, ("[Content_Types].xml",)), BrokenFile),
        (lambda path: office.write_docx(path, office.paragraph(" ")), EmptyFile),
    ],
)
def test_hostile_document_is_rejected_cheaply(
    tmp_path: Path, make: Callable[[Path], Path], error: type[Exception]
) -> None:
    path = make(tmp_path / "a.docx")
    started = time.monotonic()
    with pytest.raises(error):
        read(path)
    assert time.monotonic() - started < 20
