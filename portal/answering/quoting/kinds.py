"""The kind of answer that a question wants, and which texts can contain one.

A statement without an amount of money does not answer "how much does it cost", however many words
of the question it has.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

import rjieba

from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.terms.analyser import index_terms
from portal.text.terms.lexicon import translations
from portal.text.terms.stopwords import STOP_WORDS


class Wanted(StrEnum):
    """The kind of answer that a question wants; a statement without one is not an answer."""

    ANYTHING = "anything"
    MONEY = "money"
    PERCENT = "percent"
    FREQUENCY = "frequency"
    DURATION = "duration"
    WEIGHT = "weight"
    TEMPERATURE = "temperature"
    MEASURE = "measure"
    UNIT = "unit"  # A figure in the unit that the question names.
    COLOUR = "colour"
    COUNT = "count"
    NUMBER = "number"
    CLOCK = "clock"
    DAY = "day"
    TIME = "time"
    CONTACT = "contact"
    PLACE = "place"
    HOLDER = "holder"  # Of an office, by name.
    PERSON = "person"
    REASON = "reason"
    NAME = "name"
    CODE = "code"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_NUMBER_WORD = (
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|sixty|ninety|hundred|thousand|half|none|unlimited)\b"
)
_HAN_NUMERAL = r"[零〇一二两三四五六七八九十百千万半]"
_NUMERAL = rf"(?:\d[\d,.]*|{_HAN_NUMERAL}+|{_NUMBER_WORD})"
_TIME_UNIT = (
    r"(?:秒|分钟|小时|钟头|天|(?:自然|工作)?日|周|星期|礼拜|个月|月|季度|年"
    r"|(?:working |business |calendar )?(?:second|minute|hour|day|night|week|month|quarter|year)s?\b"
    r"|(?:h|hrs?|mins?|s|secs?)\b)"
)
_ORDINAL = r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)\b"
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]{0,6}\b"
_CURRENCY = r"(?:元|块钱?|万元|亿元|美元|欧元|镑|法郎|卢布|rmb|usd|eur|cny|dollar|euro|yuan|pound|cent|yen|franc|rupee|kron[aeo])"
_MEASURE_UNIT = (
    r"(?:平方(?:米|公里|千米)|平米|公顷|亩|立方米|海里|公里|千米|厘米|毫米|米|公斤|千克|吨|克|升|瓦|千瓦|度|级|℃|°"
    r"|(?:km|cm|mm|kg|gb|mb|tb|kb|ghz|mhz|mbps|gbps|kwh?|characters?|met(?:er|re)s?|kilomet\w+|miles?"
    r"|feet|foot|inch\w*|square|grams?|tons?|lit(?:er|re)s?|degrees?|watts?|volts?|pixels?|m[23²³]?|m?s|bits?)\b"
    r"|个?字符?|位|岁)"
)
# What Chinese counts with: 两只, 三份.
_COUNTERS = "个位名人份条种层台页张家款项件辆间部套支道步笔本只头瓶盒箱袋把双对座栋艘架处"
# What is measured alike, one a line; folded.
_UNITS = tuple(
    re.compile(rf"(?<![a-z])(?:{names})(?![a-z])")
    for names in (
        r"千?瓦|k?w|(?:kilo|mega)?watts?",
        r"伏特?|k?v|(?:kilo)?volts?",
        r"[毫厘分千公海]?[米里]|[mck]?m|(?:kilo|centi|milli)?met(?:er|re)s?|miles?|feet|foot|inch(?:es)?",
        r"毫?升|m?l|(?:milli)?lit(?:er|re)s?",
        r"[kmgt]b|(?:kilo|mega|giga|tera)bytes?",
        r"[kmg]?hz|赫兹?",
    )
)
_UNIT_NAME = (
    r"(?:k?w|(?:kilo|mega)?watts?|volts?|[mck]m|(?:kilo|centi|milli)?met(?:er|re)s|miles|feet|inches"
    r"|ml|(?:milli)?lit(?:er|re)s|[kmgt]b|gigabytes|megabytes|terabytes|[mg]hz)\b"
)
_MONEY_NOUN = r"(?:price|cost|fee|budget|salary|wage|charge|fare|fine|deposit|allowance|rent)s?"
_HAN_MONEY_NOUN = r"(?:价格|费用|金额|工资|薪水|预算|租金|押金|罚款|奖金|补贴|单价|年费|月费|标准)"

# "Which day rate" asks for no day.
_NOT_OF_A_NOUN = (
    r"(?= (?:is|was|are|were|do|does|did|can|must|will|should|has|have|i|we|in|of|the)\b|\Z)"
)
_OFFICE = (
    r"(?:总?经理|总监|主任|董事长|总裁|[院校部处科组店队会]长|老板|创始人|作者|导师"
    r"|(?:manager|director|president|principal|dean|head|chief|ceo|cto|cfo|coo|founder|author)s?)"
)
# Patterns of questions by kind, first match wins. Texts are folded: lower case, simplified.
_ASKED = (
    (
        Wanted.REASON,
        _any(
            r"为什么|为何|什么原因|(?:是何|有何)原因|\bwhy\b|\bhow come\b",
            r"what(?: is| was|'s) the reason",
        ),
    ),
    (
        Wanted.PERCENT,
        _any(
            r"百分之[几多]|百分比|几折|多少折|[率例](?:是|为|有)?多少|占多少|(?:多少|什么|多大)(?:的)?比[例率]|几成",
            r"(?:what|which) (?:percentage|percent|share|proportion|discount)|how many percent",
        ),
    ),
    (
        Wanted.MONEY,
        _any(
            r"多少钱|多少元|几块钱?|什么价",
            rf"{_HAN_MONEY_NOUN}(?:标准)?(?:是|为|有)?(?:多少|几何)(?!天|人|个|小时)",
            r"(?:保|金|限|余|税|总)额(?:是|有|为)?多[大少高]|多[大高]的?金额",
            rf"多少{_HAN_MONEY_NOUN}|多少[{HAN}]{{0,3}}[费金款钱贴薪税]|怎么收费|如何收费",
            r"\b(?:what|how much)\b.*\bpaid\b",
            r"how much (?:money|does|do|did|will|would|is|are|was|were|can i|may i|can we|could i)"
            r"(?!.*\b(?:weigh|storage|space|memory|time)\b)",
            r"how (?:expensive|costly)",
            rf"(?:what|which)(?: is| are| was| were|'s)? .*\b{_MONEY_NOUN}\b",
        ),
    ),
    (
        Wanted.FREQUENCY,
        _any(r"多久.{0,8}[一几][次回]|几次|多长时间一次|多少次|频率|多久(?:要|需要?|会|就)?(?:更换|轮换|更新|备份|检查|体检|巡检|维护|盘点|消毒)|\bhow often\b|how frequently"),
    ),
    (
        Wanted.DURATION,
        _any(
            r"多久|多长时间|几天|几个?(?:小时|周|星期|月|年|工作日|分钟)|多长$|期(?:限)?(?:是|有|为)?多长",
            r"多少个?(?:天|小时|周|月|年|分钟|工作日)|时长|期限(?:是|为)|多长的?(?:有效|保质|保修|试用)?期|几秒",
            r"\b(?:within|in|after) (?:what|which|how much) time\b|how (?:soon|quickly|fast) (?!is|are)",
            rf"how many (?:[a-z]+ )?{_TIME_UNIT}|how much (?:[a-z]+ )?(?:time|notice|leave|holiday|vacation)",
            r"how early|how (?:far|long) (?:in advance|ahead|beforehand)",
            r"how long (?!(?:must|should|can|may|does|do) (?:a |an |the |my )?"
            r"(?:password|passphrase|text|message|file|name|cable|title|code))",
        ),
    ),
    (
        Wanted.UNIT,
        _any(
            rf"how many (?:[a-z]+ )?{_UNIT_NAME}|\b(?:value|figure|power|speed|length|width|height|size|range)\b.* in {_UNIT_NAME}",
            r"多少(?:千?瓦|伏|[毫厘]米|毫升)",
        ),
    ),
    (
        Wanted.WEIGHT,
        _any(
            r"多重|重量(?:是|为|有)?多少|(?:多少|几)(?:公斤|千克|克|吨|斤)",
            r"\bhow heavy\b|how many (?:kg|kilo(?:gram)?s|grams|tons|tonnes)\b|\bweigh\b|what(?: is|'s) the (?:\w+ ){0,3}weight\b",
        ),
    ),
    (
        Wanted.TEMPERATURE,
        _any(
            r"多[热冷]|几度|多少度|温度(?:是|为|有|要)?(?:多少|多高|几)",
            r"how (?:hot|cold|warm)\b|(?:what|which)(?: is| are|'s)? .*\btemperature",
        ),
    ),
    (
        Wanted.MEASURE,
        _any(
            r"多[大高远宽深快厚长]|面积|多少(?:平方|公里|米|升|gb|mb|tb|字|位|流量|空间)",
            r"(?:容量|大小|速度|长度|高度)(?:是|为|有)?多少|几[米位]",
            r"how (?:big|large|far(?! (?:above|below|over|under|behind))|fast|high|tall|wide|deep|long)\b",
            r"how much (?:storage|space|memory|bandwidth)\b",
            r"what(?: is|'s) the (?:\w+ ){0,3}(?:size|length|height|speed|distance)\b",
        ),
    ),
    (
        Wanted.COLOUR,
        _any(r"(?:什么|哪种|哪个|何种)颜色|颜色(?:是|为)(?:什么|哪)", r"(?:what|which) colou?r"),
    ),
    (
        Wanted.COUNT,
        _any(
            rf"多少[{_COUNTERS}员]|(?<!哪)几[{_COUNTERS}次楼岁倍代]|多少[{HAN}]{{0,3}}(?:用户|客户|人|学生|会员|员工)",
            r"how (?:many|old)|what (?:is the )?number of",
        ),
    ),
    (
        Wanted.CONTACT,
        _any(
            r"(?:电话|热线|邮箱|邮件地址|网址|联系方式|分机|微信|qq)号?码?(?:地址)?(?:是|为|有)?(?:多少|几|什么|哪个?)?\Z"
            r"|(?:什么|哪个|多少)(?:电话|热线|邮箱|邮件地址|网址|联系方式|分机)|打(?:哪|什么|几)",
            r"(?:phone|telephone|extension|hotline) number|e-?mail address|\b(?:url|web ?site|web address)\b",
            r"what number",
        ),
    ),
    (
        Wanted.CODE,
        _any(
            r"(?:密码|口令|编号|型号|版本号?|代码|代号|序列号|工号|账号)(?:是|叫|为|用)?(?:的是)?(?:什么|多少|哪个|几)",
            r"(?:什么|哪个|哪种|哪款)(?:型号|版本|编号)",
            r"(?:what|which)(?: is| are|'s)?(?: the| our)?(?: \w+){0,2} (?:password|passcode|pin|serial number|model number|version|model)\b",
            r"what(?: is|'s) the code\b",
        ),
    ),
    (
        Wanted.NUMBER,
        _any(r"多少|how much|(?:what|which) number|how far (?:above|below|over|under|behind)"),
    ),
    (
        Wanted.CLOCK,
        _any(
            r"几点|几时|(?:什么|哪个)时(?:间段|段)|\b(?:what|which) time\b|opening hours",
            r"what(?: are|'re) (?!.*\b(?:number|total)\b).*\bhours(?: of .*)?\Z",
        ),
    ),
    (
        Wanted.DAY,
        _any(
            r"(?<![好第])几号(?![楼线门窗厅房车机])|哪一?[天日]",
            rf"\b(?:what|which) (?:date|(?:week)?day)\b{_NOT_OF_A_NOUN}",
        ),
    ),
    (
        Wanted.TIME,
        _any(
            r"什么时候|何时|什么时间|哪一?[年天]|几月|哪个?月|星期几|周几|截止(?:日期|时间)",
            r"哪一?日|日期是|从哪天",
            r"\A(?:and |so |since |by |until )?(?:when|how late)\b(?! [a-z']+ing\b)",
            r"\b(?:and|by|until|since|or|,) when\b|when (?:is|was|are|were|did|do|does|will|can|must)\b",
            r"(?:what|which)(?: is the)? (?:date|(?:week)?day|year|month|century|deadline)\b"
            rf"{_NOT_OF_A_NOUN}",
            r"by what date|\A(?:the )?deadline\b|\bdeadline\?",
        ),
    ),
    (
        Wanted.PLACE,
        _any(
            r"哪里|哪儿|何处|什么地方|在哪(?![些个种])|哪个(?:城市|国家|地方|楼层?)",
            r"(?:地址|位置)(?:是|在)|几楼|几层|几号[楼门厅]|\bwhere\b|哪座",
            r"(?:which|what) (?:city|country|building|floor|place|town|street|address)",
        ),
    ),
    (
        Wanted.HOLDER,
        _any(
            rf"谁是.{{0,10}}{_OFFICE}\Z|{_OFFICE}(?:现在|目前)?(?:是谁|是哪位|叫什么)",
            rf"\bwho(?:'s| is| was| are) (?:the |our |your |my )?(?:\w+ )?{_OFFICE}\b(?: of .*)?\Z",
        ),
    ),
    (
        Wanted.PERSON,
        _any(
            r"谁|哪[位些]?(?:人|员工|同事)|哪位|何人|什么人",
            # "Which setting is for those who …" asks for no person.
            r"\A(?!(?:(?:by|for|from|in|on|to|with) )?(?:which|what|how|when|where)\b(?!.*\bname\b)).*?"
            r"\bwho(?:m|se)?\b(?! knows)",
            r"which (?:person|manager|employee)|who's",
        ),
    ),
    (
        Wanted.NAME,
        _any(
            r"叫什么|名字(?:是|叫)|什么(?:牌子|品牌|公司|软件|工具|系统|平台)|哪家",
            r"哪个(?:厂家|厂商|公司|供应商|品牌|牌子|软件|工具|系统|平台|网站|链接|银行|医院|机构|部门|群)",
            r"(?:what|which)(?: \w+)? (?:supplier|vendor|provider|company|manufacturer|brand|tool|app|software"
            r"|system|bank|agency|airline|carrier|firm|hotel|hospital|university|partner|insurer)\b",
            r"what(?: is|'s| was) the name of|what(?: is|'s| are) .{1,30} called|who (?:makes|supplies)",
        ),
    ),
)

_MONEY = (
    rf"\d[\d,.]*\s*(?:{_CURRENCY}|pence\b|p\b(?!\.?m)|[万亿k]\b|[mb]illion)|[$¥€£₩₹]\s*\d|{_HAN_NUMERAL}+{_CURRENCY}"
    r"|\b(?:eur|usd|cny|rmb|chf|gbp)\s?\d"
    rf"|{_NUMERAL}\s*个?(?:月|周|年)的?(?:租|房租|工资|薪)"
    rf"|{_NUMERAL} (?:months?|weeks?|years?)['’]? (?:of )?(?:rent|pay|salary|wages)\b"
)
_PERCENT = r"\d\s*[:：]\s*\d|\d\s*(?:%|percent|per cent|‰)|百分之|[一二三四五六七八九]折|\d折|\bhalf\b|一半|全额"
_DURATION = (
    rf"\d[:：]\d\d\s*(?:to|and|[-–—至到])\s*\d{{1,2}}[:：]\d\d|{_NUMERAL}\s*[多余个-]?\s*-?(?:full |whole |clear )?{_TIME_UNIT}"
    r"|\ban? (?:second|minute|hour|day|week|month|year)\b"
    rf"|\d(?:st|nd|rd|th) {_TIME_UNIT}|第\s*{_NUMERAL}\s*个?(?:[天日周]|工作日)"
)
_CLOCK_TIME = rf"\d{{1,2}}\s*[:：]\s*\d\d|(?:\d\s*|{_HAN_NUMERAL})[点时](?!间)|\d\s*[ap]\.?m\b|o'clock|\bnoon\b|midnight|中午|正午"
_DATE = (
    rf"(?:1[5-9]|20)\d\d|\d{{1,2}}\s*[月日号](?!元)|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of )?{_MONTH}"
    rf"|{_MONTH}\.?\s*\d|{_HAN_NUMERAL}+月"
)
_MEASURE = rf"\d[\d,.]*\s*{_MEASURE_UNIT}|{_NUMERAL}+个?{_MEASURE_UNIT}|unlimited|不限|无限"

_ROOM = (
    r"(?:buildings?|rooms?|floors?|offices?|lobby|reception|desk|hall|garage|car park|yard|shed|gate|entrance"
    r"|basement|kitchen|drawer|cabinet|cupboard|stores?|warehouses?|city|town|country|portal|system|page|menu"
    r"|folder|wiki|intranet|app|site|tab|cent(?:er|re)|station|hotel|hospital|bucket|region|address)\b"
)


def _in_column(names: str) -> str:
    """Return a pattern of a table's cell under one of these headers, as in 物业 老周 找谁."""
    return rf"[^;\s][^;]{{0,60}}\s(?:{names})(?:;|\Z)"


