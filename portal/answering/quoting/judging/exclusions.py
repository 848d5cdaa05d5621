"""Statements that do not answer a question, however likely the model finds them: those of another
day, date, quarter, city, event or kind, and those below a heading that denies what is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.questions import find_dates
from portal.answering.quoting.rules.contacts import is_of_another_person
from portal.answering.quoting.rules.events import OF_LIFE, has_another_event
from portal.answering.quoting.rules.groups.named import names_others
from portal.answering.quoting.rules.kinds import Wanted
from portal.answering.quoting.rules.negation import denies, is_denial, says_denied
from portal.answering.quoting.rules.titles import has_another_office, is_qualified
from portal.text.characters.folding import fold

# When a mail was sent is not when what it announces takes place.
_SENT_AT = re.compile(r"(?:sent|date|发送时间|日期)[:：].*\d\d:\d\d:\d\d [+-]\d{4}", re.IGNORECASE)
_ASKS_OF_MAIL = re.compile(
    r"\b(?:(?:e-?)?mail\w*|letters?|messages?|sent|sends?|wr[io]te|written|announced)\b|邮件|来信|发[的出送]|寄|通知",
    re.IGNORECASE,
)
_MAIL_HEADER = re.compile(
    r"(?:from|to|cc|sent|date|发件人|收件人|抄送|发送时间|日期)[:：]", re.IGNORECASE
)
# "To: Ann <ann@nord.example>" does not say who Ann is.
_ADDRESSES = re.compile(r"(?:from|to|cc|发件人|收件人|抄送)[:：][^\n]*@", re.IGNORECASE)

_ASSEMBLY_POINT = re.compile(
    r"集合地?点|\b(?:assembly|muster(?:ing)?|evacuation) (?:point|area)\b", re.IGNORECASE
)
_ASKS_OF_EMERGENCY = re.compile(
    r"集合|疏散|撤离|逃生|火|警报|紧急|应急|演习|地震|碰头"
    r"|\b(?:assembl|muster|evacuat|gather|meet|fire|alarm|emergenc|drill|earthquake|escape|burn)"
)


def is_excluded(asked: Asked, context: str, text: str, *, is_foreign: bool) -> bool:
    """Return whether a statement below `context` is about something other than the question."""
    said, folded = f"{context}\n{text}", fold(text).text
    words = asked.translated if is_foreign else asked.terms
    return (
        names_others(asked.named, context, text)
        or is_qualified(words, asked.folded, folded)
        or (asked.wanted is Wanted.HOLDER and has_another_office(words, folded))
        or (not is_foreign and is_of_another_person(asked.person, said))
        or _is_below_another_date(asked.dates, context, text)
        or _is_of_another_event(asked, said, is_foreign=is_foreign)
        or (asked.asks_denied and not says_denied(fold(said).text))
        or _is_of_assembly_point(asked, said)
        or (_is_of_mail(text) and not _ASKS_OF_MAIL.search(asked.folded))
    )


def _is_of_assembly_point(asked: Asked, said: str) -> bool:
    """Return whether a statement says where to gather in an emergency, and the question asks where
    something else is: the car park in front of it is not where to park."""
    is_asked = _ASKS_OF_EMERGENCY.search(asked.folded)
    return asked.wanted is Wanted.PLACE and not is_asked and bool(_ASSEMBLY_POINT.search(said))


def _is_of_mail(text: str) -> bool:
    return (_SENT_AT.match(text) or _ADDRESSES.match(text)) is not None


def is_mail_header(text: str) -> bool:
    """Return whether a statement begins like a mail header: "From: Ann"."""
    return _MAIL_HEADER.match(text) is not None


def find_denials(asked: Asked, headings: Iterable[str], *, is_foreign: bool) -> set[str]:
    """Return the headings that deny what an open question asks for; in another language, where its
    words cannot be compared, those that deny anything."""
    if not asked.is_open:
        return set()
    lines = {one: fold(one).text.split("\n") for one in headings}
    if is_foreign:
        return {one for one, texts in lines.items() if is_denial(texts)}
    return {one for one, texts in lines.items() if denies(texts, asked.words)}


def _is_below_another_date(asked: frozenset[str], context: str, text: str) -> bool:
    """Return whether the headings of a statement name one date, and neither they nor the statement
    name one that is asked about."""
    if not asked:
        return False
    above, said = ({one.term for one in find_dates(each)} for each in (context, text))
    return len(above) == 1 and not (above | said) & asked


def _is_of_another_event(asked: Asked, said: str, *, is_foreign: bool) -> bool:
    """Return whether a statement is about another event. In the question's language, only births
    and deaths are compared, because the model tells other events apart."""
    compared = asked.events if is_foreign else [one for one in asked.events if one in OF_LIFE]
    is_when = asked.wanted is Wanted.TIME
    return bool(compared) and has_another_event(compared, fold(said).text, is_when=is_when)
