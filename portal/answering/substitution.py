"""A new subject, put in the place of the previous question's.

"And in Paris?" after "How much is a hotel in London?" asks how much a hotel in Paris is. Rules find
the phrase to replace: one after the same preposition, with a word in common, or of the same kind.
If no rule applies, the only noun is replaced, or the one nearest in meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import rjieba

from portal.answering.quoting.questions import Word, content_words
from portal.answering.quoting.rules.groups.weekdays import find_weekdays

# Returns how near in meaning each of the texts is to the first argument.
Likeness = Callable[[str, Sequence[str]], Sequence[float]]

_PREPOSITIONS = (
    "for|in|with|without|on|of|at|about|from|to|by|after|before|during|under|over|via|through|until"
    "|per"
)
_DETERMINERS = "an?|the|my|our|your"
_BEFORE_NOUN = rf"\s+(?:(?:{_DETERMINERS})\s+)?$"
_OPENING = re.compile(
    rf"(?P<preposition>{_PREPOSITIONS}|up to|(?:more|less) than|at (?:least|most))\s+(?=\S)",
    re.IGNORECASE,
)
_DETERMINER = re.compile(rf"\b(?:{_DETERMINERS}|this|that)\s+$", re.IGNORECASE)
_HAS_DETERMINER = re.compile(rf"(?:{_DETERMINERS})\s", re.IGNORECASE)
_ARTICLE = re.compile(r"an?\s", re.IGNORECASE)
_ENDS_WITH_ARTICLE = re.compile(r"\ban?\s+$", re.IGNORECASE)
# The word after one of these is a verb.
_BEFORE_VERB = re.compile(
    r"\b(?:i|you|we|they|he|she|it|can|could|should|will|would|must|may|might|to|who|not"
    r"|please)\s+$",
    re.IGNORECASE,
)
# The "open" of "is the office open", which says something about the subject.
_PREDICATE = re.compile(
    r"\w{2,}[^e]ed|open|due|free|valid|available|ready|paid|made|held|sent|done|kept"
)
_IS = re.compile(r"\b(?:is|are|was|were|be)\b", re.IGNORECASE)
# A subject and its verb follow one of these, and nothing shows where the verb begins, unless
# another word follows.
_AFTER_AUXILIARY = re.compile(
    rf"\b(?:do|does|did|can|could|should|will|would|must|may|might){_BEFORE_NOUN}",
    re.IGNORECASE,
)
_ASKS_OF_NOUN = re.compile(
    r"\b(?:do|does|did|can|could|should|will|would|must|may|might)\s+"
    r"(?!(?:i|you|we|they|he|she|it)\b)",
    re.IGNORECASE,
)
_VERB = re.compile(r"cost|take|last|weigh|need|get|pay|open|close|start|begin|end")
_ENDS_VERB = re.compile(rf"\W*(?:$|(?:{_PREPOSITIONS}|{_DETERMINERS})\b)", re.IGNORECASE)
_AFTER_PREPOSITION = re.compile(rf"\b(?:{_PREPOSITIONS}){_BEFORE_NOUN}", re.IGNORECASE)
# These are not subjects.
_ADVERB = re.compile(
    r"elsewhere|abroad|afterwards|later|otherwise|above|below|today|tomorrow|yesterday|(?:if|not)\b.*",
    re.IGNORECASE,
)
# People replace other people, such as interns, but not a notice period.
_PERSON = re.compile(
    rf"(?:{_DETERMINERS})?\s*(?:[\w-]+ )?(?:intern|trainee|apprentice|manager|director"
    r"|executive|employee|worker|contractor|freelancer|volunteer|student|visitor|guest|customer|supplier"
    r"|engineer|designer|developer|consultant|technician|assistant|nurse|doctor|teacher|researcher|driver)s?"
    r"|\w{0,4}(?:实习生|實習生|员工|員工|经理|經理|主管|总监|總監|高管|新人|学生|學生|访客|訪客|客户|客戶|供应商|供應商"
    r"|外包|兼职|兼職|正式工|合同工|临时工|臨時工|工程师|工程師|设计师|設計師|顾问|顧問|技术员|技術員|助理|护士|護士"
    r"|医生|醫生|教师|教師|老师|老師|司机|司機)",
    re.IGNORECASE,
)
# Sites replace other places, such as a city, but not a kind of leave.
_SITE = re.compile(
    rf"(?:(?:{_DETERMINERS})\s+)?(?:[A-Z][\w-]+|(?i:other|new|old|main|head|second))"
    r" (?:office|branch|site|plant|campus|lab|store|shop|school)"
    r"|\w{1,6}(?:办公室|辦公室|分公司|办事处|辦事處|办公区|园区|校区|厂区|分校|分店|门店)"
)
# "Windows on Saturdays" has a subject and a day.
_ON_DAY = re.compile(
    rf"(?P<subject>\S.*?)\s+(?P<day>(?:{_PREPOSITIONS})\s+(?P<name>\S+))", re.IGNORECASE
)
_NO_SUBJECT = re.compile(rf"{_PREPOSITIONS}|up|above|below", re.IGNORECASE)
_GAP = re.compile(r"[\s\-]*")
# The prefix of 陪产假 or 副总经理, which goes when the new subject is another kind.
_HAN_PREFIX = re.compile(r"[陪副非]$")
_CODE_BEFORE = re.compile(r"[A-Za-z0-9]{1,12}$")
_CODE = re.compile(r"[A-Za-z]+\d+")
_LETTERS, _DIGITS = re.compile(r"[A-Za-z]+"), re.compile(r"\d+")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
# Tags of the Chinese segmenter: for words that are not nouns, and for words that can replace others
# with the same tag.
_NO_NOUN = ("v", "a", "d", "p", "c", "u", "y", "r")
_KINDS = ("ns", "nr", "t", "m")
# The segmenter tags some of these as times, others as numbers: 五年, 十年.
_QUANTITY = re.compile(r"[\d零一二两三四五六七八九十百千万]个?(?:年|月|周|天|日|小时|次|人|岁|级)$")
# How much nearer the nearest phrase has to be than the second.
_MIN_LEAD = 0.003


class _Phrase(NamedTuple):
    """Adjacent content words of a question."""

    text: str
    start: int
    end: int
    is_compound: bool = False


def substitute(before: str, subject: str, likeness: Likeness | None = None) -> str | None:
    """Return the question `before`, asked about a new subject; None if there is nothing that the
    subject could replace."""
    if not subject or _ADVERB.fullmatch(subject):
        return None
    opening = _OPENING.match(subject)
    if not opening and (both := _ON_DAY.fullmatch(subject)) and find_weekdays(both["name"]):
        before, subject = substitute(before, both["day"]) or before, both["subject"]
    name = subject[opening.end() :] if opening else subject
    words = content_words(before)
    phrases = _phrases(before, words)
    replaced = (
        (opening and _after_preposition(before, phrases, opening["preposition"], name))
        or _sharing_a_word(before, words, name)
        or _same_kind(phrases, words, name)
    )
    if replaced is None and not opening:
        replaced = _with_article(before, phrases, name) or _who_does(before, phrases, name)
    if replaced is None:
        replaced = _only_or_nearest(phrases, name, likeness)
        if replaced and opening and not _AFTER_PREPOSITION.search(_ahead(before, replaced.start)):
            # "In Paris" does not replace an office, but may say where it is.
            return None
    if replaced is None:
        return None
    ahead = _HAN_PREFIX.sub("", before[: replaced.start])
    if not _HAS_DETERMINER.match(name) or _DETERMINER.search(ahead):
        ahead = _DETERMINER.sub("", ahead)
    return f"{ahead}{name}{before[replaced.end :]}"


def is_alone(subject: str) -> bool:
    """Return whether a new subject begins with no preposition and is no person or site."""
    return not _OPENING.match(subject) and not is_condition(subject)


def is_condition(subject: str) -> bool:
    """Return whether a new subject only says for whom or where something is: "for interns", 总监,
    "the Chengdu office"."""
    bare = _OPENING.sub("", subject, count=1)
    return bool(_PERSON.fullmatch(bare) or _SITE.fullmatch(bare))


def _phrases(question: str, words: Sequence[Word]) -> list[_Phrase]:
    """Return the phrases that may be the subject: nouns, in English with the words beside them."""
    found: list[_Phrase] = []
    is_at = verb.end() if (verb := _IS.search(question)) else len(question)
    for word in words:
        start, end = word.start, word.end
        last = found[-1] if found else None
        if word.is_han:
            if not _tag(word.text).startswith(_NO_NOUN) and not word.text.startswith("几"):
                start = _start_with_code(question, start)
                is_name = not (last and _kind(last.text)) and _kind(word.text) in {"", "ns"}
                is_compound = bool(last and last.end == start and is_name)
                if last and is_compound:
                    start = last.start
                    found.pop()
                found.append(_Phrase(question[start:end], start, end, is_compound))
            continue
        is_predicate = last and is_at <= start and _PREDICATE.fullmatch(word.text)
        is_name = question[start].isupper() or _kind(word.text) == "person"
        is_verb = not is_name and _BEFORE_VERB.search(_ahead(question, start))
        if is_predicate or is_verb or _NO_SUBJECT.fullmatch(word.text):
            continue
        if last and _GAP.fullmatch(question, last.end, start):
            start = last.start
            found.pop()
        found.append(_Phrase(question[start:end], start, end))
    if not found and len(words) > 1:
        # "Who is in charge of payment callbacks?" has only verbs in Chinese; the first one asks.
        return [_Phrase(question[words[1].start : words[-1].end], words[1].start, words[-1].end)]
    found = [_without_verb(question, one) for one in found]
    # The tag of a single Chinese character says little: 报 is a newspaper, and to report.
    return [one for one in found if len(one.text) > 1] or found


def _without_verb(question: str, phrase: _Phrase) -> _Phrase:
    """Return an English phrase without the verb that it ends with; as a compound if the verb could
    not be cut off, or if it has an owner ("the team's")."""
    owner, *more = phrase.text.split()
    if not more or not phrase.text.isascii():
        return phrase
    ahead = _ahead(question, phrase.start)
    # "Does the office in Berlin close?"
    ends_clause = (
        _ASKS_OF_NOUN.search(question)
        and _AFTER_PREPOSITION.search(ahead)
        and ((owner[0].isupper() and more[0][0].islower()) or _VERB.fullmatch(more[0]))
    )
    is_clause = _AFTER_AUXILIARY.search(ahead) and _ENDS_VERB.match(question, phrase.end)
    if len(more) == 1 and (is_clause or ends_clause):
        return _Phrase(owner, phrase.start, phrase.start + len(owner))
    return phrase._replace(is_compound=bool(is_clause) or "'s " in phrase.text)


def _ahead(question: str, start: int) -> str:
    """Return the few words before a position."""
    return question[max(0, start - 40) : start]


def _start_with_code(question: str, start: int) -> int:
    """Return where the letters before a Chinese word begin: A of A区."""
    code = _CODE_BEFORE.search(question, max(0, start - 12), start)
    return code.start() if code else start


def _tag(word: str) -> str:
    """Return the tag of a word's last part, such as `ns` of a place."""
    tag: str = rjieba.tag(word)[-1][1]
    return tag


