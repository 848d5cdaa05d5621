"""A feed (RSS or Atom): the pages of its entries. Entries that leave it stay."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import httpx

from portal.domain.documents.sources import Listing, Opened, SourceItem
from portal.errors import N_, PageUnavailable, PortalError, SourceUnavailable
from portal.services.documents.sources.kinds import SourceContext, SourceKind
from portal.services.documents.sources.web.addresses import allowed_hosts, check_source, check_url
from portal.services.documents.sources.web.downloading import Downloader
from portal.services.documents.sources.web.pages import open_page
from portal.services.documents.sources.web.xml_reading import (
    base_of,
    children,
    find_with_base,
    local_name,
    read_xml,
    text_of,
)
from portal.settings.smaller_sections import SourceSettings
from portal.text.titles import MAX_TITLE_CHARACTERS

_DATES = ("updated", "modified", "pubDate", "date", "published")


@dataclass(frozen=True, slots=True)
class Feed:
    """The pages of a feed. It lists the newest only, so that what it does not list is not gone."""

    url: httpx.URL
    downloader: Downloader
    settings: SourceSettings

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

    def open(self, item: SourceItem, known: str | None) -> AbstractContextManager[Opened | None]:
        return open_page(self.downloader, item, known)


def _link(entry: Element) -> tuple[str, Element]:
    """Return the page of an entry and the element that has it: RSS has its address as text, Atom in
    an attribute."""
    for link in children(entry, "link"):
        if link.get("href") and link.get("rel", "alternate") == "alternate":
            return link.get("href", "").strip(), link
        if link.text and link.text.strip():
            return link.text.strip(), link
    for guid in children(entry, "guid"):
        if guid.get("isPermaLink", "true") == "true":
            return (guid.text or "").strip(), guid
    return "", entry


def open_feed(context: SourceContext, address: str) -> Feed:
    """Return a feed. Raises InvalidInput for an address that is not allowed."""
    settings = context.settings.sources
    return Feed(check_source(settings, address), Downloader(context), settings)


KIND = SourceKind(
    name="feed",
    label=N_("A feed"),
    hint=N_("The address of an RSS or Atom feed, on these hosts: %(list)s"),
    open=open_feed,
    allowed=allowed_hosts,
    is_web=True,
)
