"""The kind of answer that a question wants, in questions and quotations."""

from __future__ import annotations

import pytest

from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.answering.quoting.rules.kinds import Wanted, can_hold, find_wanted
from portal.domain.answering import Abstained
from tests.unit.answering.quoting.answers import OddsReader, content_of, is_quoted, request
from tests.unit.answering.sources import source


@pytest.mark.parametrize(
    ("question", "language", "without", "answer"),
    [
        ("What time do you close?", "en", "We close over Christmas.", "We close at 18:00."),
        ("早班几点开门？", "zh", "早班由店长开门。", "早班上午九点开门。"),
        ("How long do locks last?", "en", "Locks last as set.", "Locks last 45 s."),
        ("滤网多久换一回？", "zh", "滤网自己换。", "滤网每月换。"),
    ],
)
def test_statement_without_the_signs_of_the_wanted_kind_is_less_likely(
    question, language, without, answer
):
    reader = OddsReader({without: 0.0, answer: 0.0})
    events = ExtractiveChatModel(reader).stream(request(question, [source(1, without)], language))
    assert [type(event) for event in events] == [Abstained]
    sources = [source(1, without), source(2, answer)]
    events = ExtractiveChatModel(reader).stream(request(question, sources, language))
    content, _ = content_of(events, sources)
    assert answer in content
    assert without not in content


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What is the daily allowance?", Wanted.MONEY),
        ("How fast is the first response to a P2 ticket?", Wanted.DURATION),
        ("How fast is the van?", Wanted.MEASURE),
        ("What is the range of the scanner?", Wanted.MEASURE),
        ("What is the range of salaries?", Wanted.ANYTHING),
        ("What range do the vans have?", Wanted.MEASURE),
        ("What do we pay for hosting each month?", Wanted.MONEY),
        ("What happens to my deposit?", Wanted.ANYTHING),
        ("What documents do I need to claim a travel allowance?", Wanted.LIST),
        ("Which adapter do I need to charge the laptop?", Wanted.ANYTHING),
        ("What is the password policy?", Wanted.ANYTHING),
        ("账号什么时候开通？", Wanted.TIME),
        ("打什么疫苗？", Wanted.ANYTHING),
        ("工资多少号发？", Wanted.DAY),
        ("what's Ines Calloway's extension?", Wanted.CONTACT),
        ("What is the contract's extension?", Wanted.CONTACT),
        ("Who approves a contract's extension of a month?", Wanted.PERSON),
        ("which number do I ring at night", Wanted.CONTACT),
        ("How long does the temporary code work?", Wanted.DURATION),
        ("How long does a code have to be?", Wanted.MEASURE),
        ("How fast is the client told?", Wanted.DURATION),
        ("评委有几位？", Wanted.COUNT),
        ("密码要几位？", Wanted.MEASURE),
        ("李静的邮箱是啥？", Wanted.CONTACT),
        ("几个值长都叫啥名字？", Wanted.NAME),
        ("What is the extension of Owen Tarrick?", Wanted.CONTACT),
        ("What is the extension of the contract?", Wanted.ANYTHING),
        ("Ines Harkers extension please", Wanted.CONTACT),
        ("Hotel limit in Riga?", Wanted.MONEY),
        ("What's the daily meal money?", Wanted.MONEY),
        ("whats the hotel limit for vienna", Wanted.MONEY),
        ("How much weight can a shelf take?", Wanted.WEIGHT),
        ("冰箱噪音多少分贝？", Wanted.UNIT),
        ("最高能拍多少帧？", Wanted.UNIT),
        ("转账多少？", Wanted.NUMBER),
        ("How quick must I answer a page?", Wanted.DURATION),
        ("number for the front desk in Leeds", Wanted.CONTACT),
        ("number for the last invoice", Wanted.ANYTHING),
        ("年底前还打算招哪些人？", Wanted.LIST),
    ],
)
def test_word_of_a_kind_counts_only_where_it_is_asked_for(question: str, wanted: Wanted) -> None:
    assert find_wanted(question) is wanted


