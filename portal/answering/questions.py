"""What a question asks for: its parts, and the kind of answer that each part wants."""

from __future__ import annotations

import re
from enum import StrEnum

import rjieba

from portal.text.folding import fold
from portal.text.scripts import HAN


class Wanted(StrEnum):
    """The kind of answer a question wants. A statement that cannot hold it is no answer."""

    ANYTHING = "anything"
    MONEY = "money"
    DURATION = "duration"
    NUMBER = "number"
    TIME = "time"
    PLACE = "place"
    PERSON = "person"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_NUMERAL = (
    r"(?:\d|[零〇一二两三四五六七八九十百千万半几]"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|sixty|ninety|hundred|thousand|half|an?|no|none|unlimited)\b)"
)
_TIME_UNIT = (
    r"(?:秒|分钟|小时|钟头|天|日|周|星期|礼拜|个月|季度|年|工作日"
    r"|(?:working |business |calendar )?(?:second|minute|hour|day|week|month|quarter|year)s?\b)"
)
_PREPOSITION = r"(?:位于|在|于|到|至|来自|前往)"

# Which words ask for which kind, first match wins. All texts are folded: lower case, simplified.
_ASKED = (
    (
        Wanted.MONEY,
        _any(
            r"多少钱|多少元|什么价|价格|费用(?:是|为)?多少|金额",
            r"how much (?:does|do|is|are|will|money|can i (?:spend|claim))",
            r"what(?: is|'s) the (?:price|cost|fee|budget)",
        ),
    ),
    (
        Wanted.DURATION,
        _any(
            r"多久|多长时间|几天|几个?(?:小时|周|星期|月|年|工作日|分钟)",
            r"多少(?:天|小时|周|个?月|年|分钟|工作日)|how long",
            rf"how many {_TIME_UNIT}",
        ),
    ),
    (
        Wanted.NUMBER,
        _any(
            r"多少|几[个位名次份条种层台人页楼岁张家款倍项]|多[大高重远宽深快]|百分之几",
            r"how (?:many|much|old|tall|big|large|far|fast|high|heavy|often)",
            r"what (?:number|percentage|share)",
        ),
    ),
    (
        Wanted.TIME,
        _any(
            r"什么时候|何时|什么时间|哪一?[年天]|几[月号点]|哪个月|星期几|周几|截止",
            r"\A(?:and |so |since )?when\b|\bwhen (?:is|was|are|were|did|do|does|will|can|must)\b",
            r"(?:what|which) (?:time|date|day|year|month|century)|deadline",
        ),
    ),
    (
        Wanted.PLACE,
        _any(
            r"哪里|哪儿|何处|什么地方|在哪|哪个(?:城市|国家|地方|房间|办公室|楼|会议室)|\bwhere\b",
            r"(?:which|what) (?:city|country|room|building|floor|place|office)",
        ),
    ),
    (Wanted.PERSON, _any(r"谁|哪位|何人|哪个人|什么人|\bwho(?:m|se)?\b")),
)

