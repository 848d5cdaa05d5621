"""Answers without a language model: the statements that answer, word for word, with their markers.

Each part of a question gets one of three outcomes: a quotation, "these passages are about it, but
do not say", or nothing. A citation covers exactly the statements that are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

import numpy as np

from portal.answering.prompt import without_markers_of_its_own
from portal.answering.questions import find_parts
from portal.answering.relevance import Candidate, Judged, judge
from portal.answering.replies import find_reply
from portal.domain.answering import Abstained, ChatEvent, ChatRequest, Quoted, Source, TextDelta
from portal.domain.embedding import Embedder
from portal.errors import EmbedderUnavailable, InvalidEmbedding
from portal.text.analyser import query_terms
from portal.text.excerpt import best_excerpt
from portal.text.folding import in_script_of
from portal.text.sentences import LIST_ITEM

# Chosen on the development sets, where it loses as many answers as it keeps wrong ones out.
MIN_CHANCE = 0.2
# Another source is quoted as well when it answers as well by itself.
_MIN_FURTHER_CHANCE = 0.5
_MAX_SOURCES = 3
# Further statements of a source, when they have nearly as many of the question's words.
_NEARLY = 0.75
_MAX_STATEMENTS = 3
_MAX_ROWS = 8
_MAX_QUOTE_CHARACTERS = 480
# Statements that are compared by meaning: each takes some milliseconds.
_MAX_COMPARED = 12
# A sentence that opens so means something that stands before it.
_POINTS_BACK = re.compile(
    r"(?:这|该|此|其|它|他|她|上述|前述|以上|this|that|these|those|it|they|he|she|such)\b|(?:这|该|此|其|它|他|她)",
    re.IGNORECASE,
)

_INTRO = {"zh": "以下是文档中的原文摘录：", "en": "Quoted from your documents, word for word:"}
_ON_TOPIC = {
    "zh": "选用的文档提到了这个话题，但没有写明所问的内容。相关段落列在下面。",
    "en": "The documents in use mention this, but do not say what you asked. "
    "The passages about it are listed below.",
}
_NOTHING_SURE = {
    "zh": "在选用的文档中没有找到有把握的答案。最接近的段落列在下面。",
    "en": "The documents in use hold no answer that can be quoted with confidence. "
    "The nearest passages are listed below.",
}
_NOTHING = {
    "zh": "在选用的文档中没有找到与此相关的内容。",
    "en": "Nothing about this was found in the documents in use.",
}
_PART_UNANSWERED = {
    "zh": "文档中没有写明：{part}",
    "en": "The documents do not say: {part}",
}

_MARKUP = re.compile(r"[\\`*_\[\]<>|~&$]")
_OPENS_BLOCK = re.compile(r"\A(?:(?P<sign>[-+#=:])|(?P<number>\d{1,9})(?P<point>[.)]))")


class _Outcome(Enum):
    ANSWERED = 0
    ON_TOPIC = 1
    NOTHING_SURE = 2
    NOTHING = 3


@dataclass(frozen=True, slots=True)
class _Quotation:
    """Neighbouring statements of a source."""

    source: Source
    candidates: tuple[Candidate, ...]

    @property
    def start(self) -> int:
        return self.candidates[0].statement.start

    @property
    def end(self) -> int:
        return self.candidates[-1].statement.end


class ExtractiveChatModel:
    """Quotes, or abstains. Statements in another language than the question's have no words in
    common with it: with `embedder` they are compared by meaning."""

    provider = "extractive"
    model = "extractive"
    takes_tools = False

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """Yield an introduction, then one quotation a piece; or Abstained."""
        if (reply := find_reply(_said(request), request.language)) is not None:
            yield Abstained(_in_script(reply, request))
            return
        parts = find_parts(request.question)
        found = [self._find_quotations(part, request) for part in parts]
        if not any(quotations for _, quotations in found):
            outcome = min((one for one, _ in found), key=lambda one: one.value)
            yield Abstained(_words(_ABSTENTIONS[outcome], request))
            return
        yield TextDelta(f"{_words(_INTRO, request)}\n\n")
        numbers = _Numbers(request.sources)
        gap = ""
        for part, (_, quotations) in zip(parts, found, strict=True):
            if not quotations:
                unanswered = _words(_PART_UNANSWERED, request).format(part=as_markdown(part))
                yield TextDelta(f"{gap}{unanswered}")
            for quotation in quotations:
                if (quoted := numbers.take(quotation)) is not None:
                    text = _render(quotation, quoted.number, query_terms(part))
                    yield TextDelta(f"{gap}{text}", quoted)
                    gap = "\n\n"
            gap = "\n\n"

    def _find_quotations(
        self, question: str, request: ChatRequest
    ) -> tuple[_Outcome, list[_Quotation]]:
        judged = judge(question, request.language, request.sources)
        if not judged:
            return _Outcome.NOTHING, []
        ranked = sorted(judged, key=lambda one: -one.chance)
        near = [one for one in ranked if one.same_language and one.chance >= MIN_CHANCE]
        far = [one for one in ranked if not one.same_language and one.chance >= MIN_CHANCE]
        if near:
            further = [one for one in near[1:] if one.chance >= _MIN_FURTHER_CHANCE]
            chosen = [near[0], *further][:_MAX_SOURCES]
            return _Outcome.ANSWERED, [each for one in chosen for each in _quotations(one)]
        if any(one.same_language and one.on_topic >= MIN_CHANCE for one in judged):
            return _Outcome.ON_TOPIC, []
        if far:
            return _Outcome.ANSWERED, [self._closest(question, far[0])]
        is_on_topic = max(one.on_topic for one in judged) >= MIN_CHANCE
        return (_Outcome.ON_TOPIC if is_on_topic else _Outcome.NOTHING_SURE), []

    def _closest(self, question: str, judged: Judged) -> _Quotation:
        """Return the statement of a source in another language that is closest in meaning."""
        usable = [one for one in judged.candidates if one.can_answer][:_MAX_COMPARED]
        texts = [
            f"{one.context} {judged.source.text[one.start : one.end]}"
            for one in (each.statement for each in usable)
        ]
        closest = 0
        if self._embedder is not None and len(usable) > 1:
            # Quoting the first one beats failing when the model cannot be used.
            with suppress(EmbedderUnavailable, InvalidEmbedding):
                vectors = self._embedder.embed_chunks(texts)
                closest = int(np.argmax(vectors @ self._embedder.embed_query(question)))
        return _Quotation(judged.source, (usable[closest],))


_ABSTENTIONS = {
    _Outcome.ON_TOPIC: _ON_TOPIC,
    _Outcome.NOTHING_SURE: _NOTHING_SURE,
    _Outcome.NOTHING: _NOTHING,
}


class _Numbers:
    """Numbers for quotations: a source's own for the first of it, new ones for further places."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._next = max((source.number for source in sources), default=0) + 1
        self._used: set[int] = set()
        self._taken: list[tuple[int, int, int]] = []

    def take(self, quotation: _Quotation) -> Quoted | None:
        """Number a quotation; None when its words were quoted already."""
        source, start, end = quotation.source, quotation.start, quotation.end
        if any(
            number == source.number and start < last and first < end
            for number, first, last in self._taken
        ):
            return None
        self._taken.append((source.number, start, end))
        number = source.number
        if number in self._used:
            number, self._next = self._next, self._next + 1
        self._used.add(number)
        return Quoted(number, source, start, end)


