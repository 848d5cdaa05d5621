"""Positions of a query's terms in a text."""

from __future__ import annotations

from collections.abc import Iterable

from portal.text.finding import find_terms


def highlight_spans(text: str, terms: Iterable[str]) -> list[tuple[int, int]]:
    """Return ranges of `text` to mark, in order and disjoint.

    `terms` come from `analyser.query_terms`. Ranges refer to the original text, so traditional
    characters, ligatures and full-width letters are marked as they are written.
    """
    return merge_spans((start, end) for _, start, end in find_terms(text, tuple(terms)))


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return sorted spans, with those that touch or overlap merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
