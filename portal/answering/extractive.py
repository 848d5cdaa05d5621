"""Answers without a model: the sentences that answer best, word for word, with their markers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from portal.answering.prompt import without_markers_of_its_own
from portal.answering.relevance import Judged, Sentence, judge
from portal.domain.answering import Abstained, ChatEvent, ChatRequest, TextDelta
from portal.text.analyser import query_terms
from portal.text.excerpt import best_excerpt
from portal.text.folding import in_script_of

# Chosen on the development sets, where as many answers are lost as wrong ones are kept out.
LEAST_CHANCE = 0.2
# Another passage is quoted too when it answers as well on its own account.
_LEAST_FURTHER = 0.5
_MOST_PASSAGES = 3
# Further sentences of a passage, when they hold nearly as much of the question.
_NEARLY = 0.75
_MOST_SENTENCES = 3
_LONGEST_QUOTE = 480

_INTRO = {"zh": "以下是文档中的原文摘录：", "en": "Quoted from your documents, word for word:"}
_NOTHING_SURE = {
    "zh": "在选用的文档中没有找到有把握的答案。最接近的段落列在下面。",
    "en": "The documents in use hold no answer that can be quoted with confidence. "
    "The nearest passages are listed below.",
}
_NOTHING = {
    "zh": "在选用的文档中没有找到与此相关的内容。",
    "en": "Nothing about this was found in the documents in use.",
}

_MARKUP = re.compile(r"[\\`*_\[\]<>|~&$]")
_OPENS_BLOCK = re.compile(r"\A(?:(?P<sign>[-+#=:])|(?P<number>\d{1,9})(?P<point>[.)]))")


class ExtractiveChatModel:
    """Quotes, or abstains. Needs nothing but the sources."""

    provider = "extractive"
    model = "extractive"
    takes_tools = False

    def stream(self, request: ChatRequest) -> Iterator[ChatEvent]:
        """An introduction that says what follows, then a quotation a piece; or Abstained."""
        judged = judge(request.question, request.language, request.sources)
        chosen = _chosen(judged)
        if not chosen:
            yield Abstained(_said(_NOTHING_SURE if judged else _NOTHING, request))
            return
        terms = query_terms(request.question)
        yield TextDelta(f"{_said(_INTRO, request)}\n\n")
        for place, one in enumerate(chosen):
            quoted = _quotation(one, terms)
            gap = "\n\n" if place else ""
            yield TextDelta(f"{gap}> {quoted} [{one.source.number}]")


def _said(words: dict[str, str], request: ChatRequest) -> str:
    if request.language == "zh":
        return in_script_of(request.question, words["zh"])
    return words["en"]


def _chosen(judged: Sequence[Judged]) -> list[Judged]:
    """Sources to quote, best first; none when even the best is unlikely to answer."""
    ranked = sorted(judged, key=lambda one: -one.chance)
    if not ranked or ranked[0].chance < LEAST_CHANCE or not ranked[0].sentences:
        return []
    further = [one for one in ranked[1:] if one.chance >= _LEAST_FURTHER and one.sentences]
    return [ranked[0], *further][:_MOST_PASSAGES]


def _quotation(judged: Judged, terms: Sequence[str]) -> str:
    """The best sentences of a passage in their order, with dots where some are left out."""
    text, sentences = judged.source.text, judged.sentences
    parts: list[str] = []
    end = 0
    for sentence in _best(sentences):
        if parts:
            parts.append(" " if not text[end : sentence.start].strip() else " … ")
        parts.append(_shortened(text[sentence.start : sentence.end], terms))
        end = sentence.end
    return "".join(parts)


def _best(sentences: Sequence[Sentence]) -> list[Sentence]:
    best = max(sentence.share for sentence in sentences)
    near = [one for one in sentences if one.share >= max(best * _NEARLY, 1e-9) or one.share == best]
    near.sort(key=lambda one: (-one.share, one.start))
    kept: list[Sentence] = []
    length = 0
    for one in near[:_MOST_SENTENCES]:
        length += one.end - one.start
        if kept and length > _LONGEST_QUOTE:
            break
        kept.append(one)
    return sorted(kept, key=lambda one: one.start)


def _shortened(sentence: str, terms: Sequence[str]) -> str:
    if len(sentence) <= _LONGEST_QUOTE:
        return as_markdown(sentence)
    excerpt = best_excerpt(sentence, terms, _LONGEST_QUOTE)
    before = "… " if excerpt.start > 0 else ""
    after = " …" if excerpt.end < len(sentence) else ""
    return f"{before}{as_markdown(excerpt.text)}{after}"


def as_markdown(text: str) -> str:
    """Text of a document in one line of Markdown that shows just that text: nothing in it is a
    marker, a link or markup."""
    line = " ".join(without_markers_of_its_own(text).split())
    line = _MARKUP.sub(lambda sign: f"\\{sign.group()}", line)
    return _OPENS_BLOCK.sub(
        lambda m: f"\\{m['sign']}" if m["sign"] else f"{m['number']}\\{m['point']}", line
    )
