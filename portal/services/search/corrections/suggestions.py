"""Spelling suggestions for words of a query that no result has."""

from __future__ import annotations

from portal.domain.search import Correction, SearchMode, SearchOutcome
from portal.services import Services
from portal.services.search.corrections import respelling, spelling
from portal.services.search.corrections.spelling import Seen
from portal.services.search.finding import Found
from portal.services.search.plan import SearchPlan
from portal.store.search.selection.enabled import EnabledSet
from portal.store.search.word_counts import SearchableWords

# Suggestions are made for up to `_MAX_SLIPS` unknown words among found ones, and for queries of up
# to `_SHORT` words: in longer queries the other words find the results, and an unknown word is
# usually right. If no word is found at all, up to `_SHORT` unknown words may be slips.
_MAX_SLIPS = 1
_SHORT = 4
# Up to this many chunks are read faster than the word index of all chunks.
_FEW_CHUNKS = 500


def suggest(
    services: Services,
    plan: SearchPlan,
    outcome: SearchOutcome,
    found: Found,
    enabled: EnabledSet | None,
) -> Correction | None:
    """Return a suggestion if words of the query are in no chunk. Looking for spellings can take
    longer than the search itself, so it is skipped if all words are among the hits, as is usual."""
    request, parsed = plan.request, plan.parsed
    is_for_program = request.as_shown and request.mode is SearchMode.HYBRID
    if request.fuzzy or request.mode is SearchMode.VECTOR or is_for_program:
        return outcome.correction
    has_titles = bool(outcome.hits or not parsed.titles)
    is_long = found.text_count > 0 and len(plan.terms) > _SHORT
    if has_titles and (is_long or _contain_all_terms(plan, found)):
        return outcome.correction
    seen = Seen(
        words=[word for hit in outcome.hits for word in (*hit.matched_words, hit.title)],
        texts=[one.chunk.content for one in found.candidates],
    )
    # One word missing from the hits is probably a slip; several are probably another subject.
    doubtful = 0 if parsed.is_of_titles else spelling.count_doubtful(parsed.text, seen)
    max_slips = _MAX_SLIPS if found.text_count else _SHORT
    if has_titles and not 0 < doubtful <= max_slips:
        return outcome.correction
    with services.database.read() as session:
        searchable = SearchableWords(
            session, plan.user, request.conversation_id, _few_jobs(plan, enabled)
        )
        threshold = services.settings.search.text.fuzzy_threshold
        return respelling.correct(searchable, request, parsed, seen, threshold=threshold)


def _few_jobs(plan: SearchPlan, enabled: EnabledSet | None) -> str | None:
    """Return all jobs whose chunks are enabled for the user, if these are few."""
    narrowing = plan.legs.scope.narrowing
    is_all = not (narrowing.documents or narrowing.chunks)
    if enabled is None or enabled.chunk_count > _FEW_CHUNKS or enabled.of_chunks or not is_all:
        return None
    return enabled.ids


def _contain_all_terms(plan: SearchPlan, found: Found) -> bool:
    """Return whether the candidates contain each term of a query, by their stored terms."""
    # This does not work for Chinese: a slip is segmented into single characters, which are common.
    if not plan.parsed.text.isascii() or plan.parsed.titles:
        return False
    missing = set(plan.terms)
    for one in found.candidates:
        missing.difference_update(one.chunk.terms.split())
        if not missing:
            return True
    return False
