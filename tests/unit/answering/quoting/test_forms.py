"""The form of quotations: sentences, lists with their introductions, table rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.answering.quoting.rendering import render
from portal.answering.quoting.statements import statements
from portal.domain.answering import ChatRequest, Turn
from portal.domain.documents.structure import Block, BlockKind
from tests.unit.answering.quoting.answers import OddsReader, Reader, ask, content_of, request
from tests.unit.answering.sources import source


def test_first_row_of_a_drawn_table_is_its_header_and_not_quoted_alone():
    table = source(1, "| Van | Summer |\n|-----|--------|\n| Wren | £98 |\n| Otter | £129 |")
    chat = ExtractiveChatModel(Reader("Van: Otter; Summer: £129"))
    asked = request("How much is the Otter in summer?", [table])
    content, _ = content_of(list(chat.stream(asked)), [table])
    assert "| Van | Summer |\n> | --- | --- |\n> | Otter | £129 |" in content
    assert "Wren" not in content


def test_drawn_box_without_rows_does_not_hide_other_statements():
    assert statements(source(1, text="Title\n\n+----+----+\n+----+----+\n\nA sentence."))


def test_row_is_read_with_the_figure_in_its_range():
    table = source(1, "| Amount | Who |\n|--|--|\n| up to $1,000 | lead |\n| over $1,000 | board |")
    chat = ExtractiveChatModel(Reader("Amount: $5k (over $1,000); Who: board"))
    asked = request("Who approves $5k?", [table])
    content, _ = content_of(list(chat.stream(asked)), [table])
    assert "| over \\$1,000 | board |" in content
    assert "lead" not in content


def test_column_of_a_month_answers_for_each_month_in_it():
    header = "Room | Code | Sleeps | Nov–Mar (EUR/night) | Jul–Oct (EUR/night) | Extra bed | Note"
    table = source(1, f"| {header} |\n|{'--|' * 7}\n| Attic | A1 | 3 | 48 | 96 | 12 | quiet |")
    chat = ExtractiveChatModel(
        Reader("Room: Attic; Code: A1; august: Jul–Oct (EUR/night) price: 96")
    )
    asked = request("What does the attic cost in August?", [table])
    content, _ = content_of(list(chat.stream(asked)), [table])
    assert "| Attic | A1 | 3 | 48 | **96** | 12 | quiet |" in content


def test_sentence_is_read_with_the_figure_before_its_clause():
    said = "Staff get 20 days; after 5 years 25 days; after 10 years 28 days."
    reader = Reader("six years: after 5 years 25 days")
    asked = request("How many days after six years?", [source(1, said)])
    content, _ = content_of(list(ExtractiveChatModel(reader).stream(asked)), [source(1, said)])
    assert said in content


def test_long_sentence_is_quoted_whole():
    words = " ".join(f"filler{n}" for n in range(300))
    one = source(1, f"{words} the annual leave of employees is 25 days {words}.")
    content, _ = content_of(ask("annual leave of employees", [one]), [one])
    assert one.text in content


def test_list_answers_through_its_introduction():
    text = (
        "The gateway has two serial ports.\n\nSupported protocols of the gateway:\n"
        "- Modbus RTU\n- OPC UA\n- PROFINET"
    )
    content, _ = content_of(ask("Which protocols does the gateway support?", [source(1, text)]), [])
    assert "Modbus RTU" in content
    assert "PROFINET" in content
    assert "serial ports" not in content


def test_introduction_that_wraps_is_shown_whole():
    text = (
        "If you also clicked on a link in a phishing message, follow these steps to report\n"
        "to the response team:\n\n- Write to the desk\n- Name the link\n- Wait for an answer"
    )
    question = "What are the steps to report a phishing message?"
    content, _ = content_of(ask(question, [source(1, text)]), [])
    assert "steps to report to the response team:\n>\n> - Write to the desk\n" in content
    contexts = {one.context for one in statements(source(1, text))}
    assert all(one.endswith("steps to report to the response team:") for one in contexts)


def test_nested_item_has_its_parent_items_as_context():
    text = (
        "植物\n\n1. 吊兰\n   - 养护难度：极低\n2. 虎尾兰\n   - 养护难度：中等\n     - 夏天每周浇水"
    )
    found = {text[one.start : one.end]: one.context for one in statements(source(1, text))}
    assert found["- 养护难度：极低"] == "植物\n吊兰"
    assert found["- 夏天每周浇水"] == "植物\n虎尾兰\n养护难度：中等"
    assert found["2. 虎尾兰"] == "植物"


@pytest.mark.parametrize("first", ["(1)", "（一）", "①"])
def test_introducing_item_is_quoted_with_its_own_items_only(first):
    text = (
        "4.3 每车至少装三个探头。\n4.4 有下列情形之一的，甲方有权拒收：\n"
        f"{first}外包装破损或受潮；\n"
        f"{first.translate(str.maketrans('1一①', '2二②'))}铅封缺失。\n4.5 争议另行协商。"
    )
    found = {text[one.start : one.end]: one for one in statements(source(1, text))}
    assert found[f"{first}外包装破损或受潮；"].context == "有下列情形之一的，甲方有权拒收："
    assert [one.depth for one in found.values()] == [0, 0, 1, 1, 0]
    for question in ("什么情况下甲方有权拒收？", "甲方有权拒收吗？"):
        content, _ = content_of(ask(question, [source(1, text)], "zh"), [source(1, text)])
        assert "拒收：" in content
        assert "外包装破损或受潮" in content
        assert "铅封缺失" in content
        assert "探头" not in content
        assert "另行协商" not in content


def test_item_that_breaks_off_is_quoted_with_the_items_that_complete_it():
    text = (
        "- Phones are fine for mail if the profile of the company is installed, and kept. "
        "The profile can\n  - wipe mail\n  - see the model\n- Phones are replaced every 3 years."
    )
    found = {text[one.start : one.end]: one.context for one in statements(source(1, text))}
    assert found["- wipe mail"] == "The profile can"
    asked = request("What can the firm do on my phone?", [source(1, text)])
    chat = ExtractiveChatModel(Reader("Phones are fine"))
    content, _ = content_of(list(chat.stream(asked)), [source(1, text)])
    assert "wipe mail" in content
    assert "see the model" in content
    assert "3 years" not in content


def test_nested_items_are_quoted_as_a_nested_list():
    text = "1. Close the vents\n2. Switch off:\n   - the pumps\n   - the lamps\n3. Sign the sheet"
    found = statements(source(1, text))
    shown = render(Quotation(source(1, text), tuple(found)))
    assert shown.splitlines()[1:4] == ["> 2. Switch off:", ">     - the pumps", ">     - the lamps"]
    assert shown.splitlines()[4] == "> 3. Sign the sheet"
    inner = render(Quotation(source(1, text), tuple(found[2:4])))
    assert inner.splitlines()[-2:] == ["> - the pumps", "> - the lamps"]


def test_sentence_is_quoted_with_what_happens_otherwise():
    for rule in ("值班期间不得饮酒。违者停班三个月。", "Bring a permit. Otherwise you pay a fine."):
        one = source(1, rule)
        language = "en" if rule.isascii() else "zh"
        asked = request(
            "值班可以饮酒吗？" if language == "zh" else "What to bring?", [one], language
        )
        chat = ExtractiveChatModel(Reader(rule[:5]))
        assert rule in content_of(list(chat.stream(asked)), [one])[0]


def test_mail_header_does_not_say_who_someone_is():
    mail = source(1, "To: Ida Moss <ida@nord.example>\n\nThe keys are at the desk.")
    chat = ExtractiveChatModel(Reader("Ida Moss"))
    for question, is_answer in (("Who is Ida Moss?", False), ("Who got this mail?", True)):
        content, _ = content_of(list(chat.stream(request(question, [mail]))), [mail])
        assert ("Ida Moss" in content) is is_answer


def test_row_with_a_name_in_another_column_does_not_have_the_number_of_that_person():
    table = "| Role | Name | Phone | Deputy |\n|--|--|--|--|\n"
    rows = "| Head | Ida Moss | 411 | Jo Reed |\n| Clerk | Jo Reed | 412 | Ida Moss |"
    asked = request("What is Jo Reed's phone number?", [source(1, table + rows)])
    content, _ = content_of(
        list(ExtractiveChatModel(Reader("Jo Reed")).stream(asked)), asked.sources
    )
    assert "| Clerk | Jo Reed | 412 |" in content
    assert "411" not in content


def test_question_of_two_sentences_above_its_answer_is_a_heading():
    text = "My internet is down. What now?\nUse a mobile hotspot. Tell your lead."
    found = statements(source(1, text))
    assert [text[one.start : one.end] for one in found] == [
        *("Use a mobile hotspot.", "Tell your lead.")
    ]
    assert {one.context for one in found} == {"My internet is down. What now?"}


def test_paragraphs_quoted_together_stay_separate():
    text = "The permit of the lab is 47-A.\n\nThat of the yard is 12-C. Both end in May."
    shown = render(Quotation(source(1, text), tuple(statements(source(1, text)))))
    assert shown == (
        "> The permit of the lab is 47-A.\n>\n> That of the yard is 12-C. Both end in May."
    )


def test_line_at_the_margin_below_a_list_is_not_part_of_the_last_item():
    text = "Trips\n\n- Taxi: up to 40 pounds.\n- Meals: 35 pounds a day.\nMarta repays trips."
    found = [text[one.start : one.end] for one in statements(source(1, text))]
    assert found[-2:] == ["- Meals: 35 pounds a day.", "Marta repays trips."]


def test_text_without_words_has_no_statements():
    assert statements(source(1, " \n ")) == []


def test_rule_between_sections_is_no_heading_of_the_list_below():
    text = "----------------\nFixed\n * Late fees are charged once.\n * Pins stay on land."
    contexts = {one.context for one in statements(source(1, text))}
    assert all("---" not in one and one.endswith("Fixed") for one in contexts)


def test_line_that_only_introduces_is_not_a_statement():
    for gap in ("\n\n", "\n"):
        text = f"On Wed, 7 Jan at 10:00, Bob wrote:{gap}We meet in room Kade."
        found = [text[one.start : one.end] for one in statements(source(1, text))]
        assert found == ["We meet in room Kade."]


def test_items_are_a_list_and_their_text_is_not_markup():
    text = "Steps:\n\n1. Open the lid\n2. - Press *both* buttons\n3. Close the lid"
    content, _ = content_of(ask("Which steps are there?", [source(1, text)]), [])
    assert (
        "> Steps:\n>\n> 1. Open the lid\n> 2. \\- Press \\*both\\* buttons\n> 3. Close the lid [1]"
        in content
    )


def test_task_box_becomes_a_sign_and_a_number_in_a_cell_is_not_a_list():
    text = "Before the first day:\n\n- [ ] Order a laptop\n- [x] Sign the contract"
    content, _ = content_of(ask("What is done before the first day?", [source(1, text)]), [])
    assert "> - ☐ Order a laptop\n> - ☑ Sign the contract" in content
    row = "Article | Price\nSocket set | 38.9"
    content, _ = content_of(ask("What does a socket set cost?", [source(1, row)]), [])
    assert "| Socket set | 38.9 |" in content


def test_weekday_in_other_words_selects_its_row():
    text = "星期 | 主菜\n周一 | 红烧肉\n周二 | 宫保鸡丁\n周三 | 清蒸鱼"
    content, _ = content_of(ask("星期二的主菜是什么？", [source(1, text)], "zh"), [])
    assert "宫保鸡丁" in content
    assert "清蒸鱼" not in content


def test_month_in_question_selects_the_rows_of_its_days():
    rows = ["Database | 12 June 2026", "Guide | 2026-06-30", "Review | 15 July 2026"]
    tasks = source(1, "\n".join(["Task | Due", *rows]))
    cells = (row.split(" | ") for row in rows)
    reader = OddsReader({f"Task: {task}; Due: {due}": 5.0 for task, due in cells})
    asked = request("What is due in June?", [tasks])
    content, _ = content_of(ExtractiveChatModel(reader).stream(asked), [tasks])
    assert "Database" in content
    assert "Guide" in content
    assert "Review" not in content


def test_numbers_that_a_list_would_change_are_quoted_as_lines():
    text = "1. Open the lid\n3. Close the lid"
    shown = render(Quotation(source(1, text), tuple(statements(source(1, text)))))
    assert shown == "> 1\\. Open the lid\n> 3\\. Close the lid"


def test_item_is_quoted_below_the_heading_that_gives_it_meaning():
    text = (
        "Not reimbursed\n\n- Laundry and the minibar\n- Fees for changed tickets\n- Parking fines"
    )
    starts = frozenset({0})
    content, _ = content_of(
        ask("Is the minibar reimbursed?", [source(1, text, heading_starts=starts)]), []
    )
    assert "> **Not reimbursed**\n>\n> - Laundry and the minibar [1]" in content
    assert "fines" not in content
    sentence = source(1, "Travel\n\nTrains are booked by the office.", heading_starts=starts)
    content, _ = content_of(ask("Who books trains?", [sentence]), [])
    assert "**Travel**" not in content


def test_question_that_names_a_row_gets_only_that_row():
    text = "City | Staff | Manager\nBerlin | 140 | 180\nLeipzig | 90 | 120\nAll other | 70 | 95"
    content, _ = content_of(
        ask("What may a manager spend a night in Berlin?", [source(1, text)]), []
    )
    assert "| Berlin | 140 | 180 |" in content
    assert "Leipzig" not in content


def test_question_that_names_a_row_in_another_language_gets_only_that_row():
    rows = ["London | $260", "New York | $320", "Elsewhere | $150"]
    table = "\n".join(["City | Hotel limit", *rows])
    hotels = replace(source(1, table, title="Travel"), language="en")
    cells = (row.split(" | ") for row in rows)
    reader = OddsReader({f"City: {city}; Hotel limit: {limit}": 9.0 for city, limit in cells})
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(request("住酒店在纽约最多多少钱？", [hotels], "zh")),
        [hotels],
    )
    assert "New York" in content
    assert "London" not in content


def test_rows_without_a_shared_word_of_the_best_row_are_not_quoted():
    text = (
        "Level | Examples\nPublic | job offers\nSecret | new contracts\nStaff | lists\nTop | code"
    )

    class Reader:
        def read_answers(self, question, statements, *_):
            return np.array([3.0, 3.0, -9.0, -9.0])

    asked = request("Who may see contracts?", [source(1, text)])
    content, _ = content_of(ExtractiveChatModel(Reader()).stream(asked), asked.sources)
    assert "| Secret |" in content
    assert "| Public |" not in content


def test_sentence_that_refers_to_a_table_is_quoted_with_it():
    rows = "Service | Leave\n1 to 5 years | 10 days\nabove 5 years | 15 days"
    for said, is_whole in (("as in the table below", True), ("as a table would show", False)):
        leave = source(1, f"# Leave\n\nAnnual leave depends on service, {said}.\n\n{rows}")
        content, _ = content_of(ask("What does annual leave depend on?", [leave]), [leave])
        assert "depends on service" in content
        assert ("| above 5 years | 15 days |" in content) is is_whole


def test_code_is_quoted_in_its_lines_below_the_step_that_introduces_it():
    code = "wg-quick up *nord*\nping -c 3 10.20.0.1 [2]"
    text = f"1. Install it.\n2. Start the tunnel:\n\n{code}\n\nIt uses port 51820."
    start = text.index(code)
    tunnel = source(1, text, blocks=(Block(BlockKind.CODE, start, start + len(code)),))
    shown = ">     wg-quick up *nord*\n>     ping -c 3 10.20.0.1 (2)\n>\n> ["
    content, _ = content_of(ask("How do I start the tunnel?", [tunnel]), [tunnel])
    assert f"> 2. Start the tunnel: [1]\n\n{shown}" in content
    content, _ = content_of(ask("ping?", [tunnel]), [tunnel])
    assert f"> 2. Start the tunnel: [1]\n\n{shown}" in content
    assert "port" not in content


def test_footnote_is_not_below_the_last_heading():
    text = "# Term\n\nThree years.\n\n1. Fees are due later on holidays."
    note = Block(BlockKind.FOOTNOTE, text.index("1."), len(text))
    *_, last = statements(source(1, text, blocks=(note,)))
    assert text[last.start :] == "1. Fees are due later on holidays."
    assert (last.context, last.heading) == ("", "")


@pytest.mark.parametrize(
    ("odds", "is_whole"), [((4.0, 4.0, -4.0), True), ((4.0, -4.0, -4.0), False)]
)
def test_table_is_quoted_whole_if_most_rows_answer(odds, is_whole):
    text = "City | Hotel a night\nBerlin | 140\nLeipzig | 90\nAll other | 70"

    class Reader:
        def read_answers(self, question, statements, *_):
            return np.array(odds)

    request = ChatRequest(
        "", (Turn("user", "?"),), "What does a hotel cost?", "en", [source(1, text)]
    )
    content, _ = content_of(ExtractiveChatModel(Reader()).stream(request), request.sources)
    assert "| Berlin | 140 |" in content
    assert ("| All other | 70 |" in content) is is_whole


def test_clauses_divided_by_semicolons_are_quoted_together():
    late = source(1, "店长每天点名。迟到十分钟以内不扣钱；迟到更久的，每次扣 20 元。按月结算。")
    reader = OddsReader({"迟到十分钟以内不扣钱；": 7.0})
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(request("迟到怎么扣钱？", [late], "zh")), [late]
    )
    assert "> 迟到十分钟以内不扣钱；迟到更久的，每次扣 20 元。 [1]" in content


def test_how_question_gets_all_numbered_steps_but_one_item_of_other_lists():
    leave = source(1, "Leave:\n- sick leave is paid at 80 percent\n- wedding leave is ten days")
    content, _ = content_of(ask("How do they pay sick leave?", [leave]), [leave])
    assert "80 percent" in content
    assert "wedding" not in content
    steps = source(1, "Sick leave:\n1. call your lead\n2. send the sick note for the leave")
    content, _ = content_of(ask("How do I take sick leave?", [steps]), [steps])
    assert "call your lead" in content
    assert "send the sick note" in content


def test_sentence_that_mentions_the_table_below_introduces_it():
    text = (
        "# Hotels\n\nThe table gives the max for a night, in EUR. Book early.\n\n"
        "Grade | Cities\nIntern | 120"
    )
    *_, row = statements(source(1, text))
    assert row.context.endswith("The table gives the max for a night, in EUR.")
    *_, row = statements(source(1, text.replace("The table gives", "We pay")))
    assert "We pay" not in row.context


def test_closing_of_a_letter_is_not_a_statement():
    text = "The office is closed on 24 December.\n\nBest regards\nJonas"
    found = [text[one.start : one.end] for one in statements(source(1, text))]
    assert "Best regards" not in found


def test_keyword_that_names_a_section_is_answered_with_the_section():
    text = (
        "二、年休假\n\n工龄 | 年假天数\n1至3年 | 8天\n4年以上 | 12天\n\n"
        "结转的年假在6月30日前休完。\n\n三、病假\n\n病假须提交证明，不占用年假。"
    )
    leave = source(1, text, heading_starts=frozenset({0, text.index("三、病假")}))
    other = source(2, "年假前请交接工作。", title="交接指南")
    content, order = content_of(ask("年假", [leave, other], "zh"), [leave, other])
    assert "| 1至3年 | 8天 |" in content
    assert "结转的年假" in content
    assert "证明" not in content
    assert 2 not in order
    content, _ = content_of(ask("年假什么时候休完？", [leave, other], "zh"), [leave, other])
    assert "8天" not in content


@pytest.mark.parametrize(
    "letter",
    [
        "Dear all,\n\nThe office is closed on 24 December.\n\nBest regards\nJonas Lind\nFacilities",
        "各位同事：\n\n二月八日由客服部值班。\n\n周敏\n行政部",
    ],
)
def test_salutation_and_signature_of_a_letter_are_not_quoted(letter):
    found = [letter[one.start : one.end] for one in statements(source(1, letter))]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Who is the director?\nAnn Berg", ["Ann Berg"]),
        ("谁负责报销？\n周敏", ["周敏"]),
        (
            "Contacts are below.\nAnn Berg\nJo Lind",
            ["Contacts are below.", "Ann Berg", "Jo Lind"],
        ),
        ("Dear all,\n\nWho leads the fair?\nAnn Berg", ["Ann Berg"]),
    ],
)
def test_names_that_are_not_signatures_are_quoted(text, said):
    assert [text[one.start : one.end] for one in statements(source(1, text))] == said


def test_chunk_of_many_short_lines_is_read_quickly():
    """Not in quadratic time: a chunk may have ten thousand lines."""
    assert len(statements(source(1, "Dear all,\n" + "Red\n" * 10_000))) > 0


def test_telephone_number_below_a_letter_is_quoted():
    letter = "Dear Ann,\n\nThe keys are here.\n\nRegards\nJonas Lind\nTel. 030 1234"
    found = [letter[one.start : one.end] for one in statements(source(1, letter))]
    assert found == ["The keys are here.", "Tel. 030 1234"]


def test_a_word_above_a_list_is_its_heading_and_not_quoted():
    text = (
        "9. Summer party\nIt is on 11 July.\n\nDecisions\n- Two people check medicines\n- No dogs"
    )
    found = {text[one.start : one.end]: one for one in statements(source(1, text))}
    assert "Decisions" not in found
    assert found["- No dogs"].heading == "Decisions"


def test_row_is_quoted_beside_an_equally_likely_sentence():
    text = (
        "假期 | 天数\n年假 | 满一年7天，最多15天\n病假 | 10天\n\n"
        "年假可结转最多5天。\n\n请年假须提前两天申请。"
    )
    one = source(1, text, title="制度")
    odds = {"年假可结转最多5天。": 5.0, "假期: 年假; 天数: 满一年7天，最多15天": 4.0}
    content, _ = content_of(
        ExtractiveChatModel(OddsReader(odds)).stream(request("年假几天？", [one], "zh")), [one]
    )
    assert "结转" in content
    assert "15天" in content
    assert "提前" not in content
