"""Answers without a language model: statements quoted word for word, with their markers.

Each part of a question gets one of three outcomes: a quotation, a note that the sources are on the
subject but do not answer, or nothing. A citation covers exactly the statements that are quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from itertools import chain, groupby

from portal.answering.follow_up import asked_alone
from portal.answering.people import with_name
from portal.answering.quoting import outlines, wording
from portal.answering.quoting.choosing import Quotation, choose, section_of
from portal.answering.quoting.judging.judged import Judged
from portal.answering.quoting.judging.matching import Shares, shares_of_words
from portal.answering.quoting.judging.relevance import (
    MIN_CHANCE,
    MIN_ON_TOPIC,
    judge,
    without_other_figures,
)
from portal.answering.quoting.parts import beside_first, standalone_parts
from portal.answering.quoting.phrasing import context_of, spelled_out
from portal.answering.quoting.questions import (
    as_question,
    asks,
    asks_for_list,
    asks_for_steps,
    content_words,
)
from portal.answering.quoting.remarks import asks_only_why, last_answer, reasons_only
from portal.answering.quoting.rendering import as_markdown, render, render_marker
from portal.answering.quoting.rules.contacts import without_kind
from portal.answering.quoting.rules.kinds import ANY_TEXT, Wanted, find_wanted
from portal.answering.quoting.rules.synonyms import reworded
from portal.answering.quoting.rules.years import with_years
from portal.answering.quoting.statements import Statement
from portal.answering.quoting.versions import (
    alike_titles,
    below_title,
    newest_first,
    titles_of_several,
)
from portal.domain.answering import (
    Abstained,
    ChatEvent,
    ChatRequest,
    Outcome,
    Quoted,
    Source,
    TextDelta,
)
from portal.domain.embedding import Embedder, StatementReader

# Another source is quoted as well if its odds are at least a sixth of the best source's.
_FURTHER_ODDS = 6
_MIN_FURTHER_CHANCE = 0.4
_MAX_SOURCES = 2
# "What is Ann in charge of?" may be answered in the minutes of several meetings.
_MAX_LISTED_SOURCES = 4
_MIN_LISTED_CHANCE = 0.9
# Statements that are shown if none answers: the likeliest, or those on the subject.
_MAX_ABOUT = 3
_MIN_NEAR_CHANCE = 0.2
# The min search confidence for the sources to be about the question: for sources that share words
# with it, and for others.
_MIN_ABOUT, _MIN_ABOUT_BY_SEARCH = 0.02, 0.06


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a question, and what was found for it; `holds` says whether the likeliest statement
    has the wanted kind of answer."""

    asked: str
    outcome: Outcome
    quotations: tuple[Quotation, ...] = ()
    about: tuple[Quoted, ...] = ()
    holds: bool = True


