"""Spelling corrections of whole queries, operators included."""

from __future__ import annotations

from portal.domain.search import Correction, SearchRequest
from portal.services.search.corrections import spelling
from portal.services.search.corrections.spelling import Seen
from portal.store.search.word_counts import SearchableWords
from portal.text.terms.analyser import query_terms
from portal.text.terms.query_syntax import ParsedQuery, parse_query, respell


def parse(request: SearchRequest, query: str) -> ParsedQuery:
    """Parse a query with the options of the request."""
    return parse_query(query) if request.operators else ParsedQuery(query)


def correct(
    searchable: SearchableWords,
    request: SearchRequest,
    parsed: ParsedQuery,
    seen: Seen = Seen(),  # noqa: B008 - it never changes
    *,
    threshold: float,
) -> Correction | None:
    """Return the whole query with corrected spelling, None if nothing changes. Words in `seen` are
    not looked up, and replacements are at least `threshold` similar."""
    # Words in title operators are looked up in titles.
    plain = "" if parsed.is_of_titles else parsed.text
    text = spelling.correct(searchable, plain, seen, threshold=threshold)
    titles = spelling.correct_titles(searchable, parsed.titles, threshold=threshold)
    in_text, in_titles = (found.replaced if found else () for found in (text, titles))
    if request.operators:
        query = respell(request.query, in_text, in_titles)
    else:
        query = text.query if text else request.query
    if query == request.query:
        return None
    terms = query_terms(parse(request, query).text)
    return Correction(query, terms, tuple(dict.fromkeys((*in_text, *in_titles))))
