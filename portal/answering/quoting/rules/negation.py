"""Headings that deny what a question asks for: nothing below "Not reimbursed" is reimbursed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from portal.answering.quoting.questions import Word
from portal.text.terms.analyser import index_terms

# "Is laundry reimbursed?" is not open: it is answered below such a heading. All texts are folded.
_OPEN_QUESTION = re.compile(r"\b(?:what|which|how|who|where)\b|什么|哪|怎|如何|谁|多少")
_ENGLISH_EXCEPTIONS = (
    r"\b(?:not?|never|nothing|none|cannot|without|except|exclu\w+|refus\w+|reject\w+|forbidden|denied)\b"
    r"|n't\b"
)
_EXCEPTIONS = re.compile(_ENGLISH_EXCEPTIONS + r"|[不未无没非禁拒]|除外|例外|除了")
_DENIED = re.compile(
    r"(?:\b(?:not|never|cannot|no longer)|n't) (?:(?:be|been|being|to be|get) )?([a-z][a-z'-]+)"
    r"|\bnon-?([a-z]{3,})"
)
_HAN_DENIAL = "(?:不|未|禁止|严禁|无法)[予可能得许被会再]{0,2}"
# 不可抗力 and non-disclosure are names.
_DENIAL = re.compile(
    r"不予|不得|不能|不可(?!抗)|不在|禁止|严禁|无法|\b(?:not|never|cannot)\b|n't\b"
)
# "What is and is not reimbursed"
_BOTH = re.compile(r"\b(?:and|or) (?:\w+ )?not\b|[和与或及、/]不")
# "哪些不能退" and "what can't be returned" ask for what is denied. Their answer denies something,
# in its own words or in its heading; 无理由退货 does not.
_ASKS_DENIED = re.compile(
    r"(?:哪[些种类]|(?<!为)什么(?!原因|情况|时候|条件|后果|影响)|谁)[^,]{0,6}?"
    r"(?:不[能可予得许让给支包算用]|无法|禁止)"
    # Not "What happens if I do not reply" and "what do people pay who do not live here".
    r"|(?:\A|[,;:.?!]|\b(?:and|from|for|at|in|on|to|under|after|with))\s*(?:what|which|who)\b"
    r"(?:(?!\b(?:if|when|unless|happens?|who|that)\b)[^,]){0,24}?"
    r"(?:\b(?:cannot|not|never)\b|n't\b)"
)
_SAYS_DENIED = re.compile(
    r"[不未没勿非禁拒忌避除仅只免缺]|请假|无(?!理由|线)|分开|分别|隔离"
    r"|separat\w*|\b(?:excused|absen\w+|apologies|missing)\b|\b(?:un\w+|ineligible|invalid|non|only|outside|ban(?:s|ned)?|avoid\w*|prohibit\w*)\b|"
    + _ENGLISH_EXCEPTIONS
)


def asks_denied(question: str) -> bool:
    """Return whether a question asks for what is denied: "what can't be returned?"."""
    return bool(_ASKS_DENIED.search(question))


def says_denied(text: str) -> bool:
    """Return whether a text denies or excepts anything."""
    return bool(_SAYS_DENIED.search(text))


def is_open(question: str) -> bool:
    """Return whether a question asks what, who or how, and not for exceptions."""
    return bool(_OPEN_QUESTION.search(question)) and not _EXCEPTIONS.search(question)


def denies(headings: Iterable[str], words: Sequence[Word]) -> bool:
    """Return whether a heading denies a word of an open question."""
    return any(_is_denied(word, heading) for heading in headings for word in words)


def is_denial(headings: Iterable[str]) -> bool:
    """Return whether a heading denies anything. This is for another language, whose words cannot be
    compared."""
    return any(_DENIAL.search(one) and not _BOTH.search(one) for one in headings)


def _is_denied(word: Word, heading: str) -> bool:
    if _BOTH.search(heading):
        return False
    if word.is_han:
        others, count = re.subn(_HAN_DENIAL + re.escape(word.text), "", heading)
        return count > 0 and word.text not in others
    return any(word.term == index_terms(one or other) for one, other in _DENIED.findall(heading))
