"""Names for pronouns: "When did he join?" asks about the person named in the previous answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

import rjieba

from portal.answering.quoted import quoted_lines, quoted_tables
from portal.text.characters.scripts import HAN

_PRONOUN = re.compile(
    r"(?<![吉其])[他她](?![们們人])|\b(?:he|she|him)\b|\b(?P<whose>his|hers?)\b", re.IGNORECASE
)
# "Can an employee take her laptop home?" names the person itself.
_OTHER_PERSON = re.compile(
    r"\b(?:(?:some|any|every)(?:one|body)|person|employee|colleague|manager|boss|head|member|intern"
    r"|customer|client|visitor|guest|candidate|child|wife|husband|partner)\b"
    r"|有人|某人|员工|同事|经理|领导|上级|主管|客户|访客|实习生|新人|候选人|孩子|配偶|老婆|丈夫",
    re.IGNORECASE,
)
_MAX_BEFORE = 30
_ASKS_WHO = re.compile(r"谁|誰|哪[一]?位|什么人|甚麼人|\b(?:who|whom|whose)\b", re.IGNORECASE)
_IS_HAN_NAME = re.compile(rf"[{HAN}]{{2,4}}(?:·[{HAN}]{{1,6}})?")
_IS_LATIN_NAME = re.compile(
    r"(?:[A-Z][\w’'-]+|[A-Z]\.)(?: (?:[A-Z][\w’'-]+|[A-Z]\.|de|van|von)){0,3}"
)
# "Tom Reed joined": the first word of a sentence alone may be any word.
_LATIN_NAME = re.compile(
    r"\b[A-Z][a-zà-ÿ]+(?:-[A-Z][a-zà-ÿ]+)?(?: [A-Z]\.)?(?: [A-Z][a-zà-ÿ’'-]+){1,2}\b"
)
_OF_PEOPLE = re.compile(
    r"姓名|名字|负责人|責任人|责任人|经办人|经手人|联系人|谁"
    r"|who|(?:full )?name|owner|person|contact|lead|responsible|assignee|by",
    re.IGNORECASE,
)


def _asks_who(question: str) -> bool:
    """Return whether a question asks for a person."""
    return _ASKS_WHO.search(question) is not None


def with_name(question: str, before: str, answer: str) -> str:
    """Return a question with its pronoun replaced by a name: the only one in the quotations of
    `answer` (Markdown) if the question before asked for a person, else the only Chinese one in
    that question. Return the question unchanged if there is no such name."""
    pronoun = _PRONOUN.search(question)
    if pronoun is None:
        return question
    ahead = question[: pronoun.start()]
    if len(ahead.strip()) > _MAX_BEFORE or _OTHER_PERSON.search(ahead):
        return question
    people = _find_people(answer) if _asks_who(before) else _han_names(before)
    if len(people) != 1:
        return question
    (name,) = people
    is_last = not question[pronoun.end() :].strip(" ?？.!")
    said = f"{name}'s" if pronoun["whose"] and not is_last else name
    return f"{question[: pronoun.start()]}{said}{question[pronoun.end() :]}"


def _find_people(answer: str) -> list[str]:
    """Return the names of people in the quotations of an answer: those in a column of people, else
    all that look like names."""
    lines = quoted_lines(answer) or answer.splitlines()
    text = "\n".join(lines)
    found = _in_columns(lines) or _han_names(text) or _LATIN_NAME.findall(text)
    return list(dict.fromkeys(found))


def _in_columns(lines: Sequence[str]) -> list[str]:
    return [
        cell
        for header, rows in quoted_tables(lines)
        for row in rows
        for above, cell in zip(header, row, strict=False)
        if _OF_PEOPLE.fullmatch(above)
        and (_IS_HAN_NAME.fullmatch(cell) or _IS_LATIN_NAME.fullmatch(cell))
    ]


def _han_names(text: str) -> list[str]:
    tagged = dict(rjieba.tag(text))
    return [word for word, tag in tagged.items() if tag == "nr" and _IS_HAN_NAME.fullmatch(word)]