# Familiar names, such as 老周.
_NICKNAME = r"(?:\A|[^一-龥])[老小阿][一-龥](?:[^一-龥]|$)"

# Patterns of answers by kind.
_HELD = {
    # A bare number in a table's column of prices has no unit.
    Wanted.MONEY: _any(rf"(?:\A|; )\d[\d,.]*\s[^;]{{0,24}}(?:{_HAN_MONEY_NOUN}|价|费|{_MONEY_NOUN}\b)", _MONEY, _PERCENT, r"\d\.\d\d(?!\d)|免费|不收费|全额|\bfree\b|no charge|at no cost|half price"),
    Wanted.PERCENT: _any(_PERCENT, _MONEY),
    Wanted.FREQUENCY: _any(
        rf"每|{_NUMERAL}\s*次|\bevery\b|\b(?:once|twice)\b|\btimes\b|\b(?:dai|week|month|year|quarter)ly\b"
        r"|annually|\bper\b|\beach\b", _DURATION,
    ),
    Wanted.DURATION: _any(
        _DURATION, r"永久|无限期|当[天日]|次日|即时|immediately|indefinitely|same day|forever"
    ),
    Wanted.WEIGHT: _any(
        rf"{_NUMERAL}\s*(?:公斤|千克|[克吨斤]|(?:kg|g|t|lbs?|pounds?|kilo\w*|grams?|ton\w*)\b)"
    ),
    Wanted.TEMPERATURE: _any(rf"{_NUMERAL}\s*(?:度|[℃°]|(?:degrees?|c|f)\b)"),
    Wanted.MEASURE: _any(_MEASURE),
    Wanted.CLOCK: _any(
        _CLOCK_TIME, r"全天|24\s*小时|around the clock|24/7",
        r"\b(?:at|by|until|till|from|between|before|after) \d{1,2}(?![\d%.:]| ?[a-z€£$])|\b\d{1,2} ?[-–] ?\d{1,2}\b",
        r"\b\d{1,2} (?:to|and) \d{1,2}\b",
    ),
    Wanted.DAY: _any(
        _DATE, _ORDINAL, rf"\d(?:st|nd|rd|th)\b|{_HAN_NUMERAL}[日号]", r"(?:周|星期|礼拜)[一二三四五六日天末]|[月周季年][初中末底]|[当次同]一?[天日]|前一[天日]|节日",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)(?:day)?s?\b|\b(?:day (?:before|after)|same day|end of|start of|beginning of|weekend)",
    ),
    Wanted.TIME: _any(
        _CLOCK_TIME, _DATE, _DURATION, _ORDINAL,
        # A condition says when as well: "repeat it if …".
        r"\b(?:if|once|when|as soon as)\b|[如若][果有遇]?|时[，,]",
        r"(?:周|星期|礼拜)[一二三四五六日天末]|[年月季周][初末底]|每[天日周月年季]|当[天日]|次日",
        r"(?:之|以)[前后]|[期时](?:间|候)|(?:后|前)(?:[，,。；]|\Z)|上午|下午|早上|晚上|季度",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d(?:th|st|rd|nd)\b",
        r"\b(?:january|february|march|april|june|july|august|september|october|november|december)\b",
        r"\b(?:in|by|until|since|from|every|each|during|early|late|mid)[ -]may\b",
        r"\b(?:morning|afternoon|evening|tonight|dai?ly|weekly|monthly|annually|quarter|spring|summer"
        r"|autumn|winter|before|after|until|within|by the end|every|once|always|never|immediately)\b",
    ),
    Wanted.CONTACT: _any(r"[\w.]@[\w]|https?:|www\.|\.(?:com|cn|org|net|example|io)\b|\d[\d ()-]{3,}\d"
        rf"|(?<![\d.,$¥€£])\d{{3,8}}(?![\d.,]*\s*(?:[元%]|[天日年月]|{_MEASURE_UNIT}|{_CURRENCY}))"),
    Wanted.PLACE: _any(
        rf"(?<![由对关用低高等大小不少多])于(?=[{HAN}])|来自|前往|[放存设停寄交]在|[交寄送提]到|[在于到至](?!\d)[^,，。;；]{{0,11}}?(?:[室楼层厅区柜处馆店站库房台门院页栏]|公司|中心|系统|平台)"
        rf"|(?:地点|地址|位置|场地)[:：]|(?:\d|{_HAN_NUMERAL})[楼层]"
        r"|https?:|@|[省市县镇村路街巷港岛园厦](?:[^一-龥]|$)|大厦|网站|处领取|(?:冰[箱柜]|抽屉|货架|仓库|机房)(?:[^一-龥]|$)",
        r"\b(?:via|behind|opposite|near|next to|inside|outside)\b"
        rf"|\b(?:in|at|on|from|to|into|above|below|under) (?:the |our |your |an? )?(?:[\w-]+ ){{0,2}}{_ROOM}",
        r"\b(?:floor|building|room|street|road|avenue)\b|\b(?:place|location|venue|address|where):",
        r"\b(?:on|at|under|below|inside) (?:the |its )?(?:\w+ ){0,2}(?:edge|side|back|front|bottom|top|door|lid|cover"
        r"|panel|wall|shelf|counter|corner)\b",
        _in_column("存放|地点|位置|where|location|place"),
    ),
    Wanted.COLOUR: _any(
        r"[红橙黄绿蓝紫黑白灰粉棕银金米][色的]|[深浅藏][红绿蓝灰]|(?<![一-龥])[红橙黄绿蓝紫黑白灰粉棕银金](?![一-龥])|\b(?:red|orange|yellow|green|blue|purple|violet|black|white|gr[ae]y"
        r"|pink|brown|silver|gold|beige|navy|turquoise|transparent)\b|透明|无色"
    ),
    # The office itself is no answer.
    Wanted.HOLDER: _any(_NICKNAME, r"\b(?:mr|ms|mrs|dr)\b"),
    Wanted.PERSON: _any(
        r"[甲乙丙双]方|个人|本人|自[己行理费]|房东|[租业]主|租客|客户|公司|单位|(?:人|者|方|主持|记录|导师)[:：]|经理|主[管任席]|总监|副总|总裁|董事|[部处科校院所组队店会]长|小组|委员会|负责人|专员|[部处]门?(?:[^一-龥]|$)"
        r"|[员师生](?:[^一-龥]|$)|(?:人力资源|财务|行政|技术|法务|市场|销售|采购|安全)部|物业|前台",
        r"(?:\A|[，。；、\s]|[由找向给经请]|联系|通知)(?:财务|人事|行政|法务|采购|客服|运维|后勤)(?=[每会将在按审付办核给收应需统]|负责|[，。；、]|\Z)",
        _NICKNAME,
        _in_column("找?谁|(?:负责|联系|责任|经办)人|who|person|owner|contact"),
        r"\b(?:manager|head|director|officer|team|desk|department|committee|board|administrator"
        r"|admin|owner|lead|leader|supervisor|staff|president|founder|author|engineer"
        r"|tenant|landlord|employee|employer|customer|client|supplier|contractor|company|nurse|technician"
        r"|operator|volunteer|chair|host|doctor|professor|commander|coordinator|trainer|teacher|secretary|treasurer|specialist|hr|ceo|cto|cfo|mr|ms|mrs|dr|anyone|everyone|only you)s?\b",
        r"\b(?:finance|accounts|accounting|payroll|treasury|procurement|purchasing|facilities|logistics"
        r"|compliance|human resources|help ?desk|receptionists?)\b",
    ),
    Wanted.NAME: _any(r"公司|银行|医院|大学|集团|[「“《]|[一-龥]\s?[a-z]{2,}"),
    Wanted.CODE: _any(r"[a-z]+[-_.]?\d[\w.-]*|\d[\w.-]*[a-z]|(?<![\d:])\d{2,}(?!:)|\d+\.\d+|[a-z]\d"),
}  # fmt: skip
# A number counts as a count unless it is something else, such as a date.
_NOT_COUNTS = _any(
    _MONEY, _PERCENT, _DURATION, _CLOCK_TIME, _DATE, r"\d[\d-]{5,}\d",
    r"\d+\.\d+|第\s*[\d一二三四五六七八九十]+|\A\s*[\d一二三四五六七八九十]+[.)、]|[a-z]+[-_]?\d[\w-]*"
    r"|(?:分机|电话|热线|编号|号码|房间|\bext(?:ension|\.)?|\bno\.|\broom|#)\s*[:：]?\s*[\d-]+"
    r"|\d[\d ]*(?:号线|号)|一[致般定些直起切律样旦]|统一|唯一|之一",
)  # fmt: skip
_HELD[Wanted.NUMBER] = _any(_NUMERAL)
_COUNT = _any(rf"\d|{_HAN_NUMERAL}+(?=[{_COUNTERS}次倍])|{_NUMBER_WORD}|\bno\b|不限")
# rjieba's tags of Chinese names: people, organisations, places, other proper names.
_NAMING_TAGS = {
    Wanted.HOLDER: ("nr",),
    Wanted.PERSON: ("nr",),
    Wanted.PLACE: ("ns", "nt"),
    Wanted.NAME: ("nr", "nt", "nz"),
}
# Not folded, because a capital letter inside a sentence marks a name.
_NAME = re.compile(r"(?<=[\w,;:|] )[A-Z][a-zà-ÿ’'-]+|\A[A-Z][\w’'-]+ [A-Z][\w’'-]+")
# A capital letter says less there.
_FIRST_WORD = re.compile(r"\A[\W\d_]*([A-Z][a-zà-ÿ]+)(?= [a-z])")
_CALENDAR = re.compile(
    r"january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
)


