"""The signs of each kind of answer in a statement."""

from __future__ import annotations

import re
from functools import lru_cache

import rjieba

from portal.answering.quoting.rules.kinds.han_names import find_han_names
from portal.answering.quoting.rules.kinds.patterns import (
    CODE,
    COUNTERS,
    CURRENCY,
    CURRENCY_CODE,
    FIGURE,
    HAN_MONEY_NOUN,
    HAN_NUMERAL,
    HAN_NUMERALS,
    MEASURE_UNIT,
    MONEY_NOUN,
    MONTH,
    NUMBER_WORD,
    NUMERAL,
    OFFICE,
    ORDINAL,
    REACHES,
    TIME_UNIT,
    any_of,
)
from portal.answering.quoting.rules.kinds.wanted import ANY_TEXT, Wanted
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.terms.analyser import index_terms
from portal.text.terms.lexicon import translations
from portal.text.terms.stopwords import STOP_WORDS

_MONEY = (
    rf"{FIGURE}\s*(?:{CURRENCY}|pence\b|p\b(?!\.?m)|[万亿](?![{COUNTERS}次])|k\b|[mb]illion)|[$¥€£₩₹]\s*\d|{HAN_NUMERALS}{CURRENCY}"
    rf"|\b{CURRENCY_CODE}\s?\d"
    rf"|{NUMERAL}\s*个?(?:月|周|年)的?(?:租|房租|工资|薪)"
    rf"|{NUMERAL} (?:months?|weeks?|years?)'? (?:of )?(?:rent|pay|salary|wages)\b"
    r"|[半全一二两三\d][天日晚月年][^,。;\d]{0,2}[费租价薪]"
    # Without a currency: costs 12, a fee of 24,000.
    r"|\b(?:costs?|pays?|paid|fees?|grant|insured|priced?|deposit|charge[sd]?)\b[^.;\d]{0,24}"
    rf"\d[\d,.]{{0,12}}(?![\d,.:/%]|\s?(?:{TIME_UNIT}|{MONTH}))"
)
_PERCENT = r"\d\s*:\s*\d|\d\s*(?:%|percent|per cent|‰)|[百千万]分之|[一二三四五六七八九\d]\s*(?:折|成(?![为功果本员立人年绩熟交份长])|个(?:百分)?点)|\bhalf\b|一半|全额"
# 2026年11月6日 and 每月1日 are not durations.
_OF_DATES = r"(?<=[上下])半年|(?:19|20)\d\d年|\d{1,2}月|(?<![期修])(?:[一二三四五六七八九]|十[一二]?)月(?!内)|(?<=月)\d{1,2}日"
_DURATION = (
    rf"\d:\d\d\s*(?:to|and|[-—至到])\s*\d{{1,2}}:\d\d|(?<!\d)(?!{_OF_DATES}){NUMERAL}\)?\s?[多余个-]?\s?-?(?:[a-z]{{3,9}} )?{TIME_UNIT}|{ORDINAL} {TIME_UNIT}"
    r"|\ban? (?:second|minute|hour|day|week|month|year)\b"
    rf"|\d(?:st|nd|rd|th) {TIME_UNIT}|第\s*{NUMERAL}\s*个?(?:[天日周]|工作日)"
)
_CLOCK_TIME = rf"\d{{1,2}}\s*:\s*\d\d|(?<![\d.,$¥€£])(?:[01]?\d|2[0-3])\.[0-5]\d(?!\.?\d|%|\s*(?:{CURRENCY}|{MEASURE_UNIT}))|(?:\d\s*|{HAN_NUMERAL})[点时](?!间)|\d\s*[ap]\.?m\b|o'clock|\bnoon\b|midnight|中午|正午"
_DATE = (
    rf"(?:1[5-9]|20)\d\d(?!\d| ?[{COUNTERS}元])|\d{{1,2}}\s*[月日号](?!元)|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of )?{MONTH}"
    rf"|{MONTH}\.?\s*\d|{HAN_NUMERALS}月"
)
_MEASURE = rf"{FIGURE}\s*{MEASURE_UNIT}|{NUMERAL}[个 ]?{MEASURE_UNIT}|\d\s*(?:%|percent)|unlimited|不限|无限"

