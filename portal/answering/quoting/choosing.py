"""Choice of the statements to quote from a source: sentences, rows, or a whole list."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.judging.exclusions import is_mail_header
from portal.answering.quoting.judging.judged import Candidate, Judged
from portal.answering.quoting.judging.matching import shares_of_words
from portal.answering.quoting.judging.relevance import MIN_CHANCE
from portal.answering.quoting.judging.wide_rows import with_answer_marked
from portal.answering.quoting.questions import asks, asks_for_list, content_words, has_name
from portal.answering.quoting.rules.groups.months import find_months, find_months_of_days
from portal.answering.quoting.rules.groups.weekdays import find_weekdays
from portal.answering.quoting.statements import Statement, introduces
from portal.domain.answering import Source
from portal.text.characters.folding import fold
from portal.text.terms.analyser import index_terms

# Further statements are quoted when their chance is close to that of the best.
_NEARLY, _ODDS = 0.6, 20
_MAX_SENTENCES = 2
_MAX_SECTION_SENTENCES = 4
_MAX_QUOTE_CHARACTERS = 480
# A sentence depends on its heading if at least this share of the question's words is only there.
_BY_HEADING = 0.12
_MAX_ROWS = 8
_MAX_ITEMS = 15
# A sentence with such an opening refers to the one before it.
_POINTS_BACK = re.compile(
    r"(?:以上|同时|this|that|these|those|it|they|he|she|such|otherwise|then|both|however"
    r"|in that case)\b|这|该|此|其|它|他|她|上述|前述|否则|违者|但|不过|而且|并且",
    re.IGNORECASE,
)
_REFERS_TO_TABLE = re.compile(
    r"[见如]附表|下表|\b(?:table below|following table|(?:listed|set out|see) below|as follows)\b",
    re.IGNORECASE,
)
# What happens if the sentence before is not followed.
_CONSEQUENCE = re.compile(r"违[者反犯]|否则|\botherwise\b|\bif not\b|\bviolat", re.IGNORECASE)
_ASKS = re.compile(r"[?？]\W*$")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Adjacent statements of a source. `starts_at` is where the line that introduces their list
    begins, if that is quoted too. `title` is a heading to show above, if they need one."""

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


def section_of(question: str, judged: Judged) -> list[int]:
    """Return the statements below the first heading that a question of one word names, at most
    `_MAX_ROWS`: 年假 asks for the table below 年休假, not for a sentence that mentions it."""
    words = content_words(question)
    headings = [one.statement.heading for one in judged.candidates]
    if len(words) != 1 or asks(question) or not any(headings):
        return []
    shares = shares_of_words(words, headings)[:, 0]
    named = [heading for heading, share in zip(headings, shares, strict=True) if share]
    text = judged.source.text
    section = [
        place
        for place, one in enumerate(judged.candidates)
        if named
        and one.statement.heading == named[0]
        and not is_mail_header(text[one.statement.start : one.statement.end])
    ]
    return section[:_MAX_ROWS]


def choose(question: str, judged: Judged) -> list[Quotation]:
    """Return the best statements of a source, with adjacent ones joined. In rows of many cells, the
    cells that answer are marked."""
    asked = Asked.of(question)
    return [
        replace(one, statements=tuple(with_answer_marked(each, asked) for each in one.statements))
        for one in _chosen(question, judged)
    ]


def _chosen(question: str, judged: Judged) -> list[Quotation]:
    if section := section_of(question, judged):
        return _runs(judged, section)
    candidates = judged.candidates
    best = max(range(len(candidates)), key=lambda place: (candidates[place].chance, -place))
    best = _step_above(question, judged, best)
    statement = candidates[best].statement
    if statement.group is None:
        return _runs(judged, _sentences(judged, best))
    group = [
        place for place, one in enumerate(candidates) if one.statement.group == statement.group
    ]
    likely = [place for place in group if _is_near(candidates[place], candidates[best])]
    if statement.cells:
        if named := _named_rows(question, judged, best, likely):
            likely = named
        elif len(likely) > len(group) / 2:
            # If most of a table answers, the question is about the whole table.
            likely = group
        else:
            shared = candidates[best].evidence.own
            likely = [place for place in likely if candidates[place].evidence.own >= shared]
        return _runs(judged, sorted(likely, key=_by_chance(judged))[:_MAX_ROWS])
    is_numbered = judged.source.text[statement.start].isdigit()
    is_whole = asks_for_list(question, is_numbered=is_numbered) or len(likely) > len(group) / 2
    # 第三条 asks for one item of the list.
    if is_whole and not any(one.is_article for one in Asked.of(question).conditions):
        if below := _below(judged, _introducing(judged, best)):
            return _runs(judged, below[:_MAX_ITEMS])
        steps = group[:_MAX_ITEMS]
        return _runs(judged, [*steps, *_code_below(judged, steps[-1])], statement.group_start)
    # An item that introduces others says nothing alone.
    whole = {one for place in likely for one in (_below(judged, place) or (place,))}
    items = sorted(whole)[:_MAX_ITEMS]
    return _runs(judged, [*items, *_code_below(judged, items[-1])])