# 好几次 and 才几天 ask for no number.
_SOME = re.compile(r"[好才没]几")
# "Who do I call?" is answered by a number as well.
_CALLS = re.compile(
    r"\b(?:call|ring|phone|dial|e-?mail|contact|talk to|report to)\b|打给|联系|致电|打电话|打哪|拨打|发邮件"
)
# "Who do I turn to?" is, where the statement tells to call.
_TURNS_TO = re.compile(r"找谁|找哪|\bwho(?:m)? (?:do|should|can) (?:i|we)\b")
# Nothing marks what answers these; 因为 and "because" are often left out.
ANY_TEXT = (Wanted.ANYTHING, Wanted.REASON)
# What answers these nearly always has their signs, which weigh more than those of other kinds.
WITH_SIGNS = (
    Wanted.MONEY, Wanted.FREQUENCY, Wanted.DURATION, Wanted.COUNT, Wanted.CODE, Wanted.CLOCK,
    Wanted.HOLDER, Wanted.PERSON, Wanted.PLACE, Wanted.WEIGHT, Wanted.TEMPERATURE, Wanted.COLOUR,
    Wanted.UNIT, Wanted.DAY,
)  # fmt: skip


def find_wanted(question: str) -> Wanted:
    """Return the kind of answer that a question wants."""
    folded = _SOME.sub("一些", fold(question).text.strip(" ?？!！.。"))
    return next((wanted for wanted, asked in _ASKED if asked.search(folded)), Wanted.ANYTHING)