class ExtractiveChatModel:
    """A model that quotes or abstains. Unless `embedder` can read statements, it compares words."""

    provider = "extractive"
    model = "extractive"
    only_quotes = True
    takes_tools = False

    def __init__(
        self,
        embedder: Embedder | StatementReader | None = None,
        this_year: Callable[[], int] = lambda: datetime.now(UTC).year,
    ) -> None:
        self._reader = embedder if isinstance(embedder, StatementReader) else None
        self._this_year = this_year

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """Yield an introduction and one delta per quotation; or Abstained."""
        if request.is_outline and request.sources:
            yield from self._outline(request)
        elif request.is_more:
            yield from self._sections(request)
        elif request.reply is not None:
            yield Abstained(request.reply, Outcome.REPLY)
        else:
            yield from self._answer(request)

    def _outline(self, request: ChatRequest) -> Iterator[ChatEvent]:
        titles = dict.fromkeys(as_markdown(one.title) for one in request.sources)
        introduction = wording.say("outline", request, title=", ".join(titles))
        yield TextDelta(f"{introduction}\n\n")
        yield from _Quoter(request.sources).quote(outlines.outline(request.sources))
        yield Abstained(f"\n\n{request.reply}" if request.reply else "", Outcome.REPLY)

    def _sections(self, request: ChatRequest) -> Iterator[ChatEvent]:
        if not request.sources:
            # They were switched off or deleted a moment ago.
            yield Abstained(wording.say("nothing", request), Outcome.NOTHING)
            return
        found = outlines.sections_around(request.sources, last_answer(request.turns))
        if not found:
            yield Abstained(wording.say("no_more", request), Outcome.REPLY)
            return
        yield TextDelta(f"{wording.say('section', request)}\n\n")
        yield from _Quoter(request.sources).quote(found)
        yield Abstained("", Outcome.REPLY)

    def _answer(self, request: ChatRequest) -> Iterator[ChatEvent]:
        if request.search_across is not None:
            # One search serves all parts.
            request = replace(request, search_across=cache(request.search_across))
        parts = self._parts_in_years(request) or self._parts(request.question, request)
        # "How much for hotels?" may or may not refer to the previous question.
        asked = request.turns[-1].content
        alone = asked_alone(asked) if asked != request.question else ""
        if content_words(alone) and not asks_only_why(asked):
            parts = self._with_or_alone(parts, asked, alone, request)
        if all(part.outcome is not Outcome.QUOTED for part in parts):
            about = tuple({one.number: one for part in parts for one in part.about}.values())
            is_on_topic = any(part.outcome is Outcome.ON_TOPIC for part in parts)
            outcome = Outcome.ON_TOPIC if is_on_topic else Outcome.NOTHING
            name = "nearest" if about and not is_on_topic else outcome.value
            yield Abstained(wording.say(name, request), outcome, about)
            return
        yield TextDelta(wording.say("introduction", request))
        found_for = [each for part in parts for each in part.quotations]
        sources = [*request.sources, *(each.source for each in found_for)]
        distinct = {render(one): one for one in reversed(found_for)}.values()
        quoter = _Quoter(
            sources,
            alike_titles(distinct).union(
                *(
                    titles_of_several(one for one in part.quotations if one in distinct)
                    for part in parts
                )
            ),
        )
        for part in parts:
            if part.outcome is not Outcome.QUOTED and not self._is_covered(
                part, found_for, request
            ):
                name = "part_on_topic" if part.outcome is Outcome.ON_TOPIC else "part_nothing"
                text = wording.say(name, request, part=as_markdown(part.asked))
                yield TextDelta(f"\n\n{text}")
            yield from quoter.quote(part.quotations, gap="\n\n")

    def _with_or_alone(
        self, parts: list[_Part], asked: str, alone: str, request: ChatRequest
    ) -> list[_Part]:
        """Return the parts found for a follow-up together with what it follows, or those found for
        it alone if they suit it better."""
        has_words, holds = _has_words(parts, alone), _hold(parts)
        # 停电是什么时候 asks for a time, and may not be about what was asked before.
        if has_words and (holds or not asks(alone)):
            return parts
        others = self._parts(alone, request)
        # A few words that no source has are a new question, not a follow-up.
        is_new = not has_words and alone == asked and not asks(asked)
        is_better = _has_words(others, alone) and (not has_words or _hold(others))
        # Quotations in another language have no word of either question.
        if not has_words and asks(alone):
            is_better = is_better or _chance(others) > _chance(parts)
        return others if is_new or is_better else parts

    def _parts_in_years(self, request: ChatRequest) -> list[_Part]:
        """Answer a question about "this year" or 去年 from documents of that year; return nothing
        if they do not answer it."""

        def is_known(year: str) -> bool:
            return any(year in f"{one.title} {one.heading}" for one in request.sources)

        question = with_years(request.question, self._this_year(), is_known)
        parts = self._parts(question, request) if question != request.question else []
        return parts if any(one.outcome is Outcome.QUOTED for one in parts) else []

    def _parts(self, question: str, request: ChatRequest) -> list[_Part]:
        parts: list[_Part] = []
        for asked, searched in standalone_parts(question):
            before = [each for part in parts for each in part.quotations]
            if before and self._is_said(asked, question, before, request):
                parts.append(_Part(asked, Outcome.QUOTED))
                continue
            # "…, and what is her extension?"
            named = with_name(asked, question, "\n\n".join(map(render, before)))
            question_alone = searched if named == asked else as_question(named)
            parts.append(self._part(asked, question_alone, request))
        return parts

    def _is_said(
        self, asked: str, question: str, quotations: Sequence[Quotation], request: ChatRequest
    ) -> bool:
        """Return whether a quotation for an earlier part answers a further part, and has all words
        of it: 电话多少 after 谁值班, with 值班人员为郭明，电话 139….."""
        said = [
            replace(each, statements=(one,), starts_at=None)
            for each in quotations
            for one in each.statements
            if _has_all(asked, spelled_out(one, each.source.text))
        ]
        return self._answer_too(said, beside_first(question, asked), request)

    def _part(self, asked: str, question: str, request: ChatRequest) -> _Part:
        """Answer a part together with the words of the first part, or alone if that would only
        answer the first part again: 几点开门 after 烤箱预热多久."""
        found = self._find(asked, question, request)
        if (alone := as_question(asked)) == question or not found.quotations:
            return found
        # "How many people fit in?" is answered by "the Liffey room seats 14".
        is_of_kind = found.holds and find_wanted(asked) not in ANY_TEXT
        if is_of_kind or not content_words(asked) or _has_words([found], asked):
            return found
        other = self._find(asked, alone, request)
        return other if _has_words([other], asked) else found

    def _is_covered(
        self, part: _Part, quotations: Sequence[Quotation], request: ChatRequest
    ) -> bool:
        """Return whether a quotation for another part also answers this one, alone or together with
        the subject of the first part."""
        for one in part.about[: part.holds]:
            if one.confidence >= _MIN_NEAR_CHANCE and _is_quoted(
                quotations, one.source, one.start, one.end
            ):
                return True
        return self._answer_too(quotations, beside_first(request.question, part.asked), request)

    def _answer_too(
        self, quotations: Sequence[Quotation], question: str, request: ChatRequest
    ) -> bool:
        """Return whether a quoted statement answers another question as well."""
        sources = list({each.source.chunk_id: each.source for each in quotations}.values())
        return any(
            each.chance >= MIN_CHANCE
            and _is_quoted(quotations, one.source, each.statement.start, each.statement.end)
            for one in judge(question, request.language, sources, self._reader)
            for each in one.candidates
        )

    def _find(self, asked: str, question: str, request: ChatRequest) -> _Part:
        judged = judge(
            question, request.language, request.sources, self._reader, request.search_across
        )
        judged = reasons_only(judged, request.turns[-1].content)
        # Sources in another language are quoted only if no source in the question's is as likely.
        ranked = sorted(judged, key=lambda one: -one.chance)
        if ranked and not ranked[0].is_foreign and ranked[0].chance >= MIN_CHANCE:
            ranked = [one for one in ranked if not one.is_foreign]
        best = ranked[0].chance if ranked else 0.0
        if best >= MIN_CHANCE:
            min_chance = max(_MIN_FURTHER_CHANCE, best / (best + _FURTHER_ODDS * (1 - best)))
            others = without_other_figures(question, ranked)
            chosen = [one for one in others if one.chance >= min_chance]
            # If a one-word question names a section of some sources, the others only mention it.
            chosen = [one for one in chosen if section_of(question, one)] or chosen
            # Together they are at least as likely to answer as the best of them.
            quotations = [
                replace(each, confidence=best)
                for one in newest_first(_most_likely(question, chosen))
                for each in choose(question, one)
            ]
            holds = ranked[0].best.evidence.holds > 0
            return _Part(asked, Outcome.QUOTED, tuple(quotations), holds=holds)
        # Statements close to an answer may well be it, in words that the question does not have.
        ranked = [one for one in judged if one.candidates]
        ranked.sort(key=lambda one: (one.chance, one.on_topic), reverse=True)
        related = max((one.source.confidence for one in judged), default=0.0)

        def is_about(one: Judged) -> bool:
            return related >= _MIN_ABOUT and one.on_topic >= MIN_ON_TOPIC

        near = [one for one in ranked if one.chance >= _MIN_NEAR_CHANCE or is_about(one)]
        about = tuple(_nearest(one) for one in near[:_MAX_ABOUT])
        is_on_topic = any(map(is_about, near)) or (about and related >= _MIN_ABOUT_BY_SEARCH)
        outcome = Outcome.ON_TOPIC if is_on_topic else Outcome.NOTHING
        holds = bool(near) and near[0].best.evidence.holds > 0
        return _Part(asked, outcome, about=about, holds=holds)


