"""Where the terms of a query stand in a text."""

from __future__ import annotations

from collections.abc import Iterable

from portal.text.finding import find_terms


def highlight_spans(text: str, terms: Iterable[str]) -> list[tuple[int, int]]:
    """Ranges of `text` to mark, in order, apart from each other.

    `terms` come from `analyser.query_terms`. Ranges follow the original text, so that
    traditional characters, ligatures and full-width letters are marked as they stand there.
    """
    return merge_spans((start, end) for _, start, end in find_terms(text, tuple(terms)))


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order; those that touch or overlap become one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