# Amounts and dates, neither of which are telephone numbers.
_NO_AMOUNT = rf"(?![\d.,]*\s*(?:[元%]|[天日年月]|{MEASURE_UNIT}|{CURRENCY}))"
_TIME_OF_DAY = re.compile(r"\d{1,2}\s?:\s?\d\d(?!\d)")
_WITH_YEAR = re.compile(
    rf"{MONTH}\.? (?:\d{{1,2}},? )?(?:19|20)\d\d|(?<!\d)(?:19|20)\d\d[-/.]\d{{1,2}}[-/.]\d{{1,2}}"
)
_E_MAIL, _WEB_ADDRESS = r"[\w.]@[\w]", r"https?:|www\.|\.(?:com|cn|org|net|example|io)\b"

_ROOM = (
    r"(?:buildings?|rooms?|floors?|offices?|lobby|reception|desk|hall|garage|car park|yard|shed|gate|entrance"
    r"|basement|kitchen|drawer|cabinet|cupboard|stores?|warehouses?|city|town|country|portal|system|page|menu"
    r"|folder|wiki|intranet|app|site|tab|cent(?:er|re)|station|hotel|hospital|bucket|region|address)\b"
)

# Places other than rooms.
_OTHER_PLACE = (
    r"(?:racks?|cages?|bins?|crates?|fridges?|freezers?|lockers?|safe|bay|dock|deck|terraces?|garden|lounge"
    r"|cellar|server|drive|share|inbox|tray|trolley|shelf|shelves|hooks?)\b"
)


def _in_column(names: str) -> str:
    """Return a pattern for a table cell before one of these headers, as in 物业 老周 找谁."""
    return rf"[^;\s][^;]{{0,60}}\s[^;\s]{{0,6}}(?:{names})[^;]{{0,6}}(?:;|\Z)"


# Familiar names, such as 老周.
_NICKNAME = r"(?:\A|[^一-龥])[老小阿][一-龥](?:[^一-龥]|$)"

