"""Did you mean: another spelling, offered where words of a query were found nowhere."""

from __future__ import annotations

from portal.domain.search import Correction, SearchMode, SearchOutcome
from portal.services import Services
from portal.services.search import respelling, spelling
from portal.services.search.finding import Found
from portal.services.search.plan import SearchPlan
from portal.services.search.spelling import Seen

# Of a query with words that were found so many may be misspelt, and it has so many at most: in a
# longer one the others find what is meant, and a word that is nowhere is mostly right.
_MAX_SLIPS = 1
_SHORT = 4


def suggest(
    services: Services, plan: SearchPlan, outcome: SearchOutcome, found: Found
) -> Correction | None:
    """Return another spelling to offer where words of the query stand in no chunk. Looking for
    spellings takes longer than many a search: mostly all words are among the hits."""
    request, parsed = plan.request, plan.parsed
    is_for_program = request.as_shown and request.mode is SearchMode.HYBRID
    if request.fuzzy or request.mode is SearchMode.VECTOR or is_for_program:
        return outcome.correction
    if _holds_all(plan, found):
        return None
    seen = Seen(
        words=[word for hit in outcome.hits for word in (*hit.matched_words, hit.title)],
        texts=[one.chunk.content for one in found.candidates],
    )
    # Where one word is not among the hits, a slip is likely; where several are not, another
    # subject.
    has_titles = bool(outcome.hits or not parsed.titles)
    doubtful = 0 if parsed.is_of_titles else spelling.count_doubtful(parsed.text, seen)
    is_long = doubtful > _MAX_SLIPS or len(plan.terms) > _SHORT
    if has_titles and (not doubtful or (found.text_count and is_long)):
        return outcome.correction
    with services.database.read() as session:
        threshold = services.settings.search.text.fuzzy_threshold
        return respelling.correct(session, plan.user, request, parsed, seen, threshold=threshold)


def _holds_all(plan: SearchPlan, found: Found) -> bool:
    """Whether the candidates hold each term of a query, by the terms that are stored with them. Of
    Chinese that says nothing: a slip is cut into characters that stand everywhere."""
    if not plan.parsed.text.isascii() or plan.parsed.titles:
        return False
    missing = set(plan.terms)
    for one in found.candidates:
        missing.difference_update(one.chunk.terms.split())
        if not missing:
            return True
    return False
