"""Remarks on an answer: "Why?" and "tell me more" ask for more than what it quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from portal.answering.quoted import quoted_lines
from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.judging.judged import Judged
from portal.answering.quoting.rendering import render
from portal.answering.quoting.statements import Statement
from portal.domain.answering import Source, Turn

_ONLY_WHY = re.compile(
    r"\W*(?:(?:but|and|so) )?(?:why(?: (?:not|is that|so))?|how come)\W*"
    r"|\W*[那但]?(?:这是)?(?:为什么|為什麼|为何|为啥)\W*呢?\W*",
    re.IGNORECASE,
)
# Without such a sign, a statement only has the words of the question before.
_GIVES_REASON = re.compile(
    r"因为|由于|为了|以便|因(?=[^,，。]{1,12}[,，])|原因|导致|鉴于|所以|以免|避免|从而|防止"
    r"|\b(?:because|since|as a result|due to|owing to|so that|in order|reasons?|therefore|to avoid"
    r"|to prevent|caused? by|otherwise)\b",
    re.IGNORECASE,
)


def last_answer(turns: Sequence[Turn]) -> str:
    """Return the answer before the question that `turns` end with; empty if there is none."""
    return turns[-2].content if len(turns) > 1 else ""


def is_quoted(answer: str, source: Source, statement: Statement) -> bool:
    """Return whether an answer quotes a statement, alone or among others."""
    quoted = quoted_lines(answer)
    lines = quoted_lines(render(Quotation(source, (statement,))))
    return all(any(line in one for one in quoted) for line in lines)


def asks_only_why(question: str) -> bool:
    """Return whether a question is nothing but "Why?"."""
    return _ONLY_WHY.fullmatch(question) is not None


def reasons_only(judged: Sequence[Judged], question: str) -> list[Judged]:
    """Exclude the statements that give no reason, if the question is a bare "Why?"."""
    if not asks_only_why(question):
        return list(judged)

    def is_reason(source: Source, one: Statement) -> bool:
        return _GIVES_REASON.search(source.text, one.start, one.end) is not None

    return [
        replace(
            one,
            candidates=tuple(
                each if is_reason(one.source, each.statement) else replace(each, chance=0.0)
                for each in one.candidates
            ),
        )
        for one in judged
    ]
