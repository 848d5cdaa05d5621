"""Whole queries in another spelling, with their operators."""

from __future__ import annotations

from portal.domain.people import User
from portal.domain.search import Correction, SearchRequest
from portal.services.search import spelling
from portal.services.search.spelling import Seen
from portal.store.session import Session
from portal.text.analyser import query_terms
from portal.text.query_syntax import ParsedQuery, parse_query, respell


def parse(request: SearchRequest, query: str) -> ParsedQuery:
    """Parse a query as the request wants it read."""
    return parse_query(query) if request.operators else ParsedQuery(query)


def correct(
    session: Session,
    user: User,
    request: SearchRequest,
    parsed: ParsedQuery,
    seen: Seen = Seen(),  # noqa: B008 - it never changes
    *,
    threshold: float,
) -> Correction | None:
    """Return the whole query in another spelling; None where that is the one it has. Words that
    were `seen` are not looked up, and no word is replaced by one less like it than `threshold`."""
    conversation_id = request.conversation_id
    # Words of titles are looked up in titles.
    plain = "" if parsed.is_of_titles else parsed.text
    text = spelling.correct(session, user, conversation_id, plain, seen, threshold=threshold)
    titles = spelling.correct_titles(
        session, user, conversation_id, parsed.titles, threshold=threshold
    )
    in_text, in_titles = (found.replaced if found else () for found in (text, titles))
    if request.operators:
        query = respell(request.query, in_text, in_titles)
    else:
        query = text.query if text else request.query
    if query == request.query:
        return None
    terms = query_terms(parse(request, query).text)
    return Correction(query, terms, tuple(dict.fromkeys((*in_text, *in_titles))))