def _quotations(judged: Judged) -> list[_Quotation]:
    """Return the best statements of a source, neighbours together."""
    candidates = judged.candidates
    chosen = _best(judged)
    places = sorted({place for one in chosen for place in _with_antecedent(judged, one)})
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [
        _Quotation(judged.source, tuple(candidates[place] for place in run)) for run in runs
    ]  # fmt: skip


def _best(judged: Judged) -> list[int]:
    """Return the places of the best statements: those with the most of the question's words."""
    usable = [place for place, one in enumerate(judged.candidates) if one.can_answer]
    if not usable:
        return []

    def share(place: int) -> float:
        return judged.candidates[place].share

    best = max(map(share, usable))
    near = [place for place in usable if share(place) >= best * _NEARLY]
    near.sort(key=lambda place: (-share(place), place))
    rows = [place for place in near if judged.candidates[place].statement.cells]
    if rows and rows[0] == near[0]:
        top = [place for place in rows if share(place) == share(rows[0])]
        return top[:_MAX_ROWS]
    kept: list[int] = []
    length = 0
    for place in near[:_MAX_STATEMENTS]:
        statement = judged.candidates[place].statement
        length += statement.end - statement.start
        if kept and length > _MAX_QUOTE_CHARACTERS:
            break
        kept.append(place)
    return kept