def can_hold(wanted: Wanted, statement: str, question: str) -> bool:
    """Return whether a statement has something of the wanted kind that is not in the question."""
    folded = fold(statement).text
    if wanted in ANY_TEXT:
        return True
    if wanted is Wanted.COUNT:
        return _COUNT.search(_NOT_COUNTS.sub(" ", folded)) is not None
    asked = fold(question).text
    if wanted is Wanted.UNIT:
        named = [unit for unit in _UNITS if unit.search(asked)]
        return any(char.isdigit() for char in folded) and any(u.search(folded) for u in named)
    if wanted is Wanted.PERSON and _HELD[Wanted.CONTACT].search(folded):
        if _CALLS.search(asked) or (_TURNS_TO.search(asked) and _CALLS.search(folded)):
            return True
    if wanted not in (*_NAMING_TAGS, Wanted.CODE):
        return _HELD[wanted].search(folded) is not None
    held = [match.group().strip(" ,.，。") for match in _HELD[wanted].finditer(folded)]
    names = (name.lower() for name in [*_NAME.findall(statement), *_first_name(statement)])
    held += [name for name in names if not _CALENDAR.fullmatch(name)]
    if any(one not in asked for one in held):
        return True
    tags = _NAMING_TAGS.get(wanted)
    return tags is not None and any(
        tag.startswith(tags) and word not in question for word, tag in rjieba.tag(folded)
    )


def _first_name(statement: str) -> list[str]:
    """Return the first word of a sentence if it is no word of the dictionary: of Fiona."""
    first = _FIRST_WORD.match(statement)
    return [first[1]] if first and not is_word(first[1]) else []


@lru_cache(maxsize=4096)
def is_word(text: str) -> bool:
    """Return whether the dictionary has a text."""
    terms = index_terms(text)
    return terms in STOP_WORDS or any(translations(terms.split()))
