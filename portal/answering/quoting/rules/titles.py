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


def is_qualified(words: Iterable[tuple[str, ...]], question: str, text: str) -> bool:
    """Return whether a folded text has a word of the question only in another title or group:
    总经理 in 副总经理, "member" in "non-members". Each word is given as the terms for it, English
    terms as stems."""
    qualified = " ".join("".join(found) for found in _QUALIFIED.findall(text))
    if not qualified or _QUALIFIER.search(question):
        return False
    beside = _QUALIFIED.sub(" ", text)
    return any(_has_any(qualified, word) and not _has_any(beside, word) for word in words)


def _has_any(folded: str, terms: tuple[str, ...]) -> bool:
    stems = index_terms(folded).split()
    return any(
        (len(one) > 1 and one in folded) if one[0] >= HAN[0] else one in stems for one in terms
    )
