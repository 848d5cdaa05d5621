"""Positions of a query's terms in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from portal.text.characters.scripts import HAN_RUN
from portal.text.terms.analyser import analyse, query_terms
from portal.text.terms.finding import find_terms

# More than anyone steps through.
MAX_MATCHES = 10_000


def highlight_spans(text: str, terms: Iterable[str]) -> list[tuple[int, int]]:
    """Return ranges of `text` to mark, in order and disjoint.

    `terms` come from `analyser.query_terms`. Ranges refer to the original text, so traditional
    characters, ligatures and full-width letters are marked as they are written.
    """
    return merge_spans((start, end) for _, start, end in find_terms(text, tuple(terms)))


def occurrences(text: str, words: str) -> list[tuple[int, int]]:
    """Return the first `MAX_MATCHES` ranges where `words` occur in `text`, in any case and with any
    white space between them."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    if not pattern:
        return []
    found = re.finditer(pattern, text, re.IGNORECASE)
    return [match.span() for match in islice(found, MAX_MATCHES)]


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return sorted spans, with those that touch or overlap merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def whole_words(text: str, spans: Sequence[tuple[int, int]], query: str) -> list[tuple[int, int]]:
    """Return spans without single Chinese characters that are only part of a word of the query.

    The dictionary cuts 年假 into 年 and 假; a 年 alone says nothing about 年假. Characters that
    stand alone in the query stay.
    """
    alone = {run for run in HAN_RUN.findall(query) if len(run) == 1}
    kept = [
        (start, end)
        for start, end in merge_spans(spans)
        if end - start > 1 or text[start:end] in alone or not HAN_RUN.match(text[start:end])
    ]
    for word in _joined_characters(query):
        kept += [match.span() for match in re.finditer(word, text)]
    return merge_spans(kept)


def _joined_characters(query: str) -> list[str]:
    """Return words of the query that the analyser cut into single characters, joined."""
    terms = set(query_terms(query))
    words, end = [""], -1
    for token in analyse(query):
        character = query[token.start : token.end]
        if len(character) == 1 and token.term in terms and HAN_RUN.match(character):
            words.append(words.pop() + character if token.start == end else character)
            end = token.end
    return [word for word in words if len(word) > 1]