# Patterns of answers by kind.
_HELD = {
    # A bare number in a table's column of prices has no unit.
    Wanted.MONEY: any_of(rf"(?:\A|; ){FIGURE}\s[^;]{{0,24}}(?:{HAN_MONEY_NOUN}|[价费金款额]|上限|{MONEY_NOUN}\b|(?:limit|amount|cap|rate)\b|{CURRENCY_CODE}\b)",
        # In a column "External / day"
        r"(?:\A|; )\d[\d,.]{1,12}\s(?!小时|人)[^;]{0,24}(?:/ ?|per )(?:day|night|week|month|[天日晚周月])", _MONEY, _PERCENT, r"\d\.\d\d(?!\d)|免费|不收费|全额|[\d一二三四两双]倍|\btimes (?:your|the|their|his|her|our) (?:[a-z]+ ){0,2}(?:salary|pay|wage|price|rate|fee)\b|照[常样]?发|折算|按[^,。;]{1,16}(?:计算|计发|计付|结算)|\bfree\b|no charge|at no cost|half price"),
    Wanted.PERCENT: any_of(_PERCENT, _MONEY),
    Wanted.FREQUENCY: any_of(
        rf"每|{NUMERAL}\s*次|\bevery\b|\b(?:once|twice)\b|\btimes\b|\b(?:dai|night|week|month|year|quarter)ly\b"
        r"|annually|\bper\b|\beach\b", _DURATION,
    ),
    Wanted.DURATION: any_of(
        _DURATION, r"永久|无限期|当[天日]|次日|即时|immediately|indefinitely|same day|forever|\b(?:until|till)\b|[年月季]底",
        # A number in a column of days.
        r"(?:\A|; )\d[\d.]{0,6}个?\s[^;]{0,24}(?:天|日|小时|分钟|周|月|年)数?[^;]{0,4}(?:;|\Z)"
        r"|(?:\A|; )\d[\d.]{0,6}\s[^;]{0,24}\b(?:days|hours|minutes|weeks|months|years)(?:;|\Z)",
    ),
    Wanted.WEIGHT: any_of(
        rf"{NUMERAL}\s*(?:公斤|千克|[克吨斤]|(?:kg|g|t|lbs?|pounds?|kilo\w*|grams?|ton\w*)\b)"
    ),
    Wanted.TEMPERATURE: any_of(rf"{NUMERAL}\s*(?:(?:摄氏|华氏)?度|°|(?:degrees?|c|f)\b)"),
    Wanted.MEASURE: any_of(_MEASURE),
    Wanted.CLOCK: any_of(
        _CLOCK_TIME, r"全天|24\s*小时|around the clock|24/7",
        r"\b(?:at|by|until|till|from|between|before|after) \d{1,2}(?![\d%.:]| ?[a-z€£$])|\b\d{1,2} ?- ?\d{1,2}\b",
        r"\b\d{1,2} (?:to|and) \d{1,2}\b",
    ),
    # A month or a year is not a day.
    Wanted.DAY: any_of(
        rf"\d\s*[日号](?![楼线门窗厅房车机])|\d[-/.]\d{{1,2}}[-/.]\d|\d/\d|\d{{1,2}}(?: of)? {MONTH}|{MONTH}\.? \d{{1,2}}(?!\d)",
        rf"{ORDINAL} (?:[a-z]+ )?day\b|\d(?:st|nd|rd|th)\b|{HAN_NUMERAL}[日号]", r"(?:周|星期|礼拜)[一二三四五六日天末]|[月周季年][初中末底]|[当次同]一?[天日]|前一[天日]|节日",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)(?:day)?s?\b|\b(?:day (?:before|after)|same day|end of|start of|beginning of|weekend)",
    ),
    Wanted.UNTIL: any_of(
        _CLOCK_TIME, _DATE, ORDINAL,
        r"(?:周|星期|礼拜)[一二三四五六日天末]|[年月季周][初末底]|期满|届满|为止|截止|长期|永久",
        rf"(?:天|[小时]时|日|周|月|分钟)[之以]?前|{TIME_UNIT} before\b",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:until|till|through|end of|forever|indefinitely)\b",
    ),
    Wanted.TIME: any_of(
        _CLOCK_TIME, _DATE, _DURATION, ORDINAL,
        # A condition says when as well: "repeat it if …".
        r"\b(?:if|once|when|as soon as)\b|[如若][果有遇]?|时,",
        r"(?:周|星期|礼拜)[一二三四五六日天末]|[年月季周][初末底]|每[天日周月年季]|当[天日]|次日",
        r"(?:之|以)[前后]|时[间候]|[后前](?=[,。;生方才再即]|\Z)|上午|下午|早上|晚上|季度",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d(?:th|st|rd|nd)\b",
        r"\b(?:january|february|march|april|june|july|august|september|october|november|december)\b",
        r"\b(?:in|by|until|since|from|every|each|during|early|late|mid)[ -]may\b",
        r"\b(?:morning|afternoon|evening|tonight|dai?ly|weekly|monthly|annually|quarter|spring|summer"
        r"|autumn|winter|before|after|until|within|by the end|every|once|always|never|immediately)\b",
    ),
    Wanted.CONTACT: any_of(_E_MAIL, _WEB_ADDRESS, rf"\d[\d ()-]{{3,24}}\d{_NO_AMOUNT}",
        rf"(?<![\d$¥€£])(?<!\d[.,])\d{{3,8}}{_NO_AMOUNT}"),
    Wanted.PLACE: any_of(
        rf"(?<![由对关用低高等大小不少多])于(?=[{HAN}])|来自|前往|[放存设停寄交摆挂锁装](?:在|到|进|入)(?!周|星期|[上下每]|\d+[月日点])[{HAN}a-z\d]{{2,9}}|[交寄送提]到[{HAN}a-z\d]{{2,9}}|[在于到至往送去](?!\d+[年月日天个])[^,。;]{{0,11}}?(?:[室楼层厅区柜处馆店站库房台门院页栏]|公司|中心|系统|平台|总部|学校|校区|[广操球]场|公园)|\d号?(?:会议|办公)?[室厅]|在[{HAN}]{{2,4}}(?:开会|出差|培训|举[行办]|召开|集合|办公|考试)"
        rf"|(?:地点|地址|位置|场地)[:是在为]|(?:\d|{HAN_NUMERAL})号?[楼层]"
        r"|https?:|@|地下[车室一二三\d]|[车水书]库|[省市县镇村路街巷港岛园厦](?:[^一-龥]|$)|大厦|网站|处领取|(?:冰[箱柜]|抽屉|货架|仓库|机房|[柜箱袋]子?|信封)(?:[里内中上下旁]|[^一-龥]|$)",
        r"\b(?:via|behind|opposite|near|next to|inside|outside)\b"
        rf"|\b(?:in|at|on|from|to|into|onto|above|below|under) (?:the |our |your |an? )?(?:[\w-]+ ){{0,2}}(?:{_ROOM}|{_OTHER_PLACE})",
        r"(?:[放存交送移传寄退][在到进入至]?|转接?[到至])[^,。;]{0,8}?(?:[室库区柜架箱桶台处厅]|服务器|平台|系统|手机|网盘)|会议室|公众号|小程序|自助机",
        r"\b(?:floor|building|room|street|road|avenue)\b|\bspaces? \d|\b(?:place|location|venue|address|where):",
        r"\b(?:on|at|in|under|below|inside|behind) (?:the |its )?(?:\w+ ){0,2}(?:edge|side|back|front|bottom|top|door|lid|cover"
        r"|panel|wall|shelf|counter|corner|middle|levels?|bag|box)\b",
        r"\bat the (?!end|latest|earliest|time|same|moment|beginning|start|most|least|request|rate|price|weekend)",
        _in_column("存放|地点|位置|[库货]位|房间|where|location|place|room|kept|stored"),
    ),
    Wanted.COLOUR: any_of(
        r"[红橙黄绿蓝紫黑白灰粉棕银金米][色的]|[深浅藏][红绿蓝灰]|(?<![一-龥])[红橙黄绿蓝紫黑白灰粉棕银金](?![一-龥])|\b(?:red|orange|yellow|green|blue|purple|violet|black|white|gr[ae]y"
        r"|pink|brown|silver|gold|beige|navy|turquoise|transparent)\b|透明|无色"
    ),
    # The office itself is not an answer.
    Wanted.HOLDER: any_of(_NICKNAME, r"\b(?:mr|ms|mrs|dr)\b"),
    Wanted.PERSON: any_of(
        r"[甲乙丙双]方|(?<![一两二三四五六七八九十几多每\d])个人|本人|自[己行理费]|房东|[租业]主|租客|客户|公司|单位|人员|专家|家长|导游|hrbp|(?:人|者|方|主持|记录|导师):|经理|主[管任席]|总监|副总|总裁|董事|[部处科校院所组队店会班库场厂站室]长|[小题]组|学[校院]|委员会|负责人|专员|[部处]门?(?:[^一-龥]|$)"
        r"|(?<![理自缘事])由(?![于此来])[一-龥]{2}|[员师生](?:[^一-龥]|$)|(?:人力资源|财务|行政|技术|法务|市场|销售|采购|安全)部|物业|前台",
        r"(?:\A|[,。;、\s]|[由找向给经请]|联系|通知)(?:财务|人事|行政|法务|采购|客服|运维|后勤)(?=[每会将在按审付办核给收应需统]|负责|[,。;、]|\Z)",
        _NICKNAME,
        _in_column("找?谁|(?:负责|联系|责任|经办)人|who|person|owner|contact"),
        r"\b(?:manager|head|director|officer|team|desk|department|committee|board|administrator"
        r"|admin|owner|lead|leader|supervisor|staff|president|founder|author|engineer"
        r"|tenant|landlord|employee|employer|customer|client|supplier|contractor|company|nurse|technician"
        r"|operator|volunteer|chair|host|doctor|professor|commander|coordinator|trainer|teacher|secretary|treasurer|specialist|group|lab|university|institute|college|insurer|driver|guard|agency|member|police|reception|porter|attendant|examiner|investigator|agent|hr|ceo|cto|cfo|mr|ms|mrs|dr|anyone|everyone|only you)s?\b",
        r"\b(?:finance|accounts|accounting|payroll|treasury|procurement|purchasing|facilities|logistics"
        r"|compliance|human resources|hr|help ?desk|receptionists?)\b|\((?:it|qa|legal|sales|marketing)[,;)]",
    ),
    Wanted.NAME: any_of(rf"[{HAN}\w]{{2,12}}(?:公司|银行|医院|大学|集团|厂家?|站|委员会)|[「“《]|[一-龥]\s?[a-z]{2,}"),
    Wanted.LIST: any_of(r"、|[,;][^,;]+[,;]|\band\b|[和及与或]|\bor\b"),
    Wanted.NUMBER: any_of(NUMERAL),
    Wanted.CODE: any_of(r"[a-z]\d|[a-z][-_.]\d|\d[\w.-]{0,40}[a-z]|(?<![\d:])\d{2,}(?!:)|\d\.\d"),
}  # fmt: skip
# A number counts as a count unless it is something else, such as a date.
_NOT_COUNTS = any_of(
    _MONEY, _PERCENT, _DURATION, _CLOCK_TIME, _DATE, r"\d[\d-]{5,24}\d",
    rf"\d{{1,12}}\.\d+|第\s*[\d一二三四五六七八九十]+|\A\s*[\d一二三四五六七八九十]+[.)、]|(?<![a-z]){CODE}"
    r"|(?:分机|电话|热线|编号|号码|房间|\bext(?:ension|\.)?|\bno\.|#)\s*:?\s*[\d-]+"
    r"|\d[\d-]* {1,2}(?:分机|电话|手机|热线|编号|号码|工号|(?:phone|extension)(?=;|\Z))|\d\s?楼(?!层)"
    r"|\b(?:room|floor|level|building|gate|step|section|chapter|page|line)s? \d+(?:(?:,| and| to|-) ?\d+)*|\d+f\b|\d号楼"
    rf"|{FIGURE}\s*(?:[ckm]?m[23]?|k?g|[kmgt]b|k?w|m?a|v|db)\b"
    r"|\d[\d ]{0,12}(?:号线|号)|一[致般定些直起切律样旦]|统一|唯一|之一",
)  # fmt: skip
# 412 块塑料托 are not money.
_PIECES = re.compile(r"(?<=\d)\s*块(?=[一-龥])(?!钱)")
_COUNT = any_of(rf"\d[\d,]{{0,12}}|{HAN_NUMERALS}(?=[{COUNTERS}次倍])|{NUMBER_WORD}|\bno\b|不限")
# rjieba's tags of Chinese names: people, organisations, places, other proper names.
_NAMING_TAGS = {
    Wanted.HOLDER: ("nr",),
    Wanted.PERSON: ("nr",),
    Wanted.PLACE: ("ns", "nt"),
    Wanted.NAME: ("nr", "nt", "nz"),
}
_OF_PEOPLE = (Wanted.HOLDER, Wanted.PERSON)
# Questions that want one kind of place or of contact, and its signs.
_NARROWER = {
    Wanted.PLACE: (
        (
            re.compile(
                r"(?:在|是)哪[个间](?:房间|屋|[会办教])|哪[个间](?:房间|\w{1,2}室)\W*\Z"
                r"|\bin (?:which|what) room\b|\b(?:which|what) room(?: (?:is|are|was|do|does|will)\b|\W*\Z)"
            ),
            any_of(
                r"\brooms? (?:\d+|(?!(?:for|and|with|has|have|was|are|must|may|can|number|service)\b)[a-z]{3,})"
                rf"|\d\s*[室房]|(?:\d|{HAN_NUMERAL})\s*[楼层]|(?:会议|办公|接待|培训|教|活动|多功能|休息|实验|阅览|资料|档案|值班|医务|茶水|储藏|更衣|报告|展|餐|[大小机])[室厅房]|图书馆|食堂|仓库|{_ROOM}"
                r"|\b(?:rooms?|lab(?:oratory)?|library|workshop)\b|\bno\. ?\d"
                r"|(?<![\d:.])\b[a-z]?[-.]?\d{3,4}\b(?![:.\d]| ?[a-z元年人次个克天%])"
            ),
        ),
        (
            re.compile(r"几[楼层](?!以)|哪一?个?[楼层](?!楼梯)|\b(?:which|what) floor\b"),
            any_of(
                rf"(?:\d|{HAN_NUMERAL}|底|顶|地下)\s*[楼层]|[(;\s]\d{{3,4}}\b|\d{{3,4}}室"
                r"|\b\w+ floor\b|\bfloor \d|\b(?:basement|cellar|attic|upstairs|downstairs|level)\b"
            ),
        ),
    ),
    Wanted.MEASURE: (
        # 多长的航班
        (re.compile(r"多长的"), any_of(_MEASURE, _DURATION)),
        (
            re.compile(r"多远|\bhow far\b"),
            any_of(
                rf"{NUMERAL} ?(?:[公千厘毫]?米|公里|海里|里|[ckm]?m\b|(?:kilo|centi|milli)?met(?:er|re)s?\b|miles?\b|yards?\b|feet\b|inches\b)"
                rf"|{NUMERAL} ?(?:minutes|mins|分钟)"
            ),
        ),
    ),
    Wanted.CODE: (
        (
            re.compile(r"端口|\bport\b"),
            any_of(r"(?:端口|\bports?)[^.;。；]{0,16}\d{2,5}|\d{2,5} ?(?:号?端口|ports?\b|/? ?(?:tcp|udp))"),
        ),
    ),
    Wanted.CONTACT: (
        (
            re.compile(REACHES),
            any_of(
                _E_MAIL, _WEB_ADDRESS, r"(?<![\d.,])\d{3,24}(?!\d)",
                r"联系|拨打?|致电|来电|发邮件|留言|微信|钉钉|飞书|企微|群[里内组]|前台|工位|分机|电话|热线|窗口|工单",
                r"\b(?:call|ring|dial|phone|write|e-?mail|mail|message|slack|teams|channel|chat|ticket"
                r"|desk|extension|hotline|contact|drop (?:in|by)|come (?:to|by)|speak to|ask)\b",
            ),
        ),
        (re.compile(r"邮箱|邮件地址|\be-?mail address"), any_of(_E_MAIL)),
        # An extension is not a mobile number.
        (re.compile(r"手机|\b(?:mobile|cell)\b"), any_of(r"\d(?:[ ()-]{0,2}\d){8,14}")),
        (
            re.compile(r"网址|\b(?:url|web ?site|web address)\b"),
            any_of(_WEB_ADDRESS),
        ),
    ),
}  # fmt: skip
# Not folded, because a capital letter inside a sentence marks a name.
_NAME = re.compile(
    r"(?:(?<=[\w,;:|] )|(?<=[：（、，。]))[A-Z][a-zà-ÿ’'-]+(?:[A-Z][a-zà-ÿ]+)*|\A[A-Z][\w’'-]+ [A-Z][\w’'-]+"
)
# "By IT", "IT resets", and IT alone in a cell; not "the IT policy".
_SHORT_NAME = "(IT|QA|PR|SRE|L&D)"
_DEPARTMENT = re.compile(
    rf"\b(?:by|from|with|to|via|[Aa]sk|[Cc]ontact|[Tt]ell|[Cc]all|[Ii]nform) {_SHORT_NAME}\b"
    rf"|(?:\A|[.;|•-] ){_SHORT_NAME}(?= (?:will|must|may|can|should|\w+s)\b)"
    rf"|[|:] {_SHORT_NAME}(?=\s*(?:\Z|[|,;.]))"
)
# A place stands after a word that says so, or alone in a cell or an item, or has two words.
_NAME_OF_PLACE = re.compile(
    r"(?:(?:\b(?:[io]n|at|to|from|near|into|via|of|through|behind|outside|between|for|and|or|the|In|At)|[;|:>–-]) |[：（、，。]"
    r"|\b(?=[A-Z][\w’'-]{1,30} [A-Z]))([A-Z][\wà-ÿ’'-]+)"
)
# At the beginning of a sentence, a capital letter says less.
_FIRST_WORD = re.compile(r"\A[\W\d_]*([A-Z][a-zà-ÿ]+)(?= [a-z])")
_CALENDAR = re.compile(
    r"january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
)
# The units of one quantity per line; folded.
_UNITS = tuple(
    re.compile(rf"(?<![a-z])(?:{names})(?![a-z])")
    for names in (
        r"千?瓦|k?w|(?:kilo|mega)?watts?",
        r"伏特?|k?v|(?:kilo)?volts?",
        r"[毫厘分千公海]?[米里]|[mck]?m|(?:kilo|centi|milli)?met(?:er|re)s?|miles?|feet|foot|inch(?:es)?|英?寸",
        r"毫?升|m?l|(?:milli)?lit(?:er|re)s?",
        r"[kmgt]b|(?:kilo|mega|giga|tera)bytes?",
        r"[kmg]?hz|赫兹?",
        r"分贝|decibels?|dba?",
        r"帧|fps|frames?",
        r"[万亿]?像素|(?:mega)?pixels?|mp",
        r"流明|lumens?|lm",
        r"转|rpm|revolutions",
        r"毫?安|m?ah?|amps?|amperes?",
        r"k?pa|帕|bar|psi",
    )
)
# The size of the "140 L" fridge whose noise is asked for.
_GIVEN = re.compile(rf"{FIGURE}\s?(?:[a-z]+|[{HAN}])")
# "Who do I call?" is answered by a number as well.
_CALLS = re.compile(
    r"\b(?:call|ring|phone|dial|e-?mail|contact|talk to|report to)\b|打给|联系|致电|打电话|打哪|拨打|发邮件"
)
# So is "who do I turn to?", if the statement says to call.
_TURNS_TO = re.compile(r"找谁|找哪|\bwho(?:m)? (?:do|should|can) (?:i|we)\b")