def _most_likely(question: str, chosen: Sequence[Judged]) -> list[Judged]:
    """Return the sources to quote: only one if its numbered items are the steps asked for, and more
    than usual if rows of several tables answer a question for a list."""

    def has_row(judged: Judged) -> bool:
        best = judged.best
        return bool(best.statement.cells) and best.chance >= _MIN_LISTED_CHANCE

    if asks_for_steps(question) and _is_step(chosen[0]):
        return [chosen[0]]
    further = chosen[_MAX_SOURCES:_MAX_LISTED_SOURCES]
    if not asks_for_list(question, is_numbered=False):
        further = []
    return [*chosen[:_MAX_SOURCES], *filter(has_row, further)]


def _is_step(judged: Judged) -> bool:
    """Return whether the best statement is an item of a numbered list."""
    best = judged.best.statement
    is_item = best.group is not None and not best.cells
    return is_item and judged.source.text[best.start].isdigit()


def _has_words(parts: Sequence[_Part], question: str) -> bool:
    """Return whether the quoted statements, or their context, have a word of the question or a
    synonym of one."""
    return any(
        _shares(
            question, f"{context_of(each.source, one)} {spelled_out(one, each.source.text)}"
        ).any()
        for part in parts
        for each in part.quotations
        for one in each.statements
    )