def _is_near(one: Candidate, best: Candidate) -> bool:
    """Return whether a statement is nearly as likely to answer as the best: at least three fifths
    of its chance and a twentieth of its odds."""
    is_likely = one.chance >= best.chance * _NEARLY
    return is_likely and one.chance * (1 - best.chance) * _ODDS >= best.chance * (1 - one.chance)


def _introducing(judged: Judged, place: int) -> int:
    """Return the item above that introduces a nested one, or the item itself."""
    depth = judged.candidates[place].statement.depth
    while place and judged.candidates[place].statement.depth >= depth > 0:
        place -= 1
    return place


def _below(judged: Judged, place: int) -> Sequence[int]:
    """Return an item that introduces others, and these; nothing for other items."""
    candidates = judged.candidates
    item = candidates[place].statement
    if not introduces(judged.source.text[item.start : item.end]):
        return ()
    end = place + 1
    while end < len(candidates) and candidates[end].statement.depth > item.depth:
        end += 1
    return range(place, end) if end > place + 1 else ()


def _named_rows(question: str, judged: Judged, best: int, likely: list[int]) -> list[int]:
    """Return the rows with a cell that occurs in the question, or with a day of the weekday or
    month that it names; none unless the best row is among them."""
    senses = Asked.of(question).senses if judged.is_foreign else ()
    translated = {" ".join(sense) for sense in chain.from_iterable(senses)}
    days, months = find_weekdays(question), find_months(question)
    folded = fold(question).text

    def is_named(place: int) -> bool:
        return any(
            _is_name(cell)
            and (
                has_name(folded, fold(cell).text)
                or (translated and index_terms(cell) in translated)
                or (days and days & find_weekdays(cell))
                or (months and months & find_months_of_days(cell))
            )
            for cell in judged.candidates[place].statement.cells
        )

    return [place for place in likely if is_named(place)] if is_named(best) else []


def _is_name(cell: str) -> bool:
    return len(cell) > 1 and not cell.isnumeric()


def _by_chance(judged: Judged) -> Callable[[int], float]:
    return lambda place: -judged.candidates[place].chance


def _sentences(judged: Judged, best: int) -> Sequence[int]:
    candidates = judged.candidates
    if candidates[best].statement.is_code:
        return _code_around(judged, best)
    alone = [place for place, one in enumerate(candidates) if one.statement.group is None]
    context = candidates[best].statement.context
    evidence = candidates[best].evidence
    # If the heading is the question, rather than one sentence alike, all below it is the answer.
    if _ASKS.search(context) and evidence.met - evidence.own >= _BY_HEADING:
        section = [place for place in alone if candidates[place].statement.context == context]
        return _fitting(judged, section[:_MAX_SECTION_SENTENCES])
    # A table row may answer too: how many days of leave there are, besides a sentence on how many
    # can be carried over.
    near = [p for p, one in enumerate(candidates) if _is_near(one, candidates[best])]
    near.sort(key=_by_chance(judged))
    kept = _fitting(judged, near[:_MAX_SENTENCES])
    return [*kept, *chain.from_iterable(_table_below(judged, place) for place in kept)]


def _code_around(judged: Judged, place: int) -> Sequence[int]:
    """Return the lines of code that belong together, or one of them if they are long."""
    candidates = judged.candidates
    first, end = place, place + 1
    while first and candidates[first - 1].statement.is_code and _join(candidates, first):
        first -= 1
    while end < len(candidates) and candidates[end].statement.is_code and _join(candidates, end):
        end += 1
    whole = range(first, end)
    return whole if _length(judged, whole) <= _MAX_QUOTE_CHARACTERS else (place,)


def _step_above(question: str, judged: Judged, place: int) -> int:
    """Return the step above code that introduces it, or that a question for steps asks for as well;
    for other statements the place itself."""
    candidates = judged.candidates
    is_code = candidates[place].statement.is_code
    above = _code_around(judged, place)[0] - 1 if is_code else -1
    step = candidates[above].statement
    if above < 0 or step.group is None or step.cells:
        return place
    text = judged.source.text[step.start : step.end]
    is_meant = introduces(text) or asks_for_list(question, is_numbered=text[0].isdigit())
    return above if is_meant else place