def test_name_that_begins_a_sentence_is_a_person():
    said = ("Amina asks the choir.", "Visits need no guide.", "- Tariq checks the tax.")
    held = [can_hold(Wanted.PERSON, one, "Who does it?") for one in said]
    assert held == [True, False, True]


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("Which port does the VPN use?", "Open UDP port 51820.", "Ping 10.20.0.1."),
        ("VPN 用哪个端口？", "开放 51820 端口。", "ping 10.20.0.1"),
        ("哪里可以停车？", "停车：地下车库 B2 有 6 个车位。", "停车须登记车牌。"),
        ("Where can I charge my car?", "Cars may charge at spaces 45 and 46.", "Cars may charge."),
    ],
)
def test_signs_of_ports_and_of_parking(question, said, unsaid):
    wanted = find_wanted(question)
    assert [can_hold(wanted, one, question) for one in (said, unsaid)] == [True, False]


@pytest.mark.parametrize(
    ("question", "by_department", "unsaid"),
    [
        ("Who pays?", "Finance pays every Wednesday.", "Receipts are paid every Wednesday."),
        ("谁付款？", "财务每周三付款。", "财务制度规定每周三付款。"),
        ("Who installs it?", "It is installed by IT within a day.", "See the IT policy."),
        ("Who installs it?", "IT installs it on request.", "Applies to all IT equipment."),
        ("Who installs it?", "VPN | IT", "IT equipment is lent for a year."),
    ],
)
def test_department_counts_as_a_person(question, by_department, unsaid):
    said = (by_department, unsaid)
    assert [can_hold(Wanted.PERSON, one, question) for one in said] == [True, False]


def test_who_in_a_relative_clause_asks_for_no_person():
    row = "FALLBACK_LANG is the language of those without one."
    question = "Which variable sets the language of those who have none?"
    events = ExtractiveChatModel(OddsReader({row: 1.0})).stream(request(question, [source(1, row)]))
    assert row in content_of(events, [source(1, row)])[0].replace("\\", "")


@pytest.mark.parametrize(("columns", "is_answered"), [(6, True), (7, False)])
def test_row_of_many_cells_needs_more_evidence(columns, is_answered):
    names = ["Item", "Price", *(f"Column {n}" for n in range(columns - 2))]
    cells = ["Otter", "£129", *(["x"] * (columns - 2))]
    table = source(1, " | ".join(names) + "\n" + " | ".join(cells) + "\n" + " | ".join(cells))
    row = "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True))
    asked = request("How much is the van called Otter?", [table])
    assert is_quoted(OddsReader({row: -0.8}), asked) is is_answered


def test_question_about_which_papers_is_answered_by_a_list():
    said = [
        "Form TR-3 is the claim form.",
        "Claims come with boarding passes, invoices, a statement.",
    ]
    sources = [source(number, text) for number, text in enumerate(said, 1)]
    reader = OddsReader(dict.fromkeys(said, 2.0))
    content, _ = content_of(
        ExtractiveChatModel(reader).stream(request("Which papers go with a claim?", sources)),
        sources,
    )
    assert content.index("boarding passes") < (content + "TR-3").index("TR-3")


@pytest.mark.parametrize("question", ["病假工资怎么算？", "加班费如何计算", "超时了怎么算钱？"])
def test_question_how_pay_is_calculated_wants_an_amount_a_share_or_a_rule(question):
    assert find_wanted(question) is Wanted.MONEY
    said = ("按基本工资的 80% 发放。", "按三倍工资支付。", "工资照发。", "工资按出勤天数计算。")
    assert all(can_hold(Wanted.MONEY, one, question) for one in said)
    assert not can_hold(Wanted.MONEY, "病假须提交医院证明。", question)


@pytest.mark.parametrize(
    "question", ["毛利率怎么算？", "两人一间，标准怎么算？", "报销费用怎么报？"]
)
def test_question_how_other_things_are_calculated_wants_no_money(question):
    assert find_wanted(question) is not Wanted.MONEY


