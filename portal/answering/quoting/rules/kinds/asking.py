"""How questions ask for each kind of answer."""

from __future__ import annotations

import re

from portal.answering.quoting.rules.kinds.patterns import (
    COUNTERS,
    HAN_MONEY_NOUN,
    MONEY_NOUN,
    OFFICE,
    REACHES,
    TIME_UNIT,
    any_of,
)
from portal.answering.quoting.rules.kinds.wanted import Wanted
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN

_UNIT_NAME = (
    r"(?:k?w|(?:kilo|mega)?watts?|volts?|[mck]m|(?:kilo|centi|milli)?met(?:er|re)s|miles|feet|inch(?:es)?"
    r"|ml|(?:milli)?lit(?:er|re)s|[kmgt]b|gigabytes|megabytes|terabytes|[mg]hz|decibels?|db|fps"
    r"|frames|(?:mega)?pixels|lumens?|rpm|amps?|bar|psi)\b"
)
# "Which day rate" does not ask for a day.
_NOT_OF_A_NOUN = (
    r"(?= (?:is|was|are|were|do|does|did|can|must|will|should|has|have|i|we|in|of|the)\b|\Z)"
)
# "What happens to my deposit", "what is the deadline for the fee" and "which cost centre" do not
# ask for an amount.
_RANGES = "(?:(?:the|our|your|possible) )?(?:salar|price|pay|age|product|service|colou?r|size|value|date|topic|fee|cost|option|activit|subject)"
_LEADS_AWAY = r"(?:of|for|in|on|at|from|with|by|as|if|about|when|to|after|before|not|happens?|handles?|decides?)(?![\w-])"
_NOT_BEFORE_A_NOUN = (
    r"(?! (?:polic(?:y|ies)|rules?|control|history|contracts?|managers?|requirements?|length)\b)"
)
# "What building permit do I need" does not ask for a building, nor "which company car may I choose"
# for a name.
_NOT_IN_A_COMPOUND = (
    r"(?! (?!(?:in|on|at|near|of|for|to|with|by|from|do|does|did|is|are|was|were|has|have|can|may|must|will|should)\b)"
    r"[a-z]+(?: [a-z]+)? (?:do|does|did|is|are|was|were|can|could|may|must|should|will|would|has|have|applies|apply"
    r"|exists?)\b)"
)
_IS_WHOLE = (
    r"(?= (?:is|was|are|were|do|does|did|can|could|may|might|must|will|would|should|shall|has|have|had|i|we|you|it|they"
    r"|for|of|per|in|at|on|to|after|before|under|over|during|until|since|with|without|when|if|and|or|an?|the|that|this|next"
    r"|last|each|every|up|applies|apply|be|now|extra|altogether)\b|[^\w ]|\Z)"
)
# Patterns of questions by kind, first match wins. Texts are folded: lower case, simplified.
_ASKED = (
    (
        Wanted.REASON,
        any_of(
            r"为什么|为何|什么原因|(?:是何|有何)原因|\bwhy\b|\bhow come\b",
            r"what(?: is| was|'s) the reason",
        ),
    ),
    (
        Wanted.PERCENT,
        any_of(
            r"百分之[几多]|百分比|几折|多少折|(?:(?<![功频速辨])率|例)(?:是|为|有)?多少|占多少|(?:多少|什么|多大)(?:的)?比[例率]|几成|几个百?分?点",
            rf"(?:what|which) (?:percent|share|proportion|discount)\b{_NOT_IN_A_COMPOUND}|how many percent",
            r"\b(?:what|which)\b.*\b(?:vat|tax|interest|success|failure|pass|growth|occupancy) rate\b",
        ),
    ),
    (
        Wanted.MONEY,
        any_of(
            r"多少元|几块钱?|什么价|几个月的?(?:工资|薪水?|租金?|房租)",
            rf"{HAN_MONEY_NOUN}(?:标准)?(?:是|为|有)?(?:多少|几何)(?!天|人|个|小时|号)",
            r"(?:保|金|限|余|税|总)额(?:是|有|为)?多[大少高]|多[大高]的?金额",
            rf"(?:(?!标准){HAN_MONEY_NOUN}|[费钱])(?:要|该|又|应该)?(?:怎么|如何|咋)(?:算|计算|收)|怎么(?:算|收)[钱费]",
            rf"多少{HAN_MONEY_NOUN}|多少(?!款(?!项)[{HAN}])[{HAN}]{{0,3}}[费金款钱贴薪税]|如何收费",
            r"\b(?:what|how much)\b.*\bpaid\b(?! (?:[a-z]+ )?(?:leave|holiday|vacation|time|days))",
            r"how much (?:money|do|did|will|would|is|are|was|were|can i|may i|can we|could i)"
            r"(?!.*\b(?:weigh|storage|space|memory|time)\b)",
            r"how (?:expensive|costly)",
            r"(?:\A|\bwhat(?:'s| is| are)? .*\b)(?:hotel|room|accommodation|meal|lunch|dinner|taxi|gift) (?:limit|cap|rate|maximum)s?\b",
            # "Which customer's prices are fixed" asks for a customer.
            rf"(?:what|which)(?! \w+(?: \w+)?'s?\b)(?! (?:day|date|month|year|time)\b)(?:'s)?(?: (?!{_LEADS_AWAY})[\w'-]+){{0,8}}?"
            rf" (?<!holiday )(?<!leave )(?<!vacation )(?<!baggage )(?<!luggage )(?<!weight )(?!charges? the\b){MONEY_NOUN}(?: (?:cap|limit|range|ceiling|level|band)s?)?{_IS_WHOLE}",
            r"what(?:'ll)? (?:do|does|did|will|would|can|could|may|might|must|should|is|are|was)\b(?:(?!\b(?:if|when|unless)\b).)* (?<!the )(?<!in )(?<!to charge )"
            r"(?:costs?|(?<!to )charges?|pay)\b(?! (?:cent(?:er|re)s?|codes?|includes?|covers?)\b)",
            rf"what(?:'s| is| are)(?: the| our)? (?:\w+ )?(?:amount|limit|maximum|minimum|cap|size|value|total)s? (?:of|for|on) .*\b{MONEY_NOUN}\b",
            rf"how (?:big|high|heavy|large|low) (?:is|are|was|were|can|may|will) .*\b(?:{MONEY_NOUN}|bonus|grant|penalty)\b",
        ),
    ),
    (
        Wanted.FREQUENCY,
        any_of(
            r"多久.{0,8}[一几][次回]|几(?:个?月|个?小时|[天周年日])一[次回查换检洗轮]|几次|多长时间一次|多少次|频率|多久(?:要|需要?|会|就)?(?:清?洗|清理|擦|浇|更?换|轮换|更新|备份|检查|体检|巡检|维护|盘点|消毒)|\bhow often\b|how frequently|how many times\b(?! (?:the|my|normal|more|as)\b)"
        ),
    ),
    (
        Wanted.DURATION,
        any_of(
            r"多久|多长时间|(?<!哪)几天|几(?:小时|周(?![一二三四五六日几])|年|分钟)|几个(?:小时|周|星期|月|工作日)|(?<![臂线绳管缆杆路桥带布板梁轨])多长$|期(?:限)?(?:是|有|为)?多长",
            r"多少个?(?:天|小时|周|月|年|分钟|工作日)|时长|期限(?:是|为)(?!哪|几[月号日]|什么时)|多长的?[一-龥]{0,4}期|几秒",
            r"\b(?:within|in|after) (?:what|which) time\b|how (?:soon|quick(?:ly)?|fast) (?!is|are|.*\b(?:go|drive|run|travel|move|spin|grow|rise|rose|fall)\b)",
            r"how (?:soon|quick(?:ly)?|fast) (?:is|are) .*\b(?:respon[sd]|repl(?:y|ies|aced)|answer|deliver|repair|refund|ship|process(?:ed|ing)|handled|fixed|resol|paid|told|informed|notified|reported)",
            rf"how many (?:(?!per |an? |each )[a-z]+ ){{0,2}}{TIME_UNIT}|how much (?:[a-z]+ )?(?:time|notice|leave|holiday|vacation)",
            r"how far (?:in advance|ahead|beforehand|back)",
            r"how long\b(?! (?:must|should|can|may|does|do|is|are) (?:a |an |the |my )?(?:\w+ )?"
            r"(?:password|passphrase|text|message|file|name|cable|title|code|table|desk|corridor|hall|wall|rope|bridge|tunnel)s?\b(?! (?:work|last|stay|remain|take|held|kept|reserved|booked|blocked|open)))",
        ),
    ),
    (
        Wanted.UNIT,
        any_of(
            rf"how many (?:[a-z]+ )?{_UNIT_NAME}|\b(?:value|figure|power|speed|length|width|height|size|range)\b.* in {_UNIT_NAME}",
            r"多少(?:千?瓦|伏|[毫厘]米|毫升|英?寸|分贝|帧|像素|流明|赫兹|毫?安(?![全装排])|转(?!账))|几英?寸",
        ),
    ),
    (
        Wanted.WEIGHT,
        any_of(
            r"多重|重量(?:是|为|有)?多少|(?:多少|几)(?:公斤|千克|克|吨|斤)",
            r"\bhow heavy\b|how much weight\b|how many (?:kg|kilo(?:gram)?s|grams|tons|tonnes)\b|\bweigh\b|what(?: is|'s) the (?:\w+ ){0,3}weight\b",
        ),
    ),
    (
        Wanted.TEMPERATURE,
        any_of(
            r"多[热冷]|几度|多少度|温度(?:是|为|有|要)?(?:多少|多高|几)",
            rf"how (?:hot|cold|warm)\b|(?:what|which)(?:'s)?(?: (?!{_LEADS_AWAY}|times?\b|done\b)[\w'-]+){{0,6}}? temperatures?(?: ranges?| limits?)?{_IS_WHOLE}",
        ),
    ),
    (
        Wanted.MEASURE,
        any_of(
            r"多(?:大(?!年纪|岁数|年龄)|[高远宽深快厚长])|面积|多少(?:平方|公里|米|升|gb|mb|tb|字|位(?![客用顾同老学员]|人)|流量|空间)",
            r"(?:容量|大小|速度|长度|高度)(?:是|为|有)?多少|(?<!有)几[米位](?![客用顾同老学]|人员)",
            r"how (?:big|large|far(?! (?:above|below|over|under|behind))|fast|high|tall|wide|deep|long)\b",
            r"how much (?:storage|space|memory|bandwidth)\b",
            r"what(?: is|'s) the (?:\w+ ){0,3}(?:size|length|height|speed|distance)\b",
            rf"what(?: is|'s) the range of (?!{_RANGES})|what range (?:do|does)\b|续航里程|航程|量程|射程",
        ),
    ),
    (
        Wanted.COLOUR,
        any_of(r"(?:什么|哪种|哪个|何种)颜色|颜色(?:是|为)(?:什么|哪)", r"(?:what|which) colou?r"),
    ),
    (
        Wanted.COUNT,
        any_of(
            rf"多大(?:年纪|岁数|年龄)|多少(?:[{COUNTERS}员]|块(?=[{HAN}])(?!钱))|(?<!哪)(?!(?<=在)几层)几(?!个?步)[{COUNTERS}岁倍代]|多少[{HAN}]{{0,3}}(?:用户|客户|人|学生|会员|员工)",
            r"how (?:many|old)|what (?:is the )?number of",
        ),
    ),
    (
        Wanted.CONTACT,
        any_of(
            r"(?:(?<!打)电话|(?:手机|座机|传真)(?=号)|热线|邮箱|邮件地址|网址|联系方式|分机|微信|qq)号?码?(?:地址)?(?:是|为|有)?(?:多少|几|什么|哪个?)?\Z"
            r"|(?:什么|哪个|多少)(?:电话|热线|邮箱|邮件地址|网址|联系方式|分机)|打(?:哪(?![一天日])|(?:什么|几)(?=号|电话|热线|\Z))",
            REACHES,
            r"(?:(?:phone|extension|hotline) number|e-?mail address)(?! (?:polic(?:y|ies)|rules?|formats?|lists?|books?)\b)",
            r"(?:what|which)(?: is|'s)?(?: the| our| your| their)?(?: \w+)? web ?site\b|\burl\b|\bweb(?: ?site)? address\b",
            r"(?<!at )what number|\A(?:the )?(?:phone |telephone )?number for\b(?!.*\b(?:order|invoice|account|policy|model|part|room|case|ticket|tax)\b)|which number (?:do|should|can|must) (?:i|we) (?:call|ring|dial|phone)\b",
            r"\b(?:phone|telephone|mobile|extension|e-?mail)(?: (?:number|address))? (?:of|for)"
            r" (?!(?:the|an?|my|our|your|this|all|each)\b)[\w.]+ \w+\Z",
            r"\w'?s (?:(?:phone|telephone|mobile|cell|office) )?(?:phone|telephone|mobile|extension|e-?mail)(?: please)?\Z",
        ),
    ),
    (
        Wanted.CODE,
        any_of(
            r"(?:密码|口令|编号|型号|版本号?|代码|代号|序列号|工号|账号)(?:是|叫|为|用)?(?:的是)?(?:什么(?!时|情况|原因|人|地方)|多少|哪个|几)",
            r"(?:什么|哪个|哪种|哪款|哪些)(?:型号|版本|编号|端口)|端口号?(?:是|为)?(?:什么|多少|哪个|几)",
            r"\b(?:what|which) (?:\w+ )?port\b(?! of )",
            rf"(?:what|which)(?: is| are|'s)?(?: the| our)?(?: \w+){{0,2}} (?:password|passcode|pin|serial number|version|model)\b{_NOT_BEFORE_A_NOUN}",
            r"what(?: is|'s) the code\b",
        ),
    ),
    (
        Wanted.NUMBER,
        any_of(
            r"(?<=是)多少|多少(?!号(?!码))|how much|(?:what|which) number|how far (?:above|below|over|under|behind)"
        ),
    ),
    (
        Wanted.CLOCK,
        any_of(
            r"(?<![^在]哪)几点|(?:什么|哪个)时(?:间段|段)|opening hours",
            rf"\b(?:what|which) (?:times?|hours)\b{_NOT_IN_A_COMPOUND}",
            r"what(?: are|'re) (?!.*\b(?:number|total)\b).*\bhours(?: of .*)?\Z",
        ),
    ),
    (
        Wanted.DAY,
        any_of(
            r"(?<![好第])(?:几|(?<!是)多少)号(?![码楼线门窗厅房车机柜箱])|哪[一两几]?[天日]",
            rf"\b(?:what|which) (?:date|(?:week)?day)\b{_NOT_OF_A_NOUN}",
        ),
    ),
    (
        Wanted.UNTIL,
        any_of(
            r"到什么时候|到何时|到哪一?[年月]|什么时候(?:到期|过期|失效|作废|截止)",
            r"\b(?:until|till) when\b|\bwhen (?:do|does|did|will|is|are) .*\b(?:expires?|lapses?|runs? out)\b",
        ),
    ),
    (
        Wanted.TIME,
        any_of(
            r"什么时候|何时|几时|什么时间|哪一?年|几月|哪个?月|星期几|周几|截止(?:日期|时间)",
            r"日期是|\bhow early\b",
            r"\A(?:and |so |since |by |until )?(?:when|how late)\b(?! [a-z']+ing\b)",
            r"\b(?:and|by|since|or|,) when\b|when (?:is|was|are|were|did|do|does|will|can|must)\b",
            r"(?:what|which)(?: is the)? (?:date|(?:week)?day|year|month|century|deadline)\b"
            rf"{_NOT_OF_A_NOUN}",
            r"\A(?:the )?pay ?day\b|发薪日[是?]?\Z|by what date|\A(?:the )?deadline\b|\bdeadline\?",
        ),
    ),
    (
        Wanted.PLACE,
        any_of(
            r"哪[里儿](?!的?(?:毛病|问题))|何处|什么地方|在哪(?![些个种一两几])|哪[个间]?(?:城市|国家|地方|楼层?|房间|会议室|办公室|教室|仓库|车间|窗口)",
            r"(?:地址|位置)(?:是|在)|几楼|几层|几号[楼门厅]|\bwhere\b|哪座",
            rf"(?:which|what) (?:city|country|building|floor|room|place|town|street|address)\b{_NOT_IN_A_COMPOUND}",
        ),
    ),
    (
        Wanted.NAME,
        any_of(
            r"\bwho(?:'s| is| was| are)? (?:the |our |your |my )?(?:[\w-]+ ){0,3}(?:provider|supplier|vendor|manufacturer|insurer|carrier|maker)s?\b",
            r"\bwho (?:makes|supplies|provides|manufactures|insures)\b",
        ),
    ),
    (
        Wanted.HOLDER,
        any_of(
            rf"谁是.{{0,10}}{OFFICE}\Z|{OFFICE} ?(?:现在|目前)?(?:是谁|是哪位|叫什么)",
            rf"\bwho(?:'s| is| was| are) (?:the |our |your |my )?(?:\w+ )?{OFFICE}\b(?: of .*)?\Z",
        ),
    ),
    (
        Wanted.PERSON,
        any_of(
            r"谁|(?<!招)(?<!招聘)哪些?(?:人|员工|同事)|哪位|何人|什么人",
            # "Which setting is for those who …" does not ask for a person.
            r"\A(?!(?:(?:by|for|from|in|on|to|with) )?(?:which|what|how|when|where)\b(?!.*\bname\b)).*?"
            r"\bwho(?:m|se)?\b(?! knows)",
            r"which (?:person|manager|employee)|who's",
        ),
    ),
    (
        Wanted.NAME,
        any_of(
            r"叫什么|名字(?:是|叫)|什么(?:牌子|品牌|公司|软件|工具|系统|平台)|哪家",
            r"哪个(?:厂家|厂商|公司|供应商|品牌|牌子|软件|工具|系统|平台|网站|链接|银行|医院|机构|部门|群)",
            r"(?:what|which)(?: \w+)? (?:supplier|vendor|provider|company|manufacturer|brand|tool|app|software"
            rf"|system|bank|agency|airline|carrier|firm|hotel|hospital|university|partner|insurer)\b{_NOT_IN_A_COMPOUND}",
            r"what(?: is|'s| was) the name of|what(?: is|'s| are) .{1,30} called",
        ),
    ),
    (
        Wanted.LIST,
        any_of(
            r"哪些|哪几[个条种项样点步类]|有哪|包括什么|什么和什么",
            r"\b(?:which|what) (?!about\b)(?:[a-z]+ )?[a-z]{2,}[^s\W]s"
            r" (?:are|were|do|did|can|could|may|must|should|will|have|am|go|need|count|come|belong|apply)\b",
        ),
    ),
)
# 好几次 and 那几天 do not ask for a number.
_SOME = re.compile(
    r"(?:[好才没那这头]|(?<!提)前)几(?=[个天次年月周位名])"
    r"|几(?=[个位名][^,]{1,8}(?:叫什么|名字|是谁|都?是哪))"
)
_SPOKEN = str.maketrans({"啥": "什么", "咋": "怎么"})
_WHATS = re.compile(r"\b(what|who|where|when|how)s\b")


def find_wanted(question: str) -> Wanted:
    """Return the kind of answer that a question wants."""
    folded = fold(question).text.strip(" ?!.。").translate(_SPOKEN)
    folded = _SOME.sub("一些", folded)
    folded = _WHATS.sub(r"\1's", folded)
    return next((wanted for wanted, asked in _ASKED if asked.search(folded)), Wanted.ANYTHING)
