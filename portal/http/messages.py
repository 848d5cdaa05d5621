"""Errors, failures and warnings in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask_babel import gettext

from portal.domain.documents import Failure
from portal.domain.search.explaining import MissingReason, WhyNot
from portal.errors import MESSAGES, N_, Message, PortalError


def translated(text: str) -> str:
    """Return a Message in the reader's language; other text is returned unchanged."""
    return _filled(text.template, text.params) if isinstance(text, Message) else text


def error_message(error: PortalError) -> str:
    """Return the message of an error: what happened, why, and what to do."""
    return _filled(error.message, error.params)


def failure_message(failure: Failure) -> str:
    """Return why a document failed and what to do."""
    try:
        return _filled(MESSAGES.get(failure.code, PortalError.message), failure.params)
    except (KeyError, TypeError, ValueError):
        # A document that failed under an older version may lack a value that the template needs.
        return str(gettext(PortalError.message))


def _filled(template: str, params: Mapping[str, Any]) -> str:
    values = {k: translated(v) if isinstance(v, str) else v for k, v in params.items()}
    text = str(gettext(template))
    return text % values if values else text


ABSENCES = {
    MissingReason.IN_TRASH: N_("“%(title)s” is in the trash. Restore it to make it searchable."),
    MissingReason.NOT_READY: N_(
        "“%(title)s” is still being processed. It becomes searchable when it is ready."
    ),
    MissingReason.OFF_IN_CONVERSATION: N_(
        "“%(title)s” is turned off in this conversation. Turn it on there to search it."
    ),
    MissingReason.OFF_BY_DEFAULT: N_("You turned “%(title)s” off. Turn it on to search it."),
    MissingReason.NO_WORDS: N_(
        "Nothing was searched: the query has filters but no words to search for. Add a word."
    ),
    MissingReason.KEYWORD_UNAVAILABLE: N_(
        "“%(title)s” was not searched: keyword search is not available on this server. "
        "Search by meaning instead."
    ),
    MissingReason.NO_EMBEDDING_YET: N_(
        "“%(title)s” has not been embedded by the current model yet. This happens in the "
        "background; until then only keyword search finds it."
    ),
    MissingReason.BELOW_THRESHOLD: N_(
        "The best passage of “%(title)s” scores %(score)s, below the threshold of "
        "%(threshold)s. Lower the threshold to see it."
    ),
    MissingReason.DUPLICATE_OF: N_(
        "“%(title)s” nearly duplicates “%(other)s”, which is shown as result %(rank)s."
    ),
    MissingReason.RANKED: N_(
        "The best passage of “%(title)s” ranks %(rank)s, but only the first %(shown)s "
        "are shown. Show more, or make the question more specific."
    ),
    MissingReason.NO_WORD_IN_COMMON: N_(
        "“%(title)s” contains none of the words in the query. Use other words, or search "
        "by meaning too."
    ),
    MissingReason.IN_RESULTS: N_("“%(title)s” is in the results, ranked %(rank)s."),
}
FAILED_FILTERS = {
    "domain": N_(
        "The search is limited to the domain “%(operand)s”, and “%(title)s” is not in it."
    ),
    "type": N_("The search is limited to type %(operand)s, and “%(title)s” has a different type."),
    "title": N_(
        "The search requires “%(operand)s” in the title, and “%(title)s” does not contain it."
    ),
    "phrase": N_("No passage of “%(title)s” contains the exact phrase “%(operand)s”."),
    "word": N_("Every passage of “%(title)s” contains “%(operand)s”, which the search excludes."),
    "facet": N_(
        "“%(title)s” is outside what the search is limited to: folder, tag, type, owner, domain or "
        "date."
    ),
    "together": N_("No single passage of “%(title)s” matches all the filters. Remove one of them."),
}
HAS_FAILED = N_("“%(title)s” has no searchable text because reading it failed.")
RANKED_BEYOND = N_(
    "“%(title)s” was searched, but is not in the first %(beyond)s passages. Rephrase the query."
)


def missing_message(why: WhyNot) -> str:
    """Return why a document is not among the results and what to do."""
    words: dict[str, Any] = {"title": why.title, "rank": why.rank, "shown": why.shown_count}
    template = ABSENCES.get(why.reason, RANKED_BEYOND)
    if why.failed_filter is not None:
        template = FAILED_FILTERS[why.failed_filter.kind]
        words["operand"] = why.failed_filter.operand
    elif why.failure is not None:
        return f"{gettext(HAS_FAILED) % words} {failure_message(why.failure)}"
    elif why.reason is MissingReason.RANKED and why.rank is None:
        template, words["beyond"] = RANKED_BEYOND, why.ranked_beyond
    elif why.duplicate_of is not None:
        words["other"] = why.duplicate_of.title
    elif why.threshold is not None and why.score is not None:
        words |= {"score": f"{why.score:.2f}", "threshold": f"{why.threshold:.2f}"}
    return str(gettext(template)) % words
