"""Facets on the search page: controls that limit a search, with counts of documents."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from flask import request
from flask_babel import gettext, ngettext
from werkzeug.datastructures import MultiDict

from portal.domain.documents import MediaType
from portal.domain.search import FacetCount
from portal.errors import N_
from portal.http import context
from portal.services.search import faceting
from portal.web.search.query import SearchQuery

# By field of `Facets`: the name in the address, the label, and the words for "no limit".
FACETS = {
    "folder_id": ("folder", N_("Folder"), N_("Any folder")),
    "tag": ("tag", N_("Tag"), N_("Any tag")),
    "media_type": ("type", N_("Type"), N_("Any type")),
    "owner_id": ("owner", N_("Owner"), N_("Any owner")),
    "domain": ("domain", N_("Domain"), N_("Any domain")),
    "days": ("days", N_("Uploaded"), N_("Any time")),
}


@dataclass(frozen=True, slots=True)
class Facet:
    """A control that limits a search. `choices` are pairs of a value and its words with the
    count."""

    name: str
    label: str
    otherwise: str
    chosen: str
    choices: list[tuple[str, str]]


def facets_of(query: SearchQuery) -> list[Facet]:
    """Return the facets of the searched documents, each with the chosen value."""
    counts = faceting.count_facets(*context.caller(), query.facets)
    chosen = chosen_facets(query)
    found = []
    for field, (name, label, otherwise) in FACETS.items():
        choices = [_choice(count) for count in counts if count.facet == field]
        value = chosen.get(name, "")
        if name == "domain":
            value = value.lower()
        if value and value not in dict(choices):
            choices.append((value, f"{value} (0)" if name in {"tag", "domain"} else "(0)"))
        if len(choices) > 1 or value:
            found.append(Facet(name, gettext(label), gettext(otherwise), value, choices))
    return found


def _choice(one: FacetCount) -> tuple[str, str]:
    """Return a facet's value in the address, and its words with the count."""
    value, label = one.value, one.label
    if one.facet == "media_type":
        label = MediaType(value).short
        value = label.lower()
    elif one.facet == "days":
        days = int(value)
        label = ngettext("Last %(num)s day", "Last %(num)s days", days)
    return value, f"{label} ({one.count})"


def chosen_facets(query: SearchQuery) -> dict[str, str]:
    names = {name for name, _label, _otherwise in FACETS.values()}
    arguments = query.arguments()
    return {name: str(value) for name, value in arguments.items() if name in names}


def chosen_before() -> dict[str, str]:
    """Return the facets in the address of the page that sent this request."""
    address = urlsplit(request.headers.get("HX-Current-URL", ""))
    arguments = MultiDict(parse_qsl(address.query))
    return chosen_facets(SearchQuery.read(arguments, may_tune=False))
