"""A new subject in the place of the one that the previous question had.

"And in Paris?" after "How much is a hotel in London?" asks how much a hotel in Paris is. Rules find
what is replaced: the same preposition, a word that both have, the same kind of word. Where they say
nothing the only noun is, or the one that is nearest in meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import rjieba

from portal.answering.quoting.questions import Word, telling_words
from portal.answering.quoting.rules.weekdays import find_weekdays

# Returns how near each of some texts is in meaning to the first argument.
Likeness = Callable[[str, Sequence[str]], Sequence[float]]

_PREPOSITIONS = (
    "for|in|with|without|on|of|at|about|from|to|by|after|before|during|under|over|via|through|until"
    "|per"
)
_DETERMINERS = "an?|the|my|our|your"
_BEFORE_NOUN = rf"\s+(?:(?:{_DETERMINERS})\s+)?$"
_OPENING = re.compile(rf"(?P<preposition>{_PREPOSITIONS})\s+(?=\S)", re.IGNORECASE)
_DETERMINER = re.compile(rf"\b(?:{_DETERMINERS}|this|that)\s+$", re.IGNORECASE)
_HAS_DETERMINER = re.compile(rf"(?:{_DETERMINERS})\s", re.IGNORECASE)
# The word after one of these is a verb.
_BEFORE_VERB = re.compile(
    r"\b(?:i|you|we|they|he|she|it|can|could|should|will|would|must|may|might|to|who|not"
    r"|please)\s+$",
    re.IGNORECASE,
)
# "Open" of "is the office open", which says something of the subject.
_PREDICATE = re.compile(
    r"\w{2,}[^e]ed|open|due|free|valid|available|ready|paid|made|held|sent|done|kept"
)
_IS = re.compile(r"\b(?:is|are|was|were|be)\b", re.IGNORECASE)
# The words behind one of these are a subject with its verb, of which nothing tells where it begins,
# unless another word follows.
_AFTER_AUXILIARY = re.compile(
    rf"\b(?:do|does|did|can|could|should|will|would|must|may|might){_BEFORE_NOUN}",
    re.IGNORECASE,
)
_ASKS_OF_NOUN = re.compile(r"\b(?:do|does|did)\s+(?!(?:i|you|we|they|he|she|it)\b)", re.IGNORECASE)
_ENDS_VERB = re.compile(rf"\W*(?:$|(?:{_PREPOSITIONS}|{_DETERMINERS})\b)", re.IGNORECASE)
_AFTER_PREPOSITION = re.compile(rf"\b(?:{_PREPOSITIONS}){_BEFORE_NOUN}", re.IGNORECASE)
# These stand for no subject.
_ADVERB = re.compile(
    r"elsewhere|abroad|afterwards|later|otherwise|above|below|today|tomorrow|yesterday|(?:if|not)\b.*",
    re.IGNORECASE,
)
# Whom something is for: no other notice period, but perhaps other interns.
_PERSON = re.compile(
    rf"(?:{_DETERMINERS})?\s*(?:[\w-]+ )?(?:intern|trainee|apprentice|manager|director"
    r"|executive|employee|worker|contractor|freelancer|volunteer|student|visitor|guest|customer|supplier)s?"
    r"|\w{0,4}(?:实习生|實習生|员工|員工|经理|經理|主管|总监|總監|高管|新人|学生|學生|访客|訪客|客户|客戶|供应商|供應商"
    r"|外包|兼职|兼職|正式工|合同工|临时工|臨時工)",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(rf"{_PREPOSITIONS}|up|above|below", re.IGNORECASE)
_GAP = re.compile(r"[\s\-]*")
_CODE_BEFORE = re.compile(r"[A-Za-z0-9]{1,12}$")
_LETTERS, _DIGITS = re.compile(r"[A-Za-z]+"), re.compile(r"\d+")
_DIGIT = re.compile(r"\d")
# Tags of the Chinese segmenter: of verbs and the like, and those of which words stand for another.
_NO_NOUN = ("v", "a", "d", "p", "c", "u", "y", "r")
_KINDS = ("ns", "nr", "t", "m")
# Tagged as times or numbers, as it happens: 五年, 十年.
_QUANTITY = re.compile(r"[\d零一二两三四五六七八九十百千万]个?(?:年|月|周|天|日|小时|次|人|岁|级)$")
# Nearness of two words below which a lead says nothing.
_MIN_LEAD = 0.003


class _Phrase(NamedTuple):
    """Adjacent content words of a question."""

    text: str
    start: int
    end: int
    is_compound: bool = False


def substitute(before: str, subject: str, likeness: Likeness | None = None) -> str | None:
    """Return the question `before` asked of a new subject; None where nothing that it could replace
    is found."""
    if not subject or _ADVERB.fullmatch(subject):
        return None
    opening = _OPENING.match(subject)
    name = subject[opening.end() :] if opening else subject
    words = telling_words(before)
    phrases = _phrases(before, words)
    replaced = (
        (opening and _after_preposition(before, phrases, opening["preposition"]))
        or _sharing_a_word(before, words, name)
        or _same_kind(phrases, words, name)
    )
    if replaced is None:
        replaced = _only_or_nearest(phrases, name, likeness)
        if replaced and opening and not _AFTER_PREPOSITION.search(_ahead(before, replaced.start)):
            # "In Paris" is no other office, but may be where it is.
            return None
    if replaced is None:
        return None
    ahead = before[: replaced.start]
    if not _HAS_DETERMINER.match(name) or _DETERMINER.search(ahead):
        ahead = _DETERMINER.sub("", ahead)
    return f"{ahead}{name}{before[replaced.end :]}"


def _phrases(question: str, words: Sequence[Word]) -> list[_Phrase]:
    """Return what may be the subject: nouns, in English with the words beside them."""
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
        # "Who is in charge of payment callbacks?" in Chinese has verbs alone; the first one asks.
        return [_Phrase(question[words[1].start : words[-1].end], words[1].start, words[-1].end)]
    found = [_without_verb(question, one) for one in found]
    # The tag of a single Chinese character says little: 报 is a newspaper, and to report.
    return [one for one in found if len(one.text) > 1] or found


def _without_verb(question: str, phrase: _Phrase) -> _Phrase:
    """Return an English phrase without the verb that it ends with; compound if that, or an owner,
    is within it."""
    owner, *more = phrase.text.split()
    if not more or not phrase.text.isascii():
        return phrase
    ahead = _ahead(question, phrase.start)
    # "Does the office in Berlin close?"
    ends_clause = (
        _ASKS_OF_NOUN.search(question)
        and _AFTER_PREPOSITION.search(ahead)
        and owner[0].isupper()
        and more[0][0].islower()
    )
    is_clause = _AFTER_AUXILIARY.search(ahead) and _ENDS_VERB.match(question, phrase.end)
    if len(more) == 1 and (is_clause or ends_clause):
        return _Phrase(owner, phrase.start, phrase.start + len(owner))
    return phrase._replace(is_compound=bool(is_clause) or "'s " in phrase.text)


def _ahead(question: str, start: int) -> str:
    """Return the few words before a place."""
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
    question: str, phrases: Sequence[_Phrase], preposition: str
) -> _Phrase | None:
    at = re.compile(rf"\b{preposition}{_BEFORE_NOUN}", re.IGNORECASE)
    return next((one for one in phrases if at.search(_ahead(question, one.start))), None)


def _sharing_a_word(question: str, words: Sequence[Word], name: str) -> _Phrase | None:
    """Return the words that are in the name too, with the one that tells them apart: "Team plan"
    for "Enterprise plan"."""
    terms = {word.term for word in telling_words(name)}
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
    """Return whether a word is a name, or of a kind, as the last word of a new subject is."""
    last = name.rsplit(maxsplit=1)[-1]
    are_names = word[0].isupper() and last[0].isupper()
    return are_names or (_kind(word) == _kind(last) and _kind(word) != "")


def _same_kind(phrases: Sequence[_Phrase], words: Sequence[Word], name: str) -> _Phrase | None:
    """Return the phrase of the name's kind: a place, a day, a number, a code, or one that begins or
    ends with the same Chinese character."""
    kind = _kind(name)
    codes = [_Phrase(one.text, one.start, one.end) for one in words if not one.is_han]
    for one in (*phrases, *codes):
        if kind and _kind(one.text) == kind:
            return one
    for one in phrases:
        is_like = len(one.text) > 1 and len(name) > 1 and not name.isascii()
        if is_like and (one.text[-1] == name[-1] or one.text[0] == name[0]):
            return one
    return None


def _kind(text: str) -> str:
    if find_weekdays(text):
        return "weekday"
    if _PERSON.fullmatch(text):
        return "person"
    if text.isascii():
        shape = _DIGITS.sub("9", _LETTERS.sub("a", _HAS_DETERMINER.sub("", text, count=1)))
        return shape if _DIGIT.search(text) else ""
    if _QUANTITY.search(text):
        return "quantity"
    return tag if (tag := _tag(text)) in _KINDS else ""


def _only_or_nearest(
    phrases: Sequence[_Phrase], name: str, likeness: Likeness | None
) -> _Phrase | None:
    """Return the only phrase that names no place, time or person, or that which is nearest in
    meaning to the name, if it leads."""
    if _kind(name) not in {"", "nr"}:
        return None  # Where no phrase is of its kind, a place or a time is added.
    phrases = [one for one in phrases if not _kind(one.text)] or phrases
    if len(phrases) > 1 and likeness:
        near = likeness(name, [one.text for one in phrases])
        ranked = sorted(zip(near, phrases, strict=True), reverse=True)
        phrases = [ranked[0][1]] if ranked[0][0] - ranked[1][0] >= _MIN_LEAD else []
    # "Managers" is no other 住宿标准, but may be what the standard is for.
    return phrases[0] if len(phrases) == 1 and not phrases[0].is_compound else None
