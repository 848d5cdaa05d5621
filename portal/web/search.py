"""Search: a question, what was found, and why each result is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiflask import APIBlueprint
from flask import make_response, render_template, request, url_for
from werkzeug.wrappers import Response

from portal import context
from portal.domain.search import (
    MAX_RESULTS,
    SearchMode,
    SearchOutcome,
    SearchRequest,
)
from portal.errors import N_, NotSignedIn, PortalError
from portal.phrases import error_message
from portal.services import searching
from portal.web.layout import wants_fragment

RESULTS_A_STEP = 10

MODE_WORDS = {
    SearchMode.HYBRID: N_("Words and meaning"),
    SearchMode.VECTOR: N_("Meaning only"),
    SearchMode.KEYWORD: N_("Words only"),
}

# A question travels in the address, where a Chinese character takes nine bytes and servers stop
# reading at 8 kB. The API takes longer ones.
MOST_QUESTION_CHARACTERS = 800

blueprint = APIBlueprint("search", __name__, enable_openapi=False)

Answer = Response | str | tuple[str, int]


@dataclass(frozen=True, slots=True)
class Question:
    """What the address of a search says."""

    text: str
    mode: SearchMode
    domain: str
    count: int

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """The address of this search, shortest form; `changes` replace single values."""
        given = {"q": self.text, "mode": self.mode.value, "domain": self.domain, "n": self.count}
        given |= changes
        plain = {"mode": SearchMode.HYBRID.value, "domain": "", "n": RESULTS_A_STEP}
        return {name: value for name, value in given.items() if plain.get(name) != value}


@blueprint.get("/search")
def show() -> Answer:
    question, status = _question(), 200
    outcome: SearchOutcome | None = None
    error: str | None = None
    if question.text:
        try:
            outcome = _ask(question)
        except NotSignedIn:
            raise
        except PortalError as problem:
            error, status = error_message(problem), problem.status
    values = {
        "question": question,
        "outcome": outcome,
        "error": error,
        "modes": MODE_WORDS,
        "more_count": min(question.count + RESULTS_A_STEP, MAX_RESULTS),
        "max_query_characters": MOST_QUESTION_CHARACTERS,
    }
    if not wants_fragment("search-results"):
        return render_template("pages/search.html", **values), status
    response = make_response(render_template("fragments/search/_results.html", **values), status)
    response.headers["HX-Push-Url"] = url_for("search.show", **question.arguments())
    return response


def _ask(question: Question) -> SearchOutcome:
    request_ = SearchRequest(
        query=question.text,
        top_n=question.count,
        mode=question.mode,
        domain=question.domain or None,
        explain=True,
    )
    return searching.search(context.services(), context.person(), request_)


def _question() -> Question:
    mode, count = request.args.get("mode", ""), request.args.get("n", "")
    return Question(
        text=request.args.get("q", "").strip(),
        mode=SearchMode(mode) if mode in set(SearchMode) else SearchMode.HYBRID,
        domain=request.args.get("domain", "").strip(),
        count=min(max(int(count), 1), MAX_RESULTS) if _is_small_number(count) else RESULTS_A_STEP,
    )


def _is_small_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 5  # noqa: PLR2004 - digits
