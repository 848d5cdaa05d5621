"""Questions that a document suggests: those it asks, and those made from its terms and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from portal.domain.documents import Heading
from portal.text.language import detect_language

MAX_CHARACTERS = 80
_MAX_OF_A_DOCUMENT = 5
# A question on its own line, as in lists of frequent questions.
_GAP = r"[^\S\n]{0,3}"
_ASKED = re.compile(
    rf"^(?:(?:Q|问|question){_GAP}\d{{0,4}}{_GAP}[:：.、]{_GAP}|#+{_GAP}|\d{{1,4}}[.、)]{_GAP})?([^\n?？|]{{5,{MAX_CHARACTERS}}}[?？])[^\S\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_UNIT = re.compile(r"\s*[(（][^()（）]*[)）]\s*")
# Terms of a glossary, each on a line: "Chunk: a part of a text", "分块：指……". Elsewhere such lines
# are often not definitions.
_GLOSSARY = re.compile(
    "glossary|terms|terminology|definition|vocabulary|术语|词汇|名词|定义", re.IGNORECASE
)
_DEFINED = re.compile(
    r"^[ \t*•-]*([^\W\d_][^:：*\n。，,;；]{1,40})\**[:：]\**\s*(?:(?:an?|the)\s|是?指|即)",
    re.MULTILINE | re.IGNORECASE,
)
_MIN_TERMS = 3
# "3.2 Leave", "Requirement 4: Leave", "第三章 年假" and "一、年假" are about leave.
_COUNTED_HEADING = re.compile(
    r"^(?:[^\W\d]{3,12}\s+)?\d[\d.]*\s*[.、):：]?\s*|^第[\d一二三四五六七八九十百]+[章节条部]分?[\s：:]*"
    r"|^[（(]?[一二三四五六七八九十]+[）)、.]\s*|^(?:requirement|scenario):\s*",
    re.IGNORECASE,
)
# Headings that any document may have say nothing about this one.
_GENERAL = re.compile(
    "abstract|appendix|background|conclusion|contents|description|general|glossary|index"
    "|introduction|notes|overview|preface|principles|purpose|references|requirements|scope|summary"
    "|术语表?|目录|目的|说明|简介|概述|背景|(适用)?范围|[前引]言|摘要|结论|总则|附则|附录|要求|参考文献",
    re.IGNORECASE,
)
# "What is not reimbursed" and "如何请假" only lack their question mark.
_QUESTION = re.compile(
    r"(?:what|which|who|when|where|how)\s+(?:is|are|do|does|can|may|must|should|will)\s"
    "|如何|怎[么样]|什么是|为什么|哪些",
    re.IGNORECASE,
)
# "Other leave" only makes sense after the headings before it, and "For programs" is not a subject.
_INCOMPLETE = re.compile(
    r"(?:other|more|further|for|in|on|at|with|without|before|during|after|behind|if|to|from|by)\b|其[他它余]",
    re.IGNORECASE,
)
_PUNCTUATION = re.compile(r"[^\w\s&'’、-]")
_MAX_HEADING_WORDS = 6
# Names of files, which people do not say: "lab_v2", "faq".
_FILE_NAME = re.compile(r"[a-z\d.-]+|[\W\d]+|.*_.*")
# Titles of rules and regulations; what other texts contain is not called a rule.
_RULES = re.compile(
    "手册|制度|规[定范则程章]|办法|须知|守则|条例|章程|细则|政策|准则|标准|指[南引]"
)


def suggest(title: str, body: str, headings: Sequence[Heading]) -> list[str]:
    """Return questions that the text seems to answer, the best first: those it asks, then those
    made from terms, then from headings. Whether it answers them is not checked."""
    first = next((one for one in headings if one.level == 1), None)
    if first and _FILE_NAME.fullmatch(title):
        title = first.title.strip()
    asked = (match[1].strip() for match in _ASKED.finditer(body))
    is_glossary = any(_GLOSSARY.search(one) for one in (title, *(head.title for head in headings)))
    terms = _of_terms(body) if is_glossary else ()
    named = (_of_heading(title, one, body) for one in headings if one is not first)
    found = dict.fromkeys(one for one in chain(asked, terms, named) if one)
    return [one for one in found if len(one) <= MAX_CHARACTERS][:_MAX_OF_A_DOCUMENT]


def _of_terms(body: str) -> Iterator[str]:
    """Yield questions about the terms of a glossary."""
    terms = dict.fromkeys(_UNIT.sub("", match[1]).strip() for match in _DEFINED.finditer(body))
    if len(terms) < _MIN_TERMS:
        return
    for term in terms:
        is_chinese = detect_language(term) == "zh"
        yield f"“{term}”是什么意思？" if is_chinese else f"What does “{term}” mean?"


def _of_heading(title: str, heading: Heading, body: str) -> str | None:
    name = _COUNTED_HEADING.sub("", heading.title.strip())
    if not name or name == title or len(name.split()) > _MAX_HEADING_WORDS:
        return None
    if _GENERAL.fullmatch(name) or _INCOMPLETE.match(name) or _PUNCTUATION.search(name):
        return None
    is_chinese = detect_language(name) == "zh"
    if _QUESTION.match(name):
        return f"{name}？" if is_chinese else f"{name}?"
    if is_chinese:
        has_rules = _RULES.search(title)
        return (
            f"《{title}》对{name}有什么规定？"
            if has_rules
            else f"《{title}》里关于{name}是怎么说的？"
        )
    return f"What does “{title}” say about {_lowered(name, body)}?"


def _lowered(words: str, body: str) -> str:
    """Return words as written inside a sentence. A word that is capitalised there too is a name."""
    first, _, rest = words.partition(" ")
    is_name = rest.istitle() or not re.fullmatch(r"[A-Z][a-z'’-]*", first)
    if is_name or re.search(rf"[a-z,] {re.escape(first)}\b", body):
        return words
    return f"{first.lower()} {rest}".strip()