# What an answer of each kind has in it.
_HELD = {
    Wanted.MONEY: _any(
        r"\d[\d,.]*\s*(?:%|元|块|万|亿|rmb|usd|eur|cny|dollar|euro|yuan|pound|cent)",
        r"[$¥€£]\s*\d|[一二两三四五六七八九十百千万]+[元块]|免费|\bfree\b|不收费|no charge",
    ),
    Wanted.DURATION: _any(
        rf"{_NUMERAL}\s*[多余个-]?\s*-?{_TIME_UNIT}",
        r"永久|无限期|当[天日]|次日|immediately|indefinitely|same day",
    ),
    Wanted.NUMBER: _any(_NUMERAL),
    Wanted.TIME: _any(
        rf"\d{{1,4}}\s*[年月日号点时:]|\d{{4}}|{_NUMERAL}\s*个?{_TIME_UNIT}",
        r"(?:周|星期)[一二三四五六日天末]|[年月季周][初末底]|每[天日周月年季]|当[天日]|次日",
        r"上午|下午|中午|早上|晚上|[之以][前后]",
        r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\b",
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d\s*(?:[ap]\.?m\b|o'clock|th\b|st\b)",
        r"\b(?:noon|midnight|morning|afternoon|evening|tonight|dai?ly|weekly|monthly|annually)\b",
        r"\b(?:before|after|until|within|by the end|every|once)\b",
    ),
    Wanted.PLACE: _any(
        rf"{_PREPOSITION}(?=[{HAN}a-z])(?!\d)|https?:|@",
        r"[省市县区镇村路街巷楼层室厅馆院港岛园厦](?:[。，,；;]|$)|中心|大厦|网站|系统|平台|前台",
        r"\b(?:in|at|on|near|from|to|into|via)\s(?!\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    ),
    Wanted.PERSON: _any(
        r"经理|主[管任席]|总监|董事|[部处科校院所组队店会]长|小组|委员会|负责人|人员|[员师]\b",
        r"\b(?:manager|head|director|officer|team|desk|department|committee|board|administrator"
        r"|admin|owner|lead|leader|supervisor|employee|staff|president|founder|author|engineer"
        r"|doctor|professor|he|she|hr|ceo|cto|cfo|mr|ms|mrs|dr|people|person|anyone|everyone"
        r"|member|user|customer|supplier)s?\b",
    ),
}
# Tags of rjieba for Chinese names: people, organisations, places, other proper names.
_NAMING_TAGS = {
    Wanted.PERSON: ("nr", "nt", "nz", "ns"),
    Wanted.PLACE: ("ns", "nt", "s"),
}
# Not folded: a capital letter inside a sentence is the mark of a name.
_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w’'-]+|\A[A-Z][\w’'-]+ [A-Z][\w’'-]+")

_ASKS = re.compile(
    r"什么|怎么|怎样|如何|为何|哪|谁|几|多少|多久|多长|是否|能否|可否|[吗呢]"
    r"|\b(?:what|when|where|who|whom|whose|which|why|how|can|may|must|should|do|does|is|are)\b",
    re.IGNORECASE,
)
# Words that ask and name nothing. The unit behind them stays: "几天" leaves "天".
_NAMES_NOTHING = re.compile(
    r"多少|多久|多长时间?|什么时候|什么|怎么样?|怎样|如何|为何|为什么|哪[里儿些个位]?|谁|几(?=[^\W\d_])"
    r"|是否|能否|可否|可以|需要|应该|请问|一下|有没有|[吗呢的了是有要]"
    r"|\b(?:how (?:many|much|long|often|old|do i|can i)|what|when|where|who|whom|whose|which|why"
    r"|how|do|does|did|get|have|has|need|is|are|was|were|there|can|may|must|should|any)\b",
    re.IGNORECASE,
)
_BETWEEN_PARTS = re.compile(
    r"[?？;；]+|[,，]\s*(?:并且|而且|以及|还有|另外|然后|and\b|also\b)?|以及|另外|还有"
    r"|\band (?=(?:what|when|where|who|which|why|how)\b)",
    re.IGNORECASE,
)
_MAX_PARTS = 3
_MIN_PART_CHARACTERS = 3


def find_parts(question: str) -> tuple[str, ...]:
    """Split "How many days of leave, and how do I claim a hotel?" into its questions.

    Every piece has to ask something by itself; otherwise the question stays whole.
    """
    parts: list[str] = []
    start = 0
    for gap in [*_BETWEEN_PARTS.finditer(question), None]:
        piece = question[start : gap.start() if gap else len(question)].strip(" .。!！")
        start = gap.end() if gap else start
        if not piece:
            continue
        # A condition belongs to the whole: "if I am ill, whom do I tell?"
        if len(piece) < _MIN_PART_CHARACTERS or not _ASKS.search(piece):
            return (question,)
        parts.append(piece)
    return tuple(parts) if 1 < len(parts) <= _MAX_PARTS else (question,)


def without_asking(question: str) -> str:
    """Return the question without the words that only ask."""
    return _NAMES_NOTHING.sub(" ", question)


def find_wanted(question: str) -> Wanted:
    """Return the kind of answer that a question wants."""
    folded = fold(question).text
    return next((wanted for wanted, asked in _ASKED if asked.search(folded)), Wanted.ANYTHING)


def can_hold(wanted: Wanted, statement: str, question: str) -> bool:
    """Tell whether a statement has anything of the kind that is wanted, beside what the question
    has itself."""
    if wanted is Wanted.ANYTHING:
        return True
    folded = fold(statement).text
    if _HELD[wanted].search(folded):
        return True
    if wanted is Wanted.PERSON and any(
        name.lower() not in question.lower() for name in _NAME.findall(statement)
    ):
        return True
    tags = _NAMING_TAGS.get(wanted)
    return tags is not None and any(
        tag.startswith(tags) and word not in question for word, tag in rjieba.tag(folded)
    )
