"""Terms that exclude each other: kinds of leave, job titles, means of transport."""

from __future__ import annotations

import pytest

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.judging.exclusions import is_excluded


def excludes(question: str, text: str, context: str = "", *, is_foreign: bool = False) -> bool:
    return is_excluded(Asked.of(question), context, text, is_foreign=is_foreign)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long is maternity leave?", "Paternity leave is 15 days."),
        ("What is the Wi-Fi for visitors?", "The office Wi-Fi for staff is Q-Staff."),
        ("圣诞节放假吗？", "2027年春节放假时间为2月5日至2月14日。"),
        ("Are we closed on New Year's Day?", "The office is closed for Chinese New Year."),
        ("产假有几天？", "陪产假15天，须在子女出生后三个月内休完。"),
        ("年假怎么申请？", "假别: 病假; 申请: 当天上午打电话"),
        ("How many sick days do I get?", "Annual leave is 25 days."),
        ("博士后每月发多少津贴？", "博士生每月 2200 元。"),
        ("How much is an adult ticket?", "Children pay 4 euros."),
        ("成年人票价多少？", "未成年人半价。"),
        ("When is dinner served?", "Breakfast is from 7 to 9."),
        ("打车能报多少？", "机票限经济舱。"),
        ("岳父去世，丧假几天？", "父母、配偶或子女去世，给丧假5天；祖父母去世给2天。"),
        ("奶奶去世能请几天假？", "丧假（父母、配偶、子女）: 5 天"),
        ("How many books can master's students borrow?", "Research students: 40"),
        ("How many books can PhD students borrow?", "Taught postgraduates: 20"),
        ("Who wears a red badge?", "Visitors wear a blue badge."),
        ("去年的预算是多少？", "今年预算 40 万元。"),
        ("夜班有补贴吗？", "早班每天补贴 10 元。"),
        ("产假有几天？", "其他假别: 陪产假; 天数: 15 天; 要求: 须附出生证明"),
        ("总经理叫什么？", "事项: 项目经理; 姓名: 林雨婷; 分机: 2210"),
        ("犬皮肤项目现在有几只狗？", "已入组 64 只猫，其中杭州 41 只。"),
        ("How much is it to have a parrot looked at?", "Cat: €42; Dog: €48; Rabbit: €36"),
        ("去伦敦出差每晚多少钱？", "武汉 | 480 元"),
        ("How much per mile for my electric car?", "Petrol or diesel car: 45p"),
        ("电动汽车每公里补多少？", "燃油车每公里 1 元"),
        ("收养孩子放几天假？", "育儿假每年 10 天"),
        ("When was unit 2 last calibrated?", "The last calibration of unit 1 was on 9 October."),
        ("2号机什么时候检修？", "1号机三月检修。"),
        ("第二期什么时候完工？", "第一期五月完工。"),
        ("how heavy is the 3 kw motor", "Motor 2.2 kW; 38.5 kg; min_stock: 2"),
        ("50毫升的离心管多少钱？", "离心管 15 mL；35元"),
        ("8TB 的硬盘还有几块？", "固态硬盘 3.84TB NVMe"),
        ("What is Petra Oswin's extension?", "Callum Dreyfield; 2214"),
        ("phone number of Martin Vogel?", "Ruth Calloway, 0113 496 0172"),
        ("财务裘怀瑾的分机号是多少？", "阮青，8017"),
        ("How much do I get on a bank holiday?", "Work on weekends is paid twice."),
        ("节假日加班几倍工资？", "工作日加班 1.5 倍。"),
        ("我老婆要生了，能休几天？", "产假 158 天。"),
        ("总经理是谁？", "副总经理王强分管销售。"),
        ("总经理是谁？", "总经理助理李敏负责会议室。"),
        ("How much do members pay?", "Non-members pay 12 euros."),
        ("会员多少钱？", "非会员每次80元。"),
        ("What does DripSense 1 cost?", "The list price of DripSense 2 is €389."),
        ("Who is the manager?", "The deputy manager, Tom Reed, keeps the keys."),
    ],
)
def test_statement_about_an_alternative_does_not_answer(question: str, text: str) -> None:
    assert excludes(question, text)


