"""Parts of a question: "How many days of leave, and how do I claim a hotel?" has two."""

from __future__ import annotations

import re

import rjieba

from portal.answering.quoting.questions import (
    ASKS,
    HAN_ASKS,
    VERBS_ASK,
    Word,
    as_question,
    content_words,
    is_han,
    without_greeting,
)
from portal.answering.quoting.rules.kinds.patterns import CODE
from portal.text.characters.scripts import HAN

# "I have to stay late" and "when the queue piles up" ask nothing.
_PART_ASKS = re.compile(
    rf"{HAN_ASKS}|\b(?:what|where|who|whom|whose|which|why|how)\b|^(?:(?:and|but|so|also)\s+)?{VERBS_ASK}"
    r"|\bwhen\b(?!\s+(?:the|an?|my|our|your|i|we|you|it|they|he|she|there|some\w*)\b)",
    re.IGNORECASE,
)
_BETWEEN_PARTS = re.compile(
    r"[?？;；]+(?:\s*(?:and|also)\b)?|[,，]\s*(?:并且|而且|以及|还有|另外|然后|and\b|also\b)?|以及|另外|还有"
    r"|\band (?=(?:(?:at|by|for|from|in|on|since|to|until|with) )?"
    r"(?:what|when|where|who|whom|which|why|how)\b|(?:can|do|does|is|are|must)\b)",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"^(?:它|他|她|其|这|那|[在从由去到]哪)|\b(?:it|its|they|them|this|that|he|she)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<= )[A-Z][a-z]+")
# 年会 and 周会 are meetings, though some are tagged as verbs.
_MEETING = re.compile("[年季月周例晨晚组班部大]会")
# "And how many days?", "how far in advance?", "who do I tell?"
_ONLY_ASKS = re.compile(
    r"\s*(?:and\s+)?(?:for\s+)?how (?:many|much)"
    r"(?: (?:days|hours|weeks|months|years|minutes|times|people|money|time)(?: fit(?: in)?)?)?\W*"
    r"|\s*(?:and\s+)?how (?:far|long|early|soon|much)"
    r"(?: (?:in advance|ahead|before(?:hand)?|earlier))?(?: of time)?\W*"
    r"|\s*(?:and\s+)?(?:from|to|by|until|since) (?:where|when|whom)\W*"
    r"|\s*(?:and\s+)?whom? (?:do|should|must|can) (?:i|we|you)"
    r" (?:tell|ask|call|ring|contact|inform)\W*"
    r"|\s*(?:and\s+)?what(?:['’]s| is) the (?:number|extension|price|cost|fee|deadline|limit)\W*",
    re.IGNORECASE,
)
# 用的是什么数据库，哪个版本？
_ONLY_WHICH = re.compile(
    rf"\s*(?:是|属于)?(?:哪一?[个种家款]|什么)[{HAN}]{{1,2}}\W*"
    r"|\s*(?:and\s+)?(?:which|what) \w+\W*",
    re.IGNORECASE,
)
# "When and where do we meet?" is two questions; so is "What do E1 and E4 mean?".
_BOTH_ASKED = re.compile(
    r"(when|where|how|why|who|what) and (when|where|how|why|who|what) (.+)", re.IGNORECASE
)
_CODE = re.compile(rf"(?<![a-z\d-]){CODE}", re.IGNORECASE)
_CODES_BESIDE = re.compile(
    rf"{_CODE.pattern}(?:(?:\s*[和与及、,，]\s*| and ){CODE})?"
    rf"(?:\s*[和与及、]\s*|,? and ){CODE}(?![a-z\d-])",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:between|differ\w*|compare\w*|both|than|together|which|compatible|at once|in total|sum)\b"
    r"|区别|差别|不同|相比|比较|之间|一起|同时|还是|[合共总]计|[一总]共|兼容|哪[个种款]|从",
    re.IGNORECASE,
)
# 婚假和丧假各几天 are two questions.
_EACH = re.compile(
    rf"([{HAN}]{{2,6}}?)[和与及、]([{HAN}]{{2,6}}?)(?:各自?|分别)(?:都?[是有为])?([{HAN}].*)"
)
# "What does a ticket cost for adults and for children?" asks about each.
_FOR_EACH = re.compile(
    r"(.+? (for|in|at|on|with) )((?:(?!\band\b)[^,]){2,40}?),? and \2 "
    r"((?!(?:what|which|how|when|where|who\w*)\b)[^,;?]{2,40})",
    re.IGNORECASE,
)
_ASKS_WHICH = re.compile(r"\s*(?:and\s+)?(?:which|what)\s+(?:[\w-]+\s+){1,2}", re.IGNORECASE)
# Words that connect a part of a question with the answer to the previous part.
_IF_SO = re.compile(
    r"\A(?:(?:如果|要是|假如)?(?:没有|不是|不能|不行|不可以|有|是|能|行|可以)的话"
    r"|(?:如果|要是)(?:没有|有|能|不能)|if (?:so|not|yes|no))[,，]?\s*",
    re.IGNORECASE,
)
# "1. 病假怎么请 2. 年终奖多少"
_NUMBERED = re.compile(r"(?:\A|(?<=[\s,，;；?？。]))([1-3])[.、)）](?!\d)\s*")
_MAX_PARTS = 3
_MIN_PART_CHARACTERS = 2