def _after_preposition(
    question: str, phrases: Sequence[_Phrase], preposition: str, name: str
) -> _Phrase | None:
    at = re.compile(rf"\b{preposition}{_BEFORE_NOUN}", re.IGNORECASE)
    is_year = _YEAR.fullmatch(name) is not None  # "In 2025" does not replace "in Paris".
    for one in phrases:
        if at.search(_ahead(question, one.start)) and (not is_year or _YEAR.fullmatch(one.text)):
            return one
    return None


def _sharing_a_word(question: str, words: Sequence[Word], name: str) -> _Phrase | None:
    """Return the words that are also in the name, with the one that differs: "Team plan" for
    "Enterprise plan"."""
    terms = {word.term for word in content_words(name)}
    shared = [place for place, word in enumerate(words) if word.term in terms]
    if not shared:
        return None
    first, last = shared[0], shared[-1]
    if (
        first
        and len(terms) > 1
        and _GAP.fullmatch(question, words[first - 1].end, words[first].start)
    ):
        first -= 1
    elif (
        last + 1 < len(words)
        and len(terms) > 1
        and _are_alike(question[words[last + 1].start : words[last + 1].end], name)
        and _GAP.fullmatch(question, words[last].end, words[last + 1].start)
    ):
        last += 1
    start, end = _start_with_code(question, words[first].start), words[last].end
    return _Phrase(question[start:end], start, end)


