"""The kinds of sources. Each is one module and one line here."""

from __future__ import annotations

from collections.abc import Mapping

from portal.domain.documents.sources import Source
from portal.errors import InvalidInput
from portal.services.documents.sources import directory, feed, sitemap, web_pages
from portal.services.documents.sources.kinds import SourceContext, SourceKind

KINDS: Mapping[str, SourceKind] = {
    kind.name: kind
    for kind in (
        directory.KIND,
        web_pages.KIND,
        sitemap.KIND,
        feed.KIND,
    )
}


def find_kind(name: str) -> SourceKind:
    """Return a kind of source. Raises InvalidInput."""
    if name not in KINDS:
        raise InvalidInput("this kind of source is unknown")
    return KINDS[name]


def open_source(context: SourceContext, kind: str, address: str) -> Source:
    """Return the source at an address. Raises InvalidInput if the operator does not allow it."""
    return find_kind(kind).open(context, address)
