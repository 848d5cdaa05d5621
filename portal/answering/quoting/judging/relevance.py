"""The probability that a statement answers a question.

The embedding model reads question and statement together (`portal.embeddings.e5.reading`); its log
odds are combined with the words that both share and with whether the statement has the wanted kind
of answer. Statements about another year, code or range than the question's are excluded. Without
such a model shared words decide, and statements without the wanted kind of answer are excluded.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from uuid import UUID

from portal.answering.quoting.asked import Asked
from portal.answering.quoting.judging.evidence import NO_STATEMENT, chance_of
from portal.answering.quoting.judging.judged import Judged
from portal.answering.quoting.judging.read_source import ReadSource
from portal.answering.quoting.rules.conditions import (
    Condition,
    met_by,
    with_numerals_of,
    without,
)
from portal.answering.quoting.rules.names import without_numbers_of_names
from portal.answering.quoting.rules.parties import find_parties
from portal.answering.quoting.rules.ranges import has_other_figure
from portal.domain.answering import Source
from portal.domain.embedding import StatementReader
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.text.language import detect_language

# How many statements are compared with the question (a table of short rows has hundreds), how many
# of the nearest the model reads with it, and the weight of nearness. Reading takes a tenth of a
# second in the question's language and two tenths in the other, where words help less to choose.
_OWN, _ACROSS = (100, 14, 0.0), (64, 16, 7.0)
# The chance from which a statement is quoted, and the share of the question's words in a source on
# its subject.
MIN_CHANCE = 0.5
MIN_ON_TOPIC = 0.28
# Codes within this many characters of the beginning of a document apply to all of it.
_FIRST_LINES = 160
# With an answer this likely in the question's language, the other language is not searched.
_SURE = 0.8


def judge(
    question: str,
    language: str,
    sources: Sequence[Source],
    reader: StatementReader | None = None,
    search_across: Callable[[], Sequence[Source]] | None = None,
) -> list[Judged]:
    """Judge the sources in the question's language. If none of them surely answers, judge the
    others and what `search_across` finds in the other language."""
    asked = Asked.of(question)

    def read(
        sources: Sequence[Source], *, beside: Sequence[ReadSource] = (), is_foreign: bool = False
    ) -> list[ReadSource]:
        chosen = [one for one in sources if _is_foreign(one, language) is is_foreign]
        parties = find_parties(chosen)
        found = [
            ReadSource(one, asked, parties.get(one.document_id, {}), is_foreign=is_foreign)
            for one in chosen
        ]
        if is_foreign and asked.names:
            _keep_named(asked.names, found, beside)
        met_above = _apply(asked.conditions, found) if asked.conditions else ()
        short = without(asked.question, met_above)
        _read_together(found, short, reader, _ACROSS if is_foreign else _OWN)
        return found

    own = read(sources)
    best = max((one.best for one in own), default=NO_STATEMENT)
    if chance_of(best) >= _SURE:
        return [one.judged(best) for one in own]
    further = search_across() if search_across else ()
    known = {one.chunk_id for one in sources}
    new = (one for one in further if one.chunk_id not in known)
    foreign = read([*sources, *new], beside=own, is_foreign=True)
    return [one.judged(best) for one in (*own, *foreign)]


def _apply(conditions: Sequence[Condition], sources: Sequence[ReadSource]) -> set[Condition]:
    """Exclude statements that do not meet the conditions, alone or with the statement before.
    Return the conditions that titles and headings meet, which statements need not repeat."""
    of_documents = _met_by_first_lines(conditions, sources)
    above = [
        [met | of_documents[one.source.document_id] for met in met_by(conditions, one.contexts)]
        for one in sources
    ]
    named: set[Condition] = set().union(*chain.from_iterable(above))
    dates = {one for one in named if one.is_date}
    codes = {one for one in conditions if not one.is_date}
    for one, met_above in zip(sources, above, strict=True):
        met = list(map(set.union, met_above, met_by(conditions, one.texts)))
        near = [before | here for before, here in pairwise([set(), *met])]
        one.open = [
            place
            for place in one.open
            if all(not any_of or any_of & near[place] for any_of in (dates, codes))
        ]
    return named


def _met_by_first_lines(
    conditions: Sequence[Condition], sources: Sequence[ReadSource]
) -> Mapping[UUID, set[Condition]]:
    """Return, by document, the codes in its first lines: text that follows "Project FL-2507" need
    not repeat it."""
    codes = [one for one in conditions if not (one.is_number or one.is_article)]
    found: dict[UUID, set[Condition]] = defaultdict(set)
    for one in (each.source for each in sources):
        if one.revision_id is not None and one.char_start < _FIRST_LINES:
            lines = one.text[: _FIRST_LINES - one.char_start]
            found[one.document_id] |= met_by(codes, [lines])[0]
    return found


def _keep_named(
    names: Sequence[str], foreign: Sequence[ReadSource], own: Sequence[ReadSource]
) -> None:
    """Exclude statements in another language without the names in the question, if any source has
    these: the others are about other people."""
    if any(one.has_any(names, place) for one in (*own, *foreign) for place in one.open):
        for one in foreign:
            one.open = [place for place in one.open if one.has_any(names, place)]


def _is_foreign(source: Source, language: str) -> bool:
    return (source.language or detect_language(source.text)) != language


def without_other_figures(question: str, ranked: Sequence[Judged]) -> list[Judged]:
    """Exclude statements that have only other numbers, if the best one has a number of the
    question. `ranked` is best first, and the first has an answer."""
    answer = ranked[0].said(ranked[0].best)
    return [
        replace(
            one,
            candidates=tuple(
                replace(each, chance=0.0)
                if has_other_figure(question, answer, one.said(each))
                else each
                for each in one.candidates
            ),
        )
        for one in ranked
    ]


def _read_together(
    sources: Sequence[ReadSource],
    question: str,
    reader: StatementReader | None,
    limits: tuple[int, int, float],
) -> None:
    """Have the model read the statements with the highest priority."""
    places = [(one, place) for one in sources for place in one.open]
    if reader is None or not places:
        return
    places.sort(key=lambda pair: -pair[0].reading_priority(pair[1]))
    max_compared, max_read, by_nearness = limits
    places = places[:max_compared]
    texts = [(one.contexts[place], one.texts[place]) for one, place in places]
    priorities = [one.reading_priority(place) for one, place in places]
    try:
        found = reader.read_answers(question, texts, priorities, max_read, by_nearness)
        for one in sources:
            one.otherwise = math.nan
        for (one, place), value in zip(places, found, strict=True):
            one.read[place] = float(value)
        _read_again(sources, question, reader, by_nearness)
    except (EmbedderUnavailable, InvalidEmbedding):
        return


def _read_again(
    sources: Sequence[ReadSource], question: str, reader: StatementReader, by_nearness: float
) -> None:
    """Read statements again with the question in their own words, with wide rows cut to the cells
    that may answer, and with a number before its clause. Keep the higher log odds."""
    by_question: dict[str, list[tuple[ReadSource, int, str]]] = defaultdict(list)
    for one in sources:
        for place, odds in one.read.items():
            if math.isnan(odds):
                continue
            other, text = _other_words(question, one, place), one.narrowed(place)
            if other != question or text != one.texts[place]:
                by_question[other].append((one, place, text))
    for other, places in by_question.items():
        texts = [(one.contexts[place], text) for one, place, text in places]
        found = reader.read_answers(other, texts, [0.0] * len(texts), len(texts), by_nearness)
        for (one, place, _), value in zip(places, found, strict=True):
            one.read[place] = max(one.read[place], float(value))


def _other_words(question: str, source: ReadSource, place: int) -> str:
    """Return a question in a statement's words, without the numbers of names that it repeats."""
    text = source.texts[place]
    other = without_numbers_of_names(question, text)
    other = with_numerals_of(other, f"{source.contexts[place]}\n{text}")
    return other if source.is_foreign else source.reworded(other, place)
