"""The content words and dates of a question."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import rjieba

from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN
from portal.text.terms.analyser import analyse, query_terms
from portal.text.terms.stopwords import STOP_WORDS

# 好几次, 才几天 and 前几天 ask nothing; 提前几天 does.
HAN_ASKS = (
    "什么|啥|怎么|怎样|咋|如何|为何|哪|谁|(?<![好才没这那过近])(?<!(?<!提)前)几|多少|多久|多长|多[大高重远]|是否|能否"
    "|可否|[吗呢]|[能可]不|有没有|[是要会]不[是要会]"
)
VERBS_ASK = r"(?:can|could|may|must|should|do|does|did|is|are|was|were|will|has|have)\b"
ASKS = re.compile(
    rf"{HAN_ASKS}|\b(?:(?:what|when|where|who|whom|whose|which|why|how)\b|{VERBS_ASK})",
    re.IGNORECASE,
)
# Words that ask and name nothing.
_NAMES_NOTHING = re.compile(
    r"百分之[几多]少?|打?几折|多少钱?|多久|多长(?:时间)?|多[大高重远宽深快]|什么时候|什么时间|什么|怎么[样办算]?|怎样|如何|为何|为什么|干嘛"
    r"|为?啥(?:时候)?|咋[办样]?|[好才没]几[个天年月次]"
    r"|哪[里儿些个位一]?[年天日]?|谁|几(?:个?步骤?|个|[天年月日点号次位名人])?|是否|能否|可否|东西|可以|需要|应该|应当|必须|请问|一下"
    r"|每一?步|有没有|是不是|能不能|可不可以|要不要|知道|告诉我|[吗呢的了是有要能会由被把请想我您你和与及]|以及|分别|具体|公司(?=的?[规有])"
    r"|\b(?:how (?:many|much|long|often|old|do i|can i|big|far)|what|when|where|who|whom|whose|which|why"
    r"|how|do|does|did|get|have|has|had|need|is|are|was|were|be|been|there|can|could|may|might|must|should"
    r"|shall|will|would|any|please|tell me|i|we|you|my|our|your|me|us|if|it|its|they|their|them"
    r"|happens?|mean|kind|type|sort|made|come|comes|own|myself|take)\b",
    re.IGNORECASE,
)
_HAN_STEPS = "步骤|几个?步|每一?步|流程"
_LIST = re.compile(
    rf"哪些|有哪|列出|{_HAN_STEPS}|哪几|要求|清单|包括|都有"
    # "Which plan" and "what does it cost" ask for one item, "which plans" for all.
    r"|\b(?:which (?:[a-z]+ )?(?!is|was|does|has)[a-z]+[^s\W]s|list|steps?|what (?:are|must|should|do(?! (?:\w+ ){1,3}(?:pay|cost|charge|earn|weigh)\b)|items|documents|things)"
    r"|what(?:'s| is) new|what (?:has )?changed)\b",
    re.IGNORECASE,
)
_STEPS = re.compile(r"怎么|怎样|如何|\bhow (?:do|can|should|to)\b", re.IGNORECASE)
_STEPS_BY_NAME = re.compile(rf"{_HAN_STEPS}|\b(?:steps|procedure)\b")
# Characters that a word of a question does not begin or end with, and words with little meaning.
_LOOSE = "要能会得该有在是的了吗呢去来把被给让到就还又再都也我你"
# At the end of 年会 and 周会, 会 has a meaning.
_LOOSE_AT_END = _LOOSE.replace("会", "")
_SAYS_LITTLE = STOP_WORDS | frozenset({
    "去", "来", "给", "打", "还", "说", "里", "又", "得", "再", "跟", "在", "到", "后", "时",
    "第", "做", "没", "最", "多", "那", "这", "我", "该", "能", "从", "将", "对", "并", "各",
    "当", "起", "过", "让", "们", "下", "上", "个", "次", "号", "那天", "当天", "那次", "这次",
    "当时", "最多", "最少", "至少", "最短", "最长", "最晚", "最早", "以后", "之后", "之内",
    "之前", "以前", "以内", "以上", "以下", "一个", "一起", "一共", "一次", "现在", "目前", "名字", "叫", "找",
    "怎", "么", "样", "公司", "我们", "咱们", "时间", "号码", "或者", "如果", "的话", "情况",
    "进行", "方面", "关于", "一年", "一天", "一晚", "一个月", "一分钟", "每天", "每年", "每月",
    "still", "new", "exactly", "currently", "about", "per", "one", "each", "most", "least",
    "minimum", "maximum", "say", "says", "name", "called", "use", "used", "company", "ahead", "allowed",
})  # fmt: skip
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
MONTH_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
# Whole names only: "decision" is not December, and "summary" not March.
_MONTH = rf"(?<![a-z]){MONTH_NAME}(?![a-z])"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_DATE = re.compile(
    rf"(?:(?:19|20)\d\d\s*[-/.年]\s*)?(?<!\d)(?P<m>1[0-2]|0?[1-9])\s*(?:月|(?<=\d)[-/](?=\d))\s*(?P<d>{_DAY})(?!\d)\s*[日号號]?"
    rf"|(?<![\d.])(?P<d2>{_DAY})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m2>{_MONTH})(?!(?<=may)\s+(?:be|not|only|also|have)\b)"
    rf"|(?P<m3>{_MONTH})\.?\s+(?P<d3>{_DAY})(?!\d)(?:st|nd|rd|th)?",
    re.IGNORECASE,
)
# "Hi, …" and 请问 before a question: the model that reads statements was not trained on these.
_GREETING = re.compile(
    r"\A(?:(?:hi|hey|hello|sorry|excuse me|quick question)"
    r"(?: (?:all|there|team|everyone|folks))?(?![\w-])"
    r"|(?:good (?:morning|afternoon|evening)|thanks|thank you)(?=\s*[,.!])|(?:谢谢[你您]?|早上好|下午好|晚上好)(?=[\s,，.。!！~])"
    r"|(?:不好意思|抱歉|对不起|打错了)(?=[\s,，.。!！~])"
    r"|[你您]们?好[呀啊]?(?![旅馆店家城])|嗨|(?:麻烦|想)?(?:请问(?:一下)?|问一?下)|我?想问(?:一下|的是)?|请教(?:一?下|(?=[\s,，]))|打扰(?:一下|了)|那个(?=\W))"
    r"[\s,，。.…!！:：~、—-]*",
    re.IGNORECASE,
)
# The department, which would be a stop word, but not in "WHAT IS IT".
IT = re.compile(r"(?<![A-Za-z\d])(?<![A-Z] )IT(?![A-Za-z\d])")
_WRITTEN = {"啥": "什么", "咋": "怎么"}
_NUMBER_OF = re.compile(rf"(?<=[{HAN}][{HAN}])号码?(?=\s*[是为]?\s*(?:多少|什么|几))")
_FIRST_HAN = HAN[0]
_IS_DATE = re.compile(r"\d{1,2}-\d{1,2}")
_DATE_WEIGHT = 1.5


@dataclass(frozen=True, slots=True)
class Word:
    """A content word of a question: its term, its folded text, and its position."""

    term: str
    text: str
    start: int
    end: int

    @property
    def is_han(self) -> bool:
        return self.text[0] >= _FIRST_HAN

    @property
    def is_date(self) -> bool:
        return _IS_DATE.fullmatch(self.term) is not None

    @property
    def weight(self) -> float:
        """Return the weight; longer words weigh more."""
        if self.is_date:
            return _DATE_WEIGHT
        if self.is_han:
            return 0.4 if len(self.text) == 1 else min(len(self.text), 4) / 2
        return math.sqrt(min(len(self.text), 8)) / 2


def asks(text: str) -> bool:
    """Return whether a text has a question word other than 呢."""
    return ASKS.search(text.replace("呢", "")) is not None


def as_question(text: str) -> str:
    """Return a question with a question mark, in written language: the model that reads statements
    was trained on such questions."""
    for spoken, written in _WRITTEN.items():
        text = text.replace(spoken, written)
    if text.rstrip().endswith(("?", "？")):
        return text
    return f"{text.rstrip(' .。!！,，')}{'？' if is_han(text[-1:]) else '?'}"


def _ends_of(spans: Iterable[tuple[int, int]], length: int) -> list[int]:
    """Return for each character the last end of the spans that contain it, or 0."""
    ends = [0] * length
    for start, end in spans:
        ends[start:end] = [max(end, known) for known in ends[start:end]]
    return ends


def is_han(character: str) -> bool:
    return character >= _FIRST_HAN


def content_words(question: str) -> tuple[Word, ...]:
    """Return the content words of a question, in order and without overlaps. Adjacent single
    Chinese characters are one word: 年 and 假 alone say little about 年假."""
    folded = fold(question)
    asking = [folded.original_span(*m.span()) for m in _NAMES_NOTHING.finditer(folded.text)]
    asked_until = _ends_of(asking, len(question))
    telling = set(query_terms(question))
    found: list[Word] = []
    end_before = 0
    dates = {one.start: one for one in find_dates(question)}
    found.extend(dates.values())
    for token in sorted(analyse(question), key=lambda one: (one.start, -one.end)):
        term, start, end = token
        if any(one.start <= start < one.end for one in dates.values()):
            continue
        text = fold(question[start:end]).text
        if start < end_before or not text or term not in telling:
            continue
        if len(text) > 1 and text[0] >= _FIRST_HAN and not rjieba.has_word(text):
            # Segmented wrongly: "行要" is the end of one word and a question word.
            start += len(text) - len(text.lstrip(_LOOSE))
            end -= len(text) - len(text.rstrip(_LOOSE_AT_END))
            text = term = text.lstrip(_LOOSE).rstrip(_LOOSE_AT_END)
        if not text or text in _SAYS_LITTLE:
            end_before = end
            continue
        if end <= asked_until[start]:
            end_before = end
            continue
        if (
            text[0] >= _FIRST_HAN
            and not rjieba.has_word(text)
            and (over := [last for first, last in asking if first <= start < last < end])
        ):
            # Segmented wrongly: 钱免 is the end of 多少钱 and another word.
            start = over[0]
            text = term = fold(question[start:end]).text
        last = found[-1] if found else None
        is_single = len(text) == 1 and text >= _FIRST_HAN
        if is_single and last and len(last.text) == 1 and last.is_han and last.end == start:
            found[-1] = Word(last.text + text, last.text + text, last.start, end)
        else:
            found.append(Word(term, text, start, end))
        end_before = end
    found.extend(Word("IT", "it", *match.span()) for match in IT.finditer(question))
    return tuple(sorted(found, key=lambda word: word.start))


def has_name(text: str, name: str) -> bool:
    """Return whether a folded text has a folded name: in Latin letters as whole words only, because
    IT is not part of "limit"."""
    return re.search(rf"(?<![a-z\d]){re.escape(name)}(?![a-z\d])", text) is not None


def without_greeting(question: str) -> str:
    """Return a question without the greeting before it; a greeting alone stays."""
    bare = question.lstrip()
    while greeting := _GREETING.match(bare):
        bare = bare[greeting.end() :]
    return bare if len(bare.strip(" ?？!！。.")) > 1 else question


def without_number_words(question: str) -> str:
    """Return 分机是多少 for 分机号是多少, because documents leave out 号 next to the number."""
    asked = _NUMBER_OF.search(question)
    # 账号 and 编号 are words of their own.
    if asked is None or rjieba.has_word(question[asked.start() - 1] + "号"):
        return question
    return question[: asked.start()] + question[asked.end() :]


def find_dates(text: str) -> tuple[Word, ...]:
    """Return the dates in a text as words: "12 March", "3 月 12 日" and "2026-03-12" have the same
    term."""
    found = []
    for match in _DATE.finditer(text):
        month, day = match["m"], match["d"] or match["d2"] or match["d3"]
        if month is None:
            # Folded, because the long s of old prints matches as well.
            month = _MONTHS.index(fold(match["m2"] or match["m3"]).text[:3]) + 1
        term = f"{int(month)}-{int(day)}"
        found.append(Word(term, term, *match.span()))
    return tuple(found)


def asks_for_steps(question: str) -> bool:
    """Return whether a question asks for steps by that name."""
    return _STEPS_BY_NAME.search(fold(question).text) is not None


def asks_for_list(question: str, *, is_numbered: bool) -> bool:
    """Return whether a question asks for a whole list, not for one of its items. "How" asks for the
    steps of a numbered list."""
    folded = fold(question).text
    return _LIST.search(folded) is not None or (is_numbered and _STEPS.search(folded) is not None)
