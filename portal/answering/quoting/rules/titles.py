"""Words that change a title or group: a deputy manager is not the manager."""

from __future__ import annotations

import re
from collections.abc import Iterable

from portal.text.characters.scripts import HAN
from portal.text.terms.analyser import index_terms

# Words that change a title or a group, alone and with the word that they change.
_BEFORE = "(?:vice|deputy|assistant|associate|acting|former|honorary)"
_QUALIFIER = re.compile(rf"[非副]|助理|\bnon|\b(?:co|ex)-|\b{_BEFORE}\b")
_QUALIFIED = re.compile(
    rf"[非副]([{HAN}]{{2,5}})|([{HAN}]{{2,4}})助理"
    rf"|\bnon-?([a-z]{{3,}})|\b(?:co|ex|vice)-([a-z]{{3,}})|\b{_BEFORE} ([a-z]{{3,}})"
)

# 我司经理 and 由经理 name no other office.
_PREFIX = rf"(?![司各由的为是及])[{HAN}]"
_OFFICE = re.compile(rf"([{HAN}]{{1,4}})(经理|总监|主管|主任|主席|部长)")


def is_qualified(words: Iterable[tuple[str, ...]], question: str, text: str) -> bool:
    """Return whether a folded text has a word of the question only in another title or group:
    总经理 in 副总经理, "member" in "non-members". Each word is given as the terms for it, English
    terms as stems."""
    qualified = " ".join("".join(found) for found in _QUALIFIED.findall(text))
    if not qualified or _QUALIFIER.search(question):
        return False
    beside = _QUALIFIED.sub(" ", text)
    return any(_has_any(qualified, word) and not _has_any(beside, word) for word in words)


def has_another_office(words: Iterable[tuple[str, ...]], text: str) -> bool:
    """Return whether a text has an office of the question only with another prefix: 项目经理 for
    总经理. In 财务部总监, the prefix of 财务总监 stands apart."""
    found = (_OFFICE.fullmatch(term) for word in words for term in word)
    return any(
        re.search(rf"{_PREFIX}{office[2]}(?!级)", text)
        and not re.search(rf"{office[0]}|(?<!{_PREFIX}){office[2]}", text)
        and (len(office[1]) == 1 or office[1] not in text)
        for office in found
        if office
    )


def _has_any(folded: str, terms: tuple[str, ...]) -> bool:
    stems = index_terms(folded).split()
    return any(
        (len(one) > 1 and one in folded) if one[0] >= HAN[0] else one in stems for one in terms
    )