_HOLDS = re.compile(OFFICE, re.IGNORECASE)
# "Approved by the CTO" does not say who that is; "by the CTO, Ann Berg" does.
_GOES_TO = re.compile(
    rf"\b(?i:by|from|to|with|of) (?i:the |our )(?:\w+ )?(?i:{OFFICE})\b(?!,? [A-Z])"
    rf"|[由经待报向需请][^，。;；、]{{0,6}}{OFFICE}(?=[审批签核]|同意|确认|决定|汇报|提出|\Z)"
)
# "Which people may not enter?" is also answered by groups such as visitors, who hold no office.
_ASKS_PEOPLE = re.compile(r"[哪什][些么]人|\b(?:which|what) (?:people|persons)\b")
_PEOPLE = re.compile(
    r"\b(?:visitor|guest|person|people|child|children|minor|student|patient|participant)s?\b|[者人童]"
)


def can_hold(wanted: Wanted, statement: str, question: str) -> bool:
    """Return whether a statement has something of the wanted kind that is not in the question."""
    folded, asked = fold(statement).text, fold(question).text
    return wanted in ANY_TEXT or _has_signs(wanted, statement, folded, question, asked)


def _has_signs(wanted: Wanted, statement: str, folded: str, question: str, asked: str) -> bool:
    if wanted is Wanted.COUNT:
        counted = _NOT_COUNTS.sub(" ", _PIECES.sub("个", folded))
        return not set(_COUNT.findall(counted)) <= set(_COUNT.findall(asked))
    if wanted is Wanted.CONTACT:
        folded = _TIME_OF_DAY.sub(" ", _WITH_YEAR.sub(" ", folded))
    if wanted is Wanted.UNIT:
        return _has_unit(folded, asked)
    if wanted is Wanted.PERSON and (_tells_to_call(folded, asked) or _is_of_people(folded, asked)):
        return True
    for asks, sign in _NARROWER.get(wanted, ()):
        if asks.search(asked):
            return any(found.group() not in asked for found in sign.finditer(folded))
    if wanted in (*_NAMING_TAGS, Wanted.CODE):
        is_held = wanted is not Wanted.HOLDER or _names_holder(statement)
        return is_held and _has_name(wanted, statement, folded, question, asked)
    return _HELD[wanted].search(folded) is not None


