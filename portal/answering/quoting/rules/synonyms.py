"""Synonyms of the workplace: a question is also read in the words of a statement.

The model that reads is small and knows few synonyms: 可以在家办公吗 and 每周可远程办公两天 have log
odds of -3; with 远程办公 in both, +1.
"""

from __future__ import annotations

import re
from functools import lru_cache

from portal.answering.quoting.rules.groups.cities import with_tier
from portal.text.characters.scripts import HAN

# One meaning per line, with words that can replace each other.
MEANINGS = """
年假, 年休假, 带薪假, 带薪年假
在家办公, 在家上班, 居家办公, 居家上班, 远程办公, 远程工作
工资, 薪资, 薪水, 薪酬, 月薪
发工资, 发薪, 发放工资, 发放薪资
打车, 出租车, 网约车, 的士, 市内交通
补贴, 津贴, 补助
酒店, 宾馆, 住宿, 住宿费, 酒店费, 房费
夜班, 晚班
病假, 生病请假, 因病请假
午餐, 午饭, 中饭
门禁卡, 门卡
公车, 公务车
逾期交货, 交货逾期, 延期交货, 晚交货
发票抬头, 开票名称, 开票抬头
离职, 辞职, 走人
社保, 社会保险, 五险一金, 五险
加班费, 加班工资
到账, 打款, 入账
押金, 保证金
租金, 房租
保修, 质保
保修期, 质保期
退货, 退换
到货, 交货, 送达
会议, 例会
迟到, 晚到
地址, 所在地
停车费, 车位费
密码, 口令
无线网, 无线网络, wifi, wi-fi, wlan
体检, 健康检查
工龄, 司龄, 服务年限
上线, 发布
缺席, 未出席, 未到, 没来开会
出席, 参会, 与会, 到会, 参加会议, 来开会
租客, 承租方, 承租人
房东, 出租方, 出租人
客户, 顾客
供应商, 供货商, 供方
合同, 协议
价格, 单价, 售价, 报价
折扣, 优惠
食堂, 餐厅
工卡, 工牌, 员工卡
电脑, 笔记本, 计算机
手机号, 手机号码, 移动电话
邮箱, 邮件地址, 电子邮箱
入职, 报到
打扫, 保洁, 清洁
维修, 修理, 检修
库存, 存货
仓库, 库房
截止日期, 截止时间, 最后期限
逾期, 超期, 过期, 晚交, 迟交, 晚付, 拖欠
违约金, 罚款, 罚金
被偷, 被盗, 失窃
老婆快生了, 老婆要生了, 老婆生孩子, 妻子生孩子, 爱人生孩子, 陪产假, 护理假
产假, 女员工生孩子, 女同事生孩子, 女职工生孩子, 生孩子能休, 生孩子休假, 生孩子放
生病, 患病
孩子, 子女, 小孩
爷爷, 奶奶, 祖父母, 祖父, 祖母
外公, 外婆, 姥姥, 姥爷, 外祖父母, 祖父母
去世, 过世, 丧假
导师, 指导老师, 指导教师
水电费, 水电
国庆节, 国庆, 法定节假日, 节假日
春节, 法定节假日, 节假日
五一, 劳动节, 法定节假日, 节假日
批准, 审批, 审核
弄丢, 搞丢, 丢了, 丢失, 遗失
医院条子, 医院证明, 病假条, 病假单, 诊断证明
快递, 包裹, 快件
演习, 演练
领导, 上级, 直属主管, 直接上级, 直属上级
考证, 认证, 考试
博一, 博士一年级
博二, 博士二年级
博三, 博士三年级
博四, 博士四年级
chatgpt, ai 工具, ai工具, 人工智能
vacation, annual leave, holiday, holidays, paid leave, pto, paid time off
work from home, working from home, work remotely, remote work, home office, wfh, telework
salary, salaries, wages, wage
per diem, daily allowance, meal allowance
mileage allowance, mileage rate, mileage, per kilometre, per km, per mile
opening hours, business hours, office hours
wifi, wi-fi, wlan, wireless network
2fa, mfa, two-factor authentication, two-step verification, multi-factor authentication
password, passphrase, passcode
stolen, stole, theft, nicked
get rid of, dispose of, disposal, destroy
hand in, send in, turn in, submit
give birth, having a baby, have a baby, maternity leave
broken, faulty, defective, out of order
deadline, due date, closing date
uk, united kingdom
usa, united states
chatgpt, ai tools, ai tool, artificial intelligence
project manager, project lead
ceo, managing director, chief executive
hr, human resources, personnel
employees, staff, fte, headcount
founded, established
head office, headquarters, hq
shipping, delivery, postage
laptop, notebook, computer
ill, sick, unwell
resign, quit, hand in my notice
boss, supervisor, line manager
taxi, cab
plane, flight, airfare
hotel, accommodation, lodging
car park, parking space, garage
bike, bicycle
customer, client
customers, clients
supplier, vendor
contract, agreement
warranty, guarantee
canteen, cafeteria
badge, access card, staff card
kids, children
rubbish, garbage, trash, waste
landlord, lessor
tenant, lessee, renter
payslip, pay slip, pay stub
overtime, extra hours
sick note, doctor's note, medical certificate
probation period, probation, trial period
pay rise, raise, salary increase
expense report, expense claim
reimbursed, refunded, paid back
launch, release, go live
in advance, ahead, beforehand
extend, renew, renewal, renewals
regarded as, considered, treated as, deemed, counted as
training, induction
video call, video calls, video conference, video conferencing
phd student, phd students, doctoral student, research student
lecturer, lecturers, academic staff, faculty
reservation, booking
bank holiday, bank holidays, public holiday, public holidays, statutory holiday
front desk, reception, reception desk
audio message, voice message, voice note, voice memo
security hole, vulnerability, security flaw, flaw
new starter, new joiner, new hire, newcomer, new employee
sign off, approve, authorise, authorize
signs off, approves, authorises, authorizes
picked up, collected
pick up, collect, collection
stands in, stand in, deputy, covers for, backup
needles, blades, scalpels, sharps
gym, fitness
fridge, refrigerator
absent, missing, not present, excused, apologies, not at the meeting, did not attend, didn't attend
present, attendees, attended, came to the meeting, were at the meeting, was at the meeting
"""
# 住宿标准是多少 asks what a statement with an amount says.
_ASKS_LIMIT = re.compile(r"(标准|上限|限额)(?:是|为|有)?多少(?=\W*\Z)")
_AMOUNT = re.compile(r"\d\s*[万千]?(?:元|块|英?镑|美?刀)|[$¥€£]\s*\d")
_IS_HAN = re.compile(f"[{HAN}]")


