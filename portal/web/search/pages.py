"""Search pages: a query, its results, why each was found, and why a document was not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from flask import Response, make_response, render_template, request, url_for
from flask_babel import gettext

from portal.answering.quoting.questions import asks
from portal.domain.documents import DocumentFilter, DocumentSummary
from portal.domain.search import MAX_RESULTS, SearchHit, SearchMode, SearchOutcome, Span
from portal.domain.search.explaining import WhyNot
from portal.errors import N_, InvalidInput, NotSignedIn, PortalError
from portal.http import context
from portal.http.messages import error_message, missing_message
from portal.services.documents import folders, library
from portal.services.search import engine, explaining, saved
from portal.text.terms.highlight import whole_words
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, fragments, wants_fragment
from portal.web.search import explanations, facets
from portal.web.search.query import SearchQuery

RESULTS_PER_STEP = 10
MAX_TITLES = 8
MAX_TITLE_CHARACTERS = 60

MODE_WORDS = {
    SearchMode.HYBRID: N_("Keywords and meaning"),
    SearchMode.VECTOR: N_("Meaning only"),
    SearchMode.KEYWORD: N_("Keywords only"),
}

# A query is part of the address, where a Chinese character takes nine bytes and servers stop
# reading at 8 kB. The API accepts longer ones.
MAX_QUESTION_CHARACTERS = 800

blueprint = PageBlueprint("search", __name__)


@dataclass(frozen=True, slots=True)
class MissingDocument:
    """A document that is missing from the results: candidates for its title, or why it is
    missing."""

    title: str
    matches: tuple[DocumentSummary, ...] = ()
    why: WhyNot | None = None
    message: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentHits:
    """The hits of one document, best first."""

    best: SearchHit
    others: tuple[SearchHit, ...]

    @property
    def is_weak(self) -> bool:
        return self.best.low_confidence


@blueprint.get("/search")
def show() -> Answer:
    query = _query()
    outcome: SearchOutcome | None = None
    failure: PortalError | None = None
    if query.text:
        try:
            outcome = engine.search_or_words(*context.caller(), query.request())
        except NotSignedIn:
            raise
        except PortalError as problem:
            failure = problem
    error = error_message(failure) if failure else None
    is_fragment = wants_fragment("search-results")
    shows_facets = not is_fragment or facets.chosen_before() != facets.chosen_facets(query)
    values = {**_values(query, shows_facets=shows_facets), "outcome": outcome, "error": error}
    values["can_retry"] = not isinstance(failure, InvalidInput)
    if outcome is not None:
        outcome = with_whole_words(outcome)
        values["outcome"] = outcome
        values["groups"] = by_document(outcome.hits)
        values["is_empty"] = not outcome.hits and library.is_empty(*context.caller())
        values["more_count"] = _more_count(outcome)
        values["shows_weaker"] = _shows_weaker(query)
        values["notices"] = explanations.degraded_notices(outcome.degraded, outcome.search_method)
        values["is_question"] = asks(query.text) or query.text.endswith(("?", "？"))
        values["was_searched"] = explanations.was_searched(outcome)
        values["blend"] = explanations.blend(outcome.explanation)
        values["explanation_tables"] = explanations.tables(outcome.explanation or {})
    response = _answer(query, values, is_fragment=is_fragment, shows_facets=shows_facets)
    if failure is not None:
        response.status_code = failure.status
        context.add_error_headers(response, failure)
    return response


def _answer(
    query: SearchQuery, values: dict[str, Any], *, is_fragment: bool, shows_facets: bool
) -> Response:
    if not is_fragment:
        return make_response(render_template("pages/search/search.html", **values))
    # HTMX replaces the page's title too.
    title = ("fragments/layout/_title.html", {"title": str(values["page_title"])})
    parts = [("fragments/search/_results.html", values), title]
    if shows_facets:
        parts.append(("fragments/search/_facets.html", {**values, "out_of_band": True}))
    response = make_response(fragments(*parts))
    # While a query is being typed, it stays one entry of the history.
    header = "HX-Replace-Url" if _is_being_typed(query) else "HX-Push-Url"
    weaker = "1" if values.get("shows_weaker") else None
    response.headers[header] = url_for("search.show", **query.arguments(weaker=weaker))
    return response


@blueprint.get("/search/why")
def show_why_not() -> Answer:
    """Explain why a document, given by id or part of its title, is not in the results."""
    query = _query()
    values = {**_values(query), "absentee": _absentee(query)}
    is_fragment = wants_fragment("why-not")
    name = "fragments/search/_why_not.html" if is_fragment else "pages/search/search_why.html"
    return render_template(name, **values)


def _values(query: SearchQuery, *, shows_facets: bool = True) -> dict[str, Any]:
    user = context.user()
    return {
        "query": query,
        "page_title": _title(query),
        "facets": facets.facets_of(query) if shows_facets else [],
        "fusions": explanations.FUSION_WORDS if user.is_admin else {},
        "modes": MODE_WORDS,
        "max_results": MAX_RESULTS,
        "max_query_characters": MAX_QUESTION_CHARACTERS,
        "absentee": None,
        "saved": [] if query.text else saved.list_saved(*context.caller()),
        "is_empty": not query.text and library.is_empty(*context.caller()),
    }


def by_document(hits: Iterable[SearchHit]) -> list[DocumentHits]:
    """Group hits by document, in the order of their best hits."""
    groups: dict[UUID, list[SearchHit]] = {}
    for hit in hits:
        groups.setdefault(hit.document_id, []).append(hit)
    return [DocumentHits(best, tuple(others)) for best, *others in groups.values()]


def with_whole_words(outcome: SearchOutcome) -> SearchOutcome:
    """Return the outcome with highlights of whole words only."""
    query = outcome.query
    if outcome.correction and outcome.correction.is_applied:
        query = outcome.correction.query
    hits = []
    for hit in outcome.hits:
        spans = [(highlight.start, highlight.end) for highlight in hit.highlights]
        words = whole_words(hit.excerpt, spans, query)
        hits.append(replace(hit, highlights=tuple(Span(*span) for span in words)))
    return replace(outcome, hits=tuple(hits))


def _is_being_typed(query: SearchQuery) -> bool:
    """Return whether the page already shows the beginning, or a continuation, of this query."""
    address = urlsplit(request.headers.get("HX-Current-URL", ""))
    before = parse_qs(address.query).get("q", [""])[0].strip()
    if address.path != url_for("search.show") or not before:
        return False
    return before != query.text and (before.startswith(query.text) or query.text.startswith(before))


def _shows_weaker(query: SearchQuery) -> bool:
    """Return whether the weaker matches are unfolded: by this address, or by that of the page if it
    has the same query."""
    before = parse_qs(urlsplit(request.headers.get("HX-Current-URL", "")).query)
    is_same = before.get("q", [""])[0].strip() == query.text
    return bool(request.args.get("weaker")) or ("weaker" in before and is_same)


def _title(query: SearchQuery) -> str:
    words = query.text[:MAX_TITLE_CHARACTERS]
    if words != query.text:
        words += "…"
    return " · ".join((*([words] if words else []), gettext("Search")))


def _more_count(outcome: SearchOutcome) -> int | None:
    """Return how many results "Show more" requests; None if there are no more."""
    shown = len(outcome.hits)
    if outcome.used is None or shown < outcome.used.top_n or outcome.total_count <= shown:
        return None
    count = min(outcome.used.top_n + RESULTS_PER_STEP, MAX_RESULTS)
    return count if count > outcome.used.top_n else None


def _absentee(query: SearchQuery) -> MissingDocument:
    title = request.args.get("title", "").strip()
    chosen = request.args.get("document", type=UUID)
    matches: tuple[DocumentSummary, ...] = ()
    if chosen is None and title:
        matches = _find_titled(title)
        chosen = matches[0].id if len(matches) == 1 else None
    if chosen is None or not query.text:
        return MissingDocument(title, matches)
    try:
        why = explaining.why_not(*context.caller(), query.request(), chosen)
    except NotSignedIn:
        raise
    except PortalError as problem:
        return MissingDocument(title, error=error_message(problem))
    return MissingDocument(title or why.title, why=why, message=missing_message(why))


def _find_titled(title: str) -> tuple[DocumentSummary, ...]:
    """Return documents with these words in their title; a single exact match is returned alone.

    Includes documents in the trash that the user may restore.
    """
    filters, wanted = DocumentFilter(title_contains=title), title.casefold()
    found = tuple(
        document
        for load in (library.list_documents, library.list_trash)
        for document in load(*context.caller(), filters=filters, limit=MAX_TITLES).items
    )
    exact = tuple(document for document in found if document.title.casefold() == wanted)
    return exact if len(exact) == 1 else found[:MAX_TITLES]


def _query() -> SearchQuery:
    """Return the query in the address. Raises NotFound for a folder that the user may not see."""
    query = SearchQuery.read(request.args, may_tune=context.user().is_admin)
    if query.folder_id is not None:
        folders.get_folder(*context.caller(), query.folder_id)
    return query