def _has_unit(folded: str, asked: str) -> bool:
    """Return whether a statement has a figure and a unit of the kind that the question asks for.
    Units that the question has with a figure are not asked for."""
    asked = _GIVEN.sub(" ", asked)
    named = (unit for unit in _UNITS if unit.search(asked))
    return any(map(str.isdigit, folded)) and any(unit.search(folded) for unit in named)


def _tells_to_call(folded: str, asked: str) -> bool:
    if not _HELD[Wanted.CONTACT].search(folded):
        return False
    return bool(_CALLS.search(asked) or (_TURNS_TO.search(asked) and _CALLS.search(folded)))


def _is_of_people(folded: str, asked: str) -> bool:
    return bool(_ASKS_PEOPLE.search(asked) and _PEOPLE.search(folded))


def _has_name(wanted: Wanted, statement: str, folded: str, question: str, asked: str) -> bool:
    """Return whether a statement has a name or a code that the question does not have."""
    held = [match.group().strip(" ,.。") for match in _HELD[wanted].finditer(folded)]
    capitals = _NAME_OF_PLACE if wanted is Wanted.PLACE else _NAME
    names = (name.lower() for name in [*capitals.findall(statement), *_first_name(statement)])
    held += [name for name in names if not _CALENDAR.fullmatch(name)]
    if any(one not in asked for one in held):
        return True
    if wanted is Wanted.PERSON and any(
        one[one.lastindex or 0] not in question for one in _DEPARTMENT.finditer(statement)
    ):
        return True
    if wanted in _OF_PEOPLE and any(name not in asked for name in find_han_names(folded)):
        return True
    tags = _NAMING_TAGS.get(wanted)
    return tags is not None and any(
        tag.startswith(tags) and word not in question for word, tag in rjieba.tag(folded)
    )


def _names_holder(statement: str) -> bool:
    """Return False if a statement names an office only as the recipient of something."""
    return _HOLDS.search(_GOES_TO.sub(" ", statement)) is not None or not _HOLDS.search(statement)


def _first_name(statement: str) -> list[str]:
    """Return the first word of a sentence, unless the dictionary has it: a name such as Fiona."""
    first = _FIRST_WORD.match(statement)
    return [first[1]] if first and not is_word(first[1]) else []


@lru_cache(maxsize=4096)
def is_word(text: str) -> bool:
    """Return whether the dictionary has a text."""
    terms = index_terms(text)
    return terms in STOP_WORDS or any(translations(terms.split()))