def _pattern(word: str) -> re.Pattern[str]:
    text = re.escape(word)
    return re.compile(
        text if _IS_HAN.search(word) else rf"(?<![a-z-]){text}(?![a-z-])", re.IGNORECASE
    )


_Group = tuple[tuple[str, re.Pattern[str]], ...]
# The longest first: 无线网络 is not 无线网 with another word.
_GROUPS = tuple(
    tuple((word, _pattern(word)) for word in sorted(line.split(", "), key=len, reverse=True))
    for line in MEANINGS.strip().splitlines()
)


@lru_cache(maxsize=256)
def _asked(question: str) -> tuple[tuple[re.Pattern[str], _Group], ...]:
    """Return the meanings in a question, each with the pattern of its word. Cached, because a
    question is compared with many texts."""
    found = []
    for group in _GROUPS:
        asked = next((pattern for _, pattern in group if pattern.search(question)), None)
        if asked is not None:
            found.append((asked, group))
    return tuple(found)


def reworded(question: str, text: str, context: str = "") -> str:
    """Return a question in which words that the text does not have are replaced by synonyms that it
    has, a city by its tier, and a limit by an amount; `context` is what the text is below."""
    question = with_tier(question, text, context)
    limit = _ASKS_LIMIT.search(question)
    if limit and limit[1] not in text and _AMOUNT.search(text):
        question = _ASKS_LIMIT.sub("多少钱", question)
    for asked, group in _asked(question):
        if asked.search(text):
            continue
        said = next((word for word, pattern in group if pattern.search(text)), None)
        if said:
            question = asked.sub(said, question, count=1)
    return question