def find_parts(question: str) -> tuple[str, ...]:
    """Split "How many days of leave, and how do I claim a hotel?" into its questions.

    Every part has to be a question on its own; otherwise the question stays whole.
    """
    bare = without_greeting(question).strip(" ?？。")
    if each := _EACH.fullmatch(bare):
        return (each[1] + each[3], each[2] + each[3])
    if both := _BOTH_ASKED.fullmatch(bare):
        return (f"{both[1]} {both[3]}", f"{both[2]} {both[3]}")
    if (each := _FOR_EACH.fullmatch(bare)) and not _COMPARES.search(bare):
        return (each[1] + each[3], each[1] + each[4])
    if several := _about_each_code(bare) or _numbered(bare):
        return several
    parts: list[str] = []
    start = 0
    for gap in [*_BETWEEN_PARTS.finditer(bare), None]:
        piece = bare[start : gap.start() if gap else len(bare)].strip(" .。!！")
        start = gap.end() if gap else start
        if not piece:
            continue
        # A condition belongs to the whole: "if I am ill, whom do I tell?"
        if len(piece) < _MIN_PART_CHARACTERS or not _asks(piece, gap):
            return (question,)
        parts.append(_IF_SO.sub("", piece) or piece if parts else piece)
    return tuple(parts) if 1 < len(parts) <= _MAX_PARTS else (question,)


def _asks(piece: str, gap: re.Match[str] | None) -> bool:
    """Return whether a piece is a question by its words or, without a question word, by the mark in
    the gap after it: "max number of mice in one cage?"; a single word is only the subject of what
    follows."""
    if _PART_ASKS.search(piece):
        return True
    is_marked = gap is not None and gap[0].startswith(("?", "？"))
    return is_marked and len(content_words(piece)) > 1


def _about_each_code(question: str) -> tuple[str, ...]:
    """Return a question about two or three adjacent codes as one question per code; nothing if it
    asks about them together, or about something else too."""
    listed = _CODES_BESIDE.search(question)
    if listed is None or _COMPARES.search(question):
        return ()
    before, after = question[: listed.start()], question[listed.end() :]
    if any(_CODE.search(one) or _BETWEEN_PARTS.search(one) for one in (before, after)):
        return ()
    return tuple(f"{before}{code}{after}" for code in _CODE.findall(listed[0]))


def _numbered(question: str) -> tuple[str, ...]:
    """Return the questions of a numbered list; nothing for other questions."""
    marks = list(_NUMBERED.finditer(question))
    numbers = [int(one[1]) for one in marks]
    if len(marks) < 2 or marks[0].start() or numbers != list(range(1, len(marks) + 1)):  # noqa: PLR2004
        return ()
    ends = [*(one.start() for one in marks[1:]), len(question)]
    pieces = [
        question[m.end() : end].strip(" ,，;；?？。.") for m, end in zip(marks, ends, strict=True)
    ]
    return tuple(pieces) if all(len(one) >= _MIN_PART_CHARACTERS for one in pieces) else ()


def standalone_parts(question: str) -> tuple[tuple[str, str], ...]:
    """Return the parts of a question, each as asked and as a search query. A part that refers back,
    or names nothing, gets the words of the first part."""
    first, *rest = find_parts(question)
    if not rest:
        return ((first, first),)

    def searched(part: str) -> str:
        needs_first = needs_first_part(part) and not _ask_alike(first, part)
        return beside_first(question, part) if needs_first else as_question(part)

    return ((first, as_question(first)), *((one, searched(one)) for one in rest))


def beside_first(question: str, part: str) -> str:
    """Return a further part of a question, preceded by the subject of the first part."""
    first = find_parts(question)[0]
    return as_question(part if part == first else _beside(_without_asking(first), part))


def needs_first_part(part: str) -> bool:
    """Return whether a part of a question is incomplete without the first: it names nothing
    ("谁批", "什么时候完成", "how many days"), asks only which of a kind ("哪个版本"), or refers
    back."""
    back = _POINTS_BACK.search(part)
    # In "who stands in for Tomasz when he is away" he is Tomasz.
    is_named = back and back[0].lower() in {"he", "she"} and _NAME.search(part, 1, back.start())
    return (
        (back is not None and not is_named)
        or _ONLY_ASKS.fullmatch(part) is not None
        or _ONLY_WHICH.fullmatch(part) is not None
        or names_nothing(part)
    )


def names_nothing(question: str) -> bool:
    """Return whether a question has no content words other than Chinese verbs."""
    return all(_is_han_verb(one) for one in content_words(question))


def _ask_alike(first: str, part: str) -> bool:
    """Return whether both parts ask the same about their subjects: 年会几号，体检几号."""
    asked = [_without_subject(one) for one in (first, part)]
    return asked[0] is not None and asked[0] == asked[1]


def _without_subject(part: str) -> str | None:
    """Return the text after the last content word if the part begins with one, else None."""
    words = content_words(part)
    return part[words[-1].end :].strip(" ?？") if words and words[0].start == 0 else None


def _is_han_verb(word: Word) -> bool:
    if not word.is_han or _MEETING.fullmatch(word.text):
        return False
    return all(tag in {"v", "a", "d"} for _, tag in rjieba.tag(word.text))


def _without_asking(part: str) -> str:
    """Return what a question is about: 下次会议 of 下次会议什么时候, 离职 of 离职提前多久通知."""
    words = content_words(part)
    if not words:
        return ""
    asking = ASKS.search(part, words[0].end)
    before = [one for one in words if asking is None or one.end <= asking.start()]
    if asking and _ASKS_WHICH.fullmatch(part, 0, asking.start()) and len(words) > len(before):
        # "Which day is the next meeting?" is about the meeting.
        return part[words[len(before)].start : words[-1].end]
    return part[words[0].start : before[-1].end]


def _beside(carried: str, part: str) -> str:
    gap = "，" if is_han(carried[-1:]) and is_han(part[:1]) else " "
    return f"{carried}{gap}{part}".strip()
