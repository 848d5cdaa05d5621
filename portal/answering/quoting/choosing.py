"""Choice of the statements to quote from a source: sentences, rows, or a whole list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from portal.answering.quoting.questions import asks_for_list, defines
from portal.answering.quoting.relevance import Candidate, Judged, as_confidence
from portal.answering.quoting.statements import Statement
from portal.domain.answering import Source

# Further sentences are quoted when their chance is close to that of the best.
_NEARLY = 0.8
_MAX_SENTENCES = 2
_MAX_SECTION_SENTENCES = 4
_MAX_QUOTE_CHARACTERS = 480
# Rows and items are chosen by their own words where these differ by at least this much.
_TELLS_APART = 0.12
_MAX_ROWS = 8
_MAX_ITEMS = 15
# A sentence with such an opening refers to the one before it.
_POINTS_BACK = re.compile(
    r"(?:这|该|此|其|它|他|她|上述|前述|以上|但|而且|并且|同时|否则|this|that|these|those|it|they|he|she|such"
    r"|otherwise|then|both|however|in that case)\b"
    r"|(?:这|该|此|其|它|他|她|否则|但是?|不过)",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？]\W*$")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Adjacent statements of a source. With `starts_at` the quotation begins there, at the line
    that introduces its list."""

    source: Source
    statements: tuple[Statement, ...]
    confidence: float = 1.0
    starts_at: int | None = None
    title: str = ""

    @property
    def start(self) -> int:
        return self.statements[0].start if self.starts_at is None else self.starts_at

    @property
    def end(self) -> int:
        return self.statements[-1].end


def choose(question: str, judged: Judged) -> list[Quotation]:
    """Return the best statements of a source, with adjacent ones joined."""
    usable = [place for place, one in enumerate(judged.candidates) if one.holds]
    if not usable:
        return []
    best = max(usable, key=lambda place: _rank(question, judged, place))
    candidate = judged.candidates[best]
    starts_at = None
    if candidate.statement.group is None:
        places = _sentences(judged, usable, best)
    else:
        group = [
            place
            for place, one in enumerate(judged.candidates)
            if one.statement.group == candidate.statement.group
        ]
        is_table = bool(candidate.statement.cells)
        if is_table:
            places = _told_apart(judged, [place for place in group if place in usable])[:_MAX_ROWS]
        elif asks_for_list(question) or len(_told_apart(judged, group)) == len(group):
            places, starts_at = group[:_MAX_ITEMS], candidate.statement.group_start
        else:
            places = _told_apart(judged, [place for place in group if place in usable])
    confidence = as_confidence(candidate.chance, same_language=judged.same_language)
    return _runs(judged, places, confidence, starts_at)


def _rank(question: str, judged: Judged, place: int) -> tuple[float, float]:
    candidate = judged.candidates[place]
    statement = candidate.statement
    text = judged.source.text[statement.start : statement.end]
    return candidate.chance + 0.2 * defines(question, text), -place


def _sentences(judged: Judged, usable: Sequence[int], best: int) -> list[int]:
    candidates = judged.candidates
    context = candidates[best].statement.context
    if _ASKS.search(context):
        # All statements below a heading that is a question are one answer.
        section = [
            place
            for place, one in enumerate(candidates)
            if one.statement.context == context and one.statement.group is None
        ]
        # The heading, rather than the words of a sentence, matches the question as a whole.
        if candidates[best].evidence.met - candidates[best].evidence.own >= _TELLS_APART:
            return _fitting(judged, section[:_MAX_SECTION_SENTENCES])
    near = [
        place
        for place in usable
        if candidates[place].chance >= candidates[best].chance * _NEARLY
        and candidates[place].evidence.own >= candidates[best].evidence.own * _NEARLY
        and candidates[place].statement.group is None
    ]
    near.sort(key=lambda place: (place != best, -candidates[place].chance, place))
    return _fitting(judged, near[:_MAX_SENTENCES])


def _fitting(judged: Judged, places: Sequence[int]) -> list[int]:
    """Return as many as fit into a quotation, and always the first."""
    # A sentence that begins with a pronoun needs the one before it.
    kept: list[int] = []
    length = 0
    for place in places:
        statement = judged.candidates[place].statement
        length += statement.end - statement.start
        if kept and length > _MAX_QUOTE_CHARACTERS:
            break
        kept += _with_antecedent(judged, place)
    return kept


def _with_antecedent(judged: Judged, place: int) -> list[int]:
    statement = judged.candidates[place].statement
    text = judged.source.text[statement.start : statement.end]
    before = judged.candidates[place - 1].statement if place else None
    if (
        before
        and not before.cells
        and before.context == statement.context
        and _POINTS_BACK.match(text)
    ):
        return [place - 1, place]
    return [place]


def _told_apart(judged: Judged, places: Sequence[int]) -> list[int]:
    """Return those whose own words cover the largest share; all where they do not differ."""
    own = [judged.candidates[place].apart for place in places]
    if not own or max(own) - min(own) < _TELLS_APART:
        return list(places)
    least = max(own) - _TELLS_APART / 2
    return [place for place, share in zip(places, own, strict=True) if share >= least]


def _runs(
    judged: Judged, places: Sequence[int], confidence: float, starts_at: int | None
) -> list[Quotation]:
    """Join adjacent statements into one quotation each."""
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and runs[-1][-1] == place - 1 and _join(judged.candidates, place):
            runs[-1].append(place)
        else:
            runs.append([place])
    return [
        Quotation(
            judged.source,
            tuple(judged.candidates[place].statement for place in run),
            confidence,
            starts_at if not number else None,
        )
        for number, run in enumerate(runs)
    ]


def _join(candidates: Sequence[Candidate], place: int) -> bool:
    """Tell whether only quoted text separates a statement from the one before."""
    before, statement = candidates[place - 1].statement, candidates[place].statement
    return before.group == statement.group and before.context == statement.context