@pytest.mark.parametrize(
    ("wanted", "questions"),
    [
        (Wanted.CLOCK, ("At what times can I fetch it?", "几点取件？")),
        (
            Wanted.CONTACT,
            ("店里的电话", "What's your website?", "怎么联系房东", "How can I get hold of HR?"),
        ),
        (
            Wanted.COUNT,
            ("志愿者最小要多大年纪？", "那两周有几位客户没来？", "一共有多少块地？", "要几桶油"),
        ),
        (
            Wanted.DAY,
            ("打哪天起涨价？", "期限是哪一天？", "要拖到几月几号？", "运动会在哪两天办？"),
        ),
        (
            Wanted.DURATION,
            (
                "Can I stay at home, and how long?",
                "How many unused leave days may I keep?",
                "几周到货？",
                "多长的通知期",
            ),
        ),
        (Wanted.FREQUENCY, ("滤网多久洗？", "几天一查？", "How many times a month may I ask?")),
        (Wanted.MEASURE, ("How fast did the log grow?", "包间多大？", "塔吊臂多长")),
        (Wanted.MONEY, ("How high is the late charge?", "How big may the bonus be?")),
        (Wanted.NUMBER, ("额定功率是多少？", "通道数为多少？")),
        (Wanted.PERCENT, ("弄坏了要赔几成？", "房租最多加几个点？", "合格率是多少？")),
        (Wanted.TIME, ("几时开业？", "How early do I have to ask?", "几月放假？")),
        (
            Wanted.ANYTHING,
            (
                "How do I reach the Leeds office?",
                "What's my holiday allowance?",
                "What is she in charge of?",
                "老跳闸是哪儿的毛病？",
            ),
        ),
    ],
)
def test_wanted_kind_is_recognised(wanted, questions):
    assert {question: find_wanted(question) for question in questions} == dict.fromkeys(
        questions, wanted
    )


@pytest.mark.parametrize(
    "question",
    [
        "On which day of the month are wages paid?",
        "什么情况下要给她打电话",
        "Who changes the prices on our website?",
        "What is done with goods above 8 degrees of temperature?",
    ],
)
def test_subject_of_a_question_is_not_its_kind(question):
    assert find_wanted(question) not in {Wanted.MONEY, Wanted.CONTACT, Wanted.TEMPERATURE}


@pytest.mark.parametrize(
    ("question", "answers", "others"),
    [
        (
            "What time does the car leave?",
            ("It leaves at 7.40.",),
            ("It costs £7.40.", "See 2.11.3."),
        ),
        (
            "哪天开工？",
            ("8月18日开工。", "2026-09-10", "each 24 March"),
            ("十月开工。", "2026年开工。"),
        ),
        (
            "年终奖发几个月？",
            ("发两个月工资。", "两月工资"),
            ("随二月工资发放。", "三月到十二月之间"),
        ),
        ("彩色 A3 一张多少钱？", ("A3 单面: 36 便士",), ("A3 单面: 36 张",)),
        ("要赔几成？", ("承担三成。", "七二折", "加收 2 个点"), ("三成员完成了。", "两点开会。")),
        ("How long is it kept?", ("Until it is full.", "10 yrs", "30  交货天数"), ("It is kept.",)),
        (
            "多收多少钱？",
            ("加收半天房费。", "每天罚千分之二。", "22,000  EUR"),
            ("半天之后再说。",),
        ),
        (
            "取消最晚到什么时候？",
            ("Up to 12 hours before the start.", "开始前12小时前"),
            ("取消须告知。",),
        ),
        ("要控制在多少度？", ("在18至24摄氏度。", "零下60摄氏度"), ("温度须控制。",)),
        ("要过多大孔的网？", ("过 40 µm 滤网。", "孔径 40 微米"), ("过滤网。",)),
        ("屏幕要多大？", ("10 英寸", "15 centimetres"), ("屏幕要大。",)),
        ("多长的航班可以坐公务舱？", ("Flights longer than seven hours",), ("Any flight",)),
        ("How many phones are there?", ("There are 12 phones.",), ("8310  phone",)),
        ("试用期多长？", ("试用期六月，可延长。",), ("六月开始。",)),
        ("部门有多少人？", ("12 人", "30  人数"), ("总部 1 楼  办公地点; 8310  分机",)),
        (
            "锅放在哪里？",
            (
                "放在门后的袋子里。",
                "地点是莲花体育馆",
                "使用509室",
                "顶楼  存放地点;",
                "on the two lowest levels",
            ),
            ("放在周一中午。", "锅要放好。"),
        ),
        (
            "在哪个房间开会？",
            ("在 210 室开。", "四楼的小会议室", "the library", "room Baltic"),
            ("隔周 16:00 开会。", "在成都开会。"),
        ),
        ("Which floor is it on?", ("On the third floor.", "Room 305, see (305)"), ("In Lyon.",)),
        ("哪间会议室能开视频会议？", ("听涛：五楼，有视频系统。",), ("有视频系统。",)),
        (
            "What does a lesson cost?",
            ("It costs 12 and is taken off.", "190  Hotel limit per night"),
            (
                "The fee is due within 30 days.",
                "It is paid on 3 March.",
                "It costs nothing to ask.",
            ),
        ),
        (
            "Which room is the auditor in?",
            ("She sits in Room 5.",),
            ("The room of the auditor is closed.",),
        ),
        (
            "What number do I ring?",
            ("+44 161 555 0120", "8310"),
            ("07:45–19:00 Mon–Fri", "open 7:45 - 19:00"),
        ),
        ("What is her e-mail address?", ("ann@rowan.example",), ("Call 0113 496 0120.",)),
        ("哪家公司维保？", ("乙方：江州恒拓自动化设备有限公司",), ("由公司维保。",)),
        ("口令在哪里？", ("装在抽屉的信封里。", "在当班组长的柜子里"), ("口令每月换。",)),
        ("网址是什么？", ("见 rowan.example",), ("电话 0571-5550 7261",)),
        ("谁值班？", ("个人自理。",), ("三个人轮流值。",)),
    ],
)
def test_statement_needs_signs_of_the_wanted_kind(question, answers, others):
    wanted = find_wanted(question)
    held = {one: can_hold(wanted, one, question) for one in (*answers, *others)}
    assert held == dict.fromkeys(answers, True) | dict.fromkeys(others, False)