def _are_alike(word: str, name: str) -> bool:
    """Return whether a word and the last word of a new subject are names, or of the same kind."""
    last = name.rsplit(maxsplit=1)[-1]
    are_names = word[0].isupper() and last[0].isupper()
    return are_names or (_kind(word) == _kind(last) and _kind(word) != "")


def _same_kind(phrases: Sequence[_Phrase], words: Sequence[Word], name: str) -> _Phrase | None:
    """Return the phrase of the name's kind: a place, a day, a number, a code, or one that begins or
    ends with the same Chinese character."""
    kind = _kind(name)
    codes = [_Phrase(one.text, one.start, one.end) for one in words if not one.is_han]
    people = [_leading_person(one) for one in phrases] if kind == "person" else []
    for one in (*phrases, *filter(None, people), *codes):
        if kind and _kind(one.text) == kind:
            return one
    for one in codes if _CODE.fullmatch(name) else ():
        # L10 replaces the end of QJ-L20.
        start = one.end - len(one.text.rpartition("-")[2])
        if _kind(one.text[start - one.start :]) == kind:
            return _Phrase(one.text[start - one.start :], start, one.end)
    for one in phrases:
        is_like = len(one.text) > 1 and len(name) > 1 and not name.isascii()
        if is_like and (one.text[-1] == name[-1] or one.text[0] == name[0]):
            return one
    return None