def _code_below(judged: Judged, place: int) -> Sequence[int]:
    """Return the code below an item that introduces it ("Start the tunnel:"), or that is itself
    likely to answer."""
    candidates, item = judged.candidates, judged.candidates[place].statement
    below = candidates[place + 1] if place + 1 < len(candidates) else None
    if below is None or not below.statement.is_code:
        return ()
    is_meant = introduces(judged.source.text[item.start : item.end]) or below.chance >= MIN_CHANCE
    return _code_around(judged, place + 1) if is_meant else ()


def _table_below(judged: Judged, place: int) -> Sequence[int]:
    """Return the rows of the table that a sentence refers to: "as in the table below"."""
    candidates, statement = judged.candidates, judged.candidates[place].statement
    below = candidates[place + 1].statement if place + 1 < len(candidates) else None
    if below is None or not below.cells or statement.cells:
        return ()
    if not _REFERS_TO_TABLE.search(judged.source.text, statement.start, statement.end):
        return ()
    return [p for p, one in enumerate(candidates) if one.statement.group == below.group][:_MAX_ROWS]


def _fitting(judged: Judged, places: Sequence[int]) -> list[int]:
    """Return as many whole sentences as fit into a quotation, and always the first."""
    kept: list[int] = []
    length = 0
    for place in places:
        whole = _whole(judged, place)
        length += _length(judged, whole)
        if kept and length > _MAX_QUOTE_CHARACTERS:
            break
        kept += whole
    return kept


def _whole(judged: Judged, place: int) -> range:
    """Return a sentence with all its clauses, which semicolons divide, with the sentence before if
    it begins with a pronoun, and with the next one if that says what happens otherwise."""
    candidates, text = judged.candidates, judged.source.text

    def is_continued(before: int) -> bool:
        is_divided = text[candidates[before].statement.end - 1] == "；"
        return is_divided and _join(candidates, before + 1)

    first, end = place, place + 1
    while first and is_continued(first - 1):
        first -= 1
    while end < len(candidates) and is_continued(end - 1):
        end += 1
    if _length(judged, range(first, end)) > _MAX_QUOTE_CHARACTERS:
        first, end = place, place + 1
    if end < len(candidates) and _join(candidates, end):
        end += _CONSEQUENCE.match(text, candidates[end].statement.start) is not None
    start = candidates[first].statement.start
    if first and _join(candidates, first) and _POINTS_BACK.match(text, start):
        first -= 1
    return range(first, end)


def _length(judged: Judged, places: range) -> int:
    first, last = judged.candidates[places[0]].statement, judged.candidates[places[-1]].statement
    return last.end - first.start


def _runs(judged: Judged, places: Sequence[int], starts_at: int | None = None) -> list[Quotation]:
    """Join adjacent statements into one quotation each."""
    runs: list[list[int]] = []
    for place in sorted(set(places)):
        if runs and runs[-1][-1] == place - 1 and _join(judged.candidates, place):
            runs[-1].append(place)
        else:
            runs.append([place])
    headings = [_heading(judged, run[0]) for run in runs]
    if starts_at is not None and headings:
        headings[0] = ""
    return [
        Quotation(
            judged.source,
            tuple(judged.candidates[place].statement for place in run),
            starts_at=starts_at if not number else None,
            title=heading if not number or heading != headings[number - 1] else "",
        )
        for number, (run, heading) in enumerate(zip(runs, headings, strict=True))
    ]


def _heading(judged: Judged, place: int) -> str:
    """Return the heading of a statement if its meaning may depend on it: of a list item, which says
    little alone ("Not reimbursed"), or if the heading has words of the question."""
    statement, evidence = judged.candidates[place].statement, judged.candidates[place].evidence
    is_item = statement.group is not None and not statement.cells
    heading = statement.context.rpartition("\n")[2]
    is_needed = is_item or evidence.met - evidence.own >= _BY_HEADING
    return heading if is_needed and heading != judged.source.title else ""


def _join(candidates: Sequence[Candidate], place: int) -> bool:
    """Return whether a statement can be joined to the one before: in the same list or table, or
    with the same context."""
    before, statement = candidates[place - 1].statement, candidates[place].statement
    # The contexts of items differ, because they name the items that these are nested in.
    is_item = statement.group is not None
    is_alike = before.group == statement.group and before.is_code == statement.is_code
    return is_alike and (is_item or before.context == statement.context)