@pytest.mark.parametrize(
    ("question", "text", "context"),
    [
        # The text names both or neither, or the heading says which.
        ("Can I bring my dog?", "Hot dogs and cat pictures are welcome; dogs are not.", ""),
        ("How long is maternity leave?", "Maternity leave is 98 days, paternity leave 15.", ""),
        ("How long is maternity leave?", "Mothers get 98 days.", ""),
        ("How long is maternity leave?", "It begins before paternity leave.", "Maternity leave"),
        ("When is the call with Suzhou?", "At 9:00 Ghent time.", "Ghent–Suzhou call"),
        ("Who missed the March meeting?", "The report is due in April.", "March meeting"),
        # A limit and a minimum are stated together.
        ("住宿费上限是多少？", "住宿费每晚600元，至少提前三天申请。", ""),
        ("When was unit 2 calibrated?", "Units 1 and 2 were calibrated in May.", ""),
        ("When was unit 2 calibrated?", "Calibrated after unit 1, in May.", "Unit 2"),
        ("When was unit 2 calibrated?", "Unit 1 and all other units were calibrated in May.", ""),
        ("How long is sick leave?", "The rule of full pay for six weeks was adopted in May.", ""),
        ("When does phase 2 end?", "Phases 1-2 end in May.", ""),
        ("how heavy is the 3 kw motor", "Motor 3.0 kW; 46.2 kg", ""),
        ("How much is a parcel of 25 kg?", "Parcels of 20–30 kg cost £9.", ""),
        ("How much is a parcel of 25 kg?", "限重 20 kg，超过每公斤 5 元。", ""),
        ("How much is a parcel of 25 kg?", "20 kg or more: £9.", ""),
        ("How much is a parcel of 25 kg?", "Up to a weight of 30 kg: £9.", ""),
        ("May I take a bag of 25 kg?", "A bag weighs 23 kg or less.", ""),
        ("What is Petra Oswin's extension?", "Extension 2210", "Who to ask\nPetra Oswin"),
        ("What is Petra Oswin's extension?", "Her extension is 2210.", ""),
        ("裘懷瑾的電話是多少？", "裘怀瑾：8025", ""),
        ("What is Reception's extension?", "Front desk: 2200", ""),
        ("Who wrote Petra Oswin's mail?", "Sent by Callum Dreyfield.", ""),
        ("When does phase 2 end?", "Phase 1, 2 and 3 end in May.", ""),
        ("When does phase 2 begin?", "In May, after phase 1, begins phase 2.", ""),
        ("1号机什么时候检修？", "1、2号机五月检修。", ""),
        ("2号楼什么时候体检？", "1号楼和2号楼五月体检。", ""),
        # A statement that rules out all others is also about them.
        ("周六有晚饭吗？", "周六只供应早餐和午餐。", ""),
        ("How much more will we spend this year?", "90,000 euros, 10 % more than last year.", ""),
        ("下了火车怎么走？", "坐6路公交到湖滨站。", ""),
        # The question is about 副总经理, or the text names the general manager as well.
        ("副总经理是谁？", "副总经理王强分管销售。", ""),
        ("财务总监是谁？", "部门: 财务部; 职务: 总监; 姓名: 唐文华", ""),
        ("总经理叫什么？", "经理：林雨婷", ""),
        ("总经理叫什么？", "我司经理为林雨婷。", ""),
        ("财务总监能坐商务舱吗？", "公司总监及以上员工可坐商务舱。", ""),
        ("晚班有补贴吗？", "夜班每天补贴 10 元。", ""),
        ("去伦敦每晚多少钱？", "Glasgow: 450; 其他城市: 300", ""),
        ("去伦敦每晚多少钱？", "其他城市: 300; 格拉斯哥: 450", ""),
        ("总经理是谁？", "总经理陈明、副总经理王强出席。", ""),
        ("Who is the deputy manager?", "The deputy manager, Tom Reed, keeps the keys.", ""),
        ("What does DripSense 1 cost?", "DripSense 1 and DripSense 2 cost €389.", ""),
        ("What does DripSense 1 cost?", "The price is €389.", "DripSense 2"),
        ("Does DripSense 3 work with it?", "It works with DripSense 2 or later.", ""),
        ("What does DripSense 2 cost?", "DripSense 1 to 3: €389", ""),
        ("After 5 years, how much leave do I get?", "After 3 years you get 28 days.", ""),
        ("Can a Grade 7 fly business?", "Grade 5 and above may fly business class.", ""),
        ("What do members pay?", "Members pay 9 euros, non-members 12.", ""),
    ],
)
def test_statement_about_the_term_in_question_is_kept(
    question: str, text: str, context: str
) -> None:
    assert not excludes(question, text, context)


def test_heading_counts_where_the_text_names_no_alternative() -> None:
    assert excludes("六月的可用率是多少？", "青石梁：97.6%", "运维例会纪要\n2025年5月份")
    assert not excludes("六月的例会谁主持？", "下次例会定在6月9日，由葛明辉主持。", "5月份例会")
    assert excludes("病假有几天？", "每年 10 天，不结转。", "员工手册\n年假")
    assert not excludes("病假有几天？", "每年 10 天，不结转。", "员工手册\n年假和病假")


@pytest.mark.parametrize(
    ("question", "text", "is_other"),
    [
        ("Who is the manager?", "副总经理王强分管销售。", True),
        ("Who is the manager?", "总经理陈明签字。", False),
        ("会员多少钱？", "Non-members pay 12 euros.", True),
        ("病假有几天？", "Annual leave is 25 days.", True),
    ],
)
def test_alternatives_are_recognised_across_languages(
    question: str, text: str, is_other: bool
) -> None:
    assert excludes(question, text, is_foreign=True) is is_other
