"""A check whether an answer's sentences are supported by their citations.

Each sentence is compared with the chunks that it cites by their common words, weighted by length.
Numbers have to be in the chunk, and a sentence that denies what the chunk affirms, or the other way
round, is not supported, however similar they are. The result shows a reader where to look twice; it
proves nothing. Two languages share too few words for this comparison, so only numbers are compared
across languages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from portal.answering.code import CodeReader
from portal.answering.figures import figures_in, figures_in_words
from portal.answering.markers import shown_markers
from portal.domain.answering import SentenceSupport
from portal.text.language import detect_language
from portal.text.layout.sentences import sentence_spans
from portal.text.terms.analyser import index_terms, stop_terms

# Weighted share of a sentence's words that its citation must have. Quotations have all of them,
# paraphrases two thirds and more, sentences on something else a third at most.
MIN_LIKENESS = 0.5
# A shorter sentence claims too little to be judged by words.
_MIN_TERMS = 2
# Sentences of a chunk are checked for contradiction from this likeness.
_ALIKE = 0.6

_BLANKED = re.compile(r"\\(?=[!-/:-@\[-`{-~])|[*_#>|~]+")
_NUMBERED = re.compile(r"[>*\s-]*\d{1,3}[.)、]")
_HEADING = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\|?[ \t]*:?-{3,})")
_DENIES_EN = re.compile(
    r"\b(?:not|never|no|none|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
_DENIES_ZH = re.compile(
    "(?:并非|並非|并不|並不|从未|從未|没有|沒有|不是|不能|不会|不會|不得|不可|不允许|不允許|禁止|未曾|尚未|无法|無法"
    "|不再|未能|不属|不屬|不需|不必|无需|無需|不应|不應|不包括|不含)"
)
_ADMITS = re.compile(
    r"(?i)not (?:in|mention|contain|say|found|stat|answer)"
    r"|no (?:passage|information|answer|mention)"
    r"|(?:do|does|did)(?: not|n['’]t) (?:say|mention|contain|hold|state|answer|provide)"
    r"|(?:没有|沒有|未)(?:提|说|說|包含|找|涉及|给出|給出|答案)"
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    text: str
    paragraph: int
    markers: tuple[int, ...]


def check(content: str, cited: Mapping[int, str]) -> tuple[SentenceSupport, ...]:
    """Return the support of every sentence of a finished answer, in order. `cited` maps markers to
    the texts of their sources. A sentence without a marker is compared with all citations of its
    paragraph."""
    sentences = _sentences(content)
    by_paragraph: dict[int, list[int]] = {}
    for sentence in sentences:
        by_paragraph.setdefault(sentence.paragraph, []).extend(sentence.markers)
    return tuple(
        _judged(
            sentence,
            [cited[m] for m in sentence.markers or by_paragraph[sentence.paragraph] if m in cited],
        )
        for sentence in sentences
    )


def _judged(sentence: _Sentence, chunks: Sequence[str]) -> SentenceSupport:
    supported, likeness = None, None
    if _claims(sentence.text):
        supported, likeness = _supported(sentence.text, chunks)
        if not sentence.markers and not supported and _ADMITS.search(sentence.text):
            supported = None  # An abstention needs no support.
    return SentenceSupport(
        start=sentence.start,
        end=sentence.end,
        markers=sentence.markers,
        is_supported=supported,
        likeness=None if likeness is None else round(likeness, 3),
    )


def _claims(text: str) -> bool:
    bare = text.strip()
    if _HEADING.match(text) or _NUMBERED.fullmatch(bare) or bare.endswith((":", "：", "?", "？")):
        return False
    return len(_weights(text)) >= _MIN_TERMS or bool(figures_in(text))


def _supported(text: str, chunks: Sequence[str]) -> tuple[bool | None, float | None]:
    if not chunks:
        return False, 0.0
    figures = figures_in(text)
    known = set().union(*(figures_in(chunk) | figures_in_words(chunk) for chunk in chunks))
    if not figures <= known:
        return False, max(_likeness(text, chunk) for chunk in chunks)
    same = [one for one in chunks if detect_language(one) == detect_language(text)]
    if not same:
        return None, None
    likeness = _likeness(text, "\n".join(same))
    if likeness < MIN_LIKENESS:
        return False, likeness
    return not _contradicts(text, same), likeness


def _contradicts(text: str, chunks: Sequence[str]) -> bool:
    """Return whether text or chunk denies what the other affirms."""
    # Only their closest sentences are compared.
    near = [
        (_likeness(text, chunk[start:end]), chunk[start:end])
        for chunk in chunks
        for start, end in sentence_spans(chunk)
    ]
    best = max((likeness for likeness, _ in near), default=0.0)
    alike = [one for likeness, one in near if likeness >= max(_ALIKE, best - 0.1)]
    return bool(alike) and all(_denies(one) != _denies(text) for one in alike)


def _denies(text: str) -> bool:
    return bool(_DENIES_EN.search(text) or _DENIES_ZH.search(text))


def _likeness(text: str, chunk: str) -> float:
    """Return the share of the text's words, weighted by their length, that the chunk has."""
    weights = _weights(text)
    known = _terms(chunk)
    total = sum(weights.values())
    return sum(w for term, w in weights.items() if term in known) / total if total else 0.0


@lru_cache(maxsize=256)
def _weights(text: str) -> Mapping[str, float]:
    """Return the content terms of a sentence with weights. Longer words weigh more."""
    stop = stop_terms()
    return {
        term: min(len(term), 8) ** 0.5
        for term in index_terms(_plain(text)).split()
        if term not in stop
    }


@lru_cache(maxsize=64)
def _terms(chunk: str) -> frozenset[str]:
    return frozenset(index_terms(chunk).split())


def _sentences(content: str) -> list[_Sentence]:
    """Return sentences with the markers in and right after them, outside code."""
    markers = shown_markers(content)
    masked = _masked(content, markers)
    spans = sentence_spans(masked)
    found = []
    for place, (start, end) in enumerate(spans):
        following = spans[place + 1][0] if place + 1 < len(spans) else len(content)
        behind = [one for one in markers if start <= one[0] < following]
        # A marker on the next line belongs to that line, unless the line has nothing else.
        own = [one for one in behind if one[0] < end or "\n" not in content[end : one[0]]]
        last = max([end, *(stop for _, stop, _ in own)])
        found.append(
            _Sentence(
                start=start,
                end=last,
                text=masked[start:end],
                paragraph=masked.count("\n", 0, start),
                markers=tuple(dict.fromkeys(number for *_, number in own)),
            )
        )
    return found


def _masked(content: str, markers: Sequence[tuple[int, int, int]]) -> str:
    """Return the content with code and markers replaced by spaces, at the same length."""
    reader = CodeReader()
    masked = "".join(
        re.sub(r"[^\n]", " ", piece.text) if piece.is_code else piece.text
        for piece in (*reader.feed(content), *reader.close())
    )[: len(content)].ljust(len(content))
    for start, end, _ in markers:
        masked = masked[:start] + " " * (end - start) + masked[end:]
    return masked


def _plain(text: str) -> str:
    """Return a sentence without Markdown's characters, which would split or join words."""
    return _BLANKED.sub(" ", text)