def test_row_of_many_cells_is_also_read_with_only_the_answering_ones():
    names = "型号 | 名称 | 供电 | 协议 | 防水 | 质保(月) | 上市时间"
    cells = "G2 | 网关 | USB | Zigbee | 无 | 24 | 2025-08"
    table = source(1, f"{names}\n{cells}\n{cells.replace('G2', 'G3')}", title="产品")
    reader = OddsReader({"型号: G2; 名称: 网关; 质保(月): 24": 3.0})
    asked = request("网关G2保修多久？", [table], "zh")
    content, _ = content_of(ExtractiveChatModel(reader).stream(asked), [table])
    assert "| G2 | 网关 | USB | Zigbee | 无 | **24** | 2025-08 |" in content
    # A cell does not show whether it is a place or a name.
    assert not is_quoted(reader, request("网关G2放在哪里？", [table], "zh"))


def test_of_two_durations_in_a_row_the_one_asked_for_is_marked():
    names = "编号 | 名称 | 供电 | 协议 | 交货期 | 质保 | 单位"
    table = source(1, f"{names}\nG2 | 网关 | USB | Zigbee | 7 天 | 2 年 | 台", title="产品")
    reader = OddsReader({"编号: G2; 名称: 网关; 交货期: 7 天; 质保: 2 年": 3.0})
    asked = request("网关质保多久？", [table], "zh")
    content, _ = content_of(ExtractiveChatModel(reader).stream(asked), [table])
    assert "| 7 天 | **2 年** |" in content


@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ("Files may be seen by people approved by the CTO in Hangzhou", False),
        ("Marco 建议参展，待总经理审批", False),
        ("Our CTO is Ann Berg", True),
        ("Approved by the CTO, Ann Berg", True),
        ("由总经理王强审批", True),
        ("总经理王强", True),
    ],
)
def test_recipient_is_not_the_holder_of_an_office(said, is_held):
    question = "总经理是谁？" if "总" in said else "Who is the CTO?"
    assert find_wanted(question) is Wanted.HOLDER
    assert can_hold(Wanted.HOLDER, said, question) is is_held


@pytest.mark.parametrize(
    ("question", "said", "unsaid"),
    [
        ("How do I reach IT?", "Come to desk 14.", "Import the profile, then test it."),
        ("How do I contact the front desk?", "Dial 8000.", "The front desk opens at nine."),
        ("怎么联系房东？", "有事在业主群里说。", "房东每年检查一次。"),
    ],
)
def test_channel_says_how_to_reach_someone(question, said, unsaid):
    assert [can_hold(Wanted.CONTACT, one, question) for one in (said, unsaid)] == [True, False]
