"""Spelling corrections of whole queries, operators included."""

from __future__ import annotations

from portal.domain.people import User
from portal.domain.search import Correction, SearchRequest
from portal.services.search.corrections import spelling
from portal.services.search.corrections.spelling import Seen
from portal.store.session import Session
from portal.text.terms.analyser import query_terms
from portal.text.terms.query_syntax import ParsedQuery, parse_query, respell


def parse(request: SearchRequest, query: str) -> ParsedQuery:
    """Parse a query with the options of the request."""
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
    """Return the whole query with corrected spelling, None where nothing changes. Words in `seen`
    are not looked up, and replacements are at least `threshold` similar."""
    conversation_id = request.conversation_id
    # Words in title operators are looked up in titles.
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
