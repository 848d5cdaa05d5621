"""Parties of contracts: what 乙方 has to do answers a question about the supplier by name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from uuid import UUID

from portal.answering.quoting.rules.groups.cities import find_cities
from portal.answering.quoting.rules.kinds import is_word
from portal.domain.answering import Source
from portal.text.characters.scripts import HAN

# What a party is called in a contract, and its names: 乙方 for 供应商 and 宁波明辉电器有限公司.
Parties = Mapping[str, frozenset[str]]

# 乙方（供应商）：宁波明辉电器有限公司
_HAN_PARTY = re.compile(
    r"([甲乙丙丁]方)\s*(?:[（(]([^()（）\n]{1,12})[）)])?\s*[:：]\s*([^\n，。；;,（(：:]{2,40})"
)
_ROLE = re.compile("[甲乙丙丁]方")
# Nordwind Ltd ("the Supplier")
_ENGLISH_PARTY = re.compile(
    r"\b([A-Z][\w&'’-]{1,40}(?:,? [A-Z][\w&.'’-]{0,40}){0,5})\s?"
    r"[(（](?:hereinafter |the |called |referred to as ){0,3}[\"“”'](?:the )?([A-Z][a-z]+)[\"“”']"
)
_LEGAL_FORM = re.compile(r"(?:股份|控股|集团|责任)*有?限?(?:责任)?公司|集团|厂$")
_MIN_HAN = 2
_CITY_LENGTHS = (2, 3)


def find_parties(sources: Iterable[Source]) -> Mapping[UUID, Parties]:
    """Return the parties that each document names."""
    found: dict[UUID, dict[str, frozenset[str]]] = defaultdict(dict)
    for one in sources:
        for role, kind, name in _HAN_PARTY.findall(one.text):
            if _ROLE.search(name):
                continue  # 甲方：　　乙方：, to be filled in.
            names = {kind, name.strip()} - {""}
            found[one.document_id][role] = found[one.document_id].get(role, frozenset()) | names
        for name, role in _ENGLISH_PARTY.findall(one.text):
            found[one.document_id].setdefault(f"the {role}", frozenset({name}))
    return found


def with_party(question: str, text: str, parties: Parties) -> str:
    """Return a question with 乙方 in the place of a party's name, if a text says what 乙方 does."""
    for role, names in parties.items():
        if role.lower() not in text.lower() or role in question:
            continue
        said = max((_said(name, question) for name in names), key=len)
        if said and said not in text:
            return question.replace(said, role, 1)
    return question


def _said(name: str, question: str) -> str:
    """Return the part of a party's name by which a question names it; empty if by none."""
    if name in question:
        return name
    if name[0] < HAN[0]:
        first = name.split(" ", maxsplit=1)[0].rstrip(",")
        is_named = re.search(rf"\b{re.escape(first)}\b", question)
        return first if is_named and not is_word(first) else ""
    # 明辉 or 明辉电器 of 宁波明辉电器有限公司
    name = _without_city(_LEGAL_FORM.sub("", name))
    lengths = range(len(name), _MIN_HAN - 1, -1)
    return next((name[:length] for length in lengths if name[:length] in question), "")


def _without_city(name: str) -> str:
    length = next((length for length in _CITY_LENGTHS if find_cities(name[:length])), 0)
    return name[length:]
