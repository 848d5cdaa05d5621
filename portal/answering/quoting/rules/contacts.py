"""Telephone numbers and addresses of people: one person's extension is not another's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import rjieba

from portal.answering.quoting.rules.kinds import is_han_name, is_word
from portal.answering.quoting.statements import Statement
from portal.text.characters.folding import fold
from portal.text.characters.scripts import HAN

# "What is Petra Oswin's extension?", "phone number of Petra Oswin" and 裘怀瑾的分机
_CONTACT = "(?:phone|telephone|mobile|cell|e-?mail|extension)(?: (?:number|address))?"
_HAN_CONTACT = "(?:手[机機]|电话|電話|分[机機]|座[机機]|[邮郵]箱|微信)"
_LATIN_NAME = r"[A-Z][\w-]+(?: [A-Z][\w-]+)*"
_WHOSE_CONTACT = re.compile(
    rf"({_LATIN_NAME}|[{HAN}]{{2,4}})['’]s? (?i:{_CONTACT})\b"
    rf"|\b(?i:{_CONTACT}) (?:of|for) ({_LATIN_NAME})"
    rf"|({_LATIN_NAME}|[{HAN}]{{2,4}})\s?的\s?{_HAN_CONTACT}"
)
_KIND = re.compile(rf"\b{_CONTACT}\b|{_HAN_CONTACT}号?码?", re.IGNORECASE)
_KINDS = (
    re.compile(r"phone|mobile|cell|手[机機]|电话|電話|座[机機]", re.IGNORECASE),
    re.compile(r"extension|分[机機]", re.IGNORECASE),
    re.compile(r"mail|[邮郵]箱", re.IGNORECASE),
    re.compile("微信"),
)
_NAMES = re.compile(r"(?:full )?name|contact(?: person)?|person|姓名|名字|联系人|人员|员工")
_PRONOUN = re.compile(r"[他她]|\b(?:he|she|his|her|him|their)\b")


def whose_contact(question: str) -> tuple[str, ...]:
    """Return the names of the person whose number or address a question asks for; of a Chinese name
    the last two characters, because a title may precede them."""
    found = _WHOSE_CONTACT.search(question)
    if found is None:
        return ()
    name = next(filter(None, found.groups()))
    if name[0] < HAN[0]:
        return tuple(one for one in name.split() if not is_word(one))
    is_person = any(tag == "nr" and word in name for word, tag in rjieba.tag(name))
    return (name[-2:],) if is_person or is_han_name(name[-3:]) else ()


def without_kind(question: str, text: str) -> str:
    """Return a question without "phone number", 邮箱 and the like, unless a text names only other
    kinds. An answer need not name the kind: "Ann Lee, 555 0100"."""
    asked, said = ({kind for kind in _KINDS if kind.search(one)} for one in (question, text))
    return question if said and not asked & said else _KIND.sub(" ", question)


def is_of_another_person(names: Sequence[str], said: str) -> bool:
    """Return whether a text with its headings has none of a person's names, and no pronoun."""
    if not names:
        return False
    folded = fold(said).text
    return not (_PRONOUN.search(folded) or any(fold(name).text in folded for name in names))


def is_row_of_another_person(names: Sequence[str], row: Statement) -> bool:
    """Return whether a table row has a column of names with none of a person's names: the row of
    those whom Ann stands in for does not have her number."""
    cells = [
        fold(cell).text
        for name, cell in zip(row.header, row.cells, strict=False)
        if _NAMES.fullmatch(fold(name).text.strip())
    ]
    return bool(names and cells) and not any(
        fold(name).text in cell for name in names for cell in cells
    )
