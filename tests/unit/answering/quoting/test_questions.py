"""What questions ask for, and what can answer them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from portal.answering.quoting.judging.matching import shares_of_words
from portal.answering.quoting.questions import (
    as_question,
    asks_for_list,
    content_words,
    find_dates,
    without_greeting,
    without_number_words,
)
from portal.answering.quoting.rules.kinds import Wanted, can_hold, find_wanted
from portal.answering.quoting.statements import statements
from portal.domain.documents.structure import Block, BlockKind
from tests.unit.answering.sources import source

HANDBOOK = """第一章 休假

年假按工龄计算。

工龄 | 年假天数
1–3 年 | 10 天
3 年以上 | 15 天

请假时请提供：
- 起止日期
- 交接人

病假须提交证明。"""


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("年假有几天？", Wanted.DURATION),
        ("How many days of leave do I get?", Wanted.DURATION),
        ("住宿每晚最多报销多少钱？", Wanted.MONEY),
        ("How much does the licence cost?", Wanted.MONEY),
        ("公司有多少员工？", Wanted.COUNT),
        ("How old was he when he retired?", Wanted.COUNT),
        ("报销单什么时候提交？", Wanted.TIME),
        ("When was the office opened?", Wanted.TIME),
        ("特斯拉是在哪里出生的？", Wanted.PLACE),
        ("Where do I park?", Wanted.PLACE),
        ("谁审批出差？", Wanted.PERSON),
        ("Who approves travel?", Wanted.PERSON),
        ("前台的电话是多少？", Wanted.CONTACT),
        ("How late may I hand it in?", Wanted.TIME),
        ("密码输错好几次被锁了，要等多久", Wanted.DURATION),
        ("介绍朋友能拿多少好处费", Wanted.MONEY),
        ("What do drivers get paid for a night?", Wanted.MONEY),
        ("现在有多少注册用户", Wanted.COUNT),
        ("工服是什么颜色的", Wanted.COLOUR),
        ("Which insurer covers the vans?", Wanted.NAME),
        ("打印机是什么型号？", Wanted.CODE),
        ("How many unpaid days may I take?", Wanted.DURATION),
        ("Which day rate is the highest?", Wanted.ANYTHING),
        ("What building permit do I need?", Wanted.ANYTHING),
        ("Which building is the lab in?", Wanted.PLACE),
        ("What company car may I choose?", Wanted.ANYTHING),
        ("Which company cleans the office?", Wanted.NAME),
        ("Who is our payment provider?", Wanted.NAME),
        ("who makes the coffee machine", Wanted.NAME),
        ("What is the email address policy?", Wanted.ANYTHING),
        ("What time zone applies?", Wanted.ANYTHING),
        ("What time does the shop open?", Wanted.CLOCK),
        ("What discount codes exist?", Wanted.ANYTHING),
        ("What discount do students get?", Wanted.PERCENT),
        ("What is paid parental leave?", Wanted.ANYTHING),
        ("Which weekday is the office open late?", Wanted.DAY),
        ("津贴每月几号发？", Wanted.DAY),
        ("年终奖发几个月的工资？", Wanted.MONEY),
        ("会议室在几号楼？", Wanted.PLACE),
        ("试用期工资按转正的百分之多少发？", Wanted.PERCENT),
        ("How many watts does the arm draw?", Wanted.UNIT),
        ("top speed of the AX-500 in mm per second", Wanted.UNIT),
        ("What are the Service Desk hours?", Wanted.CLOCK),
        ("deadline for handing in expenses", Wanted.TIME),
        ("什么是年假？", Wanted.ANYTHING),
        ("What happens when the alarm rings?", Wanted.ANYTHING),
        ("Which customer's prices stay fixed?", Wanted.ANYTHING),
        ("Which papers go with the form?", Wanted.LIST),
        ("发现隐患报到哪几个部门？", Wanted.LIST),
        ("How fast can I get a badge?", Wanted.DURATION),
        ("年假可以结转到什么时候？", Wanted.UNTIL),
        ("Until when is the desk open?", Wanted.UNTIL),
    ],
)
def test_kind_of_answer_is_read_from_the_question(question: str, wanted: Wanted) -> None:
    assert find_wanted(question) is wanted


@pytest.mark.parametrize(
    ("question", "answers", "does_not"),
    [
        ("年假有几天？", "年假每年为二十五天。", "年假须提前申请。"),
        ("报销单什么时候提交？", "返回后十个工作日内提交。", "报销单须由主管签字。"),
        ("谁审批出差？", "出差由部门经理审批。", "出差须提前审批。"),
        ("谁审批出差？", "出差由王小明审批。", "出差申请需要附上预算。"),
        ("特斯拉是在哪里出生的？", "他出生于斯米良。", "特斯拉于1856年出生。"),
        ("How long is the warranty?", "The warranty lasts two years.", "The warranty is void."),
        ("Who approves travel?", "Maria Lopez approves it.", "Travel needs approval first."),
        ("How much is the fee?", "The fee is $40.", "The fee depends on the plan."),
        ("Which insurer covers the vans?", "The vans are with Allvia.", "The vans are insured."),
        ("打印机是什么型号？", "打印机为 HP M404。", "打印机在五楼。"),
        ("When do I repeat the test?", "Repeat it if the value is low.", "Repeat the test."),
        ("谁负责迁移？", "迁移（负责人：贺知遥）", "迁移在从库进行。"),
        ("宿舍在哪里？", "宿舍在东门三号楼。", "本办法适用于在校学生。"),
        ("总经理是谁？", "总经理：王建国", "大额采购由部门总监报总经理批准。"),
        ("Who is the CEO?", "The CEO is Maria Lopez.", "合同由总经理审批。"),
        ("谁批五万元的采购？", "由分管副总审批。", "须附三家报价。"),
        ("How heavy is the desk?", "The desk weighs 40 kg.", "Desk 160 cm; 489 price"),
        ("暖房里要保持多少度？", "暖房保持 18 ℃。", "在暖房休息至少 15 分钟。"),
        ("How big is the office?", "The office has 620 m².", "The office is in Berlin."),
        ("可以养几条狗？", "每户最多饲养两只犬。", "遛犬须牵绳。"),
        ("空调坏了找谁？", "空调 事情; 物业 老周 找谁", "空调 事情; 6000 分机"),
        ("支持电话是多少？", "支持：分机 6620", "支持：25 人，500 GB，e-mail and phone"),
        ("How many seats does it have?", "It has 40 seats on floor 3.", "On floors 3 and 4, 3F"),
        ("排队要等多久？", "约三个月", "每月1日；2026年11月6日前"),
        ("What VAT rate applies?", "VAT of 21 % is added.", "Invoices are without VAT."),
        ("换锁多少钱？", "换锁 110加元/次", "换锁在次月账单中收取"),
        ("How much is the allowance?", "It is 600 zloty.", "It is paid in June."),
        ("How much is the fine?", "The fine is 40 euros.", "After 3 audits in 2 centres"),
        ("档案室在几楼哪个房间？", "档案室位于 18 楼 1806 室", "档案室周一闭室"),
        ("例会在哪儿开？", "改在1号楼餐厅开", "改在9:30开"),
        ("行李限重多少？", "行李限20kg以内", "行李须在前台登记"),
    ],
)
def test_statement_without_the_wanted_kind_cannot_answer(
    question: str, answers: str, does_not: str
) -> None:
    wanted = find_wanted(question)
    assert can_hold(wanted, answers, question)
    assert not can_hold(wanted, does_not, question)


@pytest.mark.parametrize("wanted", Wanted)
@pytest.mark.parametrize("numerals", ["4", "一", "4 ", "4,", "4一"])
def test_thousands_of_numerals_are_read_quickly(wanted: Wanted, numerals: str) -> None:
    """Not in exponential time, which would stop the process."""
    assert can_hold(wanted, numerals * 2000, "") in {True, False}


def test_headings_headers_and_introductions_are_context_not_statements() -> None:
    one = source(1, HANDBOOK, heading="员工手册", heading_starts=frozenset({0}))
    found = statements(one)
    assert [HANDBOOK[each.start : each.end] for each in found] == [
        "年假按工龄计算。",
        "1–3 年 | 10 天",
        "3 年以上 | 15 天",
        "- 起止日期",
        "- 交接人",
        "病假须提交证明。",
    ]
    row, item = found[1], found[3]
    assert row.header == ("工龄", "年假天数")
    assert row.cells == ("1–3 年", "10 天")
    assert "第一章 休假" in row.context
    assert "请假时请提供：" in item.context


@pytest.mark.parametrize(
    ("above", "levels", "contexts"),
    [
        ("Handbook › Network", (2, 2), ["Handbook\nNetwork", "Handbook\nLeave"]),
        ("Handbook › Network", (2, 3), ["Handbook\nNetwork", "Handbook\nNetwork\nLeave"]),
        ("Handbook › Network", (2, 1), ["Handbook\nNetwork", "Leave"]),
        # The document has no heading of the first level.
        ("Network", (2, 2), ["Network", "Leave"]),
        # The chunk continues a section.
        ("Handbook › Before", (2, 2), ["Handbook\nNetwork", "Handbook\nLeave"]),
    ],
)
def test_statement_is_under_its_own_headings_and_no_earlier_ones(above, levels, contexts) -> None:
    text = "Network\n\nSign in with your name.\n\nLeave\n\nIt is 25 days."
    starts = (text.index("Network"), text.index("Leave"))
    blocks = tuple(
        Block(BlockKind.HEADING, start, text.index("\n", start), level)
        for start, level in zip(starts, levels, strict=True)
    )
    one = source(1, text, heading=above, heading_starts=frozenset(starts), blocks=blocks)
    assert [each.context for each in statements(one)] == contexts


def blocks_of(text: str, items: Sequence[str]) -> tuple[Block, ...]:
    """Return the blocks of list items in a text."""
    starts = [text.index(one) for one in items]
    return tuple(
        Block(BlockKind.ITEM, start, start + len(one))
        for start, one in zip(starts, items, strict=True)
    )


def test_terms_below_a_list_are_statements_of_their_own() -> None:
    items = "2. Seeds are sent on Mondays.", "Quarantine\n  Two weeks in room 4.", "Fees\n  None."
    text = "1. Order by mail.\n2. Seeds are sent on Mondays.\n\n" + "\n".join(items[1:])
    found = statements(source(1, text, blocks=blocks_of(text, ("1. Order by mail.", *items))))
    assert [text[one.start : one.end] for one in found][1:] == list(items)


def test_item_that_asks_is_the_heading_of_its_answer() -> None:
    items = "May I bring my dog?\n  Yes, on Fridays.", "Where can I park?\n  Behind the house."
    text = "\n".join(items)
    found = statements(source(1, text, blocks=blocks_of(text, items)))
    assert [text[each.start : each.end] for each in found] == [
        "Yes, on Fridays.",
        "Behind the house.",
    ]
    assert [each.context for each in found] == ["May I bring my dog?", "Where can I park?"]


def test_question_that_a_mail_quotes_is_no_heading_and_no_statement() -> None:
    text = "Vans\n\n> Who drives?\n\n> Can Ann come? I hope so.\n\nI drive.\n\nMay I smoke?\nNo."
    found = statements(source(1, text, heading="Vans", heading_starts=frozenset({0})))
    assert [(text[each.start : each.end], each.context) for each in found] == [
        ("I hope so.", "Vans"),
        ("I drive.", "Vans"),
        ("No.", "Vans\nMay I smoke?"),
    ]


def test_items_that_only_ask_are_statements() -> None:
    text = "Before you leave, check:\n- Is the heating off?\n- Is the alarm on?\n- Lock the door."
    items = text.split("\n")[1:]
    found = statements(source(1, text, blocks=blocks_of(text, items)))
    assert [text[each.start : each.end] for each in found] == items


def test_numbered_chinese_line_is_a_heading_if_none_is_known() -> None:
    text = "一、预订\n会议室最早可提前 14 天预订。\n\n二、报修\n设备故障请联系行政部。"
    found = statements(source(1, text))
    assert [text[each.start : each.end] for each in found] == [
        "会议室最早可提前 14 天预订。",
        "设备故障请联系行政部。",
    ]
    assert [each.context for each in found] == ["一、预订", "二、报修"]


def test_short_line_of_its_own_is_a_heading_if_none_is_known() -> None:
    text = "Parking\n\nPark behind the building. Visitors call extension 4711."
    found = statements(source(1, text))
    assert text[found[0].start : found[0].end] == "Park behind the building."


def test_numbered_section_below_a_marked_title_is_a_heading() -> None:
    text = "差旅报销细则\n\n二、住宿\n\n一线城市每晚不超过 550 元。"
    (one,) = statements(source(1, text, heading_starts=frozenset({0})))
    assert text[one.start : one.end] == "一线城市每晚不超过 550 元。"
    assert one.context == "二、住宿"


def test_first_line_that_repeats_the_file_name_is_the_title() -> None:
    text = "Visitors and parking, Rotterdam site\n\nSpaces P1 to P20 are for visitors."
    for title, count in (("visitors-and-parking", 1), ("office-rules", 2)):
        assert len(statements(source(1, text, title=title))) == count


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Within what time must a lost laptop be reported?", "Report it within one hour."),
        ("How soon do I get the money back?", "Refunds are paid after five days."),
    ],
)
def test_question_about_a_period_is_answered_by_a_duration(question: str, statement: str) -> None:
    assert find_wanted(question) is Wanted.DURATION
    assert can_hold(Wanted.DURATION, statement, question)
    assert not can_hold(Wanted.DURATION, "Report it to the desk.", question)


@pytest.mark.parametrize(
    ("question", "statement", "holds"),
    [
        ("财务部的分机是多少？", "财务部：李静，分机 8020", True),
        ("李静手机号", "财务部：李静，13900002222", True),
        ("李静的手机号码是多少？", "财务部：李静", False),
        ("Which number do I call?", "Call 119 in an emergency.", True),
        ("How many employees are there?", "每年带薪病假不超过 12 天。", False),
        ("How many employees are there?", "人力资源部：王小明，分机 8012", False),
        ("How many employees are there?", "The company has 158 employees.", True),
        ("病假工资按多少比例发放？", "每年带薪病假不超过 12 天。", False),
        ("病假工资按多少比例发放？", "病假工资按 80% 发放。", True),
        ("物业费谁出", "物业管理费由甲方承担。", True),
        ("学习经费能花在哪些上面", "可用于书籍和课程。", True),
        ("Who chaired the meeting?", "Minutes of the meeting, 12 November 2026", False),
        ("Who chaired the meeting?", "Present: Anna Schmidt (chair), Tom Baker", True),
        ("Who do I ring at night?", "Lost or stolen: ring 07700 900 318.", True),
        ("Who wrote it?", "Lost or stolen: ring 07700 900 318.", False),
        ("How much notice must I give?", "Give one full calendar month's notice.", True),
        ("Where is the serial number?", "It is on the left edge of the inner door.", True),
        ("工服是什么颜色的？", "工服（一次）| 320 元", False),
        ("工服是什么颜色的？", "工服为藏蓝色。", True),
        ("What colour is the cable?", "The blue cable goes into port 2.", True),
        ("标签是什么颜色？", "灰 颜色; 899 元 价格", True),
        ("How long did the outage last?", "Uploads failed from 14:02 to 15:27.", True),
        ("墙上可以打几个孔？", "不得在墙面打孔超过十处。", True),
        ("风多大就关闭？", "风力达到 6 级就关闭。", True),
        ("How deep is the site?", "It is 3 m at low water.", True),
        ("Who may speak?", "Only the incident commander speaks to the press.", True),
        ("标准液放哪里？", "标准液 | 4℃ 冰箱", True),
        ("After how many sick days do I need a note?", "A note is needed from the 8th day.", True),
        ("第几天要病假条，连着病几天？", "从第三天起要病假条。", True),
        ("How much do I get per mile on a bicycle?", "Bicycles get 20p.", True),
        ("How many watts does it draw?", "Model: AR-6; Weight (kg): 27", False),
        ("How many watts does it draw?", "It draws 350 W.", True),
        ("津贴每月几号发？", "博士生每月 2200 元。", False),
        ("津贴每月几号发？", "每月 10 日发放。", True),
        ("工资几号发？", "工资于每月十日发放。", True),
        ("电脑坏了找谁？", "电脑故障请拨打分机 8086。", True),
        ("密码多久更换？", "密码每季度更换一次。", True),
        ("先付多少押金才派车？", "押金 15 万没到账不接单。", True),
        ("先付多少押金才派车？", "押金 15 万人都交过。", False),
        ("How long is the first term?", "It runs for thirty-six (36) months.", True),
        ("到第几天要病假条？", "A note is needed from the fourth day.", True),
        ("How many days may I add?", "Add up to four private days.", True),
        ("How many pallets were lost?", "一季度少了 412 块塑料托。", True),
        ("How many pallets were lost?", "一季度赔了 412 块。", False),
        ("报销单找谁签？", "出差时由陆景川代签。", True),
        ("报销单找谁签？", "由于出差，签字顺延。", False),
        ("先打给谁？", "黄色报警 | 班长", True),
        ("Who bears the costs?", "The group pays.", True),
        ("哪些人不让进？", "Visitors under 16 may not enter.", True),
        ("哪些东西要带？", "带身份证、照片。", True),
        ("哪些东西要带？", "带身份证。", False),
        (
            "Which papers are due?",
            "Form TR-3 with boarding passes, invoices, the card statement.",
            True,
        ),
        ("How fast may trucks go?", "Trucks keep to 8 公里 an hour.", True),
        ("国庆那几天是谁值班？", "值班：王小明", True),
        ("年假可以结转到什么时候？", "结转的年假须在次年 4 月 30 日前用完。", True),
        ("年假可以结转到什么时候？", "满 1 年 | 4 天", False),
        ("Until when is the desk open?", "It is open from 8:00 to 18:30.", True),
        # Amounts and days are not telephone numbers, and sizes and amounts are not counts.
        ("财务的分机号是多少？", "- 3000元到12000元：裘怀瑾", False),
        ("财务的分机号是多少？", "财务：裘怀瑾，8025", True),
        ("What is Tarek's extension?", "Tarek; 4 Sep 2026; 12 December 2025; 2025-09-04", False),
        ("How many Fennel 1200 do we own?", "Fennel 1200; 390 cny rate; 13.8 kg; 16 A", False),
        ("How many Fennel 1200 do we own?", "Fennel 1200; 4 units", True),
        ("How much is Wren per day?", "Wren  Stage; 140 m2  Area; 2,100  External / day", True),
        ("How much is Wren per day?", "Wren  Stage; 140 m2  Area; 8  Hours / day", False),
        ("T05的证书管几年？", "编号: T05; 3月25日  上半年; 9月23日  下半年", False),
        ("谁带班？", "6月21日 日期; 魏国栋 姓名; 13900006638 手机", True),
        ("谁带班？", "夜间 时段; 高压室 位置", False),
        # The figure in the question is not the one asked for.
        ("140 L 的冰箱噪音多少分贝？", "冰箱 140 L，745 元", False),
        ("140 L 的冰箱噪音多少分贝？", "冰箱 140 L，42 dB", True),
    ],
)
def test_statement_contains_the_kind_asked_for(question: str, statement: str, holds: bool) -> None:
    assert can_hold(find_wanted(question), statement, question) is holds


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("年会什么时候开", ["年会", "开"]),
        ("组会是哪天几点", ["组会"]),
        ("What does the guide say about first aid?", ["guide", "first", "aid"]),
        ("为啥打印机总卡纸", ["打印机", "总", "卡纸"]),
        ("打印机坏了咋办", ["打印机", "坏"]),
    ],
)
def test_content_words_are_those_that_name_something(question: str, words: list[str]) -> None:
    assert [one.text for one in content_words(question)] == words


def test_spoken_words_are_read_as_written_ones() -> None:
    assert as_question("打印机坏了咋办") == "打印机坏了怎么办？"


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("合同管理的分机号是多少？", "合同管理的分机是多少？"),
        ("前台电话号码是多少？", "前台电话是多少？"),
        ("会议室的房间号是几？", "会议室的房间是几？"),
        ("公司账号是多少？", "公司账号是多少？"),
        ("订单号在哪里看？", "订单号在哪里看？"),
        ("号码是多少？", "号码是多少？"),
    ],
)
def test_number_words_are_dropped_from_questions_about_phones_and_rooms(
    question: str, asked: str
) -> None:
    assert without_number_words(question) == asked


@pytest.mark.parametrize(
    ("asked", "question"),
    [
        ("hi, when does the list close", "when does the list close"),
        ("Hello team! Who has the key?", "Who has the key?"),
        ("那个…报废的货谁来拉", "报废的货谁来拉"),
        ("您好，请问一下年假几天", "年假几天"),
        ("Good morning! How many days?", "How many days?"),
        ("谢谢，那病假呢", "那病假呢"),
        ("不好意思，打错了，我想问总监的伙食补助是多少", "总监的伙食补助是多少"),
        ("打错了怎么改", "打错了怎么改"),
        ("谢谢卡怎么领", "谢谢卡怎么领"),
        ("那个会几点开", "那个会几点开"),
        ("问卷交给谁", "问卷交给谁"),
        ("请教，年假几天", "年假几天"),
        ("请教育处盖章要几天", "请教育处盖章要几天"),
        ("Hi-fi rental: how much?", "Hi-fi rental: how much?"),
        ("你好", "你好"),
        ("High temperatures?", "High temperatures?"),
    ],
)
def test_greeting_is_removed_from_a_question(asked: str, question: str) -> None:
    assert without_greeting(asked) == question


def test_words_come_in_the_order_of_the_question() -> None:
    words = content_words("Where is the meeting on 12 March?")
    assert [word.term for word in words] == ["meet", "3-12"]


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("12 ſept. 1789", ["9-12"]),
        ("Up to 120 may attend", []),
        ("Clause 5 may be waived", []),
        ("on 5 May", ["5-5"]),
        ("In 2012 May was cold", []),
    ],
)
def test_dates_are_found_as_written(text: str, dates: list[str]) -> None:
    assert [date.term for date in find_dates(text)] == dates


@pytest.mark.parametrize(
    ("question", "statement", "holds"),
    [
        ("岷江会议室的电视多少寸？", "岷江 | 三楼 | 8 | 电视屏幕", False),
        ("会议室的电视多少寸？", "三楼会议室有一台 65 英寸电视。", True),
        ("How long is the meeting table?", "The meeting table is 180 cm long.", True),
        ("What is the baggage allowance?", "The baggage allowance is 23 kg.", True),
        ("What is the daily allowance?", "The daily allowance is 28 euros.", True),
    ],
)
def test_measure_in_a_statement_is_of_the_kind_asked_for(
    question: str, statement: str, holds: bool
) -> None:
    assert can_hold(find_wanted(question), statement, question) is holds


@pytest.mark.parametrize("question", ["报销一共分几步？", "报销分几个步骤", "每一步做什么"])
def test_question_about_steps_asks_for_a_list(question):
    assert asks_for_list(question, is_numbered=True)
    assert find_wanted(question) is not Wanted.COUNT
    assert not {"步", "几步", "一步", "每"} & {word.text for word in content_words(question)}


def test_department_of_it_is_a_content_word() -> None:
    for question, is_named in (
        ("Who is in charge of IT?", True),
        ("IT谁负责？", True),
        ("WHAT IS IT?", False),
        ("Is it open?", False),
        ("What is an ITEM?", False),
    ):
        assert ("IT" in [one.term for one in content_words(question)]) is is_named
    texts = ["Marco runs IT.", "Marco runs it.", "IT-Abteilung"]
    assert list(shares_of_words(content_words("Who runs IT?"), texts)[:, -1]) == [1, 0, 1]
