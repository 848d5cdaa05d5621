from __future__ import annotations

import time

import pytest

from portal.domain.documents import ExtractedText
from portal.domain.documents.structure import BlockKind
from portal.ingest.chunking import split
from portal.ingest.formats.texts.text_outline import text_headings

BODY = "工作满一年的员工，每年有十天年假，可以结转五天。\n"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        (f"第一章 总则\n{BODY}第一节 目的\n{BODY}第二章 假期\n{BODY}",
         [(1, "第一章 总则"), (2, "第一节 目的"), (1, "第二章 假期")]),
        (f"一、总则\n{BODY}（一）目的\n{BODY}（二）范围\n{BODY}二、假期\n{BODY}",
         [(1, "一、总则"), (2, "（一）目的"), (2, "（二）范围"), (1, "二、假期")]),
        ("1.1 Scope\n\nFor all.\n\n1.1.1  Exceptions\n\nNone.\n\n1.2 Leave\nTen days.\n",
         [(1, "1.1 Scope"), (2, "1.1.1  Exceptions"), (1, "1.2 Leave")]),
        ("Handbook\n========\n\nLeave\n-----\n\nTen days.\n\n手册\n----\n\n十天。\n",
         [(1, "Handbook"), (2, "Leave"), (2, "手册")]),
        ("=== 一、进展 ===\n\n好。\n\n--- Costs, 2026 ---\n\nNone.\n\n== 二、会务 ==\n\n有。\n",
         [(1, "一、进展"), (2, "Costs, 2026"), (1, "二、会务")]),
        ("【报销】\n\n每月一次。\n\n【年假】\n十天。\n", [(1, "报销"), (1, "年假")]),
        ("# Handbook\n\nText.\n\n## Leave ##\n\nTen days.\n", [(1, "Handbook"), (2, "Leave")]),
        ("TERMS\n2026\n\n1. FEES\n\n1.1 Ten.\n\n2. NOTICE, LEAVING\n\nOne.\n\nANNEX 1\n\nA.\n",
         [(1, "1. FEES"), (1, "2. NOTICE, LEAVING"), (1, "ANNEX 1")]),
        ("WHO MAY DRIVE\n\n1. Age\n\nFrom 21 on.\n\n2. Licence\n\nTwo years.\n\nABROAD\n\nNo.\n",
         [(1, "WHO MAY DRIVE"), (2, "1. Age"), (2, "2. Licence"), (1, "ABROAD")]),
        (f"{'=' * 40}\nMEETING 14 - Tuesday\nPresent: A\n\n1. Status\nGood\n\n2. Risks\n- rain\n",
         [(1, "MEETING 14 - Tuesday"), (2, "1. Status"), (2, "2. Risks")]),
        (f"{'=' * 20}\nHours\n\nAt nine.\n\n{'=' * 20}\n会议\n出席：甲\n\n{'=' * 20}\nFees\n",
         [(1, "Hours"), (1, "会议"), (1, "Fees")]),
        (f"{'=' * 20}\nOpening hours\n----\nAt nine.\n", [(1, "Opening hours")]),
        (f"{'-' * 60}\n2. FIRST DAY\n{'-' * 60}\n2.1 Arrive at nine.\n", [(1, "2. FIRST DAY")]),
        (f"{'-' * 60}\n5.3.1   20 May 2025\n{'-' * 60}\n * Codes expire in time.\n",
         [(1, "5.3.1   20 May 2025")]),
        (f"{'-' * 30}\nItem     Price\n{'-' * 30}\nOtter    129\nVan      450\n", []),
        # A table of contents before the text.
        (f"目录\n第一章 总则\n第一节 目的\n第一章 总则\n{BODY}第一节 目的\n{BODY}",
         [(1, "第一章 总则"), (2, "第一节 目的")]),
    ],
)  # fmt: skip
def test_lines_set_apart_are_headings(text: str, headings: list[tuple[int, str]]) -> None:
    found = text_headings(text)
    assert [(heading.level, heading.title) for heading in found] == headings
    assert all(heading.title in text[heading.start :][:60] for heading in found)


@pytest.mark.parametrize(
    "text",
    [
        "一、发票\n二、行程单\n三、住宿清单\n",
        "第一章 总则 ...... 1\n\n第二章 假期 ...... 4\n",
        "一、工作满一年的员工每年有十天年假。\n",
        "第一条 为了规范假期，制定本办法。\n",
        f"这一行因为排版的宽度不够而在这里断开，请参看本手册中的下面\n第三章 假期 的规定。{BODY}",
        "Version 1.2\n1.2.3   pdf   new command\n",
        "# a comment\nrequests==2.0\n",
        "1. Buy milk\n\n2. Buy eggs\n\n3. Call Ann\n\nDone.\n",
        "1. Buy milk\nand bread\n\nDone.\n",
        "1. Remove the lid\n   Keep the screws.\n\n2. Dry the filter\n   An hour is enough.\n",
        "Item 1.\n1.4 Send your details. Forms that come after the 18th of\n    the month wait.\n",
        "Item 1.\n1.5 Agree three goals for the\n    90 days.\n1.6 Meet often, for\n    an hour.\n",
        "SELECT * FROM T\n\nRows.\n",
        "URGENT\nRead this first.\n",
        "Name  Age\n----  ---\nAda   36\n",
        "Yours\n\n-------------------------------------------------------------------\nDesk 4\n",
        "One sentence that ends here.\n----------------------------\n",
        f"{'=' * 20}\nThe deposit for the hall is 500 EUR and must\nbe paid before arrival.\n",
        f"{'=' * 20}\n押金五百元，入住前付清\n否则不予保留。\n",
        f"{'=' * 20}\n2026-01-01 10:00:00 start\n2026-01-01 10:00:09 end\n",
        f"{'=' * 20}\nFrom: Anna Berg\nTo: Ben Cole\n",
    ],
)
def test_lists_tables_and_sentences_are_not_headings(text: str) -> None:
    assert text_headings(text) == ()


def test_underline_belongs_to_its_heading() -> None:
    text = f"Leave\n=====\n\n{'Ten days a year. ' * 60}\n\nDesk\n----\n"
    chunks = split(ExtractedText(text=text, extractor="text", headings=text_headings(text)))
    first = chunks[0].blocks[0]
    assert (first.kind, first.end) == (BlockKind.HEADING, len("Leave\n====="))
    assert not any(chunk.content.startswith(("=", "Desk")) for chunk in chunks)


@pytest.mark.parametrize(
    "unit",
    [
        "1.1 x\n",
        "---\n",
        "一、甲\n",
        "第一章 甲\n",
        "\n",
        "# a\n\n",
        "== a ==\n",
        "==a",
        "== ",
        "【甲】\n",
        "【甲",
        f"{'=' * 20}\na\n",
    ],
)
def test_time_is_linear_for_any_text(unit: str) -> None:
    started = time.process_time()
    text_headings(unit * (500_000 // len(unit)))
    assert time.process_time() - started < 5


def test_numbered_and_underlined_line_is_one_heading() -> None:
    text = "手册\n====\n\n一、年假\n--------\n\n十天。\n\n二、病假\n--------\n\n三天。\n"
    assert [(h.level, h.title) for h in text_headings(text)] == [
        (1, "手册"), (2, "一、年假"), (2, "二、病假"),
    ]  # fmt: skip