def _leading_person(phrase: _Phrase) -> _Phrase | None:
    """Return "project engineer" of "How much may a project engineer spend?"."""
    found = _PERSON.match(f"{phrase.text} ")
    if found is None or phrase.text[found.end() : found.end() + 1].strip():
        return None
    return _Phrase(found[0], phrase.start, phrase.start + found.end())


def _with_article(question: str, phrases: Sequence[_Phrase], name: str) -> _Phrase | None:
    """Return the only phrase with an indefinite article if the name has one too: "a cat" of "What
    does spaying a cat cost?" for "a rabbit"."""
    if not _ARTICLE.match(name):
        return None
    found = [one for one in phrases if _ENDS_WITH_ARTICLE.search(_ahead(question, one.start))]
    if len(found) != 1:
        return None
    noun, _, last = found[0].text.rpartition(" ")
    if noun and _VERB.fullmatch(last) and _ENDS_VERB.match(question, found[0].end):
        return _Phrase(noun, found[0].start, found[0].start + len(noun))
    return found[0]


def _who_does(question: str, phrases: Sequence[_Phrase], name: str) -> _Phrase | None:
    """Return who does something if the name stands for people: "designers" of "Which laptop do
    designers get?" for "interns"."""
    if _kind(name) != "person":
        return None
    for one in phrases:
        if one.text.endswith("s") and _AFTER_AUXILIARY.search(_ahead(question, one.start)):
            return one
    return None


def _kind(text: str) -> str:
    if find_weekdays(text):
        return "weekday"
    if _PERSON.fullmatch(text):
        return "person"
    if _SITE.fullmatch(text):
        return "ns"
    if text.isascii():
        shape = _DIGITS.sub("9", _LETTERS.sub("a", _HAS_DETERMINER.sub("", text, count=1)))
        return shape if _DIGIT.search(text) else ""
    if _QUANTITY.search(text):
        return "quantity"
    return tag if (tag := _tag(text)) in _KINDS else ""


def _only_or_nearest(
    phrases: Sequence[_Phrase], name: str, likeness: Likeness | None
) -> _Phrase | None:
    """Return the only phrase that names no place, time or person, or the one nearest in meaning to
    the name if it leads the second by `_MIN_LEAD`."""
    if _kind(name) not in {"", "nr"}:
        return None  # If no phrase is of the same kind, a place or a time is added.
    # "And the soup?" asks about the same Friday.
    phrases = [one for one in phrases if _kind(one.text) != "weekday"]
    phrases = [one for one in phrases if not _kind(one.text)] or phrases
    if len(phrases) > 1 and likeness:
        near = likeness(name, [one.text for one in phrases])
        ranked = sorted(zip(near, phrases, strict=True), reverse=True)
        phrases = [ranked[0][1]] if ranked[0][0] - ranked[1][0] >= _MIN_LEAD else []
    # "Managers" does not replace 住宿标准, but the standard may be for managers.
    return phrases[0] if len(phrases) == 1 and not phrases[0].is_compound else None
