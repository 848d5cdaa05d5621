"""A bare "Why?" asks for more than what the answer before quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from portal.answering.quoting.choosing import Quotation
from portal.answering.quoting.judging.judged import Candidate, Judged
from portal.answering.quoting.rendering import render
from portal.domain.answering import Turn

_ONLY_WHY = re.compile(
    r"\W*(?:(?:but|and|so) )?(?:why(?: (?:not|is that|so))?|how come)\W*"
    r"|\W*[那但]?(?:这是)?(?:为什么|為什麼|为何|为啥)\W*呢?\W*",
    re.IGNORECASE,
)
# Without such a sign, a statement that is not the one quoted before is about something else.
_GIVES_REASON = re.compile(
    r"因为|由于|为了|以便|因(?=[^,，。]{1,12}[,，])|原因|导致|鉴于|所以|以免|避免|从而|防止"
    r"|\b(?:because|since|as a result|due to|owing to|so that|in order|reasons?|therefore|to avoid"
    r"|to prevent|caused? by|otherwise)\b",
    re.IGNORECASE,
)


def asks_only_why(question: str) -> bool:
    """Return whether a question is nothing but "Why?"."""
    return _ONLY_WHY.fullmatch(question) is not None


def without_repeated(judged: Sequence[Judged], turns: Sequence[Turn]) -> list[Judged]:
    """Exclude the statements that the answer before a bare "Why?" quotes, and those that give no
    reason; `turns` end with the question. Before another question, nothing is excluded."""
    if len(turns) == 1 or not asks_only_why(turns[-1].content):
        return list(judged)
    answer = turns[-2].content

    def not_again(source: Judged, one: Candidate) -> Candidate:
        text = source.source.text[one.statement.start : one.statement.end]
        is_again = render(Quotation(source.source, (one.statement,))) in answer
        is_reason = _GIVES_REASON.search(text) is not None
        return one if is_reason and not is_again else replace(one, chance=0.0)

    return [
        replace(source, candidates=tuple(not_again(source, one) for one in source.candidates))
        for source in judged
    ]