def _with_antecedent(judged: Judged, place: int) -> tuple[int, ...]:
    """Add the statement before one that begins with a pronoun."""
    candidates = judged.candidates
    statement = candidates[place].statement
    text = judged.source.text[statement.start : statement.end]
    before = candidates[place - 1].statement if place else None
    if before and not before.cells and _POINTS_BACK.match(text):
        return place - 1, place
    return (place,)


def _render(quotation: _Quotation, number: int, terms: Sequence[str]) -> str:
    statements = [one.statement for one in quotation.candidates]
    if statements[0].cells:
        return _render_table(quotation, number)
    text = quotation.source.text
    if any(LIST_ITEM.match(text[one.start : one.end]) for one in statements):
        lines = [_shortened(text[one.start : one.end], terms) for one in statements]
        return "> " + "\n> ".join(lines) + f" [{number}]"
    return f"> {_shortened(text[quotation.start : quotation.end], terms)} [{number}]"


def _render_table(quotation: _Quotation, number: int) -> str:
    header = quotation.candidates[0].statement.header
    rows = [one.statement.cells for one in quotation.candidates]
    columns = max(map(len, (header, *rows)))
    table = [header, ("---",) * columns, *rows]
    lines = [
        "> | " + " | ".join(
            cell if row is table[1] else as_markdown(cell)
            for cell in (*row, *("",) * (columns - len(row)))
        ) + " |"
        for row in table
    ]  # fmt: skip
    return "\n".join([*lines, ">", f"> [{number}]"])


def _said(request: ChatRequest) -> str:
    """Return what the user typed; `question` may carry words of the conversation."""
    return request.turns[-1].content if request.turns else request.question


def _words(words: dict[str, str], request: ChatRequest) -> str:
    return _in_script(words["zh" if request.language == "zh" else "en"], request)


def _in_script(text: str, request: ChatRequest) -> str:
    return in_script_of(request.question, text) if request.language == "zh" else text


def _shortened(text: str, terms: Sequence[str]) -> str:
    if len(text) <= _MAX_QUOTE_CHARACTERS:
        return as_markdown(text)
    excerpt = best_excerpt(text, terms, _MAX_QUOTE_CHARACTERS)
    before = "… " if excerpt.start > 0 else ""
    after = " …" if excerpt.end < len(text) else ""
    return f"{before}{as_markdown(excerpt.text)}{after}"


def as_markdown(text: str) -> str:
    """Return a document's text as one line of Markdown that shows just that text: nothing in it is
    a marker, a link or markup."""
    line = " ".join(without_markers_of_its_own(text).split())
    line = _MARKUP.sub(lambda sign: f"\\{sign.group()}", line)
    return _OPENS_BLOCK.sub(
        lambda m: f"\\{m['sign']}" if m["sign"] else f"{m['number']}\\{m['point']}", line
    )