def _chance(parts: Sequence[_Part]) -> float:
    return max((each.confidence for part in parts for each in part.quotations), default=0.0)


def _hold(parts: Sequence[_Part]) -> bool:
    """Return whether what is quoted for each part has the wanted kind of answer."""
    return all(part.holds for part in parts if part.outcome is Outcome.QUOTED)


def _has_all(part: str, text: str) -> bool:
    """Return whether a text has all words of a part of a question. Of one that asks for a telephone
    number or an address only, it has to have nothing but that."""
    bare = without_kind(part, text) if find_wanted(part) is Wanted.CONTACT else part
    shares = _shares(bare, text)
    return bool(shares.all()) and (shares.size > 0 or bare != part)


def _shares(question: str, text: str) -> Shares:
    """Return how much of each word of a question, or of its synonym, a text has: (1, words)."""
    return shares_of_words(content_words(reworded(question, text)), [text])


def _is_quoted(quotations: Sequence[Quotation], source: Source, start: int, end: int) -> bool:
    return any(
        each.source.chunk_id == source.chunk_id and start < each.end and each.start < end
        for each in quotations
    )


def _nearest(judged: Judged) -> Quoted:
    """Return the statement of a source that matches the question best, even if it is no answer."""
    best = max(judged.candidates, key=lambda one: (one.chance, one.evidence.met))
    place = best.statement
    return Quoted(judged.source.number, judged.source, place.start, place.end, best.chance)


class _Quoter:
    """Renders quotations. The first from a source has the source's number, further ones get new
    numbers. Statements that were already quoted are left out, and so is the same text of another
    chunk."""

    def __init__(self, sources: Sequence[Source], shown_titles: Collection[str] = ()) -> None:
        self._shown_titles = shown_titles
        self._next = max((source.number for source in sources), default=0) + 1
        self._used: set[int] = set()
        self._quoted: list[Quotation] = []
        self._rendered: set[str] = set()

    def quote(self, quotations: Sequence[Quotation], *, gap: str = "") -> Iterator[TextDelta]:
        """Yield each quotation with its marker. `gap` precedes the first, an empty line others."""
        for quotation in chain.from_iterable(map(self._not_quoted, quotations)):
            rendered = render(quotation)
            if rendered in self._rendered:
                continue
            source, start, end = quotation.source, quotation.start, quotation.end
            self._rendered.add(rendered)
            is_other = not self._quoted or self._quoted[-1].source.title != source.title
            if is_other and source.title in self._shown_titles:
                rendered = render(below_title(quotation))
            self._quoted.append(quotation)
            number = self._number(source)
            yield TextDelta(
                f"{gap}{rendered}{render_marker(quotation, number)}",
                Quoted(number, source, start, end, quotation.confidence),
            )
            gap = "\n\n"

    def _not_quoted(self, quotation: Quotation) -> Iterator[Quotation]:
        """Yield the runs of statements that were not quoted before."""

        def is_quoted(one: Statement) -> bool:
            return _is_quoted(self._quoted, quotation.source, one.start, one.end)

        for quoted, run in groupby(quotation.statements, is_quoted):
            left = tuple(run)
            if not quoted:
                is_first = left[0] is quotation.statements[0]
                starts_at = quotation.starts_at if is_first else None
                yield replace(quotation, statements=left, starts_at=starts_at)

    def _number(self, source: Source) -> int:
        number = source.number
        if number in self._used:
            number, self._next = self._next, self._next + 1
        self._used.add(number)
        return number
