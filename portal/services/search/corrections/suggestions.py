"""Spelling suggestions for words of a query that no result has."""

from __future__ import annotations

from portal.domain.search import Correction, SearchMode, SearchOutcome
from portal.services import Services
from portal.services.search.corrections import respelling, spelling
from portal.services.search.corrections.spelling import Seen
from portal.services.search.finding import Found
from portal.services.search.plan import SearchPlan

# Suggestions are made for up to this many unknown words among found ones, and for queries of up to
# this many words: in longer queries the other words find the results, and an unknown word is mostly
# right.
_MAX_SLIPS = 1
_SHORT = 4


def suggest(
    services: Services, plan: SearchPlan, outcome: SearchOutcome, found: Found
) -> Correction | None:
    """Return a suggestion where words of the query are in no chunk. Looking for spellings can take
    longer than the search itself; usually all words are among the hits."""
    request, parsed = plan.request, plan.parsed
    is_for_program = request.as_shown and request.mode is SearchMode.HYBRID
    if request.fuzzy or request.mode is SearchMode.VECTOR or is_for_program:
        return outcome.correction
    has_titles = bool(outcome.hits or not parsed.titles)
    is_long = found.text_count > 0 and len(plan.terms) > _SHORT
    if has_titles and (is_long or _holds_all(plan, found)):
        return outcome.correction
    seen = Seen(
        words=[word for hit in outcome.hits for word in (*hit.matched_words, hit.title)],
        texts=[one.chunk.content for one in found.candidates],
    )
    # One word missing from the hits is probably a slip; several are probably another subject.
    doubtful = 0 if parsed.is_of_titles else spelling.count_doubtful(parsed.text, seen)
    if has_titles and (not doubtful or (found.text_count and doubtful > _MAX_SLIPS)):
        return outcome.correction
    with services.database.read() as session:
        threshold = services.settings.search.text.fuzzy_threshold
        return respelling.correct(session, plan.user, request, parsed, seen, threshold=threshold)


def _holds_all(plan: SearchPlan, found: Found) -> bool:
    """Tell whether the candidates have each term of a query, by their stored terms."""
    # This does not work for Chinese: a slip is segmented into single characters, which are common.
    if not plan.parsed.text.isascii() or plan.parsed.titles:
        return False
    missing = set(plan.terms)
    for one in found.candidates:
        missing.difference_update(one.chunk.terms.split())
        if not missing:
            return True
    return False
