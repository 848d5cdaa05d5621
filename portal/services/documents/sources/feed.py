"""A feed (RSS or Atom): the pages of its entries. Pages of entries that leave the feed stay."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import httpx

from portal.domain.documents.sources import Listing, SourceItem
from portal.errors import N_, PageUnavailable, PortalError, SourceUnavailable
from portal.services.documents.sources.kinds import SourceKind
from portal.services.documents.sources.web.addresses import allowed_hosts, check_url
from portal.services.documents.sources.web.pages import PageListSource
from portal.services.documents.sources.web.xml_reading import (
    base_of,
    children,
    find_with_base,
    local_name,
    read_xml,
    text_of,
)
from portal.text.titles import MAX_TITLE_CHARACTERS

_DATES = ("updated", "modified", "pubDate", "date", "published")


class Feed(PageListSource):
    """The pages of a feed. It lists only the newest, so pages that it does not list are not
    gone."""

    def list_items(self) -> Listing:
        """Return the pages of the entries. Raises SourceUnavailable."""
        try:
            root = read_xml(self.downloader, str(self.url))
        except PageUnavailable as error:
            raise SourceUnavailable(error.reason) from error
        entries = list(find_with_base(root, ("item", "entry"), str(self.url)))
        if local_name(root) not in ("rss", "feed", "RDF"):
            raise SourceUnavailable("it is not a feed")
        items: dict[str, SourceItem] = {}
        refused: list[tuple[str, PortalError]] = []
        for entry, base in entries[: self.settings.max_pages]:
            link, element = _link(entry)
            try:
                above = httpx.URL(base_of(element, base))
                url = str(check_url(self.settings, link, base=above))
            except PageUnavailable as error:
                refused.append((link or text_of(entry, "title"), error))
                continue
            title = " ".join(text_of(entry, "title").split())[:MAX_TITLE_CHARACTERS]
            changed = next(filter(None, (text_of(entry, name) for name in _DATES)), "")
            items.setdefault(url, SourceItem(url, changed, title=title))
        return Listing(list(items.values()), refused=refused, is_complete=False)


def _link(entry: Element) -> tuple[str, Element]:
    """Return the address of an entry's page and the element that has it: as text in RSS, in an
    attribute in Atom."""
    for link in children(entry, "link"):
        if link.get("href") and link.get("rel", "alternate") == "alternate":
            return link.get("href", "").strip(), link
        if link.text and link.text.strip():
            return link.text.strip(), link
    for guid in children(entry, "guid"):
        if guid.get("isPermaLink", "true") == "true":
            return (guid.text or "").strip(), guid
    return "", entry


KIND = SourceKind(
    name="feed",
    label=N_("A feed"),
    hint=N_("The address of an RSS or Atom feed, on these hosts: %(list)s"),
    open=Feed.at,
    allowed=allowed_hosts,
    is_web=True,
)
